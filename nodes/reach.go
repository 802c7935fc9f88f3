package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/nodes/ssh"
)

// A cluster's nodes may stand in several networks, with routers between them. A closed port between two networks drops packets silently. So it is checked
// before a node joins, and not found out by the requests of users.

// Names of the steps for nodes in several networks.
const (
	stepReach = "reach"
	stepAdmit = "other networks"
)

// reachPatience is how long a new node and the rules that let it in may take until connections go through.
const reachPatience = 30 * time.Second

//go:embed scripts/reach.sh
var reachScript string

// CutOffError is the error when a joining node does not reach the others, or they do not reach it.
type CutOffError struct {
	Node    string
	Machine bool // it is no server of the cloud
	Err     error
}

func (e *CutOffError) Error() string {
	if e.Machine {
		return fmt.Sprintf("%s and the other nodes of its cluster do not reach each other: %s. Look at the routes and the firewalls between the machine and the cluster's network", e.Node, e.Err)
	}
	return fmt.Sprintf("%s stands in another network than other nodes of its cluster and does not reach them: %s. "+
		"Look at the routes and the firewalls between the networks, or name another network", e.Node, e.Err)
}

// Unwrap returns the error for the address that was not reached.
func (e *CutOffError) Unwrap() error { return e.Err }

// CutOffs are all of them in an error.
func CutOffs(err error) (all []*CutOffError) {
	switch e := err.(type) {
	case *CutOffError:
		return []*CutOffError{e}
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			all = append(all, CutOffs(part)...)
		}
	case interface{ Unwrap() error }:
		return CutOffs(e.Unwrap())
	}
	return all
}

// Reach makes sure that joining nodes reach the cluster's other nodes, and these them, where nodes stand in several networks. It changes nothing of the
// cluster. The error has CutOffErrors.
func (c *Cluster) Reach(ctx context.Context, joining ...string) error {
	if len(c.config.Further) == 0 {
		return nil
	}
	var others []Node // a node that leaves, or is locked, may not answer, and no other node needs it
	for _, node := range c.config.Nodes {
		if node.Address.IsValid() && !node.Leaving && !node.Settings.Locked && !slices.Contains(joining, node.Name) && !c.config.Server(ctx, node.Name).Down {
			others = append(others, node)
		}
	}
	if len(others) == 0 {
		return nil
	}
	var problems []error
	for _, name := range joining {
		node, err := c.node(name)
		if err != nil {
			return err
		}
		err = c.config.Step(ctx, name, stepReach, func(ctx context.Context) error { return c.reachBothWays(ctx, node, others) })
		var unreachable *ssh.UnreachableError
		var exit *ssh.ExitError
		switch {
		case errors.As(err, &unreachable), errors.As(err, &exit):
			problems = append(problems, &CutOffError{Node: name, Machine: node.Machine != nil, Err: err})
		case err != nil:
			return err
		}
	}
	return errors.Join(problems...)
}

func (c *Cluster) reachBothWays(ctx context.Context, node Node, others []Node) error {
	if err := c.reaches(ctx, node, others...); err != nil {
		return err
	}
	for _, other := range others {
		if other.Role != Master {
			continue
		}
		if err := c.reaches(ctx, other, node); err != nil {
			return err
		}
	}
	return nil
}

// reaches has a node open a connection to the sshd of others, which listens whatever else runs there.
func (c *Cluster) reaches(ctx context.Context, from Node, others ...Node) error {
	lines := make([]string, len(others))
	for i, other := range others {
		lines[i] = fmt.Sprintf("%s %s %d", other.Name, other.Address, other.sshPort())
	}
	_, err := c.script(ctx, from.Name, ssh.Script{Name: "reach other nodes", Body: reachScript, Env: map[string]string{"NODES": strings.Join(lines, "\n"),
		"PATIENCE": strconv.Itoa(int(min(reachPatience, c.config.Patience).Seconds()))}})
	if err != nil {
		return fmt.Errorf("from %s: %w", from.Name, err)
	}
	return nil
}

// networksOfNodes are where the fixed addresses of nodes are.
func (c Config) networksOfNodes() []netip.Prefix {
	var all []netip.Prefix
	for _, network := range append([]netip.Prefix{c.NodeNetwork}, c.Further...) {
		if network.IsValid() {
			all = append(all, network.Masked())
		}
	}
	return all
}
