package native

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

// attributeNetwork is kept with a cluster: the network that it was made with.
const attributeNetwork = "network"

// podNetwork is where pods get their addresses from.
var podNetwork = netip.MustParsePrefix("10.244.0.0/16")

// hostName is what Kubernetes takes as the name of a node, shortened to one label (RFC 1123).
var hostName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// cluster is a Kubernetes cluster of the model during one task.
type cluster struct {
	object *muranopl.Object
	names  *nodes.Cluster // knows only names: enough for user data
	live   *nodes.Cluster // knows addresses; nil before the servers are there
}

// member is a node of a cluster that is to run.
type member struct {
	object *muranopl.Object
	role   nodes.Role
}

// activeNodes lists the nodes that are to run, the master first: of minions and gateways as many as the counts say.
func activeNodes(cluster *muranopl.Object) []member {
	active := []member{{cluster.Object("masterNode"), nodes.Master}}
	add := func(role nodes.Role, list, count string) {
		all := cluster.Objects(list)
		for _, node := range all[:min(cluster.Int(count), len(all))] {
			active = append(active, member{node, role})
		}
	}
	add(nodes.Minion, "minionNodes", "nodeCount")
	add(nodes.Gateway, "gatewayNodes", "gatewayCount")
	return active
}

// cluster returns the task's one cluster for this object.
func (t *task) cluster(object *muranopl.Object) (*cluster, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if known := t.clusters[object.ID()]; known != nil {
		return known, nil
	}
	var list []nodes.Node
	for _, member := range activeNodes(object) {
		list = append(list, nodes.Node{Name: serverName(member.object), Role: member.role})
	}
	names, err := nodes.NewCluster(t.clusterConfig(object, list))
	if err != nil {
		return nil, err
	}
	known := &cluster{object: object, names: names}
	t.clusters[object.ID()] = known
	return known, nil
}

func (t *task) closeClusters() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, known := range t.clusters {
		if known.live != nil {
			if err := known.live.Close(); err != nil {
				t.config.Logger.Debug("closing the connections of a cluster", "cluster", known.object.ID(), "error", err)
			}
		}
	}
}

func (t *task) clusterConfig(object *muranopl.Object, list []nodes.Node) nodes.Config {
	return nodes.Config{
		Name:          object.Text("name"),
		Nodes:         list,
		Network:       podNetworkOf(object),
		Vault:         vault{t.Runtime, object.ID()},
		Binary:        t.config.Binary,
		Patience:      t.config.SSHPatience,
		StepPatience:  t.config.StepPatience,
		DrainPatience: t.config.DrainPatience,
		DNS:           object.Bool("enableKubeDns"),
		Fence:         t.Fence(),
		Alive:         t.Alive,
		Report: func(ctx context.Context, node, text string) {
			if node != "" {
				text = node + ": " + text
			}
			t.inform(ctx, object, "%s", text)
		},
		Step: func(ctx context.Context, node, name string, run func(context.Context) error) error {
			if node != "" {
				name = node + ": " + name
			}
			return t.Step(ctx, object, name, run)
		},
		Server:  func(ctx context.Context, node string) nodes.ServerState { return t.serverState(ctx, list, node) },
		Console: func(ctx context.Context, node string) string { return t.console(ctx, list, node) },
		Logger:  t.config.Logger,
	}
}

// podNetworkOf is what is to connect the pods of a cluster.
func podNetworkOf(object *muranopl.Object) nodes.Network {
	if object.Bool("useFlannel") {
		return nodes.Flannel
	}
	return nodes.Calico
}

// vault keeps a cluster's secrets among those of its environment.
type vault struct {
	runtime Runtime
	cluster string
}

func (v vault) Load(ctx context.Context, name string) ([]byte, bool, error) {
	return v.runtime.Secret(ctx, secretName(v.cluster, name))
}

func (v vault) Store(ctx context.Context, name string, value []byte) error {
	return v.runtime.SetSecret(ctx, secretName(v.cluster, name), value)
}

// deployCluster brings the cluster's servers and then the cluster itself to what the model wants, once per task.
func (t *task) deployCluster(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, t.once("cluster "+call.Object.ID(), func() error { return t.bringUp(ctx, call.Interpreter, call.Object) })
}

func (t *task) bringUp(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	if err := t.checkCluster(ctx, object); err != nil {
		return err
	}
	known, err := t.cluster(object)
	if err != nil {
		return err
	}
	stack, err := t.servers(ctx, interpreter) // shrinks the cluster first
	if err != nil {
		return err
	}
	_, network, err := t.joinNetwork(ctx, interpreter)
	if err != nil {
		return err
	}
	var list []nodes.Node
	for _, member := range activeNodes(object) {
		instance := member.object.Object("instance")
		addresses, ok := stack.Addresses(instance.ID())
		if !ok {
			return fmt.Errorf("the stack tells no address of server %s", instance.Text("name"))
		}
		node := nodeOf(instance.Text("name"), member.role, addresses)
		node.Launched = t.launched(addresses.ServerID)
		list = append(list, node)
	}
	config := t.clusterConfig(object, list)
	config.NodeNetwork = network
	live, err := nodes.NewCluster(config)
	if err != nil {
		return err
	}
	t.mutex.Lock()
	known.live = live
	t.mutex.Unlock()
	if err := t.SetAttribute(ctx, object, attributeNetwork, string(config.Network)); err != nil {
		return err
	}
	former, err := t.facts(ctx, object)
	if err != nil {
		return err
	}
	if former != nil {
		// A node that was only begun with must be removed like any other.
		if err := t.keepFacts(ctx, object, list); err != nil {
			return err
		}
	}
	if err := live.Deploy(ctx); err != nil {
		return err
	}
	if err := t.keepFacts(ctx, object, list); err != nil {
		return err
	}
	t.inform(ctx, object, "Kubernetes cluster %s is up and running", object.Text("name"))
	return nil
}

// facts returns what is known of a cluster that was up before; nil when it never was.
func (t *task) facts(ctx context.Context, object *muranopl.Object) (*facts, error) {
	text, found, err := vault{t.Runtime, object.ID()}.Load(ctx, factsName)
	if err != nil || !found {
		return nil, err
	}
	known := &facts{}
	if err := json.Unmarshal(text, known); err != nil {
		return nil, fmt.Errorf("read the facts of cluster %s: %w", object.ID(), err)
	}
	return known, nil
}

// shrink takes out of a cluster the nodes that run in it and are not wanted any more, once per task. It must be done before their
// servers go.
func (t *task) shrink(ctx context.Context, object *muranopl.Object, network netip.Prefix) error {
	return t.once("shrink "+object.ID(), func() error {
		known, err := t.facts(ctx, object)
		if err != nil || known == nil {
			return err
		}
		wanted := map[string]bool{}
		for _, member := range activeNodes(object) {
			wanted[serverName(member.object)] = true
		}
		var leaving []string
		var staying []nodes.Node
		for _, node := range known.Nodes {
			if wanted[node.Name] {
				staying = append(staying, node)
			} else {
				leaving = append(leaving, node.Name)
			}
		}
		if len(leaving) == 0 {
			return nil
		}
		gone, err := t.revive(ctx, object, staying)
		if err != nil {
			return err
		}
		staying = slices.DeleteFunc(staying, func(node nodes.Node) bool { return slices.Contains(gone, node.Name) })
		if !slices.ContainsFunc(staying, func(node nodes.Node) bool { return node.Role == nodes.Minion }) {
			return fmt.Errorf("%s cannot be removed: of the nodes that are to stay Nova does not know %s any more, so that nobody would take the pods. "+
				"Deploy the cluster with the nodes that it had, for new servers in the place of those that are gone, and make it smaller then",
				strings.Join(leaving, ", "), strings.Join(gone, ", "))
		}
		leaving = append(leaving, gone...)
		config := t.clusterConfig(object, known.Nodes)
		config.NodeNetwork = network
		former, err := nodes.NewCluster(config)
		if err != nil {
			return err
		}
		defer former.Close()
		t.inform(ctx, object, "Removing %s", strings.Join(leaving, ", "))
		if err := former.Remove(ctx, leaving...); err != nil {
			return err
		}
		return t.keepFacts(ctx, object, staying)
	})
}

// keepFacts keeps what a kubeconfig needs to know of the cluster.
func (t *task) keepFacts(ctx context.Context, object *muranopl.Object, list []nodes.Node) error {
	address := list[0].Access
	if !address.IsValid() {
		address = list[0].Address
	}
	api := "https://" + netip.AddrPortFrom(address, 6443).String()
	text, err := json.Marshal(facts{Name: object.Text("name"), API: api, Nodes: list})
	if err != nil {
		return err
	}
	return vault{t.Runtime, object.ID()}.Store(ctx, factsName, text)
}

// nodeOf is the node that a server is.
func nodeOf(name string, role nodes.Role, addresses openstack.Addresses) nodes.Node {
	return nodes.Node{Name: name, Role: role, Address: addresses.Fixed, Access: addresses.Floating, Server: addresses.ServerID}
}

// checkCluster finds what would fail later, before anything is made.
func (t *task) checkCluster(ctx context.Context, object *muranopl.Object) error {
	var problems []error
	seen := map[string]bool{}
	for _, other := range t.all(classCluster) {
		for _, member := range activeNodes(other) {
			name := serverName(member.object)
			if other == object {
				if !hostName.MatchString(name) {
					problems = append(problems, fmt.Errorf("%s is no name for a server of a cluster: use lower-case letters, digits and dashes, at most 63", name))
				}
				if seen[name] {
					problems = append(problems, fmt.Errorf("two servers are called %s: give each a name of its own", name))
				}
			}
			seen[name] = true
		}
	}
	for _, pair := range [][2]string{{"nodeCount", "minionNodes"}, {"gatewayCount", "gatewayNodes"}} {
		if count, listed := object.Int(pair[0]), len(object.Objects(pair[1])); count > listed {
			problems = append(problems, fmt.Errorf("%s is %d but %s lists only %d: list more, or ask for fewer", pair[0], count, pair[1], listed))
		}
	}
	if _, err := netip.ParsePrefix(object.Text("publicCidr")); err != nil {
		problems = append(problems, fmt.Errorf("publicCidr is %q, which is no network: write it like 0.0.0.0/0", object.Text("publicCidr")))
	}
	kept, found, err := t.Attribute(ctx, object, attributeNetwork)
	if err != nil {
		return err
	}
	if wanted := podNetworkOf(object); found && kept != string(wanted) {
		problems = append(problems, fmt.Errorf("useFlannel cannot be changed: cluster %s was made with %s, and its pods have their addresses from it; set useFlannel back, or make another cluster for %s",
			object.Text("name"), kept, wanted))
	}
	return errors.Join(problems...)
}

// destroyCluster has nothing to do by itself: its servers go with the stack, or with the stack's next update.
func (t *task) destroyCluster(context.Context, muranopl.Call) (any, error) { return nil, nil }
