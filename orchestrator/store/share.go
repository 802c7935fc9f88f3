package store

import (
	"context"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
)

const (
	// sharing is the channel by which the servers over one PostgreSQL announce their changes of tasks to each other.
	sharing = "burano_tasks"
	// waiting is sent there when a server has given a task back, which another may take. All other messages have a slash.
	waiting = "waiting"
	// maxShared is how many changes wait to be sent; other servers learn of further ones by their own reading.
	maxShared = 256
)

// changed wakes the watchers of the task, here and in other processes; called after the change is durable.
func (s *handle) changed(taskID string) {
	s.watchers.changed(taskID)
	select {
	case s.shared <- taskID:
	default:
	}
}

// tellWaiting announces to all servers, once the transaction is durable, that a task waits for one of them.
func tellWaiting(tx *gorm.DB) error {
	if tx.Name() != database.Postgres {
		return nil
	}
	return tx.Exec("SELECT pg_notify(?, ?)", sharing, waiting).Error
}

// Share announces this server's changes of tasks to others, and wakes the watchers here at the others' announcements, until ctx ends; given is called when
// one has given a task back. Only the delay before a change is seen depends on it. It does nothing over SQLite.
func (s *Store) Share(ctx context.Context, given func()) error {
	if s.db.Name() != database.Postgres {
		return nil
	}
	own := NewID() + "/"
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return database.Listen(ctx, s.db, sharing, func(payload string) {
			if payload == waiting {
				given()
				return
			}
			if taskID, isOwn := strings.CutPrefix(payload, own); !isOwn {
				_, taskID, _ = strings.Cut(taskID, "/")
				s.watchers.changed(taskID)
			}
		})
	})
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case taskID := <-s.shared:
				// An error is one of the database, which others report too.
				_ = s.db.WithContext(ctx).Exec("SELECT pg_notify(?, ?)", sharing, own+taskID).Error
			}
		}
	})
	return group.Wait()
}

// watchers wakes the followers of a task in this process. It holds no events: a woken follower reads the rows.
type watchers struct {
	mutex sync.Mutex
	tasks map[string]map[chan struct{}]bool
}

// Watch returns a channel that gets a value, soon, after every change of the task's reports, steps or state that this process
// writes; several changes may share one. release must be called.
func (s Tasks) Watch(taskID string) (changed <-chan struct{}, release func()) {
	channel := make(chan struct{}, 1)
	w := &s.watchers
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.tasks == nil {
		w.tasks = map[string]map[chan struct{}]bool{}
	}
	if w.tasks[taskID] == nil {
		w.tasks[taskID] = map[chan struct{}]bool{}
	}
	w.tasks[taskID][channel] = true
	return channel, func() {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		delete(w.tasks[taskID], channel)
		if len(w.tasks[taskID]) == 0 {
			delete(w.tasks, taskID)
		}
	}
}

// changed wakes the task's watchers; called after the change is durable.
func (w *watchers) changed(taskID string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for channel := range w.tasks[taskID] {
		select {
		case channel <- struct{}{}:
		default: // it is awake already
		}
	}
}
