package gateway_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/etcdtest"
	"github.com/burano/burano/gateway/haproxytest"
	"github.com/burano/burano/gateway/route"
)

// says waits until the daemon has logged something more often than before.
func (n *node) says(t *testing.T, what string, times int) {
	t.Helper()
	await(t, what, func() error {
		if found := strings.Count(n.journal.String(), what); found < times {
			return fmt.Errorf("said %d times", found)
		}
		return nil
	})
}

// unharmed ends a load of which nothing failed.
func unharmed(t *testing.T, load *haproxytest.Load) {
	t.Helper()
	total, failed, worst := load.Stop()
	require.Empty(t, failed)
	t.Logf("%d requests, none failed, worst %s", total, worst.Round(time.Millisecond))
}

func TestRoutesChangeOnWhenTheLeaderOfEtcdIsLost(t *testing.T) {
	n := newNode(t)
	cluster := etcdtest.NewCluster(t, 3)
	n.etcd = cluster.Client(t)
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, steady := haproxytest.FreePort(t), haproxytest.FreePort(t)
	n.run(t)
	write := func(r route.Route) {
		t.Helper()
		value, err := route.Encode(r)
		require.NoError(t, err)
		await(t, "etcd takes a change", func() error {
			_, err := n.etcd.Put(clientv3.WithRequireLeader(t.Context()), route.Key(r), string(value))
			return err
		})
	}
	served := func(name string) {
		t.Helper()
		await(t, name, func() error {
			if answer, err := haproxytest.Get(t.Context(), port); answer != name {
				return fmt.Errorf("%q, %w", answer, errors.Join(err, errors.New("not that")))
			}
			return nil
		})
	}
	write(web(steady, a.Ready()))
	write(web(port, a.Ready()))
	served("a")
	load := haproxytest.StartLoad(t, steady)
	load.WaitFor(t, 20)
	rounds := 1
	if os.Getenv(awayVariable) != "" {
		rounds = 10
	}
	for round := range rounds {
		leader := cluster.Leader()
		require.NotNil(t, leader)
		leader.Stop()
		next := []*haproxytest.Backend{b, a}[round%2]
		write(web(port, next.Ready()))
		served(next.Name)
		leader.Start(t)
	}

	// Without a majority nothing changes, and everything is served on.
	for _, member := range cluster[:2] {
		member.Stop()
	}
	before := strings.Count(n.journal.String(), "lost etcd")
	n.says(t, "lost etcd", before+1)
	load.WaitFor(t, 100)
	for _, member := range cluster[:2] {
		member.Begin(t)
	}
	write(web(port, a.Ready()))
	served("a")
	write(web(port, b.Ready()))
	served("b")
	unharmed(t, load)
}

// awayVariable sets how long etcd is down. `make soak` sets it to a minute, and loses the leader of etcd more often.
const awayVariable = "BURANO_ETCD_AWAY"

func TestTrafficGoesOnWhileEtcdIsAway(t *testing.T) {
	away := time.Second
	if text := os.Getenv(awayVariable); text != "" {
		var err error
		away, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	n := newNode(t)
	n.resync = time.Second
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	stop := n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)

	n.server.Stop()
	gone := time.Now()
	n.says(t, "lost etcd", 1)
	stop() // the daemon restarts meanwhile, without etcd
	n.run(t)
	await(t, "etcd is away long enough", func() error {
		if passed := time.Since(gone); passed < away {
			return fmt.Errorf("only %s", passed)
		}
		return nil
	})
	require.True(t, n.firewall.admits(port))
	load.WaitFor(t, 20)
	n.server.Start(t)
	n.put(t, web(port, b.Ready()))
	answers(t, port, "b")
	unharmed(t, load)
}

func TestAnHAProxyThatWasKilledComesBackWithTheRoutesOfNow(t *testing.T) {
	n := newNode(t)
	n.resync = 200 * time.Millisecond
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	for _, backend := range []*haproxytest.Backend{b, a, b} {
		n.process.KillWorkers(t)
		n.put(t, web(port, backend.Ready()))
		answers(t, port, backend.Name)
	}
	n.process.KillWorkers(t)
	n.put(t, web(other, a.Ready()))
	answers(t, other, "a")
	answers(t, port, "b")
}

// TestAnHAProxyThatEndsBeforeItsFileFollowsHasTheServersOfNow excludes other triggers of the daemon: etcd is silent, and resyncs are far away.
func TestAnHAProxyThatEndsBeforeItsFileFollowsHasTheServersOfNow(t *testing.T) {
	n := newNode(t)
	n.resync, n.writeAfter = time.Hour, time.Hour
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port := haproxytest.FreePort(t)
	stop := n.run(t)
	has := func(backend *haproxytest.Backend) bool {
		t.Helper()
		content, err := os.ReadFile(n.process.Config().ConfigFile)
		require.NoError(t, err)
		return strings.Contains(string(content), backend.Address.String())
	}
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	n.says(t, "msg=serving", 1)
	for _, backends := range [][2]*haproxytest.Backend{{a, b}, {b, a}, {a, b}} {
		n.put(t, web(port, backends[1].Ready()))
		answers(t, port, backends[1].Name)
		require.True(t, has(backends[0]))
		require.False(t, has(backends[1]))
		n.process.KillWorkers(t)
		answers(t, port, backends[1].Name)
		await(t, "the file", func() error {
			if !has(backends[1]) {
				return errors.New("it is behind")
			}
			return nil
		})
	}
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	require.False(t, has(a))
	stop()
	require.True(t, has(a), "a daemon that ends leaves the file as it is to be")
}

func TestBackendsChangeWhileTheDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=1m"); errors.Is(err, syscall.EPERM) {
		t.Skip("only root may make a small disk")
	} else {
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	t.Setenv("TMPDIR", disk)
	n := newNode(t)
	n.retryAfter = time.Second
	a, b := haproxytest.NewBackend(t, "a"), haproxytest.NewBackend(t, "b")
	port, other := haproxytest.FreePort(t), haproxytest.FreePort(t)
	n.run(t)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	load := haproxytest.StartLoad(t, port)
	load.WaitFor(t, 20)
	before, err := os.ReadFile(n.process.Config().ConfigFile)
	require.NoError(t, err)

	filler, err := os.Create(filepath.Join(disk, "filler"))
	require.NoError(t, err)
	defer filler.Close()
	for err == nil {
		_, err = filler.Write(bytes.Repeat([]byte("x"), 4096))
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	n.put(t, web(port, b.Ready()))
	answers(t, port, "b")
	n.put(t, web(other, b.Ready()))
	n.says(t, "no space left on device", 1)
	n.put(t, web(port, a.Ready()))
	answers(t, port, "a")
	n.put(t, web(port, b.Ready()))
	answers(t, port, "b")
	now, err := os.ReadFile(n.process.Config().ConfigFile)
	require.NoError(t, err)
	require.Equal(t, string(before), string(now), "what is there is whole")
	require.False(t, n.firewall.admits(other))

	require.NoError(t, os.Remove(filler.Name()))
	require.NoError(t, filler.Close())
	await(t, "the other port", func() error {
		_, err := haproxytest.Get(t.Context(), other)
		return err
	})
	await(t, "the file has the server of now", func() error {
		content, err := os.ReadFile(n.process.Config().ConfigFile)
		if !slices.Contains(strings.Fields(string(content)), b.Address.String()) {
			return errors.Join(err, errors.New("not yet"))
		}
		return nil
	})
	unharmed(t, load)
}
