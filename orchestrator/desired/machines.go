package desired

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/network"
)

// HostName matches the names that Kubernetes takes for a node, shortened to one label (RFC 1123).
var HostName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// LoginName matches the names that useradd takes.
var LoginName = regexp.MustCompile(`^[a-z_][-a-z0-9_]{0,31}$`)

// Machine is a minion on a machine that is no server of the cloud.
type Machine struct {
	nodes.Node
	// Address as the model has it; Node's is not valid where this is none of IPv4.
	Text   string
	Object *muranopl.Object // nil in a stored model
}

func (c *Cluster) readMachines(p properties) {
	for _, entry := range p.list("externalNodes") {
		one, is := propertiesOf(entry, p.wrong)
		if !is {
			continue
		}
		machine := Machine{Text: one.text("address"), Node: nodes.Node{Name: one.text("name"), Role: nodes.Minion,
			Machine: &access.Machine{User: one.text("user"), Port: uint16(one.number("port", 0)), HostKey: one.text("hostKey")}}}
		machine.Object, _ = entry.(*muranopl.Object)
		if address, err := netip.ParseAddr(machine.Text); err == nil && address.Is4() {
			machine.Address = address
		}
		c.Machines = append(c.Machines, machine)
	}
}

// misplaced is nil for a machine with an address.
func (m Machine) misplaced() error {
	if m.Address.IsValid() {
		return nil
	}
	return fmt.Errorf("the address of %s is %q, which is no IPv4 address", m.Name, m.Text)
}

// MachineNodes are the nodes on machines; an error where one has no address.
func (c *Cluster) MachineNodes() (list []Machine, err error) {
	for _, machine := range c.Machines {
		if err := machine.misplaced(); err != nil {
			return nil, err
		}
	}
	return c.Machines, nil
}

// CheckMachines finds mistakes in a cluster's machines; called are the names of its other nodes. Machines must be in the allowed ranges.
func (c *Cluster) CheckMachines(called map[string]bool, allowed []netip.Prefix, pods network.Addressing) (mistakes []error) {
	at := map[netip.Addr]string{}
	for _, machine := range c.Machines {
		refuse := func(format string, arguments ...any) { mistakes = append(mistakes, fmt.Errorf(format, arguments...)) }
		name := machine.Name
		if !HostName.MatchString(name) {
			refuse("%s is no name for a node of a cluster: use lower-case letters, digits and dashes, at most 63", name)
		}
		if called[name] {
			refuse("two nodes are called %s: give each a name of its own", name)
		}
		called[name] = true
		if user := machine.Machine.User; !LoginName.MatchString(user) {
			refuse("the user of %s is %q, which is no login name", name, user)
		}
		if key := machine.Machine.HostKey; key != "" {
			if _, err := access.ParseHostKey(key); err != nil {
				refuse("the host key of %s: %w", name, err)
			}
		}
		if err := machine.misplaced(); err != nil {
			mistakes = append(mistakes, err)
			continue
		}
		if other := at[machine.Address]; other != "" {
			refuse("%s and %s have the same address %s: each is a machine of its own", other, name, machine.Address)
		}
		at[machine.Address] = name
		mistakes = append(mistakes, CheckAddress(name, machine.Address, allowed, pods)...)
	}
	return mistakes
}

// CheckAddress finds mistakes in the address of a machine.
func CheckAddress(name string, address netip.Addr, allowed []netip.Prefix, pods network.Addressing) (mistakes []error) {
	if !slices.ContainsFunc(allowed, func(network netip.Prefix) bool { return network.Contains(address) }) {
		var where []string
		for _, network := range allowed {
			where = append(where, network.String())
		}
		if len(where) == 0 {
			where = []string{"none"}
		}
		mistakes = append(mistakes, fmt.Errorf("the address of %s is %s, where this Burano takes no machines: its operator says by the setting machine-networks from which "+
			"networks it does (now: %s)", name, address, strings.Join(where, ", ")))
	}
	for _, taken := range slices.Concat(pods.PodRanges(), pods.ServiceRanges()) {
		if taken.Contains(address) {
			mistakes = append(mistakes, fmt.Errorf("the address of %s is %s, which is among those of the cluster's pods and Services (%s)", name, address, taken))
		}
	}
	return mistakes
}

// WithMachines adds the ranges of machines outside of the nodes' own network to the further networks of a cluster.
func (c *Cluster) WithMachines(own netip.Prefix, further []netip.Prefix) []netip.Prefix {
	further = slices.Clone(further)
	for _, machine := range c.Machines {
		inside := func(network netip.Prefix) bool { return network.IsValid() && network.Contains(machine.Address) }
		if machine.Address.IsValid() && !inside(own) && !slices.ContainsFunc(further, inside) {
			further = append(further, netip.PrefixFrom(machine.Address, machine.Address.BitLen()))
		}
	}
	slices.SortFunc(further, netip.Prefix.Compare)
	return further
}

// MachineCalled finds a machine of a cluster; false for none.
func (c *Cluster) MachineCalled(name string) (Machine, bool) {
	for _, machine := range c.Machines {
		if machine.Name == name {
			return machine, true
		}
	}
	return Machine{}, false
}
