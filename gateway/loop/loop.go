// Package loop reconciles: it establishes a desired state each time that it changes, after a failure, and now and then to repair changes of others.
package loop

import (
	"context"
	"time"

	"github.com/burano/burano/internal/wait"
)

// Pauses between attempts after a failure. The first is short because at the start of a cluster everything comes up at once.
const (
	FirstPause   = 100 * time.Millisecond
	LongestPause = 5 * time.Second
)

// Config has the triggers of a Loop.
type Config struct {
	Changed  <-chan struct{} // receives when the desired state has changed; several changes may be one receipt
	Coalesce time.Duration   // how long changes are gathered
	Resync   time.Duration   // how often it reconciles though nothing is known to have changed
}

// Waker returns a function that notifies a loop by its channel, which has room for one.
func Waker(changed chan<- struct{}) func() {
	return func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// Run calls reconcile until the context ends. With resync others may have changed the present state. Until reconcile returns true (no work is left) it is
// called again after growing pauses.
func Run(ctx context.Context, config Config, reconcile func(ctx context.Context, resync bool) (complete bool)) {
	ticker := time.NewTicker(config.Resync)
	defer ticker.Stop()
	pause := FirstPause
	var again <-chan time.Time
	for {
		resync := false
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-ticker.C:
			resync = true
		case <-config.Changed:
			if wait.Pause(ctx, config.Coalesce) != nil {
				return
			}
		}
		again = nil
		if reconcile(ctx, resync) {
			pause = FirstPause
			continue
		}
		again, pause = time.After(pause), min(2*pause, LongestPause)
	}
}
