package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/burano/burano/internal/wait"
)

const (
	connectTimeout    = 100 * time.Millisecond // first TCP attempts: a server that boots drops SYNs, so ask often
	connectTimeoutMax = 2 * time.Second        // later attempts: a far server may need longer
	retryEvery        = 30 * time.Millisecond
	retryEveryMax     = 500 * time.Millisecond
	handshakeTimeout  = 10 * time.Second
	downEvery         = 2 * time.Second // how often it is asked whether waiting is of any use
)

// Direct is the route to the config's Address.
const Direct = "directly"

// Way is one more route to a server's sshd.
type Way struct {
	Name    string // for logs and errors: "through murano-gateway-1"
	Address string // host:port of the sshd as it is seen from where Dial begins
	// Dial opens the TCP connection, and ends within a time of its own choice; net.Dialer's DialContext when nil.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// After is the head start of the routes before it.
	After time.Duration
	// direct marks the config's Address. There can be no mistake about the server at that address; at the end of another route, a private address may well
	// belong to another server.
	direct bool
}

func (w Way) String() string {
	if w.direct {
		return w.Address
	}
	return w.Address + " " + w.Name
}

// name is the server's name in errors.
func (c Config) name() string {
	if c.Address != "" {
		return c.Address
	}
	return c.Ways[0].Address
}

func (c Config) ways() []Way {
	if c.Address == "" {
		return c.Ways
	}
	return append([]Way{{Name: Direct, Address: c.Address, direct: true}}, c.Ways...)
}

// HostKeyError is the error when another server may be answering at the address. Waiting does not cure it.
type HostKeyError struct {
	Address  string
	Shown    string   // fingerprint
	Expected []string // fingerprints, one of which would have been accepted
	Remedy   string   // Config.Remedy
}

func (e *HostKeyError) Error() string {
	remedy := cmp.Or(e.Remedy, "rebuild it or delete it in Nova and deploy again: the key of a server that Nova has just set up is accepted")
	return fmt.Sprintf("SECURITY: the host key that %s shows has changed. Expected was %s, shown was %s, an unknown host key. Burano does not log in there, "+
		"because somebody else may be answering at this address. Find out who does; if it is the right server and it was set up anew, "+
		"%s", e.Address, strings.Join(e.Expected, " or "), e.Shown, remedy)
}

// LoginError is the error when the server does not accept our key. Waiting does not cure it.
type LoginError struct {
	User, Address, Key string // Key is the fingerprint of ours
	Remedy             string // Config.Remedy
	Err                error
}

func (e *LoginError) Error() string {
	remedy := cmp.Or(e.Remedy, "Either the server's user-data was not applied (see its console log), or its authorized_keys was changed: "+
		"put the key back, or rebuild or delete the server in Nova and deploy again")
	return fmt.Sprintf("%s refuses the key %s for %s: %v. %s", e.Address, e.Key, e.User, e.Err, remedy)
}

func (e *LoginError) Unwrap() error { return e.Err }

// AlgorithmsError is the error when the server has no algorithm that is strict enough. Waiting does not cure it.
type AlgorithmsError struct {
	Address string
	Err     error
}

func (e *AlgorithmsError) Error() string {
	return fmt.Sprintf("the sshd at %s offers nothing that Burano trusts (%v): let it offer an ed25519 host key, curve25519-sha256, a cipher of AES or chacha20-poly1305, and "+
		"hmac-sha2-256-etm@openssh.com, which OpenSSH does by itself since 6.5", e.Address, e.Err)
}

func (e *AlgorithmsError) Unwrap() error { return e.Err }

// UnreachableError is the error when no sshd answered in time, or when none will.
type UnreachableError struct {
	Tried  []string // where, with the last error of each
	Waited time.Duration
	Down   bool // waiting was given up because the server does not run
}

func (e *UnreachableError) Error() string {
	found := "no sshd answered within " + e.Waited.String()
	if e.Down {
		found = "the server does not run, and no sshd answered"
	}
	return found + "; tried " + strings.Join(e.Tried, ", and ")
}

// dialPatiently tries all routes at the same time until one of them gives a connection.
func dialPatiently(ctx context.Context, config Config) (*connection, error) {
	ways := config.ways()
	if len(ways) == 0 {
		return nil, errors.New("no way to the server is known: it has no address")
	}
	patient, cancel := context.WithTimeout(ctx, config.Patience)
	defer cancel()
	down := make(chan bool, 1)
	go func() {
		found := config.waitDown(patient)
		if found {
			cancel()
		}
		down <- found
	}()
	type outcome struct {
		conn *connection
		way  int
		err  error
	}
	ended := make(chan outcome)
	for i, way := range ways {
		go func() {
			conn, err := follow(patient, config, way)
			ended <- outcome{conn, i, err}
		}()
	}
	var found *connection
	var final error
	tried := make([]string, len(ways))
	for range ways {
		o := <-ended
		switch {
		case o.err == nil && found == nil:
			found = o.conn
			cancel()
		case o.err == nil:
			o.conn.Close()
		default:
			tried[o.way] = fmt.Sprintf("%s (%v)", ways[o.way], o.err)
			var login *LoginError
			var hostKey *HostKeyError
			var algorithms *AlgorithmsError
			if errors.As(o.err, &login) || errors.As(o.err, &hostKey) || errors.As(o.err, &algorithms) {
				if final == nil || ways[o.way].direct {
					final = o.err
				}
				if ways[o.way].direct {
					cancel()
				}
			}
		}
	}
	switch {
	case found != nil:
		return found, nil
	case final != nil:
		return nil, final
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w (tried %s)", context.Cause(ctx), strings.Join(tried, ", and "))
	}
	return nil, &UnreachableError{Tried: tried, Waited: config.Patience, Down: <-down}
}

// waitDown returns true once Down was true twice in a row: once may be a moment between two states. It returns false when ctx ends before.
func (c Config) waitDown(ctx context.Context) bool {
	if c.Down == nil {
		return false
	}
	tick := time.NewTicker(downEvery)
	defer tick.Stop()
	for before := false; ; {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		now := c.Down(ctx)
		if before && now {
			return true
		}
		before = now
	}
}

// follow tries one route again and again until it gives a connection. Its error is the last attempt's.
func follow(ctx context.Context, config Config, way Way) (*connection, error) {
	if err := wait.Pause(ctx, way.After); err != nil {
		return nil, errors.New("not tried")
	}
	var conn *connection
	timeout := connectTimeout
	pauses := wait.Policy{First: retryEvery, Most: retryEveryMax, Growth: 1.1}
	var before error
	err := pauses.Until(ctx, func(ctx context.Context) (err error) {
		conn, err = dialOnce(ctx, config, way, timeout)
		if err == nil {
			return nil
		}
		var wrongKey *HostKeyError
		if errors.As(err, &wrongKey) {
			return wrongKey
		}
		var none *ssh.AlgorithmNegotiationError
		if errors.As(err, &none) {
			return &AlgorithmsError{Address: way.String(), Err: none}
		}
		if strings.Contains(err.Error(), "unable to authenticate") {
			return &LoginError{User: config.User, Address: way.String(), Key: ssh.FingerprintSHA256(config.Signer.PublicKey()), Remedy: config.Remedy, Err: err}
		}
		timeout = min(timeout*11/10, connectTimeoutMax)
		if end, limited := ctx.Deadline(); before != nil && limited && !time.Now().Before(end) {
			err = before // the last attempt was only cut off
		}
		before = err
		return wait.Again(err)
	})
	var expired *wait.Expired
	if errors.As(err, &expired) {
		err = expired.Last
	}
	return conn, err
}

func dialOnce(ctx context.Context, config Config, way Way, timeout time.Duration) (*connection, error) {
	dial := way.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: timeout, KeepAlive: keepaliveEvery}).DialContext
	}
	socket, err := dial(ctx, "tcp", way.Address)
	if err != nil {
		return nil, err
	}
	// A handshake has no context of its own: it ends when its socket does. Sockets through another server know no deadlines.
	handshake, done := context.WithTimeout(ctx, handshakeTimeout)
	defer done()
	stop := context.AfterFunc(handshake, func() { socket.Close() })
	conn := &connection{way: way.Name, lost: make(chan struct{})}
	client := &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: keyExchanges(), Ciphers: ciphers(), MACs: macs()},
		User:              config.User,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(config.Signer)},
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if config.FirstUse && len(config.HostKeys) == 0 {
				conn.hostKey = key
				return nil
			}
			wrong := &HostKeyError{Address: way.String(), Shown: ssh.FingerprintSHA256(key), Remedy: config.Remedy}
			for _, known := range config.HostKeys {
				if string(known.Marshal()) == string(key.Marshal()) {
					conn.hostKey = key
					return nil
				}
				wrong.Expected = append(wrong.Expected, ssh.FingerprintSHA256(known))
			}
			return wrong
		},
	}
	inner, channels, requests, err := ssh.NewClientConn(socket, way.Address, client)
	if err == nil && !stop() {
		err = errors.New("the SSH handshake took too long")
	}
	if err != nil {
		stop()
		socket.Close()
		return nil, err
	}
	conn.Client = ssh.NewClient(inner, channels, requests)
	connected := config.Connected
	if connected == nil {
		connected = func(int) {}
	}
	connected(1)
	go func() {
		err := conn.Wait()
		connected(-1)
		config.Logger.Debug("SSH connection ended", "server", way.String(), "reason", err)
		close(conn.lost)
	}()
	go conn.keepAlive()
	return conn, nil
}
