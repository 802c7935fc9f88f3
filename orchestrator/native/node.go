package native

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
)

// propertyNode is what io.murano.resources.LinuxMuranoInstance wants to know of the node that it is to become.
const propertyNode = "node"

// prepare puts the servers of the clusters' active nodes into the template of the environment's stack, by their instances' own beginDeploy,
// and takes those of the other nodes out. It returns the instances of both.
func (c *clusters) prepare(ctx context.Context, interpreter *muranopl.Interpreter) (active, idle []*muranopl.Object, err error) {
	all := c.objects.all(classCluster)
	if len(all) == 0 {
		return nil, nil, nil
	}
	c.preparing.Lock()
	defer c.preparing.Unlock()
	var wanted []string
	for _, cluster := range all {
		for _, node := range activeNodes(cluster) {
			active = append(active, node.object.Object("instance"))
			wanted = append(wanted, node.object.Object("instance").ID())
		}
		for _, p := range []pool{minions, gateways} {
			for _, node := range cluster.Objects(p.list)[len(p.active(cluster)):] {
				idle = append(idle, node.Object("instance"))
			}
		}
	}
	own := c.stacks.own()
	template, err := c.stacks.template(ctx, own)
	if err != nil {
		return nil, nil, err
	}
	resources, _ := template["resources"].(map[string]any)
	there := func(instance *muranopl.Object) bool { return resources[openstack.ServerResource(instance.ID())] != nil }
	absent := func(instance *muranopl.Object) bool { return !there(instance) }
	if slices.Equal(wanted, c.prepared) && !slices.ContainsFunc(active, absent) && !slices.ContainsFunc(idle, there) {
		return active, idle, nil
	}
	for _, instance := range idle {
		if there(instance) {
			if _, err := c.stacks.replace(ctx, own, instance.ID()+"-", nil); err != nil {
				return nil, nil, err
			}
		}
	}
	network, err := c.joinNetwork(ctx, interpreter)
	if err != nil {
		return nil, nil, err
	}
	for _, cluster := range all {
		if err := c.prepareOne(ctx, interpreter, cluster, network); err != nil {
			return nil, nil, err
		}
	}
	c.prepared = wanted
	c.join(network)
	return active, idle, nil
}

func (c *clusters) prepareOne(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object, network netip.Prefix) error {
	known, err := c.of(cluster)
	if err != nil {
		return err
	}
	groups := map[string]any{}
	for _, node := range activeNodes(cluster) {
		instance, group := node.object.Object("instance"), cluster.ID()+"-"+string(node.role)
		groups[group] = map[string]any{"type": "OS::Neutron::SecurityGroup", "properties": map[string]any{
			"name": cluster.Text("name") + "-" + string(node.role), "rules": nodeRules(node.role, network, cluster.Text("publicCidr"))}}
		data, err := known.names.UserData(ctx, instance.Text("name"))
		if err != nil {
			return err
		}
		err = instance.Set(propertyNode, map[string]any{"userData": string(data), "securityGroups": []any{map[string]any{"get_resource": group}},
			"allowedAddresses": []any{podNetwork.String()}})
		if err != nil {
			return err
		}
		if _, err := interpreter.Invoke(ctx, instance, methodBeginDeploy, nil); err != nil {
			return err
		}
	}
	_, err = c.stacks.replace(ctx, c.stacks.own(), cluster.ID()+"-", map[string]any{"resources": groups})
	return err
}

// release takes the security groups of a cluster that is destroyed out of the template.
func (c *clusters) release(ctx context.Context, cluster *muranopl.Object) error {
	if c.objects.model() == nil {
		return nil // the whole stack goes
	}
	own := c.stacks.own()
	if changed, err := c.stacks.replace(ctx, own, cluster.ID()+"-", nil); err != nil || !changed {
		return err
	}
	own.mutex.Lock()
	defer own.mutex.Unlock()
	return c.stacks.keep(ctx, own)
}

// nodeRules says what a node lets in: everything from the cluster's own networks, SSH, and what its role offers to the public network. On
// gateways the daemon closes again what is not published.
func nodeRules(role nodes.Role, network netip.Prefix, public string) []any {
	rule := func(from, protocol string, first, last int64) any {
		made := map[string]any{"direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": from}
		if protocol != "" {
			made["protocol"], made["port_range_min"], made["port_range_max"] = protocol, first, last
		}
		return made
	}
	rules := []any{rule(network.String(), "", 0, 0), rule(podNetwork.String(), "", 0, 0), rule("0.0.0.0/0", "tcp", 22, 22)}
	switch role {
	case nodes.Master:
		rules = append(rules, rule(public, "tcp", kube.APIServerPort, kube.APIServerPort))
	case nodes.Gateway:
		rules = append(rules, rule(public, "tcp", 1, 65535))
	}
	return rules
}

// joinNetwork puts the environment's network into the stack, and returns its subnet.
func (c *clusters) joinNetwork(ctx context.Context, interpreter *muranopl.Interpreter) (netip.Prefix, error) {
	network := environmentNetwork(c.objects.model())
	if network == nil {
		return netip.Prefix{}, errors.New("the environment has no network for its servers: give its model one in defaultNetworks.environment")
	}
	if !network.Class().Is(classNeutronNetwork) {
		return netip.Prefix{}, fmt.Errorf("the environment's network is a %s: so far clusters stand only in a %s", network.Class().Name, classNeutronNetwork)
	}
	if _, err := interpreter.Invoke(ctx, network, methodBeginDeploy, nil); err != nil {
		return netip.Prefix{}, err
	}
	subnet, err := netip.ParsePrefix(network.Text("subnetCidr"))
	if err != nil {
		return subnet, fmt.Errorf("subnetCidr of the environment's network is %q, which is no network: write it like 10.20.0.0/24", network.Text("subnetCidr"))
	}
	return subnet, nil
}

// serverName is what the server of a cluster's node is called.
func serverName(node *muranopl.Object) string { return node.Object("instance").Text("name") }

func serverNames(nodes []*muranopl.Object) string {
	names := make([]string, len(nodes))
	for i, node := range nodes {
		names[i] = serverName(node)
	}
	return strings.Join(names, ", ")
}
