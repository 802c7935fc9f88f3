// Package wait waits for conditions and repeats actions: with a limit, growing pauses, and an error that contains the last try's.
package wait

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Policy is the frequency and duration of tries.
type Policy struct {
	// Patience is the total time of tries; 0 means until the context ends.
	Patience time.Duration
	// First is the pause after the first try.
	First time.Duration
	// Most is the longest pause; 0 means that all are as long as the first.
	Most time.Duration
	// Growth is the factor from each pause to the next; 0 means twice.
	Growth float64
	// Jitter is the part of a pause, from 0 to 1, by which chance may shorten it, so that many who wait for one thing do not ask at once.
	Jitter float64
}

// Every is a policy of even pauses, until the context ends.
func Every(pause time.Duration) Policy { return Policy{First: pause} }

// For is the policy with a patience.
func (p Policy) For(patience time.Duration) Policy {
	p.Patience = patience
	return p
}

// Again marks the reason why the work is not done yet: it is tried again. A nil reason is unknown.
func Again(reason error) error { return &again{reason: reason} }

// After is Again, but not before this much time has passed.
func After(pause time.Duration, reason error) error { return &again{reason: reason, pause: pause} }

type again struct {
	reason error
	pause  time.Duration
}

func (a *again) Error() string {
	if a.reason == nil {
		return "not yet"
	}
	return a.reason.Error()
}

func (a *again) Unwrap() error { return a.reason }

// Expired is the error of something that did not succeed in time.
type Expired struct {
	Last     error         // of the last try, nil when no try gave a reason
	Cause    error         // why the context ended, nil when the policy's own patience did
	Patience time.Duration // the policy's
	Tries    int
}

func (e *Expired) Error() string {
	switch {
	case e.Cause == nil && e.Last == nil:
		return fmt.Sprintf("gave up after %s", e.Patience)
	case e.Cause == nil:
		return fmt.Sprintf("%v (gave up after %s)", e.Last, e.Patience)
	case e.Last == nil:
		return e.Cause.Error()
	}
	return fmt.Sprintf("%v: %v", e.Cause, e.Last)
}

// Unwrap gives the cause and the last error.
func (e *Expired) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Cause, e.Last} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Until calls try until it returns nil, or an error that Again or After has not marked, which is returned as it is. When the context or the
// patience ends first the error is an Expired. try is called at least once; its context ends with the patience.
func (p Policy) Until(ctx context.Context, try func(context.Context) error) error {
	patient := ctx
	if p.Patience > 0 {
		limited, cancel := context.WithTimeout(ctx, p.Patience)
		defer cancel()
		patient = limited
	}
	expired := &Expired{Patience: p.Patience}
	for pause := p.First; ; pause = p.next(pause) {
		err := try(patient)
		if err == nil {
			return nil
		}
		expired.Tries++
		var marked *again
		if !errors.As(err, &marked) {
			if patient.Err() == nil {
				return err
			}
			// The try was interrupted: its error is the end of its context, unless nothing else is known.
			if expired.Last == nil || !endOf(err) {
				expired.Last = err
			}
			return p.ended(ctx, expired)
		}
		if marked.reason != nil && (patient.Err() == nil || expired.Last == nil || !endOf(marked.reason)) {
			expired.Last = marked.reason
		}
		if Pause(patient, max(p.shortened(pause), marked.pause)) != nil {
			return p.ended(ctx, expired)
		}
	}
}

// ended reports whose time was over. The error of a context that a try has returned adds nothing to that.
func (p Policy) ended(ctx context.Context, expired *Expired) error {
	if ctx.Err() != nil {
		expired.Cause = context.Cause(ctx)
		if expired.Last != nil && (errors.Is(expired.Last, expired.Cause) || expired.Last == ctx.Err()) {
			return expired.Last
		}
	}
	return expired
}

func endOf(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (p Policy) next(pause time.Duration) time.Duration {
	if p.Most <= p.First {
		return p.First
	}
	growth := p.Growth
	if growth == 0 {
		growth = 2
	}
	return min(time.Duration(float64(pause)*growth), p.Most)
}

func (p Policy) shortened(pause time.Duration) time.Duration {
	return pause - time.Duration(rand.Float64()*p.Jitter*float64(pause))
}

// Pause returns after this time, or earlier with the cause of the context's end.
func Pause(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
