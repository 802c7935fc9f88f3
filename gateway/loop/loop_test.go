package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/loop"
)

// looped runs a loop for some time and returns the times of its calls, since its start; a minus is a resync.
func looped(t *testing.T, during time.Duration, changes []time.Duration, complete func(try int) bool) []time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), during)
	defer cancel()
	changed := make(chan struct{}, 1)
	began := time.Now()
	for _, change := range changes {
		time.AfterFunc(change, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}
	var runs []time.Duration
	loop.Run(ctx, loop.Config{Changed: changed, Coalesce: 10 * time.Millisecond, Resync: 30 * time.Second}, func(_ context.Context, resync bool) bool {
		at := time.Since(began)
		if resync {
			at = -at
		}
		runs = append(runs, at)
		return complete(len(runs))
	})
	return runs
}

func TestChangesAreGatheredAndOthersDeedsMadeGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changes := []time.Duration{time.Second, time.Second + 2*time.Millisecond, time.Second + 30*time.Millisecond}
		require.Equal(t, []time.Duration{1010 * time.Millisecond, 1020 * time.Millisecond, 1040 * time.Millisecond, -30 * time.Second},
			looped(t, 31*time.Second, changes, func(int) bool { return true }), "a change while others are gathered may be in or not: it is looked at again")
	})
}

func TestAFailureIsTriedAgainAfterGrowingPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms := time.Millisecond
		runs := looped(t, 25*time.Second, []time.Duration{0}, func(try int) bool { return try == 9 })
		require.Equal(t, []time.Duration{10 * ms, 110 * ms, 310 * ms, 710 * ms, 1510 * ms, 3110 * ms, 6310 * ms, 11310 * ms, 16310 * ms}, runs)
	})
}
