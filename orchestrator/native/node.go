package native

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// propertyNode is the node that an instance becomes, as io.murano.resources.LinuxMuranoInstance reads it.
const propertyNode = "node"

// prepare puts the servers of the clusters' active nodes into the template of the environment's stack, by their instances' own beginDeploy, and
// removes those of the other nodes. It returns the servers of the active nodes, with the former servers of nodes that are replaced, and the instances
// of the others.
func (c *clusters) prepare(ctx context.Context, interpreter *muranopl.Interpreter) (active []nodeServer, idle []*muranopl.Object, err error) {
	all := c.objects.Clusters()
	if len(all) == 0 {
		return nil, nil, nil
	}
	c.preparing.Lock()
	defer c.preparing.Unlock()
	var wanted, unwanted []string // the latter are prefixes
	var members []member
	byCluster := map[*muranopl.Object][]member{}
	for _, cluster := range all {
		if err := nodeNamesOf(c).withdraw(ctx, cluster); err != nil {
			return nil, nil, err
		}
		list, err := c.members(ctx, cluster)
		if err != nil {
			return nil, nil, err
		}
		members, byCluster[cluster] = append(members, list...), list
		for _, one := range list {
			if !one.absent {
				active = append(active, one.server)
			}
			wanted = append(wanted, fmt.Sprint(one.server.id(), one.holds, one.absent, one.place.Subnet))
		}
		wanted = append(wanted, fmt.Sprint(task.Desired(cluster).WithMachines(netip.Prefix{}, nil)))
		if shared := cluster.Object(propertyVirtual); shared != nil {
			wanted = append(wanted, shared.ID())
		}
		for _, list := range nodeLists(cluster) {
			for _, node := range list.idle() {
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
	there := func(server nodeServer) bool { return resources[openstack.ServerResource(server.id())] != nil }
	absent := func(server nodeServer) bool { return !there(server) }
	for _, instance := range idle {
		if err := c.settings.forget(ctx, instance); err != nil {
			return nil, nil, err
		}
		known, err := c.successions.of(ctx, instance)
		if err != nil {
			return nil, nil, err
		}
		if known.replacing() {
			if err := c.successions.keep(ctx, instance, succession{Current: known.Current, Task: known.Task}); err != nil {
				return nil, nil, err
			}
		}
		for number := range known.Current {
			unwanted = append(unwanted, nodeServer{instance: instance, number: number + 1}.prefix())
		}
	}
	for _, one := range members {
		for number := int64(1); number <= one.server.number+1; number++ { // one more than there is to be was given up
			former := nodeServer{instance: one.instance(), number: number}
			stays := slices.ContainsFunc(active, func(server nodeServer) bool { return server.id() == former.id() })
			if there(former) && !stays {
				unwanted = append(unwanted, former.prefix()) // with a floating address, which the current one then puts back
			}
		}
	}
	begins := func(prefix string) bool {
		return slices.ContainsFunc(slices.Collect(maps.Keys(resources)), func(name string) bool { return strings.HasPrefix(name, prefix) })
	}
	unwanted = slices.DeleteFunc(unwanted, func(prefix string) bool { return !begins(prefix) })
	if slices.Equal(wanted, c.prepared) && !slices.ContainsFunc(active, absent) && len(unwanted) == 0 {
		return active, idle, nil
	}
	network, err := nodePreparationOf(c).joinNetwork(ctx, interpreter)
	if err != nil {
		return nil, nil, err
	}
	for _, cluster := range all {
		if err := podNetworksOf(c).separate(ctx, cluster, network); err != nil {
			return nil, nil, err
		}
		if err := nodePlacesOf(c).connected(ctx, cluster, byCluster[cluster], network); err != nil {
			return nil, nil, err
		}
		further := task.Desired(cluster).WithMachines(network, furtherOf(byCluster[cluster]))
		if err := podNetworksOf(c).oneSubnet(ctx, cluster, network, further); err != nil {
			return nil, nil, err
		}
		if err := nodePlacesOf(c).recordPlaces(ctx, cluster, byCluster[cluster]); err != nil {
			return nil, nil, err
		}
		c.joinFurther(cluster, further)
	}
	for _, prefix := range unwanted {
		if _, err := c.stacks.replace(ctx, own, prefix, nil); err != nil {
			return nil, nil, err
		}
	}
	for _, one := range members {
		if one.absent && !one.leaving {
			if err := nodePreparationOf(c).keepFloating(ctx, one.instance(), template); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, cluster := range all {
		if err := c.masters.keep(ctx, cluster, false); err != nil {
			return nil, nil, err
		}
		for _, group := range cluster.Objects(propertyGroups) {
			if err := c.groups.keep(ctx, group); err != nil {
				return nil, nil, err
			}
		}
	}
	places, err := nodePreparationOf(c).placements(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, cluster := range all {
		if err := nodePreparationOf(c).prepareOne(ctx, interpreter, cluster, network, places, template); err != nil {
			return nil, nil, err
		}
	}
	c.prepared = wanted
	c.join(network)
	return active, idle, nil
}

// nodePreparation prepares the servers of nodes.
type nodePreparation struct {
	objects  task.Objects
	runtime  clustersRuntime
	stacks   *heatStacks
	clusters *clusters
}

func nodePreparationOf(c *clusters) nodePreparation {
	return nodePreparation{objects: c.objects, runtime: c.runtime, stacks: c.stacks, clusters: c}
}

func (c nodePreparation) prepareOne(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object, network netip.Prefix, places *placements, before map[string]any) error {
	list, err := c.clusters.members(ctx, cluster)
	if err != nil {
		return err
	}
	config, err := clusterConnectionsOf(c.clusters).config(ctx, cluster, nodesOf(list))
	if err != nil {
		return err
	}
	names, err := nodes.NewCluster(config)
	if err != nil {
		return err
	}
	virtual, err := virtualAddressesOf(c.clusters).prepareVirtual(ctx, interpreter, cluster)
	if err != nil {
		return err
	}
	wanted := task.Desired(cluster)
	groups := map[string]any{}
	for _, node := range list {
		if node.leaving || node.waits || node.absent {
			if err := virtualAddressesOf(c.clusters).keepVirtual(ctx, node, virtual); err != nil {
				return err
			}
			continue // all else that the stack has of it stays as it is
		}
		allowed := []any{}
		if !task.OnlyGateways(cluster) {
			for _, pods := range config.Addressing.PodRanges() {
				allowed = append(allowed, pods.String())
			}
		}
		if node.role == nodes.Gateway {
			allowed = append(allowed, virtual...)
		}
		instance, group := node.instance(), cluster.ID()+"-"+string(node.role)
		stands := any(nil) // in the environment's network
		if node.place.Subnet != "" && !node.otherwise {
			stands, _ = nodePlacesOf(c.clusters).wishedNetwork(instance)
		}
		rules := nodeRules(node.role, network, config.Addressing.Pods, wanted.Public, c.clusters.server.SSHFrom)
		if config.Addressing.Six() {
			rules = append(rules, nodeRules6(node.role, config.NodeNetwork6, config.Addressing.Pods6, wanted.Reaches6())...)
		}
		groups[group] = map[string]any{"type": "OS::Neutron::SecurityGroup", "properties": map[string]any{
			"name": wanted.Name + "-" + string(node.role), "rules": rules}}
		maps.Copy(groups, admissions(group, wanted.WithMachines(network, furtherOf(list))))
		data, err := names.UserData(ctx, node.server.name())
		if err != nil {
			return err
		}
		placed := any(nil)
		if in, err := places.of(ctx, cluster, node); err != nil {
			return err
		} else if in != "" {
			placed = in
		}
		err = instance.Set(propertyNode, map[string]any{"serverName": node.server.name(), "serverGroup": placed, "userData": string(data), "securityGroups": []any{map[string]any{"get_resource": group}},
			"allowedAddresses": allowed, "holdsFloatingIp": node.holds, "network": stands})
		if err != nil {
			return err
		}
		if _, err := interpreter.Invoke(ctx, instance, task.MethodBeginDeploy, nil); err != nil {
			return err
		}
		if err := nodePlacesOf(c.clusters).stay(ctx, node, before); err != nil {
			return err
		}
	}
	template, err := c.stacks.template(ctx, c.stacks.own())
	if err != nil {
		return err
	}
	maps.Copy(groups, groupsOf(cluster, template))
	_, err = c.stacks.replace(ctx, c.stacks.own(), cluster.ID()+"-", map[string]any{"resources": groups})
	return err
}

// keepFloating keeps the floating address of a node without a server, as it was in the template before, for the next one.
func (c nodePreparation) keepFloating(ctx context.Context, instance *muranopl.Object, before map[string]any) error {
	name := instance.ID() + "-floating"
	kept := map[string]any{}
	for _, section := range []string{"resources", "outputs"} {
		entries, _ := before[section].(map[string]any)
		entry, there := entries[name].(map[string]any)
		if !there {
			return nil
		}
		if properties, ok := entry["properties"].(map[string]any); ok {
			properties = maps.Clone(properties)
			delete(properties, "port_id")
			entry = maps.Clone(entry)
			entry["properties"] = properties
		}
		kept[section] = map[string]any{name: entry}
	}
	_, err := c.stacks.replace(ctx, c.stacks.own(), name, kept)
	return err
}

// release takes the security groups of a cluster that is destroyed out of the template.
func (c nodePreparation) release(ctx context.Context, cluster *muranopl.Object) error {
	if c.objects.Model() == nil {
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

// nodeRules are the rules of a node's security group. They admit the cluster's own networks (no pods without pod networks), SSH from these ranges
// (nil for everywhere), and the public ports of its role. On gateways the daemon closes unpublished ports again.
func nodeRules(role nodes.Role, network, pods netip.Prefix, public string, sshFrom []string) []any {
	rule := func(from, protocol string, first, last int64) any {
		made := map[string]any{"direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": from}
		if protocol != "" {
			made["protocol"], made["port_range_min"], made["port_range_max"] = protocol, first, last
		}
		return made
	}
	rules := []any{rule(network.String(), "", 0, 0)}
	if pods.IsValid() {
		rules = append(rules, rule(pods.String(), "", 0, 0))
	}
	everywhere := len(sshFrom) == 0
	if everywhere {
		sshFrom = []string{"0.0.0.0/0"}
	}
	for _, from := range sshFrom {
		rules = append(rules, rule(from, "tcp", 22, 22))
	}
	switch role {
	case nodes.Master:
		rules = append(rules, rule(public, "tcp", kube.APIServerPort, kube.APIServerPort))
	case nodes.Gateway:
		if everywhere {
			return append(rules, rule(public, "tcp", 1, 65535))
		}
		rules = append(rules, rule(public, "tcp", 1, 21), rule(public, "tcp", 23, 65535))
	}
	return rules
}

// nodeRules6 are the rules for IPv6: they admit the cluster's own networks, and on gateways the users. SSH and the API are reached by IPv4.
func nodeRules6(role nodes.Role, network, pods netip.Prefix, public string) []any {
	rule := func(from string) map[string]any {
		return map[string]any{"direction": "ingress", "ethertype": "IPv6", "remote_ip_prefix": from}
	}
	rules := []any{rule(network.String()), rule(pods.String())}
	if role == nodes.Gateway && public != "" {
		for _, ports := range [][2]int64{{1, 21}, {23, 65535}} {
			open := rule(public)
			open["protocol"], open["port_range_min"], open["port_range_max"] = "tcp", ports[0], ports[1]
			rules = append(rules, open)
		}
	}
	return rules
}

// joinNetwork puts the environment's network into the stack, and returns its subnet.
func (c nodePreparation) joinNetwork(ctx context.Context, interpreter *muranopl.Interpreter) (netip.Prefix, error) {
	network := environmentNetwork(c.objects.Model(), "")
	if network == nil {
		return netip.Prefix{}, errors.New("the environment has no network for its servers: give its model one in defaultNetworks.environment")
	}
	if network.Class().IsEmbedded(task.ClassExistingNetwork) {
		project, err := c.runtime.Project(ctx)
		if err != nil {
			return netip.Prefix{}, err
		}
		found, err := existingSubnet(ctx, project, network)
		return found.Range, err
	}
	if !network.Class().IsEmbedded(task.ClassNeutronNetwork) {
		return netip.Prefix{}, fmt.Errorf("the environment's network is a %s: clusters stand in a %s or %s", network.Class().Name, task.ClassNeutronNetwork, task.ClassExistingNetwork)
	}
	if _, err := interpreter.Invoke(ctx, network, task.MethodBeginDeploy, nil); err != nil {
		return netip.Prefix{}, err
	}
	subnet, err := netip.ParsePrefix(network.Text("subnetCidr"))
	if err != nil {
		return subnet, fmt.Errorf("subnetCidr of the environment's network is %q, which is no network: write it like 10.20.0.0/24", network.Text("subnetCidr"))
	}
	return subnet, nil
}

// nodesOf are the nodes as far as they are known before their servers are there.
func nodesOf(list []member) []nodes.Node {
	made := make([]nodes.Node, len(list))
	for i, one := range list {
		made[i] = nodes.Node{Name: one.server.name(), Role: one.role, Leaving: one.leaving}
	}
	return made
}
