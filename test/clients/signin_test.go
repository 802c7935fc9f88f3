package clients

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/applicationcredentials"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/users"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/test/localcloud/keystone"
)

// browser sends requests as a page of the server's origin does, and stores its cookies.
type browser struct {
	*server
	client *http.Client
}

func (s *server) browser() *browser {
	jar, err := cookiejar.New(nil)
	require.NoError(s.t, err)
	return &browser{s, &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}}
}

// do sends JSON and demands the status; it returns the answer's JSON, or its text under "text".
func (b *browser) do(status int, method, path string, body any, headers ...string) map[string]any {
	b.t.Helper()
	got, text := b.send(method, path, body, headers...)
	require.Equal(b.t, status, got, "%s %s: %s", method, path, text)
	answer := map[string]any{"text": text}
	_ = json.Unmarshal([]byte(text), &answer)
	return answer
}

// send sends JSON, and returns status and text of the answer.
func (b *browser) send(method, path string, body any, headers ...string) (status int, text string) {
	b.t.Helper()
	raw, err := json.Marshal(body)
	require.NoError(b.t, err)
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, bytes.NewReader(raw))
	require.NoError(b.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set("X-Requested-With", "a test")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.client.Do(request)
	require.NoError(b.t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	require.NoError(b.t, err)
	return response.StatusCode, string(content)
}

const session = "/burano/v1/session"

// environmentID is the only difference between two refusals.
var environmentID = regexp.MustCompile(`\b[0-9a-f]{32}\b`)

// deploy makes an environment and asks for its deployment.
func (b *browser) deploy(status int, headers ...string) map[string]any {
	b.t.Helper()
	id := b.do(200, "POST", "/v1/environments", map[string]any{"name": b.t.Name() + time.Now().String()}, headers...)["id"].(string)
	draft := b.do(200, "POST", "/v1/environments/"+id+"/configure", nil, headers...)["id"].(string)
	answer := b.do(status, "POST", "/v1/environments/"+id+"/sessions/"+draft+"/deploy", nil, headers...)
	if status != 200 {
		deployments := b.do(200, "GET", "/v1/environments/"+id+"/deployments", nil, headers...)
		require.Empty(b.t, deployments["deployments"], "nothing was queued")
		require.Equal(b.t, "pending", b.do(200, "GET", "/v1/environments/"+id, nil, headers...)["status"])
	}
	return answer
}

// identity is Keystone for a user of it.
func (s *server) identity(options gophercloud.AuthOptions) *gophercloud.ServiceClient {
	s.t.Helper()
	options.IdentityEndpoint = s.keystone + "/identity/v3"
	provider, err := openstack.AuthenticatedClient(s.t.Context(), options)
	require.NoError(s.t, err)
	client, err := openstack.NewIdentityV3(provider, gophercloud.EndpointOpts{Region: keystone.Region})
	require.NoError(s.t, err)
	return client
}

func (s *server) identityOf(user, project string) *gophercloud.ServiceClient {
	return s.identity(gophercloud.AuthOptions{Username: user, Password: user, DomainName: "Default", TenantName: project})
}

func TestBrowsersSignInAtKeystone(t *testing.T) {
	s := startKeystone(t)
	s.build()
	state := t.TempDir()
	first := s.serve(http.DefaultClient, "http", "--state", state)
	admin, demo := s.identityOf("admin", "admin"), s.identityOf("demo", "demo")
	me, err := tokens.Get(t.Context(), demo, demo.Token()).ExtractUser()
	require.NoError(t, err)
	byPassword := map[string]any{"user": "demo", "domain": "Default", "password": "demo"}

	t.Run("with a password", func(t *testing.T) {
		b := s.browser()
		who := b.do(200, "POST", session, byPassword)
		require.Equal(t, "demo", who["project"].(map[string]any)["name"], "the only one")
		require.Nil(t, who["application_credential"])
		require.Len(t, b.do(200, "GET", session+"/projects", nil)["projects"], 1)
		b.deploy(200)
		for _, bad := range []map[string]any{{"user": "demo", "password": "guess"}, {"user": "nobody", "password": "demo"},
			{"user": "demo", "domain": "elsewhere", "password": "demo"}, {"application_credential": me.ID, "secret": "guess"}} {
			require.Contains(t, s.browser().do(401, "POST", session, bad)["message"], "Keystone takes no such")
		}
		require.Contains(t, s.browser().do(403, "POST", session, map[string]any{"user": "demo", "password": "demo", "project": "admin"})["message"], "no project")
		b.do(403, "POST", "/v1/environments", map[string]any{"name": "theirs"}, "Sec-Fetch-Site", "cross-site")
		b.do(204, "DELETE", session, nil)
		b.do(401, "GET", session, nil)
	})

	t.Run("with several projects", func(t *testing.T) {
		other, err := tokens.Get(t.Context(), admin, s.identityOf("other", "other").Token()).ExtractProject()
		require.NoError(t, err)
		pages, err := roles.List(admin, roles.ListOpts{Name: "member"}).AllPages(t.Context())
		require.NoError(t, err)
		member, err := roles.ExtractRoles(pages)
		require.NoError(t, err)
		assignment := roles.AssignOpts{UserID: me.ID, ProjectID: other.ID}
		require.NoError(t, roles.Assign(t.Context(), admin, member[0].ID, assignment).ExtractErr())
		b := s.browser()
		require.Nil(t, b.do(200, "POST", session, byPassword)["project"])
		require.Len(t, b.do(200, "GET", session+"/projects", nil)["projects"], 2)
		require.Contains(t, b.do(403, "GET", "/v1/environments", nil)["message"], "choose one")
		b.do(200, "PUT", session+"/project", map[string]any{"project": "other"})
		require.Empty(t, b.do(200, "GET", "/v1/environments", nil)["environments"])
		b.do(200, "PUT", session+"/project", map[string]any{"project": "demo"})
		require.NotEmpty(t, b.do(200, "GET", "/v1/environments", nil)["environments"])
		require.NoError(t, roles.Unassign(t.Context(), admin, member[0].ID, roles.UnassignOpts(assignment)).ExtractErr())
	})

	// Since 2026 Keystone takes no trust from an unrestricted one either: the server's message is Keystone's.
	for _, unrestricted := range []bool{false, true} {
		name := map[bool]string{false: "restricted", true: "unrestricted"}[unrestricted]
		t.Run("with an application credential that is "+name, func(t *testing.T) {
			made, err := applicationcredentials.Create(t.Context(), demo, me.ID, applicationcredentials.CreateOpts{Name: name, Unrestricted: unrestricted}).Extract()
			require.NoError(t, err)
			b := s.browser()
			who := b.do(200, "POST", session, map[string]any{"application_credential": made.ID, "secret": made.Secret})
			require.Equal(t, map[string]any{"id": made.ID, "name": name, "restricted": !unrestricted}, who["application_credential"])
			require.Equal(t, "demo", who["project"].(map[string]any)["name"])
			b.do(200, "POST", session, map[string]any{"application_credential": name, "user": "demo", "secret": made.Secret})
			b.do(200, "GET", "/v1/catalog/packages", nil)
			said := b.deploy(403)["message"]
			require.Contains(t, said, "--unrestricted")
			require.Contains(t, said, "sign in with a password")
			if !unrestricted {
				require.Contains(t, said, "openstack application credential create --unrestricted")
			}
			// A token made with it gives the same rights.
			token := s.identity(gophercloud.AuthOptions{ApplicationCredentialID: made.ID, ApplicationCredentialSecret: made.Secret}).Token()
			again := s.browser().deploy(403, "X-Auth-Token", token)["message"] // of another environment
			require.Equal(t, environmentID.ReplaceAllString(said.(string), "ID"), environmentID.ReplaceAllString(again.(string), "ID"))
			require.NoError(t, applicationcredentials.Delete(t.Context(), demo, me.ID, made.ID).ExtractErr())
			s.browser().do(401, "POST", session, map[string]any{"application_credential": made.ID, "secret": made.Secret})
		})
	}

	t.Run("not with an application credential whose time is over", func(t *testing.T) {
		var b *browser
		var proof map[string]any
		for life := 3 * time.Second; ; life *= 2 { // the life is doubled until a sign-in ends before it
			expires := time.Now().Truncate(time.Second).Add(life) // Keystone counts whole seconds
			made, err := applicationcredentials.Create(t.Context(), demo, me.ID, applicationcredentials.CreateOpts{Name: "short of " + life.String(), ExpiresAt: &expires}).Extract()
			require.NoError(t, err)
			b, proof = s.browser(), map[string]any{"application_credential": made.ID, "secret": made.Secret}
			if status, text := b.send("POST", session, proof); status == http.StatusOK {
				break
			} else if time.Now().Before(expires) || life > time.Minute {
				require.Equal(t, http.StatusOK, status, text)
			}
		}
		require.Eventually(t, func() bool {
			response, err := b.client.Get(s.url + session)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			return response.StatusCode == http.StatusUnauthorized
		}, time.Minute, 100*time.Millisecond, "the browser's sign-in ends with it")
		s.browser().do(401, "POST", session, proof)
	})

	t.Run("not when the user is disabled", func(t *testing.T) {
		enabled := false
		domain := "default"
		made, err := users.Create(t.Context(), admin, users.CreateOpts{Name: "gone", Password: "gone-pass", DomainID: domain, Enabled: &enabled}).Extract()
		require.NoError(t, err)
		s.browser().do(401, "POST", session, map[string]any{"user": "gone", "password": "gone-pass"})
		require.NoError(t, users.Delete(t.Context(), admin, made.ID).ExtractErr())
	})

	t.Run("and stay signed in when the server is started again", func(t *testing.T) {
		b, left := s.browser(), s.browser()
		b.do(200, "POST", session, byPassword)
		left.do(200, "POST", session, byPassword)
		left.do(204, "DELETE", session, nil)
		require.NoError(t, first.Process.Signal(syscall.SIGTERM))
		require.NoError(t, <-first.ended)
		second := s.serve(http.DefaultClient, "http", "--state", state) // at another port, which does not matter for cookies
		require.Equal(t, "demo", b.do(200, "GET", session, nil)["user"].(map[string]any)["name"])
		require.NotEmpty(t, b.do(200, "GET", "/v1/environments", nil)["environments"])
		left.do(401, "GET", session, nil)

		// The server refuses to start with another key; it accepts no session that it cannot decrypt.
		require.NoError(t, second.Process.Signal(syscall.SIGTERM))
		require.NoError(t, <-second.ended)
		require.NoError(t, os.Remove(filepath.Join(state, "secret.key")))
		out, ok := s.run(s.as("burano", "service"), s.program, "serve", "--state", state, "--listen", freeAddress(t))
		require.False(t, ok)
		require.Contains(t, out, "sealed under another key")
	})
}
