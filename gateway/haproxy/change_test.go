package haproxy_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// TestAnyHistoryOfChangesEndsWhereAPlanFromNothingDoes changes the backends of some routes and pools again and again, beside routes that come, go and get
// other limits, and starts of HAProxy, with an old file, too. `make soak` has more of them (BURANO_GATEWAY_CHANGES).
func TestAnyHistoryOfChangesEndsWhereAPlanFromNothingDoes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	process := haproxytest.New(t)
	config := process.Config()
	config.WriteAfter = time.Hour
	p := open(t, config)

	backends := func(most int) (list []route.Backend) {
		for _, address := range random.Perm(30)[:random.IntN(most+1)] {
			ready := random.IntN(3) > 0
			list = append(list, route.Backend{Address: fmt.Sprintf("127.0.1.%d", address), Port: 8080, Ready: ready, Draining: !ready && random.IntN(2) > 0})
		}
		return list
	}
	var routes []route.Route
	appear := func() {
		r := web(haproxytest.FreePort(t), backends(4)...)
		r.Service = fmt.Sprint("service-", r.GatewayPort)
		routes = append(routes, r)
	}
	site := route.Site{Namespace: "default", Ingress: "site"}
	h := haproxy.Web{}
	h.Listeners = []route.Listener{{Port: haproxytest.FreePort(t)}}
	for i := range 4 {
		pool := route.Pool{Namespace: "default", Service: fmt.Sprint("pool-", i), Port: "80", Backends: backends(4)}
		h.Pools = append(h.Pools, pool)
		host := fmt.Sprintf("host-%d.example.org", i)
		site.Paths = append(site.Paths, route.Path{Host: host, Path: "/", Pool: pool.Name()})
		filtered := route.Target{Pool: pool.Name(), Weight: 1, Filters: &route.Filters{Host: "inside.example.org"}}
		site.Paths = append(site.Paths, route.Path{Host: host, Path: "/filtered", Port: h.Listeners[0].Port, Targets: []route.Target{filtered}})
	}
	h.Sites = []route.Site{site}
	for range 5 {
		appear()
	}
	everything := func() {
		t.Helper()
		outcome, err := p.Apply(t.Context(), routes, h)
		require.NoError(t, err)
		require.Empty(t, outcome.Refused)
		require.False(t, outcome.Waiting)
	}
	everything()
	rounds := 40
	if text := os.Getenv("BURANO_GATEWAY_CHANGES"); text != "" {
		var err error
		rounds, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	alone, others := 0, 0
	for range rounds {
		switch random.IntN(20) {
		case 0:
			appear()
			everything()
		case 1:
			if gone := random.IntN(len(routes)); len(routes) > 2 {
				routes = append(routes[:gone], routes[gone+1:]...)
			}
			everything()
		case 2:
			process.Stop()
			require.NoError(t, process.Reload(t.Context()))
			haproxytest.Wait(t, "HAProxy", func() error { _, err := p.Worker(); return err })
		}
		most := 5
		if random.IntN(10) == 0 {
			most = 20
		}
		var changed []route.Route
		var pools []route.Pool
		for range random.IntN(3) {
			r := &routes[random.IntN(len(routes))]
			r.Backends = backends(most)
			if random.IntN(20) == 0 {
				r.Connections = random.IntN(100)
			}
			changed = append(changed, *r)
		}
		for range random.IntN(3) {
			pool := &h.Pools[random.IntN(len(h.Pools))]
			pool.Backends = backends(most)
			pools = append(pools, *pool)
		}
		if _, done := p.Change(changed, pools); done {
			alone++
		} else {
			others++
			everything()
		}
		require.NoError(t, p.FromNothing(t.Context(), routes, h))
	}
	t.Logf("%d of %d changes without a look at the others", alone, alone+others)
	require.Greater(t, alone, others)
}

func TestAServerChangesWithoutALookAtTheOthersAndTheFileFollows(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	config.WriteAfter = 100 * time.Millisecond
	p := open(t, config)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	_, done := p.Change([]route.Route{web(port, a.Ready())}, nil)
	require.False(t, done, "nothing is served yet")
	apply(t, p, web(port, a.Ready()), web(other, a.Ready()))
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)

	written := func(wanted string) {
		t.Helper()
		for _, file := range []string{config.ConfigFile, config.ConfigFile + ".last-good"} {
			haproxytest.Wait(t, "the file", func() error {
				content, err := os.ReadFile(file)
				if !strings.Contains(string(content), wanted) {
					err = errors.Join(err, errors.New("it is behind"))
				}
				return err
			})
		}
	}
	for range 10 {
		for _, backend := range []*haproxytest.Backend{b, a} {
			changed, done := p.Change([]route.Route{web(port, backend.Ready())}, nil)
			require.True(t, done)
			require.Equal(t, 2, changed)
			answer, err := haproxytest.Get(t.Context(), port)
			require.NoError(t, err)
			require.Equal(t, backend.Name, answer)
		}
	}
	changed, done := p.Change([]route.Route{web(port, b.Ready())}, nil)
	require.True(t, done)
	require.Equal(t, 2, changed)
	written(b.Address.String())
	changed, done = p.Change([]route.Route{web(port, b.Ready())}, nil)
	require.True(t, done)
	require.Zero(t, changed, "what is as wanted is left alone")

	_, done = p.Change([]route.Route{web(haproxytest.FreePort(t), b.Ready())}, nil)
	require.False(t, done, "a port that nobody listens on")
	limited := web(port, b.Ready())
	limited.ClientConnections = 1000
	_, done = p.Change([]route.Route{limited}, nil)
	require.False(t, done, "more than backends has changed")
	var many []route.Backend
	for i := range 20 {
		many = append(many, route.Backend{Address: fmt.Sprintf("127.0.1.%d", i+1), Port: 8080, Draining: true})
	}
	changed, done = p.Change([]route.Route{web(port, append(many, b.Ready())...)}, nil)
	require.True(t, done)
	require.Equal(t, 20, changed)
	changed, done = p.Change([]route.Route{web(port, b.Ready())}, nil)
	require.True(t, done)
	require.Equal(t, 20, changed)
	unharmed, failed, _ := load.Stop()
	require.Empty(t, failed)
	t.Logf("%d requests, none failed", unharmed)

	require.NoError(t, p.Close())
	_, done = p.Change([]route.Route{web(port, a.Ready())}, nil)
	require.False(t, done)
}

// TestAnHAProxyThatReadAnOldFileGetsTheServersOfNow has HAProxy start anew before the file follows a change.
func TestAnHAProxyThatReadAnOldFileGetsTheServersOfNow(t *testing.T) {
	process := haproxytest.New(t)
	config := process.Config()
	config.WriteAfter = time.Hour
	ended := make(chan struct{}, 10)
	config.Ended = func() { ended <- struct{}{} }
	p := open(t, config)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	answers := func(name string) {
		t.Helper()
		haproxytest.Wait(t, name, func() error {
			answer, err := haproxytest.Get(t.Context(), port)
			if err == nil && answer != name {
				err = fmt.Errorf("answer from %s", answer)
			}
			return err
		})
	}
	apply(t, p, web(port, a.Ready()))
	_, done := p.Change([]route.Route{web(port, b.Ready())}, nil)
	require.True(t, done)
	answers("b")
	process.KillWorkers(t)
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		require.Fail(t, "nobody says that the worker has ended")
	}
	require.NoError(t, process.Reload(t.Context()))
	answers("a")
	_, done = p.Change([]route.Route{web(port, b.Ready())}, nil)
	require.False(t, done, "another process answers")
	require.Equal(t, 2, apply(t, p, web(port, b.Ready())).Changed)
	answers("b")
	require.NoError(t, p.FromNothing(t.Context(), []route.Route{web(port, b.Ready())}, haproxy.Web{}))

	_, done = p.Change([]route.Route{web(port, a.Ready())}, nil)
	require.True(t, done)
	require.NoError(t, p.Close())
	process.Stop()
	require.NoError(t, process.Reload(t.Context()))
	answers("a")
}
