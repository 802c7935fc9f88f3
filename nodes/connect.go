package nodes

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"go.yaml.in/yaml/v3"
	xssh "golang.org/x/crypto/ssh"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/ssh"
)

// UserData returns the #cloud-config of a node's server: our public key, and a host key that serves the first connection.
// The bytes are the same each time. Only the node's name is needed.
func (c *servers) UserData(ctx context.Context, node string) ([]byte, error) {
	if _, err := c.node(node); err != nil {
		return nil, err
	}
	own, err := c.connections.Own(ctx)
	if err != nil {
		return nil, err
	}
	first, private, err := c.connections.First(ctx, node)
	if err != nil {
		return nil, err
	}
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
		Users:      []user{{Name: "root", Keys: []string{access.Authorized(own.PublicKey())}}},
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

// connect returns the connection to a node and makes it at first use; then the node gets a host key of its own.
func (c *servers) connect(ctx context.Context, node Node) (*ssh.Client, error) {
	return c.connections.Connect(ctx, node.server())
}

// server is the node as one to connect to.
func (n Node) server() access.Server {
	made := access.Server{Key: n.Name, Name: n.Name, Access: n.Access, ID: n.Server, Launched: n.Launched, Machine: n.Machine}
	if n.Machine != nil {
		made.ID = n.Endpoint() // at another address another machine answers
	}
	if n.Address.IsValid() {
		made.Addresses = []netip.Addr{n.Address}
	}
	return made
}

// accessConfig is how nodes are connected to: others are reached through gateways first, because these face the world anyway.
func (c Config) accessConfig() access.Config {
	return access.Config{
		Vault: c.Vault, Patience: c.Patience, Logger: c.Logger, Fence: c.Fence, Alive: c.Alive, Connected: c.Connected,
		Through: c.through,
		Report:  func(ctx context.Context, server access.Server, text string) { c.Report(ctx, server.Name, text) },
		Down:    func(ctx context.Context, server access.Server) bool { return c.Server(ctx, server.Name).Down },
	}
}

// through are the nodes through which another one may be reached.
func (c Config) through(to access.Server) []access.Server {
	var jumps []access.Server
	for _, role := range []Role{Gateway, Master, Minion} {
		for _, other := range c.Nodes {
			if other.Role == role && other.Name != to.Name {
				jumps = append(jumps, other.server())
			}
		}
	}
	return jumps
}
