package haproxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// safeLab has ports that check their clients.
type safeLab struct {
	*webLab
	other uint16 // one more for TLS
	http  route.HTTP
}

func newSafeLab(t *testing.T) *safeLab {
	l := &safeLab{webLab: newWebLab(t), other: haproxytest.FreePort(t)}
	pool := echo(t, "a")
	page := func(port uint16) route.Path {
		return route.Path{Port: port, Path: "/", Targets: []route.Target{all(pool)}}
	}
	l.http = route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{httpRoute("a", 0, page(l.safe), page(l.other))}}
	return l
}

// check serves the ports with checks of clients by some authorities.
func (l *safeLab) check(t *testing.T, checks map[uint16]*route.Check, authorities ...haproxytest.Authority) haproxy.Outcome {
	t.Helper()
	l.http.Listeners, l.http.Authorities = nil, nil
	for _, port := range []uint16{l.safe, l.other} {
		one := route.Listener{Port: port, TLS: true, NoIngress: true}
		if check := checks[port]; check != nil {
			one.Checks = []route.Check{*check}
		}
		require.NoError(t, route.Part{Listener: &one}.Validate())
		l.http.Listeners = append(l.http.Listeners, one)
	}
	for _, one := range authorities {
		l.http.Authorities = append(l.http.Authorities, route.Authorities{PEM: one.PEM})
	}
	outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: l.http})
	require.NoError(t, err)
	return outcome
}

func by(authorities ...haproxytest.Authority) *route.Check {
	var texts []string
	for _, one := range authorities {
		texts = append(texts, one.PEM)
	}
	bundle, err := route.ReadAuthorities(texts...)
	if err != nil {
		panic(err)
	}
	return &route.Check{Authorities: bundle.Name()}
}

// get asks a port with a client's certificate, if it has one. The answer is the status, or "refused" where the session ends.
func (l *safeLab) get(t *testing.T, port uint16, certificate *tls.Certificate) string {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true}
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, ForceAttemptHTTP2: true, TLSClientConfig: config,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, fmt.Sprintf("127.0.0.1:%d", port))
		},
	}}
	response, err := client.Get("https://any.org/")
	if err != nil {
		return "refused"
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, err)
	return response.Status
}

func (l *safeLab) configuration(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(l.process.Directory, "haproxy.cfg"))
	require.NoError(t, err)
	return string(content)
}

const served = "200 OK"

func TestClientsOfAPortShowACertificateOfItsAuthorities(t *testing.T) {
	l := newSafeLab(t)
	users, others := haproxytest.NewAuthority(t, "users"), haproxytest.NewAuthority(t, "others")
	user, other := users.Pair(t, "user"), others.Pair(t, "other")
	require.Empty(t, l.check(t, map[uint16]*route.Check{l.safe: by(users)}, users).Refused)
	require.Equal(t, served, l.get(t, l.safe, user))
	require.Equal(t, "refused", l.get(t, l.safe, other))
	require.Equal(t, "refused", l.get(t, l.safe, nil))
	require.Equal(t, served, l.get(t, l.other, nil), "another port does not ask")
	require.NoError(t, l.proxy.FromNothing(t.Context(), nil, haproxy.Web{HTTP: l.http}))

	optional := by(users)
	optional.Optional = true
	require.Empty(t, l.check(t, map[uint16]*route.Check{l.safe: optional, l.other: by(others)}, users, others).Refused)
	for _, certificate := range []*tls.Certificate{user, other, nil} {
		require.Equal(t, served, l.get(t, l.safe, certificate))
	}
	require.Equal(t, "refused", l.get(t, l.other, user))
	require.Equal(t, served, l.get(t, l.other, other))

	bundle, err := route.ReadAuthorities(users.PEM, others.PEM)
	require.NoError(t, err)
	require.Empty(t, l.check(t, map[uint16]*route.Check{l.safe: by(users, others)}, haproxytest.Authority{PEM: bundle.PEM}).Refused)
	require.Equal(t, served, l.get(t, l.safe, user))
	require.Equal(t, served, l.get(t, l.safe, other))
	require.Equal(t, "refused", l.get(t, l.safe, nil))
	files, err := filepath.Glob(filepath.Join(l.process.Directory, "burano", "*.authorities"))
	require.NoError(t, err)
	require.Len(t, files, 1, "former bundles are removed")

	require.Contains(t, l.configuration(t), "tune.ssl.cachesize 0")
	require.Empty(t, l.check(t, nil).Refused)
	require.Equal(t, served, l.get(t, l.safe, nil))
	require.NotContains(t, l.configuration(t), "tune.ssl.cachesize", "nothing of it stays")
	require.NotContains(t, l.configuration(t), "verify")
}

// TestTheSessionOfAnotherPortOpensNone has clients that resume sessions of a port that checks nothing, or with other authorities. HAProxy's cache of
// sessions, which has no part for each port, would let clients of TLS 1.2 in.
func TestTheSessionOfAnotherPortOpensNone(t *testing.T) {
	l := newSafeLab(t)
	users, others := haproxytest.NewAuthority(t, "users"), haproxytest.NewAuthority(t, "others")
	certificate, key := others.Sign(t, "other")
	folder := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	shown := []string{"-cert", file("certificate", certificate), "-key", file("key", key)}
	ask := func(port uint16, words ...string) string {
		command := exec.CommandContext(t.Context(), "openssl", append([]string{"s_client", "-quiet", "-ign_eof", "-connect", fmt.Sprintf("127.0.0.1:%d", port), "-servername", "any.org"}, words...)...)
		command.Stdin = strings.NewReader("GET / HTTP/1.0\r\nHost: any.org\r\n\r\n")
		output, _ := command.Output() // which is empty where the session is refused
		return string(output)
	}
	for _, from := range []struct {
		check *route.Check
		shown []string
	}{{nil, nil}, {by(others), shown}} {
		require.Empty(t, l.check(t, map[uint16]*route.Check{l.safe: by(users), l.other: from.check}, users, others).Refused)
		for _, version := range [][]string{{"-tls1_2", "-no_ticket"}, {"-tls1_2"}, {"-tls1_3"}} {
			session := filepath.Join(folder, "session")
			_ = os.Remove(session)
			require.Contains(t, ask(l.other, append(append(version, from.shown...), "-sess_out", session)...), "200 OK", version)
			if _, err := os.Stat(session); err == nil {
				require.Empty(t, ask(l.safe, append(version, "-sess_in", session)...), "%s: nobody showed a certificate of the users' authority", version)
			}
		}
	}
}

// TestAPortWhoseClientsCannotBeCheckedIsClosed has bundles that are missing, invalid for HAProxy, or two of them.
func TestAPortWhoseClientsCannotBeCheckedIsClosed(t *testing.T) {
	l := newSafeLab(t)
	users, others := haproxytest.NewAuthority(t, "users"), haproxytest.NewAuthority(t, "others")
	require.Empty(t, l.check(t, nil).Refused)
	require.Equal(t, served, l.get(t, l.safe, nil))

	outcome := l.check(t, map[uint16]*route.Check{l.safe: by(users)}) // without the bundle
	require.ErrorContains(t, outcome.Refused[l.safe], "cannot be checked")
	require.Equal(t, []uint16{l.other}, outcome.Serving, "the firewall closes the port")
	require.NotEqual(t, served, l.get(t, l.safe, nil))
	require.Equal(t, served, l.get(t, l.other, nil))

	require.Empty(t, l.check(t, map[uint16]*route.Check{l.safe: by(users)}, users).Refused)
	require.Equal(t, served, l.get(t, l.safe, users.Pair(t, "user")))
	outcome = l.check(t, map[uint16]*route.Check{l.safe: by(users)})
	require.Empty(t, outcome.Refused, "the file of a bundle that is about to go is as good")

	l.http.Authorities = []route.Authorities{{PEM: users.PEM}, {PEM: others.PEM}}
	l.http.Listeners[0].Checks = []route.Check{*by(users), *by(others)}
	outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: l.http})
	require.NoError(t, err)
	require.ErrorContains(t, outcome.Refused[l.safe], "cannot be checked")
	require.Equal(t, "refused", l.get(t, l.safe, users.Pair(t, "user")))
}

// TestAPortThatGetsACheckIsClosedToOthersBeforeTheReload has a reload that has to wait: until then HAProxy does not know of the check.
func TestAPortThatGetsACheckIsClosedToOthersBeforeTheReload(t *testing.T) {
	process := haproxytest.New(t)
	c := process.Config()
	c.ReloadGap = time.Hour
	l := newSafeLab(t)
	l.webLab = &webLab{process: process, proxy: open(t, c), plain: l.plain, safe: l.safe}
	users := haproxytest.NewAuthority(t, "users")
	require.Empty(t, l.check(t, nil).Refused)
	require.Equal(t, served, l.get(t, l.safe, nil))
	require.True(t, l.check(t, map[uint16]*route.Check{l.safe: by(users)}, users).Waiting)
	require.Equal(t, "404 Not Found", l.get(t, l.safe, nil))
	require.Equal(t, "404 Not Found", l.get(t, l.safe, users.Pair(t, "user")), "until it is reloaded")
	require.Equal(t, served, l.get(t, l.other, nil))
	require.NoError(t, process.Reload(t.Context()))
	require.Eventually(t, func() bool { return l.get(t, l.safe, users.Pair(t, "user")) == served }, 20*time.Second, 20*time.Millisecond)
	require.Equal(t, "refused", l.get(t, l.safe, nil))
}

// TestRequestsOfAPortWithPassedSessionsAreChecked has a port that opens sessions of some names, checks the clients of requests alone, and passes others on.
func TestRequestsOfAPortWithPassedSessionsAreChecked(t *testing.T) {
	l := newSafeLab(t)
	users := haproxytest.NewAuthority(t, "users")
	sealed, mail := greeter(t, "sealed"), greeter(t, "mail")
	l.http.Pools = append(l.http.Pools, sealed, mail)
	l.http.Sites = append(l.http.Sites,
		route.Site{Namespace: "default", Kind: route.KindGateway, Name: "edge", Opened: []route.Opened{{Port: l.safe, Host: "any.org"}}},
		route.Site{Namespace: "default", Kind: route.KindTLSRoute, Name: "sealed", Sessions: []route.Session{{Port: l.safe, Host: "sealed.org", Targets: []route.Target{all(sealed)}}}},
		route.Site{Namespace: "default", Kind: route.KindTLSRoute, Name: "mail", Terminated: []route.Session{{Port: l.safe, Host: "mail.org", Targets: []route.Target{all(mail)}}}},
	)
	l.http.Authorities = []route.Authorities{{PEM: users.PEM}}
	l.http.Listeners = []route.Listener{{Port: l.safe, TLS: true, Passes: true, Names: true, NoIngress: true, Checks: []route.Check{*by(users)}}}
	outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: l.http})
	require.NoError(t, err)
	require.Empty(t, outcome.Refused)
	require.Equal(t, "refused", l.get(t, l.safe, nil))
	require.Equal(t, served, l.get(t, l.safe, users.Pair(t, "user")))
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{ServerName: "mail.org", InsecureSkipVerify: true})
	require.NoError(t, err)
	content, err := io.ReadAll(connection)
	require.NoError(t, err)
	require.Equal(t, "mail", string(content))
	require.NoError(t, l.proxy.FromNothing(t.Context(), nil, haproxy.Web{HTTP: l.http}))
}
