// Package gateway_test measures how long a change of routes takes until clients notice it, as a ratio against a plain full reload of
// HAProxy on the same machine: the ratio means the same on a slow machine as on a fast one.
//
//	go test -bench . ./test/bench/gateway
package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/gateway"
	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

type open struct{}

func (open) Guard(context.Context) error             { return nil }
func (open) Publish(context.Context, []uint16) error { return nil }
func (open) Refresh(context.Context) error           { return nil }

func BenchmarkRouteChange(b *testing.B) {
	etcd := etcdtest.New(b).Client(b)
	process := haproxytest.New(b)
	config := process.Config()
	one, two := haproxytest.NewBackend(b, "one"), haproxytest.NewBackend(b, "two")
	port, other := haproxytest.FreePort(b), haproxytest.FreePort(b)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- gateway.Run(ctx, gateway.Config{Etcd: etcd, HAProxy: config, Firewall: open{}}) }()
	b.Cleanup(func() { cancel(); require.NoError(b, <-ended) })

	write := func(port uint16, backend *haproxytest.Backend) {
		r := route.Route{Namespace: "default", Service: fmt.Sprint("s", port), Port: "http", GatewayPort: port, Protocol: route.TCP, Backends: []route.Backend{backend.Ready()}}
		value, err := route.Encode(r)
		require.NoError(b, err)
		_, err = etcd.Put(ctx, route.Key(r), string(value))
		require.NoError(b, err)
	}
	until := func(what string, port uint16, condition func(answer string, err error) bool) time.Duration {
		start := time.Now()
		haproxytest.Wait(b, what, func() error {
			if answer, err := haproxytest.Get(ctx, port); !condition(answer, err) {
				return fmt.Errorf("%s: %q, %v", what, answer, err)
			}
			return nil
		})
		return time.Since(start)
	}
	is := func(name string) func(string, error) bool {
		return func(answer string, err error) bool { return err == nil && answer == name }
	}
	write(port, one)
	until("the first answer", port, is("one"))

	var backend, listener, reload time.Duration
	b.ResetTimer()
	for range b.N {
		write(port, two)
		backend += until("the other backend", port, is("two"))
		write(port, one)
		until("the first backend", port, is("one"))

		write(other, one)
		listener += until("the new port", other, is("one"))
		_, err := etcd.Delete(ctx, fmt.Sprint(route.RoutesPrefix, other))
		require.NoError(b, err)
		until("the port to close", other, func(_ string, err error) bool { return err != nil })

		reload += plainReload(b, process, config.Socket)
	}
	mean := func(total time.Duration) float64 { return total.Seconds() / float64(b.N) * 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(mean(backend), "ms/backend")
	b.ReportMetric(mean(listener), "ms/listener")
	b.ReportMetric(mean(reload), "ms/plain-reload")
	b.ReportMetric(float64(backend)/float64(reload), "backend/reload")
	b.ReportMetric(float64(listener)/float64(reload), "listener/reload")
}

// plainReload has HAProxy read its configuration again and waits until the new worker answers.
func plainReload(b *testing.B, process *haproxytest.Process, socket string) time.Duration {
	b.Helper()
	before, err := worker(socket)
	require.NoError(b, err)
	start := time.Now()
	require.NoError(b, process.Reload(b.Context()))
	haproxytest.Wait(b, "the new worker", func() error {
		now, err := worker(socket)
		if err == nil && now == before {
			err = fmt.Errorf("worker %s still answers", now)
		}
		return err
	})
	return time.Since(start)
}

// worker asks the admin socket who answers.
func worker(socket string) (pid string, err error) {
	connection, err := net.Dial("unix", socket)
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if _, err := io.WriteString(connection, "show info\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	for line := range strings.Lines(string(answer)) {
		if pid, found := strings.CutPrefix(line, "Pid: "); found {
			return strings.TrimSpace(pid), nil
		}
	}
	return "", fmt.Errorf("no worker in HAProxy's answer: %w", err)
}
