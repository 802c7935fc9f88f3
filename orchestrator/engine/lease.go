package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/burano/burano/orchestrator/store"
)

const (
	// DefaultLease is how long a worker that is silent keeps its task.
	DefaultLease = 30 * time.Second
	// renewals is how often a lease is renewed in its length.
	renewals = 6
)

// renewer makes a lease end later in the database (store.Hold).
type renewer interface {
	Renew(ctx context.Context, lease time.Duration) (cancelledBy string, err error)
}

// lease is a worker's right to a task, as the worker itself sees it: it ends at two thirds of its length after the last renewal
// was asked for, by the monotonic clock, so that it has ended here before it ends in the database, whatever the network or a stop
// of the process does. It is safe for concurrent use.
type lease struct {
	length time.Duration
	end    context.CancelCauseFunc // of the task
	early  chan struct{}           // asks for a renewal before its time

	mutex sync.Mutex
	until time.Time // with its monotonic reading
	lost  error
}

// newLease makes the lease of a task that was asked for at the time asked.
func newLease(length time.Duration, asked time.Time, end context.CancelCauseFunc) *lease {
	return &lease{length: length, end: end, early: make(chan struct{}, 1), until: asked.Add(ours(length))}
}

// ours is the part of a lease's length in which its holder may act.
func ours(length time.Duration) time.Duration { return length * 2 / 3 }

// check returns an error once the lease has ended. It looks at the clock: a process that was stopped for a while knows at once.
func (l *lease) check() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lost == nil && !time.Now().Before(l.until) {
		l.lost = errLeaseLost
		l.end(errLeaseLost)
	}
	return l.lost
}

// lose ends the lease before its time.
func (l *lease) lose(why error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lost == nil {
		l.lost = why
		l.end(why)
	}
}

// look has the lease renewed soon: the database has news of the task. It never blocks.
func (l *lease) look() {
	select {
	case l.early <- struct{}{}:
	default:
	}
}

// renewed makes the lease end later, unless it has ended already.
func (l *lease) renewed(asked time.Time) {
	if l.check() != nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.until = asked.Add(ours(l.length))
}

// keep renews the lease until ctx ends or the lease does.
func (l *lease) keep(ctx context.Context, hold renewer) {
	ticker := time.NewTicker(l.length / renewals)
	defer ticker.Stop()
	for l.check() == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.early:
		}
		l.renew(ctx, hold)
	}
}

// renew asks once for a renewal, and sees to it that the lease ends in time while there is no answer.
func (l *lease) renew(ctx context.Context, hold renewer) {
	l.mutex.Lock()
	left := time.Until(l.until)
	l.mutex.Unlock()
	asking, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	stop := context.AfterFunc(asking, func() { _ = l.check() })
	defer stop()
	asked := time.Now()
	cancelledBy, err := hold.Renew(asking, l.length)
	switch {
	case err == nil:
		l.renewed(asked)
		if cancelledBy != "" {
			l.end(errCancelled)
		}
	case errors.Is(err, store.ErrFenced):
		l.lose(errTakenOver)
	case errors.Is(err, store.ErrNotFound):
		l.lose(errAbandoned)
	}
	// Any other error is asked about again with the next tick, until the lease has ended.
}
