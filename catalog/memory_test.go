package catalog_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

const tinyLogo = "\x89PNG\r\n\x1a\n 24 bytes here."

// largePackage unpacks to 124 MiB, of an archive that may be uploaded, and has a logo of 24 bytes.
func largePackage(t *testing.T) []byte {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var file strings.Builder
	for file.Len() < 31<<20 { // which packs to less than a hundredth
		file.WriteString(strings.Repeat(fmt.Sprintf("%016x", random.Uint64()), 128))
	}
	entries := []entry{{name: "manifest.yaml", content: "Type: Application\nFullName: org.Large\nClasses: {org.Large: C.yaml}\n"},
		{name: "Classes/C.yaml", content: "Name: Large\n"}, {name: "logo.png", content: tinyLogo}, {name: "UI/ui.yaml", content: "Version: 2\n"}}
	for i := range 4 {
		entries = append(entries, entry{name: fmt.Sprintf("Resources/%d", i), content: file.String()})
	}
	archive := zipOf(t, entries...)
	require.Less(t, len(archive), catalog.MaxUpload)
	return archive
}

// allocated is how many bytes are allocated while something is done.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestOneFileOfAPackageIsReadWithoutTheOthers(t *testing.T) {
	s := service(t)
	archive := largePackage(t)
	var id string
	require.Less(t, allocated(func() { id = upload(t, s, demo, catalog.Metadata{}, archive).ID }), uint64(64<<20), "bytes to take in a package of 124 MiB")
	require.Less(t, allocated(func() {
		p, err := s.Open(t.Context(), demo, id)
		require.NoError(t, err)
		logo, err := p.Logo()
		require.NoError(t, err)
		require.Equal(t, tinyLogo, string(logo))
		form, err := s.UI(t.Context(), demo, id)
		require.NoError(t, err)
		require.Equal(t, "Version: 2\n", string(form))
		_, class, err := p.ClassFile("org.Large")
		require.NoError(t, err)
		require.Equal(t, "Name: Large\n", string(class))
	}), uint64(16<<20), "bytes to read a logo of 24 bytes, a form and a class")

	// Simultaneous callers share one read.
	other := upload(t, s, other, catalog.Metadata{}, archive).ID
	require.Less(t, allocated(func() {
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				_, err := s.Open(t.Context(), admin, other)
				require.NoError(t, err)
			})
		}
		all.Wait()
	}), uint64(48<<20), "bytes for fifty readers at once")
}

func TestADamagedFileOfAnArchiveIsRefused(t *testing.T) {
	archive := packageZip(t, "org.A", "org.A", "1", strings.Repeat("Name: A\n", 100))
	at := strings.Index(string(archive), "Classes/C.yaml") + len("Classes/C.yaml") + 8
	archive[at] ^= 0xff
	_, err := service(t).Upload(t.Context(), demo, catalog.Metadata{}, archive)
	require.ErrorContains(t, err, "Classes/C.yaml")
}
