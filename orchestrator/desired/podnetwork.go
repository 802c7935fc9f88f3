package desired

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
)

// Properties of a cluster's pod network, which errors name.
const (
	PropertyPodRange      = "podRange"
	PropertyServiceRange  = "serviceRange"
	PropertyDomain        = "clusterDomain"
	PropertyPodMTU        = "podMtu"
	PropertyEncapsulation = "podEncapsulation"
	PropertyDatastore     = "calicoDatastore"
)

// PodNetwork is the network of a cluster's pods.
type PodNetwork struct {
	network.Addressing
	Nodes6        netip.Prefix // where nodes have their addresses of IPv6; not valid where they have none
	Kind          nodes.Network
	Encapsulation network.Encapsulation
	Datastore     network.Datastore
	MTU           int64 // 0: the MTU of their node's network
}

// UsualPodNetwork is the network of clusters without a setting, and of all clusters from before the setting existed.
func UsualPodNetwork() PodNetwork {
	return PodNetwork{Addressing: network.DefaultAddressing(), Kind: nodes.Calico, Encapsulation: network.Always, Datastore: network.InEtcd}
}

// PodWish is the model's pod network. What it leaves open stays as the cluster was made.
type PodWish struct {
	pods, services ranges
	domain         string
	kind           nodes.Network
	encapsulation  network.Encapsulation
	datastore      network.Datastore
	mtu            int64
	mistakes       []error
}

// ranges are of IPv4, of IPv6, or of both.
type ranges struct {
	given     bool
	four, six netip.Prefix
}

func (r ranges) over(four, six *netip.Prefix) {
	if r.given {
		*four, *six = r.four, r.six
	}
}

var (
	domainName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$`)
	// reserved are addresses that no pod and no Service can have.
	reserved = []struct {
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

func readPods(p properties) (w PodWish) {
	name, standard := p.text("name"), network.DefaultAddressing()
	w.kind, w.mtu = nodes.Calico, int64(p.number(PropertyPodMTU, 0))
	if p.flag("useFlannel", false) {
		w.kind = nodes.Flannel
	}
	w.readRanges(p, &w.pods, PropertyPodRange, standard.Pods, "fd00:10:244::/64")
	w.readRanges(p, &w.services, PropertyServiceRange, standard.Services, "fd00:10:96::/112")
	if domain := p.text(PropertyDomain); domain != "" {
		if !domainName.MatchString(domain) || len(domain) > 150 { // with the names of Services in front it is one of DNS, of 253 at most
			w.mistaken("clusterDomain of cluster %s is %q, which is no domain: use lower-case letters, digits, hyphens and dots, at most 150, as in cluster.local", name, domain)
		} else {
			w.domain = domain
		}
	}
	w.encapsulation = network.Encapsulation(p.text(PropertyEncapsulation))
	if w.encapsulation != "" && w.encapsulation != network.Always && w.kind == nodes.Flannel {
		w.mistaken("podEncapsulation of cluster %s is %s, which Flannel does not have: leave it out, or set useFlannel to false", name, w.encapsulation)
	}
	w.datastore = network.Datastore(p.text(PropertyDatastore))
	if w.datastore != "" && w.datastore != network.InEtcd && w.kind == nodes.Flannel {
		w.mistaken("calicoDatastore of cluster %s is %s, and Flannel has its store in etcd: leave it out, or set useFlannel to false", name, w.datastore)
	}
	return w
}

func (w *PodWish) mistaken(format string, arguments ...any) {
	w.mistakes = append(w.mistakes, fmt.Errorf(format, arguments...))
}

func (w *PodWish) readRanges(p properties, into *ranges, property string, usual netip.Prefix, example string) {
	text, name := p.text(property), p.text("name")
	if text == "" {
		return
	}
	list := strings.Split(text, ",")
	found := make([]netip.Prefix, len(list))
	for i, one := range list {
		parsed, err := netip.ParsePrefix(strings.TrimSpace(one))
		switch {
		case err != nil:
			w.mistaken("%s of cluster %s is %q, which is no range of addresses: write it like %s, like %s, or as both: %[4]s,%[5]s", property, name, text, usual, example)
			return
		case parsed != parsed.Masked():
			w.mistaken("%s of cluster %s is %s, which is an address in %s: give the range", property, name, one, parsed.Masked())
			return
		}
		found[i] = parsed
	}
	into.given = true
	switch {
	case len(found) == 1 && found[0].Addr().Is6():
		into.six = found[0]
	case len(found) > 2 || !found[0].Addr().Is4() || len(found) == 2 && !found[1].Addr().Is6():
		w.mistaken("%s of cluster %s is %s: pods and Services have addresses of IPv4, of IPv6, or of both, where a range of IPv6 comes second, as in %s,%s",
			property, name, text, usual, example)
	case len(found) == 2:
		into.six = found[1]
		fallthrough
	default:
		into.four = found[0]
	}
}

// PodNetwork is the model's pod network; otherwise has the parts that the model leaves open.
func (c *Cluster) PodNetwork(otherwise PodNetwork) (made PodNetwork, mistakes []error) {
	made, mistakes = otherwise, slices.Clone(c.Pods.mistakes)
	c.Pods.pods.over(&made.Pods, &made.Pods6)
	c.Pods.services.over(&made.Services, &made.Services6)
	if len(mistakes) == 0 && (made.Pods6.IsValid() != made.Services6.IsValid() || made.Pods.IsValid() != made.Services.IsValid()) {
		mistakes = append(mistakes, fmt.Errorf("podRange of cluster %s is %s, and serviceRange is %s: pods and Services have the same versions of IP; give both a range of IPv6, or none, and the same of IPv4",
			c.Name, network.Text(made.PodRanges()), network.Text(made.ServiceRanges())))
	}
	if c.Pods.domain != "" {
		made.Domain = c.Pods.domain
	}
	made.Kind, made.MTU = c.Pods.kind, c.Pods.mtu
	if c.Pods.encapsulation != "" {
		made.Encapsulation = c.Pods.encapsulation
	}
	if c.Pods.datastore != "" {
		made.Datastore = c.Pods.datastore
	}
	return made, mistakes
}

// MTU is the model's size of packets of pods; 0 for that of their node's network.
func (w PodWish) MTU() int64 { return w.mtu }

// Overhead is the bytes of a packet that its encapsulation takes.
func (n PodNetwork) Overhead() int64 { return int64(n.Encapsulation.Overhead(n.Six())) }

// Room is the number of nodes whose pods have addresses. Calico gives each node, of any role, blocks of 64; Flannel one of 256, and leaves the first out.
func (n PodNetwork) Room() int {
	bits, less := 26, 0
	if n.Kind == nodes.Flannel {
		bits, less = 24, 1
	}
	if n.Pods.Bits() > bits {
		return 0
	}
	return 1<<(bits-n.Pods.Bits()) - less
}

// CheckRoom finds a range of the model that has too few addresses for the nodes that the cluster may get as its model lists them, with the present nodes of
// its groups: the room for more of a group is checked when it gets them.
func (c *Cluster) CheckRoom(pods PodNetwork) error {
	if !c.Pods.pods.given || !pods.Four() {
		return nil
	}
	most := max(c.Masters, 1+c.MastersMade) + c.Minions.Listed + c.Gateways.Listed + len(c.Machines) + c.Surge
	for _, group := range c.Groups {
		most += group.Count
	}
	if room := pods.Room(); room < most {
		return fmt.Errorf("podRange of cluster %s is %s, which has addresses for the pods of %d nodes, and the cluster may get %d (lists of nodes, groups, surge): "+
			"have fewer nodes, or make a cluster with a larger range", c.Name, pods.Pods, room, most)
	}
	return nil
}

// Overlaps finds networks that share addresses with pods or Services of a cluster; networks are the nodes'.
func (n PodNetwork) Overlaps(cluster string, networks ...netip.Prefix) (mistakes []error) {
	type taker struct {
		property, whose string
		netip.Prefix
	}
	var takers []taker
	if n.Four() {
		takers = append(takers, taker{PropertyPodRange, "pods", n.Pods}, taker{PropertyServiceRange, "Services", n.Services})
	}
	if n.Six() {
		takers = append(takers, taker{PropertyPodRange, "pods", n.Pods6}, taker{PropertyServiceRange, "Services", n.Services6})
	}
	if n.Nodes6.IsValid() {
		networks = append(slices.Clone(networks), n.Nodes6)
	}
	for i := 0; i < len(takers); i += 2 {
		if pods, services := takers[i].Prefix, takers[i+1].Prefix; pods.Overlaps(services) {
			mistakes = append(mistakes, fmt.Errorf("podRange (%s) and serviceRange (%s) of cluster %s overlap: give ranges that do not", pods, services, cluster))
		}
	}
	for _, one := range takers {
		refuse := func(other string) {
			mistakes = append(mistakes, fmt.Errorf("the %s of cluster %s are to have addresses of %s (%s), which overlaps %s: give %s another range", one.whose, cluster, one.Prefix, one.property, other, one.property))
		}
		for _, taken := range reserved {
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
	return mistakes
}
