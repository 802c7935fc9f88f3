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
	// maxListings is how many lists of environments are remembered, and of how many environments and sessions together.
	maxListings = 64
	maxListed   = 20000
	// maxShown is how many environments, sessions and environments' lists of sessions are remembered, of each, and how many bytes they take
	// at most, of each.
	maxShown      = 4096
	maxShownBytes = 16 << 20
	// sessionBytes is the size of a session without its model.
	sessionBytes = 512
)

// listing is the result of Environments.List, not to be changed.
type listing struct {
	environments []Environment
	sessions     map[string][]Session
}

func (l listing) count() int64 {
	count := len(l.environments)
	for _, sessions := range l.sessions {
		count += len(sessions)
	}
	return int64(count)
}

// environmentBytes is the size of an environment. One with a trust of a former version counts as too large to be cached: `burano db reseal` may seal it
// again, in another process.
func environmentBytes(row Environment) int64 {
	if row.Trust != "" {
		return maxShownBytes
	}
	return row.Model.bytes()
}

// remembered is a cache of answers until an environment or a session is written; without a cache all is nil.
type remembered struct {
	listings     *lists.Cache[listing]     // by projects
	environments *lists.Cache[Environment] // by ids
	sessions     *lists.Cache[Session]     // by ids
	drafts       *lists.Cache[[]Session]   // by environments
}

// Alone declares that no other process uses the database: then answers about environments and sessions are cached until one of them is written.
func Alone() Option {
	return func(s *Store) {
		s.remembered = remembered{
			listings:     lists.New(maxListings, maxListed, listing.count),
			environments: lists.New(maxShown, maxShownBytes, environmentBytes),
			sessions:     lists.New(maxShown, maxShownBytes, func(row Session) int64 { return row.Model.bytes() }),
			drafts:       lists.New(maxShown, maxShownBytes, func(rows []Session) int64 { return int64(1+len(rows)) * sessionBytes }),
		}
	}
}

// writing empties the cache until done is called.
func (r remembered) writing() (done func()) {
	ends := []func(){r.listings.Writing(), r.environments.Writing(), r.sessions.Writing(), r.drafts.Writing()}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// writesKey is the key, in the context of a transaction, of its writes.
type writesKey struct{}

// writes are a transaction's effects on the cache.
type writes struct{ done func() } // nil: nothing yet

// watch drops the cache before each statement that writes one of its tables, until the statement, or its transaction, has ended.
func (s *handle) watch(db *gorm.DB) error {
	of := fmt.Sprintf("burano:remembered %p", s)
	before := func(tx *gorm.DB) {
		if !slices.Contains([]string{"", "environments", "sessions"}, tx.Statement.Table) {
			return
		}
		if transaction, ok := tx.Statement.Context.Value(writesKey{}).(*writes); !ok {
			tx.InstanceSet(of, s.remembered.writing())
		} else if transaction.done == nil {
			transaction.done = s.remembered.writing()
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

// remembering makes do's transaction drop the cached rows that it writes.
func (s *handle) remembering(ctx context.Context, do func(ctx context.Context) error) error {
	if s.remembered.listings == nil {
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
