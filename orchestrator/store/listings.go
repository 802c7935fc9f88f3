package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/lists"
)

const (
	// maxListings is how many lists are remembered; the one that was not used for longest is forgotten first.
	maxListings = 64
	// maxListed is how many environments and sessions a list that is remembered has at most.
	maxListed = 5000
)

// listing is what Environments returned, not to be changed.
type listing struct {
	environments []Environment
	sessions     map[string][]Session
}

// remember says whether the list is small enough.
func (l listing) remember() bool {
	count := len(l.environments)
	for _, sessions := range l.sessions {
		count += len(sessions)
	}
	return count <= maxListed
}

// Alone says that no other process uses the database: then lists of environments that were asked for before are answered from memory
// until something of them is written.
func Alone() Option {
	return func(s *Store) { s.listings = lists.New[listing](maxListings) }
}

// writesKey is the key, in the context of a transaction, of its writes.
type writesKey struct{}

// writes are what a transaction does to what is remembered.
type writes struct{ done func() } // nil: nothing yet

// watch forgets what is remembered before each statement that writes something of it, until the statement, or its transaction, has ended.
func (s *Store) watch(db *gorm.DB) error {
	of := fmt.Sprintf("burano:remembered %p", s)
	before := func(tx *gorm.DB) {
		if !slices.Contains([]string{"", "environments", "sessions"}, tx.Statement.Table) {
			return
		}
		if transaction, ok := tx.Statement.Context.Value(writesKey{}).(*writes); !ok {
			tx.InstanceSet(of, s.listings.Writing())
		} else if transaction.done == nil {
			transaction.done = s.listings.Writing()
		}
	}
	after := func(tx *gorm.DB) {
		if done, ok := tx.InstanceGet(of); ok {
			done.(func())()
		}
	}
	callbacks := db.Callback()
	return errors.Join(
		callbacks.Create().Before("*").Register(of, before), callbacks.Create().After("*").Register(of+" ended", after),
		callbacks.Update().Before("*").Register(of, before), callbacks.Update().After("*").Register(of+" ended", after),
		callbacks.Delete().Before("*").Register(of, before), callbacks.Delete().After("*").Register(of+" ended", after),
		callbacks.Raw().Before("*").Register(of, before), callbacks.Raw().After("*").Register(of+" ended", after))
}

// remembering makes a transaction, which do runs, forget what it writes of what is remembered.
func (s *Store) remembering(ctx context.Context, do func(ctx context.Context) error) error {
	if s.listings == nil {
		return do(ctx)
	}
	transaction := &writes{}
	defer func() {
		if transaction.done != nil {
			transaction.done()
		}
	}()
	return do(context.WithValue(ctx, writesKey{}, transaction))
}
