package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/web/auth"
)

// federated issues a token of no project, as Keystone does for whom an identity provider has named.
func (s *server) federated(user string) string {
	s.keystone.mutex.Lock()
	defer s.keystone.mutex.Unlock()
	return s.keystone.issue(user, identity.Project{}, nil)
}

// post is Keystone's form: the request of a page of another site, without any cookie that is not SameSite=None.
func (s *server) post(token string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	request := httptest.NewRequest("POST", auth.WebSSOPath, strings.NewReader(url.Values{"token": {token}}.Encode()))
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Origin", "https://keystone.example")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	for _, one := range change {
		one(request)
	}
	recorder := httptest.NewRecorder()
	s.echo.ServeHTTP(recorder, request)
	return recorder
}

// ticket is the ticket in the address of the dashboard's page.
func (s *server) ticket(token string, change ...func(*http.Request)) string {
	recorder := s.post(token, change...)
	require.Equal(s.t, http.StatusSeeOther, recorder.Code, recorder.Body)
	for _, cookie := range recorder.Result().Cookies() {
		require.Empty(s.t, cookie.Value, "another site's form signs nobody in")
	}
	where, err := url.Parse(recorder.Header().Get("Location"))
	require.NoError(s.t, err)
	require.Equal(s.t, "/dashboard/", where.Path)
	values, err := url.ParseQuery(where.EscapedFragment())
	require.NoError(s.t, err)
	require.NotContains(s.t, values.Get("ticket"), token, "the token is sealed")
	return values.Get("ticket")
}

func TestABrowserSignsInByFederationAndChoosesAProject(t *testing.T) {
	s := newServer(t)
	b := &browser{server: s}
	require.Equal(t, []any{map[string]any{"id": "openid", "name": "Company"}}, field(b.do(200, "GET", session+"/providers", nil), "providers"))
	where, err := url.Parse(field(b.do(200, "POST", session+"/websso/openid", nil), "location").(string))
	require.NoError(t, err)
	require.Equal(t, "https://keystone.example/v3/auth/OS-FEDERATION/websso/openid", where.Scheme+"://"+where.Host+where.Path)
	require.Equal(t, "http://burano.example:8082"+auth.WebSSOPath, where.Query().Get("origin"))
	require.Equal(t, http.SameSiteStrictMode, b.begun.SameSite)
	require.True(t, b.begun.HttpOnly)

	ticket := s.ticket(s.federated("demo"))
	require.Nil(t, field(b.do(200, "POST", session, map[string]any{"ticket": ticket}), "project"), "there are two to choose from")
	require.Nil(t, b.begun, "a browser that has signed in has begun no more")
	require.Equal(t, "demo", field(b.do(200, "PUT", session+"/project", map[string]any{"project": "demo"}), "project", "name"))
	b.do(200, "GET", "/v1/environments", nil)
	b.do(403, "POST", session, map[string]any{"ticket": ticket})
	b.do(204, "DELETE", session, nil)
	require.Zero(t, s.keystone.left(), "what was issued is given back")
	require.NotContains(t, s.log.String(), ticket)

	b.do(200, "POST", session+"/websso/openid", nil)
	require.Equal(t, "other", field(b.do(200, "POST", session, map[string]any{"ticket": s.ticket(s.federated("demo")), "project": "other"}), "project", "name"))
}

func TestNobodyIsSignedInAsSomebodyElseByAnotherSite(t *testing.T) {
	s := newServer(t)
	b := &browser{server: s}
	attackers := s.ticket(s.federated("other"))
	b.do(403, "POST", session, map[string]any{"ticket": attackers})
	require.Nil(t, b.cookie)
	// Nor can another site begin for the browser.
	b.do(403, "POST", session+"/websso/openid", nil, header(auth.RequestedWith, ""))
	b.do(403, "POST", session+"/websso/openid", nil, header("Sec-Fetch-Site", "cross-site"))
	require.Nil(t, b.begun)
	// A cookie that no server has made is none.
	b.begun = &http.Cookie{Name: "burano-websso", Value: "v2:x:y"}
	b.do(403, "POST", session, map[string]any{"ticket": attackers})
	// A ticket is no cookie of having begun.
	b.begun.Value = attackers
	b.do(403, "POST", session, map[string]any{"ticket": attackers})
}

func TestATicketIsRedeemedOnlyInTheBrowserThatHasBegun(t *testing.T) {
	s := newServer(t)
	tls := func(r *http.Request) { r.TLS, r.Host = newTLS(), "burano.example:8082" }
	begins := func() *browser {
		b := &browser{server: s}
		b.do(200, "POST", session+"/websso/openid", nil, tls)
		require.Equal(t, http.SameSiteNoneMode, b.back.SameSite)
		require.True(t, b.back.Secure && b.back.HttpOnly)
		return b
	}
	with := func(b *browser) func(*http.Request) {
		return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: b.back.Name, Value: b.back.Value}) }
	}
	redeem := func(b *browser, status int, ticket string) {
		t.Helper()
		b.do(status, "POST", session, map[string]any{"ticket": ticket}, tls)
	}
	attacker, victim := begins(), begins()
	planted := s.ticket(s.federated("other"), tls, with(attacker))
	redeem(victim, 403, planted)
	require.Equal(t, 403, s.post(s.federated("other"), tls).Code, "no browser has begun")
	evil := s.post(s.federated("other"), tls, with(victim), header("Origin", "https://evil.example"))
	require.Equal(t, 403, evil.Code)
	require.Contains(t, evil.Body.String(), "websso-keystone")
	former := victim.back
	victim.do(200, "POST", session+"/websso/openid", nil, tls)
	redeem(victim, 403, s.ticket(s.federated("demo"), tls, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: former.Name, Value: former.Value}) }))
	victim.do(200, "POST", session+"/websso/openid", nil, tls)
	redeem(victim, 200, s.ticket(s.federated("demo"), tls, with(victim)))
	// Without TLS no such cookie comes from another site; one that comes counts.
	open, second := &browser{server: s}, &browser{server: s}
	open.do(200, "POST", session+"/websso/openid", nil)
	second.do(200, "POST", session+"/websso/openid", nil)
	open.do(403, "POST", session, map[string]any{"ticket": s.ticket(s.federated("demo"), with(second))})
	open.do(200, "POST", session+"/websso/openid", nil)
	open.do(200, "POST", session, map[string]any{"ticket": s.ticket(s.federated("demo"))})
}

func TestASignInByFederationTakesNoLongerThanItMay(t *testing.T) {
	s := newServer(t)
	b := &browser{server: s}
	b.do(200, "POST", session+"/websso/openid", nil)
	late := s.ticket(s.federated("demo"))
	s.ahead += 3 * time.Minute
	b.do(403, "POST", session, map[string]any{"ticket": late})
	ticket := s.ticket(s.federated("demo"))
	s.ahead += 8 * time.Minute
	b.do(403, "POST", session, map[string]any{"ticket": ticket})
	require.Nil(t, b.cookie)
	b.do(200, "POST", session+"/websso/openid", nil)
	b.do(401, "POST", session, map[string]any{"ticket": s.ticket("a token of nobody")})
	b.do(200, "POST", session+"/websso/openid", nil)
	b.do(400, "POST", session, map[string]any{"ticket": s.ticket("{token:demo}")})
	b.do(404, "POST", session+"/websso/nothing", nil)
	require.Equal(t, 400, s.post("").Code)
	require.Equal(t, 400, s.post(strings.Repeat("x", maxProof)).Code)
}

func TestByTLSTheCookieOfHavingBegunIsOfTheHostAlone(t *testing.T) {
	s := newServer(t)
	b := &browser{server: s}
	b.do(200, "POST", session+"/websso/openid", nil, func(r *http.Request) { r.TLS = newTLS() })
	require.Equal(t, "__Host-burano-websso", b.begun.Name)
	require.True(t, b.begun.Secure)
}

func TestProvidersAreReadAsTheyAreWritten(t *testing.T) {
	list, err := auth.ParseProviders([]string{"Company login=openid", "Partner=keycloak/saml2"})
	require.NoError(t, err)
	require.Equal(t, []auth.Provider{{ID: "openid", Name: "Company login", Path: "/websso/openid"},
		{ID: "keycloak-saml2", Name: "Partner", Path: "/identity_providers/keycloak/protocols/saml2/websso"}}, list)
	for _, wrong := range [][]string{{"openid"}, {"=openid"}, {"A=b/c/d"}, {"A=../x"}, {"A=openid", "B=openid"}} {
		_, err := auth.ParseProviders(wrong)
		require.Error(t, err, "%v", wrong)
	}
}
