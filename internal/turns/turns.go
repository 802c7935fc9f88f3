// Package turns shares a few places among owners: of those that wait, the owner with the fewest places comes first, and none has more than its share.
package turns

import (
	"context"
	"slices"
	"sync"
)

// Turns are places that owners take in turn. They are safe for concurrent use.
type Turns struct {
	places, share int

	mutex   sync.Mutex
	taken   int
	running map[string]int // by owner
	waiting []*turn        // in the order in which they came
}

// turn is a piece of work that waits for its place.
type turn struct {
	owner   string
	granted chan struct{}
}

// New returns so many places, of which one owner has at most its share.
func New(places, share int) *Turns {
	return &Turns{places: places, share: share, running: map[string]int{}}
}

// Enter waits for a place, which its owner has until it calls leave. The error is the cause of the context's end.
func (t *Turns) Enter(ctx context.Context, owner string) (leave func(), err error) {
	own := &turn{owner: owner, granted: make(chan struct{})}
	leave = sync.OnceFunc(func() { t.leave(owner) })
	t.mutex.Lock()
	if len(t.waiting) == 0 && t.taken < t.places && t.running[owner] < t.share {
		t.take(owner)
		t.mutex.Unlock()
		return leave, nil
	}
	t.waiting = append(t.waiting, own)
	t.grant()
	t.mutex.Unlock()
	select {
	case <-own.granted:
		return leave, nil
	case <-ctx.Done():
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	at := slices.Index(t.waiting, own)
	if at < 0 {
		return leave, nil // it was granted meanwhile
	}
	t.waiting = slices.Delete(t.waiting, at, at+1)
	return nil, context.Cause(ctx)
}

func (t *Turns) take(owner string) {
	t.taken++
	t.running[owner]++
}

// leave gives a place back.
func (t *Turns) leave(owner string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.taken--
	if t.running[owner]--; t.running[owner] == 0 {
		delete(t.running, owner)
	}
	t.grant()
}

// grant gives free places to those who wait.
func (t *Turns) grant() {
	for t.taken < t.places {
		next := -1
		for i, one := range t.waiting {
			if has := t.running[one.owner]; has < t.share && (next < 0 || has < t.running[t.waiting[next].owner]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		t.take(t.waiting[next].owner)
		close(t.waiting[next].granted)
		t.waiting = slices.Delete(t.waiting, next, next+1)
	}
}
