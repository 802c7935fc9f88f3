package haproxy_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// restricted is a path of an Ingress with filters.
func restricted(path string, pool route.Pool, f route.Filters) route.Path {
	return route.Path{Host: "a.org", Path: path, Pool: route.ClosedPool("default").Name(), Rules: []route.Rule{{Targets: []route.Target{through(pool, f)}}}}
}

// onlyFrom admits clients of an address.
func onlyFrom(address string) route.Filters {
	return route.Filters{Access: &route.Access{Allow: []netip.Prefix{netip.MustParsePrefix(address + "/32")}}}
}

// TestAPathWhoseRulesWaitForAReloadIsServedAsBefore gives a path its first rule, a second one and none, while a reload is due.
func TestAPathWhoseRulesWaitForAReloadIsServedAsBefore(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	config.ReloadGap = time.Hour
	l := &webLab{process: process, proxy: open(t, config), plain: haproxytest.FreePort(t), safe: haproxytest.FreePort(t)}
	a, b := echo(t, "a"), echo(t, "b")
	plain := route.Path{Host: "a.org", Path: "/admin", Pool: a.Name()}
	serve := func(admin route.Path, further ...route.Path) haproxy.Outcome {
		t.Helper()
		paths := append([]route.Path{{Host: "a.org", Path: "/", Pool: b.Name()}, admin}, further...)
		return l.serve(t, route.HTTP{Pools: []route.Pool{a, b}, Sites: []route.Site{site("one", paths...)}})
	}
	again := func() { // the worker is another one, and the pause over
		l.process.Stop()
		l.proxy = open(t, config)
	}
	require.True(t, serve(plain).Reloaded)
	for _, next := range []route.Path{
		restricted("/admin", a, onlyFrom("192.0.2.1")),
		restricted("/admin", a, route.Filters{OnlyTLS: true}),
		{Host: "a.org", Path: "/admin", Pool: route.ClosedPool("default").Name(), Rules: []route.Rule{
			{Match: &route.Match{Headers: []route.Pair{{Name: "Canary", Value: "always"}}}, Targets: []route.Target{all(b)}}, {Targets: []route.Target{all(a)}},
		}},
		{Host: "a.org", Path: "/admin", Pool: route.ClosedPool("default").Name(), Rules: []route.Rule{{Match: &route.Match{Regex: "/admin(/|$)(.*)"}, Targets: []route.Target{all(a)}}}},
	} {
		require.True(t, serve(next, route.Path{Host: "a.org", Path: "/new", Pool: a.Name()}).Waiting)
		l.goes(t, "http://a.org/admin", "a")
		l.goes(t, "http://a.org/new", "a")
		require.True(t, serve(next).Waiting)
		l.goes(t, "http://a.org/new", "b")
		require.False(t, serve(plain).Waiting, "it was taken back")
		l.goes(t, "http://a.org/admin", "a")
		l.goes(t, "http://a.org/new", "b")
	}
	again()
	serve(restricted("/admin", a, onlyFrom("192.0.2.1")))
	l.goes(t, "http://a.org/admin", "403")
	require.True(t, serve(plain).Waiting)
	l.goes(t, "http://a.org/admin", "a")
	again()
	serve(plain)
	l.goes(t, "http://a.org/admin", "a")
}

// gets is the status of a request with a path as it is.
func (l *webLab) gets(t *testing.T, host, path string) string {
	t.Helper()
	connection, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.plain))
	require.NoError(t, err)
	defer connection.Close()
	require.NoError(t, connection.SetDeadline(time.Now().Add(30*time.Second)))
	_, err = fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host)
	require.NoError(t, err)
	answer, err := io.ReadAll(connection)
	require.NoError(t, err)
	fields := strings.Fields(string(answer))
	require.Greater(t, len(fields), 1, "%s%s", host, path)
	return fields[1]
}

// at is a path of another host.
func at(host string, p route.Path) route.Path { p.Host = host; return p }

// TestRulesOfAccessConcernTheirNamespaceAlone has a path of another namespace, one that demands HTTPS, and hosts above and beside the ones with rules.
func TestRulesOfAccessConcernTheirNamespaceAlone(t *testing.T) {
	l := newWebLab(t)
	a, b := echo(t, "a"), echo(t, "b")
	open := func(host, path string) route.Path { return route.Path{Host: host, Path: path, Pool: b.Name()} }
	guarded := restricted("/admin", a, onlyFrom("192.0.2.1"))
	h := route.HTTP{Pools: []route.Pool{a, b}, Sites: []route.Site{
		{Namespace: "git", Ingress: "git", Paths: []route.Path{open("git.org", "/"), open("a.org", "/git")}},
		site("one",
			open("a.org", "/"), guarded, restricted("/ops", a, onlyFrom("127.0.0.1")), at("git.org", restricted("/zzz", a, route.Filters{Limits: &route.Limits{PerSecond: 1, Burst: 1}})),
			open("tls.org", "/"), at("tls.org", restricted("/safe", a, route.Filters{OnlyTLS: true})), at("one.org", restricted("/", a, onlyFrom("127.0.0.1"))),
			open("*.wide.org", "/"), at("x.wide.org", guarded), at("closed.org", restricted("/admin", a, route.Filters{Status: 503})), open("closed.org", "/"),
		),
	}}
	l.serve(t, h)
	for _, one := range [][3]string{
		{"a.org", "/admin", "403"}, {"a.org", "/x", "200"}, {"a.org", "/ops", "200"},
		{"a.org", "//admin", "400"}, {"a.org", "/%61dmin", "400"}, {"a.org", "/ops/../admin", "400"}, {"x.wide.org", "//admin", "400"}, {"closed.org", "//admin", "400"},
		{"git.org", "/group%2Fproject", "200"}, {"git.org", "//x", "200"}, {"a.org", "/git//x", "200"}, {"git.org", "/zzz", "200"},
		{"tls.org", "//x", "200"}, {"tls.org", "/safe", "308"}, {"one.org", "//x", "200"}, {"unknown.org", "//x", "404"},
	} {
		require.Equal(t, one[2], l.gets(t, one[0], one[1]), "%s%s", one[0], one[1])
	}
	h.Sites[1].Paths = append(h.Sites[1].Paths, open("b.org", "/"), at("b.org", guarded))
	require.False(t, l.serve(t, h).Reloaded, "guarded hosts come at run time")
	require.Equal(t, "400", l.gets(t, "b.org", "//admin"))
	h.Sites[1].Paths = h.Sites[1].Paths[:len(h.Sites[1].Paths)-1]
	require.False(t, l.serve(t, h).Reloaded)
	require.Equal(t, "200", l.gets(t, "b.org", "//admin"))
}

func TestNoLongPathLeadsAroundAGuardedRegularExpression(t *testing.T) {
	l := newWebLab(t)
	a, b := echo(t, "a"), echo(t, "b")
	guarded := restricted("/admin", a, onlyFrom("192.0.2.1"))
	guarded.Rules[0].Match = &route.Match{Regex: "/admin(/|$)(.*)"}
	h := route.HTTP{Pools: []route.Pool{a, b}, Sites: []route.Site{
		site("one", guarded, route.Path{Host: "a.org", Path: "/", Pool: b.Name()}, route.Path{Host: "other.org", Path: "/", Pool: b.Name()}),
	}}
	l.serve(t, h)
	long := strings.Repeat("x", 1100)
	for _, one := range [][3]string{
		{"a.org", "/admin/x", "403"}, {"a.org", "/x", "200"}, {"a.org", "/admin/" + long, "414"}, {"other.org", "/admin/" + long, "200"}, {"a.org", "/x?" + long, "200"},
	} {
		require.Equal(t, one[2], l.gets(t, one[0], one[1]), "%.20s", one[1])
	}
}

func TestNoOtherFormOfACharacterLeadsAroundAGuardedPath(t *testing.T) {
	l := newWebLab(t)
	a, b := echo(t, "a"), echo(t, "b")
	denied := onlyFrom("192.0.2.1")
	var paths []route.Path
	for host, path := range map[string]string{"at.org": "/@admin", "lower.org": "/caf%C3%A9", "raw.org": "/a%21b", "plain.org": "/admin"} {
		paths = append(paths, at(host, restricted(path, a, denied)), route.Path{Host: host, Path: "/", Pool: b.Name()})
	}
	for host, regex := range map[string]string{"regex.org": `/\@(?:x|y){1,2}(/|$)`, "groups.org": `/(?:x|y){1,2}[a-z]+(/|$)(.*)`} {
		guarded := at(host, restricted("/", a, denied))
		guarded.Rules[0].Match = &route.Match{Regex: regex}
		paths = append(paths, guarded, route.Path{Host: host, Path: "/", Pool: b.Name()})
	}
	l.serve(t, route.HTTP{Pools: []route.Pool{a, b}, Sites: []route.Site{site("one", paths...)}})
	for _, one := range [][3]string{
		{"at.org", "/@admin", "403"}, {"at.org", "/%40admin", "400"}, {"at.org", "/x-y_z~.html", "200"}, {"at.org", "/x?q=%40", "200"},
		{"lower.org", "/caf%C3%A9", "403"}, {"lower.org", "/caf%c3%a9", "400"}, {"raw.org", "/a%21b", "403"}, {"raw.org", "/a!b", "400"},
		{"plain.org", "/a%20b@c", "200"}, {"regex.org", "/@x", "403"}, {"regex.org", "/%40x", "400"}, {"groups.org", "/xa", "403"}, {"groups.org", "/a%20b@c", "200"},
	} {
		require.Equal(t, one[2], l.gets(t, one[0], one[1]), "%s%s", one[0], one[1])
	}
}

// TestALongRegularExpressionTakesNoPathsThatAreNamed has one that matches everything.
func TestALongRegularExpressionTakesNoPathsThatAreNamed(t *testing.T) {
	l := newWebLab(t)
	a, b, c := echo(t, "a"), echo(t, "b"), echo(t, "c")
	regex := func(text string, pool route.Pool) route.Path {
		path := restricted("/", pool, route.Filters{Body: 1 << 20})
		path.Rules[0].Match = &route.Match{Regex: text}
		return path
	}
	h := route.HTTP{Pools: []route.Pool{a, b, c}, Sites: []route.Site{site("one",
		route.Path{Host: "a.org", Path: "/admin", Pool: a.Name()}, route.Path{Host: "a.org", Path: "/api", Pool: a.Name()}, restricted("/deep", a, route.Filters{Body: 1 << 20}),
		regex("/.*|/"+strings.Repeat("a", 200), b), regex("/api(/|$)(.*)", c), regex("/v[0-9]+(/|$)", a), regex("/v[0-9]+/x(/|$)", c),
	)}}
	l.serve(t, h)
	for path, to := range map[string]string{"/admin": "a", "/deep/x": "a", "/other": "b", "/api/x": "c", "/apis": "b"} {
		l.goes(t, "http://a.org"+path, to)
	}
	h.Sites[0].Paths = slices.Delete(h.Sites[0].Paths, 3, 4)
	l.serve(t, h)
	for path, to := range map[string]string{"/v1/y": "a", "/v1/x": "c", "/other": "404"} {
		l.goes(t, "http://a.org"+path, to)
	}
}

func TestAPathWithRulesWhosePoolIsMissingLeadsNowhere(t *testing.T) {
	l := newWebLab(t)
	a, b := echo(t, "a"), echo(t, "b")
	h := route.HTTP{Pools: []route.Pool{b}, Sites: []route.Site{site("one", restricted("/admin", a, onlyFrom("127.0.0.1")), route.Path{Host: "a.org", Path: "/", Pool: b.Name()})}}
	l.serve(t, h)
	l.goes(t, "http://a.org/admin", "404")
	l.goes(t, "http://a.org/", "b")
	h.Pools = append(h.Pools, a)
	l.serve(t, h)
	l.goes(t, "http://a.org/admin", "a")
}
