package api

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io/fs"
	"mime/multipart"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const goodManifest = "Format: 1.3\nType: Application\nFullName: org.Bad\nClasses: {org.Bad: Bad.yaml}\n"

type zipEntry struct {
	name, content string
	mode          fs.FileMode
}

func zipArchive(t *testing.T, entries ...zipEntry) []byte {
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

// claimed makes an archive claim another unpacked size of its last entry.
func claimed(archive []byte, size uint32) []byte {
	at := bytes.LastIndex(archive, []byte("PK\x01\x02")) + 24 // PKWARE's APPNOTE, 4.3.12
	archive[at], archive[at+1], archive[at+2], archive[at+3] = byte(size), byte(size>>8), byte(size>>16), byte(size>>24)
	return archive
}

func uploadForm(t *testing.T, archive []byte) (body []byte, contentType string) {
	t.Helper()
	var out bytes.Buffer
	form := multipart.NewWriter(&out)
	part, err := form.CreateFormFile("file", "p.zip")
	require.NoError(t, err)
	_, err = part.Write(archive)
	require.NoError(t, err)
	require.NoError(t, form.Close())
	return out.Bytes(), form.FormDataContentType()
}

// TestBadUploadsAreRefusedAndLeaveNothing uploads invalid packages, and attacks on the server. Each answer is 400 and names the fault. Afterwards the
// tables are unchanged and no file is left. The server's allocations for each upload, all together and not only at one time, are less than bound.
func TestBadUploadsAreRefusedAndLeaveNothing(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	s := newServer(t)
	manifest := zipEntry{name: "manifest.yaml", content: goodManifest}
	good := zipArchive(t, manifest, zipEntry{name: "Classes/Bad.yaml", content: "Name: org.Bad"})
	zeros := strings.Repeat("\x00", 32<<20)
	withManifest := func(text string) []byte { return zipArchive(t, zipEntry{name: "manifest.yaml", content: text}) }
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		previous, next := string(rune('0'+i)), string(rune('1'+i))
		laughs += "a" + next + ": &a" + next + " [" + strings.Repeat("*a"+previous+", ", 9) + "*a" + previous + "]\n"
	}
	var huge strings.Builder // of data that compress badly
	for i := range 70_000 {
		fmt.Fprintf(&huge, "# %x\n", i*i*i)
	}
	many := []zipEntry{manifest}
	for i := range 5000 {
		many = append(many, zipEntry{name: "Resources/" + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + strings.Repeat("y", i/50)})
	}
	latin := zipArchive(t, manifest, zipEntry{name: "Resources/caf\xe9"})
	hot := func(template string) []byte {
		return zipArchive(t, zipEntry{name: "manifest.yaml", content: "Format: Heat.HOT/1.0\nType: Application\nFullName: org.Bad\n"},
			zipEntry{name: "template.yaml", content: template})
	}
	counts := func() map[string]int64 {
		all := map[string]int64{}
		for _, table := range []string{"packages", "package_archives", "package_classes", "package_tags", "package_categories"} {
			var rows int64
			require.NoError(t, s.db.Table(table).Count(&rows).Error)
			all[table] = rows
		}
		return all
	}
	before := counts()
	const bound = 64 << 20 // bytes

	for name, c := range map[string]struct {
		archive []byte
		says    string
	}{
		"no zip":                      {[]byte("this is no zip"), "is not a zip archive"},
		"empty":                       {nil, "Uploading file can't be empty"},
		"truncated":                   {good[:len(good)-30], "is not a zip archive"},
		"truncated in the middle":     {append(bytes.Clone(good[:40]), good[90:]...), ""},
		"entry outside":               {zipArchive(t, manifest, zipEntry{name: "../../etc/cron.d/x"}), "leads outside"},
		"entry outside by an alias":   {zipArchive(t, manifest, zipEntry{name: "Resources/../../x"}), "leads outside"},
		"absolute":                    {zipArchive(t, manifest, zipEntry{name: "/etc/passwd"}), "absolute name"},
		"of another system":           {zipArchive(t, manifest, zipEntry{name: `..\x`}), "one of another system"},
		"link":                        {zipArchive(t, manifest, zipEntry{name: "Resources/l", content: "/etc/passwd", mode: fs.ModeSymlink | 0o777}), "is a link"},
		"device":                      {zipArchive(t, manifest, zipEntry{name: "Resources/d", mode: fs.ModeDevice | 0o600}), "is no plain file"},
		"the same entry twice":        {zipArchive(t, manifest, manifest), "'manifest.yaml' is there twice"},
		"the same entry by two names": {zipArchive(t, manifest, zipEntry{name: "./manifest.yaml"}), "'manifest.yaml' is there twice"},
		"a name that is not UTF-8":    {latin, "is not in UTF-8"},
		"a bomb":                      {zipArchive(t, manifest, zipEntry{name: "Resources/b", content: zeros}), "more than 200 times its size"},
		"a bomb of many files":        {zipArchive(t, manifest, zipEntry{name: "a", content: zeros}, zipEntry{name: "b", content: zeros}, zipEntry{name: "c", content: zeros}), "times its size"},
		"a bomb that claims less":     {claimed(zipArchive(t, manifest, zipEntry{name: "Resources/b", content: zeros}), 10), "cannot be read"},
		"a claim of much":             {claimed(zipArchive(t, manifest, zipEntry{name: "Resources/b", content: "x"}), 31<<20), "times its size"},
		"too many entries":            {zipArchive(t, many...), "more than the 4096 allowed"},
		"no manifest":                 {zipArchive(t, zipEntry{name: "x"}), "Unable to find package manifest"},
		"huge manifest":               {withManifest(goodManifest + huge.String() + huge.String()), "manifest.yaml has"},
		"deep YAML":                   {withManifest(goodManifest + "Tags: " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000)), "nested deeper than 100 levels"},
		"deeper YAML":                 {withManifest(goodManifest + "Tags: " + strings.Repeat("[", 200_000)), "yaml: "},
		"deep YAML of maps":           {withManifest(goodManifest + "Supplier: " + strings.Repeat("{a: ", 3000) + strings.Repeat("}", 3000)), "nested deeper than 100 levels"},
		"an alias bomb":               {withManifest(goodManifest + laughs + "Supplier: {Name: *a9}\n"), "more than 100000 values, aliases written out"},
		"an alias of itself":          {withManifest(goodManifest + "Supplier: &a {b: *a}\n"), "nested deeper than 100 levels"},
		"binary YAML":                 {withManifest("\x00\x01\xff\xfe"), "manifest.yaml: "},
		"YAML in Latin-1":             {withManifest("Type: Application\nFullName: caf\xe9\n"), "manifest.yaml: yaml: "},
		"a template of nothing":       {hot("x"), "Not a HOT template"},
		"an alias bomb of a template": {hot(laughs + "resources: {}\n"), "more than 100000 values, aliases written out"},
		"a logo that is none":         {zipArchive(t, manifest, zipEntry{name: "logo.png", content: "<svg onload='alert(1)'/>"}), "unsupported format"},
	} {
		t.Run(name, func(t *testing.T) {
			body, contentType := uploadForm(t, c.archive)
			var start, end runtime.MemStats
			runtime.ReadMemStats(&start)
			answer := s.send("POST", "/v1/catalog/packages", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": contentType}, body)
			runtime.ReadMemStats(&end)
			require.Equal(t, 400, answer.Code, answer.Body.String())
			require.Contains(t, answer.Body.String(), c.says)
			require.Less(t, len(answer.Body.String()), 2000, "a message is no copy of what was sent")
			require.Less(t, end.TotalAlloc-start.TotalAlloc, uint64(bound+4*len(body)))
			t.Logf("%d bytes sent, %.1f MiB allocated: %s", len(body), float64(end.TotalAlloc-start.TotalAlloc)/(1<<20), answer.Body)
		})
	}
	require.Equal(t, before, counts())
	left, err := os.ReadDir(temporary)
	require.NoError(t, err)
	require.Empty(t, left)

	body, contentType := uploadForm(t, good)
	require.Equal(t, 200, s.send("POST", "/v1/catalog/packages", map[string]string{"X-Auth-Token": "{token:demo}", "Content-Type": contentType}, body).Code,
		"the name is free")
}
