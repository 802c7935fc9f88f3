package access

import (
	"context"
	"net/netip"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/store"
)

// ActionJoin is the action of clusters by which a machine becomes a node.
const ActionJoin = "addExternalNode"

// JoinArguments are the arguments of ActionJoin for a machine.
func JoinArguments(machine store.Machine) map[string]any {
	return map[string]any{"name": machine.Node, "address": machine.Address, "port": machine.Port, "user": machine.Login, "hostKey": machine.HostKey}
}

// Joining is all that a machine learns before it becomes a node.
type Joining struct {
	Node      string `json:"node"`    // its name
	Cluster   string `json:"cluster"` // the cluster's
	PublicKey string `json:"public_key"`
	// Owner is how a machine notes that it is a node of this cluster (nodes.OwnerOf).
	Owner string `json:"owner"`
}

// TakesMachines returns a fault unless the object is a cluster that was up, and machines may be nodes.
func (c Clusters) TakesMachines(ctx context.Context, environmentID, objectID string) error {
	if _, err := known.FactsOf(ctx, c.vault(environmentID, objectID)); err != nil {
		return err
	}
	if len(c.Config.MachineNetworks) == 0 {
		return fault.New(fault.Conflict, "This Burano takes no machines: its operator says by the setting machine-networks in which networks they may be")
	}
	return nil
}

// Join tells a machine how it becomes a node of the cluster that this object of the environment is. A fault describes a machine that does not fit; a
// machine that is a node already keeps its name.
func (c Clusters) Join(ctx context.Context, environmentID, objectID string, machine store.Machine) (Joining, error) {
	keep := c.vault(environmentID, objectID)
	known, err := known.FactsOf(ctx, keep)
	if err != nil {
		return Joining{}, err
	}
	address, err := netip.ParseAddr(machine.Address)
	if err != nil || !address.Is4() {
		return Joining{}, fault.New(fault.Invalid, "The address of the machine is %q, which is no IPv4 address: give its own by --address", machine.Address)
	}
	switch {
	case !desired.HostName.MatchString(machine.Node):
		return Joining{}, fault.New(fault.Invalid, "%q is no name for a node of a cluster: give one by --name, of lower-case letters, digits and dashes, at most 63", machine.Node)
	case !desired.LoginName.MatchString(machine.Login):
		return Joining{}, fault.New(fault.Invalid, "%q is no login name", machine.Login)
	case machine.Port < 1 || machine.Port > 65535:
		return Joining{}, fault.New(fault.Invalid, "Port %d is none: ports are 1 to 65535", machine.Port)
	}
	if _, err := access.ParseHostKey(machine.HostKey); err != nil {
		return Joining{}, fault.New(fault.Invalid, "The host key of the machine: %w", err)
	}
	for _, problem := range desired.CheckAddress(machine.Node, address, c.Config.MachineNetworks, known.Addressing) {
		return Joining{}, fault.New(fault.Invalid, "%w", problem)
	}
	answer := Joining{Node: machine.Node, Cluster: known.Name}
	if answer.Node, err = joinAs(known.Nodes, address, machine); err != nil {
		return Joining{}, err
	}
	keys := access.NewKeys(keep)
	if answer.PublicKey, err = keys.PublicFor(ctx, answer.Node); err != nil {
		return Joining{}, err
	}
	answer.Owner, err = nodes.OwnerOf(ctx, keys, known.Name)
	return answer, err
}

// joinAs is the name under which a machine becomes one of these nodes, or already is one of them.
func joinAs(list []nodes.Node, address netip.Addr, machine store.Machine) (string, error) {
	for _, node := range list {
		if node.Address != address {
			continue
		}
		switch {
		case node.Machine == nil:
			return "", fault.New(fault.Conflict, "The address %s is that of the node %s, which is a server of the cloud: give the machine's own by --address", address, node.Name)
		case node.Machine.HostKey != "" && !sameKey(node.Machine.HostKey, machine.HostKey):
			return "", fault.New(fault.Conflict, "A node %s with the address %s and another host key is in the cluster already. When this is that machine, set up anew, remove the node first (burano node remove)", node.Name, address)
		case node.Endpoint() != netip.AddrPortFrom(address, uint16(machine.Port)).String() || node.Machine.User != machine.Login:
			return "", fault.New(fault.Conflict, "This machine is the node %s already, to which Burano logs in as %s at %s: join with the same --user and --port, or remove the node first (burano node remove)",
				node.Name, node.Machine.User, node.Endpoint())
		}
		return node.Name, nil
	}
	for _, node := range list {
		if node.Name == machine.Node {
			return "", fault.New(fault.Conflict, "The cluster has a node %s already, with another address: give this machine another name by --name", node.Name)
		}
	}
	return machine.Node, nil
}

func sameKey(one, other string) bool {
	a, errA := access.ParseHostKey(one)
	b, errB := access.ParseHostKey(other)
	return errA == nil && errB == nil && string(a.Marshal()) == string(b.Marshal())
}
