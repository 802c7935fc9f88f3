// Package access keeps the keys for SSH to servers, and the connections to them.
//
// A server is made with Burano's public key and a host key in its user data. That host key serves the first connection only: over it the server makes its
// own host key. The public half of that key is stored, and demanded from then on. Several routes may lead to a server: its floating address, its fixed
// addresses, and other servers that have a floating address.
package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	buranossh "github.com/burano/burano/nodes/ssh"
)

// Server is a server to connect to.
type Server struct {
	Key  string // names it in the vault, for good
	Name string // for people
	// Addresses are its fixed ones, and Access is where Burano connects first: the floating one. A server without one is reached directly or
	// through one that has one, whatever answers.
	Addresses []netip.Addr
	Access    netip.Addr
	// ID is the cloud's id of the server; empty when not known. While it stays, so must the host key; another one is a new server.
	ID string
	// Launched is when the cloud set it up last: it changes when the server is rebuilt, and its disk with it. Empty when not known.
	Launched string
	// Machine is how to log in to a machine that no cloud has made; nil for a server of a cloud.
	Machine *Machine
}

// floats is true if a server has a floating address beside its fixed ones, so that other servers can be reached through it.
func (s Server) floats() bool {
	if !s.Access.IsValid() {
		return false
	}
	for _, address := range s.Addresses {
		if address == s.Access {
			return false
		}
	}
	return true
}

// Config is the caller's side of the connections.
type Config struct {
	Vault Vault
	User  string // login; root when empty. Any other becomes root by sudo
	// Through are the servers through which another one may be reached, the best first; servers without a floating address are left out. May be nil.
	Through func(to Server) []Server
	// Report gets an event, for a person: "reached through murano-gateway-1". May be nil.
	Report func(ctx context.Context, server Server, text string)
	// Down asks the cloud whether waiting for a server is of no use. May be nil.
	Down     func(ctx context.Context, server Server) bool
	Patience time.Duration // how long a server may take until its sshd answers; ssh.DefaultPatience when 0
	Logger   *slog.Logger
	// Fence, Alive and Connected are the fields of ssh.Config.
	Fence     uint64
	Alive     func() error
	Connected func(change int)
	// Port is that of sshd, 22 when empty, and KeyFile where the server keeps its host key; for tests.
	Port, KeyFile string
}

// Connections are the connections to a set of servers, one each. Its methods may be called at the same time.
type Connections struct {
	Keys
	config Config

	mutex  sync.Mutex
	made   map[string]*connecting // by Server.Key
	closed bool
}

// connecting is a server's connection, or the attempt to make it.
type connecting struct {
	busy   chan struct{} // holds one token while a call makes or closes the connection
	client *buranossh.Client
}

// New connects to nothing yet.
func New(config Config) *Connections {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Report == nil {
		config.Report = func(context.Context, Server, string) {}
	}
	if config.Through == nil {
		config.Through = func(Server) []Server { return nil }
	}
	config.Port = cmp.Or(config.Port, "22")
	return &Connections{Keys: Keys{vault: config.Vault}, config: config, made: map[string]*connecting{}}
}

// Connect returns the connection to a server and makes it at first use; then the server gets a host key of its own. Who calls must not close
// it.
func (c *Connections) Connect(ctx context.Context, server Server) (*buranossh.Client, error) {
	c.mutex.Lock()
	if c.closed {
		c.mutex.Unlock()
		return nil, errors.New("the connections to servers were closed")
	}
	connection := c.made[server.Key]
	if connection == nil {
		connection = &connecting{busy: make(chan struct{}, 1)}
		c.made[server.Key] = connection
	}
	c.mutex.Unlock()

	select {
	case connection.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-connection.busy }()
	if connection.client != nil {
		return connection.client, nil
	}
	client, err := c.dial(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", server.Name, err)
	}
	connection.client = client
	return client, nil
}

// Made is the connection to a server when there is one, and no call makes or closes it just now; else nil.
func (c *Connections) Made(key string) *buranossh.Client {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	connection := c.made[key]
	if connection == nil {
		return nil
	}
	select {
	case connection.busy <- struct{}{}:
		defer func() { <-connection.busy }()
		return connection.client
	default:
		return nil
	}
}

// Close ends the connections.
func (c *Connections) Close() error {
	c.mutex.Lock()
	c.closed = true
	open := c.made
	c.made = map[string]*connecting{}
	c.mutex.Unlock()
	var failures []error
	for _, connection := range open {
		connection.busy <- struct{}{}
		if connection.client != nil {
			failures = append(failures, connection.client.Close())
		}
		<-connection.busy
	}
	return errors.Join(failures...)
}

const (
	floatingFirst = 5 * time.Second        // the head start of a floating address
	jumpStagger   = 500 * time.Millisecond // the head start of each server before the next one is asked to pass us through
	jumpTimeout   = 5 * time.Second        // of one TCP connection beyond it
)

// ways are all routes to a server except its floating address: its fixed addresses, from here where that is possible, and through each server that has a
// floating address.
func (c *Connections) ways(server Server) []buranossh.Way {
	if server.Access.IsValid() && !server.floats() {
		return nil
	}
	wait := time.Duration(0)
	if server.Access.IsValid() {
		wait = floatingFirst
	}
	var ways []buranossh.Way
	for _, address := range server.Addresses {
		if !server.Access.IsValid() {
			ways = append(ways, buranossh.Way{Name: buranossh.Direct, Address: c.sshd(server, address)})
		}
	}
	for _, jump := range c.config.Through(server) {
		if !jump.floats() {
			continue
		}
		for _, address := range server.Addresses {
			ways = append(ways, buranossh.Way{Name: "through " + jump.Name, Address: c.sshd(server, address), After: wait, Dial: c.through(jump)})
		}
		wait += jumpStagger
	}
	return ways
}

func (c *Connections) through(jump Server) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		client, err := c.Connect(ctx, jump)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, jumpTimeout)
		defer cancel()
		return client.DialContext(ctx, network, address)
	}
}

// sshd is where a server's listens at one of its addresses.
func (c *Connections) sshd(server Server, address netip.Addr) string {
	port := c.config.Port
	if server.Machine != nil && server.Machine.Port != 0 {
		port = strconv.Itoa(int(server.Machine.Port))
	}
	return net.JoinHostPort(address.String(), port)
}

func (c *Connections) dial(ctx context.Context, server Server) (*buranossh.Client, error) {
	if !server.Access.IsValid() && len(server.Addresses) == 0 {
		return nil, errors.New("its server has no address yet")
	}
	if server.Machine != nil {
		return c.dialMachine(ctx, server)
	}
	own, err := c.Own(ctx)
	if err != nil {
		return nil, err
	}
	known, err := c.loadHostKey(ctx, server.Key)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Server != "" && server.ID != "" && known.Server != server.ID {
		c.config.Report(ctx, server, fmt.Sprintf("its server is a new one (%s in place of %s): it is taken in anew", server.ID, known.Server))
		known = nil // a new server begins with the first key again
	}
	if known != nil && known.Launched != "" && server.Launched != "" && known.Launched != server.Launched {
		known.Confirmed = false // and so does one that was rebuilt; one that the cloud only moved keeps its own
	}
	var accepted []ssh.PublicKey
	var itsOwn ssh.PublicKey
	if known != nil {
		if itsOwn, _, _, _, err = ssh.ParseAuthorizedKey([]byte(known.Public)); err != nil {
			return nil, fmt.Errorf("read its host key: %w", err)
		}
		accepted = append(accepted, itsOwn)
	}
	if known == nil || !known.Confirmed {
		first, _, err := c.First(ctx, server.Key)
		if err != nil {
			return nil, err
		}
		accepted = append(accepted, first.PublicKey())
	}
	config := buranossh.Config{Ways: c.ways(server), User: c.config.User, Signer: own, HostKeys: accepted, Patience: c.config.Patience,
		Sudo: c.config.User != "", Logger: c.config.Logger.With("node", server.Name), Fence: c.config.Fence, Alive: c.config.Alive, Connected: c.config.Connected}
	if server.Access.IsValid() {
		config.Address = c.sshd(server, server.Access)
	}
	if c.config.Down != nil {
		config.Down = func(ctx context.Context) bool { return c.config.Down(ctx, server) }
	}
	client, err := buranossh.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	if way := client.Way(); way != buranossh.Direct {
		c.config.Report(ctx, server, "reached "+way)
	}
	if known != nil && known.Confirmed {
		if known.Server == "" && server.ID != "" || known.Launched == "" && server.Launched != "" { // not known before
			known.Server, known.Launched = cmp.Or(server.ID, known.Server), cmp.Or(server.Launched, known.Launched)
			err = c.storeHostKey(ctx, server.Key, *known)
		}
	} else if err = c.renewHostKey(ctx, server, client, itsOwn); err != nil {
		err = fmt.Errorf("give it a host key of its own: %w", err)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}
