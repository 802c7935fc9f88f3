package store

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/panics"
)

const (
	// mostTogether is how many writes one transaction has at most.
	mostTogether = 100
	// togetherLimit is how long it may take; then each is tried by itself, for as long as its own context lets it.
	togetherLimit = 10 * time.Second
)

// together makes small simultaneous writes share a transaction. SQLite has one writer, and the cost of such a write is its end: it is durable when the
// disk reports it.
type together struct {
	mutex   sync.Mutex
	waiting []*write
	busy    bool // a goroutine is writing, and looks again
}

// write is one that waits for its end.
type write struct {
	ctx   context.Context
	what  string
	hold  *Hold
	do    func(tx *gorm.DB) error
	err   error
	ended chan struct{}
}

// write is transaction for simultaneous small writes, in which the hold (nil: none) cannot be lost. A failure of one of them fails no other: each is then
// run by itself.
func (s *handle) write(ctx context.Context, what string, hold *Hold, do func(tx *gorm.DB) error) error {
	if s.db.Name() == database.Postgres {
		return s.transaction(ctx, what, hold.held(do))
	}
	if err := context.Cause(ctx); err != nil {
		return wrap(err, what)
	}
	w := &write{ctx: ctx, what: what, hold: hold, do: func(tx *gorm.DB) error { return panics.Run(func() error { return do(tx) }) }, ended: make(chan struct{})}
	s.gathered.mutex.Lock()
	s.gathered.waiting = append(s.gathered.waiting, w)
	begin := !s.gathered.busy
	s.gathered.busy = true
	s.gathered.mutex.Unlock()
	if begin {
		go s.writeAll()
	}
	<-w.ended
	return w.err
}

// writeAll writes until none waits.
func (s *handle) writeAll() {
	for {
		runtime.Gosched() // a goroutine that is about to write, and waits for a processor, joins
		s.gathered.mutex.Lock()
		batch := s.gathered.waiting[:min(len(s.gathered.waiting), mostTogether)]
		s.gathered.waiting = s.gathered.waiting[len(batch):]
		s.gathered.busy = len(batch) > 0
		s.gathered.mutex.Unlock()
		if len(batch) == 0 {
			return
		}
		s.writeBatch(batch)
	}
}

func (s *handle) writeBatch(batch []*write) {
	err := errors.New("there is one")
	if len(batch) > 1 {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(batch[0].ctx), togetherLimit)
		err = s.transaction(ctx, "write", func(tx *gorm.DB) error {
			held := map[*Hold]bool{} // there is one writer: a holder of a task at its first write is one at the others
			for _, w := range batch {
				do := w.do
				if !held[w.hold] {
					do = w.hold.held(do)
				}
				if err := do(tx); err != nil {
					return err
				}
				held[w.hold] = true
			}
			return nil
		})
		cancel()
	}
	for _, w := range batch {
		if err != nil {
			w.err = s.transaction(w.ctx, w.what, w.hold.held(w.do))
		}
		close(w.ended)
	}
}
