package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestALeaseThatIsRenewedDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, end := context.WithCancelCause(t.Context())
		l := New(30*time.Second, time.Now(), end)
		keeping, release := context.WithCancel(t.Context())
		go l.Keep(keeping, func(context.Context, time.Duration) error { return nil })
		time.Sleep(time.Hour)
		require.NoError(t, l.Check())
		require.NoError(t, task.Err())
		release()
		synctest.Wait()
	})
}

func TestWhatIsDoneUnderALeaseEndsWithoutIt(t *testing.T) {
	wanted := errors.New("somebody wants its end")
	for name, early := range map[string]bool{"with the next renewal": false, "with one that is asked for": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task, end := context.WithCancelCause(t.Context())
				began := time.Now()
				l := New(30*time.Second, began, end)
				keeping, release := context.WithCancel(t.Context())
				go l.Keep(keeping, func(context.Context, time.Duration) error {
					l.End(wanted)
					return nil
				})
				if early {
					l.Look()
				}
				<-task.Done()
				require.ErrorIs(t, context.Cause(task), wanted)
				require.Equal(t, map[bool]time.Duration{false: 5 * time.Second, true: 0}[early], time.Since(began))
				time.Sleep(time.Hour)
				require.NoError(t, l.Check(), "its end is still to be written")
				release()
				synctest.Wait()
			})
		})
	}
}

func TestALeaseEndsAtTwoThirdsWhenTheDatabaseFailsOrDoesNotAnswer(t *testing.T) {
	for name, database := range map[string]Renewer{
		"fails":           func(context.Context, time.Duration) error { return errors.New("away") },
		"does not answer": func(ctx context.Context, _ time.Duration) error { <-ctx.Done(); return ctx.Err() },
		"answers too late": func(context.Context, time.Duration) error {
			time.Sleep(time.Minute)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task, end := context.WithCancelCause(t.Context())
				began := time.Now()
				l := New(30*time.Second, began, end)
				go l.Keep(t.Context(), database)
				<-task.Done()
				require.Equal(t, 20*time.Second, time.Since(began))
				require.ErrorIs(t, context.Cause(task), ErrLost)
				time.Sleep(time.Hour)
				require.ErrorIs(t, l.Check(), ErrLost, "it never comes back")
			})
		})
	}
}

func TestAProcessThatWasStoppedForLongKnowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, end := context.WithCancelCause(t.Context())
		l := New(30*time.Second, time.Now(), end)
		time.Sleep(21 * time.Second) // nothing of the process runs: the lease is not renewed
		require.NoError(t, task.Err())
		l.renewed(time.Now())
		require.ErrorIs(t, l.Check(), ErrLost)
		require.ErrorIs(t, context.Cause(task), ErrLost)
	})
}

func TestALeaseEndsWhenTheDatabaseSaysThatItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := errors.New("another one has it")
		task, end := context.WithCancelCause(t.Context())
		l := New(30*time.Second, time.Now(), end)
		go l.Keep(t.Context(), func(context.Context, time.Duration) error { return Over(taken) })
		<-task.Done()
		require.ErrorIs(t, context.Cause(task), taken)
		require.ErrorIs(t, l.Check(), taken)
		synctest.Wait()
	})
}
