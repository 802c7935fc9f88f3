package keystone_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/trusts"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/keystone"
)

// cloud is a keystone behind a real listener, with a clock that the test moves.
type cloud struct {
	url string
	now time.Time
	dir string
	t   *testing.T
	*keystone.Service
}

func start(t *testing.T) *cloud {
	c := &cloud{now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), dir: t.TempDir(), t: t}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	c.url = server.URL
	c.restart()
	mux.Handle("/identity/", http.StripPrefix("/identity", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Handler().ServeHTTP(w, r)
	})))
	return c
}

// restart opens the service again from its files.
func (c *cloud) restart() {
	service, err := keystone.New(keystone.Config{StateDir: c.dir, Endpoint: c.url, Now: func() time.Time { return c.now }})
	require.NoError(c.t, err)
	c.Service = service
}

func (c *cloud) options(user string) gophercloud.AuthOptions {
	return gophercloud.AuthOptions{
		IdentityEndpoint: c.url + "/identity/v3", Username: user, Password: user, DomainName: "Default",
		Scope: &gophercloud.AuthScope{ProjectName: map[string]string{"burano": "service"}[user], DomainName: "Default"},
	}
}

func (c *cloud) login(user string) *gophercloud.ServiceClient {
	options := c.options(user)
	if options.Scope.ProjectName == "" {
		options.Scope.ProjectName = user
	}
	return c.client(options)
}

func (c *cloud) client(options gophercloud.AuthOptions) *gophercloud.ServiceClient {
	provider, err := openstack.AuthenticatedClient(c.t.Context(), options)
	require.NoError(c.t, err)
	client, err := openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{Region: "local"})
	require.NoError(c.t, err)
	return client
}

func (c *cloud) user(client *gophercloud.ServiceClient) *tokens.User {
	user, err := tokens.Get(c.t.Context(), client, client.Token()).ExtractUser()
	require.NoError(c.t, err)
	return user
}

func (c *cloud) project(client *gophercloud.ServiceClient) *tokens.Project {
	project, err := tokens.Get(c.t.Context(), client, client.Token()).ExtractProject()
	require.NoError(c.t, err)
	return project
}

// trust lets demo trust the service user with its role in its project.
func (c *cloud) trust(demo, service *gophercloud.ServiceClient) *trusts.Trust {
	made, err := trusts.Create(c.t.Context(), demo, trusts.CreateOpts{
		Impersonation: true, TrustorUserID: c.user(demo).ID, TrusteeUserID: c.user(service).ID,
		ProjectID: c.project(demo).ID, Roles: []trusts.Role{{Name: "member"}},
	}).Extract()
	require.NoError(c.t, err)
	return made
}

func (c *cloud) trustToken(trustID string) (*gophercloud.ServiceClient, error) {
	options := c.options("burano")
	options.Scope = &gophercloud.AuthScope{TrustID: trustID}
	provider, err := openstack.AuthenticatedClient(c.t.Context(), options)
	if err != nil {
		return nil, err
	}
	return openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{Region: "local"})
}

func requireStatus(t *testing.T, err error, status int) {
	t.Helper()
	require.Error(t, err)
	require.True(t, gophercloud.ResponseCodeIs(err, status), "want status %d, got: %v", status, err)
}

func TestAPasswordGivesATokenWithProjectRolesAndCatalog(t *testing.T) {
	c := start(t)
	demo := c.login("demo")
	got := tokens.Get(t.Context(), demo, demo.Token())
	held, err := got.ExtractRoles()
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, "member", held[0].Name)
	require.Equal(t, "demo", c.project(demo).Name)
	catalog, err := got.ExtractServiceCatalog()
	require.NoError(t, err)
	addresses := map[string]string{}
	for _, entry := range catalog.Entries {
		addresses[entry.Type] = entry.Endpoints[0].URL
	}
	require.Equal(t, map[string]string{
		"identity": c.url + "/identity/v3", "image": c.url + "/image", "compute": c.url + "/compute/v2.1",
		"network": c.url + "/network", "volumev3": c.url + "/volume/v3/" + c.project(demo).ID, "sharev2": c.url + "/share/v2",
		"object-store": c.url + "/object-store/v1/AUTH_" + c.project(demo).ID, "orchestration": c.url + "/orchestration/v1/" + c.project(demo).ID,
	}, addresses)
}

func TestTheVersionIsDiscoveredFromAnAddressWithoutOne(t *testing.T) {
	c := start(t)
	options := c.options("demo")
	options.IdentityEndpoint = c.url + "/identity"
	options.Scope = nil // the default project
	require.Equal(t, "demo", c.project(c.client(options)).Name)
}

func TestWrongCredentialsAreRefusedInKeystonesWords(t *testing.T) {
	c := start(t)
	for name, change := range map[string]func(*gophercloud.AuthOptions){
		"wrong password":    func(o *gophercloud.AuthOptions) { o.Password = "wrong" },
		"unknown user":      func(o *gophercloud.AuthOptions) { o.Username = "nobody" },
		"foreign project":   func(o *gophercloud.AuthOptions) { o.Scope.ProjectName = "other" },
		"unknown project":   func(o *gophercloud.AuthOptions) { o.Scope.ProjectName = "nothing" },
		"project by its id": func(o *gophercloud.AuthOptions) { o.Scope = &gophercloud.AuthScope{ProjectID: "nothing"} },
	} {
		t.Run(name, func(t *testing.T) {
			options := c.options("demo")
			options.Scope.ProjectName = "demo"
			change(&options)
			_, err := openstack.AuthenticatedClient(t.Context(), options)
			requireStatus(t, err, http.StatusUnauthorized)
			require.ErrorContains(t, err, `"message":"The request you have made requires authentication."`)
		})
	}
	response, err := http.Post(c.url+"/identity/v3/auth/tokens", "application/json", strings.NewReader(`{"auth":`))
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
}

func TestATokenExpires(t *testing.T) {
	c := start(t)
	demo, admin := c.login("demo"), c.login("admin")
	c.now = c.now.Add(59 * time.Minute)
	later := c.login("admin")
	require.NoError(t, tokens.Get(t.Context(), later, demo.Token()).Err)
	c.now = c.now.Add(time.Minute)
	requireStatus(t, tokens.Get(t.Context(), later, demo.Token()).Err, http.StatusNotFound)
	requireStatus(t, users.Get(t.Context(), admin, "x").Err, http.StatusUnauthorized)
}

func TestATokenMadeOfATokenLivesNoLonger(t *testing.T) {
	c := start(t)
	first, err := tokens.Get(t.Context(), c.login("demo"), c.login("demo").Token()).ExtractToken()
	require.NoError(t, err)
	demo := c.login("demo")
	c.now = c.now.Add(time.Minute)
	second, err := tokens.Create(t.Context(), demo, &tokens.AuthOptions{
		TokenID: demo.Token(), Scope: tokens.Scope{ProjectName: "demo", DomainID: "default"},
	}).ExtractToken()
	require.NoError(t, err)
	require.Equal(t, first.ExpiresAt, second.ExpiresAt)
}

func TestOnlyServicesAndOneselfLookAtAToken(t *testing.T) {
	c := start(t)
	demo, other, service := c.login("demo"), c.login("other"), c.login("burano")
	require.NoError(t, tokens.Get(t.Context(), service, demo.Token()).Err)
	requireStatus(t, tokens.Get(t.Context(), other, demo.Token()).Err, http.StatusForbidden)
	ok, err := tokens.Validate(t.Context(), service, demo.Token())
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, tokens.Revoke(t.Context(), demo, demo.Token()).Err)
	requireStatus(t, tokens.Get(t.Context(), service, demo.Token()).Err, http.StatusNotFound)
}

func TestATrustLetsTheTrusteeActAsTheTrustor(t *testing.T) {
	c := start(t)
	demo, service := c.login("demo"), c.login("burano")
	made := c.trust(demo, service)
	acting, err := c.trustToken(made.ID)
	require.NoError(t, err)
	require.Equal(t, "demo", c.user(acting).Name)
	require.Equal(t, "demo", c.project(acting).Name)
	held, err := tokens.Get(t.Context(), acting, acting.Token()).ExtractRoles()
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, "member", held[0].Name)
	seen, err := tokens.Get(t.Context(), service, acting.Token()).ExtractTrust()
	require.NoError(t, err)
	require.Equal(t, made.ID, seen.ID)
	require.True(t, seen.Impersonation)

	t.Run("it is listed for both and for nobody else", func(t *testing.T) {
		for _, list := range []struct {
			client  *gophercloud.ServiceClient
			options trusts.ListOpts
		}{
			{demo, trusts.ListOpts{TrustorUserID: c.user(demo).ID}},
			{service, trusts.ListOpts{TrusteeUserID: c.user(service).ID}},
		} {
			pages, err := trusts.List(list.client, list.options).AllPages(t.Context())
			require.NoError(t, err)
			found, err := trusts.ExtractTrusts(pages)
			require.NoError(t, err)
			require.Len(t, found, 1)
		}
		_, err := trusts.List(c.login("other"), trusts.ListOpts{TrustorUserID: c.user(demo).ID}).AllPages(t.Context())
		requireStatus(t, err, http.StatusForbidden)
		requireStatus(t, trusts.Get(t.Context(), c.login("other"), made.ID).Err, http.StatusForbidden)
	})
	t.Run("its token makes neither tokens nor trusts", func(t *testing.T) {
		requireStatus(t, tokens.Create(t.Context(), service, &tokens.AuthOptions{TokenID: acting.Token()}).Err, http.StatusForbidden)
		requireStatus(t, trusts.Create(t.Context(), acting, trusts.CreateOpts{
			TrustorUserID: c.user(demo).ID, TrusteeUserID: c.user(service).ID,
		}).Err, http.StatusForbidden)
	})
	t.Run("deleting it ends its tokens", func(t *testing.T) {
		require.NoError(t, trusts.Delete(t.Context(), acting, made.ID).ExtractErr())
		requireStatus(t, tokens.Get(t.Context(), service, acting.Token()).Err, http.StatusNotFound)
		requireStatus(t, tokens.Get(t.Context(), acting, acting.Token()).Err, http.StatusUnauthorized)
		_, err := c.trustToken(made.ID)
		requireStatus(t, err, http.StatusUnauthorized)
		requireStatus(t, trusts.Get(t.Context(), demo, made.ID).Err, http.StatusNotFound)
	})
}

func TestATrustIsPassedOnAsOftenAsItSays(t *testing.T) {
	c := start(t)
	demo, service := c.login("demo"), c.login("burano")
	options := trusts.CreateOpts{
		Impersonation: true, TrustorUserID: c.user(demo).ID, TrusteeUserID: c.user(service).ID, AllowRedelegation: true,
		RedelegationCount: 1, ProjectID: c.project(demo).ID, Roles: []trusts.Role{{Name: "member"}},
	}
	made, err := trusts.Create(t.Context(), demo, options).Extract()
	require.NoError(t, err)
	require.Equal(t, 1, made.RedelegationCount)
	acting, err := c.trustToken(made.ID)
	require.NoError(t, err)
	options.RedelegationCount = 0
	second, err := trusts.Create(t.Context(), acting, options).Extract()
	require.NoError(t, err)
	require.Equal(t, made.ID, second.RedelegatedTrustID)
	require.Zero(t, second.RedelegationCount)
	last, err := c.trustToken(second.ID)
	require.NoError(t, err)
	requireStatus(t, trusts.Create(t.Context(), last, options).Err, http.StatusForbidden)

	require.NoError(t, trusts.Delete(t.Context(), demo, made.ID).ExtractErr())
	requireStatus(t, trusts.Get(t.Context(), service, second.ID).Err, http.StatusNotFound)
}

func TestATrustsTokenHasItsOwnEndButDoesNotOutliveTheTrust(t *testing.T) {
	c := start(t)
	demo, service := c.login("demo"), c.login("burano")
	end := c.now.Add(10 * time.Minute)
	options := trusts.CreateOpts{
		Impersonation: true, TrustorUserID: c.user(demo).ID, TrusteeUserID: c.user(service).ID, AllowRedelegation: true,
		ProjectID: c.project(demo).ID, Roles: []trusts.Role{{Name: "member"}}, ExpiresAt: &end,
	}
	made, err := trusts.Create(t.Context(), demo, options).Extract()
	require.NoError(t, err)
	acting, err := c.trustToken(made.ID)
	require.NoError(t, err)
	token, err := tokens.Get(t.Context(), service, acting.Token()).ExtractToken()
	require.NoError(t, err)
	require.Equal(t, c.now.Add(time.Hour), token.ExpiresAt.UTC())

	later := end.Add(time.Minute)
	options.ExpiresAt = &later
	requireStatus(t, trusts.Create(t.Context(), acting, options).Err, http.StatusForbidden)
	options.ExpiresAt, options.TrusteeUserID = nil, c.user(c.login("other")).ID
	passedOn, err := trusts.Create(t.Context(), acting, options).Extract()
	require.NoError(t, err)
	require.Equal(t, end, passedOn.ExpiresAt.UTC())
	requireStatus(t, trusts.Create(t.Context(), acting, options).Err, http.StatusConflict) // of one end there is one

	c.now = end
	requireStatus(t, tokens.Get(t.Context(), service, acting.Token()).Err, http.StatusNotFound)
	_, err = c.trustToken(made.ID)
	requireStatus(t, err, http.StatusUnauthorized)
}

func TestATrustIsOnlyTheTrustorsToGive(t *testing.T) {
	c := start(t)
	demo, other, service := c.login("demo"), c.login("other"), c.login("burano")
	give := func(client *gophercloud.ServiceClient, change func(*trusts.CreateOpts)) error {
		options := trusts.CreateOpts{
			Impersonation: true, TrustorUserID: c.user(client).ID, TrusteeUserID: c.user(service).ID,
			ProjectID: c.project(client).ID, Roles: []trusts.Role{{Name: "member"}},
		}
		change(&options)
		return trusts.Create(t.Context(), client, options).Err
	}
	requireStatus(t, give(other, func(o *trusts.CreateOpts) { o.TrustorUserID = c.user(demo).ID }), http.StatusForbidden)
	requireStatus(t, give(demo, func(o *trusts.CreateOpts) { o.Roles = []trusts.Role{{Name: "admin"}} }), http.StatusNotFound)
	requireStatus(t, give(demo, func(o *trusts.CreateOpts) { o.ProjectID = c.project(other).ID }), http.StatusNotFound)
	requireStatus(t, give(demo, func(o *trusts.CreateOpts) { o.Roles = nil }), http.StatusForbidden)
	requireStatus(t, give(demo, func(o *trusts.CreateOpts) { o.TrusteeUserID = "nobody" }), http.StatusNotFound)
	past := c.now.Add(-time.Minute)
	requireStatus(t, give(demo, func(o *trusts.CreateOpts) { o.ExpiresAt = &past }), http.StatusBadRequest)

	made, err := trusts.Create(t.Context(), demo, trusts.CreateOpts{
		Impersonation: true, TrustorUserID: c.user(demo).ID, TrusteeUserID: c.user(other).ID,
		ProjectID: c.project(demo).ID, Roles: []trusts.Role{{Name: "member"}},
	}).Extract()
	require.NoError(t, err)
	_, err = c.trustToken(made.ID) // burano is not the trustee
	requireStatus(t, err, http.StatusForbidden)
	requireStatus(t, trusts.Delete(t.Context(), other, made.ID).Err, http.StatusForbidden)
}

func TestEverythingIsTheSameAfterARestart(t *testing.T) {
	c := start(t)
	demo, service := c.login("demo"), c.login("burano")
	made := c.trust(demo, service)
	acting, err := c.trustToken(made.ID)
	require.NoError(t, err)
	before := c.user(demo).ID
	c.restart()
	require.Equal(t, before, c.user(demo).ID)
	require.Equal(t, before, c.user(acting).ID)
	require.Equal(t, before, c.user(c.login("demo")).ID)
}

func TestAdminsListAndOthersDoNot(t *testing.T) {
	c := start(t)
	admin, demo := c.login("admin"), c.login("demo")
	pages, err := projects.List(admin, projects.ListOpts{Name: "demo"}).AllPages(t.Context())
	require.NoError(t, err)
	found, err := projects.ExtractProjects(pages)
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, c.project(demo).ID, found[0].ID)
	_, err = projects.List(demo, nil).AllPages(t.Context())
	requireStatus(t, err, http.StatusForbidden)
	_, err = users.List(demo, nil).AllPages(t.Context())
	requireStatus(t, err, http.StatusForbidden)
	requireStatus(t, users.Get(t.Context(), admin, "nobody").Err, http.StatusNotFound)
	own, err := users.Get(t.Context(), demo, c.user(demo).ID).Extract()
	require.NoError(t, err)
	require.Equal(t, "demo", own.Name)
	mine, err := projects.ListAvailable(demo).AllPages(t.Context())
	require.NoError(t, err)
	available, err := projects.ExtractProjects(mine)
	require.NoError(t, err)
	require.Len(t, available, 1)
	assigned, err := roles.ListAssignments(admin, roles.ListAssignmentsOpts{UserID: c.user(demo).ID}).AllPages(t.Context())
	require.NoError(t, err)
	assignments, err := roles.ExtractRoleAssignments(assigned)
	require.NoError(t, err)
	require.Len(t, assignments, 1)
	require.Equal(t, found[0].ID, assignments[0].Scope.Project.ID)
}

func TestAnApplicationCredentialStandsForItsUser(t *testing.T) {
	c := start(t)
	demo := c.login("demo")
	end := c.now.Add(time.Minute)
	made, err := applicationcredentials.Create(t.Context(), demo, c.user(demo).ID, applicationcredentials.CreateOpts{Name: "robot", ExpiresAt: &end}).Extract()
	require.NoError(t, err)
	options := gophercloud.AuthOptions{
		IdentityEndpoint: c.url + "/identity/v3", ApplicationCredentialID: made.ID, ApplicationCredentialSecret: made.Secret,
	}
	robot := c.client(options)
	require.Equal(t, "demo", c.project(robot).Name)
	var token struct {
		ExpiresAt string `json:"expires_at"`
	}
	require.NoError(t, tokens.Get(t.Context(), demo, robot.Token()).ExtractInto(&token))
	require.Equal(t, end.UTC().Format("2006-01-02T15:04:05.000000"), token.ExpiresAt, "its token does not outlive it; Keystone writes this time without a zone")
	requireStatus(t, trusts.List(robot, trusts.ListOpts{TrustorUserID: c.user(demo).ID}).EachPage(t.Context(), nil), http.StatusForbidden)
	requireStatus(t, applicationcredentials.Create(t.Context(), robot, c.user(demo).ID, applicationcredentials.CreateOpts{Name: "another"}).Err,
		http.StatusForbidden)
	require.NoError(t, applicationcredentials.Delete(t.Context(), demo, c.user(demo).ID, made.ID).ExtractErr())
	_, err = openstack.AuthenticatedClient(t.Context(), options)
	requireStatus(t, err, http.StatusUnauthorized)
	requireStatus(t, tokens.Get(t.Context(), robot, robot.Token()).Err, http.StatusUnauthorized)
}

func TestRequireLetsOnlyValidTokensPass(t *testing.T) {
	c := start(t)
	handler := c.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := identity.From(r.Context())
		_, _ = io.WriteString(w, caller.ProjectName+" "+strings.Join(caller.Roles, ","))
	}))
	ask := func(token string) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/", nil)
		request.Header.Set("X-Auth-Token", token)
		handler.ServeHTTP(recorder, request)
		return recorder
	}
	require.Equal(t, "demo member", ask(c.login("demo").Token()).Body.String())
	refused := ask("gAAAAAnothing")
	require.Equal(t, http.StatusUnauthorized, refused.Code)
	require.Equal(t, `Keystone uri="`+c.url+`/identity"`, refused.Header().Get("WWW-Authenticate"))
	require.JSONEq(t, `{"error":{"code":401,"title":"Unauthorized","message":"The request you have made requires authentication."}}`,
		refused.Body.String())
}
