package catalog_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

// shelfStore holds one package, counts the requests for lists, and runs the test's function while it is being read.
type shelfStore struct {
	catalog.Store
	name    string
	asked   int
	reading func()
}

func (s *shelfStore) Packages(context.Context, catalog.Query) ([]catalog.Record, error) {
	s.asked++
	found := []catalog.Record{{Name: s.name}}
	if s.reading != nil {
		s.reading()
	}
	return found, nil
}

func (s *shelfStore) AddPackage(_ context.Context, record catalog.Record, _ []byte) error {
	s.name = record.Name
	return nil
}

func (s *shelfStore) UpdatePackage(_ context.Context, id string, change func(*catalog.Record) error) (catalog.Record, error) {
	record := catalog.Record{ID: id, Name: s.name}
	err := change(&record)
	s.name = record.Name
	return record, err
}

func (s *shelfStore) DeletePackage(context.Context, string) error {
	s.name = "deleted"
	return nil
}

func (s *shelfStore) ReplaceEmbedded(context.Context, []catalog.Record) error {
	s.name = "embedded"
	return nil
}
func (s *shelfStore) AddCategory(context.Context, catalog.Category) error {
	s.name = "category"
	return nil
}
func (s *shelfStore) DeleteCategory(context.Context, string) error {
	s.name = "no category"
	return nil
}

func TestListsAreRememberedUntilSomethingIsWritten(t *testing.T) {
	below := &shelfStore{name: "first"}
	store, ctx := catalog.Remember(below), t.Context()
	listed := func(query catalog.Query) string {
		records, err := store.Packages(ctx, query)
		require.NoError(t, err)
		require.Len(t, records, 1)
		defer func() { records[0].Name = "changed by the caller" }()
		return records[0].Name
	}
	for range 3 {
		require.Equal(t, "first", listed(catalog.Query{Project: "a"}))
	}
	require.Equal(t, 1, below.asked)
	require.Equal(t, "first", listed(catalog.Query{Project: "b"}))
	require.Equal(t, "first", listed(catalog.Query{Project: "a", Tags: []string{"x", "y"}}))
	require.Equal(t, "first", listed(catalog.Query{Project: "a", Tags: []string{"x\", \"y"}}))
	require.Equal(t, 4, below.asked, "each question has its own answer")

	for want, write := range map[string]func() error{
		"second": func() error { return store.AddPackage(ctx, catalog.Record{Name: "second"}, nil) },
		"third": func() error {
			_, err := store.UpdatePackage(ctx, "1", func(record *catalog.Record) error { record.Name = "third"; return nil })
			return err
		},
		"deleted":     func() error { return store.DeletePackage(ctx, "1") },
		"embedded":    func() error { return store.ReplaceEmbedded(ctx, nil) },
		"category":    func() error { return store.AddCategory(ctx, catalog.Category{}) },
		"no category": func() error { return store.DeleteCategory(ctx, "1") },
	} {
		require.NoError(t, write())
		require.Equal(t, want, listed(catalog.Query{Project: "a"}))
	}

	// A write during the read of a list is not hidden by the list.
	below.reading = func() {
		below.reading = nil
		require.NoError(t, store.AddPackage(ctx, catalog.Record{Name: "meanwhile"}, nil))
	}
	listed(catalog.Query{Project: "c"})
	require.Equal(t, "meanwhile", listed(catalog.Query{Project: "c"}))
}
