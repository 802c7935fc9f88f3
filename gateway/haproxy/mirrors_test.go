package haproxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// recorder is a backend that sends each of its requests to the channel, and answers with much.
func recorder(t *testing.T, name string) (route.Pool, chan string) {
	t.Helper()
	requests := make(chan string, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, _ := io.ReadAll(r.Body)
		requests <- fmt.Sprintf("%s %s %s a=%s host=%s %d", r.Method, r.URL, r.Proto, strings.Join(r.Header.Values("A"), ","), r.Host, len(content))
		fmt.Fprint(w, name, " ", strings.Repeat("x", 100_000))
	}))
	t.Cleanup(server.Close)
	return poolAt(name, "http", server.Listener), requests
}

// silent is a backend that takes connections and never answers.
func silent(t *testing.T) route.Pool {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return poolAt("silent", "http", listener)
}

func copies(part, of int, to ...route.Target) *route.Mirrors {
	m := &route.Mirrors{}
	for _, one := range to {
		m.To = append(m.To, route.Mirror{Target: one, Part: part, Of: of})
	}
	return m
}

func TestCopiesOfRequestsReachFurtherBackends(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	a, mute, none := echo(t, "a"), silent(t), route.Pool{Namespace: "default", Service: "none", Port: "http"}
	first, atFirst := recorder(t, "first")
	second, atSecond := recorder(t, "second")
	changed := route.Filters{
		Host: "other.org", Rewrite: &route.Rewrite{Path: "/new"}, Request: &route.Headers{Set: []route.Pair{{Name: "A", Value: "b"}}}, Mirrors: copies(1, 1, all(first), all(second)),
	}
	h := route.HTTP{Pools: []route.Pool{a, first, second, mute, none}, Sites: []route.Site{httpRoute("one", 0,
		l.path("", "/", through(a, route.Filters{Mirrors: copies(1, 1, all(first))})), l.path("", "/changed", through(a, changed)),
		l.path("", "/nowhere", through(a, route.Filters{Mirrors: copies(1, 1, all(mute), all(none), route.Target{Pool: "default/gone/http", Weight: 1})})),
		l.path("", "/some", through(a, route.Filters{Mirrors: copies(1, 4, all(first))})),
	)}}
	require.NoError(t, route.Part{Site: &h.Sites[0]}.Validate())
	l.serve(t, h)
	next := func(from chan string) string {
		select {
		case text := <-from:
			return text
		case <-time.After(20 * time.Second):
			return "no copy"
		}
	}
	response, body := l.ask(t, "http://any.org/x?q=1", "A=1")
	require.Equal(t, http.StatusOK, response.StatusCode)
	require.True(t, strings.HasPrefix(body, "a /x "), body)
	require.Equal(t, "GET /x?q=1 HTTP/1.1 a=1 host=any.org 0", next(atFirst))
	_, body = l.ask(t, "http://any.org/changed?q=1", "A=1")
	require.True(t, strings.HasPrefix(body, "a /new "), body)
	for _, at := range []chan string{atFirst, atSecond} {
		require.Equal(t, "GET /new?q=1 HTTP/1.1 a=b host=other.org 0", next(at))
	}

	// Content is copied whole, or the request is not.
	send := func(content io.Reader) {
		t.Helper()
		response, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/put", l.plain), "text/plain", content)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	send(strings.NewReader(strings.Repeat("x", 8192)))
	require.True(t, strings.HasSuffix(next(atFirst), " 8192"))
	send(strings.NewReader(strings.Repeat("x", 8193)))
	send(io.MultiReader(strings.NewReader("of no stated length")))
	send(strings.NewReader("short"))
	require.True(t, strings.HasSuffix(next(atFirst), " 5"))

	// The request does not wait for backends of copies: hundreds of these copies are never answered.
	start := time.Now()
	for range 300 {
		l.goes(t, "http://any.org/nowhere", "a")
	}
	require.Less(t, time.Since(start), 9*time.Second, "less than the patience with one copy")
	require.NoError(t, l.proxy.FromNothing(t.Context(), nil, haproxy.Web{HTTP: l.listening(h)}))

	// A restart of the daemon changes nothing, and servers of copies come at run time.
	require.NoError(t, l.proxy.Close())
	l.proxy = open(t, l.process.Config())
	require.False(t, l.serve(t, h).Reloaded)
	h.Pools[1].Backends, h.Pools[2].Backends = h.Pools[2].Backends, h.Pools[1].Backends
	require.False(t, l.serve(t, h).Reloaded)
	require.Eventually(t, func() bool {
		l.goes(t, "http://any.org/moved", "a")
		select {
		case text := <-atSecond:
			return strings.HasPrefix(text, "GET /moved ")
		case <-time.After(100 * time.Millisecond): // copies that nobody answers may be in flight still
			return false
		}
	}, 30*time.Second, time.Millisecond)

	// Without copies HAProxy loads no action.
	h.Sites[0].Paths = h.Sites[0].Paths[:1]
	h.Sites[0].Paths[0].Targets = []route.Target{all(a)}
	require.True(t, l.serve(t, h).Reloaded)
	l.goes(t, "http://any.org/x", "a")
	content, err := os.ReadFile(filepath.Join(l.process.Directory, "haproxy.cfg"))
	require.NoError(t, err)
	require.NotContains(t, string(content), "lua")
}

func TestAPartOfTheRequestsIsCopied(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	a := echo(t, "a")
	some, atSome := recorder(t, "some")
	h := route.HTTP{Pools: []route.Pool{a, some}, Sites: []route.Site{httpRoute("one", 0, l.path("", "/", through(a, route.Filters{Mirrors: copies(1, 4, all(some))})))}}
	l.serve(t, h)
	for range 400 {
		l.goes(t, "http://any.org/", "a")
	}
	// 100 are expected, with a standard deviation of 8.7.
	require.Eventually(t, func() bool { return len(atSome) > 40 }, 20*time.Second, 10*time.Millisecond)
	require.Less(t, len(atSome), 160)
}

func TestNoCopyReachesABackendWhoseCertificateCannotBeChecked(t *testing.T) {
	l := ruleLab{newWebLab(t)}
	inside := haproxytest.NewAuthority(t, "inside")
	a, safe := echo(t, "a"), safeEcho(t, "safe", inside, "pod.org")
	to := through(safe, route.Filters{TLS: &route.BackendTLS{Authorities: by(inside).Authorities, Host: "pod.org"}})
	h := route.HTTP{Pools: []route.Pool{a, safe}, Sites: []route.Site{httpRoute("one", 0, l.path("", "/", through(a, route.Filters{Mirrors: copies(1, 1, to)})))}}
	part := route.Part{Site: &h.Sites[0]}
	value, err := route.EncodePart(part)
	require.NoError(t, err)
	read, err := route.DecodePart(route.PartKey(part), value)
	require.NoError(t, err)
	require.Equal(t, h.Sites[0], *read.Site)
	l.serve(t, h)
	l.goes(t, "http://any.org/", "a")
	written := func() string {
		content, err := os.ReadFile(filepath.Join(l.process.Directory, "haproxy.cfg"))
		require.NoError(t, err)
		return string(content)
	}
	require.NotContains(t, written(), "lua")
	h.Authorities = []route.Authorities{{PEM: inside.PEM}}
	l.serve(t, h)
	require.Contains(t, written(), "lua.burano-mirror")
	l.goes(t, "http://any.org/", "a")
}
