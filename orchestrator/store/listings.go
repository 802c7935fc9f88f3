package store

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"
	"gorm.io/gorm"
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

// listings remembers lists of environments by their projects until an environment or a session is written.
type listings struct {
	mutex   sync.Mutex
	written int64 // how often
	known   *lru.Cache[string, listing]
}

// Alone says that no other process uses the database, and that it has one connection, as SQLite's has: then lists of environments that
// were asked for before are answered from memory until something of them is written.
func Alone() Option {
	return func(s *Store) {
		known, err := lru.New[string, listing](maxListings)
		if err != nil {
			panic(err) // the number is not positive
		}
		s.listings = &listings{known: known}
	}
}

// get is the list that is remembered, or what to give put when it has been read.
func (l *listings) get(projectID string) (found listing, ok bool, written int64) {
	if l == nil {
		return listing{}, false, 0
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	found, ok = l.known.Get(projectID)
	return found, ok, l.written
}

func (l *listings) put(projectID string, read listing, written int64) {
	count := len(read.environments)
	for _, sessions := range read.sessions {
		count += len(sessions)
	}
	if l == nil || count > maxListed {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.written == written { // else what was read may be older than what was written meanwhile
		l.known.Add(projectID, read)
	}
}

// watch forgets all lists with each statement that writes what is in them. The statement may be in a transaction that has not ended:
// nobody can read before it does, since it has the only connection.
func (l *listings) watch(db *gorm.DB) error {
	forget := func(tx *gorm.DB) {
		if !slices.Contains([]string{"", "environments", "sessions"}, tx.Statement.Table) {
			return
		}
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.written++
		l.known.Purge()
	}
	name := fmt.Sprintf("burano:forget %p", l)
	callbacks := db.Callback()
	return errors.Join(callbacks.Create().After("gorm:create").Register(name, forget), callbacks.Update().After("gorm:update").Register(name, forget),
		callbacks.Delete().After("gorm:delete").Register(name, forget), callbacks.Raw().After("gorm:raw").Register(name, forget))
}
