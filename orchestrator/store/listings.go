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

// writesKey is the key, in the context of a transaction, of what tells whether it has written something that is remembered.
type writesKey struct{}

// watch forgets what is remembered with each statement that writes something of it, and not before the statement's transaction has
// ended: readers see until then what was before.
func (s *Store) watch(db *gorm.DB) error {
	forget := func(tx *gorm.DB) {
		if !slices.Contains([]string{"", "environments", "sessions"}, tx.Statement.Table) {
			return
		}
		if wrote, ok := tx.Statement.Context.Value(writesKey{}).(*bool); ok {
			*wrote = true
			return
		}
		s.forget()
	}
	name := fmt.Sprintf("burano:forget %p", s)
	const ended = "gorm:commit_or_rollback_transaction"
	callbacks := db.Callback()
	return errors.Join(callbacks.Create().After(ended).Register(name, forget), callbacks.Update().After(ended).Register(name, forget),
		callbacks.Delete().After(ended).Register(name, forget), callbacks.Raw().After("gorm:raw").Register(name, forget))
}

func (s *Store) forget() {
	s.listings.Forget()
}

// remembering makes a transaction, which do runs, forget what it has written of what is remembered.
func (s *Store) remembering(ctx context.Context, do func(ctx context.Context) error) error {
	if s.listings == nil {
		return do(ctx)
	}
	wrote := false
	defer func() {
		if wrote {
			s.forget()
		}
	}()
	return do(context.WithValue(ctx, writesKey{}, &wrote))
}
