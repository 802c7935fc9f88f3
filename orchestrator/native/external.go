package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/network"
)

// A cluster may have minions on machines that are no servers of the cloud: com.mirantis.docker.kubernetes.KubernetesExternalNode. Nova and Heat do not
// know them. All else is as with other minions, and users' settings of one are stored with its object.

const (
	classExternalNode = "com.mirantis.docker.kubernetes.KubernetesExternalNode"
	propertyExternal  = "externalNodes" // of a cluster
)

// loginName matches the names that useradd takes.
var loginName = regexp.MustCompile(`^[a-z_][-a-z0-9_]{0,31}$`)

// externalNode is an external node as the model describes it.
func externalNode(object *muranopl.Object) (node nodes.Node, err error) {
	node = nodes.Node{Name: object.Text("name"), Role: nodes.Minion,
		Machine: &access.Machine{User: object.Text("user"), Port: uint16(object.Int("port")), HostKey: object.Text("hostKey")}}
	if node.Address, err = netip.ParseAddr(object.Text("address")); err != nil || !node.Address.Is4() {
		return node, fmt.Errorf("the address of %s is %q, which is no IPv4 address", node.Name, object.Text("address"))
	}
	return node, nil
}

// externalNodes are a cluster's external nodes in the model.
func (c *clusters) externalNodes(ctx context.Context, cluster *muranopl.Object) (list []nodes.Node, err error) {
	for _, object := range cluster.Objects(propertyExternal) {
		node, err := externalNode(object)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%w", err)
		}
		if node.Settings, err = c.settings.whole(ctx, object); err != nil {
			return nil, err
		}
		list = append(list, node)
	}
	return list, nil
}

// checkExternal finds mistakes in the external nodes of a cluster; called are the names of its other nodes. Machines must be in the allowed ranges.
func checkExternal(cluster *muranopl.Object, called map[string]bool, allowed []netip.Prefix, pods network.Addressing) (problems []error) {
	at := map[netip.Addr]string{}
	for _, object := range cluster.Objects(propertyExternal) {
		name := object.Text("name")
		if !hostName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%s is no name for a node of a cluster: use lower-case letters, digits and dashes, at most 63", name))
		}
		if called[name] {
			problems = append(problems, fmt.Errorf("two nodes are called %s: give each a name of its own", name))
		}
		called[name] = true
		if !loginName.MatchString(object.Text("user")) {
			problems = append(problems, fmt.Errorf("the user of %s is %q, which is no login name", name, object.Text("user")))
		}
		if key := object.Text("hostKey"); key != "" {
			if _, err := access.ParseHostKey(key); err != nil {
				problems = append(problems, fmt.Errorf("the host key of %s: %w", name, err))
			}
		}
		node, err := externalNode(object)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if other := at[node.Address]; other != "" {
			problems = append(problems, fmt.Errorf("%s and %s have the same address %s: each is a machine of its own", other, name, node.Address))
		}
		at[node.Address] = name
		problems = append(problems, wrongPlace(name, node.Address, allowed, pods)...)
	}
	return problems
}

// wrongPlace finds mistakes in the address of an external node.
func wrongPlace(name string, address netip.Addr, allowed []netip.Prefix, pods network.Addressing) (problems []error) {
	if !slices.ContainsFunc(allowed, func(network netip.Prefix) bool { return network.Contains(address) }) {
		var where []string
		for _, network := range allowed {
			where = append(where, network.String())
		}
		problems = append(problems, fmt.Errorf("the address of %s is %s, where this Burano takes no machines: its operator says by the setting machine-networks from which "+
			"networks it does (now: %s)", name, address, listOrNone(where)))
	}
	for _, taken := range slices.Concat(pods.PodRanges(), pods.ServiceRanges()) {
		if taken.Contains(address) {
			problems = append(problems, fmt.Errorf("the address of %s is %s, which is among those of the cluster's pods and Services (%s)", name, address, taken))
		}
	}
	return problems
}

// withExternal adds the ranges of external nodes outside of the nodes' own network to the further networks of a cluster.
func withExternal(cluster *muranopl.Object, own netip.Prefix, further []netip.Prefix) []netip.Prefix {
	further = slices.Clone(further)
	for _, object := range cluster.Objects(propertyExternal) {
		node, err := externalNode(object)
		if err != nil {
			continue // it is complained about elsewhere
		}
		inside := func(network netip.Prefix) bool { return network.IsValid() && network.Contains(node.Address) }
		if !inside(own) && !slices.ContainsFunc(further, inside) {
			further = append(further, netip.PrefixFrom(node.Address, node.Address.BitLen()))
		}
	}
	slices.SortFunc(further, netip.Prefix.Compare)
	return further
}

// sameMachine is true if a node is the model's external node of that name.
func sameMachine(wanted []nodes.Node, node nodes.Node) bool {
	return slices.ContainsFunc(wanted, func(one nodes.Node) bool {
		return one.Name == node.Name && node.Machine != nil && one.Endpoint() == node.Endpoint()
	})
}

// externalByName finds an external node of a cluster; nil for none.
func externalByName(cluster *muranopl.Object, name string) *muranopl.Object {
	for _, object := range cluster.Objects(propertyExternal) {
		if object.Text("name") == name {
			return object
		}
	}
	return nil
}

// byHand refuses operations that only servers of the cloud support.
func byHand(name string) error {
	return fault.New(fault.Invalid, "%s is a machine of its own and no server of the cloud: Burano can neither replace it nor give it another image. "+
		"Remove it from the cluster (removeExternalNode), set the machine or another one up, and add it again", name)
}

// externalVersions are the external nodes of a cluster with the Kubernetes that they have and keep, and a sentence about that; "" where there are none.
func externalVersions(known *facts, has map[string]string) (list []nodeVersion, said string) {
	var names []string
	for _, node := range known.Nodes {
		if node.Machine == nil {
			continue
		}
		list = append(list, nodeVersion{name: node.Name, role: node.Role, now: parseKubernetes(has[node.Name])})
		names = append(names, fmt.Sprintf("%s (%s)", node.Name, cmp.Or(has[node.Name], "not known")))
	}
	if len(names) > 0 {
		said = "; these machines keep their Kubernetes, until somebody removes them, gives them the newer content and adds them again: " + strings.Join(names, ", ")
	}
	return list, said
}

// addExternalNode is the action that takes a machine into the cluster.
func (c clusterClass) addExternalNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.close()
	text := func(name string) string {
		value, _ := call.Args[name].(string)
		return strings.TrimSpace(value)
	}
	name := text("name")
	there := call.Object.Objects(propertyExternal)
	for _, object := range there {
		same := object.Text("name") == name && object.Text("address") == text("address")
		if same { // called again after a failure
			return nil, c.redeploy(ctx, call, false)
		}
	}
	port, _ := call.Args["port"].(int64)
	made, err := call.Interpreter.New(ctx, classExternalNode, call.Object, map[string]any{"?": map[string]any{"type": classExternalNode}, "name": name, "address": text("address"),
		"port": port, "user": text("user"), "hostKey": call.Args["hostKey"]})
	if err != nil {
		return nil, err
	}
	return nil, c.withNodes(ctx, call, append(slices.Clone(there), made))
}

// removeExternalNode is the action that takes a machine out of the cluster. The machine stays.
func (c clusterClass) removeExternalNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.close()
	c.clusters.allowLoss(call)
	name, _ := call.Args[argumentNode].(string)
	there := call.Object.Objects(propertyExternal)
	left := slices.DeleteFunc(slices.Clone(there), func(object *muranopl.Object) bool { return object.Text("name") == name })
	if len(left) == len(there) {
		var names []string
		for _, object := range there {
			names = append(names, object.Text("name"))
		}
		return nil, fault.New(fault.Invalid, "%s is no external node of cluster %s: there are %s", name, call.Object.Text("name"), listOrNone(names))
	}
	return nil, c.withNodes(ctx, call, left)
}

func listOrNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// withNodes deploys the cluster with other external nodes. When that fails the model is left as it was.
func (c clusterClass) withNodes(ctx context.Context, call muranopl.Call, list []*muranopl.Object) error {
	former := call.Object.Objects(propertyExternal)
	if err := call.Object.SetObjects(propertyExternal, list); err != nil {
		return err
	}
	if err := c.redeploy(ctx, call, false); err != nil {
		return errors.Join(err, call.Object.SetObjects(propertyExternal, former))
	}
	return nil
}

// leaveMachines takes a cluster that is destroyed from the machines of its external nodes.
func (c *clusters) leaveMachines(ctx context.Context, object *muranopl.Object) error {
	known, err := c.facts(ctx, object)
	if err != nil || known == nil || !slices.ContainsFunc(known.Nodes, func(node nodes.Node) bool { return node.Machine != nil }) {
		return err
	}
	config, err := c.config(ctx, object, known.Nodes)
	if err != nil {
		return err
	}
	live, err := nodes.NewCluster(config)
	if err != nil {
		return err
	}
	defer live.Close()
	live.LeaveMachines(ctx)
	known.Nodes = slices.DeleteFunc(known.Nodes, func(node nodes.Node) bool { return node.Machine != nil })
	return c.storeFacts(ctx, object, *known)
}
