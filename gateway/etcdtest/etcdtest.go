// Package etcdtest runs a real etcd of one member on loopback for tests, which can be stopped and started again.
package etcdtest

import (
	"net"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Server is an etcd. It ends with the test.
type Server struct {
	URL       string // where clients find it
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

func prepare(t testing.TB, directory string, peer url.URL) *Server {
	t.Helper()
	s := &Server{directory: directory, clients: freeURL(t), peer: peer}
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
	config := embed.NewConfig()
	config.Dir = s.directory
	config.LogLevel = "fatal"
	config.UnsafeNoFsync = true
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{s.clients}, []url.URL{s.clients}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{s.peer}, []url.URL{s.peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	running, err := embed.StartEtcd(config)
	require.NoError(t, err)
	s.running = running
	select {
	case <-running.Server.ReadyNotify():
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
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{s.URL}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = etcd.Close() })
	return etcd
}
