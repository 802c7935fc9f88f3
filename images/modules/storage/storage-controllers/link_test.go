package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// answering is a Burano server that has come to the socket.
type answering struct {
	csi.UnimplementedControllerServer
	name string
	conn net.Conn
}

func (a *answering) CreateVolume(context.Context, *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: a.name}}, nil
}

// lineListener has one connection, and then none until it is closed.
type lineListener struct {
	net.Listener
	next chan net.Conn
}

func (l lineListener) Accept() (net.Conn, error) {
	conn, there := <-l.next
	if !there {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (l lineListener) Close() error { return nil }

func (l lineListener) Addr() net.Addr { return &net.UnixAddr{} }

// come goes to the socket, and answers when it is asked to.
func come(t *testing.T, socket, name string) (greeting string, server *answering) {
	t.Helper()
	var conn net.Conn
	var err error
	until(t, func() bool {
		conn, err = net.Dial("unix", socket)
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	for one := make([]byte, 1); !strings.HasSuffix(greeting, "\n"); greeting += string(one) { // the bytes after it are gRPC's
		if _, err := conn.Read(one); err != nil {
			t.Fatal(err)
		}
	}
	if greeting != linkServes {
		return greeting, nil
	}
	server = &answering{name: name, conn: conn}
	at := grpc.NewServer()
	csi.RegisterControllerServer(at, server)
	listener := lineListener{next: make(chan net.Conn, 1)}
	listener.next <- conn
	go func() { _ = at.Serve(listener) }()
	return greeting, server
}

func TestOneServerAtATimeIsAsked(t *testing.T) {
	link, err := newLink()
	if err != nil {
		t.Fatal(err)
	}
	defer link.client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	socket := filepath.Join(t.TempDir(), "server.sock")
	ended := make(chan error, 1)
	go func() { ended <- link.listen(ctx, socket) }()
	volumes := csi.NewControllerClient(link.client)
	ask := func() (string, error) {
		asking, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		made, err := volumes.CreateVolume(asking, &csi.CreateVolumeRequest{})
		return made.GetVolume().GetVolumeId(), err
	}
	if _, err := ask(); !errors.Is(err, errAlone) || provisioning(err) != "NoChange" {
		t.Fatalf("it says %v", err)
	}
	greeting, first := come(t, socket, "first")
	if first == nil {
		t.Fatalf("it says %q", greeting)
	}
	if name, err := ask(); err != nil || name != "first" {
		t.Fatalf("%q answers, %v", name, err)
	}
	if greeting, _ := come(t, socket, "second"); greeting != linkHeld {
		t.Fatalf("it says %q", greeting)
	}
	if name, err := ask(); err != nil || name != "first" {
		t.Fatalf("%q answers, %v", name, err)
	}
	first.conn.Close()
	until(t, func() bool { return !link.connected() })
	if _, err := ask(); !errors.Is(err, errAlone) {
		t.Fatalf("it says %v", err)
	}
	if _, third := come(t, socket, "third"); third == nil {
		t.Fatal("it takes nobody any more")
	}
	if name, err := ask(); err != nil || name != "third" {
		t.Fatalf("%q answers, %v", name, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func until(t *testing.T, true func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !true(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come to that")
		}
	}
}

func TestWhatIsRefusedMadeNothing(t *testing.T) {
	for code, state := range map[codes.Code]string{codes.ResourceExhausted: "Finished", codes.FailedPrecondition: "Finished", codes.Unavailable: "Background", codes.DeadlineExceeded: "Background", codes.Internal: "Background"} {
		if got := provisioning(status.Error(code, "quota 'volumes'")); string(got) != state {
			t.Fatalf("%s means %s", code, got)
		}
	}
	if err := said(status.Error(codes.ResourceExhausted, "quota 'volumes'")); err.Error() != "quota 'volumes'" {
		t.Fatal(err)
	}
}
