package simulated

import (
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// channelConn is a connection that came to a node through another one's sshd. It knows no deadlines.
type channelConn struct {
	ssh.Channel
	node *node
	pair string // the certificate of the dialled program
}

func (c *channelConn) LocalAddr() net.Addr              { return &net.TCPAddr{IP: c.node.fixed.AsSlice()} }
func (c *channelConn) RemoteAddr() net.Addr             { return c.LocalAddr() }
func (c *channelConn) SetDeadline(time.Time) error      { return nil }
func (c *channelConn) SetReadDeadline(time.Time) error  { return nil }
func (c *channelConn) SetWriteDeadline(time.Time) error { return nil }

// feed is a listener whose connections come through channels.
type feed struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newFeed() *feed { return &feed{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (f *feed) put(conn net.Conn) {
	select {
	case f.conns <- conn:
	case <-f.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (f *feed) Accept() (net.Conn, error) {
	select {
	case conn := <-f.conns:
		return conn, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (f *feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// Addr implements net.Listener.
func (f *feed) Addr() net.Addr { return &net.TCPAddr{} }
