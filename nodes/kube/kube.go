// Package kube makes a Kubernetes cluster of servers: units and configuration for masters and minions, the objects that
// every cluster has, and calls on its API (apply, wait).
package kube

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/nodes/ssh"
)

// Numbers and names that are the same in each cluster.
const (
	APIServerPort = route.APIServerPort

	// AdminsGroup holds every right in the cluster, through a binding that can be taken away. (The group system:masters
	// could not: it is built in.)
	AdminsGroup = "burano:admins"
	// EditorsGroup may change workloads in any namespace, and ReadersGroup may read them, Secrets aside: Kubernetes' own roles edit and view.
	EditorsGroup  = "burano:editors"
	ReadersGroup  = "burano:readers"
	PublisherUser = "burano:publisher"

	// TrustedFile is where nodes have the certificates of Kubernetes' authority.
	TrustedFile = keys + "kubernetes-ca.crt"

	bin     = "/opt/burano/bin/"
	keys    = "/etc/burano/pki/"
	configs = "/etc/kubernetes/"
)

// PublisherKubeconfig is where the publisher finds its access on a master.
const PublisherKubeconfig = configs + "publisher.conf"

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// APIServerName is the name in the API server's certificate and in every hosts file: api.<cluster>.internal. A character that a DNS label cannot hold
// becomes a hyphen.
func APIServerName(cluster string) string { return "api." + clusterDomain(cluster) }

// APIServerAlias is a name in the API server's certificate that outlives a change of the cluster's name. Each cluster has an authority of its own, so that the name
// need not tell clusters apart.
const APIServerAlias = "kubernetes"

// clusterDomain ends the names of a cluster's nodes and services.
func clusterDomain(cluster string) string {
	label := strings.Trim(notInName.ReplaceAllString(strings.ToLower(cluster), "-"), "-")
	if label = strings.Trim(label[:min(len(label), 50)], "-"); label == "" {
		label = "cluster"
	}
	return label + ".internal"
}

// APIServerURL is where the nodes find the API server.
func APIServerURL(cluster string) string {
	return fmt.Sprintf("https://%s:%d", APIServerName(cluster), APIServerPort)
}

// Node is a node as far as Kubernetes is concerned.
type Node struct {
	Name    string
	Address netip.Addr
	Six     netip.Addr // of IPv6; not valid where the cluster has none
	Access  netip.Addr // where it is reached from outside; the API server's certificate names it
}

// Cluster holds the settings that the units of all nodes need.
type Cluster struct {
	Name        string
	Authorities *pki.Cluster
	Addressing  network.Addressing
	// SharedAddresses are addresses of which one master has each at a time; the certificates of API servers name them.
	SharedAddresses []netip.Addr
	// EtcdAuthorityFile is where the nodes have etcd's authority.
	EtcdAuthorityFile string
	// Host is the host of the node whose units are made.
	Host Host
	// Runtime runs the containers of the minion whose units are made; the zero value is containerd.
	Runtime Runtime
	// Websockets is true if a minion's kubelet speaks WebSocket itself: its image has Docker.
	Websockets bool
	// Registries are the minions' settings for registries of container images.
	Registries Registries
	// Proxy is how minions reach the outside; Proxied is true if the node whose units are made has had a proxy.
	Proxy   Proxy
	Proxied bool
	// Podless is true if nodes without a kubelet have Node objects, too.
	Podless bool
	// Issuers are those of OpenID Connect whose users sign in.
	Issuers []signin.Issuer
	// SignIn is true if users sign in with tokens of Keystone.
	SignIn bool
	// NodeNetwork is where the nodes are.
	NodeNetwork netip.Prefix
	// NodeNetwork6 is where they have their addresses of IPv6; not valid where they have none.
	NodeNetwork6 netip.Prefix
}

// addresses are a node's addresses in Kubernetes: of the versions of IP that pods have, IPv4 first.
func (c Cluster) addresses(node Node) []netip.Addr {
	var list []netip.Addr
	if c.Addressing.Four() {
		list = append(list, node.Address)
	}
	if c.Addressing.Six() {
		list = append(list, node.Six)
	}
	return list
}

func (c Cluster) addressesText(node Node) string {
	var texts []string
	for _, address := range c.addresses(node) {
		texts = append(texts, address.String())
	}
	return strings.Join(texts, ",")
}

// Primary is the address at which Kubernetes reaches a node's programs.
func (c Cluster) Primary(node Node) netip.Addr { return c.addresses(node)[0] }

// everywhere are all addresses of a node, of the version of IP by which Kubernetes reaches it, or of both.
func (c Cluster) everywhere() string {
	if c.Addressing.Four() {
		return netip.IPv4Unspecified().String()
	}
	return netip.IPv6Unspecified().String()
}

// apiService is the name of the Service of the API server.
func (c Cluster) apiService() string { return "kubernetes.default.svc." + c.Addressing.Domain }

// Kubeconfig writes the access of a user on a node.
func (c Cluster) Kubeconfig(user string, pair pki.Pair) ([]byte, error) {
	return pki.Kubeconfig(c.Name, APIServerURL(c.Name), APIServerName(c.Name), user, c.Authorities.Kubernetes.Trusted(), pair)
}

func (c Cluster) kubeconfigFile(name, user string, pair pki.Pair) (ssh.File, error) {
	content, err := c.Kubeconfig(user, pair)
	return ssh.File{Path: configs + name + ".conf", Content: content, Mode: 0o600}, err
}

func (c Cluster) authorityFile() ssh.File {
	return ssh.File{Path: TrustedFile, Content: c.Authorities.Kubernetes.Trusted()}
}

func pairFiles(name string, pair pki.Pair) []ssh.File {
	return []ssh.File{{Path: keys + name + ".crt", Content: pair.Certificate}, {Path: keys + name + ".key", Content: pair.Key, Mode: 0o600}}
}

// program is the command line of a part of Kubernetes.
func program(name string, flags ...string) []string {
	return append([]string{bin + name}, flags...)
}
