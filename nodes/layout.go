package nodes

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

const (
	remoteBinary = "/opt/burano/bin/burano"
	keysFolder   = "/etc/burano/pki/"
	vaultNode    = "pki/nodes/" // + node: the bundle of its certificates
)

// Names of pairs that are made here.
const (
	memberPair    = "etcd-member"
	peerPair      = "etcd-peer"
	publisherPair = "publisher"
	gatewayPair   = "gateway"
)

// layout has the files and units of one node.
type layout struct {
	units map[string]systemd.Unit // by unit name
	hosts string                  // its lines of /etc/hosts
	// runtime are the units of the container runtime, in the order in which they start.
	runtime []string
	others  []ssh.File // of no unit
}

// files are all files of the layout, each once, ordered by path.
func (l layout) files() []ssh.File {
	byPath := map[string]ssh.File{}
	for _, file := range l.others {
		byPath[file.Path] = file
	}
	for _, unit := range l.units {
		for _, file := range unit.Install() {
			byPath[file.Path] = file
		}
	}
	files := make([]ssh.File, 0, len(byPath))
	for _, file := range byPath {
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b ssh.File) int { return strings.Compare(a.Path, b.Path) })
	return files
}

func (l layout) add(units ...systemd.Unit) {
	for _, unit := range units {
		l.units[unit.Name] = unit
	}
}

// design has the settings for the layouts of all nodes.
type design struct {
	cluster     Config
	driver      network.Driver
	authorities *pki.Cluster
	voters      []string // names of the nodes that run an etcd member
	peers       etcd.Stage
	host        kube.Host      // of the node whose layout is made
	binary      string         // digest of the burano program, empty when its units are left out
	former      []Node         // masters that leave and whose API servers serve until then
	metrics     bool           // the master whose layout is made runs metrics-server
	shares      bool           // the gateway or master whose layout is made can share the address of its role
	serves      bool           // the node whose layout is made can serve volumes
	attaches    bool           // also the volumes of Cinder
	zoned       bool           // also volumes in the zone of the node
	mounts      bool           // also shares of Manila
	runtime     kube.Runtime   // of the minion whose layout is made, or of new minions
	websockets  bool           // the minion whose layout is made has Docker, and a kubelet that speaks WebSocket itself
	proxied     bool           // the minion whose layout is made has had a proxy
	device      string         // its interface that has its address
	elect       bool           // controllers have a leader, because there are, or have been, several masters
	storage     []kube.Storage // the back-ends of volumes that nodes serve
}

// signsIn is true if users sign in with tokens of Keystone.
func (d design) signsIn() bool { return d.cluster.KeystoneSignIn && d.binary != "" }

func (d design) kube() kube.Cluster {
	var shared []netip.Addr
	for _, address := range []netip.Addr{d.cluster.APIAddress.Address, d.cluster.APIAddress.Access} {
		if address.IsValid() {
			shared = append(shared, address)
		}
	}
	return kube.Cluster{SharedAddresses: shared, Name: d.cluster.Name, Authorities: d.authorities, Addressing: d.cluster.Addressing, EtcdAuthorityFile: etcd.AuthorityFile, Host: d.host, Runtime: d.runtime, Websockets: d.websockets, Registries: d.cluster.Registries,
		Proxy: d.cluster.Proxy, Proxied: d.proxied, Podless: d.cluster.registers(), Issuers: d.cluster.Issuers, SignIn: d.signsIn(), NodeNetwork: d.cluster.NodeNetwork, NodeNetwork6: d.cluster.NodeNetwork6}
}

// kubeletOf is the cluster for the kubelet of a node. A master keeps memory for its control plane, uses containerd, and reaches registries without the other masters.
func (d design) kubeletOf(node Node) kube.Cluster {
	c := d.kube()
	if node.Role == Master {
		c.Runtime, c.Proxy, c.Host.Controls = kube.Containerd, c.Proxy.OfMaster(), true
	}
	return c
}

func etcdNode(node Node) etcd.Node { return etcd.Node{Name: node.Name, Address: node.Address} }

func kubeNode(node Node) kube.Node {
	access := node.Access
	if !access.IsValid() {
		access = node.Inherits
	}
	return kube.Node{Name: node.Name, Address: node.Address, Six: node.Six, Access: access}
}

func (d design) networkNode(node Node, mtu int) network.Node {
	bits := node.Address.BitLen()
	for _, network := range d.cluster.networksOfNodes() {
		if network.Contains(node.Address) {
			bits = network.Bits()
		}
	}
	made := network.Node{Name: node.Name, Address: node.Address, Bits: bits, MTU: mtu, Kubelet: node.RunsPods(), Master: node.Role == Master}
	if node.Six.IsValid() {
		made.Six = netip.PrefixFrom(node.Six, d.cluster.NodeNetwork6.Bits())
	}
	return made
}

// etcdNodes are the nodes that run a member.
func (d design) etcdNodes() []etcd.Node {
	var nodes []etcd.Node
	for _, node := range d.cluster.Nodes {
		if slices.Contains(d.voters, node.Name) {
			nodes = append(nodes, etcdNode(node))
		}
	}
	return nodes
}

// orders are the certificates that a node needs.
func (d design) orders(node Node) map[string]pki.Order {
	if d.cluster.Alone() {
		return d.ordersAlone(node)
	}
	orders := d.driver.Orders(d.networkNode(node, 0), d.authorities)
	add := func(more map[string]pki.Order) {
		for name, order := range more {
			orders[name] = order
		}
	}
	if slices.Contains(d.voters, node.Name) {
		orders[memberPair] = pki.Order{Authority: d.authorities.Etcd, Request: etcdNode(node).CertificateRequest()}
		orders[peerPair] = pki.Order{Authority: d.authorities.EtcdPeers, Request: etcdNode(node).PeerRequest()}
	}
	if d.cluster.podless(node) {
		add(d.kube().LeaseOrders(kubeNode(node)))
	}
	switch node.Role {
	case Master:
		add(d.kube().MasterOrders(kubeNode(node), etcd.APIServer))
		if d.cluster.Metrics {
			add(d.kube().MetricsOrders(kubeNode(node)))
		}
		if d.cluster.Registry != nil && node.Name == d.cluster.masters()[0].Name {
			add(d.kube().RegistryOrders())
		}
		if d.cluster.Proxy.ThroughMasters() {
			add(d.kube().WayOrders())
		}
		if d.signsIn() {
			add(kube.SignInOrders(d.kube()))
		}
		orders[publisherPair] = pki.Order{Authority: d.authorities.Etcd, Request: etcd.ClientRequest(etcd.Publisher)}
	case Gateway:
		orders[gatewayPair] = pki.Order{Authority: d.authorities.Etcd, Request: etcd.ClientRequest(etcd.Gateway)}
	}
	if node.RunsPods() {
		add(d.kubeletOf(node).MinionOrders(kubeNode(node)))
	}
	add(d.storageOrders(node))
	return orders
}

// layout makes a node's layout. mtu is that of its interface, 0 when it is not known yet (the paths are right then).
func (d design) layout(node Node, pairs map[string]pki.Pair, mtu int) (layout, error) {
	l := layout{units: map[string]systemd.Unit{}, hosts: d.hosts(node)}
	if slices.Contains(d.voters, node.Name) {
		l.add(etcd.Member(etcdNode(node), d.authorities.Etcd.Trusted(), pairs[memberPair],
			etcd.Peers{Stage: d.peers, Authority: d.authorities.EtcdPeers.Trusted(), Pair: pairs[peerPair]}))
	}
	l.add(etcd.Forwarder(d.membersFor(node)))
	cluster, networkNode := d.kube(), d.networkNode(node, mtu)
	access := network.Access{Endpoint: etcd.LocalEndpoint, AuthorityFile: etcd.AuthorityFile, Authority: d.authorities.Etcd.Trusted(), Kubeconfig: cluster.Kubeconfig}
	if !d.cluster.Alone() {
		daemons, err := d.driver.Daemons(networkNode, pairs, access)
		if err != nil {
			return layout{}, err
		}
		l.add(daemons...)
		if d.cluster.podless(node) {
			l.add(cluster.Lease(kubeNode(node), pairs))
		}
	}
	switch node.Role {
	case Master:
		server, err := cluster.APIServer(kubeNode(node), etcdNode(node).ClientURL(), d.authorities.Etcd.Trusted(), pairs)
		if err != nil {
			return layout{}, err
		}
		controllers, err := cluster.Controllers(pairs, d.elect)
		if err != nil {
			return layout{}, err
		}
		networkControllers, err := d.driver.Controllers(networkNode, pairs, access)
		if err != nil {
			return layout{}, err
		}
		root, err := kube.RootConfig(cluster, pairs)
		if err != nil {
			return layout{}, err
		}
		l.others = append(l.others, root)
		l.add(server)
		l.add(controllers...)
		l.add(networkControllers...)
		if d.metrics {
			metrics, err := cluster.MetricsServer(kubeNode(node), pairs)
			if err != nil {
				return layout{}, err
			}
			l.add(metrics)
		}
		if err := d.programs(l, node, pairs); err != nil {
			return layout{}, err
		}
		if d.cluster.APIAddress.Address.IsValid() && d.shares {
			l.add(d.virtualAddress(node))
		}
	case Minion:
		l.add(cluster.MinionForwarder(d.apis(), pairs))
	case Gateway:
		l.add(systemd.Unit{Name: "haproxy", Packaged: true})
		if !d.cluster.Alone() {
			l.add(d.apiForwarder(node))
		}
		if d.binary != "" {
			l.add(d.gateway(node, pairs))
			if d.cluster.Virtual.Address.IsValid() && d.shares {
				l.add(d.virtualAddress(node))
			}
		}
	}
	if node.RunsPods() {
		cluster = d.kubeletOf(node)
		kubelet, err := cluster.Kubelet(kubeNode(node), pairs)
		if err != nil {
			return layout{}, err
		}
		runtime, err := cluster.RuntimeUnits()
		if err != nil {
			return layout{}, err
		}
		for _, unit := range runtime {
			l.runtime = append(l.runtime, unit.Name)
		}
		l.add(runtime...)
		l.add(kubelet...)
	}
	if err := d.storageUnits(l, node, pairs); err != nil {
		return layout{}, err
	}
	for name, unit := range l.units {
		l.units[name] = d.host.Unit(unit)
	}
	return l, nil
}

// programs adds the units of Burano's own programs of a master.
func (d design) programs(l layout, node Node, pairs map[string]pki.Pair) error {
	if d.binary == "" {
		return nil
	}
	publisher, err := d.publisher(node, pairs)
	if err != nil {
		return err
	}
	l.add(publisher)
	if d.cluster.Proxy.ThroughMasters() {
		l.add(d.kube().Way(kubeNode(node), pairs, remoteBinary, d.binary))
	}
	if d.signsIn() {
		l.add(kube.SignIn(d.kube(), pairs, remoteBinary, d.binary))
	}
	return nil
}

// hosts are the lines of a node's hosts file: the nodes, and the API server under its name. A master asks its own, or another one while it is locked; other
// nodes ask their forwarder.
func (d design) hosts(of Node) string {
	asked := of
	if of.Role == Master && d.cluster.idle(of) {
		asked = d.cluster.servingMasters()[0]
	}
	var lines []string
	for _, node := range d.cluster.Nodes {
		line := node.Address.String() + " " + node.Name
		if node.Role == Master && node.Name == asked.Name {
			line += " " + kube.APIServerName(d.cluster.Name)
		}
		lines = append(lines, line)
	}
	if line := d.kube().RegistryHost(); line != "" && of.RunsPods() {
		lines = append(lines, line)
	}
	if of.Role != Master {
		lines = append(lines, kube.ForwarderAddress+" "+kube.APIServerName(d.cluster.Name))
	}
	return strings.Join(lines, "\n")
}

// apis are the masters whose API servers the other nodes ask.
func (d design) apis() (masters []kube.Node) {
	for _, node := range append(d.cluster.servingMasters(), d.former...) {
		masters = append(masters, kubeNode(node))
	}
	return masters
}

// publisher is the unit that turns Services into routes.
func (d design) publisher(of Node, pairs map[string]pki.Pair) (systemd.Unit, error) {
	kubeconfig, err := d.kube().PublisherConfig(pairs)
	if err != nil {
		return systemd.Unit{}, err
	}
	cert, key := etcdFiles(publisherPair, pairs)
	command := append([]string{remoteBinary, "publish", "--kubeconfig", kube.PublisherKubeconfig}, etcdFlags(cert, key)...)
	if d.elect {
		command = append(command, "--elect", of.Name)
	}
	return systemd.Unit{
		Name:        "burano-publish",
		Description: "Burano: Services become routes of the gateways",
		Command:     command,
		Files:       []ssh.File{etcd.Authority(d.authorities.Etcd.Trusted()), cert, key, kubeconfig},
		Binary:      d.binary,
	}, nil
}

// apiForwarder is a gateway's forwarder to the API, which users reach, too, where there are several masters.
func (d design) apiForwarder(node Node) systemd.Unit {
	if !d.cluster.severalMasters() {
		return kube.Forwarder(d.apis(), nil)
	}
	open := []kube.Listen{{Address: node.Address}}
	if virtual := d.cluster.Virtual.Address; virtual.IsValid() {
		open = append(open, kube.Listen{Address: virtual, Elsewhere: true})
	}
	return kube.Forwarder(d.apis(), open)
}

// gateway is the unit that serves the routes through HAProxy.
func (d design) gateway(node Node, pairs map[string]pki.Pair) systemd.Unit {
	cert, key := etcdFiles(gatewayPair, pairs)
	internal := d.cluster.networksOfNodes()
	if d.cluster.Addressing.Four() {
		internal = slices.Concat([]netip.Prefix{d.cluster.Addressing.Pods, d.cluster.Addressing.Services}, internal)
	}
	if d.cluster.Addressing.Six() {
		internal = append(internal, d.cluster.Addressing.Pods6, d.cluster.Addressing.Services6, d.cluster.NodeNetwork6)
	}
	command := append([]string{remoteBinary, "gateway"}, etcdFlags(cert, key)...)
	command = append(command, "--name", node.Name, "--haproxy-config", "/etc/haproxy/haproxy.cfg", "--internal", network.Text(internal))
	if d.cluster.Addressing.Six() {
		command = append(command, "--ipv6")
	}
	if len(d.cluster.SSHFrom) > 0 {
		command = append(command, "--ssh-from", strings.Join(d.cluster.SSHFrom, ","))
	}
	if node.Address.IsValid() {
		command = append(command, "--metrics", netip.AddrPortFrom(node.Address, route.MetricsPort).String())
	}
	if d.cluster.severalMasters() {
		command = append(command, "--open", strconv.Itoa(kube.APIServerPort)) // its forwarder to the API is for users, too
	}
	return systemd.Unit{
		Name:        "burano-gateway",
		Description: "Burano: routes become listeners of HAProxy",
		Command:     command,
		Files:       []ssh.File{etcd.Authority(d.authorities.Etcd.Trusted()), cert, key},
		Binary:      d.binary,
	}
}

func etcdFiles(name string, pairs map[string]pki.Pair) (cert, key ssh.File) {
	return ssh.File{Path: keysFolder + name + ".crt", Content: pairs[name].Certificate},
		ssh.File{Path: keysFolder + name + ".key", Content: pairs[name].Key, Mode: 0o600}
}

func etcdFlags(cert, key ssh.File) []string {
	return []string{"--etcd", strings.TrimPrefix(etcd.LocalEndpoint, "https://"), "--etcd-ca", etcd.AuthorityFile, "--etcd-cert", cert.Path, "--etcd-key", key.Path}
}

// pairs are a node's certificates: its present ones, where they still fit.
func (d design) pairs(ctx context.Context, c *Cluster, node Node) (map[string]pki.Pair, error) {
	pairs, err := pki.Bundle(ctx, c.config.Vault, vaultNode+node.Name, d.orders(node), c.config.Issued())
	if err != nil {
		return nil, fmt.Errorf("certificates of %s: %w", node.Name, err)
	}
	return pairs, nil
}
