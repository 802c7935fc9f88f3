package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/web/auth"
)

// keystoneTable is a Keystone of three users whose passwords are their names: demo may work in demo and other, other in other only, lone nowhere. Each has
// an application credential "id of NAME" with the secret "shh". Its tokens last for an hour.
type keystoneTable struct {
	mutex  sync.Mutex
	issued map[string]identity.Caller
	count  int
	asked  int // sign-ins
	down   bool
	now    func() time.Time
}

var projectsOf = map[string][]identity.Project{
	"demo":  {{ID: goldenDemo, Name: "demo", DomainID: "default"}, {ID: goldenOther, Name: "other", DomainID: "default"}},
	"other": {{ID: goldenOther, Name: "other", DomainID: "default"}},
	"lone":  {},
}

func (k *keystoneTable) issue(user string, project identity.Project, credential *identity.Credential) string {
	k.count++
	token := fmt.Sprintf("issued-%d", k.count)
	k.issued[token] = identity.Caller{UserID: "u-" + user, UserName: user, UserDomainID: "default", UserDomainName: "Default", ProjectID: project.ID,
		ProjectName: project.Name, ProjectDomainID: project.DomainID, Roles: []string{"member"}, Token: token, Expires: k.now().Add(time.Hour), Credential: credential}
	return token
}

func (k *keystoneTable) who(token string) (identity.Caller, error) {
	if k.down {
		return identity.Caller{}, fmt.Errorf("dial tcp 10.0.0.7:5000: connection refused")
	}
	caller, known := k.issued[token]
	if !known {
		caller, known = callers[token]
	}
	if !known || !caller.Expires.IsZero() && !k.now().Before(caller.Expires) {
		return identity.Caller{}, fault.New(fault.Unauthorized, "nobody has this token")
	}
	return caller, nil
}

func (k *keystoneTable) Validate(_ context.Context, token string) (identity.Caller, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return k.who(token)
}

func (k *keystoneTable) SignIn(_ context.Context, given identity.Proof) (string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.asked++
	if k.down {
		return "", fmt.Errorf("dial tcp 10.0.0.7:5000: connection refused")
	}
	for user, projects := range projectsOf {
		if given.Password != "" && given.User == user && given.Password == user && given.Domain == "Default" {
			return k.issue(user, identity.Project{}, nil), nil
		}
		byName := given.CredentialName == "mine" && given.User == user && given.Domain == "Default"
		if given.Secret == "shh" && len(projects) > 0 && (given.CredentialID == "id of "+user || byName) {
			return k.issue(user, projects[0], &identity.Credential{ID: "id of " + user, Name: "mine", Restricted: true}), nil
		}
	}
	return "", fault.New(fault.Unauthorized, "Keystone takes no such thing")
}

func (k *keystoneTable) Scope(_ context.Context, token, projectID string) (string, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	caller, err := k.who(token)
	if err != nil {
		return "", err
	}
	for _, project := range projectsOf[caller.UserName] {
		if project.ID == projectID {
			return k.issue(caller.UserName, project, nil), nil
		}
	}
	return "", fault.New(fault.Forbidden, "not yours")
}

func (k *keystoneTable) Projects(_ context.Context, token string) ([]identity.Project, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	caller, err := k.who(token)
	return projectsOf[caller.UserName], err
}

func (k *keystoneTable) Revoke(_ context.Context, token string) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	delete(k.issued, token)
	return nil
}

// left is how many tokens were issued and neither given back nor revoked.
func (k *keystoneTable) left() int {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return len(k.issued)
}

func (s *server) newAuthenticator(rows *store.Store, sealer auth.Sealer) *auth.Authenticator {
	now := func() time.Time { return time.Now().Add(s.ahead) }
	s.keystone.now, s.rows = now, rows
	return auth.NewAuthenticator(auth.Config{Cloud: s.keystone, Rows: rows.SignIns(), Sealer: sealer, Now: now, Idle: 20 * time.Minute, Life: 10 * time.Hour,
		Proxies: []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")}, Providers: []auth.Provider{{ID: "openid", Name: "Company", Path: "/websso/openid"}},
		Keystone: "https://keystone.example/v3", Logger: s.logger})
}

// browser stores the server's cookie and sends the headers of a page of the server's own origin.
type browser struct {
	*server
	cookie *http.Cookie
	begun  *http.Cookie // of a sign-in by federation
	back   *http.Cookie // that comes with Keystone's form
	last   *http.Response
}

func (b *browser) send(method, path string, body any, change ...func(*http.Request)) *httptest.ResponseRecorder {
	b.t.Helper()
	var raw []byte
	if body != nil {
		var err error
		raw, err = json.Marshal(body)
		require.NoError(b.t, err)
	}
	request := httptest.NewRequest(method, path, bytes.NewReader(raw))
	request.Host = "burano.example:8082"
	request.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	request.Header.Set(echo.HeaderAccept, echo.MIMEApplicationJSON)
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	request.Header.Set(auth.RequestedWith, "a test")
	if b.cookie != nil {
		request.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: b.cookie.Value})
	}
	if b.begun != nil {
		request.AddCookie(&http.Cookie{Name: b.begun.Name, Value: b.begun.Value})
	}
	for _, one := range change {
		one(request)
	}
	recorder := httptest.NewRecorder()
	b.echo.ServeHTTP(recorder, request)
	b.last = recorder.Result()
	for _, cookie := range b.last.Cookies() {
		kept := &b.cookie
		if strings.HasSuffix(cookie.Name, "-websso") {
			kept = &b.begun
		} else if strings.HasSuffix(cookie.Name, "-websso-return") {
			kept = &b.back
		}
		if *kept = cookie; cookie.MaxAge < 0 {
			*kept = nil
		}
	}
	return recorder
}

// do sends and demands the status.
func (b *browser) do(status int, method, path string, body any, change ...func(*http.Request)) any {
	b.t.Helper()
	recorder := b.send(method, path, body, change...)
	require.Equal(b.t, status, recorder.Code, "%s %s: %s", method, path, recorder.Body)
	var value any
	_ = json.Unmarshal(recorder.Body.Bytes(), &value)
	return value
}

const session = "/burano/v1/session"

func signedIn(s *server, user, project string) *browser {
	b := &browser{server: s}
	b.do(200, "POST", session, map[string]any{"user": user, "password": user, "project": project})
	return b
}

func newTLS() *tls.ConnectionState { return &tls.ConnectionState{HandshakeComplete: true} }

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

func TestABrowserSignsInWorksAndSignsOut(t *testing.T) {
	s := newServer(t)
	b := &browser{server: s}
	require.Nil(t, field(b.do(200, "POST", session, map[string]any{"user": "demo", "domain": "Default", "password": "demo"}), "project"), "there are two to choose from")
	cookie := b.cookie
	require.Equal(t, "burano", cookie.Name)
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	require.Equal(t, "/", cookie.Path)
	require.Empty(t, cookie.Domain)
	require.False(t, cookie.Secure, "the test speaks no TLS")
	require.WithinDuration(t, time.Now().Add(time.Hour), cookie.Expires, time.Minute, "no longer than the token")
	require.Equal(t, "no-store", b.last.Header.Get("Cache-Control"))
	require.NotContains(t, s.log.String(), cookie.Value)

	require.Contains(t, s.log.String(), "path=/burano/v1/session status=200", "the log says who has signed in")
	require.Contains(t, s.log.String(), "user=u-demo")
	require.Contains(t, fmt.Sprint(b.do(403, "GET", "/v1/environments", nil)), "PUT /burano/v1/session/project")
	require.Equal(t, []any{map[string]any{"id": goldenDemo, "name": "demo", "domain_id": "default"}, map[string]any{"id": goldenOther, "name": "other", "domain_id": "default"}},
		field(b.do(200, "GET", session+"/projects", nil), "projects"))
	b.do(403, "PUT", session+"/project", map[string]any{"project": goldenAdmin})
	b.do(400, "PUT", session+"/project", map[string]any{})
	b.do(403, "GET", "/v1/environments", nil)
	require.Equal(t, goldenDemo, field(b.do(200, "PUT", session+"/project", map[string]any{"project": "demo"}), "project", "id"))
	require.NotEqual(t, cookie.Value, b.cookie.Value)
	id := field(b.do(200, "POST", "/v1/environments", map[string]any{"name": "mine"}), "id").(string)
	s.call("demo", "", "GET", "/v1/environments/"+id, nil, 200)
	require.Contains(t, s.log.String(), "project="+goldenDemo+" user=u-demo", "the log says who it was")

	require.Equal(t, "other", field(b.do(200, "PUT", session+"/project", map[string]any{"project": goldenOther}), "project", "name"))
	b.do(403, "GET", "/v1/environments/"+id, nil)
	me := b.do(200, "GET", session, nil)
	require.Equal(t, map[string]any{"id": "u-demo", "name": "demo", "domain": map[string]any{"id": "default", "name": "Default"}}, field(me, "user"))
	require.Equal(t, []any{"member"}, field(me, "roles"))
	require.Nil(t, field(me, "application_credential"))
	require.Equal(t, 2, s.keystone.left(), "the user's and that of the project; the former project's was given back")

	old := *b.cookie
	b.do(204, "DELETE", session, nil)
	require.Nil(t, b.cookie, "the browser forgets it")
	b.do(204, "DELETE", session, nil)
	b.do(401, "GET", session, nil)
	b.cookie = &old
	require.Contains(t, fmt.Sprint(b.do(401, "GET", session, nil)), "sign in again")
	require.Nil(t, b.cookie)
	require.Zero(t, s.keystone.left(), "all tokens were given back")
	require.Contains(t, s.log.String(), "a user has signed out")
}

func TestWhatOneSignsInWith(t *testing.T) {
	s := newServer(t)
	for name, try := range map[string]struct {
		body    map[string]any
		status  int
		project any
	}{
		"a password":                                {map[string]any{"user": "demo", "password": "demo", "project": "other"}, 200, goldenOther},
		"the only project is chosen":                {map[string]any{"user": "other", "password": "other"}, 200, goldenOther},
		"there is no project":                       {map[string]any{"user": "lone", "password": "lone"}, 200, nil},
		"a credential's id":                         {map[string]any{"application_credential": "id of demo", "secret": "shh"}, 200, goldenDemo},
		"a credential's name":                       {map[string]any{"application_credential": "mine", "user": "other", "secret": "shh"}, 200, goldenOther},
		"a credential of another project":           {map[string]any{"application_credential": "id of demo", "secret": "shh", "project": "other"}, 400, nil},
		"a project of others":                       {map[string]any{"user": "other", "password": "other", "project": goldenDemo}, 403, nil},
		"a wrong password":                          {map[string]any{"user": "demo", "password": "guess"}, 401, nil},
		"a wrong domain":                            {map[string]any{"user": "demo", "domain": "else", "password": "demo"}, 401, nil},
		"a wrong secret":                            {map[string]any{"application_credential": "id of demo", "secret": "guess"}, 401, nil},
		"nothing":                                   {map[string]any{}, 400, nil},
		"a password without a user":                 {map[string]any{"password": "demo"}, 400, nil},
		"a user without a password":                 {map[string]any{"user": "demo"}, 400, nil},
		"a credential without its secret":           {map[string]any{"application_credential": "id of demo"}, 400, nil},
		"a password and a secret":                   {map[string]any{"user": "demo", "password": "demo", "secret": "shh"}, 400, nil},
		"what nobody knows":                         {map[string]any{"user": "demo", "pasword": "demo-secret"}, 400, nil},
		"a password that is no text, which is said": {map[string]any{"user": "demo", "password": map[string]any{"demo-secret": 1}}, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := &browser{server: s}
			before := s.keystone.left()
			answer := b.do(try.status, "POST", session, try.body)
			if try.status != 200 {
				require.Nil(t, b.cookie)
				require.NotContains(t, fmt.Sprint(answer), "demo-secret")
				require.Equal(t, before, s.keystone.left(), "no token stays that nobody has")
				return
			}
			if try.project == nil {
				require.Nil(t, field(answer, "project"))
				return
			}
			require.Equal(t, try.project, field(answer, "project", "id"))
			b.do(200, "GET", "/v1/environments", nil)
		})
	}
	b := &browser{server: s}
	b.do(415, "POST", session, map[string]any{"user": "demo", "password": "demo"}, header("Content-Type", "text/plain"))
	b.do(413, "POST", session, map[string]any{"user": "demo", "password": strings.Repeat("x", maxProof)})
	b.do(200, "POST", session, map[string]any{"application_credential": "id of demo", "secret": "shh"})
	require.Equal(t, map[string]any{"id": "id of demo", "name": "mine", "restricted": true}, field(b.do(200, "GET", session, nil), "application_credential"))
	require.Contains(t, fmt.Sprint(b.do(400, "PUT", session+"/project", map[string]any{"project": "other"})), "belongs to one project")
}

func TestAnotherSiteActsThroughNobody(t *testing.T) {
	s := newServer(t)
	b := signedIn(s, "demo", "demo")
	id := field(b.do(200, "POST", "/v1/environments", map[string]any{"name": "mine"}), "id").(string)
	with := func(changes ...func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) {
			for _, change := range changes {
				change(r)
			}
		}
	}
	none, old := header("Sec-Fetch-Site", ""), func(origin string) func(*http.Request) {
		return with(header("Sec-Fetch-Site", ""), header("Origin", origin))
	}
	for name, how := range map[string]func(*http.Request){
		"a form of another site": header("Sec-Fetch-Site", "cross-site"), "a neighbour's": header("Sec-Fetch-Site", "same-site"),
		"an old browser's": old("https://evil.example"), "a sandbox of an old browser": old("null"),
	} {
		for _, request := range [][2]string{{"POST", "/v1/environments"}, {"DELETE", "/v1/environments/" + id}, {"GET", "/v1/environments"},
			{"GET", "/burano/v1/deployments/" + id + "/events"}, {"PUT", session + "/project"}, {"DELETE", session}, {"POST", session}} {
			body := map[string]any{"name": "theirs", "project": "other"}
			if request[0]+request[1] == "POST"+session {
				body = map[string]any{"user": "other", "password": "other"}
			}
			answer := b.do(403, request[0], request[1], body, how)
			require.Contains(t, fmt.Sprint(answer), "another site", name)
		}
	}
	for _, request := range [][2]string{{"POST", "/v1/environments"}, {"PUT", session + "/project"}, {"DELETE", session}} {
		answer := b.do(403, request[0], request[1], map[string]any{"name": "theirs"}, header(auth.RequestedWith, ""), none)
		require.Contains(t, fmt.Sprint(answer), auth.RequestedWith)
	}
	b.do(200, "GET", "/v1/environments", nil, header(auth.RequestedWith, ""), none)
	b.do(200, "GET", "/v1/environments", nil, header(auth.RequestedWith, ""), header("Sec-Fetch-Site", "none"))
	b.do(200, "GET", "/v1/environments", nil, old("http://burano.example:8082"))
	require.Len(t, field(b.do(200, "GET", "/v1/environments", nil), "environments"), 1, "nothing was made or removed")
	// No browser adds a token by itself, and a token needs no further proof; the cookie beside it does not count.
	b.do(200, "POST", "/v1/environments", map[string]any{"name": "by token"}, header("X-Auth-Token", "{token:other}"), header(auth.RequestedWith, ""), header("Sec-Fetch-Site", "cross-site"))
	require.Len(t, field(s.call("other", "", "GET", "/v1/environments", nil, 200), "environments"), 1, "the token wins")
	b.do(401, "GET", "/v1/environments", nil, header("X-Auth-Token", "nonsense"))
	b.do(400, "PUT", session+"/project", map[string]any{"project": "other"}, header("X-Auth-Token", "{token:demo}"))
	b.do(400, "DELETE", session, nil, header("X-Auth-Token", "{token:demo}"))
	b.do(200, "GET", session, nil)
}

func TestACookieThatWasThereBeforeIsNotGoneOnWith(t *testing.T) {
	s := newServer(t)
	victim := &browser{server: s, cookie: &http.Cookie{Name: "burano", Value: strings.Repeat("A", 52)}}
	victim.do(200, "POST", session, map[string]any{"user": "demo", "password": "demo", "project": "demo"})
	require.NotEqual(t, strings.Repeat("A", 52), victim.cookie.Value, "who has put a cookie into the browser does not know the new one")
	former := &browser{server: s, cookie: victim.cookie}
	victim.do(200, "POST", session, map[string]any{"user": "other", "password": "other"})
	require.NotEqual(t, former.cookie.Value, victim.cookie.Value)
	former.do(401, "GET", session, nil)
	require.Equal(t, "u-other", field(victim.do(200, "GET", session, nil), "user", "id"))
}

func TestByTLSTheCookieIsSecure(t *testing.T) {
	s := newServer(t)
	proxied := func(remote, proto string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = remote
			r.Header.Set("X-Forwarded-Proto", proto)
		}
	}
	for name, try := range map[string]struct {
		how    func(*http.Request)
		secure bool
	}{
		"its own TLS":            {func(r *http.Request) { r.TLS = newTLS() }, true},
		"a believed proxy's":     {proxied("10.9.1.2:4711", "https"), true},
		"a believed proxy's not": {proxied("10.9.1.2:4711", "http"), false},
		"anybody who says so":    {proxied("10.8.1.2:4711", "https"), false},
	} {
		t.Run(name, func(t *testing.T) {
			b := &browser{server: s}
			b.do(200, "POST", session, map[string]any{"user": "other", "password": "other"}, try.how)
			require.Equal(t, try.secure, b.cookie.Secure)
			require.Equal(t, try.secure, b.cookie.Name == "__Host-burano")
			b.do(200, "GET", session, nil, try.how)
			if try.secure {
				b.cookie.Name = "burano" // as a neighbour below the domain could set it
				b.do(401, "GET", session, nil, try.how)
			}
		})
	}
}

func TestASignInEnds(t *testing.T) {
	s := newServer(t)
	t.Run("when nobody uses it", func(t *testing.T) {
		b := signedIn(s, "demo", "demo")
		s.ahead += 19 * time.Minute
		b.do(200, "GET", session, nil)
		s.ahead += 19 * time.Minute
		b.do(200, "GET", session, nil)
		s.ahead += 20 * time.Minute
		b.do(401, "GET", session, nil)
		require.Zero(t, s.keystone.left(), "its tokens were given back")
	})
	t.Run("with its token", func(t *testing.T) {
		b := signedIn(s, "demo", "demo")
		for range 5 {
			s.ahead += 11 * time.Minute
			b.do(200, "GET", session, nil)
		}
		s.ahead += 6 * time.Minute
		b.do(401, "GET", session, nil)
	})
	t.Run("when its token is revoked", func(t *testing.T) {
		b := signedIn(s, "demo", "demo")
		clear(s.keystone.issued)
		s.ahead += time.Minute
		b.do(401, "GET", "/v1/environments", nil)
		b.do(401, "GET", "/v1/environments", nil)
	})
	t.Run("not when Keystone or this server is away for a while", func(t *testing.T) {
		b := signedIn(s, "demo", "demo")
		s.keystone.down = true
		s.ahead += time.Minute
		cookie := b.cookie
		require.Contains(t, fmt.Sprint(b.do(503, "GET", "/v1/environments", nil)), "Keystone could not be asked")
		b.do(503, "POST", session, map[string]any{"user": "demo", "password": "demo"})
		require.Equal(t, cookie, b.cookie)
		s.keystone.down = false
		restarted := newServerOver(s)
		(&browser{server: restarted, cookie: cookie}).do(200, "GET", "/v1/environments", nil)
		b.do(200, "GET", "/v1/environments", nil)
	})
	t.Run("under another key", func(t *testing.T) {
		b := signedIn(s, "demo", "demo")
		other, err := secret.Open(filepath.Join(t.TempDir(), "key"))
		require.NoError(t, err)
		restarted := newServerOver(s, func(s *server, c *Config) { c.SignIn = s.newAuthenticator(s.rows, other); c.Auth = c.SignIn.Enter })
		cookie := b.cookie
		again := &browser{server: restarted, cookie: cookie}
		require.Contains(t, fmt.Sprint(again.do(401, "GET", session, nil)), "sign in again")
		require.Nil(t, again.cookie)
		b.do(401, "GET", session, nil)
		again.do(200, "POST", session, map[string]any{"user": "demo", "password": "demo"})
	})
}

// newServerOver is another server over the same database, Keystone and clock.
func newServerOver(s *server, options ...func(*server, *Config)) *server {
	again := *s
	config := again.config
	config.SignIn = again.newAuthenticator(again.rows, again.sealer)
	config.Auth = config.SignIn.Enter
	for _, option := range options {
		option(&again, &config)
	}
	again.echo = newEcho(config)
	return &again
}

func TestTheDatabaseTellsNobodysCookieOrToken(t *testing.T) {
	s := newServer(t)
	b := signedIn(s, "demo", "demo")
	var rows []map[string]any
	require.NoError(t, s.db.Raw("SELECT * FROM sign_ins").Scan(&rows).Error)
	require.Len(t, rows, 1)
	sum := sha256.Sum256([]byte(b.cookie.Value))
	require.Equal(t, hex.EncodeToString(sum[:]), rows[0]["id"])
	require.NotContains(t, fmt.Sprint(rows), b.cookie.Value)
	require.NotContains(t, fmt.Sprint(rows), "issued-")
	// Sealed tokens that are copied to another row do not open.
	thief := signedIn(s, "other", "")
	sum = sha256.Sum256([]byte(thief.cookie.Value))
	require.NoError(t, s.db.Exec("UPDATE sign_ins SET tokens = ? WHERE id = ?", rows[0]["tokens"], hex.EncodeToString(sum[:])).Error)
	thief.do(401, "GET", session, nil)
}

func TestPasswordsCannotBeGuessedFast(t *testing.T) {
	s := newServer(t)
	from := func(address string) func(*http.Request) {
		return func(r *http.Request) {
			r.RemoteAddr = "10.9.0.1:4711"
			r.Header.Set("X-Forwarded-For", "6.6.6.6, "+address)
		}
	}
	b := &browser{server: s}
	guess := func(status int, user, password, address string) {
		t.Helper()
		b.do(status, "POST", session, map[string]any{"user": user, "password": password}, from(address))
	}
	for range 10 {
		guess(401, "demo", "guess", "1.1.1.1")
	}
	asked := s.keystone.asked
	guess(429, "demo", "demo", "1.1.1.1")
	require.Equal(t, asked, s.keystone.asked, "Keystone is not asked")
	require.Equal(t, "6", b.last.Header.Get("Retry-After"))
	require.Contains(t, s.log.String(), "too many attempts")
	guess(200, "demo", "demo", "2.2.2.2")
	guess(200, "other", "other", "1.1.1.1")
	s.ahead += 6 * time.Second
	guess(200, "demo", "demo", "1.1.1.1")
	for range 10 {
		guess(401, "demo", "guess", "1.1.1.1") // going well has set it back
	}
	// Many accounts from one address.
	for i := range 60 {
		guess(401, fmt.Sprint("user", i), "guess", "3.3.3.3")
	}
	guess(429, "another", "guess", "3.3.3.3")
	for i := range 60 {
		guess(401, fmt.Sprint("user", i), "guess", fmt.Sprintf("2001:db8::%x", i))
	}
	guess(429, "another", "guess", "2001:db8::ffff")
	guess(401, "another", "guess", "2001:db8:0:1::1")
}

func TestAStreamEndsWhenItsReaderIsLetInNoMore(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Limits.Recheck = time.Millisecond })
	begun := make(chan struct{}, 2)
	s.echo.GET("/burano/v1/some/events", func(c echo.Context) error {
		begun <- struct{}{}
		<-c.Request().Context().Done()
		return c.NoContent(200)
	})
	b := signedIn(s, "demo", "demo")
	done := make(chan int)
	go func() {
		reader := &browser{server: s, cookie: b.cookie}
		done <- reader.send("GET", "/burano/v1/some/events", nil).Code
	}()
	<-begun
	select {
	case <-done:
		require.Fail(t, "it ended by itself")
	default:
	}
	b.do(204, "DELETE", session, nil)
	require.Equal(t, 200, <-done)
}
