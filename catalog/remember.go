package catalog

import (
	"context"
	"fmt"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
)

// maxLists is how many lists of packages are remembered; the one that was not used for longest is forgotten first.
const maxLists = 256

// Remember makes a store answer the lists of packages that it was asked for before from memory, until something is written. All
// writes must go through it: it is for a database that only this process uses. What it returns must not be changed.
func Remember(store Store) Store {
	lists, err := lru.New[string, []Record](maxLists)
	if err != nil {
		panic(err) // the number is not positive
	}
	return &remembering{store: store, lists: lists}
}

// remembering names each method of Store, so that a new one cannot write past the memory.
type remembering struct {
	store Store

	mutex   sync.Mutex
	written int64 // how often
	lists   *lru.Cache[string, []Record]
}

var _ Store = (*remembering)(nil)

func (r *remembering) Packages(ctx context.Context, query Query) ([]Record, error) {
	key := fmt.Sprintf("%#v", query)
	r.mutex.Lock()
	known, ok := r.lists.Get(key)
	before := r.written
	r.mutex.Unlock()
	if ok {
		return slices.Clone(known), nil
	}
	records, err := r.store.Packages(ctx, query)
	if err != nil {
		return nil, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.written == before { // else what was read may be older than what was written meanwhile
		r.lists.Add(key, slices.Clone(records))
	}
	return records, nil
}

// forget is called after each write, also one that failed: some of it may have been done.
func (r *remembering) forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.written++
	r.lists.Purge()
}

func (r *remembering) ReplaceEmbedded(ctx context.Context, records []Record) error {
	defer r.forget()
	return r.store.ReplaceEmbedded(ctx, records)
}

func (r *remembering) AddPackage(ctx context.Context, record Record, archive []byte) error {
	defer r.forget()
	return r.store.AddPackage(ctx, record, archive)
}

func (r *remembering) UpdatePackage(ctx context.Context, id string, change func(*Record) error) (Record, error) {
	defer r.forget()
	return r.store.UpdatePackage(ctx, id, change)
}

func (r *remembering) DeletePackage(ctx context.Context, id string) error {
	defer r.forget()
	return r.store.DeletePackage(ctx, id)
}

func (r *remembering) AddCategory(ctx context.Context, category Category) error {
	defer r.forget()
	return r.store.AddCategory(ctx, category)
}

func (r *remembering) DeleteCategory(ctx context.Context, id string) error {
	defer r.forget()
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
