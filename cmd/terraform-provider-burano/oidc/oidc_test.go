// Package oidc signs users and robots of an OpenID provider in to a real Keystone, with Burano's reader of credentials. The provider is that of
// github.com/zitadel/oidc; it has a module of its own, so that the product has none of it.
package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/config"
	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/stretchr/testify/require"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"github.com/burano/burano/web/client"
)

// people are the provider's users: everybody of whom it is asked, robots too.
type people struct{ storage.UserStore }

func (p people) GetUserByID(id string) *storage.User {
	return &storage.User{ID: id, Username: id}
}

// issue starts the provider; its address is that of the issuer.
func issue(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	issuer := "http://" + listener.Addr().String()
	storage.RegisterClients(storage.DeviceClient("device", "secret"))
	provider := httptest.NewUnstartedServer(exampleop.SetupServer(issuer, storage.NewStorage(people{storage.NewUserStore(issuer)}), nil, false))
	require.NoError(t, provider.Listener.Close())
	provider.Listener = listener
	provider.Start()
	t.Cleanup(provider.Close)
	return issuer
}

// guard stands before Keystone, as Apache with mod_auth_openidc does: it asks the provider whose an access token is, and tells Keystone.
func guard(t *testing.T, keystone, issuer string) string {
	target, err := url.Parse(keystone)
	require.NoError(t, err)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
		r.Out.Host = target.Host
	}}
	protected := regexp.MustCompile(`^/v3/OS-FEDERATION/identity_providers/[^/]+/protocols/[^/]+/auth$`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("OIDC-Preferred-Username")
		if protected.MatchString(r.URL.Path) {
			name, err := whose(r.Context(), issuer, r.Header.Get("Authorization"))
			if err != nil {
				t.Log("refused at the door:", err)
				http.Error(w, err.Error(), http.StatusUnauthorized)
				return
			}
			r.Header.Set("OIDC-Preferred-Username", name)
			r.Header.Del("Authorization")
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + target.Path
}

// whose asks the provider for whom an access token is.
func whose(ctx context.Context, issuer, authorization string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer+"/userinfo", nil)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", authorization)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	var told struct {
		Name string `json:"preferred_username"`
	}
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the provider answers %s", answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(&told); err != nil || told.Name == "" {
		return "", fmt.Errorf("the provider names nobody (%w)", err)
	}
	return told.Name, nil
}

// federate tells Keystone of the provider "corp": its users are members of project demo.
func federate(t *testing.T, path string) (projectID string) {
	options, endpoint, _, err := clouds.Parse(clouds.WithCloudName("burano-admin"), clouds.WithLocations(path))
	require.NoError(t, err)
	provider, err := config.NewProviderClient(t.Context(), options)
	require.NoError(t, err)
	keystone, err := openstack.NewIdentityV3(provider, endpoint)
	require.NoError(t, err)
	demo, _, _, err := clouds.Parse(clouds.WithCloudName("burano-demo"), clouds.WithLocations(path))
	require.NoError(t, err)
	as, err := config.NewProviderClient(t.Context(), demo)
	require.NoError(t, err)
	project, err := as.GetAuthResult().(tokens.CreateResult).ExtractProject()
	require.NoError(t, err)

	group, err := groups.Create(t.Context(), keystone, groups.CreateOpts{Name: "burano-test-corp", DomainID: "default"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, groups.Delete(context.Background(), keystone, group.ID).ExtractErr()) })
	pages, err := roles.List(keystone, roles.ListOpts{Name: "member"}).AllPages(t.Context())
	require.NoError(t, err)
	member, err := roles.ExtractRoles(pages)
	require.NoError(t, err)
	require.NoError(t, roles.Assign(t.Context(), keystone, member[0].ID, roles.AssignOpts{GroupID: group.ID, ProjectID: project.ID}).ExtractErr())
	make := func(what string, body map[string]any) {
		address := keystone.ServiceURL("OS-FEDERATION", what)
		response, err := keystone.Put(t.Context(), address, body, nil, &gophercloud.RequestOpts{OkCodes: []int{200, 201}})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		t.Cleanup(func() {
			response, err := keystone.Delete(context.Background(), address, nil)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
		})
	}
	make("mappings/corp", map[string]any{"mapping": map[string]any{"rules": []any{map[string]any{
		"local":  []any{map[string]any{"user": map[string]any{"name": "{0}"}, "group": map[string]any{"id": group.ID}}},
		"remote": []any{map[string]any{"type": "HTTP_OIDC_PREFERRED_USERNAME"}},
	}}}})
	make("identity_providers/corp", map[string]any{"identity_provider": map[string]any{"enabled": true}})
	make("identity_providers/corp/protocols/mapped", map[string]any{"protocol": map[string]any{"mapping_id": "corp"}})
	return project.ID
}

func TestUsersAndRobotsOfAnOpenIDProviderSignIn(t *testing.T) {
	path := os.Getenv("BURANO_TEST_CLOUDS")
	if path == "" {
		t.Skip("BURANO_TEST_CLOUDS names the clouds.yaml of a real Keystone: make test-openstack-oidc")
	}
	projectID := federate(t, path)
	options, _, _, err := clouds.Parse(clouds.WithCloudName("burano-admin"), clouds.WithLocations(path))
	require.NoError(t, err)
	issuer := issue(t)
	keystone := guard(t, options.IdentityEndpoint, issuer)

	signIn := func(auth map[string]string, prompt io.Writer) (tokens.User, *gophercloud.ProviderClient, error) {
		t.Helper()
		kind := auth["auth_type"]
		delete(auth, "auth_type")
		for key, value := range map[string]string{"auth_url": keystone, "identity_provider": "corp", "protocol": "mapped", "project_name": "demo"} {
			if auth[key] == "" {
				auth[key] = value
			}
		}
		text, err := json.Marshal(map[string]any{"clouds": map[string]any{"robot": map[string]any{"auth_type": kind, "auth": auth}}})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "robot.json")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		t.Setenv("OS_CLIENT_CONFIG_FILE", file)
		credentials, err := client.ReadCredentials("robot")
		require.NoError(t, err)
		credentials.Prompt = prompt
		provider, err := credentials.SignIn(t.Context())
		if err != nil {
			return tokens.User{}, nil, err
		}
		result := provider.GetAuthResult().(tokens.CreateResult)
		project, err := result.ExtractProject()
		require.NoError(t, err)
		require.Equal(t, projectID, project.ID)
		user, err := result.ExtractUser()
		require.NoError(t, err)
		return *user, provider, nil
	}
	discovery := issuer + "/.well-known/openid-configuration"
	robot := func() map[string]string {
		return map[string]string{"auth_type": "v3oidcclientcredentials", "client_id": "sid1", "client_secret": "verysecret", "discovery_endpoint": discovery}
	}
	user, provider, err := signIn(robot(), nil)
	require.NoError(t, err)
	require.Equal(t, "sid1", user.Name)
	former := provider.Token()
	require.NoError(t, provider.Reauthenticate(t.Context(), former))
	require.NotEqual(t, former, provider.Token(), "it gets another token by itself")

	direct := robot()
	delete(direct, "discovery_endpoint")
	direct["access_token_endpoint"] = issuer + "/oauth/token"
	_, _, err = signIn(direct, nil)
	require.NoError(t, err)

	access := accessToken(t, issuer)
	user, _, err = signIn(map[string]string{"auth_type": "v3oidcaccesstoken", "access_token": access}, nil)
	require.NoError(t, err)
	require.Equal(t, "sid1", user.Name)

	// v3token goes on with the token of one who has signed in.
	user, _, err = signIn(map[string]string{"auth_type": "v3token", "token": provider.Token()}, nil)
	require.NoError(t, err)
	require.Equal(t, "sid1", user.Name)

	confirmer := &browser{t: t, issuer: issuer}
	user, _, err = signIn(map[string]string{"auth_type": "v3oidcdeviceauthz", "client_id": "device", "client_secret": "secret", "discovery_endpoint": discovery}, confirmer)
	require.NoError(t, err)
	require.Equal(t, "test-user2", user.Name)

	passwords := issuePasswords(t)
	atPasswords := guard(t, options.IdentityEndpoint, passwords)
	anna := func(client, secret, password string) map[string]string {
		return map[string]string{"auth_type": "v3oidcpassword", "auth_url": atPasswords, "client_id": client, "client_secret": secret, "username": "anna", "password": password,
			"discovery_endpoint": passwords + "/.well-known/openid-configuration"}
	}
	user, provider, err = signIn(anna("corp", "a secret: +%", "right: +%"), nil)
	require.NoError(t, err)
	require.Equal(t, "anna", user.Name)
	former = provider.Token()
	require.NoError(t, provider.Reauthenticate(t.Context(), former))
	require.NotEqual(t, former, provider.Token())
	user, _, err = signIn(anna("public", "", "right: +%"), nil)
	require.NoError(t, err)
	require.Equal(t, "anna", user.Name)
	_, _, err = signIn(anna("corp", "a secret: +%", "wrong"), nil)
	require.ErrorContains(t, err, "sign in by v3oidcpassword: invalid_grant")
	_, _, err = signIn(anna("corp", "wrong", "right: +%"), nil)
	require.ErrorContains(t, err, "sign in by v3oidcpassword: invalid_client")
	without := anna("device", "secret", "right: +%")
	without["auth_url"], without["discovery_endpoint"] = keystone, discovery
	_, _, err = signIn(without, nil)
	require.ErrorContains(t, err, "sign in by v3oidcpassword: unsupported_grant_type")

	wrong := robot()
	wrong["client_secret"] = "wrong"
	_, _, err = signIn(wrong, nil)
	require.ErrorContains(t, err, "sign in by v3oidcclientcredentials")
	_, _, err = signIn(map[string]string{"auth_type": "v3oidcaccesstoken", "access_token": "nonsense"}, nil)
	require.ErrorContains(t, err, "takes no token of identity provider corp")
	elsewhere := robot()
	elsewhere["project_name"] = "other"
	_, _, err = signIn(elsewhere, nil)
	require.ErrorContains(t, err, "gives no token of the project")
}

func accessToken(t *testing.T, issuer string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, issuer+"/oauth/token", strings.NewReader(url.Values{"grant_type": {"client_credentials"}, "scope": {"openid profile"}}.Encode()))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth("sid1", "verysecret")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	var told struct {
		Token string `json:"access_token"`
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&told))
	require.NotEmpty(t, told.Token)
	return told.Token
}

// browser is somebody who reads which page to open, and confirms there.
type browser struct {
	t      *testing.T
	issuer string
	once   sync.Once
	text   bytes.Buffer
}

func (b *browser) Write(text []byte) (int, error) {
	b.text.Write(text)
	found := regexp.MustCompile(`\(code ([^)]+)\)`).FindStringSubmatch(b.text.String())
	if found != nil {
		b.once.Do(func() { b.confirm(found[1]) })
	}
	return len(text), nil
}

func (b *browser) confirm(code string) {
	jar, err := cookiejar.New(nil)
	require.NoError(b.t, err)
	web := &http.Client{Jar: jar}
	for path, form := range map[string]url.Values{"/device/login": {"user_code": {code}, "username": {"test-user2"}, "password": {"verysecure"}}} {
		answer, err := web.PostForm(b.issuer+path, form)
		require.NoError(b.t, err)
		require.NoError(b.t, answer.Body.Close())
	}
	answer, err := web.PostForm(b.issuer+"/device/confirm", url.Values{"action": {"allowed"}})
	require.NoError(b.t, err)
	said, err := io.ReadAll(answer.Body)
	require.NoError(b.t, err)
	require.NoError(b.t, answer.Body.Close())
	require.Contains(b.t, string(said), "allowed")
}
