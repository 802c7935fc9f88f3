// Package etcdtest runs a real etcd on loopback for tests, of one member or several, which can be stopped and started again.
package etcdtest

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Server is a member of etcd. It ends with the test.
type Server struct {
	URL       string // where clients find it
	name      string
	cluster   string // all members
	directory string
	clients   url.URL
	peer      url.URL
	running   *embed.Etcd
}

// New starts one.
func New(t testing.TB) *Server {
	t.Helper()
	s := prepare(t, t.TempDir(), freeURL(t))
	s.Start(t)
	return s
}

// Elsewhere is the same member with the same data, but for clients at another address. It is not started, and must not run
// at the same time as the first.
func (s *Server) Elsewhere(t testing.TB) *Server {
	t.Helper()
	return prepare(t, s.directory, s.peer)
}

// Cluster is an etcd of several members.
type Cluster []*Server

// NewCluster starts one.
func NewCluster(t testing.TB, members int) Cluster {
	t.Helper()
	var c Cluster
	var all []string
	for i := range members {
		s := prepare(t, t.TempDir(), freeURL(t))
		s.name = fmt.Sprintf("member-%d", i)
		c, all = append(c, s), append(all, s.name+"="+s.peer.String())
	}
	for _, s := range c {
		s.cluster = strings.Join(all, ",")
		s.Begin(t)
	}
	for _, s := range c {
		s.await(t)
	}
	return c
}

// Leader is the member that leads; nil when none does.
func (c Cluster) Leader() *Server {
	for _, s := range c {
		if s.running != nil && s.running.Server.Leader() == s.running.Server.MemberID() {
			return s
		}
	}
	return nil
}

// Client connects to all members; the client is closed with the test.
func (c Cluster) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	var urls []string
	for _, s := range c {
		urls = append(urls, s.URL)
	}
	return connect(t, urls)
}

func prepare(t testing.TB, directory string, peer url.URL) *Server {
	t.Helper()
	s := &Server{directory: directory, clients: freeURL(t), peer: peer, name: "default"}
	s.cluster = s.name + "=" + peer.String()
	s.URL = s.clients.String()
	t.Cleanup(s.Stop)
	return s
}

func freeURL(t testing.TB) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// Start starts the member again and waits until it is ready.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	s.Begin(t)
	s.await(t)
}

// Begin starts the member without waiting until it is ready: it is not before the majority is there.
func (s *Server) Begin(t testing.TB) {
	t.Helper()
	config := embed.NewConfig()
	config.Name = s.name
	config.Dir = s.directory
	config.LogLevel = "fatal"
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{s.clients}, []url.URL{s.clients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{s.peer}, []url.URL{s.peer}
	config.InitialCluster = s.cluster
	running, err := embed.StartEtcd(config)
	require.NoError(t, err)
	s.running = running
}

func (s *Server) await(t testing.TB) {
	t.Helper()
	select {
	case <-s.running.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		require.Fail(t, "etcd is not ready")
	}
}

// Stop ends the member; its data stay.
func (s *Server) Stop() {
	if s.running != nil {
		s.running.Close()
		s.running = nil
	}
}

// Client connects to it; the client is closed with the test.
func (s *Server) Client(t testing.TB) *clientv3.Client {
	t.Helper()
	return connect(t, []string{s.URL})
}

func connect(t testing.TB, urls []string) *clientv3.Client {
	t.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}
