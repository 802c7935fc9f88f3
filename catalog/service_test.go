package catalog_test

import (
	"net/url"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

var (
	demo  = identity.Caller{ProjectID: "demo"}
	other = identity.Caller{ProjectID: "other"}
	admin = identity.Caller{ProjectID: "admin", Admin: true}
)

func service(t *testing.T, options ...catalog.Option) *catalog.Service {
	t.Helper()
	db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = database.Close(db) })
	packages, err := store.New(t.Context(), db)
	require.NoError(t, err)
	core, err := catalog.ReadEmbedded(fstest.MapFS{
		"manifest.yaml":       {Data: []byte("Type: Library\nFullName: io.core\nClasses: {io.core.Object: Object.yaml}\n")},
		"Classes/Object.yaml": {Data: []byte("Name: Object\n")},
	})
	require.NoError(t, err)
	s, err := catalog.New(packages, []*catalog.Package{core}, options...)
	require.NoError(t, err)
	return s
}

// packageZip makes a package with one class, whose file holds the mark.
func packageZip(t *testing.T, fullName, class, version, mark string) []byte {
	t.Helper()
	return zipOf(t,
		entry{name: "manifest.yaml", content: "Type: Application\nFullName: " + fullName + "\nVersion: " + version + "\nClasses: {" + class + ": C.yaml}\n"},
		entry{name: "Classes/C.yaml", content: mark})
}

func upload(t *testing.T, s *catalog.Service, caller identity.Caller, meta catalog.Metadata, archive []byte) catalog.Record {
	t.Helper()
	record, err := s.Upload(t.Context(), caller, meta, archive)
	require.NoError(t, err)
	return record
}

func classText(t *testing.T, s *catalog.Service, project, class, spec string) string {
	t.Helper()
	p, err := s.Source(project).PackageForClass(t.Context(), class, spec)
	require.NoError(t, err)
	_, text, err := p.ClassFile(class)
	require.NoError(t, err)
	return string(text)
}

func TestAClassIsFoundInTheProjectsOwnPackageFirst(t *testing.T) {
	s := service(t)
	public := upload(t, s, admin, catalog.Metadata{Public: true}, packageZip(t, "org.P", "org.C", "1.2.0", "public"))
	require.Equal(t, "public", classText(t, s, "demo", "org.C", ""))
	own := upload(t, s, demo, catalog.Metadata{}, packageZip(t, "org.Own", "org.C", "0.3.0", "own"))
	require.Equal(t, "own", classText(t, s, "demo", "org.C", ""))
	require.Equal(t, "public", classText(t, s, "other", "org.C", ""))
	require.Equal(t, "public", classText(t, s, "demo", "org.C", ">=1"), "the own package is not of that version")

	_, err := s.Source("demo").PackageForClass(t.Context(), "org.C", ">=2")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	require.ErrorContains(t, err, "version '>=2'; there is [0.3.0 1.2.0]")
	p, err := s.Source("demo").PackageByName(t.Context(), "org.Own", "=0")
	require.NoError(t, err)
	require.Equal(t, "org.Own", p.FullName())
	_, err = s.Source("other").PackageByName(t.Context(), "org.Own", "")
	require.Equal(t, fault.NotFound, fault.KindOf(err), "another project's package is not there")

	require.NoError(t, s.Delete(t.Context(), demo, own.ID))
	require.Equal(t, "public", classText(t, s, "demo", "org.C", ""))
	require.NoError(t, s.Delete(t.Context(), admin, public.ID))
	_, err = s.Source("demo").PackageForClass(t.Context(), "org.C", "")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	require.ErrorContains(t, err, "'org.C'")
}

func TestADisabledPackageIsNotFound(t *testing.T) {
	s, no := service(t), false
	upload(t, s, demo, catalog.Metadata{Enabled: &no}, packageZip(t, "org.D", "org.D", "1.0.0", ""))
	_, err := s.Source("demo").PackageForClass(t.Context(), "org.D", "")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
}

func TestWhatComesWithBuranoIsAlwaysThere(t *testing.T) {
	s := service(t)
	p, err := s.Source("anybody").PackageForClass(t.Context(), "io.core.Object", "")
	require.NoError(t, err)
	require.True(t, p.Embedded())

	for _, archive := range [][]byte{packageZip(t, "io.core", "org.X", "0.0.0", ""), packageZip(t, "org.X", "io.core.Object", "0.0.0", "")} {
		_, err = s.Upload(t.Context(), admin, catalog.Metadata{Public: true}, archive)
		require.Equal(t, fault.Conflict, fault.KindOf(err))
		require.ErrorContains(t, err, "comes with Burano")
	}
	err = s.Delete(t.Context(), admin, catalog.EmbeddedID("io.core"))
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	record, err := s.Show(t.Context(), demo, catalog.EmbeddedID("io.core"))
	require.NoError(t, err)
	require.True(t, record.Public)
	require.Empty(t, record.OwnerID)
}

func TestEmbeddedPackagesCanBeLeftOutOfLists(t *testing.T) {
	listed := func(s *catalog.Service) []string {
		records, marker, err := s.List(t.Context(), demo, url.Values{"catalog": {"true"}})
		require.NoError(t, err)
		require.Empty(t, marker)
		names := []string{}
		for _, r := range records {
			names = append(names, r.FullName)
		}
		return names
	}
	require.Equal(t, []string{"io.core"}, listed(service(t)))
	hiding := service(t, catalog.HideEmbedded())
	require.Empty(t, listed(hiding))
	_, err := hiding.Source("demo").PackageByName(t.Context(), "io.core", "")
	require.NoError(t, err)
}

func TestAnotherProjectsPackageIsNeitherSeenNorTouched(t *testing.T) {
	s := service(t)
	record := upload(t, s, demo, catalog.Metadata{}, packageZip(t, "org.A", "org.A", "1.0.0", ""))
	_, err := s.Show(t.Context(), other, record.ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	_, err = s.UI(t.Context(), other, record.ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	_, err = s.Download(t.Context(), other, record.ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	_, err = s.Open(t.Context(), other, record.ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	require.Equal(t, fault.Forbidden, fault.KindOf(s.Delete(t.Context(), other, record.ID)))
	records, _, err := s.List(t.Context(), other, url.Values{"include_disabled": {"true"}, "fqn": {"org.A"}})
	require.NoError(t, err)
	require.Empty(t, records)
	require.NoError(t, s.Delete(t.Context(), admin, record.ID))
}
