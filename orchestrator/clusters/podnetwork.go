package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// The pods of a cluster keep the network with which it was made: their connection, their addresses and the Services' ones, and the domain. Certificates,
// rules, ports of the cloud and every running pod depend on them. So the cluster's first network is stored with it, and counts from then on.
const (
	// attributeNetwork is the pods' connection.
	attributeNetwork = "network"
	// attributePodNetwork has the rest. It is missing in clusters from before there was a choice, and so are later choices.
	attributePodNetwork = "podNetwork"
)

const (
	propertyNetwork6 = "ipv6Cidr"           // of the environment's network
	propertySubnet6  = "ipv6SubnetworkName" // of one that is there
)

// podNetworks are the networks of pods, and the networks that must not overlap them.
type podNetworks struct{ *Clusters }

func podNetworksOf(c *Clusters) podNetworks { return podNetworks{c} }

// madeWith is the pod network of an existing cluster; false for a new one.
func (c podNetworks) madeWith(ctx context.Context, object *muranopl.Object) (made desired.PodNetwork, there bool, err error) {
	kind, there, err := c.Runtime.Attribute(ctx, object, attributeNetwork)
	if err != nil {
		return made, false, err
	}
	made = desired.UsualPodNetwork()
	if !there { // the first versions did not note it
		known, err := c.Clusters.Facts(ctx, object)
		return made, known != nil, err
	}
	if text, _ := kind.(string); text != "" {
		made.Kind = nodes.Network(text)
	}
	value, found, err := c.Runtime.Attribute(ctx, object, attributePodNetwork)
	if err != nil || !found {
		return made, true, err
	}
	var kept struct {
		Pods, Services, Pods6, Services6, Nodes6 netip.Prefix

		Domain        string
		CrossSubnet   bool // the predecessor of Encapsulation, before that could be none
		Encapsulation network.Encapsulation
		Datastore     network.Datastore // clusters of former versions had no choice, and did not note it
		MTU           int64
	}
	if err := known.Convert(value, &kept); err != nil {
		return made, true, fmt.Errorf("read what the pods of cluster %s have their addresses from: %w", object.Text("name"), err)
	}
	made.Addressing = network.Addressing{Pods: kept.Pods, Services: kept.Services, Pods6: kept.Pods6, Services6: kept.Services6, Domain: kept.Domain}
	made.Nodes6, made.MTU, made.Datastore = kept.Nodes6, kept.MTU, cmp.Or(kept.Datastore, network.InEtcd)
	switch {
	case kept.Encapsulation != "":
		made.Encapsulation = kept.Encapsulation
	case kept.CrossSubnet:
		made.Encapsulation = network.CrossSubnet
	}
	return made, true, nil
}

// keepPodNetwork stores a new cluster's network, before its nodes are set up.
func (c podNetworks) keepPodNetwork(ctx context.Context, object *muranopl.Object) error {
	if task.OnlyGateways(object) {
		return nil
	}
	made, err := c.Clusters.PodNetwork(ctx, object)
	if err != nil {
		return err
	}
	kept := map[string]any{"domain": made.Domain, "encapsulation": string(made.Encapsulation)}
	if made.Four() {
		kept["pods"], kept["services"] = made.Pods.String(), made.Services.String()
	}
	if made.Six() {
		kept["pods6"], kept["services6"], kept["nodes6"] = made.Pods6.String(), made.Services6.String(), made.Nodes6.String()
	}
	if made.Datastore == network.InKubernetes {
		kept["datastore"] = string(made.Datastore)
	}
	if made.Kind == nodes.Flannel { // Calico takes another one
		kept["mtu"] = made.MTU
	}
	if err := c.Runtime.SetAttribute(ctx, object, attributePodNetwork, kept); err != nil {
		return err
	}
	return c.Runtime.SetAttribute(ctx, object, attributeNetwork, string(made.Kind))
}

// PodNetwork is the network of a cluster's pods: the stored one, whatever the model has, or a new cluster's. Gateways without a cluster have none.
func (c *Clusters) PodNetwork(ctx context.Context, object *muranopl.Object) (desired.PodNetwork, error) {
	if task.OnlyGateways(object) {
		return desired.PodNetwork{}, nil
	}
	made, there, err := podNetworksOf(c).madeWith(ctx, object)
	if err != nil {
		return made, err
	}
	if !there {
		wished, problems := task.Desired(object).PodNetwork(desired.UsualPodNetwork())
		if wished.Six() {
			if wished.Nodes6, err = podNetworksOf(c).network6(ctx); err != nil {
				problems = append(problems, err)
			}
		}
		return wished, errors.Join(problems...)
	}
	if made.Kind == nodes.Calico {
		made.MTU = task.Desired(object).Pods.MTU()
	}
	return made, nil
}

// checkPodNetwork finds the obstacles to the model's pod network, in a new or an existing cluster.
func (c podNetworks) checkPodNetwork(ctx context.Context, object *muranopl.Object) (problems []error, err error) {
	if task.OnlyGateways(object) {
		return nil, nil
	}
	made, there, err := c.madeWith(ctx, object)
	if err != nil {
		return nil, err
	}
	wanted := task.Desired(object)
	name := wanted.Name
	wished, problems := wanted.PodNetwork(made)
	if len(problems) > 0 {
		return problems, nil
	}
	if there {
		differs := func(property, had, wished, because string) {
			if had != wished {
				problems = append(problems, fmt.Errorf("%s cannot be changed: cluster %s was made with %s, and %s; set %s back, or make another cluster for %s", property, name, had, because, property, wished))
			}
		}
		differs("useFlannel", string(made.Kind), string(wished.Kind), "its pods have their addresses from it")
		differs(desired.PropertyPodRange, network.Text(made.PodRanges()), network.Text(wished.PodRanges()), "its pods have their addresses from it")
		differs(desired.PropertyServiceRange, network.Text(made.ServiceRanges()), network.Text(wished.ServiceRanges()), "its Services have their addresses from it, and its certificates name one")
		differs(desired.PropertyDomain, made.Domain, wished.Domain, "its Services, certificates and tokens of ServiceAccounts are called by it")
		if made.Kind == nodes.Calico {
			differs(desired.PropertyEncapsulation, string(made.Encapsulation), string(wished.Encapsulation), "the addresses of its pods belong to a pool that says so")
			differs(desired.PropertyDatastore, string(made.Datastore), string(wished.Datastore), "what Calico knows of its nodes and pods is kept there")
		} else if wished.MTU != 0 {
			had := fmt.Sprint(made.MTU)
			if made.MTU == 0 {
				had = "the MTU that its nodes' network gives"
			}
			differs(desired.PropertyPodMTU, had, fmt.Sprint(wished.MTU), "Flannel keeps what it began with")
		}
		if len(problems) > 0 {
			return problems, nil
		}
	}
	problems = append(problems, c.checkSix(ctx, wanted, wished, made, there)...)
	environment := stacks.EnvironmentNetwork(c.Objects.Model(), "")
	if wished.MTU != 0 && environment != nil && environment.Class().IsEmbedded(task.ClassCustomNetwork) {
		if carries := int64(environment.Int("mtu")); carries > 0 && wished.MTU > carries-wished.Overhead() {
			taken := ""
			if wished.Overhead() > 0 {
				taken = fmt.Sprintf(", of which VXLAN takes %d", wished.Overhead())
			}
			problems = append(problems, fmt.Errorf("podMtu of cluster %s is %d, and the environment's network carries %d bytes%s: ask for %d at most, or give the network a larger mtu",
				name, wished.MTU, carries, taken, carries-wished.Overhead()))
		}
	}
	if err := wanted.CheckRoom(wished); err != nil {
		problems = append(problems, err)
	}
	if there {
		return problems, nil
	}
	if bits := wished.Services.Bits(); wished.Four() && (bits < 12 || bits > 24) {
		problems = append(problems, fmt.Errorf("serviceRange of cluster %s is %s: give one of a size from /12 to /24", name, wished.Services))
	}
	if wished.Six() {
		wished.Nodes6, _ = c.network6(ctx) // it was complained about
	}
	if own := c.knownNetwork(ctx); own.IsValid() {
		problems = append(problems, wished.Overlaps(name, own)...)
	} else {
		problems = append(problems, wished.Overlaps(name)...)
	}
	return problems, nil
}

// network6 is where the environment's network has addresses of IPv6; not valid when it has none.
func (c podNetworks) network6(ctx context.Context) (netip.Prefix, error) {
	environment := stacks.EnvironmentNetwork(c.Objects.Model(), "")
	switch {
	case environment == nil:
	case environment.Class().IsEmbedded(task.ClassCustomNetwork):
		six, _ := netip.ParsePrefix(environment.Text(propertyNetwork6)) // the class has looked at it
		if six.IsValid() && six.Bits() != 64 {
			return six, fmt.Errorf("ipv6Cidr of the environment's network is %s: give it a /64, as in fd00:20::/64", six)
		}
		return six, nil
	case environment.Class().IsEmbedded(task.ClassExistingNetwork) && environment.Text(propertySubnet6) != "":
		if environment.Text("internalSubnetworkName") == "" {
			return netip.Prefix{}, errors.New("the environment's network names its subnet of IPv6 (ipv6SubnetworkName) and not that of IPv4: name that, too (internalSubnetworkName)")
		}
		project, err := c.Runtime.Project(ctx)
		if err != nil {
			return netip.Prefix{}, err
		}
		found, err := project.Subnet6(ctx, environment.Text("internalNetworkName"), environment.Text(propertySubnet6))
		return found.Range, err
	}
	return netip.Prefix{}, nil
}

// checkSix finds the obstacles to addresses of IPv6, in a new or an existing cluster.
func (c podNetworks) checkSix(ctx context.Context, wanted *desired.Cluster, wished, made desired.PodNetwork, there bool) (problems []error) {
	name := wanted.Name
	refuse := func(format string, arguments ...any) { problems = append(problems, fmt.Errorf(format, arguments...)) }
	if text := wanted.Public6; text != "" {
		if parsed, err := netip.ParsePrefix(text); err != nil || !parsed.Addr().Is6() {
			refuse("publicIpv6Cidr of cluster %s is %q, which is no network of IPv6: write it like ::/0", name, text)
		} else if !wished.Six() {
			refuse("publicIpv6Cidr of cluster %s says who reaches it by IPv6, which it does not have: leave it out, or make a cluster with ranges of IPv6", name)
		}
	}
	if !wished.Six() {
		return problems
	}
	if wished.Kind == nodes.Flannel {
		refuse("useFlannel: the pods of cluster %s are to have addresses of IPv6, which Burano gives with Calico only: set useFlannel to false, or give ranges of IPv4 alone", name)
	}
	if wished.Encapsulation == network.Unwrapped {
		refuse("podEncapsulation of cluster %s is %s, by which nodes tell each other routes of IPv4 only: set it to %s, or give ranges of IPv4 alone", name, network.Unwrapped, network.CrossSubnet)
	}
	if wished.Datastore == network.InKubernetes {
		refuse("calicoDatastore of cluster %s is %s, which goes with addresses of IPv4 alone: set it to %s, or give ranges of IPv4 alone", name, wished.Datastore, network.InEtcd)
	}
	if len(wanted.Machines) > 0 {
		refuse("%s cannot be a node of cluster %s: machines beside the cloud have no addresses of IPv6 that Burano knows, and the cluster's pods have", wanted.Machines[0].Name, name)
	}
	switch six, err := c.network6(ctx); {
	case err != nil:
		problems = append(problems, err)
	case there && six != made.Nodes6:
		refuse("the environment's network cannot have other addresses of IPv6: the nodes of cluster %s have such of %s; set its ipv6Cidr, or ipv6SubnetworkName, back", name, made.Nodes6)
	case !six.IsValid():
		refuse("the pods of cluster %s are to have addresses of IPv6, and its nodes have none: make the environment's network a %s with an ipv6Cidr such as fd00:20::/64, or name a subnet of IPv6 "+
			"(ipv6SubnetworkName) of one that is there", name, task.ClassCustomNetwork)
	}
	if there {
		return problems
	}
	if bits := wished.Services6.Bits(); bits < 108 || bits > 120 {
		refuse("the range of IPv6 in serviceRange of cluster %s is %s: give one of a size from /108 to /120", name, wished.Services6)
	}
	if bits := wished.Pods6.Bits(); bits < 48 || bits > 112 {
		refuse("the range of IPv6 in podRange of cluster %s is %s: give one of a size from /48 to /112", name, wished.Pods6)
	}
	return problems
}

// knownNetwork is the range of the environment's network, as far as it is known before anything is made; not valid where it is not.
func (c podNetworks) knownNetwork(ctx context.Context) (known netip.Prefix) {
	environment := stacks.EnvironmentNetwork(c.Objects.Model(), "")
	switch {
	case environment == nil:
	case environment.Class().IsEmbedded(task.ClassExistingNetwork):
		if project, err := c.Runtime.Project(ctx); err == nil { // else it is complained about where it is needed
			found, _ := existingSubnet(ctx, project, environment)
			known = found.Range
		}
	case environment.Class().IsEmbedded(task.ClassNeutronNetwork):
		known, _ = netip.ParsePrefix(environment.Text("subnetCidr"))
	}
	return known
}

// separate makes sure that the pods and Services of a cluster that is about to be made are not where its nodes are.
func (c podNetworks) separate(ctx context.Context, object *muranopl.Object, own netip.Prefix) error {
	if task.OnlyGateways(object) {
		return nil
	}
	_, there, err := c.madeWith(ctx, object)
	if err != nil || there {
		return err
	}
	wished, err := c.Clusters.PodNetwork(ctx, object)
	if err != nil {
		return err
	}
	return errors.Join(wished.Overlaps(object.Text("name"), own)...)
}

// oneSubnet refuses a cluster without encapsulation whose nodes are in several networks: no router of the cloud has routes to pods.
func (c podNetworks) oneSubnet(ctx context.Context, object *muranopl.Object, own netip.Prefix, further []netip.Prefix) error {
	wished, err := c.Clusters.PodNetwork(ctx, object)
	if err != nil || wished.Encapsulation != network.Unwrapped || len(further) == 0 {
		return err
	}
	return fault.New(fault.Invalid, "cluster %s cannot have nodes in %s and in %s with podEncapsulation: %s, which wraps no packet: routers between networks do not know where pods are. "+
		"Leave all nodes in one network, or make a cluster with podEncapsulation: %s. Nothing was changed", object.Text("name"), own, further[0], network.Unwrapped, network.CrossSubnet)
}

// ImageNeeds are the features that a pod network needs of images of nodes.
func ImageNeeds(n desired.PodNetwork) (list []ImageNeed) {
	if n.Datastore == network.InKubernetes {
		list = append(list, ImageNeed{func(role nodes.Role) bool { return role == nodes.Master }, func(image openstack.NodeImage) string { return image.CalicoDefinitions },
			fmt.Sprintf("it has the definitions of Calico's kinds, which calicoDatastore: %s", network.InKubernetes), openstack.CalicoDefinitionsProperty})
	}
	if n.Encapsulation == network.Unwrapped {
		list = append(list, ImageNeed{func(nodes.Role) bool { return true }, func(image openstack.NodeImage) string { return image.Calico },
			fmt.Sprintf("its Calico can exchange routes by BGP, which podEncapsulation: %s", network.Unwrapped), openstack.CalicoProperty})
	}
	return list
}

// checkConnecting finds images of nodes without a feature that the pod network needs.
func (c podNetworks) checkConnecting(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	wished, err := c.Clusters.PodNetwork(ctx, cluster)
	if err != nil {
		return nil, nil //nolint:nilerr // what is wrong with the model is told elsewhere
	}
	for _, need := range ImageNeeds(wished) {
		lacking, err := imageChecksOf(c.Clusters).imagesWithout(ctx, cluster, need)
		if err != nil {
			return problems, err
		}
		problems = append(problems, lacking...)
	}
	return problems, nil
}
