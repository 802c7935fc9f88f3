package openstack

import (
	"context"
	"sync"
	"time"
)

// DefaultOutagePatience is how long a service of the cloud may be away before a task that needs it fails.
const DefaultOutagePatience = 30 * time.Minute

// callerPatience is for calls on behalf of a user who waits for an answer.
const callerPatience = 5 * time.Second

// Outages decides how calls under a context react when a service of the cloud cannot be reached, or answers that it cannot work (429 and 5xx).
type Outages struct {
	// Patience is how long one call is tried again.
	Patience time.Duration
	// Notice is called for a call that has failed for a while and is tried again, and with a nil error of one that succeeded after that.
	Notice func(ctx context.Context, service string, err error)
}

type outagesKey struct{}

// WithOutages returns a context whose calls bear outages like this. Without it they are borne for some seconds.
func WithOutages(ctx context.Context, outages Outages) context.Context {
	return context.WithValue(ctx, outagesKey{}, outages)
}

func outagesOf(ctx context.Context) Outages {
	if outages, ok := ctx.Value(outagesKey{}).(Outages); ok {
		return outages
	}
	return Outages{Patience: callerPatience}
}

// Limit returns a context that ends after this much time. The time of calls under it that wait for the end of an outage does not count: these have a
// patience of their own. cause is the error at its end.
func Limit(ctx context.Context, patience time.Duration, cause error) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancelCause(ctx)
	l := &limit{Context: inner, deadline: time.Now().Add(patience)}
	l.outer, _ = ctx.Value(limitKey{}).(*limit)
	l.timer = time.AfterFunc(patience, func() { cancel(&overdue{cause}) })
	return l, func() {
		l.timer.Stop()
		cancel(context.Canceled)
	}
}

// overdue is why a limit has ended.
type overdue struct{ error }

func (o *overdue) Unwrap() error { return o.error }

// Is makes the error the same as a passed deadline.
func (o *overdue) Is(target error) bool { return target == context.DeadlineExceeded }

type limitKey struct{}

// limit is a context with a clock that stops while it is held.
type limit struct {
	context.Context
	outer *limit

	mutex    sync.Mutex
	timer    *time.Timer
	deadline time.Time
	holds    int
	since    time.Time // of the first hold
}

// Value finds the limit itself, beside the values of its context.
func (l *limit) Value(key any) any {
	if key == (limitKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// Deadline is when the limit ends if nothing holds it from now on.
func (l *limit) Deadline() (time.Time, bool) {
	l.mutex.Lock()
	own := l.deadline
	if l.holds > 0 {
		own = own.Add(time.Since(l.since))
	}
	l.mutex.Unlock()
	if outer, limited := l.Context.Deadline(); limited && outer.Before(own) {
		return outer, true
	}
	return own, true
}

// hold stops the clocks of a context's limits until release is called.
func hold(ctx context.Context) (release func()) {
	innermost, _ := ctx.Value(limitKey{}).(*limit)
	for l := innermost; l != nil; l = l.outer {
		l.stop()
	}
	return func() {
		for l := innermost; l != nil; l = l.outer {
			l.start()
		}
	}
}

func (l *limit) stop() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.holds++; l.holds == 1 {
		l.since = time.Now()
		l.timer.Stop()
	}
}

func (l *limit) start() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.holds--; l.holds == 0 && l.Err() == nil {
		l.deadline = l.deadline.Add(time.Since(l.since))
		l.timer.Reset(time.Until(l.deadline))
	}
}
