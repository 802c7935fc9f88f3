package clusters

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// A node is in one network: the first network in its instance's property networks, as for any server, by default the environment's. The network of
// its server is stored with the instance, and another network in the model is a reason to give the node another server. Former versions ignored the
// property: for their nodes its value counts once it changes.

// attributePlaces is an attribute of a node's instance, beside attributeServers: places by the numbers of its servers.
const attributePlaces = "places"

// place is the network of a node's server.
type place struct {
	// Asked is the model's value then: "" for the environment's network.
	Asked string `json:"asked"`
	// Subnet and Network are ids, and Range is the subnet's; nothing for the environment's.
	Subnet  string       `json:"subnet,omitempty"`
	Network string       `json:"network,omitempty"`
	Range   netip.Prefix `json:"range,omitzero"`
}

// places are read and stored as successions are.
func (s successions) places(ctx context.Context, instance *muranopl.Object) (facts map[int64]place, err error) {
	value, found, err := s.runtime.CodeAttribute(ctx, instance, task.ClassNodeServer, attributePlaces)
	if err != nil || !found || value == nil {
		return nil, err
	}
	if err := known.Convert(value, &facts); err != nil {
		return nil, fmt.Errorf("read where the servers of %s stand: %w", instance.Text("name"), err)
	}
	return facts, nil
}

func (s successions) keepPlaces(ctx context.Context, instance *muranopl.Object, known map[int64]place) error {
	value := map[string]any{}
	for number, one := range known {
		kept := map[string]any{"asked": one.Asked}
		if one.Subnet != "" {
			kept["subnet"], kept["network"], kept["range"] = one.Subnet, one.Network, one.Range.String()
		}
		value[strconv.FormatInt(number, 10)] = kept
	}
	return s.runtime.SetCodeAttribute(ctx, instance, task.ClassNodeServer, attributePlaces, value)
}

// nodePlaces are the places of nodes: region, zone and networks.
type nodePlaces struct{ *Clusters }

func nodePlacesOf(c *Clusters) nodePlaces { return nodePlaces{c} }

// wishedNetwork is a node's network in the model, and its value there: nil and "" for the environment's.
func (c nodePlaces) wishedNetwork(instance *muranopl.Object) (network *muranopl.Object, asked string) {
	networks := instance.Map("networks")
	list := []any{networks["primaryNetwork"]}
	environment := c.Objects.Model()
	if networks["useEnvironmentNetwork"] == true && environment != nil {
		list = append(list, stacks.EnvironmentNetwork(environment, ""))
	}
	custom, _ := networks["customNetworks"].([]any)
	for _, one := range append(list, custom...) {
		if network, _ = one.(*muranopl.Object); network != nil {
			break
		}
	}
	switch {
	case network == nil || environment != nil && network == stacks.EnvironmentNetwork(environment, ""):
		return nil, ""
	case network.Class().IsEmbedded(task.ClassExistingNetwork):
		return network, strings.TrimSuffix(network.Text("internalNetworkName")+"/"+network.Text("internalSubnetworkName"), "/")
	}
	return network, network.Class().Name + " " + network.ID()
}

// wishedPlace is where the model has a node.
func (c nodePlaces) wishedPlace(ctx context.Context, instance *muranopl.Object) (place, error) {
	network, asked := c.wishedNetwork(instance)
	made := place{Asked: asked}
	if network == nil {
		return made, nil
	}
	if !network.Class().IsEmbedded(task.ClassExistingNetwork) {
		return made, fault.New(fault.Invalid, "%s is to stand in a %s: a node stands in the environment's network, or in one that is there already (%s)",
			instance.Text("name"), network.Class().Name, task.ClassExistingNetwork)
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return made, err
	}
	found, err := existingSubnet(ctx, project, network)
	if err != nil {
		return made, fmt.Errorf("the network of %s: %w", instance.Text("name"), err)
	}
	if own := stacks.EnvironmentNetwork(c.Objects.Model(), ""); own != nil && own.Class().IsEmbedded(task.ClassExistingNetwork) {
		if same, err := existingSubnet(ctx, project, own); err != nil || same.ID == found.ID {
			return made, err
		}
	}
	made.Subnet, made.Network, made.Range = found.ID, found.Network, found.Range
	return made, nil
}

func existingSubnet(ctx context.Context, project *openstack.Project, network *muranopl.Object) (openstack.Subnet, error) {
	return project.Subnet(ctx, network.Text("internalNetworkName"), network.Text("internalSubnetworkName"))
}

// locate adds to a cluster's members the present or future networks of their servers, and whether the model has another one.
func (c nodePlaces) locate(ctx context.Context, list []Member, names serverNames) error {
	known := make([]map[int64]place, len(list))
	recorded, made := false, false
	for i, one := range list {
		var err error
		if known[i], err = c.Successions.places(ctx, one.Instance()); err != nil {
			return err
		}
		recorded = recorded || len(known[i]) > 0
		made = made || names.has(one.Server)
	}
	ignored := made && !recorded // a former version made the cluster
	for i := range list {
		one := &list[i]
		_, asked := c.wishedNetwork(one.Instance())
		at, found := known[i][one.Server.Number]
		if !found && ignored {
			at, found = place{Asked: asked}, true
		}
		one.place = at
		if found && (at.Asked == asked || one.Leaving) {
			continue
		}
		wished, err := c.wishedPlace(ctx, one.Instance())
		if err != nil {
			return err
		}
		if found && names.has(one.Server) {
			one.otherwise, one.moves, one.wished = true, wished.Subnet != at.Subnet, asked
		} else {
			one.place = wished
		}
	}
	return nil
}

// has is true if a server was there when the names were read.
func (n serverNames) has(server stacks.Server) bool {
	_, there := n[openstack.ServerResource(server.ID())]
	return there
}

// recordPlaces stores the networks of a cluster's servers before anything is made. The property's value of a former version's nodes, also of stopped ones,
// is stored so that it counts when it changes.
func (c nodePlaces) recordPlaces(ctx context.Context, cluster *muranopl.Object, list []Member) error {
	wanted := map[*muranopl.Object]map[int64]place{}
	first := true
	for _, one := range list {
		if wanted[one.Instance()] == nil {
			wanted[one.Instance()] = map[int64]place{}
		}
		wanted[one.Instance()][one.Server.Number] = one.place
		known, err := c.Successions.places(ctx, one.Instance())
		if err != nil {
			return err
		}
		first = first && len(known) == 0
	}
	names, err := NodeNamesOf(c.Clusters).Names(ctx)
	if err != nil {
		return err
	}
	if first && slices.ContainsFunc(list, func(one Member) bool { return names.has(one.Server) }) {
		for _, list := range Lists(cluster) {
			for _, node := range list.idle() {
				known, err := c.Successions.Of(ctx, node.Object("instance"))
				if err != nil {
					return err
				}
				_, asked := c.wishedNetwork(node.Object("instance"))
				wanted[node.Object("instance")] = map[int64]place{known.Current: {Asked: asked}}
			}
		}
	}
	for instance, places := range wanted {
		known, err := c.Successions.places(ctx, instance)
		if err != nil {
			return err
		}
		if !maps.Equal(known, places) {
			if err := c.Successions.keepPlaces(ctx, instance, places); err != nil {
				return err
			}
		}
	}
	return nil
}

// furtherOf lists the ranges of nodes beside the environment's network.
func furtherOf(list []Member) (further []netip.Prefix) {
	for _, one := range list {
		if one.place.Subnet != "" && !one.absent && !slices.Contains(further, one.place.Range) {
			further = append(further, one.place.Range)
		}
	}
	slices.SortFunc(further, netip.Prefix.Compare)
	return further
}

// connected refuses, before anything is made, networks that cannot belong to one cluster: nodes reach each other by their own addresses, through a
// router that is connected to both networks.
func (c nodePlaces) connected(ctx context.Context, cluster *muranopl.Object, list []Member, own netip.Prefix) error {
	type site struct {
		place   place
		node    string
		routers []string
	}
	var sites []site
	add := func(at place, node string) {
		if !slices.ContainsFunc(sites, func(other site) bool { return other.place.Subnet == at.Subnet }) {
			sites = append(sites, site{place: at, node: node})
		}
	}
	for _, one := range list {
		if !one.absent || !one.Leaving {
			add(one.place, one.Server.Name())
		}
		if one.moves {
			wished, err := c.wishedPlace(ctx, one.Instance())
			if err != nil {
				return err
			}
			add(wished, one.Server.Name())
		}
	}
	if !slices.ContainsFunc(sites, func(one site) bool { return one.place.Subnet != "" }) {
		return nil
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	pods, err := c.Clusters.PodNetwork(ctx, cluster)
	if err != nil {
		return err
	}
	where := func(one site) string {
		if one.place.Subnet == "" {
			return fmt.Sprintf("the environment's network (%s)", one.place.Range)
		}
		return fmt.Sprintf("network %s (%s)", one.place.Asked, one.place.Range)
	}
	refuse := func(a, b site, reason string) error {
		return fault.New(fault.Invalid, "cluster %s cannot have %s in %s and %s in %s: %s. Nothing was changed", cluster.Text("name"), a.node, where(a), b.node, where(b), reason)
	}
	for i := range sites {
		one := &sites[i]
		if one.place.Subnet == "" {
			one.place.Range = own
			one.routers, err = c.ownRouters(ctx, project)
		} else {
			one.routers, err = project.RoutersOf(ctx, one.place.Network)
		}
		if err != nil {
			return err
		}
		if one.place.Subnet != "" && pods.Six() {
			return fault.New(fault.Invalid, "cluster %s cannot have %s in %s: its nodes have addresses of IPv6, which Burano gives them in the environment's network only. Nothing was changed",
				cluster.Text("name"), one.node, where(*one))
		}
		for _, taken := range []netip.Prefix{pods.Pods, pods.Services} {
			if one.place.Subnet != "" && taken.Overlaps(one.place.Range) {
				return fault.New(fault.Invalid, "cluster %s cannot have %s in %s: its pods and Services have addresses of %s. Name a network with other addresses. Nothing was changed",
					cluster.Text("name"), one.node, where(*one), taken)
			}
		}
		for _, other := range sites[:i] {
			if other.place.Range.Overlaps(one.place.Range) {
				return refuse(other, *one, "their addresses overlap. Name a network with other addresses")
			}
			if !slices.ContainsFunc(one.routers, func(router string) bool { return slices.Contains(other.routers, router) }) {
				return refuse(other, *one, "no router stands in both, so that they would not reach each other. Connect both to one router "+
					"(openstack router add subnet), or name a network that is")
			}
		}
	}
	return nil
}

// ownRouters are the routers of the environment's network; of a future network, the one that it is joined to.
func (c nodePlaces) ownRouters(ctx context.Context, project *openstack.Project) ([]string, error) {
	network := stacks.EnvironmentNetwork(c.Objects.Model(), "")
	if network.Class().IsEmbedded(task.ClassExistingNetwork) {
		found, err := existingSubnet(ctx, project, network)
		if err != nil {
			return nil, err
		}
		return project.RoutersOf(ctx, found.Network)
	}
	if id := network.Text("openstackId"); id != "" {
		return project.RoutersOf(ctx, id)
	}
	if router := network.Text("externalRouterId"); router != "" && network.Bool("autoUplink") {
		return []string{router}, nil
	}
	return nil, nil
}

// admissions are the rules by which a role's security group lets further networks in. They are resources of their own: when the rules in a group
// change, Heat deletes all of its rules and makes them anew, and meanwhile nothing gets through.
func admissions(group string, further []netip.Prefix) map[string]any {
	rules := map[string]any{}
	for _, network := range further {
		rules[group+"-from-"+strings.ReplaceAll(network.String(), "/", "-")] = map[string]any{"type": "OS::Neutron::SecurityGroupRule", "properties": map[string]any{
			"security_group": map[string]any{"get_resource": group}, "direction": "ingress", "ethertype": "IPv4", "remote_ip_prefix": network.String()}}
	}
	return rules
}

// stay leaves a node's server in its network, whatever network the model has by now, and the floating address of the node in its external network: before
// is the former template.
func (c nodePlaces) stay(ctx context.Context, one Member, before map[string]any) error {
	resources, _ := before["resources"].(map[string]any)
	port := one.Server.Prefix() + "port"
	if described, there := resources[port].(map[string]any); there && one.otherwise {
		c.Templates.Restore(c.Templates.Own(), port, described)
	}
	floating := one.Instance().ID() + "-floating"
	former, _ := resources[floating].(map[string]any)
	had, _ := former["properties"].(map[string]any)
	template, err := c.Templates.Template(ctx, c.Templates.Own())
	if err != nil {
		return err
	}
	now, _ := template["resources"].(map[string]any)
	described, _ := now[floating].(map[string]any)
	properties, _ := described["properties"].(map[string]any)
	if was := had["floating_network"]; was != nil && properties != nil && properties["floating_network"] != was {
		properties, described = maps.Clone(properties), maps.Clone(described)
		properties["floating_network"] = was
		described["properties"] = properties
		c.Templates.Restore(c.Templates.Own(), floating, described)
	}
	return nil
}

// giveUp undoes the exchange of nodes' servers that do not reach their cluster: their former servers, which were not touched, stay. It returns the names
// of the new servers.
func (c nodePlaces) giveUp(ctx context.Context, list []Member, cutOff []*nodes.CutOffError) (given []string, err error) {
	for _, one := range list {
		isCutOff := slices.ContainsFunc(cutOff, func(e *nodes.CutOffError) bool { return e.Node == one.Server.Name() })
		if !isCutOff || one.Leaving || !one.known.Replacing() || one.known.First || one.known.Moved {
			continue
		}
		if err := c.Successions.Keep(ctx, one.Instance(), Succession{Current: one.known.Former}); err != nil {
			return given, err
		}
		given = append(given, one.Server.Name())
	}
	return given, nil
}
