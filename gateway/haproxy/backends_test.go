package haproxy_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// safeEcho is a backend with TLS. It returns the name that it was asked for, the protocol, and whose certificate it was shown.
func safeEcho(t *testing.T, name string, authority haproxytest.Authority, host string) route.Pool {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := "nobody"
		if len(r.TLS.PeerCertificates) > 0 {
			shown = r.TLS.PeerCertificates[0].Subject.CommonName
		}
		fmt.Fprintf(w, "%s asked for %s by %s, shown %s", name, r.TLS.ServerName, r.Proto, shown)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*authority.Pair(t, host)}, ClientAuth: tls.RequestClientCert}
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return poolAt(name, "https", server.Listener)
}

func TestBackendsWithTLSShowACertificateOfTheirAuthorities(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	inside, others := haproxytest.NewAuthority(t, "inside"), haproxytest.NewAuthority(t, "others")
	good, second, foreign, plain := safeEcho(t, "good", inside, "pod.org"), safeEcho(t, "second", inside, "pod.org"), safeEcho(t, "foreign", others, "pod.org"), echo(t, "plain")
	over := func(pool route.Pool, host string, change ...func(*route.Filters)) route.Target {
		f := route.Filters{TLS: &route.BackendTLS{Authorities: by(inside).Authorities, Host: host}}
		for _, one := range change {
			one(&f)
		}
		return through(pool, f)
	}
	calls := func(f *route.Filters) { f.H2C = true }
	shows := func(f *route.Filters) { f.TLS.Certificate = "default/own" }
	h := route.HTTP{
		Pools: []route.Pool{good, foreign, plain}, Authorities: []route.Authorities{{PEM: inside.PEM}},
		Sites: []route.Site{httpRoute("a", 0,
			l.path("", "/good", over(good, "pod.org")), l.path("", "/name", over(good, "other.org")), l.path("", "/foreign", over(foreign, "pod.org")), l.path("", "/plain", over(plain, "pod.org")),
			l.path("", "/calls", over(good, "pod.org", calls)), l.path("", "/shown", over(good, "pod.org", shows)),
		)},
	}
	require.NoError(t, route.Part{Site: &h.Sites[0]}.Validate())
	h.Listeners = []route.Listener{{Port: l.plain, NoIngress: true}, {Port: l.safe, TLS: true, Passes: true, Names: true, NoIngress: true}}
	own := func(name string) haproxy.Certificate {
		return haproxy.Certificate{Name: "default/own", PEM: slices.Concat(inside.Sign(t, name))}
	}
	web := haproxy.Web{HTTP: h, Shown: []haproxy.Certificate{own("first")}}
	serve := func() haproxy.Outcome {
		t.Helper()
		outcome, err := l.proxy.Apply(t.Context(), nil, web)
		require.NoError(t, err)
		require.Empty(t, outcome.Refused)
		return outcome
	}
	says := func(path, text string) {
		t.Helper()
		_, body := l.ask(t, "http://any.org"+path)
		require.Equal(t, text, body)
	}
	fails := func(path string) {
		t.Helper()
		response, body := l.ask(t, "http://any.org"+path)
		require.Equal(t, http.StatusServiceUnavailable, response.StatusCode, body)
	}
	serve()
	says("/good", "good asked for pod.org by HTTP/1.1, shown nobody")
	says("/calls", "good asked for pod.org by HTTP/2.0, shown nobody")
	says("/shown", "good asked for pod.org by HTTP/1.1, shown first")
	for _, path := range []string{"/name", "/foreign", "/plain"} {
		fails(path)
	}
	require.NoError(t, l.proxy.FromNothing(t.Context(), nil, web))

	web.Shown = []haproxy.Certificate{own("renewed")}
	require.False(t, serve().Reloaded, "a certificate is renewed at run time")
	require.Eventually(t, func() bool {
		_, body := l.ask(t, "http://any.org/shown")
		return body == "good asked for pod.org by HTTP/1.1, shown renewed"
	}, 20*time.Second, 10*time.Millisecond)
	web.Pools[0].Backends = second.Backends
	require.False(t, serve().Reloaded, "a backend comes at run time")
	says("/good", "second asked for pod.org by HTTP/1.1, shown nobody")
	says("/shown", "second asked for pod.org by HTTP/1.1, shown renewed")
	fails("/name")
	require.NoError(t, l.proxy.FromNothing(t.Context(), nil, web))
	require.NoError(t, l.proxy.Close())
	l.proxy = open(t, l.process.Config()) // which reads the file
	require.False(t, serve().Reloaded)
	says("/good", "second asked for pod.org by HTTP/1.1, shown nobody")
	require.NoError(t, l.proxy.FromNothing(t.Context(), nil, web))

	// Nothing is asked without the check, or without the certificate that it is to be shown.
	web.Authorities, web.Shown = nil, nil
	web.Sites = []route.Site{httpRoute("a", 0, l.path("", "/", all(plain)), l.path("", "/other", over(second, "pod.org", func(f *route.Filters) { f.TLS.Authorities = by(others).Authorities })),
		l.path("", "/shown", over(second, "pod.org", func(f *route.Filters) { f.TLS.Certificate = "default/gone" })))}
	serve()
	fails("/other")
	fails("/shown")
	files, err := filepath.Glob(filepath.Join(l.process.Directory, "burano", "*.shown"))
	require.NoError(t, err)
	require.Empty(t, files, "former keys are removed")
}

// TestOpenedSessionsReachBackendsOverTLS has a TLSRoute whose sessions a gateway opens, and seals anew.
func TestOpenedSessionsReachBackendsOverTLS(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	inside := haproxytest.NewAuthority(t, "inside")
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{*inside.Pair(t, "mail.inside")}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, "mail")
			_ = connection.Close()
		}
	}()
	pool := poolAt("mail", "imaps", listener)
	web := func(host string, bundles ...route.Authorities) haproxy.Web {
		site := route.Site{Namespace: "default", Kind: route.KindTLSRoute, Name: "mail", Terminated: []route.Session{{Port: l.safe, Host: "mail.org", Targets: []route.Target{
			through(pool, route.Filters{TLS: &route.BackendTLS{Authorities: by(inside).Authorities, Host: host}}),
		}}}}
		require.NoError(t, route.Part{Site: &site}.Validate())
		return haproxy.Web{HTTP: route.HTTP{
			Pools: []route.Pool{pool}, Sites: []route.Site{site}, Authorities: bundles, Listeners: []route.Listener{{Port: l.safe, TLS: true, Passes: true, Names: true, NoIngress: true}},
		}}
	}
	says := func() string {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{ServerName: "mail.org", InsecureSkipVerify: true})
		if err != nil {
			return "refused"
		}
		defer connection.Close()
		content, _ := io.ReadAll(connection)
		return string(content)
	}
	bundle := route.Authorities{PEM: inside.PEM}
	for host, answer := range map[string]string{"mail.inside": "mail", "other.inside": ""} {
		outcome, err := l.proxy.Apply(t.Context(), nil, web(host, bundle))
		require.NoError(t, err)
		require.Empty(t, outcome.Refused)
		require.Equal(t, answer, says(), host)
	}
}

// TestAGatewayThatKnowsNoTLSOfBackendsAnswers503 has the values as a gateway of the former release reads them.
func TestAGatewayThatKnowsNoTLSOfBackendsAnswers503(t *testing.T) {
	pool := route.Pool{Namespace: "default", Service: "a", Port: "https"}
	site := httpRoute("a", 0, route.Path{Port: 80, Path: "/", Targets: []route.Target{through(pool, route.Filters{TLS: &route.BackendTLS{Host: "a.org"}, Timeout: 1e9})}})
	part := route.Part{Site: &site}
	value, err := route.EncodePart(part)
	require.NoError(t, err)
	read, err := route.DecodePart(route.PartKey(part), value)
	require.NoError(t, err)
	require.Equal(t, site, *read.Site)
	require.Contains(t, string(value), `"targets":[{"weight":1,"filters":{"timeout":1000000000,"status":503,"tls":{"host":"a.org","pool":"default/a/https"}}}]`)
}
