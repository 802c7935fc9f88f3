// Package lease is a server's right to something in the database that only one server at a time may do, such as a task, as the server itself
// sees it.
package lease

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// Default is how long a silent server keeps its leases.
	Default = 30 * time.Second
	// renewals is how often a lease is renewed in its length.
	renewals = 6
)

// ErrLost is the error when a lease was not renewed in time.
var ErrLost = errors.New("the lease could not be renewed in time, so that another server may have what it was for")

// Renewer makes a lease end later in the database. An error that Over has made ends the lease; any other is one of the database, which is
// asked again until the lease has ended.
type Renewer func(ctx context.Context, length time.Duration) error

// Over is the error that a lease is over, with the reason.
func Over(why error) error { return over{why} }

type over struct{ error }

func (o over) Unwrap() error { return o.error }

// Lease ends at two thirds of its length after the last renewal was asked for, by the monotonic clock. So it has ended here before it ends in the
// database, in spite of the network or a stop of the process. It is safe for concurrent use.
type Lease struct {
	length time.Duration
	end    context.CancelCauseFunc // of the work under it
	early  chan struct{}           // asks for a renewal before its time

	mutex sync.Mutex
	until time.Time // with its monotonic reading
	lost  error
}

// New makes a lease that was asked for at the time asked. end is called when it ends, with the reason.
func New(length time.Duration, asked time.Time, end context.CancelCauseFunc) *Lease {
	return &Lease{length: length, end: end, early: make(chan struct{}, 1), until: asked.Add(ours(length))}
}

// ours is the part of a lease's length in which its holder may act.
func ours(length time.Duration) time.Duration { return length * 2 / 3 }

// Check returns an error once the lease has ended. It looks at the clock: a process that was stopped for a while knows at once.
func (l *Lease) Check() error {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lost == nil && !time.Now().Before(l.until) {
		l.lost = ErrLost
		l.end(ErrLost)
	}
	return l.lost
}

// Lose ends the lease before its time.
func (l *Lease) Lose(why error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.lost == nil {
		l.lost = why
		l.end(why)
	}
}

// End ends the work under the lease and leaves the lease, under which the work's end can be written.
func (l *Lease) End(why error) { l.end(why) }

// Look makes the lease renew soon: the database has news for its work. It never blocks.
func (l *Lease) Look() {
	select {
	case l.early <- struct{}{}:
	default:
	}
}

// renewed makes the lease end later, unless it has ended already.
func (l *Lease) renewed(asked time.Time) {
	if l.Check() != nil {
		return
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.until = asked.Add(ours(l.length))
}

// Keep renews the lease until ctx ends or the lease does.
func (l *Lease) Keep(ctx context.Context, renew Renewer) {
	ticker := time.NewTicker(l.length / renewals)
	defer ticker.Stop()
	for l.Check() == nil {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-l.early:
		}
		l.renew(ctx, renew)
	}
}

// renew asks once for a renewal, and sees to it that the lease ends in time while there is no answer.
func (l *Lease) renew(ctx context.Context, renew Renewer) {
	l.mutex.Lock()
	left := time.Until(l.until)
	l.mutex.Unlock()
	asking, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	stop := context.AfterFunc(asking, func() { _ = l.Check() })
	defer stop()
	asked := time.Now()
	err := renew(asking, l.length)
	var ended over
	switch {
	case err == nil:
		l.renewed(asked)
	case errors.As(err, &ended):
		l.Lose(ended.error)
	}
	// Any other error is asked about again with the next tick, until the lease has ended.
}
