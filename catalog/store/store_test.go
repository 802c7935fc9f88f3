package store_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	driver "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
)

var moment = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// postgres names a PostgreSQL server ("host=… user=… dbname=…"): when it is set, the tests run there and not on SQLite.
var postgres = os.Getenv("BURANO_TEST_POSTGRES")

func open(t *testing.T, path string) *store.Store {
	t.Helper()
	db, err := openDatabase(t, path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = database.Close(db) })
	s, err := store.New(t.Context(), db)
	require.NoError(t, err)
	return s
}

// openDatabase opens the SQLite file, or a schema of PostgreSQL in its place.
func openDatabase(t *testing.T, path string) (*gorm.DB, error) {
	if postgres == "" {
		return database.Open(path)
	}
	schema := fmt.Sprintf("test_%x", sha256.Sum256([]byte(path)))[:40]
	db, err := gorm.Open(driver.Open(postgres+" search_path="+schema), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if again, err := gorm.Open(driver.Open(postgres), &gorm.Config{Logger: logger.Discard}); err == nil {
			_ = again.Exec("DROP SCHEMA IF EXISTS " + schema + " CASCADE").Error
			_ = database.Close(again)
		}
	})
	return db, db.Exec("CREATE SCHEMA IF NOT EXISTS " + schema).Error
}

func fresh(t *testing.T) *store.Store { return open(t, filepath.Join(t.TempDir(), "catalog.db")) }

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

func TestAPackageComesBackAsItWasStoredAlsoAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "catalog.db")
	s, want := open(t, path), record("a", "org.A", "p1")
	require.NoError(t, s.AddPackage(t.Context(), want, []byte("PK\x00zip")))

	s = open(t, path)
	got, err := s.Package(t.Context(), want.ID)
	require.NoError(t, err)
	require.Equal(t, want, got)
	archive, err := s.Archive(t.Context(), want.ID)
	require.NoError(t, err)
	require.Equal(t, []byte("PK\x00zip"), archive)
}

func TestNamesAndClassesAreUniqueWhereAPackageIsSeen(t *testing.T) {
	s := fresh(t)
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

func TestARefusedUploadLeavesNothing(t *testing.T) {
	s, r := fresh(t), record("a", "org.A", "p1")
	r.Categories = []string{"Web", "No Such Category"}
	err := s.AddPackage(t.Context(), r, nil1())
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.ErrorContains(t, err, "Category 'No Such Category' doesn't exist")
	require.Empty(t, names(t, s, catalog.Query{Scope: catalog.ScopeAll}))
	require.NoError(t, s.AddPackage(t.Context(), record("a", "org.A", "p1"), nil1()))
}

func TestDeletingRemovesAllThatBelongsToAPackage(t *testing.T) {
	s, r := fresh(t), record("a", "org.A", "p1")
	require.NoError(t, s.AddPackage(t.Context(), r, nil1()))
	require.NoError(t, s.DeletePackage(t.Context(), r.ID))
	require.Equal(t, fault.NotFound, fault.KindOf(s.DeletePackage(t.Context(), r.ID)))
	_, err := s.Archive(t.Context(), r.ID)
	require.Equal(t, fault.NotFound, fault.KindOf(err))
	require.NoError(t, s.AddPackage(t.Context(), r, nil1()), "neither rows of classes nor of tags are left")
}

func TestEmbeddedRecordsAreExactlyThoseGiven(t *testing.T) {
	s, r := fresh(t), record("a", "io.core", "")
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

func TestPagesJoinToTheWholeListInEveryOrder(t *testing.T) {
	s := fresh(t)
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

func TestSearchRanksByTheTextThatMatchesFirst(t *testing.T) {
	s := fresh(t)
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

func TestCategoriesCountTheirPackages(t *testing.T) {
	s, r := fresh(t), record("a", "org.A", "p1")
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
	require.NoError(t, s.DeleteCategory(t.Context(), list[0].ID))
	require.Equal(t, fault.NotFound, fault.KindOf(s.DeleteCategory(t.Context(), list[0].ID)))
	err = s.AddCategory(t.Context(), catalog.Category{ID: "x", Name: "Databases", Created: moment, Updated: moment})
	require.Equal(t, fault.Conflict, fault.KindOf(err))
}
