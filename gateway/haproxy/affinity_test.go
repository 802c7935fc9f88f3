package haproxy_test

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// named is a backend that answers each connection with its name.
func named(t *testing.T, name string) route.Backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, name)
			_ = connection.Close()
		}
	}()
	return backendAt(listener)
}

// whose are the backends of some clients, by their addresses.
func whose(t *testing.T, port uint16) map[string]string {
	t.Helper()
	found := map[string]string{}
	for i := range 24 {
		client := fmt.Sprintf("127.0.0.%d", 10+i)
		found[client] = from(t, port, client, "")
		require.NotEmpty(t, found[client])
	}
	return found
}

func TestAClientKeepsItsServer(t *testing.T) {
	process := haproxytest.New(t)
	p := open(t, process.Config())
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	r := web(port, named(t, "a"), named(t, "b"))
	r.Affinity = time.Hour
	apply(t, p, r)
	first := whose(t, port)
	spread := map[string]int{}
	for _, server := range first {
		spread[server]++
	}
	require.Len(t, spread, 2, "clients are spread over all servers")
	require.Equal(t, first, whose(t, port))

	// A newcomer takes no client away.
	r.Backends = append(r.Backends, named(t, "c"))
	_, done := p.Change([]route.Route{r}, nil)
	require.True(t, done)
	require.Equal(t, first, whose(t, port))

	// A reload, after which HAProxy remembers no client, moves none either unless there is a new server.
	r.Backends = r.Backends[:2]
	_, done = p.Change([]route.Route{r}, nil)
	require.True(t, done)
	require.True(t, apply(t, p, r, web(other, named(t, "other"))).Reloaded)
	require.Equal(t, first, whose(t, port))

	// Another gateway chooses the same servers.
	second := haproxytest.New(t)
	q, there := open(t, second.Config()), haproxytest.FreePort(t)
	same := r
	same.GatewayPort = there
	apply(t, q, same)
	require.Equal(t, first, whose(t, there))

	// A draining server gets no clients any more, not even its own.
	r.Backends[0].Ready, r.Backends[0].Draining = false, true
	_, done = p.Change([]route.Route{r}, nil)
	require.True(t, done)
	for client, server := range whose(t, port) {
		require.Equal(t, "b", server, client)
	}

	// The file has it, and a daemon that begins anew leaves it as it is.
	r.Backends[0].Ready, r.Backends[0].Draining = true, false
	apply(t, p, r)
	require.NoError(t, p.Close())
	p = open(t, process.Config())
	require.False(t, apply(t, p, r).Reloaded)
	r.Backends = append(r.Backends, named(t, "d"))
	require.False(t, apply(t, p, r).Reloaded)
	process.Stop()
	require.NoError(t, process.Reload(t.Context()))
	haproxytest.Wait(t, "HAProxy", func() error { _, err := p.Worker(); return err })
	require.Len(t, whose(t, port), 24)

	r.Affinity = 0
	require.True(t, apply(t, p, r).Reloaded)
}

func TestAClientOfAPoolKeepsItsServer(t *testing.T) {
	l := newWebLab(t)
	one, two := echo(t, "one"), echo(t, "two")
	pool := one
	pool.Backends = append(pool.Backends, two.Backends...)
	h := route.HTTP{Pools: []route.Pool{pool}, Sites: []route.Site{site("one", route.Path{Host: "a.org", Path: "/", Pool: pool.Name()})}}
	answers := func() map[string]bool {
		seen := map[string]bool{}
		for range 10 {
			_, body := l.ask(t, "http://a.org/")
			seen[body[:3]] = true
		}
		return seen
	}
	l.serve(t, h)
	require.Len(t, answers(), 2)
	h.Pools[0].Affinity = 60
	_, done := l.proxy.Change(nil, h.Pools)
	require.False(t, done, "it needs a reload")
	require.True(t, l.serve(t, h).Reloaded)
	require.Len(t, answers(), 1)
	require.False(t, l.serve(t, h).Reloaded)
}
