// Package network gives pods their addresses and lets every node reach every pod, gateways and masters too.
//
// Driver is the interface of a network: [Calico] or [Flannel], both over etcd, or Calico in Kubernetes.
package network

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// Addressing has the ranges of addresses for pods and Services, and the domain of Services. It never changes in a cluster. Ranges are of IPv4, of IPv6, or
// of both.
type Addressing struct {
	Pods, Services netip.Prefix // of IPv4; not valid where there is none
	// Pods6 and Services6 are of IPv6; the zero value where there is none.
	Pods6     netip.Prefix `json:",omitzero"`
	Services6 netip.Prefix `json:",omitzero"`
	Domain    string       // behind the names of Services
}

// Four is true if pods and Services have addresses of IPv4.
func (a Addressing) Four() bool { return a.Pods.IsValid() }

// Six is true if pods and Services have addresses of IPv6.
func (a Addressing) Six() bool { return a.Pods6.IsValid() }

// Version is the one of IP by which Kubernetes reaches nodes, and that Services have which ask for none: IPv4 or IPv6.
func (a Addressing) Version() string {
	if a.Four() {
		return "IPv4"
	}
	return "IPv6"
}

// PodRanges are where pods have their addresses, IPv4 first.
func (a Addressing) PodRanges() []netip.Prefix { return both(a.Pods, a.Pods6) }

// ServiceRanges are where Services have their addresses, IPv4 first.
func (a Addressing) ServiceRanges() []netip.Prefix { return both(a.Services, a.Services6) }

func both(four, six netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc([]netip.Prefix{four, six}, func(one netip.Prefix) bool { return !one.IsValid() })
}

// Text writes ranges as Kubernetes reads them: with commas between them.
func Text(ranges []netip.Prefix) string {
	texts := make([]string, len(ranges))
	for i, one := range ranges {
		texts[i] = one.String()
	}
	return strings.Join(texts, ",")
}

// DefaultAddressing is the addressing of clusters without a setting, and of all clusters from before the setting existed.
func DefaultAddressing() Addressing {
	return Addressing{Pods: netip.MustParsePrefix("10.244.0.0/16"), Services: netip.MustParsePrefix("10.96.0.0/16"), Domain: "cluster.local"}
}

// API is the address of the Service of the API server: the first that there is.
func (a Addressing) API() netip.Addr { return a.service(1) }

// DNS is the address of the Service of the cluster's DNS: the tenth.
func (a Addressing) DNS() netip.Addr { return a.service(10) }

// Registry is the address of the Service of the cluster's registry: the eleventh.
func (a Addressing) Registry() netip.Addr { return a.service(11) }

func (a Addressing) service(number int) netip.Addr {
	address := a.ServiceRanges()[0].Addr()
	for range number {
		address = address.Next()
	}
	return address
}

// Overhead is how many bytes VXLAN over IPv4 takes from each packet, and Overhead6 the same over IPv6.
const (
	Overhead  = 50
	Overhead6 = 70
)

// Encapsulation is which packets between pods of two nodes go inside of other packets. It never changes in a cluster.
type Encapsulation string

// The encapsulations.
const (
	Always      Encapsulation = "always"      // all, by VXLAN
	CrossSubnet Encapsulation = "crossSubnet" // packets between nodes of different subnets, by VXLAN
	Unwrapped   Encapsulation = "none"        // none: nodes, all in one subnet, announce their pods to each other by BGP
)

// Overhead is how many bytes it takes from each packet; six where nodes send packets of IPv6.
func (e Encapsulation) Overhead(six bool) int {
	switch {
	case e == Unwrapped:
		return 0
	case six:
		return Overhead6
	}
	return Overhead
}

// Node is a node as far as the network is concerned.
type Node struct {
	Name    string
	Address netip.Addr
	Bits    int          // prefix length of the node network
	Six     netip.Prefix // its address of IPv6, with the length of its network's prefix; not valid where the cluster has none
	MTU     int          // of the interface with Address; 1500 when 0
	Kubelet bool         // pods run here
	Master  bool         // the network's controllers run here
}

// Units are the names of a network's units.
type Units struct {
	Daemons     []string // on every node, in the order in which they start
	Controllers []string // on masters
	Parts       []string // the daemons' parts that not every node image has: paths
}

// Driver makes the units of a network. All methods are pure.
type Driver interface {
	// Units are the names of the units of Daemons and Controllers.
	Units() Units
	// Orders are the certificates that a node needs, by name; Daemons and Controllers get the pairs under the same names.
	Orders(node Node, authorities *pki.Cluster) map[string]pki.Order
	// Daemons are the units that connect a node. They must be started only when the store answers, and a kubelet's node is
	// Ready only after they started.
	Daemons(node Node, pairs map[string]pki.Pair, access Access) ([]systemd.Unit, error)
	// Overhead is how many bytes of each packet of a node the network needs for itself.
	Overhead() int
	// Controllers are the units of a master, which need the API server.
	Controllers(node Node, pairs map[string]pki.Pair, access Access) ([]systemd.Unit, error)
	// Manifests are the Kubernetes objects that the units need first: YAML documents.
	Manifests() []byte
	// Settings are keys that etcd must hold before a daemon starts. They are written once and never changed: addresses of
	// pods hang on them.
	Settings() map[string]string
	// Configure is a master's script in each deployment, once its daemons run: it writes the settings in the network's store. False for none.
	Configure() (ssh.Script, bool)
	// Registry is where the network keeps its data about nodes, where its store is etcd.
	Registry() Registry
	// Forget deletes the network's data about a leaving node, where its store is etcd. A master runs it; the node's daemon is stopped before.
	Forget(node Node, access Access) ssh.Script
}

// Registry is where in etcd a network keeps a key for each node, and how they are read.
type Registry struct {
	Prefix string
	// Node is the node of a key: its name, its address, or both; false for a key of no node.
	Node func(key string, value []byte) (Node, bool)
}

// Access is how the units reach etcd and Kubernetes.
type Access struct {
	Endpoint      string // of etcd, through the node's forwarder
	AuthorityFile string // etcd's authority on the node
	Authority     []byte // its content: the units start with it
	Kubeconfig    func(user string, pair pki.Pair) ([]byte, error)
}
