package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/internal/lists"
)

const (
	// maxLists is the number of cached lists of packages; the one that was not used for longest is dropped first.
	maxLists = 256
	// maxRecords is how many packages they have together at most.
	maxRecords = 40000
)

// Remember makes a store answer repeated lists of packages from memory, until something is written. All writes must go through it: it is for a database
// that only this process uses. Its results must not be changed.
func Remember(store Store) Store {
	return &remembering{store: store, lists: lists.New(maxLists, maxRecords, func(list []Record) int64 { return int64(len(list)) })}
}

// remembering names each method of Store, so that a new one cannot write past the memory.
type remembering struct {
	store Store
	lists *lists.Cache[[]Record]
}

var _ Store = (*remembering)(nil)

func (r *remembering) Packages(ctx context.Context, query Query) ([]Record, error) {
	records, err := r.lists.Read(fmt.Sprintf("%#v", query), func() ([]Record, error) { return r.store.Packages(ctx, query) })
	return slices.Clone(records), err
}

func (r *remembering) ReplaceEmbedded(ctx context.Context, records []Record) error {
	defer r.lists.Writing()()
	return r.store.ReplaceEmbedded(ctx, records)
}

func (r *remembering) AddPackage(ctx context.Context, record Record, archive []byte) error {
	defer r.lists.Writing()()
	return r.store.AddPackage(ctx, record, archive)
}

func (r *remembering) ReplacePackage(ctx context.Context, formerID string, record Record, archive []byte) error {
	defer r.lists.Writing()()
	return r.store.ReplacePackage(ctx, formerID, record, archive)
}

func (r *remembering) UpdatePackage(ctx context.Context, id string, change func(*Record) error) (Record, error) {
	defer r.lists.Writing()()
	return r.store.UpdatePackage(ctx, id, change)
}

func (r *remembering) DeletePackage(ctx context.Context, id string) error {
	defer r.lists.Writing()()
	return r.store.DeletePackage(ctx, id)
}

func (r *remembering) AddCategory(ctx context.Context, category Category) error {
	defer r.lists.Writing()()
	return r.store.AddCategory(ctx, category)
}

func (r *remembering) DeleteCategory(ctx context.Context, id string) error {
	defer r.lists.Writing()()
	return r.store.DeleteCategory(ctx, id)
}

func (r *remembering) Package(ctx context.Context, id string) (Record, error) {
	return r.store.Package(ctx, id)
}

func (r *remembering) Archive(ctx context.Context, id string) ([]byte, error) {
	return r.store.Archive(ctx, id)
}

func (r *remembering) Categories(ctx context.Context, query CategoryQuery) ([]Category, error) {
	return r.store.Categories(ctx, query)
}

func (r *remembering) Category(ctx context.Context, id string) (Category, error) {
	return r.store.Category(ctx, id)
}

func (r *remembering) NoteFacts(ctx context.Context, id string, facts Facts, parents map[string][]string) error {
	defer r.lists.Writing()()
	return r.store.NoteFacts(ctx, id, facts, parents)
}

func (r *remembering) Parents(ctx context.Context, ids []string) (map[string]map[string][]string, error) {
	return r.store.Parents(ctx, ids)
}
