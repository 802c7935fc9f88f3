package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator/store"
)

// renewing is a database that answers as it is told.
type renewing func(ctx context.Context) error

func (r renewing) Renew(ctx context.Context, _ time.Duration) (string, error) { return "", r(ctx) }

// cancelling is a database that says of every task that it was cancelled.
type cancelling struct{}

func (cancelling) Renew(context.Context, time.Duration) (string, error) { return "somebody", nil }

func TestATaskThatWasCancelledEndsWithTheNextRenewalOrEarlierAndKeepsItsLease(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			task, end := context.WithCancelCause(t.Context())
			began := time.Now()
			l := newLease(30*time.Second, began, end)
			keeping, release := context.WithCancel(t.Context())
			go l.keep(keeping, cancelling{})
			if early {
				l.look()
			}
			<-task.Done()
			require.ErrorIs(t, context.Cause(task), errCancelled)
			require.Equal(t, map[bool]time.Duration{false: 5 * time.Second, true: 0}[early], time.Since(began))
			time.Sleep(time.Hour)
			require.NoError(t, l.check(), "its end is still to be written")
			release()
			synctest.Wait()
		})
	}
}

func TestALeaseThatIsRenewedDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, end := context.WithCancelCause(t.Context())
		l := newLease(30*time.Second, time.Now(), end)
		keeping, release := context.WithCancel(t.Context())
		go l.keep(keeping, renewing(func(context.Context) error { return nil }))
		time.Sleep(time.Hour)
		require.NoError(t, l.check())
		require.NoError(t, task.Err())
		release()
		synctest.Wait()
	})
}

func TestALeaseEndsAtTwoThirdsWhenTheDatabaseFailsOrDoesNotAnswer(t *testing.T) {
	for name, database := range map[string]renewing{
		"fails":           func(context.Context) error { return errors.New("away") },
		"does not answer": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"answers too late": func(context.Context) error {
			time.Sleep(time.Minute)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				task, end := context.WithCancelCause(t.Context())
				began := time.Now()
				l := newLease(30*time.Second, began, end)
				go l.keep(t.Context(), database)
				<-task.Done()
				require.Equal(t, 20*time.Second, time.Since(began))
				require.ErrorIs(t, context.Cause(task), errLeaseLost)
				time.Sleep(time.Hour)
				require.ErrorIs(t, l.check(), errLeaseLost, "it never comes back")
			})
		})
	}
}

func TestAProcessThatWasStoppedForLongKnowsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task, end := context.WithCancelCause(t.Context())
		l := newLease(30*time.Second, time.Now(), end)
		time.Sleep(21 * time.Second) // nothing of the process runs: nobody keeps the lease
		require.NoError(t, task.Err())
		l.renewed(time.Now())
		require.ErrorIs(t, l.check(), errLeaseLost)
		require.ErrorIs(t, context.Cause(task), errLeaseLost)
	})
}

func TestALeaseEndsWhenTheDatabaseSaysThatItIsOver(t *testing.T) {
	for answer, want := range map[error]error{store.ErrFenced: errTakenOver, store.ErrNotFound: errAbandoned} {
		synctest.Test(t, func(t *testing.T) {
			task, end := context.WithCancelCause(t.Context())
			l := newLease(30*time.Second, time.Now(), end)
			go l.keep(t.Context(), renewing(func(context.Context) error { return answer }))
			<-task.Done()
			require.ErrorIs(t, context.Cause(task), want)
			synctest.Wait()
		})
	}
}
