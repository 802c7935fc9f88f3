package native

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/engine"
)

// The pods of a cluster have what it was made with: what connects them, their addresses and those of Services, and the names of these. Certificates, rules,
// ports of the cloud and every pod that runs hang on them. So what a cluster is made with is kept with it, and counts from then on.
const (
	// attributeNetwork says what connects the pods.
	attributeNetwork = "network"
	// attributePodNetwork says the rest. Clusters that were made before there was a choice have none, and what was not to be chosen then.
	attributePodNetwork = "podNetwork"
)

const (
	propertyPodRange      = "podRange"
	propertyServiceRange  = "serviceRange"
	propertyDomain        = "clusterDomain"
	propertyPodMTU        = "podMtu"
	propertyEncapsulation = "podEncapsulation"

	encapsulateAlways  = "always"
	encapsulateBetween = "crossSubnet"
)

// podNetwork is what connects the pods of a cluster.
type podNetwork struct {
	network.Addressing
	kind        nodes.Network
	crossSubnet bool
	mtu         int64 // 0: what their node's network carries
}

func (n podNetwork) encapsulation() string {
	if n.crossSubnet {
		return encapsulateBetween
	}
	return encapsulateAlways
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
	}
)

// wishedPodNetwork is what the model says, on top of what counts where it says nothing.
func wishedPodNetwork(object *muranopl.Object, otherwise podNetwork) (wished podNetwork, problems []error) {
	wished, name := otherwise, object.Text("name")
	parse := func(property string, into *netip.Prefix) {
		text := object.Text(property)
		if text == "" {
			return
		}
		parsed, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
			problems = append(problems, fmt.Errorf("%s of cluster %s is %q, which is no range of addresses: write it like %s", property, name, text, *into))
		case !parsed.Addr().Is4():
			problems = append(problems, fmt.Errorf("%s of cluster %s is %s: pods and Services have addresses of IPv4, as %s", property, name, text, *into))
		case parsed != parsed.Masked():
			problems = append(problems, fmt.Errorf("%s of cluster %s is %s, which is an address in %s: give the range", property, name, text, parsed.Masked()))
		default:
			*into = parsed
		}
	}
	parse(propertyPodRange, &wished.Pods)
	parse(propertyServiceRange, &wished.Services)
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
	if encapsulation := object.Text(propertyEncapsulation); encapsulation != "" {
		wished.crossSubnet = encapsulation == encapsulateBetween
	}
	if object.Text(propertyEncapsulation) == encapsulateBetween && wished.kind == nodes.Flannel {
		problems = append(problems, fmt.Errorf("podEncapsulation of cluster %s is %s, which Flannel does not have: leave it out, or set useFlannel to false", name, encapsulateBetween))
	}
	wished.mtu = int64(object.Int(propertyPodMTU))
	return wished, problems
}

// madeWith is what connects the pods of a cluster that is there; false for one that is not.
func (c *clusters) madeWith(ctx context.Context, object *muranopl.Object) (made podNetwork, there bool, err error) {
	kind, there, err := c.runtime.Attribute(ctx, object, attributeNetwork)
	if err != nil {
		return made, false, err
	}
	made = podNetwork{Addressing: network.DefaultAddressing(), kind: nodes.Calico}
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
		Pods, Services netip.Prefix
		Domain         string
		CrossSubnet    bool
		MTU            int64
	}
	if err := convert(value, &kept); err != nil {
		return made, true, fmt.Errorf("read what the pods of cluster %s have their addresses from: %w", object.Text("name"), err)
	}
	made.Addressing = network.Addressing{Pods: kept.Pods, Services: kept.Services, Domain: kept.Domain}
	made.crossSubnet, made.mtu = kept.CrossSubnet, kept.MTU
	return made, true, nil
}

// keepPodNetwork notes what a cluster is made with, before its nodes are set up.
func (c *clusters) keepPodNetwork(ctx context.Context, object *muranopl.Object) error {
	made, err := c.podNetwork(ctx, object)
	if err != nil {
		return err
	}
	kept := map[string]any{"pods": made.Pods.String(), "services": made.Services.String(), "domain": made.Domain, "crossSubnet": made.crossSubnet}
	if made.kind == nodes.Flannel { // Calico takes another one
		kept["mtu"] = made.mtu
	}
	if err := c.runtime.SetAttribute(ctx, object, attributePodNetwork, kept); err != nil {
		return err
	}
	return c.runtime.SetAttribute(ctx, object, attributeNetwork, string(made.kind))
}

// podNetwork is what connects the pods of a cluster: what it was made with, whatever the model says, or is to be made with.
func (c *clusters) podNetwork(ctx context.Context, object *muranopl.Object) (podNetwork, error) {
	made, there, err := c.madeWith(ctx, object)
	if err != nil {
		return made, err
	}
	if !there {
		wished, problems := wishedPodNetwork(object, podNetwork{Addressing: network.DefaultAddressing()})
		return wished, errors.Join(problems...)
	}
	if made.kind == nodes.Calico {
		made.mtu = int64(object.Int(propertyPodMTU))
	}
	return made, nil
}

// checkPodNetwork finds what keeps a cluster from having, or a cluster that is there from keeping, the network of pods that the model says.
func (c *clusters) checkPodNetwork(ctx context.Context, object *muranopl.Object) (problems []error, err error) {
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
		differs(propertyPodRange, made.Pods.String(), wished.Pods.String(), "its pods have their addresses from it")
		differs(propertyServiceRange, made.Services.String(), wished.Services.String(), "its Services have their addresses from it, and its certificates name one")
		differs(propertyDomain, made.Domain, wished.Domain, "its Services, certificates and tokens of ServiceAccounts are called by it")
		if made.kind == nodes.Calico {
			differs(propertyEncapsulation, made.encapsulation(), wished.encapsulation(), "the addresses of its pods belong to a pool that says so")
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
	environment := environmentNetwork(c.objects.model(), "")
	if wished.mtu != 0 && environment != nil && environment.Class().Is(classCustomNetwork) {
		if carries := int64(environment.Int("mtu")); carries > 0 && wished.mtu > carries-network.Overhead {
			problems = append(problems, fmt.Errorf("podMtu of cluster %s is %d, and the environment's network carries %d bytes, of which VXLAN takes %d: ask for %d at most, or give the network a larger mtu",
				name, wished.mtu, carries, network.Overhead, carries-network.Overhead))
		}
	}
	if object.Text(propertyPodRange) != "" {
		if room, most := wished.room(), mostNodes(object); room < most {
			problems = append(problems, fmt.Errorf("podRange of cluster %s is %s, which has addresses for the pods of %d nodes, and the cluster may get %d (lists of nodes, groups, surge): "+
				"have fewer nodes, or make a cluster with a larger range", name, wished.Pods, room, most))
		}
	}
	if there {
		return problems, nil
	}
	if bits := wished.Services.Bits(); bits < 12 || bits > 24 {
		problems = append(problems, fmt.Errorf("serviceRange of cluster %s is %s: give one of a size from /12 to /24", name, wished.Services))
	}
	if own := c.knownNetwork(ctx); own.IsValid() {
		problems = append(problems, wished.overlaps(name, own)...)
	} else {
		problems = append(problems, wished.overlaps(name)...)
	}
	return problems, nil
}

// refused is part of nodeServers.
func (c *clusters) refused(ctx context.Context) (refused []engine.Refusal, err error) {
	for _, object := range c.objects.all(classCluster) {
		problems, err := c.unfit(ctx, object)
		if err != nil {
			return nil, err
		}
		lacking, _ := c.checkImages(ctx, object) // what Glance does not answer now is the deployment's to tell
		for _, problem := range append(problems, lacking...) {
			refused = append(refused, engine.Refusal{ObjectID: object.ID(), Text: problem.Error()})
		}
	}
	return refused, nil
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

// mostNodes is how many nodes a cluster may have as its model lists them, with those that its groups have now: whether there is room for more of a group is
// looked at when it gets them.
func mostNodes(object *muranopl.Object) int {
	most := max(object.Int("masterCount"), 1+len(object.Objects("masterNodes"))) + len(object.Objects("minionNodes")) + len(object.Objects("gatewayNodes")) +
		len(object.Objects(propertyExternal)) + object.Int("surge")
	for _, group := range object.Objects(propertyGroups) {
		most += nodeList{grouped, group}.size()
	}
	return most
}

// overlaps finds what has addresses that pods or Services are to have; networks are those of nodes.
func (n podNetwork) overlaps(cluster string, networks ...netip.Prefix) (problems []error) {
	if n.Pods.Overlaps(n.Services) {
		problems = append(problems, fmt.Errorf("podRange (%s) and serviceRange (%s) of cluster %s overlap: give ranges that do not", n.Pods, n.Services, cluster))
	}
	for _, one := range []struct {
		property, whose string
		netip.Prefix
	}{{propertyPodRange, "pods", n.Pods}, {propertyServiceRange, "Services", n.Services}} {
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
	case environment.Class().Is(classExistingNetwork):
		if project, err := c.runtime.Project(ctx); err == nil { // else it is complained about where it is needed
			found, _ := existingSubnet(ctx, project, environment)
			known = found.Range
		}
	case environment.Class().Is(classNeutronNetwork):
		known, _ = netip.ParsePrefix(environment.Text("subnetCidr"))
	}
	return known
}

// separate makes sure that the pods and Services of a cluster that is about to be made are not where its nodes are.
func (c *clusters) separate(ctx context.Context, object *muranopl.Object, own netip.Prefix) error {
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
