package volumes

import (
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
