package volumes

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// turns have one thing be done with a volume at a time.
type turns struct {
	what  string // a volume is called in errors
	mutex sync.Mutex
	busy  map[string]bool
}

func newTurns(what string) *turns { return &turns{what: what, busy: map[string]bool{}} }

func (t *turns) take(volume string) (done func(), err error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.busy[volume] {
		return nil, status.Errorf(codes.Aborted, "something is being done with %s %s already", t.what, volume)
	}
	t.busy[volume] = true
	return func() {
		t.mutex.Lock()
		defer t.mutex.Unlock()
		delete(t.busy, volume)
	}, nil
}

// begin takes the turn of a volume, and reaches its cloud. After an error there is no turn to give back.
func begin[C any](ctx context.Context, turns *turns, volume string, reach func(context.Context) (C, error)) (cloud C, done func(), err error) {
	if done, err = turns.take(volume); err != nil {
		return cloud, nil, err
	}
	if cloud, err = reach(ctx); err != nil {
		done()
		return cloud, nil, err
	}
	return cloud, done, nil
}
