package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// The greetings for a Burano server that connects to the socket: it is used from now on, or another one is.
const (
	linkServes = "burano-storage 1 serve\n"
	linkHeld   = "burano-storage 1 held\n"
)

// silence is how long a server may be silent until another one may have its place.
const silence = 10 * time.Second

// link is the connection to a Burano server, which knows the cloud. The server connects to a socket of this program over its SSH connection to the master,
// and answers CSI calls on that connection. One server at a time has it, so that no two of them make the same volume. This side has no credential of the
// cloud.
type link struct {
	client *grpc.ClientConn
	next   chan net.Conn // to the client

	mutex sync.Mutex
	line  *line // nil while no server is there
}

// line is the connection of a server.
type line struct {
	net.Conn
	end func()
}

func (l *line) Close() error {
	l.end()
	return l.Conn.Close()
}

func newLink() (*link, error) {
	l := &link{next: make(chan net.Conn, 1)}
	client, err := grpc.NewClient("passthrough:///burano",
		grpc.WithTransportCredentials(insecure.NewCredentials()), // it is SSH's
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case conn := <-l.next:
				return conn, nil
			}
		}),
		grpc.WithUnaryInterceptor(l.whileConnected),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}, MinConnectTimeout: silence}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: silence, Timeout: silence, PermitWithoutStream: true}),
		grpc.WithIdleTimeout(0))
	l.client = client
	return l, err
}

// errAlone reports that no server was connected to answer the call.
var errAlone = status.Error(codes.Unavailable, "no Burano server is connected to the cluster, without which the cloud is not asked for anything: it is tried again by itself. Where it stays so, see the findings of the environment")

func (l *link) whileConnected(ctx context.Context, method string, request, answer any, client *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if !l.connected() {
		return errAlone
	}
	return invoke(ctx, method, request, answer, client, options...)
}

func (l *link) connected() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.line != nil
}

// listen lets servers come to a socket, which only root can reach.
func (l *link) listen(ctx context.Context, socket string) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return fmt.Errorf("make the folder of the socket: %w", err)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		l.take(conn)
	}
}

// take makes the server at the other end the one that is used, unless there is one.
func (l *link) take(conn net.Conn) {
	taken := &line{Conn: conn}
	l.mutex.Lock()
	held := l.line != nil
	if !held {
		l.line = taken
		taken.end = sync.OnceFunc(func() {
			l.mutex.Lock()
			l.line = nil
			l.mutex.Unlock()
			slog.Info("the Burano server is gone")
		})
	}
	l.mutex.Unlock()
	_ = conn.SetWriteDeadline(time.Now().Add(silence))
	if held {
		_, _ = conn.Write([]byte(linkHeld))
		conn.Close()
		return
	}
	if _, err := conn.Write([]byte(linkServes)); err != nil {
		taken.Close()
		return
	}
	_ = conn.SetWriteDeadline(time.Time{})
	slog.Info("a Burano server answers")
	select {
	case former := <-l.next: // that was never used
		former.Close()
	default:
	}
	l.next <- taken
	l.client.ResetConnectBackoff()
	l.client.Connect()
}
