package haproxy_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/route"
)

// ruleLab is a webLab whose ports belong to Gateways. Its third listener passes TLS sessions through.
type ruleLab struct{ *webLab }

func (l ruleLab) serve(t require.TestingT, h route.HTTP, certificates ...haproxy.Certificate) haproxy.Outcome {
	outcome, err := l.proxy.Apply(context.Background(), nil, haproxy.Web{HTTP: l.listening(h), Certificates: certificates})
	require.NoError(t, err)
	require.Empty(t, outcome.Refused)
	return outcome
}

func (l ruleLab) listening(h route.HTTP) route.HTTP {
	h.Listeners = []route.Listener{{Port: l.plain, NoIngress: true}, {Port: l.safe, TLS: true, Passes: true, NoIngress: true}}
	return h
}

func (l ruleLab) path(host, path string, targets ...route.Target) route.Path {
	return route.Path{Port: l.plain, Host: host, Path: path, Targets: targets}
}

func exact(p route.Path) route.Path { p.Exact = true; return p }

func when(p route.Path, m route.Match) route.Path { p.Match = &m; return p }

func all(p route.Pool) route.Target { return route.Target{Pool: p.Name(), Weight: 1} }

func through(p route.Pool, f route.Filters) route.Target {
	return route.Target{Pool: p.Name(), Weight: 1, Filters: &f}
}

func httpRoute(name string, age time.Duration, paths ...route.Path) route.Site {
	return route.Site{Namespace: "default", Kind: route.KindHTTPRoute, Name: name, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(age), Paths: paths}
}

func TestTheBestMatchOfARequestIsFound(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	a, b, c, d := echo(t, "a"), echo(t, "b"), echo(t, "c"), echo(t, "d")
	header := func(name, value string) route.Match {
		return route.Match{Headers: []route.Pair{{Name: name, Value: value}}}
	}
	h := route.HTTP{Pools: []route.Pool{a, b, c, d}}
	h.Sites = []route.Site{
		httpRoute("one", 0,
			l.path("", "/", all(a)), l.path("", "/long/er", all(b)), exact(l.path("", "/long/er/exact", all(c))),
			when(l.path("", "/", all(d)), header("Version", "two")),
			when(l.path("", "/v", all(b)), route.Match{Headers: []route.Pair{{Name: "Version", Value: "two"}, {Name: "Color", Value: `a "q" 'x' \ %[src]`}}}),
			when(l.path("", "/v", all(c)), route.Match{Method: "GET", Queries: []route.Pair{{Name: "q", Value: "a b"}}}),
			l.path("*.example.com", "/", all(b)), l.path("*.deep.example.com", "/", all(c)), l.path("www.example.com", "/", all(d)),
		),
		httpRoute("two", time.Hour, when(l.path("", "/tie", all(b)), header("A", "1")), when(l.path("", "/tie", all(c)), header("B", "1"))),
		{Namespace: "default", Ingress: "ingress", Paths: []route.Path{{Host: "ingress.org", Path: "/", Pool: d.Name()}}},
	}
	for _, s := range h.Sites {
		require.NoError(t, route.Part{Site: &s}.Validate())
	}
	l.serve(t, h)
	for _, one := range []struct{ url, header, to string }{
		{"http://any.org/", "", "a"}, {"http://any.org/long/er/x", "", "b"}, {"http://any.org/long/error", "", "a"}, {"http://any.org/long/er/exact", "", "c"},
		{"http://any.org/x", "Version=two", "d"}, {"http://any.org/x", "version=two", "d"}, {"http://any.org/x", "Version=Two", "a"},
		{"http://any.org/long/er", "Version=two", "b"}, {"http://any.org/v", "", "a"}, {"http://any.org/v", "Version=two", "d"},
		{"http://any.org/v", `Version=two;Color=a "q" 'x' \ %[src]`, "b"}, {"http://any.org/v?q=a+b", "", "c"}, {"http://any.org/v?q=a%20b", "", "c"}, {"http://any.org/v?q=a", "", "a"},
		{"http://any.org/v?q=a+b", `Version=two;Color=a "q" 'x' \ %[src]`, "c"},
		{"http://x.example.com/", "", "b"}, {"http://x.y.example.com/", "", "b"}, {"http://x.y.deep.example.com/", "", "c"}, {"http://www.example.com/", "", "d"}, {"http://www.example.com/x", "Version=two", "d"},
		{"http://any.org/tie", "A=1;B=1", "b"}, {"http://any.org/tie", "B=1", "c"}, {"http://ingress.org/", "", "a"},
	} {
		var headers []string
		if one.header != "" {
			headers = strings.Split(one.header, ";")
		}
		_, body := l.ask(t, one.url, headers...)
		name, _, _ := strings.Cut(body, " ")
		require.Equal(t, one.to, name, "%+v", one)
	}

	h.Sites[0].Paths[0].Targets = []route.Target{all(b)}
	h.Sites[0].Paths = append(h.Sites[0].Paths, l.path("new.org", "/", all(c)))
	require.False(t, l.serve(t, h).Reloaded, "hosts, paths and their targets change at run time")
	l.goes(t, "http://any.org/", "b")
	l.goes(t, "http://new.org/", "c")
}

// TestABackendIsAskedByHTTP2WhenItsServiceSaysSo has a backend that speaks HTTP/2 only, without TLS, which other backends replace at run time.
func TestABackendIsAskedByHTTP2WhenItsServiceSaysSo(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	speaks := func(name string) route.Pool {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name, " ", r.Proto) }))
		server.Config.Protocols = new(http.Protocols)
		server.Config.Protocols.SetUnencryptedHTTP2(true)
		server.Start()
		t.Cleanup(server.Close)
		return poolAt("h2", "http", server.Listener)
	}
	plain, pool := echo(t, "plain"), speaks("first")
	h := route.HTTP{Pools: []route.Pool{plain, pool}, Sites: []route.Site{httpRoute("one", 0,
		l.path("", "/", through(pool, route.Filters{H2C: true})),
		l.path("", "/changed", through(pool, route.Filters{H2C: true, Request: &route.Headers{Set: []route.Pair{{Name: "a", Value: "b"}}}})),
		l.path("", "/plain", all(plain)),
	)}}
	l.serve(t, h)
	for path, body := range map[string]string{"/": "first HTTP/2.0", "/changed": "first HTTP/2.0", "/plain": "plain /plain"} {
		_, said := l.ask(t, "http://any.org"+path)
		require.Equal(t, body, strings.Join(strings.Fields(said)[:2], " "))
	}
	h.Pools[1] = speaks("second")
	require.False(t, l.serve(t, h).Reloaded)
	_, said := l.ask(t, "http://any.org/")
	require.Equal(t, "second HTTP/2.0", said)
}

func TestRequestsAreSharedByWeight(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	a, b, c := echo(t, "a"), echo(t, "b"), echo(t, "c")
	h := route.HTTP{Pools: []route.Pool{a, b, c}}
	weights := func(x, y, z int) {
		h.Sites = []route.Site{httpRoute("one", 0, l.path("", "/", route.Target{Pool: a.Name(), Weight: x}, route.Target{Pool: b.Name(), Weight: y}, route.Target{Pool: c.Name(), Weight: z}))}
	}
	count := func() map[string]int {
		counts := map[string]int{}
		for range 400 {
			_, body := l.ask(t, "http://any.org/")
			counts[body[:1]]++
		}
		return counts
	}
	weights(70, 30, 0)
	l.serve(t, h)
	counts := count()
	require.InDelta(t, 280, counts["a"], 60)
	require.InDelta(t, 120, counts["b"], 60)
	require.Zero(t, counts["c"])
	weights(0, 1, 99999)
	require.False(t, l.serve(t, h).Reloaded, "weights change at run time")
	counts = count()
	require.Zero(t, counts["a"])
	require.Greater(t, counts["c"], 380)
	weights(0, 5, 0)
	require.False(t, l.serve(t, h).Reloaded)
	require.Equal(t, map[string]int{"b": 400}, count())
}

func TestFiltersChangeRequestsAndAnswers(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Gone", "here")
		if r.URL.Path == "/slow" {
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, "%s %s set=%s add=%s gone=%s", r.Host, r.URL.RequestURI(), r.Header.Values("X-Set"), r.Header.Values("X-Add"), r.Header.Values("X-Gone"))
	}))
	t.Cleanup(server.Close)
	a := poolAt("a", "http", server.Listener)
	evil := `"' %[src] \ #` + "\u00e9$(x)"
	four, one := 4, 1
	h := route.HTTP{Pools: []route.Pool{a}, Sites: []route.Site{httpRoute("one", 0,
		l.path("", "/headers", through(a, route.Filters{
			Request:  &route.Headers{Set: []route.Pair{{Name: "X-Set", Value: evil}}, Add: []route.Pair{{Name: "X-Add", Value: "two"}}, Remove: []string{"X-Gone"}},
			Response: &route.Headers{Set: []route.Pair{{Name: "X-Answer", Value: evil}}, Remove: []string{"X-Gone"}},
		})),
		l.path("", "/one", through(a, route.Filters{Host: "other.org", Rewrite: &route.Rewrite{Path: "/two", Prefix: &four}})),
		l.path("", "/off", through(a, route.Filters{Rewrite: &route.Rewrite{Path: "/", Prefix: &four}})),
		l.path("", "/full", through(a, route.Filters{Rewrite: &route.Rewrite{Path: "/all"}})),
		l.path("", "/slow", through(a, route.Filters{Timeout: 200 * time.Millisecond})),
		l.path("", "/away", route.Target{Weight: 1, Filters: &route.Filters{Redirect: &route.Redirect{Scheme: "https", Host: "there.org", Port: 443, Code: 301}}}),
		l.path("", "/port", route.Target{Weight: 1, Filters: &route.Filters{Rewrite: &route.Rewrite{Path: "/x"}, Redirect: &route.Redirect{Scheme: "http", Port: 8080, Code: 302}}}),
		l.path("", "/p", route.Target{Weight: 1, Filters: &route.Filters{Rewrite: &route.Rewrite{Path: "/new", Prefix: &one}, Redirect: &route.Redirect{Scheme: "http", Port: 80, Code: 302}}}),
		l.path("", "/gone", route.Target{Weight: 1, Filters: &route.Filters{Status: 500}}),
	)}}
	require.NoError(t, route.Part{Site: &h.Sites[0]}.Validate())
	l.serve(t, h)
	response, body := l.ask(t, "http://any.org/headers", "X-Set=before", "X-Add=one", "X-Gone=yes")
	require.Equal(t, "any.org /headers set=["+evil+"] add=[one two] gone=[]", body)
	require.Equal(t, evil, response.Header.Get("X-Answer"))
	require.Empty(t, response.Header.Get("X-Gone"))
	for url, is := range map[string]string{
		"http://any.org/one/x?q=1": "other.org /two/x?q=1 ", "http://any.org/one": "other.org /two ", "http://any.org/off/x": "any.org /x ", "http://any.org/off": "any.org / ",
		"http://any.org/off/": "any.org / ", "http://any.org/full/x?q=1": "any.org /all?q=1 ",
	} {
		_, body := l.ask(t, url)
		require.True(t, strings.HasPrefix(body, is), "%s: %s", url, body)
	}
	for url, to := range map[string]string{
		"http://any.org/away/x?q=1": "https://there.org/away/x?q=1", "http://any.org/port/x?q=1": "http://any.org:8080/x?q=1", "http://any.org/p": "http://any.org/newp",
	} {
		response, _ := l.ask(t, url)
		require.Equal(t, to, response.Header.Get("Location"), url)
	}
	response, _ = l.ask(t, "http://any.org/slow")
	require.Equal(t, http.StatusGatewayTimeout, response.StatusCode)
	response, _ = l.ask(t, "http://any.org/gone")
	require.Equal(t, http.StatusInternalServerError, response.StatusCode)
}

func TestTLSSessionsPassThroughByTheNameOfTheServer(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	inside := echo(t, "inside")
	pod := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "pod") }))
	t.Cleanup(pod.Close)
	sealed := poolAt("sealed", "https", pod.Listener)
	session := func(host string) route.Site {
		return route.Site{Namespace: "default", Kind: route.KindTLSRoute, Name: "sealed", Sessions: []route.Session{{Port: l.safe, Host: host, Targets: []route.Target{all(sealed)}}}}
	}
	safe := l.path("open.org", "/", all(inside))
	safe.Port = l.safe
	h := route.HTTP{Pools: []route.Pool{inside, sealed}, Sites: []route.Site{httpRoute("one", 0, safe), session("pod.org")}}
	l.serve(t, h, haproxy.Certificate{Name: "open", Hosts: []string{"open.org"}, PEM: pair(t, "open.org", 0)})
	response, body := l.ask(t, "https://pod.org/")
	require.Equal(t, "pod", body)
	require.Equal(t, pod.Certificate().Raw, response.TLS.PeerCertificates[0].Raw)
	response, body = l.ask(t, "https://open.org/x")
	require.Contains(t, body, "inside /x for=127.0.0.1 proto=https")
	require.Equal(t, []string{"open.org"}, response.TLS.PeerCertificates[0].DNSNames)

	h.Sites[1] = session("*.pods.org")
	require.False(t, l.serve(t, h, haproxy.Certificate{Name: "open", Hosts: []string{"open.org"}, PEM: pair(t, "open.org", 0)}).Reloaded, "names change at run time")
	_, body = l.ask(t, "https://a.b.pods.org/")
	require.Equal(t, "pod", body)

	plain, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe))
	require.NoError(t, err)
	defer plain.Close()
	_, err = io.WriteString(plain, "GET / HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	answer, _ := io.ReadAll(plain)
	require.Empty(t, answer, "what is not TLS is ended")
	anonymous, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, err, "without a name it is opened")
	require.NoError(t, anonymous.Close())
}

// TestTLSSessionsForNamesThatNobodyHasAreRefused has a port that passes sessions of one name through and opens sessions of another, which change at run
// time.
func TestTLSSessionsForNamesThatNobodyHasAreRefused(t *testing.T) {
	l := newWebLab(t)
	pod := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "pod") }))
	defer pod.Close()
	sealed := poolAt("sealed", "https", pod.Listener)
	gateway := func(hosts ...string) route.Site {
		site := route.Site{Namespace: "default", Kind: route.KindGateway, Name: "edge"}
		for _, host := range hosts {
			site.Opened = append(site.Opened, route.Opened{Port: l.safe, Host: host})
		}
		return site
	}
	listener := route.Listener{Port: l.safe, TLS: true, Passes: true, Names: true, NoIngress: true}
	serve := func(opened ...string) haproxy.Outcome {
		t.Helper()
		h := route.HTTP{Listeners: []route.Listener{listener}, Pools: []route.Pool{sealed}, Sites: []route.Site{
			gateway(opened...),
			{Namespace: "default", Kind: route.KindTLSRoute, Name: "sealed", Sessions: []route.Session{{Port: l.safe, Host: "*.pods.org", Targets: []route.Target{all(sealed)}}}},
		}}
		for _, site := range h.Sites {
			require.NoError(t, route.Part{Site: &site}.Validate())
		}
		outcome, err := l.proxy.Apply(t.Context(), nil, haproxy.Web{HTTP: h})
		require.NoError(t, err)
		return outcome
	}
	dials := func(host string) error {
		connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.safe), &tls.Config{ServerName: host, InsecureSkipVerify: true})
		if err == nil {
			err = connection.Close()
		}
		return err
	}
	serve("open.org", "special.pods.org")
	for _, host := range []string{"open.org", "special.pods.org", "a.pods.org"} {
		require.NoError(t, dials(host), host)
	}
	_, body := l.ask(t, "https://a.pods.org/")
	require.Equal(t, "pod", body)
	_, body = l.ask(t, "https://special.pods.org/")
	require.Contains(t, body, "Nothing has this host", "it is opened")
	for _, host := range []string{"", "other.org", "www.open.org"} {
		require.Error(t, dials(host), host)
	}
	require.False(t, serve("*.org").Reloaded, "names change at run time")
	require.NoError(t, dials("www.open.org"))
	require.Error(t, dials("other.com"))
	require.False(t, serve("").Reloaded)
	require.NoError(t, dials("other.com"), "any name")
	require.NoError(t, dials(""), "and none")

	require.False(t, serve().Reloaded)
	require.Error(t, dials("other.com"))
	listener.NoIngress = false
	serve()
	require.NoError(t, dials("other.com"), "Ingresses answer for any host")
	require.NoError(t, dials("a.pods.org"))
	sealed.Backends = nil
	serve()
	require.Error(t, dials("a.pods.org"), "nobody else opens what leads to nobody")
}

// TestWhatUsersWriteOfRoutesIsNoOtherConfiguration checks that a valid value has its effect, and that HAProxy accepts every valid one.
func TestWhatUsersWriteOfRoutesIsNoOtherConfiguration(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	b := echo(t, "b")
	value := rapid.OneOf(rapid.StringMatching(`[!-~]([ -~]{0,30}[!-~])?`), rapid.String(), rapid.SampledFrom([]string{"a\r\nb", "%[env(HOME)]", `\`, `"`, "'", "#", "x if TRUE", "\x00"}))
	name := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9._-]{1,12}`), rapid.String())
	type drawn struct {
		header, set route.Pair
		removed     string
	}
	draw := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) drawn {
		return drawn{route.Pair{Name: "X-" + name.Draw(r, "header"), Value: value.Draw(r, "value")}, route.Pair{Name: "X-Forwarded-Proto", Value: value.Draw(r, "set")}, "X-" + name.Draw(r, "removed")}
	}), 12, 12)
	for seed := range 8 { // each is a reload
		h := route.HTTP{Pools: []route.Pool{b}, Sites: []route.Site{httpRoute("one", 0)}}
		var valid []drawn
		for _, one := range draw.Example(int(time.Now().UnixNano()) + seed) {
			path := when(l.path("", fmt.Sprintf("/%d", len(valid)), through(b, route.Filters{Request: &route.Headers{Set: []route.Pair{one.set}, Remove: []string{one.removed}}})), route.Match{Headers: []route.Pair{one.header}})
			if (route.Part{Site: &route.Site{Namespace: "default", Kind: route.KindHTTPRoute, Name: "one", Paths: []route.Path{path}}}).Validate() == nil {
				valid, h.Sites[0].Paths = append(valid, one), append(h.Sites[0].Paths, path)
			}
		}
		l.serve(t, h)
		for i, one := range valid {
			if one.header.Value != strings.Trim(one.header.Value, " \t") {
				continue // a client cannot send it
			}
			connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
			require.NoError(t, err)
			_, err = fmt.Fprintf(connection, "GET /%d HTTP/1.1\r\nHost: any\r\n%s: %s\r\nConnection: close\r\n\r\n", i, one.header.Name, one.header.Value)
			require.NoError(t, err)
			answer, err := io.ReadAll(connection)
			require.NoError(t, err)
			require.NoError(t, connection.Close())
			require.Contains(t, string(answer), "proto="+strings.Trim(one.set.Value, " \t"), "%+q", one)
		}
	}
}
