// Package line lets a server of a protocol answer on one connection that is there already, such as one that Burano opened to a node over SSH.
package line

import (
	"net"
	"sync"
)

// Listener is a listener that has one connection, and ends with it. Closing it does not close the connection.
type Listener struct {
	next chan net.Conn
	over chan struct{}
	end  func()
	at   net.Addr
}

// New is a listener for a connection.
func New(conn net.Conn) *Listener {
	one := &Listener{next: make(chan net.Conn, 1), over: make(chan struct{}), at: conn.LocalAddr()}
	one.end = sync.OnceFunc(func() { close(one.over) })
	one.next <- endingConn{conn, one.end}
	return one
}

// Accept returns the connection, and then waits until that or the listener is closed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.next:
		return conn, nil
	case <-l.over:
		return nil, net.ErrClosed
	}
}

// Close ends Accept.
func (l *Listener) Close() error {
	l.end()
	return nil
}

// Addr is the connection's own address.
func (l *Listener) Addr() net.Addr { return l.at }

// endingConn reports when it is closed.
type endingConn struct {
	net.Conn
	end func()
}

func (e endingConn) Close() error {
	defer e.end()
	return e.Conn.Close()
}
