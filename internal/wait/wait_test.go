package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/wait"
)

var errBusy = errors.New("it is busy")

func TestItIsTriedUntilItIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var tried []time.Duration
		policy := wait.Policy{First: time.Second, Most: 5 * time.Second}
		require.NoError(t, policy.Until(t.Context(), func(context.Context) error {
			if tried = append(tried, time.Since(began)); len(tried) < 6 {
				return wait.Again(errBusy)
			}
			return nil
		}))
		require.Equal(t, []time.Duration{0, 1e9, 3e9, 7e9, 12e9, 17e9}, tried, "pauses double up to the longest")
	})
}

func TestAnErrorThatIsNotMarkedIsReturnedAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := wait.Every(time.Second).Until(t.Context(), func(context.Context) error { return errBusy })
		require.Equal(t, errBusy, err)
		require.Zero(t, time.Since(began))
	})
}

func TestPatienceEndsWithTheLastErrorAndHowLongItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := wait.Every(time.Second).For(9500*time.Millisecond).Until(t.Context(), func(context.Context) error { return wait.Again(errBusy) })
		require.EqualError(t, err, "it is busy (gave up after 9.5s)")
		require.ErrorIs(t, err, errBusy)
		require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's time is not over")
		require.Equal(t, 9500*time.Millisecond, time.Since(began))
		var expired *wait.Expired
		require.ErrorAs(t, err, &expired)
		require.Equal(t, 10, expired.Tries)
	})
}

func TestTheEndOfTheContextIsNamedWithTheLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errStopped := errors.New("it was stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2500*time.Millisecond, func() { cancel(errStopped) })
		began := time.Now()
		err := wait.Every(time.Second).For(time.Minute).Until(ctx, func(context.Context) error { return wait.Again(errBusy) })
		require.EqualError(t, err, "it was stopped: it is busy")
		require.ErrorIs(t, err, errStopped)
		require.ErrorIs(t, err, errBusy)
		require.Equal(t, 2500*time.Millisecond, time.Since(began), "nobody waits for the end of a pause")
	})
}

func TestATryThatIsCutOffDoesNotHideWhyTheFormerOneFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		err := wait.Every(time.Second).For(10*time.Second).Until(t.Context(), func(ctx context.Context) error {
			if tries++; tries == 1 {
				return wait.Again(errBusy)
			}
			<-ctx.Done()
			return ctx.Err()
		})
		require.EqualError(t, err, "it is busy (gave up after 10s)")
	})
}

func TestWithoutAReasonTheCauseAloneIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("it was not ready within a second"))
		defer cancel()
		err := wait.Every(300*time.Millisecond).Until(ctx, func(context.Context) error { return wait.Again(nil) })
		require.EqualError(t, err, "it was not ready within a second")
		require.EqualError(t, wait.Every(1).For(1).Until(t.Context(), func(context.Context) error { return wait.Again(nil) }), "gave up after 1ns")
	})
}

func TestAReasonMayAskForALongerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		tries := 0
		require.NoError(t, wait.Every(time.Second).Until(t.Context(), func(context.Context) error {
			if tries++; tries == 1 {
				return wait.After(time.Minute, errBusy)
			}
			return nil
		}))
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestChanceShortensPausesByItsPartOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy := wait.Policy{First: time.Second, Jitter: 0.5}
		seen := map[time.Duration]bool{}
		last, tries := time.Now(), 0
		require.NoError(t, policy.Until(t.Context(), func(context.Context) error {
			if tries++; tries > 1 {
				pause := time.Since(last)
				require.GreaterOrEqual(t, pause, 500*time.Millisecond)
				require.LessOrEqual(t, pause, time.Second)
				seen[pause] = true
			}
			if last = time.Now(); tries > 100 {
				return nil
			}
			return wait.Again(errBusy)
		}))
		require.Greater(t, len(seen), 50)
	})
}
