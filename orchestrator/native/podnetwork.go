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
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/openstack"
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
	propertyPodRange      = "podRange"
	propertyServiceRange  = "serviceRange"
	propertyDomain        = "clusterDomain"
	propertyPodMTU        = "podMtu"
	propertyEncapsulation = "podEncapsulation"
	propertyDatastore     = "calicoDatastore"
	propertyPublic6       = "publicIpv6Cidr"
	propertyNetwork6      = "ipv6Cidr"           // of the environment's network
	propertySubnet6       = "ipv6SubnetworkName" // of one that is there
)

// podNetwork is the network of a cluster's pods.
type podNetwork struct {
	network.Addressing
	nodes6        netip.Prefix // where nodes have their addresses of IPv6; not valid where they have none
	kind          nodes.Network
	encapsulation network.Encapsulation
	datastore     network.Datastore
	mtu           int64 // 0: the MTU of their node's network
}

// usualPodNetwork is the network of clusters without a setting, and of all clusters from before the setting existed.
func usualPodNetwork() podNetwork {
	return podNetwork{Addressing: network.DefaultAddressing(), kind: nodes.Calico, encapsulation: network.Always, datastore: network.InEtcd}
}

var (
	domainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)
	// nobodys are addresses that no pod and no Service can have.
	nobodys = []struct {
		netip.Prefix
		what string
	}{
		{netip.MustParsePrefix("0.0.0.0/8"), "addresses of no host (0.0.0.0/8)"},
		{netip.MustParsePrefix("127.0.0.0/8"), "each node's own addresses (127.0.0.0/8)"},
		{netip.MustParsePrefix("169.254.0.0/16"), "link-local addresses (169.254.0.0/16), among them that of the cloud's metadata"},
		{netip.MustParsePrefix("224.0.0.0/3"), "addresses of groups and reserved ones (224.0.0.0/3)"},
		{netip.MustParsePrefix("::/16"), "each node's own addresses and reserved ones (::/16)"},
		{netip.MustParsePrefix("fe80::/10"), "link-local addresses (fe80::/10)"},
		{netip.MustParsePrefix("ff00::/8"), "addresses of groups (ff00::/8)"},
	}
)

// wishedPodNetwork is the model's network, with defaults from otherwise.
func wishedPodNetwork(object *muranopl.Object, otherwise podNetwork) (wished podNetwork, problems []error) {
	wished, name := otherwise, object.Text("name")
	parse := func(property string, four, six *netip.Prefix, usual netip.Prefix, example string) {
		text := object.Text(property)
		if text == "" {
			return
		}
		list := strings.Split(text, ",")
		found := make([]netip.Prefix, len(list))
		for i, one := range list {
			parsed, err := netip.ParsePrefix(strings.TrimSpace(one))
			switch {
			case err != nil:
				problems = append(problems, fmt.Errorf("%s of cluster %s is %q, which is no range of addresses: write it like %s, like %s, or as both: %[4]s,%[5]s", property, name, text, usual, example))
				return
			case parsed != parsed.Masked():
				problems = append(problems, fmt.Errorf("%s of cluster %s is %s, which is an address in %s: give the range", property, name, one, parsed.Masked()))
				return
			}
			found[i] = parsed
		}
		*four, *six = netip.Prefix{}, netip.Prefix{}
		switch {
		case len(found) == 1 && found[0].Addr().Is6():
			*six = found[0]
		case len(found) > 2 || !found[0].Addr().Is4() || len(found) == 2 && !found[1].Addr().Is6():
			problems = append(problems, fmt.Errorf("%s of cluster %s is %s: pods and Services have addresses of IPv4, of IPv6, or of both, where a range of IPv6 comes second, as in %s,%s",
				property, name, text, usual, example))
		case len(found) == 2:
			*six = found[1]
			fallthrough
		default:
			*four = found[0]
		}
	}
	standard := network.DefaultAddressing()
	parse(propertyPodRange, &wished.Pods, &wished.Pods6, standard.Pods, "fd00:10:244::/64")
	parse(propertyServiceRange, &wished.Services, &wished.Services6, standard.Services, "fd00:10:96::/112")
	if len(problems) == 0 && (wished.Pods6.IsValid() != wished.Services6.IsValid() || wished.Pods.IsValid() != wished.Services.IsValid()) {
		problems = append(problems, fmt.Errorf("podRange of cluster %s is %s, and serviceRange is %s: pods and Services have the same versions of IP; give both a range of IPv6, or none, and the same of IPv4",
			name, network.Text(wished.PodRanges()), network.Text(wished.ServiceRanges())))
	}
	if domain := object.Text(propertyDomain); domain != "" {
		if !domainName.MatchString(domain) || len(domain) > 150 { // with the names of Services in front it is one of DNS, of 253 at most
			problems = append(problems, fmt.Errorf("clusterDomain of cluster %s is %q, which is no domain: use lower-case letters, digits, hyphens and dots, at most 150, as in cluster.local", name, domain))
		} else {
			wished.Domain = domain
		}
	}
	wished.kind = nodes.Calico
	if object.Bool("useFlannel") {
		wished.kind = nodes.Flannel
	}
	if encapsulation := network.Encapsulation(object.Text(propertyEncapsulation)); encapsulation != "" {
		wished.encapsulation = encapsulation
		if encapsulation != network.Always && wished.kind == nodes.Flannel {
			problems = append(problems, fmt.Errorf("podEncapsulation of cluster %s is %s, which Flannel does not have: leave it out, or set useFlannel to false", name, encapsulation))
		}
	}
	if datastore := network.Datastore(object.Text(propertyDatastore)); datastore != "" {
		wished.datastore = datastore
		if datastore != network.InEtcd && wished.kind == nodes.Flannel {
			problems = append(problems, fmt.Errorf("calicoDatastore of cluster %s is %s, and Flannel has its store in etcd: leave it out, or set useFlannel to false", name, datastore))
		}
	}
	wished.mtu = int64(object.Int(propertyPodMTU))
	return wished, problems
}

// madeWith is the pod network of an existing cluster; false for a new one.
func (c *clusters) madeWith(ctx context.Context, object *muranopl.Object) (made podNetwork, there bool, err error) {
	kind, there, err := c.runtime.Attribute(ctx, object, attributeNetwork)
	if err != nil {
		return made, false, err
	}
	made = usualPodNetwork()
	if !there { // the first versions did not note it
		known, err := c.facts(ctx, object)
		return made, known != nil, err
	}
	if text, _ := kind.(string); text != "" {
		made.kind = nodes.Network(text)
	}
	value, found, err := c.runtime.Attribute(ctx, object, attributePodNetwork)
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
	if err := convert(value, &kept); err != nil {
		return made, true, fmt.Errorf("read what the pods of cluster %s have their addresses from: %w", object.Text("name"), err)
	}
	made.Addressing = network.Addressing{Pods: kept.Pods, Services: kept.Services, Pods6: kept.Pods6, Services6: kept.Services6, Domain: kept.Domain}
	made.nodes6, made.mtu, made.datastore = kept.Nodes6, kept.MTU, cmp.Or(kept.Datastore, network.InEtcd)
	switch {
	case kept.Encapsulation != "":
		made.encapsulation = kept.Encapsulation
	case kept.CrossSubnet:
		made.encapsulation = network.CrossSubnet
	}
	return made, true, nil
}

// keepPodNetwork stores a new cluster's network, before its nodes are set up.
func (c *clusters) keepPodNetwork(ctx context.Context, object *muranopl.Object) error {
	if alone(object) {
		return nil
	}
	made, err := c.podNetwork(ctx, object)
	if err != nil {
		return err
	}
	kept := map[string]any{"domain": made.Domain, "encapsulation": string(made.encapsulation)}
	if made.Four() {
		kept["pods"], kept["services"] = made.Pods.String(), made.Services.String()
	}
	if made.Six() {
		kept["pods6"], kept["services6"], kept["nodes6"] = made.Pods6.String(), made.Services6.String(), made.nodes6.String()
	}
	if made.datastore == network.InKubernetes {
		kept["datastore"] = string(made.datastore)
	}
	if made.kind == nodes.Flannel { // Calico takes another one
		kept["mtu"] = made.mtu
	}
	if err := c.runtime.SetAttribute(ctx, object, attributePodNetwork, kept); err != nil {
		return err
	}
	return c.runtime.SetAttribute(ctx, object, attributeNetwork, string(made.kind))
}

// podNetwork is the network of a cluster's pods: the stored one, whatever the model has, or a new cluster's. Gateways without a cluster have none.
func (c *clusters) podNetwork(ctx context.Context, object *muranopl.Object) (podNetwork, error) {
	if alone(object) {
		return podNetwork{}, nil
	}
	made, there, err := c.madeWith(ctx, object)
	if err != nil {
		return made, err
	}
	if !there {
		wished, problems := wishedPodNetwork(object, usualPodNetwork())
		if wished.Six() {
			if wished.nodes6, err = c.network6(ctx); err != nil {
				problems = append(problems, err)
			}
		}
		return wished, errors.Join(problems...)
	}
	if made.kind == nodes.Calico {
		made.mtu = int64(object.Int(propertyPodMTU))
	}
	return made, nil
}

// checkPodNetwork finds the obstacles to the model's pod network, in a new or an existing cluster.
func (c *clusters) checkPodNetwork(ctx context.Context, object *muranopl.Object) (problems []error, err error) {
	if alone(object) {
		return nil, nil
	}
	made, there, err := c.madeWith(ctx, object)
	if err != nil {
		return nil, err
	}
	name := object.Text("name")
	wished, problems := wishedPodNetwork(object, made)
	if len(problems) > 0 {
		return problems, nil
	}
	if there {
		differs := func(property, had, wished, because string) {
			if had != wished {
				problems = append(problems, fmt.Errorf("%s cannot be changed: cluster %s was made with %s, and %s; set %s back, or make another cluster for %s", property, name, had, because, property, wished))
			}
		}
		differs("useFlannel", string(made.kind), string(wished.kind), "its pods have their addresses from it")
		differs(propertyPodRange, network.Text(made.PodRanges()), network.Text(wished.PodRanges()), "its pods have their addresses from it")
		differs(propertyServiceRange, network.Text(made.ServiceRanges()), network.Text(wished.ServiceRanges()), "its Services have their addresses from it, and its certificates name one")
		differs(propertyDomain, made.Domain, wished.Domain, "its Services, certificates and tokens of ServiceAccounts are called by it")
		if made.kind == nodes.Calico {
			differs(propertyEncapsulation, string(made.encapsulation), string(wished.encapsulation), "the addresses of its pods belong to a pool that says so")
			differs(propertyDatastore, string(made.datastore), string(wished.datastore), "what Calico knows of its nodes and pods is kept there")
		} else if wished.mtu != 0 {
			had := fmt.Sprint(made.mtu)
			if made.mtu == 0 {
				had = "the MTU that its nodes' network gives"
			}
			differs(propertyPodMTU, had, fmt.Sprint(wished.mtu), "Flannel keeps what it began with")
		}
		if len(problems) > 0 {
			return problems, nil
		}
	}
	problems = append(problems, c.checkSix(ctx, object, wished, made, there)...)
	environment := environmentNetwork(c.objects.model(), "")
	if wished.mtu != 0 && environment != nil && environment.Class().IsEmbedded(classCustomNetwork) {
		if carries := int64(environment.Int("mtu")); carries > 0 && wished.mtu > carries-wished.overhead() {
			taken := ""
			if wished.overhead() > 0 {
				taken = fmt.Sprintf(", of which VXLAN takes %d", wished.overhead())
			}
			problems = append(problems, fmt.Errorf("podMtu of cluster %s is %d, and the environment's network carries %d bytes%s: ask for %d at most, or give the network a larger mtu",
				name, wished.mtu, carries, taken, carries-wished.overhead()))
		}
	}
	if object.Text(propertyPodRange) != "" && wished.Four() {
		if room, most := wished.room(), mostNodes(object); room < most {
			problems = append(problems, fmt.Errorf("podRange of cluster %s is %s, which has addresses for the pods of %d nodes, and the cluster may get %d (lists of nodes, groups, surge): "+
				"have fewer nodes, or make a cluster with a larger range", name, wished.Pods, room, most))
		}
	}
	if there {
		return problems, nil
	}
	if bits := wished.Services.Bits(); wished.Four() && (bits < 12 || bits > 24) {
		problems = append(problems, fmt.Errorf("serviceRange of cluster %s is %s: give one of a size from /12 to /24", name, wished.Services))
	}
	if wished.Six() {
		wished.nodes6, _ = c.network6(ctx) // it was complained about
	}
	if own := c.knownNetwork(ctx); own.IsValid() {
		problems = append(problems, wished.overlaps(name, own)...)
	} else {
		problems = append(problems, wished.overlaps(name)...)
	}
	return problems, nil
}

func (n podNetwork) overhead() int64 { return int64(n.encapsulation.Overhead(n.Six())) }

// network6 is where the environment's network has addresses of IPv6; not valid when it has none.
func (c *clusters) network6(ctx context.Context) (netip.Prefix, error) {
	environment := environmentNetwork(c.objects.model(), "")
	switch {
	case environment == nil:
	case environment.Class().IsEmbedded(classCustomNetwork):
		six, _ := netip.ParsePrefix(environment.Text(propertyNetwork6)) // the class has looked at it
		if six.IsValid() && six.Bits() != 64 {
			return six, fmt.Errorf("ipv6Cidr of the environment's network is %s: give it a /64, as in fd00:20::/64", six)
		}
		return six, nil
	case environment.Class().IsEmbedded(classExistingNetwork) && environment.Text(propertySubnet6) != "":
		if environment.Text("internalSubnetworkName") == "" {
			return netip.Prefix{}, errors.New("the environment's network names its subnet of IPv6 (ipv6SubnetworkName) and not that of IPv4: name that, too (internalSubnetworkName)")
		}
		project, err := c.runtime.Project(ctx)
		if err != nil {
			return netip.Prefix{}, err
		}
		found, err := project.Subnet6(ctx, environment.Text("internalNetworkName"), environment.Text(propertySubnet6))
		return found.Range, err
	}
	return netip.Prefix{}, nil
}

// checkSix finds the obstacles to addresses of IPv6, in a new or an existing cluster.
func (c *clusters) checkSix(ctx context.Context, object *muranopl.Object, wished, made podNetwork, there bool) (problems []error) {
	name := object.Text("name")
	refuse := func(format string, arguments ...any) { problems = append(problems, fmt.Errorf(format, arguments...)) }
	if text := object.Text(propertyPublic6); text != "" {
		if parsed, err := netip.ParsePrefix(text); err != nil || !parsed.Addr().Is6() {
			refuse("publicIpv6Cidr of cluster %s is %q, which is no network of IPv6: write it like ::/0", name, text)
		} else if !wished.Six() {
			refuse("publicIpv6Cidr of cluster %s says who reaches it by IPv6, which it does not have: leave it out, or make a cluster with ranges of IPv6", name)
		}
	}
	if !wished.Six() {
		return problems
	}
	if wished.kind == nodes.Flannel {
		refuse("useFlannel: the pods of cluster %s are to have addresses of IPv6, which Burano gives with Calico only: set useFlannel to false, or give ranges of IPv4 alone", name)
	}
	if wished.encapsulation == network.Unwrapped {
		refuse("podEncapsulation of cluster %s is %s, by which nodes tell each other routes of IPv4 only: set it to %s, or give ranges of IPv4 alone", name, network.Unwrapped, network.CrossSubnet)
	}
	if wished.datastore == network.InKubernetes {
		refuse("calicoDatastore of cluster %s is %s, which goes with addresses of IPv4 alone: set it to %s, or give ranges of IPv4 alone", name, wished.datastore, network.InEtcd)
	}
	if external := object.Objects(propertyExternal); len(external) > 0 {
		refuse("%s cannot be a node of cluster %s: machines beside the cloud have no addresses of IPv6 that Burano knows, and the cluster's pods have", external[0].Text("name"), name)
	}
	switch six, err := c.network6(ctx); {
	case err != nil:
		problems = append(problems, err)
	case there && six != made.nodes6:
		refuse("the environment's network cannot have other addresses of IPv6: the nodes of cluster %s have such of %s; set its ipv6Cidr, or ipv6SubnetworkName, back", name, made.nodes6)
	case !six.IsValid():
		refuse("the pods of cluster %s are to have addresses of IPv6, and its nodes have none: make the environment's network a %s with an ipv6Cidr such as fd00:20::/64, or name a subnet of IPv6 "+
			"(ipv6SubnetworkName) of one that is there", name, classCustomNetwork)
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

// public6 is the range that reaches a cluster from outside by IPv6; "" for none. A model without this value that lets in all of IPv4 lets in all of IPv6.
func public6(object *muranopl.Object) string {
	if text := object.Text(propertyPublic6); text != "" || object.Text("publicCidr") != "0.0.0.0/0" {
		return text
	}
	return "::/0"
}

// room is of how many nodes there are addresses for pods. Calico gives each node, of any role, blocks of 64; Flannel one of 256, and leaves the first out.
func (n podNetwork) room() int {
	bits, less := 26, 0
	if n.kind == nodes.Flannel {
		bits, less = 24, 1
	}
	if n.Pods.Bits() > bits {
		return 0
	}
	return 1<<(bits-n.Pods.Bits()) - less
}

// mostNodes is how many nodes a cluster may have as its model lists them, with the present nodes of its groups: the room for more of a group is checked
// when it gets them.
func mostNodes(object *muranopl.Object) int {
	most := max(object.Int("masterCount"), 1+len(object.Objects("masterNodes"))) + len(object.Objects("minionNodes")) + len(object.Objects("gatewayNodes")) +
		len(object.Objects(propertyExternal)) + object.Int("surge")
	for _, group := range object.Objects(propertyGroups) {
		most += nodeList{grouped, group}.size()
	}
	return most
}

// overlaps finds networks that share addresses with pods or Services; networks are the nodes'.
func (n podNetwork) overlaps(cluster string, networks ...netip.Prefix) (problems []error) {
	type taker struct {
		property, whose string
		netip.Prefix
	}
	var takers []taker
	if n.Four() {
		takers = append(takers, taker{propertyPodRange, "pods", n.Pods}, taker{propertyServiceRange, "Services", n.Services})
	}
	if n.Six() {
		takers = append(takers, taker{propertyPodRange, "pods", n.Pods6}, taker{propertyServiceRange, "Services", n.Services6})
	}
	if n.nodes6.IsValid() {
		networks = append(slices.Clone(networks), n.nodes6)
	}
	for i := 0; i < len(takers); i += 2 {
		if pods, services := takers[i].Prefix, takers[i+1].Prefix; pods.Overlaps(services) {
			problems = append(problems, fmt.Errorf("podRange (%s) and serviceRange (%s) of cluster %s overlap: give ranges that do not", pods, services, cluster))
		}
	}
	for _, one := range takers {
		refuse := func(what string) {
			problems = append(problems, fmt.Errorf("the %s of cluster %s are to have addresses of %s (%s), which overlaps %s: give %s another range", one.whose, cluster, one.Prefix, one.property, what, one.property))
		}
		for _, taken := range nobodys {
			if one.Overlaps(taken.Prefix) {
				refuse(taken.what)
			}
		}
		for _, network := range networks {
			if one.Overlaps(network) {
				refuse(fmt.Sprintf("the network of its nodes (%s)", network))
			}
		}
	}
	return problems
}

// knownNetwork is the range of the environment's network, as far as it is known before anything is made; not valid where it is not.
func (c *clusters) knownNetwork(ctx context.Context) (known netip.Prefix) {
	environment := environmentNetwork(c.objects.model(), "")
	switch {
	case environment == nil:
	case environment.Class().IsEmbedded(classExistingNetwork):
		if project, err := c.runtime.Project(ctx); err == nil { // else it is complained about where it is needed
			found, _ := existingSubnet(ctx, project, environment)
			known = found.Range
		}
	case environment.Class().IsEmbedded(classNeutronNetwork):
		known, _ = netip.ParsePrefix(environment.Text("subnetCidr"))
	}
	return known
}

// separate makes sure that the pods and Services of a cluster that is about to be made are not where its nodes are.
func (c *clusters) separate(ctx context.Context, object *muranopl.Object, own netip.Prefix) error {
	if alone(object) {
		return nil
	}
	_, there, err := c.madeWith(ctx, object)
	if err != nil || there {
		return err
	}
	wished, err := c.podNetwork(ctx, object)
	if err != nil {
		return err
	}
	return errors.Join(wished.overlaps(object.Text("name"), own)...)
}

// oneSubnet makes sure that the nodes of a cluster without encapsulation stand in one network: no router of the cloud has routes to pods.
func (c *clusters) oneSubnet(ctx context.Context, object *muranopl.Object, own netip.Prefix, further []netip.Prefix) error {
	wished, err := c.podNetwork(ctx, object)
	if err != nil || wished.encapsulation != network.Unwrapped || len(further) == 0 {
		return err
	}
	return fault.New(fault.Invalid, "cluster %s cannot have nodes in %s and in %s with podEncapsulation: %s, which wraps no packet: routers between networks do not know where pods are. "+
		"Leave all nodes in one network, or make a cluster with podEncapsulation: %s. Nothing was changed", object.Text("name"), own, further[0], network.Unwrapped, network.CrossSubnet)
}

// needs are the features that the pod network needs of images of nodes.
func (n podNetwork) needs() (list []imageNeed) {
	if n.datastore == network.InKubernetes {
		list = append(list, imageNeed{func(role nodes.Role) bool { return role == nodes.Master }, func(image openstack.NodeImage) string { return image.CalicoDefinitions },
			fmt.Sprintf("it has the definitions of Calico's kinds, which calicoDatastore: %s", network.InKubernetes), openstack.CalicoDefinitionsProperty})
	}
	if n.encapsulation == network.Unwrapped {
		list = append(list, imageNeed{func(nodes.Role) bool { return true }, func(image openstack.NodeImage) string { return image.Calico },
			fmt.Sprintf("its Calico can exchange routes by BGP, which podEncapsulation: %s", network.Unwrapped), openstack.CalicoProperty})
	}
	return list
}

// checkConnecting finds images of nodes without a feature that the pod network needs.
func (c *clusters) checkConnecting(ctx context.Context, cluster *muranopl.Object) (problems []error, err error) {
	wished, err := c.podNetwork(ctx, cluster)
	if err != nil {
		return nil, nil //nolint:nilerr // what is wrong with the model is told elsewhere
	}
	for _, need := range wished.needs() {
		lacking, err := c.imagesWithout(ctx, cluster, need)
		if err != nil {
			return problems, err
		}
		problems = append(problems, lacking...)
	}
	return problems, nil
}
