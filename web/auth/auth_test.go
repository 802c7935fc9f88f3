package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/auth"
)

// keystone knows one token until it is revoked, and counts how often it is asked.
type keystone struct {
	asked   int
	revoked bool
}

func (k *keystone) Validate(_ context.Context, token string) (identity.Caller, error) {
	k.asked++
	if token != "good" || k.revoked {
		return identity.Caller{}, fault.New(fault.Unauthorized, "unknown token")
	}
	return identity.Caller{UserID: "u", ProjectID: "p", Token: token}, nil
}

func TestTokensAreAskedForOnceAndForgottenInTime(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	validator := &keystone{}
	var seen identity.Caller
	handler := auth.Keystone(validator, func() time.Time { return now })(func(c echo.Context) error {
		seen = identity.From(c.Request().Context())
		return nil
	})
	call := func(token string) error {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		if token != "" {
			request.Header.Set("X-Auth-Token", token)
		}
		return handler(echo.New().NewContext(request, httptest.NewRecorder()))
	}

	require.Equal(t, fault.Unauthorized, fault.KindOf(call("")))
	require.Zero(t, validator.asked)

	require.NoError(t, call("good"))
	require.NoError(t, call("good"))
	require.Equal(t, identity.Caller{UserID: "u", ProjectID: "p", Token: "good"}, seen)
	require.Equal(t, 1, validator.asked)

	require.Equal(t, fault.Unauthorized, fault.KindOf(call("bad")))
	require.Equal(t, fault.Unauthorized, fault.KindOf(call("bad")), "a refusal is not remembered")
	require.Equal(t, 3, validator.asked)

	validator.revoked = true
	now = now.Add(time.Minute)
	require.Equal(t, fault.Unauthorized, fault.KindOf(call("good")), "a revoked token is refused within a minute")
}
