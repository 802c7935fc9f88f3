package storage

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/burano/burano/orchestrator/volumes"
)

const (
	StoragePause = 10 * time.Second
)

// AnswerOn answers a cluster's requests for its volumes on a connection to its controllers, until the connection or ctx ends.
func AnswerOn(ctx context.Context, line net.Conn, cluster volumes.Cluster) error {
	server := grpc.NewServer(append(volumes.Bounds(cluster.Logger), grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: StoragePause / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: StoragePause, Timeout: StoragePause}))...)
	defer server.Stop()
	defer context.AfterFunc(ctx, server.Stop)()
	volumes.Serve(server, cluster)
	return server.Serve(newOneConnection(line))
}

// oneConnection is a listener that has one connection, and ends with it.
type oneConnection struct {
	next chan net.Conn
	over chan struct{}
	end  func()
	at   net.Addr
}

func newOneConnection(conn net.Conn) *oneConnection {
	one := &oneConnection{next: make(chan net.Conn, 1), over: make(chan struct{}), at: conn.LocalAddr()}
	one.end = sync.OnceFunc(func() { close(one.over) })
	one.next <- endingConn{conn, one.end}
	return one
}

func (o *oneConnection) Accept() (net.Conn, error) {
	select {
	case conn := <-o.next:
		return conn, nil
	case <-o.over:
		return nil, net.ErrClosed
	}
}

func (o *oneConnection) Close() error {
	o.end()
	return nil
}

func (o *oneConnection) Addr() net.Addr { return o.at }

// endingConn reports when it is closed.
type endingConn struct {
	net.Conn
	end func()
}

func (e endingConn) Close() error {
	defer e.end()
	return e.Conn.Close()
}
