package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/fault"
)

var moment = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// opener opens the store over the database of a test; each call opens it again.
type opener func() *store.Store

// TestTheStoreIsTheSameOnEachDatabase runs all that follows on both, each test over an empty database.
func TestTheStoreIsTheSameOnEachDatabase(t *testing.T) {
	tests := map[string]func(*testing.T, opener){
		"a package comes back as it was stored, also after reopening": packagesComeBack,
		"what is in a package's files is kept":                        factsAreKept,
		"names and classes are unique where a package is seen":        namesAreUnique,
		"a refused upload leaves nothing":                             refusedUploadsLeaveNothing,
		"deleting removes all that belongs to a package":              deletingRemovesAll,
		"embedded records are exactly those given":                    embeddedRecordsAreThoseGiven,
		"pages join to the whole list in every order":                 pagesJoin,
		"search ranks by the text that matches first":                 searchRanks,
		"categories count their packages":                             categoriesCount,
	}
	run := func(t *testing.T, connect func(*testing.T) *gorm.DB, test func(*testing.T, opener)) {
		test(t, func() *store.Store {
			db := connect(t)
			t.Cleanup(func() { require.NoError(t, database.Close(db)) })
			s, err := store.New(t.Context(), db)
			require.NoError(t, err)
			return s
		})
	}
	t.Run("SQLite", func(t *testing.T) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "catalog.db")
				run(t, func(t *testing.T) *gorm.DB {
					db, err := database.Open(path)
					require.NoError(t, err)
					return db
				}, test)
			})
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := databasetest.Postgres(t)
		connect := func(t *testing.T) *gorm.DB {
			db, err := database.OpenPostgres(t.Context(), url, time.Minute)
			require.NoError(t, err)
			return db
		}
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				db := connect(t)
				require.NoError(t, db.Exec("DROP SCHEMA public CASCADE").Error)
				require.NoError(t, db.Exec("CREATE SCHEMA public").Error)
				require.NoError(t, database.Close(db))
				run(t, connect, test)
			})
		}
	})
}

// record makes a package whose id is 32 times the letter.
func record(letter, fullName, owner string) catalog.Record {
	id := ""
	for len(id) < 32 {
		id += letter
	}
	return catalog.Record{
		ID: id, FullName: fullName, Name: "Name of " + fullName, Type: "Application", Version: "1.2.0", Description: "What it is",
		Author: "someone", Supplier: map[string]any{"Name": "Inc"}, Tags: []string{"z", "a"}, Categories: []string{"Web", "SAP"},
		Classes: []string{fullName, fullName + "Node"}, OwnerID: owner, Enabled: true, Created: moment, Updated: moment,
	}
}

func names(t *testing.T, s *store.Store, query catalog.Query) []string {
	t.Helper()
	records, err := s.Packages(t.Context(), query)
	require.NoError(t, err)
	list := []string{}
	for _, r := range records {
		list = append(list, r.FullName)
	}
	return list
}

func packagesComeBack(t *testing.T, open opener) {
	s, want := open(), record("a", "org.A", "p1")
	require.NoError(t, s.AddPackage(t.Context(), want, []byte("PK\x00zip")))

	s = open()
	got, err := s.Package(t.Context(), want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
	archive, err := s.Archive(t.Context(), want.ID)
	require.NoError(t, err)
	require.Equal(t, []byte("PK\x00zip"), archive)
}

func factsAreKept(t *testing.T, open opener) {
	s, want := open(), record("a", "org.A", "p1")
	require.NoError(t, s.AddPackage(t.Context(), want, nil1()))
	got, err := s.Package(t.Context(), want.ID)
	require.NoError(t, err)
	require.Nil(t, got.Facts, "nobody has looked yet")

	require.NoError(t, s.NoteFacts(t.Context(), want.ID, catalog.Facts{UI: true, SupplierLogo: true}, map[string][]string{"org.A": {"io.murano.Application", "org.B"}}))
	require.NoError(t, s.NoteFacts(t.Context(), "gone", catalog.Facts{}, map[string][]string{"org.A": {}}))
	s = open()
	records, err := s.Packages(t.Context(), catalog.Query{Project: "p1"})
	require.NoError(t, err)
	require.Equal(t, &catalog.Facts{UI: true, SupplierLogo: true}, records[0].Facts)
	parents, err := s.Parents(t.Context(), []string{want.ID, "gone"})
	require.NoError(t, err)
	require.Equal(t, map[string]map[string][]string{want.ID: {"org.A": {"io.murano.Application", "org.B"}, "org.ANode": {}}}, parents)

	_, err = s.UpdatePackage(t.Context(), want.ID, func(r *catalog.Record) error { r.Name = "Another"; return nil })
	require.NoError(t, err)
	got, err = s.Package(t.Context(), want.ID)
	require.NoError(t, err)
	require.NotNil(t, got.Facts)
}

func namesAreUnique(t *testing.T, open opener) {
	s := open()
	require.NoError(t, s.AddPackage(t.Context(), record("a", "org.A", "p1"), nil1()))
	require.NoError(t, s.AddPackage(t.Context(), record("b", "org.A", "p2"), nil1()), "another project may have the same name")

	err := s.AddPackage(t.Context(), record("c", "org.A", "p1"), nil1())
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	other := record("d", "org.Other", "p1")
	other.Classes = []string{"org.ANode"}
	err = s.AddPackage(t.Context(), other, nil1())
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.ErrorContains(t, err, "Class with the same full name")

	public := record("e", "org.P", "p1")
	public.Public = true
	require.NoError(t, s.AddPackage(t.Context(), public, nil1()))
	require.NoError(t, s.AddPackage(t.Context(), record("f", "org.P", "p2"), nil1()), "a private package may shadow a public one")
	again := record("0", "org.P", "p3")
	again.Public = true
	require.Equal(t, fault.Conflict, fault.KindOf(s.AddPackage(t.Context(), again, nil1())))
}

func nil1() []byte { return []byte{1} }

func refusedUploadsLeaveNothing(t *testing.T, open opener) {
	s, r := open(), record("a", "org.A", "p1")
	r.Categories = []string{"Web", "No Such Category"}
	err := s.AddPackage(t.Context(), r, nil1())
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.ErrorContains(t, err, "Category 'No Such Category' doesn't exist")
	require.Empty(t, names(t, s, catalog.Query{Scope: catalog.ScopeAll}))
	require.NoError(t, s.AddPackage(t.Context(), record("a", "org.A", "p1"), nil1()))
}

func deletingRemovesAll(t *testing.T, open opener) {
	s, r := open(), record("a", "org.A", "p1")
	require.NoError(t, s.AddPackage(t.Context(), r, nil1()))
	require.NoError(t, s.DeletePackage(t.Context(), r.ID))
	require.Equal(t, fault.NotFound, fault.KindOf(s.DeletePackage(t.Context(), r.ID)))
	_, err := s.Archive(t.Context(), r.ID)
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	require.NoError(t, s.AddPackage(t.Context(), r, nil1()), "neither rows of classes nor of tags are left")
}

func embeddedRecordsAreThoseGiven(t *testing.T, open opener) {
	s, r := open(), record("a", "io.core", "")
	r.Embedded, r.Public, r.Categories = true, true, nil
	gone := record("b", "io.gone", "")
	gone.Embedded, gone.Public, gone.Categories = true, true, nil
	require.NoError(t, s.AddPackage(t.Context(), record("c", "org.A", "p1"), nil1()))
	require.NoError(t, s.ReplaceEmbedded(t.Context(), []catalog.Record{r, gone}))
	r.Created, r.Updated = moment.Add(time.Hour), moment.Add(time.Hour)
	require.NoError(t, s.ReplaceEmbedded(t.Context(), []catalog.Record{r}))
	require.Equal(t, []string{"io.core", "org.A"}, names(t, s, catalog.Query{Scope: catalog.ScopeAll, OrderBy: []catalog.Order{catalog.OrderName}}))
	got, err := s.Package(t.Context(), r.ID)
	require.NoError(t, err)
	require.Equal(t, moment, got.Created)
	require.Equal(t, moment.Add(time.Hour), got.Updated)
}

func pagesJoin(t *testing.T, open opener) {
	s := open()
	for i, letter := range []string{"9", "3", "b", "1", "d", "7", "5"} {
		r := record(letter, fmt.Sprintf("org.P%d", i%7), "p1")
		r.Name = []string{"same", "Same", "other"}[i%3]
		r.Created = moment.Add(time.Duration(i%2) * time.Minute)
		require.NoError(t, s.AddPackage(t.Context(), r, nil1()))
	}
	for _, order := range [][]catalog.Order{nil, {catalog.OrderName}, {catalog.OrderCreated, catalog.OrderName}, {catalog.OrderFullName}} {
		for _, descending := range []bool{false, true} {
			for _, search := range [][]string{nil, {"sam", "p3"}} {
				query := catalog.Query{Scope: catalog.ScopeAll, OrderBy: order, Descending: descending, Search: search}
				whole, err := s.Packages(t.Context(), query)
				require.NoError(t, err)
				query.Limit = 2
				var joined []catalog.Record
				for {
					page, err := s.Packages(t.Context(), query)
					require.NoError(t, err)
					if len(page) == 0 {
						break
					}
					joined = append(joined, page...)
					query.Marker = page[len(page)-1].ID
				}
				require.Equal(t, whole, joined, "%v %v %v", order, descending, search)
			}
		}
	}
}

func searchRanks(t *testing.T, open opener) {
	s := open()
	byTag, byName, byText := record("1", "org.T", "p1"), record("2", "org.N", "p1"), record("3", "org.D", "p1")
	byTag.Tags = []string{"100%"}
	byName.Name = "The 100% one"
	byText.Description = "is 100% sure"
	for _, r := range []catalog.Record{byTag, byText, byName} {
		require.NoError(t, s.AddPackage(t.Context(), r, nil1()))
	}
	require.Equal(t, []string{"org.N", "org.D", "org.T"}, names(t, s, catalog.Query{Project: "p1", Search: []string{"100%"}}))
	require.Empty(t, names(t, s, catalog.Query{Project: "p1", Search: []string{"1_0%"}}), "wildcards are taken literally")
}

func categoriesCount(t *testing.T, open opener) {
	s, r := open(), record("a", "org.A", "p1")
	require.NoError(t, s.AddPackage(t.Context(), r, nil1()))
	list, err := s.Categories(t.Context(), catalog.CategoryQuery{SortKeys: []string{"package_count"}, Descending: true, Limit: 3})
	require.NoError(t, err)
	require.Len(t, list, 3)
	counts := []int{list[0].PackageCount, list[1].PackageCount, list[2].PackageCount}
	require.Equal(t, []int{1, 1, 0}, counts)

	all, err := s.Categories(t.Context(), catalog.CategoryQuery{})
	require.NoError(t, err)
	require.Len(t, all, 9)
	require.Equal(t, "Application Servers", all[0].Name)
	err = s.DeleteCategory(t.Context(), list[0].ID)
	require.Equal(t, fault.Forbidden, fault.KindOf(err))
	require.NoError(t, s.DeletePackage(t.Context(), r.ID))
	embedded := record("b", "io.burano.B", "")
	embedded.Embedded, embedded.Public, embedded.Classes = true, true, []string{"io.burano.B"}
	embedded.Categories = []string{list[0].Name, "no such category"}
	require.NoError(t, s.ReplaceEmbedded(t.Context(), []catalog.Record{embedded}))
	noted, err := s.Package(t.Context(), embedded.ID)
	require.NoError(t, err)
	require.Equal(t, []string{list[0].Name}, noted.Categories)
	require.NoError(t, s.DeleteCategory(t.Context(), list[0].ID), "an embedded package does not keep a category")
	require.NoError(t, s.ReplaceEmbedded(t.Context(), []catalog.Record{embedded}), "the next start of a server")
	require.Equal(t, fault.NotFound, fault.KindOf(s.DeleteCategory(t.Context(), list[0].ID)))
	err = s.AddCategory(t.Context(), catalog.Category{ID: "x", Name: "Databases", Created: moment, Updated: moment})
	require.Equal(t, fault.Conflict, fault.KindOf(err))
}
