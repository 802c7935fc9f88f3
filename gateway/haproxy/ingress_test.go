package haproxy_test

import (
	"net/netip"
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
	} {
		require.True(t, serve(next, route.Path{Host: "a.org", Path: "/new", Pool: a.Name()}).Waiting)
		l.goes(t, "http://a.org/admin", "a")
		l.goes(t, "http://a.org/new", "a")
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
