package cloud

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/auth"
	"github.com/burano/burano/web/policy"
)

// theServerLetsInWhomTheCloudKnows goes through the server's own sign-in, with a clock that the test moves.
func theServerLetsInWhomTheCloudKnows(t *testing.T, c *cloud) {
	service := c.service(t)
	now := time.Now()
	middleware := auth.Keystone(service, func() time.Time { return now })
	enter := func(token string) (identity.Caller, error) {
		var seen identity.Caller
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		request.Header.Set("X-Auth-Token", token)
		err := middleware(func(c echo.Context) error {
			seen = policy.New().Apply(identity.From(c.Request().Context()))
			return nil
		})(echo.New().NewContext(request, httptest.NewRecorder()))
		return seen, err
	}
	refused := func(token, why string) {
		t.Helper()
		_, err := enter(token)
		require.Equalf(t, fault.Unauthorized, fault.KindOf(err), "%s: %v", why, err)
	}

	demo := c.as(t, "demo")
	seen, err := enter(demo.provider.Token())
	require.NoError(t, err)
	require.Equal(t, "demo", seen.ProjectName)
	require.NotEmpty(t, seen.UserDomainID)
	require.NotEmpty(t, seen.ProjectDomainID)
	require.True(t, seen.Expires.After(time.Now()), "expires %s", seen.Expires)
	require.False(t, seen.Admin)
	require.False(t, seen.May("add_category"))
	seen, err = enter(c.as(t, "admin").provider.Token())
	require.NoError(t, err)
	require.True(t, seen.Admin)
	require.True(t, seen.May("add_category"))
	refused("nonsense", "a token of no Keystone")
	refused(tokenOfNoProject(t, c), "a token of no project")

	byCredential := tokenOfACredential(t, c, demo)
	seen, err = enter(byCredential)
	require.NoError(t, err, "an application credential's")
	require.Equal(t, "demo", seen.ProjectName)
	byTrust := tokenOfATrust(t, c, demo)
	seen, err = enter(byTrust)
	require.NoError(t, err, "a trust's")
	require.Equal(t, "demo", seen.ProjectName)

	require.NoError(t, tokens.Revoke(t.Context(), demo.keystone(t), demo.provider.Token()).Err)
	now = now.Add(time.Minute)
	refused(demo.provider.Token(), "a token that was given back a minute ago")

	// The service user's own token may end at any time.
	require.NoError(t, tokens.Revoke(t.Context(), c.as(t, "service").keystone(t), service.Token()).Err)
	_, err = enter(c.as(t, "other").provider.Token())
	require.NoError(t, err, "the service user signs in again")
	require.NoError(t, service.Answers(t.Context()))
}

func tokenOfACredential(t *testing.T, c *cloud, demo user) string {
	service := c.service(t)
	made, err := applicationcredentials.Create(t.Context(), demo.keystone(t), demo.caller(t, service).UserID, applicationcredentials.CreateOpts{
		Name: "burano-test-signin", Roles: []applicationcredentials.Role{{Name: "member"}},
	}).Extract()
	require.NoError(t, err)
	userID, keystone := demo.caller(t, service).UserID, c.as(t, "demo")
	t.Cleanup(func() {
		require.NoError(t, applicationcredentials.Delete(context.Background(), keystone.keystone(t), userID, made.ID).ExtractErr())
	})
	options, endpoint := c.options(t, "demo")
	return signIn(t, gophercloud.AuthOptions{IdentityEndpoint: options.IdentityEndpoint, ApplicationCredentialID: made.ID,
		ApplicationCredentialSecret: made.Secret}, endpoint).provider.Token()
}

func tokenOfATrust(t *testing.T, c *cloud, demo user) string {
	service := c.service(t)
	trust, err := trusts.Create(t.Context(), demo.keystone(t), trusts.CreateOpts{
		Impersonation: true, TrustorUserID: demo.caller(t, service).UserID, TrusteeUserID: c.as(t, "other").caller(t, service).UserID,
		ProjectID: demo.caller(t, service).ProjectID, Roles: []trusts.Role{{Name: "member"}},
	}).Extract()
	require.NoError(t, err)
	keystone := c.as(t, "demo").keystone(t)
	t.Cleanup(func() { require.NoError(t, trusts.Delete(context.Background(), keystone, trust.ID).ExtractErr()) })
	options, endpoint := c.options(t, "other")
	options.TenantID, options.TenantName = "", ""
	options.Scope = &gophercloud.AuthScope{TrustID: trust.ID}
	return signIn(t, options, endpoint).provider.Token()
}
