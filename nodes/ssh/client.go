// Package ssh reaches one server: scripts, files and TCP connections over a single verified connection.
//
// A Client keeps one multiplexed connection to its server. It waits for the sshd of a server that is still booting, demands one of the given host keys,
// sends keepalives, and connects again when the connection was lost. Several routes may lead to the server, for example through another one; the first
// that answers is taken.
package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	keepaliveEvery   = 10 * time.Second
	keepaliveTimeout = 15 * time.Second
	// DefaultPatience is how long a server may take until its sshd answers.
	DefaultPatience = 3 * time.Minute
)

// Config describes a server, the routes to it and its host keys.
type Config struct {
	Address  string          // host:port of the sshd; may be empty when there are Ways
	Ways     []Way           // further routes to it
	User     string          // login; root when empty
	Sudo     bool            // become root by sudo for all that is run; for a User who is not root
	Signer   ssh.Signer      // our key
	HostKeys []ssh.PublicKey // any one of these must be presented
	// FirstUse takes any host key of the first connection, where HostKeys is empty: the caller checks it, and keeps it (Demand).
	FirstUse bool
	// Remedy is the advice when the server refuses our key or shows a host key that is not in the list; empty for servers that Nova has made.
	Remedy   string
	Patience time.Duration // how long to wait until sshd answers; DefaultPatience when 0
	Logger   *slog.Logger
	// Fence is the number of this worker among the successive workers on the server. A script or file is refused with ErrFenced when the server has seen a
	// higher number, and ends work of lower numbers that still runs there. 0 is no number.
	Fence       uint64
	FenceFolder string // where the server keeps it; for tests
	// Alive returns an error when this process may no longer act: it is asked before each script, file and write. May be nil.
	Alive func() error
	// Down is true if the server does not run, and will not until a user starts it. It is called every few seconds while there is no answer; when it is
	// true twice in a row, Dial waits no longer. May be nil.
	Down func(ctx context.Context) bool
	// Connected is called for each connection, with 1 when it begins and with -1 when it ends. May be nil.
	Connected func(change int)
}

// Client is a connection to one server. Its methods may be called at the same time.
type Client struct {
	config Config
	before string // the config's

	mu       sync.Mutex
	current  *connection
	made     int           // how many connections there were so far
	dialling chan struct{} // closed when the present attempt ends; nil when there is none
	closed   bool
}

type connection struct {
	*ssh.Client
	way     string
	hostKey ssh.PublicKey
	lost    chan struct{} // closed when the connection ended
}

// errClosed is the error of every call after Close.
var errClosed = errors.New("connection to the server was closed")

// Dial connects to a server and waits for its sshd within the config's patience and ctx.
// A wrong host key ends it at once: that is not cured by waiting.
func Dial(ctx context.Context, config Config) (*Client, error) {
	if config.User == "" {
		config.User = "root"
	}
	if config.Patience == 0 {
		config.Patience = DefaultPatience
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Client{config: config, before: config.before()}
	if _, err := c.connected(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// HostKey returns the key that the server presented on the current (or last) connection.
func (c *Client) HostKey() ssh.PublicKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return nil
	}
	return c.current.hostKey
}

// Way is how the current (or last) connection was made: Direct, or the name of one of the config's routes.
func (c *Client) Way() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return ""
	}
	return c.current.way
}

// Connection returns the number of the current (or last) connection and a channel that is closed when it is lost.
func (c *Client) Connection() (number int, lost <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, c.current.lost
}

// Demand replaces the host keys that the next connection accepts.
func (c *Client) Demand(keys ...ssh.PublicKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.config.HostKeys = keys
}

// DialContext opens a TCP connection from the server to address; its signature is net.Dialer's.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.connected(ctx)
	if err != nil {
		return nil, err
	}
	dialled, err := conn.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s through %s: %w", address, c.config.name(), err)
	}
	dialled = detached(dialled)
	if c.config.Alive != nil {
		return guardedConn{dialled, c.config.Alive}, nil
	}
	return dialled, nil
}

// detached gives a connection through a server deadlines, and ends it at once when it is closed. A channel of SSH ends when the server's side has
// confirmed it, after all sent data are delivered. If the other end no longer answers, this waits until TCP gives up after a quarter of an hour.
func detached(channel net.Conn) net.Conn {
	ours, theirs := net.Pipe()
	transfer := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		theirs.Close()
		channel.Close()
	}
	go transfer(channel, theirs)
	go transfer(theirs, channel)
	return ours
}

// Close ends the connection. Running calls fail.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.current == nil {
		return nil
	}
	err := c.current.Close()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// connected returns the live connection and makes one when there is none; callers at the same time share one attempt.
func (c *Client) connected(ctx context.Context) (*connection, error) {
	for {
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, errClosed
		}
		if c.current != nil {
			select {
			case <-c.current.lost:
			default:
				current := c.current
				c.mu.Unlock()
				return current, nil
			}
		}
		if wait := c.dialling; wait != nil {
			c.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		done := make(chan struct{})
		c.dialling = done
		config := c.config
		c.mu.Unlock()

		conn, err := dialPatiently(ctx, config)

		c.mu.Lock()
		c.dialling = nil
		close(done)
		if err == nil && c.closed {
			conn.Close()
			err = errClosed
		}
		if err == nil {
			c.current = conn
			c.made++
		}
		again := c.made > 1
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		config.Logger.Info("connected", "way", conn.way, "again", again)
		return conn, nil
	}
}

// Only strict algorithms are accepted; every OpenSSH since 6.5 (2014) has them.

// keyExchanges are the ones over Curve25519, with a part that a quantum computer cannot break where the server has it.
func keyExchanges() []string {
	return []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519, "curve25519-sha256@libssh.org"}
}

// ciphers prefers AES-GCM, which processors do in hardware.
func ciphers() []string {
	return []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305, ssh.CipherAES128CTR, ssh.CipherAES256CTR}
}

// macs are the ones over encrypted data; ciphers that authenticate need none.
func macs() []string {
	return []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM}
}

// keepAlive closes the connection when the server no longer answers, so that callers fail and connect again.
func (c *connection) keepAlive() {
	tick := time.NewTicker(keepaliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-c.lost:
			return
		case <-tick.C:
		}
		answered := make(chan error, 1)
		go func() {
			_, _, err := c.SendRequest("keepalive@openssh.com", true, nil)
			answered <- err
		}()
		timer := time.NewTimer(keepaliveTimeout)
		select {
		case err := <-answered:
			timer.Stop()
			if err != nil {
				c.Close()
				return
			}
		case <-timer.C:
			c.Close()
			return
		case <-c.lost:
			timer.Stop()
			return
		}
	}
}
