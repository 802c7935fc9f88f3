package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/auth"
)

// keystone knows tokens until they are revoked, and counts how often it is asked.
type keystone struct {
	asked   atomic.Int64
	revoked atomic.Bool
	expires time.Time
	down    error
	answer  chan struct{} // when not nil, answers wait for it
}

func (k *keystone) Validate(ctx context.Context, token string) (identity.Caller, error) {
	k.asked.Add(1)
	if k.answer != nil {
		select {
		case <-k.answer:
		case <-ctx.Done():
			return identity.Caller{}, ctx.Err()
		}
	}
	if k.down != nil {
		return identity.Caller{}, k.down
	}
	if token == "bad" || k.revoked.Load() {
		return identity.Caller{}, fault.New(fault.Unauthorized, "unknown token")
	}
	return identity.Caller{UserID: "u", ProjectID: "p", Token: token, Expires: k.expires}, nil
}

// enter is the middleware with nothing behind it; it returns who was let in.
func enter(k *keystone, now func() time.Time) func(ctx context.Context, token string) (identity.Caller, error) {
	middleware := auth.Keystone(k, now)
	return func(ctx context.Context, token string) (identity.Caller, error) {
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
		if token != "" {
			request.Header.Set("X-Auth-Token", token)
		}
		var seen identity.Caller
		err := middleware(func(c echo.Context) error {
			seen = identity.From(c.Request().Context())
			return nil
		})(echo.New().NewContext(request, httptest.NewRecorder()))
		return seen, err
	}
}

func TestTokensAreAskedForOnceAndForgottenInTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := &keystone{}
	call := enter(k, func() time.Time { return now })
	refused := func(token string) {
		t.Helper()
		_, err := call(t.Context(), token)
		require.Equal(t, fault.Unauthorized, fault.KindOf(err))
	}
	refused("")
	require.Zero(t, k.asked.Load())

	for range 2 {
		seen, err := call(t.Context(), "good")
		require.NoError(t, err)
		require.Equal(t, identity.Caller{UserID: "u", ProjectID: "p", Token: "good"}, seen)
	}
	require.EqualValues(t, 1, k.asked.Load())

	refused("bad")
	refused("bad")
	require.EqualValues(t, 3, k.asked.Load(), "a refusal is not remembered")

	k.revoked.Store(true)
	now = now.Add(time.Minute)
	refused("good")
	require.EqualValues(t, 4, k.asked.Load(), "a revoked token is refused within a minute")
	k.revoked.Store(false)
	now = now.Add(-time.Minute)
	_, err := call(t.Context(), "good")
	require.NoError(t, err)
	require.EqualValues(t, 5, k.asked.Load(), "what was refused is forgotten")
}

func TestATokenIsNotAcceptedAfterItsEnd(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := &keystone{expires: now.Add(5 * time.Second)}
	call := enter(k, func() time.Time { return now })
	_, err := call(t.Context(), "good")
	require.NoError(t, err)
	now = now.Add(5 * time.Second)
	k.revoked.Store(true)
	_, err = call(t.Context(), "good")
	require.Equal(t, fault.Unauthorized, fault.KindOf(err), "it is not remembered for longer than it lives")
}

func TestManyRequestsWithOneTokenAskOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keystone{answer: make(chan struct{})}
		call := enter(k, time.Now)
		gone, leave := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := call(gone, "good")
			first <- err
		}()
		results := make(chan error, 50)
		synctest.Wait()
		for range cap(results) {
			go func() {
				seen, err := call(t.Context(), "good")
				if err == nil && seen.Token != "good" {
					err = fmt.Errorf("let in as %v", seen)
				}
				results <- err
			}()
		}
		synctest.Wait()
		leave() // the first caller goes: the others still get their answer
		require.ErrorIs(t, <-first, context.Canceled)
		close(k.answer)
		for range cap(results) {
			require.NoError(t, <-results)
		}
		require.EqualValues(t, 1, k.asked.Load())
	})
}

func TestAKeystoneThatDoesNotAnswerRefusesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keystone{answer: make(chan struct{})}
		_, err := enter(k, time.Now)(t.Context(), "good")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Zero(t, fault.KindOf(err), "nobody said that the token is bad")
	})
}

func TestWhatIsKnownOutlivesAShortFailure(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	k := &keystone{}
	call := enter(k, func() time.Time { return now })
	_, err := call(t.Context(), "good")
	require.NoError(t, err)
	k.down = errors.New("connection refused")
	_, err = call(t.Context(), "good")
	require.NoError(t, err)
	_, err = call(t.Context(), "other")
	require.ErrorIs(t, err, k.down)
	now = now.Add(time.Minute)
	_, err = call(t.Context(), "good")
	require.ErrorIs(t, err, k.down)
}

func TestTheCacheIsBounded(t *testing.T) {
	k := &keystone{}
	call := enter(k, time.Now)
	for i := range 10_001 {
		_, err := call(t.Context(), fmt.Sprint("token ", i))
		require.NoError(t, err)
	}
	asked := k.asked.Load()
	_, err := call(t.Context(), "token 10000")
	require.NoError(t, err)
	require.Equal(t, asked, k.asked.Load(), "the newest is known")
	_, err = call(t.Context(), "token 0")
	require.NoError(t, err)
	require.Equal(t, asked+1, k.asked.Load(), "the oldest is forgotten")
}
