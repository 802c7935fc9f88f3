package catalog_test

import (
	"path/filepath"
	"sync"
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

// onBoth runs a test on SQLite and on PostgreSQL, with two services over the same database: two servers on PostgreSQL.
func onBoth(t *testing.T, test func(t *testing.T, services []*catalog.Service)) {
	services := func(t *testing.T, handles ...*gorm.DB) (list []*catalog.Service) {
		for _, db := range handles {
			rows, err := store.New(t.Context(), db)
			require.NoError(t, err)
			s, err := catalog.New(rows, nil)
			require.NoError(t, err)
			list = append(list, s)
		}
		return list
	}
	t.Run("SQLite", func(t *testing.T) {
		db, err := database.Open(filepath.Join(t.TempDir(), "catalog.db"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		test(t, services(t, db, db))
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := databasetest.Postgres(t)
		var handles []*gorm.DB
		for range 2 {
			db, err := database.OpenPostgres(t.Context(), url, time.Minute)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, database.Close(db)) })
			handles = append(handles, db)
		}
		test(t, services(t, handles...))
	})
}

// atOnce runs the calls at the same time and counts how they ended.
func atOnce(calls ...func() error) (done, conflicts int, wrong []error) {
	errs := make([]error, len(calls))
	begin := make(chan struct{})
	var group sync.WaitGroup
	for i, call := range calls {
		group.Go(func() {
			<-begin
			errs[i] = call()
		})
	}
	close(begin)
	group.Wait()
	for _, err := range errs {
		switch {
		case err == nil:
			done++
		case fault.KindOf(err) == fault.Conflict:
			conflicts++
		default:
			wrong = append(wrong, err)
		}
	}
	return done, conflicts, wrong
}

const many = 12

// TestOfManyUploadsAtOnceOneWins tries it with the same package in one project, with the name and the class of public packages, and with
// classes that packages of different names share.
func TestOfManyUploadsAtOnceOneWins(t *testing.T) {
	onBoth(t, func(t *testing.T, services []*catalog.Service) {
		t.Run("the same package", func(t *testing.T) { samePackage(t, services) })
		t.Run("the same name in public", func(t *testing.T) { samePublic(t, services, func(int) string { return "org.Public" }) })
		t.Run("the same class in public", func(t *testing.T) {
			samePublic(t, services, func(i int) string { return "org.Public" + string(rune('a'+i)) })
		})
		t.Run("the same classes", func(t *testing.T) { sameClasses(t, services) })
	})
}

func samePackage(t *testing.T, services []*catalog.Service) {
	archive := packageZip(t, "org.Same", "org.Same", "1.0.0", "x")
	var calls []func() error
	for i := range many {
		calls = append(calls, func() error {
			_, err := services[i%len(services)].Upload(t.Context(), demo, catalog.Metadata{Tags: []string{"t"}}, archive)
			return err
		})
	}
	oneWins(t, calls)
	records, _, err := services[0].List(t.Context(), demo, nil)
	require.NoError(t, err)
	require.Len(t, records, 1)
}

// samePublic uploads half of the packages as public ones, and makes the others public that are there already.
func samePublic(t *testing.T, services []*catalog.Service, name func(i int) string) {
	class := name(0) + ".Class"
	var calls []func() error
	for i := range many {
		owner := admin
		owner.ProjectID = name(i) + string(rune('a'+i))
		s, archive := services[i%len(services)], packageZip(t, name(i), class, "1.0.0", "x")
		if i%2 == 0 {
			calls = append(calls, func() error {
				_, err := s.Upload(t.Context(), owner, catalog.Metadata{Public: true}, archive)
				return err
			})
			continue
		}
		private := upload(t, s, owner, catalog.Metadata{}, archive)
		calls = append(calls, func() error {
			_, err := s.Update(t.Context(), owner, private.ID, []catalog.Change{{Op: "replace", Attribute: "is_public", Value: true}})
			return err
		})
	}
	oneWins(t, calls)
}

func sameClasses(t *testing.T, services []*catalog.Service) {
	var calls []func() error
	for i := range many {
		classes := "{c.A: C.yaml, c.B: C.yaml, c.C: C.yaml}"
		if i%2 == 0 {
			classes = "{c.C: C.yaml, c.B: C.yaml, c.A: C.yaml}"
		}
		archive := zipOf(t, entry{name: "manifest.yaml", content: "Type: Library\nFullName: org.P" + string(rune('a'+i)) + "\nClasses: " + classes + "\n"},
			entry{name: "Classes/C.yaml"})
		calls = append(calls, func() error {
			_, err := services[i%len(services)].Upload(t.Context(), other, catalog.Metadata{}, archive)
			return err
		})
	}
	oneWins(t, calls)
}

func oneWins(t *testing.T, calls []func() error) {
	t.Helper()
	done, conflicts, wrong := atOnce(calls...)
	require.Empty(t, wrong)
	require.Equal(t, []int{1, len(calls) - 1}, []int{done, conflicts})
}
