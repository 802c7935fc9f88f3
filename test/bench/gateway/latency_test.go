// Package gateway_test measures a gateway: how long changes of routes take until clients see them, beside a program that polls and restarts
// HAProxy. It also measures the cost of thousands of Services. etcd, HAProxy and requests are real.
//
//	make bench-gateway
package gateway_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/wait"
)

// open is a firewall that admits everything, so that this machine's own rules stay.
type open struct{}

func (open) Guard(context.Context) error             { return nil }
func (open) Publish(context.Context, []uint16) error { return nil }
func (open) Refresh(context.Context) error           { return nil }

// listenerPause is the longest random pause between two changes of listeners. HAProxy is reloaded once a second at most.
const listenerPause = 2 * time.Second

// BenchmarkLatency makes 500 changes of each kind (BURANO_CHANGES overrides the number), one after the other, and measures from etcd's answer to the
// first request that sees the change. Meanwhile simultaneous clients make as many changes of the baseline, at random instants.
func BenchmarkLatency(b *testing.B) {
	changes := 500
	if text := os.Getenv("BURANO_CHANGES"); text != "" {
		var err error
		changes, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	server := etcdtest.New(b)
	for range b.N {
		polled := startBaseline(b, server.Client(b))
		var beside sync.WaitGroup
		beside.Go(func() { polled.measure(b, changes) })
		s := serve(b, server.Client(b))
		for _, kind := range []struct {
			name   string
			change func(b *testing.B, number int) (seen func() bool)
			pause  time.Duration
		}{{"backend", s.backend, 0}, {"host", s.host, 0}, {"listener", s.listener, listenerPause}} {
			var took []time.Duration
			for number := range changes {
				if kind.pause > 0 {
					require.NoError(b, wait.Pause(b.Context(), rand.N(kind.pause)))
				}
				took = append(took, until(b, kind.change(b, number)))
			}
			report(b, kind.name, took)
		}
		beside.Wait()
		for kind, took := range polled.took {
			report(b, "polled-"+kind, took)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// until polls every millisecond until seen returns true, and returns how long that took.
func until(b *testing.B, seen func() bool) time.Duration {
	b.Helper()
	start := time.Now()
	require.NoError(b, wait.Every(time.Millisecond).For(2*time.Minute).Until(b.Context(), func(context.Context) error {
		if !seen() {
			return wait.Again(fmt.Errorf("not seen for %s", time.Since(start)))
		}
		return nil
	}))
	return time.Since(start)
}

func report(b *testing.B, what string, took []time.Duration) {
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1000 }
	b.ReportMetric(at(0.5), "ms-p50/"+what)
	b.ReportMetric(at(0.99), "ms-p99/"+what)
	b.Logf("%s: %d changes, p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, slowest %.1f ms", what, len(took), at(0.5), at(0.9), at(0.99), at(1))
}

// served is the content of the daemon: a port whose backend changes, a port for HTTP that gets hosts, and ports that come and
// go.
type served struct {
	etcd      *clientv3.Client
	one, two  *haproxytest.Backend
	tcp, http uint16
	ports     []uint16
}

func serve(b *testing.B, etcd *clientv3.Client) *served {
	s := &served{etcd: etcd, one: haproxytest.NewBackend(b, "one"), two: haproxytest.NewBackend(b, "two"), tcp: haproxytest.FreePort(b), http: haproxytest.FreePort(b)}
	for range 20 {
		s.ports = append(s.ports, haproxytest.FreePort(b))
	}
	proxy := haproxytest.New(b).Config()
	proxy.ReloadGap = 0 // as gateways have it
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- gateway.Run(ctx, gateway.Config{Etcd: etcd, HAProxy: proxy, Firewall: open{}, Logger: troubles()})
	}()
	b.Cleanup(func() { cancel(); require.NoError(b, <-ended) })
	pool := s.pool()
	put(b, etcd, route.Part{Listener: &route.Listener{Port: s.http}})
	put(b, etcd, route.Part{Pool: &pool})
	until(b, s.backend(b, 1))
	until(b, s.host(b, -1))
	return s
}

// troubles logs warnings and errors only.
func troubles() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (s *served) pool() route.Pool {
	return route.Pool{Namespace: "default", Service: "site", Port: "http", Backends: []route.Backend{s.one.Ready()}}
}

func put(b *testing.B, etcd *clientv3.Client, part route.Part) {
	b.Helper()
	value, err := route.EncodePart(part)
	require.NoError(b, err)
	_, err = etcd.Put(b.Context(), route.PartKey(part), string(value))
	require.NoError(b, err)
}

func publish(b *testing.B, etcd *clientv3.Client, port uint16, backends ...route.Backend) {
	b.Helper()
	r := route.Route{Namespace: "default", Service: fmt.Sprint("s", port), Port: "http", GatewayPort: port, Protocol: route.TCP, Backends: backends}
	value, err := route.Encode(r)
	require.NoError(b, err)
	_, err = etcd.Put(b.Context(), route.Key(r), string(value))
	require.NoError(b, err)
}

func (s *served) backend(b *testing.B, number int) func() bool {
	backend := s.two
	if number%2 != 0 {
		backend = s.one
	}
	publish(b, s.etcd, s.tcp, backend.Ready())
	return func() bool { return ask(s.tcp, "", backend.Name) }
}

// host adds one more host.
func (s *served) host(b *testing.B, number int) func() bool {
	name := fmt.Sprintf("host-%d", number+1)
	host := name + ".example.org"
	put(b, s.etcd, route.Part{Site: &route.Site{Namespace: "default", Ingress: name, Paths: []route.Path{{Host: host, Path: "/", Pool: s.pool().Name()}}}})
	return func() bool { return ask(s.http, host, s.one.Name) }
}

// listener publishes a port, and removes it with the next change.
func (s *served) listener(b *testing.B, number int) func() bool {
	port := s.ports[number/2%len(s.ports)]
	if number%2 == 0 {
		publish(b, s.etcd, port, s.one.Ready())
		return func() bool { return ask(port, "", s.one.Name) }
	}
	_, err := s.etcd.Delete(b.Context(), fmt.Sprint(route.RoutesPrefix, port))
	require.NoError(b, err)
	return func() bool {
		_, err := haproxytest.Get(b.Context(), port)
		return err != nil
	}
}

// ask reports whether the expected backend answers at a port, asked for a host or for any.
func ask(port uint16, host, expected string) bool {
	answer, err := haproxytest.GetHost(context.Background(), port, host)
	return err == nil && answer == expected
}
