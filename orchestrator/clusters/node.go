package clusters

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
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// Prepare is part of stacks.Nodes. Instances put their own servers into the template, by beginDeploy; active has the former servers of nodes that are replaced, too.
func (c *Clusters) Prepare(ctx context.Context, interpreter *muranopl.Interpreter) (active []stacks.Server, idle []*muranopl.Object, err error) {
	all := c.Objects.Clusters()
	if len(all) == 0 {
		return nil, nil, nil
	}
	c.preparing.Lock()
	defer c.preparing.Unlock()
	preparation := nodePreparationOf(c)
	servers, err := preparation.desired(ctx, all)
	if err != nil {
		return nil, nil, err
	}
	former, err := c.Templates.Template(ctx, c.Templates.Own())
	if err != nil {
		return nil, nil, err
	}
	obsolete, err := preparation.obsolete(ctx, servers, former)
	if err != nil {
		return nil, nil, err
	}
	if slices.Equal(servers.digest, c.prepared) && servers.allIn(former) && len(obsolete) == 0 {
		return servers.active, servers.idle, nil
	}
	network, err := preparation.joinNetwork(ctx, interpreter)
	if err != nil {
		return nil, nil, err
	}
	if err := preparation.resolveNetworks(ctx, servers, network); err != nil {
		return nil, nil, err
	}
	if err := preparation.removeObsolete(ctx, servers, obsolete, former); err != nil {
		return nil, nil, err
	}
	if err := preparation.recordNodes(ctx, all); err != nil {
		return nil, nil, err
	}
	places, err := preparation.placements(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, cluster := range all {
		if err := preparation.prepareOne(ctx, interpreter, cluster, network, places, former); err != nil {
			return nil, nil, err
		}
	}
	c.prepared = servers.digest
	c.setNetwork(network)
	return servers.active, servers.idle, nil
}

// nodePreparation prepares the servers of nodes.
type nodePreparation struct{ *Clusters }

func nodePreparationOf(c *Clusters) nodePreparation { return nodePreparation{c} }

// desiredServers are the servers of all clusters' nodes.
type desiredServers struct {
	clusters []*muranopl.Object
	members  map[*muranopl.Object][]Member // by cluster
	active   []stacks.Server
	idle     []*muranopl.Object // instances
	digest   []string           // of everything that the template of the stack depends on
}

// allIn reports whether a template has all active servers.
func (d desiredServers) allIn(template map[string]any) bool {
	return !slices.ContainsFunc(d.active, func(server stacks.Server) bool { return !server.In(template) })
}

// desired lists the servers that the clusters are to have.
func (c nodePreparation) desired(ctx context.Context, all []*muranopl.Object) (servers desiredServers, err error) {
	servers = desiredServers{clusters: all, members: map[*muranopl.Object][]Member{}}
	for _, cluster := range all {
		if err := NodeNamesOf(c.Clusters).withdraw(ctx, cluster); err != nil {
			return servers, err
		}
		list, err := c.Clusters.Members(ctx, cluster)
		if err != nil {
			return servers, err
		}
		servers.members[cluster] = list
		for _, one := range list {
			if !one.absent {
				servers.active = append(servers.active, one.Server)
			}
			servers.digest = append(servers.digest, fmt.Sprint(one.Server.ID(), one.holds, one.absent, one.place.Subnet))
		}
		servers.digest = append(servers.digest, fmt.Sprint(task.Desired(cluster).WithMachines(netip.Prefix{}, nil)))
		for _, one := range sharings(cluster) {
			servers.digest = append(servers.digest, one.property+" "+one.shared.ID())
		}
		for _, list := range Lists(cluster) {
			for _, node := range list.idle() {
				servers.idle = append(servers.idle, node.Object("instance"))
			}
		}
	}
	return servers, nil
}

// obsolete lists the prefixes of a template's resources that nodes need no more: those of idle instances, whose records it removes, and those of former servers.
func (c nodePreparation) obsolete(ctx context.Context, servers desiredServers, template map[string]any) (prefixes []string, err error) {
	for _, instance := range servers.idle {
		if err := c.Clusters.NodeSettings.forget(ctx, instance); err != nil {
			return nil, err
		}
		known, err := c.Clusters.Successions.Of(ctx, instance)
		if err != nil {
			return nil, err
		}
		if known.Replacing() {
			if err := c.Clusters.Successions.Keep(ctx, instance, Succession{Current: known.Current, Task: known.Task}); err != nil {
				return nil, err
			}
		}
		for number := range known.Current {
			prefixes = append(prefixes, stacks.Server{Instance: instance, Number: number + 1}.Prefix())
		}
	}
	for _, cluster := range servers.clusters {
		for _, one := range servers.members[cluster] {
			for number := int64(1); number <= one.Server.Number+1; number++ { // a given up successor has the next number
				former := stacks.Server{Instance: one.Instance(), Number: number}
				stays := slices.ContainsFunc(servers.active, func(server stacks.Server) bool { return server.ID() == former.ID() })
				if former.In(template) && !stays {
					prefixes = append(prefixes, former.Prefix()) // with a floating address, which the current server puts back
				}
			}
		}
	}
	resources, _ := template["resources"].(map[string]any)
	return slices.DeleteFunc(prefixes, func(prefix string) bool {
		for name := range resources {
			if strings.HasPrefix(name, prefix) {
				return false
			}
		}
		return true
	}), nil
}

// resolveNetworks finds the networks of the clusters' nodes beside the environment's, and refuses those that their pods cannot use.
func (c nodePreparation) resolveNetworks(ctx context.Context, servers desiredServers, network netip.Prefix) error {
	for _, cluster := range servers.clusters {
		members := servers.members[cluster]
		if err := podNetworksOf(c.Clusters).separate(ctx, cluster, network); err != nil {
			return err
		}
		if err := nodePlacesOf(c.Clusters).connected(ctx, cluster, members, network); err != nil {
			return err
		}
		further := task.Desired(cluster).WithMachines(network, furtherOf(members))
		if err := podNetworksOf(c.Clusters).oneSubnet(ctx, cluster, network, further); err != nil {
			return err
		}
		if err := nodePlacesOf(c.Clusters).recordPlaces(ctx, cluster, members); err != nil {
			return err
		}
		c.Clusters.setFurther(cluster, further)
	}
	return nil
}

// removeObsolete removes obsolete resources from the template. Floating addresses of nodes that wait for their next server stay.
func (c nodePreparation) removeObsolete(ctx context.Context, servers desiredServers, prefixes []string, former map[string]any) error {
	for _, prefix := range prefixes {
		if _, err := c.Templates.Replace(ctx, c.Templates.Own(), prefix, nil); err != nil {
			return err
		}
	}
	for _, cluster := range servers.clusters {
		for _, one := range servers.members[cluster] {
			if one.absent && !one.Leaving {
				if err := c.keepFloating(ctx, one.Instance(), former); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// recordNodes stores the masters and the nodes of groups before their servers are made.
func (c nodePreparation) recordNodes(ctx context.Context, all []*muranopl.Object) error {
	for _, cluster := range all {
		if err := c.Clusters.Masters.keep(ctx, cluster, false); err != nil {
			return err
		}
		for _, group := range cluster.Objects(PropertyGroups) {
			if err := c.Clusters.Groups.keep(ctx, group); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c nodePreparation) prepareOne(ctx context.Context, interpreter *muranopl.Interpreter, cluster *muranopl.Object, network netip.Prefix, places *placements, before map[string]any) error {
	list, err := c.Clusters.Members(ctx, cluster)
	if err != nil {
		return err
	}
	config, err := ConnectionsOf(c.Clusters).config(ctx, cluster, nodesOf(list))
	if err != nil {
		return err
	}
	names, err := nodes.NewCluster(config)
	if err != nil {
		return err
	}
	virtual, err := virtualAddressesOf(c.Clusters).prepareVirtual(ctx, interpreter, cluster)
	if err != nil {
		return err
	}
	wanted := task.Desired(cluster)
	groups := map[string]any{}
	for _, node := range list {
		if node.Leaving || node.waits || node.absent {
			if err := virtualAddressesOf(c.Clusters).keepVirtual(ctx, node, virtual); err != nil {
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
		allowed = append(allowed, virtual[node.Role]...)
		instance, group := node.Instance(), cluster.ID()+"-"+string(node.Role)
		stands := any(nil) // in the environment's network
		if node.place.Subnet != "" && !node.otherwise {
			stands, _ = nodePlacesOf(c.Clusters).wishedNetwork(instance)
		}
		rules := nodeRules(node.Role, network, config.Addressing.Pods, wanted.Public, c.Clusters.Settings.SSHFrom)
		if config.Addressing.Six() {
			rules = append(rules, nodeRules6(node.Role, config.NodeNetwork6, config.Addressing.Pods6, wanted.Reaches6())...)
		}
		if node.Role == nodes.Gateway && wanted.UDP {
			rules = append(rules, udpRules("IPv4", wanted.Public)...)
			if six := wanted.Reaches6(); config.Addressing.Six() && six != "" {
				rules = append(rules, udpRules("IPv6", six)...)
			}
		}
		groups[group] = map[string]any{"type": "OS::Neutron::SecurityGroup", "properties": map[string]any{
			"name": wanted.Name + "-" + string(node.Role), "rules": rules}}
		maps.Copy(groups, admissions(group, wanted.WithMachines(network, furtherOf(list))))
		data, err := names.UserData(ctx, node.Server.Name())
		if err != nil {
			return err
		}
		placed := any(nil)
		if in, err := places.of(ctx, cluster, node); err != nil {
			return err
		} else if in != "" {
			placed = in
		}
		err = instance.Set(task.PropertyNode, map[string]any{"serverName": node.Server.Name(), "serverGroup": placed, "userData": string(data), "securityGroups": []any{map[string]any{"get_resource": group}},
			"allowedAddresses": allowed, "holdsFloatingIp": node.holds, "network": stands})
		if err != nil {
			return err
		}
		if _, err := interpreter.Invoke(ctx, instance, task.MethodBeginDeploy, nil); err != nil {
			return err
		}
		if err := nodePlacesOf(c.Clusters).stay(ctx, node, before); err != nil {
			return err
		}
	}
	template, err := c.Templates.Template(ctx, c.Templates.Own())
	if err != nil {
		return err
	}
	maps.Copy(groups, groupsOf(cluster, template))
	_, err = c.Templates.Replace(ctx, c.Templates.Own(), cluster.ID()+"-", map[string]any{"resources": groups})
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
	_, err := c.Templates.Replace(ctx, c.Templates.Own(), name, kept)
	return err
}

// release takes the security groups of a cluster that is destroyed out of the template.
func (c nodePreparation) release(ctx context.Context, cluster *muranopl.Object) error {
	if c.Objects.Model() == nil {
		return nil // the whole stack goes
	}
	own := c.Templates.Own()
	if changed, err := c.Templates.Replace(ctx, own, cluster.ID()+"-", nil); err != nil || !changed {
		return err
	}
	_, err := c.Templates.KeptTemplate(ctx, own)
	return err
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

// udpRules admit users' datagrams to gateways of a cluster, but for the ports of VXLAN. The firewall of a gateway admits published ports only.
func udpRules(ethertype, public string) (rules []any) {
	for _, ports := range [][2]int64{{1, 4788}, {4790, 8471}, {8473, 65535}} {
		rules = append(rules, map[string]any{"direction": "ingress", "ethertype": ethertype, "remote_ip_prefix": public, "protocol": "udp", "port_range_min": ports[0], "port_range_max": ports[1]})
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
	network := stacks.EnvironmentNetwork(c.Objects.Model(), "")
	if network == nil {
		return netip.Prefix{}, errors.New("the environment has no network for its servers: give its model one in defaultNetworks.environment")
	}
	if network.Class().IsEmbedded(task.ClassExistingNetwork) {
		project, err := c.Runtime.Project(ctx)
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
func nodesOf(list []Member) []nodes.Node {
	made := make([]nodes.Node, len(list))
	for i, one := range list {
		made[i] = nodes.Node{Name: one.Server.Name(), Role: one.Role, Leaving: one.Leaving}
	}
	return made
}
