package catalog_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/internal/fault"
)

const plainManifest = "Format: 1.3\nType: Application\nFullName: org.A\nClasses: {org.A: A.yaml}\n"

type entry struct {
	name    string
	content string
	mode    fs.FileMode
}

func zipOf(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode != 0 {
			header.SetMode(e.mode)
		}
		f, err := w.CreateHeader(header)
		require.NoError(t, err)
		_, err = f.Write([]byte(e.content))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func read(archive []byte) (*catalog.Package, error) {
	return catalog.ReadZip(bytes.NewReader(archive), int64(len(archive)))
}

func TestWhatIsNoPackageIsRefusedWithItsReason(t *testing.T) {
	manifest := entry{name: "manifest.yaml", content: plainManifest}
	many := []entry{manifest}
	for i := range 5000 {
		many = append(many, entry{name: "Resources/" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/50)})
	}
	encrypted := zipOf(t, manifest)
	for _, signature := range []string{"PK\x03\x04", "PK\x01\x02"} {
		at := bytes.Index(encrypted, []byte(signature)) + map[string]int{"PK\x03\x04": 6, "PK\x01\x02": 8}[signature]
		encrypted[at] |= 1
	}
	broken := zipOf(t, entry{name: "manifest.yaml", content: plainManifest + strings.Repeat("# more\n", 9)})
	broken[45] ^= 0xff

	var long strings.Builder // of data that compress badly
	for i := range 1 << 16 {
		fmt.Fprintf(&long, "# %x\n", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
	}

	for name, c := range map[string]struct {
		archive []byte
		kind    fault.Kind
		says    string
	}{
		"text":                     {[]byte("this is not a zip"), fault.Invalid, "is not a zip archive"},
		"nothing":                  {nil, fault.Invalid, "is not a zip archive"},
		"no manifest":              {zipOf(t, entry{name: "x"}), fault.Invalid, "Unable to find package manifest"},
		"the folder was zipped":    {zipOf(t, entry{name: "org.A/manifest.yaml", content: plainManifest}), fault.Invalid, "zip the contents of that folder"},
		"entry outside":            {zipOf(t, manifest, entry{name: "../evil"}), fault.Invalid, "'../evil' leads outside"},
		"entry outside, hidden":    {zipOf(t, manifest, entry{name: "a/../../evil"}), fault.Invalid, "leads outside"},
		"dots inside":              {zipOf(t, manifest, entry{name: "a/../b"}), fault.Invalid, "has '..'"},
		"absolute":                 {zipOf(t, manifest, entry{name: "/etc/passwd"}), fault.Invalid, "absolute name"},
		"drive letter":             {zipOf(t, manifest, entry{name: "C:/x"}), fault.Invalid, "absolute name"},
		"backslashes":              {zipOf(t, manifest, entry{name: `..\evil`}), fault.Invalid, "absolute name or one of another system"},
		"link":                     {zipOf(t, manifest, entry{name: "l", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777}), fault.Invalid, "'l' is a link"},
		"device":                   {zipOf(t, manifest, entry{name: "d", mode: fs.ModeDevice | 0o600}), fault.Invalid, "no plain file"},
		"zero byte in the name":    {zipOf(t, manifest, entry{name: "a\x00b"}), fault.Invalid, "no proper name"},
		"the same entry twice":     {zipOf(t, manifest, entry{name: "x"}, entry{name: "./x"}), fault.Invalid, "'x' is there twice"},
		"too long a name":          {zipOf(t, manifest, entry{name: strings.Repeat("n", 600)}), fault.Invalid, "longer than 512 bytes"},
		"too many entries":         {zipOf(t, many...), fault.TooLarge, "more than the 4096 allowed"},
		"encrypted":                {encrypted, fault.Invalid, "is encrypted"},
		"damaged":                  {broken, fault.Invalid, "cannot be read"},
		"a bomb":                   {zipOf(t, manifest, entry{name: "b", content: strings.Repeat("\x00", 8<<20)}), fault.TooLarge, "200 times its size"},
		"one file too large":       {zipOf(t, manifest, entry{name: "b", content: strings.Repeat(long.String(), 33<<20/long.Len()+1)}), fault.TooLarge, "unpacks to too much"},
		"manifest too large":       {zipOf(t, entry{name: "manifest.yaml", content: long.String()}), fault.TooLarge, "manifest.yaml has"},
		"logo is no image":         {zipOf(t, manifest, entry{name: "logo.png", content: "<svg/>"}), fault.Invalid, "Logo: 'logo.png' is of an unsupported format"},
		"logo too large":           {zipOf(t, manifest, entry{name: "logo.png", content: "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 500<<10)}), fault.Invalid, "more than the 512000 allowed"},
		"logo named and not there": {zipOf(t, entry{name: "manifest.yaml", content: plainManifest + "Logo: l.png\n"}), fault.Invalid, "names the file 'l.png'"},
		"template missing": {zipOf(t, entry{name: "manifest.yaml", content: "Format: Heat.HOT/1.0\nType: Application\nFullName: org.H\n"}),
			fault.Invalid, "needs a 'template.yaml'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(c.archive)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.kind, fault.KindOf(err))
		})
	}
}

func TestTheSizeThatAnEntryClaimsIsNotBelieved(t *testing.T) {
	archive := zipOf(t, entry{name: "manifest.yaml", content: plainManifest}, entry{name: "b", content: strings.Repeat("\x00", 40<<20)})
	// The central directory's uncompressed size of the last entry, 24 bytes behind its signature.
	at := bytes.LastIndex(archive, []byte("PK\x01\x02")) + 24
	copy(archive[at:], []byte{1, 0, 0, 0})
	_, err := read(archive)
	require.Error(t, err)
	require.NotZero(t, fault.KindOf(err))
}

func TestAFolderAndItsZipAreTheSamePackage(t *testing.T) {
	folder := fstest.MapFS{
		"manifest.yaml":     {Data: []byte(plainManifest)},
		"Classes/A.yaml":    {Data: []byte("Name: A\n")},
		"Resources/b/x.sh":  {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		".git/config":       {Data: []byte("secret")},
		"Resources/.hidden": {Data: []byte("secret")},
	}
	var one, two bytes.Buffer
	require.NoError(t, catalog.WriteZip(&one, folder))
	require.NoError(t, catalog.WriteZip(&two, folder))
	require.Equal(t, one.Bytes(), two.Bytes())

	p, err := catalog.ReadFolder(folder)
	require.NoError(t, err)
	require.False(t, p.Embedded())
	var three bytes.Buffer
	require.NoError(t, p.WriteZip(&three))
	require.Equal(t, one.Bytes(), three.Bytes())

	again, err := read(one.Bytes())
	require.NoError(t, err)
	require.Equal(t, p, again)
	require.Equal(t, []string{"Classes/A.yaml", "Resources/b/x.sh", "manifest.yaml"}, again.FileNames())
	file, text, err := again.ClassFile("org.A")
	require.NoError(t, err)
	require.Equal(t, "Classes/A.yaml", file)
	require.Equal(t, "Name: A\n", string(text))
	_, _, err = again.ClassFile("org.B")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

func TestALinkInAFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(plainManifest), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")))
	_, err := catalog.ReadFolder(os.DirFS(dir))
	require.ErrorContains(t, err, "'passwd' is no plain file")
	require.Error(t, catalog.WriteZip(&bytes.Buffer{}, os.DirFS(dir)))
}

func TestAClassFileThatLeadsOutsideIsNotThere(t *testing.T) {
	p, err := read(zipOf(t, entry{name: "manifest.yaml", content: "Type: Library\nFullName: org.A\nClasses: {org.A: ../../etc/passwd}\n"}))
	require.NoError(t, err)
	_, _, err = p.ClassFile("org.A")
	require.ErrorContains(t, err, "holds no such file")
}

// FuzzReadZip holds that whatever is uploaded gives a package or a fault, and a package keeps its promises.
func FuzzReadZip(f *testing.F) {
	f.Add(zipOf(f, entry{name: "manifest.yaml", content: plainManifest}, entry{name: "Classes/A.yaml", content: "Name: A"}))
	f.Add(zipOf(f, entry{name: "manifest.yaml", content: plainManifest}, entry{name: "../x", content: "y"}))
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Fuzz(func(t *testing.T, archive []byte) {
		p, err := read(archive)
		if err != nil {
			require.NotZero(t, fault.KindOf(err), "%v", err)
			return
		}
		for _, name := range p.FileNames() {
			require.True(t, fs.ValidPath(name), "%q", name)
		}
		var out bytes.Buffer
		require.NoError(t, p.WriteZip(&out))
		again, err := read(out.Bytes())
		require.NoError(t, err)
		require.Equal(t, p, again)
	})
}
