package catalog_test

import (
	"context"
	"net/url"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

var (
	demo  = identity.Caller{ProjectID: "demo"}.Under(member)
	other = identity.Caller{ProjectID: "other"}.Under(member)
	admin = identity.Caller{ProjectID: "admin", Admin: true}
)

// member is the right of every user by Murano's rules.
func member(rule string) bool { return rule == "manage_public_package" }

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
		require.Equal(t, fault.Conflict, fault.KindOf(err), "there is a public package of that name or class")
	}
	_, err = s.Update(t.Context(), admin, catalog.EmbeddedID("io.core"), []catalog.Change{{Op: "replace", Attribute: "name", Value: "Mine"}})
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	err = s.Delete(t.Context(), admin, catalog.EmbeddedID("io.core"))
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	record, err := s.Show(t.Context(), demo, catalog.EmbeddedID("io.core"))
	require.NoError(t, err)
	require.True(t, record.Public)
	require.Empty(t, record.OwnerID)
}

func TestOnlyTheEmbeddedPackagesThatAreOfferedAreThere(t *testing.T) {
	s := service(t, catalog.OfferEmbedded(), catalog.EmbeddedOwner("service"))
	records, _, err := s.List(t.Context(), demo, url.Values{"catalog": {"true"}})
	require.NoError(t, err)
	require.Len(t, records, 1, "no name offers all")
	require.Equal(t, "service", records[0].OwnerID)

	db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = database.Close(db) })
	rows, err := store.New(t.Context(), db)
	require.NoError(t, err)
	_, err = catalog.New(rows, embeddedTwo(t), catalog.OfferEmbedded("io.nothing"))
	require.ErrorContains(t, err, "no package 'io.nothing' comes with Burano; there are io.one, io.two")
	two, err := catalog.New(rows, embeddedTwo(t))
	require.NoError(t, err)
	_, err = two.Source("demo").PackageByName(t.Context(), "io.two", "")
	require.NoError(t, err)
	one, err := catalog.New(rows, embeddedTwo(t), catalog.OfferEmbedded("io.one"))
	require.NoError(t, err)
	_, err = one.Source("demo").PackageByName(t.Context(), "io.two", "")
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	_, err = one.Show(t.Context(), admin, catalog.EmbeddedID("io.two"))
	require.Equal(t, fault.NotFound, fault.KindOf(err))

	upload(t, one, admin, catalog.Metadata{Public: true}, packageZip(t, "io.two", "io.two.A", "1.0.0", "mine"))
	_, err = catalog.New(rows, embeddedTwo(t))
	require.NoError(t, err, "a public package of its name does not keep an embedded one out")
}

func embeddedTwo(t *testing.T) []*catalog.Package {
	var packages []*catalog.Package
	for _, name := range []string{"io.one", "io.two"} {
		p, err := catalog.ReadEmbedded(fstest.MapFS{"manifest.yaml": {Data: []byte("Type: Library\nFullName: " + name + "\n")}})
		require.NoError(t, err)
		packages = append(packages, p)
	}
	return packages
}

// TestAnUploadedPackageOfAnEmbeddedOnesNameHasNoNativeBodies runs the same method in two projects. In the one, the embedded package's body in Go answers.
// The other has a package of the same name, class and method of its own, where nothing does.
func TestAnUploadedPackageOfAnEmbeddedOnesNameIsNotTakenForIt(t *testing.T) {
	const manifest = "Type: Library\nFullName: io.core\nClasses: {io.core.Thing: Thing.yaml}\n"
	const class = "Name: io.core.Thing\nMethods:\n  speak:\n    Usage: Action\n    Native: true\n"
	core, err := catalog.ReadEmbedded(fstest.MapFS{"manifest.yaml": {Data: []byte(manifest)}, "Classes/Thing.yaml": {Data: []byte(class)},
		"Classes/Object.yaml": {Data: []byte("Name: io.murano.Object\n")}})
	require.NoError(t, err)
	object, err := catalog.ReadEmbedded(fstest.MapFS{"manifest.yaml": {Data: []byte("Type: Library\nFullName: io.murano\nClasses: {io.murano.Object: Object.yaml}\n")},
		"Classes/Object.yaml": {Data: []byte("Name: io.murano.Object\n")}})
	require.NoError(t, err)
	db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = database.Close(db) })
	rows, err := store.New(t.Context(), db)
	require.NoError(t, err)
	former, err := catalog.New(rows, []*catalog.Package{object})
	require.NoError(t, err)
	copied := func(version string) []byte {
		return zipOf(t, entry{name: "manifest.yaml", content: manifest + version}, entry{name: "Classes/Thing.yaml", content: class})
	}
	upload(t, former, demo, catalog.Metadata{}, copied(""))
	upload(t, former, other, catalog.Metadata{}, copied("Version: 2.0.0\n"))
	s, err := catalog.New(rows, []*catalog.Package{core, object})
	require.NoError(t, err)
	_, err = s.Upload(t.Context(), admin, catalog.Metadata{}, copied(""))
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.ErrorContains(t, err, "The package io.core comes with Burano")

	natives := muranopl.Natives{"io.core": {"io.core.Thing": {
		"speak": func(context.Context, muranopl.Call) (any, error) { return "from Go", nil },
	}}}
	says := func(project, class string) (any, error) {
		classes := muranopl.NewClasses(s.Source(project))
		thing, problems := muranopl.Load(t.Context(), classes, map[string]any{"?": map[string]any{"type": class, "id": "t"}})
		require.Empty(t, problems)
		return muranopl.NewInterpreter(classes, natives).Invoke(t.Context(), thing, "speak", nil)
	}
	for _, project := range []string{demo.ProjectID, other.ProjectID, admin.ProjectID} {
		said, err := says(project, "io.core.Thing")
		require.NoError(t, err)
		require.Equal(t, "from Go", said, "the embedded package goes before a copy that a former version has admitted")
	}
	_, err = says(other.ProjectID, "io.core.Thing/2.0.0")
	require.ErrorContains(t, err, "method io.core.Thing.speak of the uploaded package io.core has no body: only packages that come with Burano")
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
