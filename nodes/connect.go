package nodes

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/ssh"
)

// Names in the vault.
const (
	vaultOwnKey    = "ssh/key"         // our private key, OpenSSH PEM
	vaultFirstHost = "ssh/first-host/" // + node: the private host key of its first connection, OpenSSH PEM
	vaultHost      = "ssh/host/"       // + node: hostKey as JSON
)

// hostKey is the key that a node made for itself. Until the node is known to present it, both it and the first key are
// accepted: we may have been interrupted on either side of the change.
type hostKey struct {
	Public    string `json:"public"` // authorized_keys format
	Confirmed bool   `json:"confirmed"`
	Server    string `json:"server,omitempty"`   // Node.Server of whom it is
	Launched  string `json:"launched,omitempty"` // and its Node.Launched
}

// UserData returns the #cloud-config of a node's server: our public key, and a host key that serves the first connection.
// The bytes are the same each time. Only the node's name is needed.
func (c *Cluster) UserData(ctx context.Context, node string) ([]byte, error) {
	if _, err := c.node(node); err != nil {
		return nil, err
	}
	own, _, err := c.key(ctx, vaultOwnKey)
	if err != nil {
		return nil, err
	}
	first, private, err := c.key(ctx, vaultFirstHost+node)
	if err != nil {
		return nil, err
	}
	authorized := strings.TrimSpace(string(xssh.MarshalAuthorizedKey(own.PublicKey()))) + " burano"
	type user struct {
		Name string   `yaml:"name"`
		Keys []string `yaml:"ssh_authorized_keys"`
	}
	document, err := yaml.Marshal(struct {
		Hostname    string            `yaml:"hostname"`
		DisableRoot bool              `yaml:"disable_root"`
		DeleteKeys  bool              `yaml:"ssh_deletekeys"`
		Users       []user            `yaml:"users"`
		HostKeys    map[string]string `yaml:"ssh_keys"`
	}{
		Hostname:   node,
		DeleteKeys: true,
		Users:      []user{{Name: "root", Keys: []string{authorized}}},
		HostKeys: map[string]string{
			"ed25519_private": string(private),
			"ed25519_public":  strings.TrimSpace(string(xssh.MarshalAuthorizedKey(first.PublicKey()))),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("write the user-data of %s: %w", node, err)
	}
	return append([]byte("#cloud-config\n"), document...), nil
}

// key loads an ed25519 key from the vault, and makes it when it is not there.
func (c *Cluster) key(ctx context.Context, name string) (xssh.Signer, []byte, error) {
	c.vaultLock.Lock()
	defer c.vaultLock.Unlock()
	text, found, err := c.config.Vault.Load(ctx, name)
	if err != nil {
		return nil, nil, fmt.Errorf("load key %s: %w", name, err)
	}
	if !found {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, nil, fmt.Errorf("make key %s: %w", name, err)
		}
		block, err := xssh.MarshalPrivateKey(private, "burano")
		if err != nil {
			return nil, nil, fmt.Errorf("encode key %s: %w", name, err)
		}
		text = pem.EncodeToMemory(block)
		if err := c.config.Vault.Store(ctx, name, text); err != nil {
			return nil, nil, fmt.Errorf("store key %s: %w", name, err)
		}
	}
	signer, err := xssh.ParsePrivateKey(text)
	if err != nil {
		return nil, nil, fmt.Errorf("read key %s: %w", name, err)
	}
	return signer, text, nil
}

// connect returns the connection to a node and makes it at first use; then the node gets a host key of its own.
func (c *Cluster) connect(ctx context.Context, node Node) (*ssh.Client, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, errors.New("the cluster was closed")
	}
	connection := c.connections[node.Name]
	if connection == nil {
		connection = &connecting{busy: make(chan struct{}, 1)}
		c.connections[node.Name] = connection
	}
	c.mu.Unlock()

	select {
	case connection.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-connection.busy }()
	if connection.client != nil {
		return connection.client, nil
	}
	client, err := c.dial(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", node.Name, err)
	}
	connection.client = client
	return client, nil
}

// ways are all ways to a node but its floating address: its fixed one, from here where that can be, and through each
// node that has a floating address, gateways first because they face the world anyway.
func (c *Cluster) ways(node Node) []ssh.Way {
	if !node.Address.IsValid() {
		return nil
	}
	address := net.JoinHostPort(node.Address.String(), "22")
	var ways []ssh.Way
	wait := time.Duration(0)
	switch {
	case !node.Access.IsValid():
		ways = append(ways, ssh.Way{Name: ssh.Direct, Address: address})
	case node.Access == node.Address:
		return nil
	default:
		wait = floatingFirst
	}
	var jumps []Node
	for _, role := range []Role{Gateway, Master, Minion} {
		for _, other := range c.config.Nodes {
			if other.Role == role && other.Name != node.Name && other.Access.IsValid() && other.Access != other.Address {
				jumps = append(jumps, other)
			}
		}
	}
	for _, jump := range jumps {
		ways = append(ways, ssh.Way{Name: "through " + jump.Name, Address: address, After: wait, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			client, err := c.connect(ctx, jump)
			if err != nil {
				return nil, err
			}
			ctx, cancel := context.WithTimeout(ctx, jumpTimeout)
			defer cancel()
			return client.DialContext(ctx, network, address)
		}})
		wait += jumpStagger
	}
	return ways
}

const (
	floatingFirst = 5 * time.Second        // what a floating address gets before others try
	jumpStagger   = 500 * time.Millisecond // what each node gets before the next one is asked to pass us through
	jumpTimeout   = 5 * time.Second        // of one TCP connection beyond it
)

// down asks the cloud whether waiting for a node is of no use.
func (c *Cluster) down(node Node) func(context.Context) bool {
	return func(ctx context.Context) bool { return c.config.Server(ctx, node.Name).Down }
}

func (c *Cluster) dial(ctx context.Context, node Node) (*ssh.Client, error) {
	if !node.reach().IsValid() {
		return nil, errors.New("its server has no address yet")
	}
	own, _, err := c.key(ctx, vaultOwnKey)
	if err != nil {
		return nil, err
	}
	first, _, err := c.key(ctx, vaultFirstHost+node.Name)
	if err != nil {
		return nil, err
	}
	known, err := c.loadHostKey(ctx, node.Name)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Server != "" && node.Server != "" && known.Server != node.Server {
		c.config.Report(ctx, node.Name, fmt.Sprintf("its server is a new one (%s in place of %s): it is taken in anew", node.Server, known.Server))
		known = nil // a new server begins with the first key again
	}
	if known != nil && known.Launched != "" && node.Launched != "" && known.Launched != node.Launched {
		known.Confirmed = false // and so does one that was rebuilt; one that the cloud only moved keeps its own
	}
	var accepted []xssh.PublicKey
	var itsOwn xssh.PublicKey
	if known != nil {
		if itsOwn, _, _, _, err = xssh.ParseAuthorizedKey([]byte(known.Public)); err != nil {
			return nil, fmt.Errorf("read its host key: %w", err)
		}
		accepted = append(accepted, itsOwn)
	}
	if known == nil || !known.Confirmed {
		accepted = append(accepted, first.PublicKey())
	}
	config := ssh.Config{Ways: c.ways(node), Signer: own, HostKeys: accepted, Patience: c.config.Patience, Logger: c.config.Logger.With("node", node.Name),
		Fence: c.config.Fence, Alive: c.config.Alive, Down: c.down(node), Connected: c.config.Connected}
	if node.Access.IsValid() {
		config.Address = net.JoinHostPort(node.Access.String(), "22")
	}
	client, err := ssh.Dial(ctx, config)
	if err != nil {
		return nil, err
	}
	if way := client.Way(); way != ssh.Direct {
		c.config.Report(ctx, node.Name, "reached "+way)
	}
	if known != nil && known.Confirmed {
		if known.Server == "" && node.Server != "" || known.Launched == "" && node.Launched != "" { // not known before
			known.Server, known.Launched = cmp.Or(node.Server, known.Server), cmp.Or(node.Launched, known.Launched)
			err = c.storeHostKey(ctx, node.Name, *known)
		}
	} else if err = c.renewHostKey(ctx, node, client, itsOwn); err != nil {
		err = fmt.Errorf("give it a host key of its own: %w", err)
	}
	if err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

//go:embed scripts/host-key.sh
var hostKeyScript string

// renewHostKey has the node make its own host key, stores the public half, and only then has the node present it.
// Interrupted after the storing, both keys are accepted and the rest is done at the next connection.
func (c *Cluster) renewHostKey(ctx context.Context, node Node, client *ssh.Client, itsOwn xssh.PublicKey) error {
	if itsOwn == nil || string(client.HostKey().Marshal()) != string(itsOwn.Marshal()) {
		out, err := client.Run(ctx, ssh.Script{Name: "make a host key", Body: hostKeyScript, Env: map[string]string{"ACTION": "make"}})
		if err != nil {
			return err
		}
		if itsOwn, _, _, _, err = xssh.ParseAuthorizedKey([]byte(out)); err != nil {
			return fmt.Errorf("the node answered with no public key: %w", err)
		}
		public := strings.TrimSpace(string(xssh.MarshalAuthorizedKey(itsOwn)))
		if err := c.storeHostKey(ctx, node.Name, hostKey{Public: public, Server: node.Server, Launched: node.Launched}); err != nil {
			return err
		}
		if _, err := client.Run(ctx, ssh.Script{Name: "present the host key", Body: hostKeyScript, Env: map[string]string{"ACTION": "present"}}); err != nil {
			return err
		}
	}
	client.Demand(itsOwn)
	public := strings.TrimSpace(string(xssh.MarshalAuthorizedKey(itsOwn)))
	return c.storeHostKey(ctx, node.Name, hostKey{Public: public, Confirmed: true, Server: node.Server, Launched: node.Launched})
}

func (c *Cluster) loadHostKey(ctx context.Context, node string) (*hostKey, error) {
	text, found, err := c.config.Vault.Load(ctx, vaultHost+node)
	if err != nil {
		return nil, fmt.Errorf("load its host key: %w", err)
	}
	if !found {
		return nil, nil
	}
	var known hostKey
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("read its host key: %w", err)
	}
	return &known, nil
}

func (c *Cluster) storeHostKey(ctx context.Context, node string, known hostKey) error {
	text, err := json.Marshal(known)
	if err != nil {
		return fmt.Errorf("encode its host key: %w", err)
	}
	if err := c.config.Vault.Store(ctx, vaultHost+node, text); err != nil {
		return fmt.Errorf("store its host key: %w", err)
	}
	return nil
}
