// Package desired reads a cluster of a model into one typed value, with all defaults and all mistakes at once. Tasks read the objects of a loaded model, and
// the keeper the objects of a stored one.
package desired

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/signin"
)

// Defaults of the cluster's class. A stored model may lack a property that was added to the class later.
const (
	defaultSessions       = 5000
	defaultScaleDownAfter = 600 // seconds
	defaultMaximum        = 1000
	defaultSnapshotHours  = 24
	defaultKept           = 7
	defaultRegistrySize   = "20Gi"
	everywhere            = "0.0.0.0/0"
)

// Cluster is a Kubernetes cluster of a model, or gateways without one.
type Cluster struct {
	ID, Name string
	// Alone is true for gateways without a Kubernetes cluster (io.burano.Gateways).
	Alone bool

	Masters           int // 0: as many as there are
	MastersMade       int // beside the first
	EtcdOnMasters     bool
	PodsOnMasters     bool
	UDP               bool // of users reaches the gateways
	Minions, Gateways Pool
	Groups            []Group
	Machines          []Machine
	// GatewayLimits are nil where the number of gateways does not follow their connections.
	GatewayLimits *GatewayLimits
	// SharesAddress is true if the gateways share an address, and Virtual has it as soon as it is known.
	SharesAddress bool
	Virtual       nodes.VirtualAddress
	// SharesAPI is true if the masters share an address, at which users reach the API, and APIAddress has it as soon as it is known.
	SharesAPI  bool
	APIAddress nodes.VirtualAddress
	// Public and Public6 are the ranges that reach the cluster from outside, as the model has them.
	Public, Public6 string

	Pods  PodWish
	Peers []Peer

	Surge               int
	Spread              bool // servers of a role are placed on different hosts
	AutoRepair          bool
	DNS, Metrics        bool
	Dashboard, CAdvisor bool // options of Murano's that install nothing any more

	Snapshots, ClaimBackups Schedule
	StorageClasses          []kube.StorageClass
	Issuers                 []signin.Issuer
	KeystoneSignIn          bool
	KeepVolumes             bool
	Registry                Registry

	Runtime    kube.Runtime
	Registries kube.Registries
	Proxy      kube.Proxy

	// Mistakes of the model, whatever the cloud and the nodes have.
	Mistakes []error
}

// Pool counts nodes of a role: running ones, and all in the model's list.
type Pool struct {
	Property, Counts string // of the list, and of the count
	Count, Listed    int
}

// Schedule is how often copies are taken, and how many of them stay. Every is 0 for never.
type Schedule struct {
	Every time.Duration
	Kept  int
}

// Read reads a cluster of a loaded model. Its mistakes are in the value.
func Read(object *muranopl.Object, alone bool) *Cluster {
	var wrong []error
	p, _ := propertiesOf(object, &wrong)
	c := read(p)
	c.ID, c.Alone = object.ID(), alone
	c.Mistakes = append(wrong, c.Mistakes...)
	return c
}

// ReadStored reads a cluster of a stored model. A value of another type than its property's is an error.
func ReadStored(id string, stored map[string]any) (*Cluster, error) {
	var wrong []error
	p, _ := propertiesOf(stored, &wrong)
	c := read(p)
	_, kubernetes := p.object("masterNode")
	c.ID, c.Alone = id, !kubernetes && len(p.list("gatewayNodes")) > 0
	if len(wrong) > 0 {
		return c, fmt.Errorf("read cluster %s of the stored model: %w", c.Name, errors.Join(wrong...))
	}
	return c, nil
}

func read(p properties) *Cluster {
	c := &Cluster{
		Name: p.text("name"), Masters: p.number("masterCount", 0), MastersMade: len(p.list("masterNodes")), EtcdOnMasters: p.text("etcdNodes") == "masters",
		PodsOnMasters: p.flag("podsOnMasters", false), UDP: p.flag("publishUdp", false),
		Minions:  Pool{"minionNodes", "nodeCount", p.number("nodeCount", 0), len(p.list("minionNodes"))},
		Gateways: Pool{"gatewayNodes", "gatewayCount", p.number("gatewayCount", 0), len(p.list("gatewayNodes"))},
		Surge:    p.number("surge", 1), Spread: p.flag("spreadServers", true), AutoRepair: p.flag("autoRepair", false),
		DNS: p.flag("enableKubeDns", false), Metrics: p.flag("enableMetrics", false), Dashboard: p.flag("enableDashboard", false),
		Snapshots:    Schedule{hours(p.number("snapshotEvery", defaultSnapshotHours)), p.number("snapshotsKept", defaultKept)},
		ClaimBackups: Schedule{hours(p.number("claimBackupEvery", 0)), p.number("claimBackupsKept", defaultKept)},
		KeepVolumes:  p.flag("keepVolumes", false), Public: p.text("publicCidr"), Public6: p.text("publicIpv6Cidr"),
		Pods: readPods(p), Peers: readPeers(p), StorageClasses: readStorageClasses(p), Issuers: readIssuers(p), KeystoneSignIn: p.flag("keystoneSignIn", false),
	}
	for _, minion := range p.objects("minionNodes") {
		c.CAdvisor = c.CAdvisor || minion.flag("exposeCAdvisor", false)
	}
	c.mistaken(c.Minions.tooFew(), c.Gateways.tooFew())
	c.readGroups(p)
	c.readGatewayLimits(p)
	c.readMachines(p)
	c.SharesAddress, c.Virtual = readShared(p, "virtualAddress")
	c.SharesAPI, c.APIAddress = readShared(p, "apiAddress")
	if _, err := netip.ParsePrefix(c.Public); err != nil {
		c.mistaken(fmt.Errorf("publicCidr is %q, which is no network: write it like %s", c.Public, everywhere))
	}
	containers, mistakes := readContainers(p)
	c.Runtime, c.Registries = containers.Runtime, containers.Registries
	c.mistaken(mistakes...)
	var err error
	c.Proxy, err = kube.ParseProxy(kube.ProxySettings{HTTP: p.text("httpProxy"), HTTPS: p.text("httpsProxy"), No: p.text("noProxy"), Masters: p.text("registriesThroughMasters")})
	c.mistaken(err)
	c.mistaken(kube.CheckStorageClasses(c.StorageClasses)...)
	c.mistaken(signin.Check(c.Issuers)...)
	c.readRegistry(p)
	return c
}

// Reaches6 is the range that reaches the cluster from outside by IPv6; "" for none. A model without this value that lets in all of IPv4 lets in all of IPv6.
func (c *Cluster) Reaches6() string {
	if c.Public6 != "" || c.Public != everywhere {
		return c.Public6
	}
	return "::/0"
}

// mistaken notes mistakes; nil is none.
func (c *Cluster) mistaken(mistakes ...error) {
	for _, err := range mistakes {
		if err != nil {
			c.Mistakes = append(c.Mistakes, err)
		}
	}
}

func hours(count int) time.Duration { return time.Duration(count) * time.Hour }

func (p Pool) tooFew() error {
	if p.Count <= p.Listed {
		return nil
	}
	return fmt.Errorf("%s is %d but %s lists only %d: list more, or ask for fewer", p.Counts, p.Count, p.Property, p.Listed)
}

// Containers is how the containers of a cluster, or of a standalone host, run, and where their images come from.
type Containers struct {
	Runtime    kube.Runtime
	Registries kube.Registries
}

// ReadContainers reads the properties of a standalone host that clusters have as well.
func ReadContainers(host *muranopl.Object) (Containers, error) {
	var wrong []error
	p, _ := propertiesOf(host, &wrong)
	read, mistakes := readContainers(p)
	return read, errors.Join(append(wrong, mistakes...)...)
}

func readContainers(p properties) (c Containers, mistakes []error) {
	var failed, unfit error
	c.Runtime, failed = kube.ParseRuntime(p.text("containerRuntime"))
	c.Registries, unfit = kube.ParseRegistries(kube.RegistrySettings{Registry: p.text("dockerRegistry"), User: p.text("dockerRegistryUser"), Password: p.text("dockerRegistryPassword"),
		Mirrors: p.text("dockerMirror"), GoogleKey: p.text("gcloudKey")})
	for _, err := range []error{failed, cmp.Or(unfit, c.Runtime.Check(c.Registries))} {
		if err != nil {
			mistakes = append(mistakes, err)
		}
	}
	return c, mistakes
}

// readShared reads an address that nodes share, which is not known before the stack is there.
func readShared(p properties, property string) (is bool, address nodes.VirtualAddress) {
	shared, is := p.object(property)
	if is {
		address.Address, _ = netip.ParseAddr(shared.text("virtualIp"))
		address.Access, _ = netip.ParseAddr(shared.text("floatingIpAddress"))
	}
	return is, address
}

func readStorageClasses(p properties) (classes []kube.StorageClass) {
	for _, entry := range p.objects("storageClasses") {
		classes = append(classes, kube.StorageClass{Name: entry.text("name"), Backend: kube.Storage(entry.text("backend")), Type: entry.text("type"),
			Default: entry.flag("default", false), Reclaim: cmp.Or(entry.text("reclaimPolicy"), "Delete"), FileSystem: entry.text("fsType"),
			ShareNetwork: entry.text("shareNetwork"), Zones: entry.texts("zones"), MountOptions: entry.texts("mountOptions")})
	}
	return classes
}

func readIssuers(p properties) (issuers []signin.Issuer) {
	for _, entry := range p.objects("issuers") {
		issuers = append(issuers, signin.Issuer{URL: entry.text("url"), Audiences: entry.texts("audiences"), Authority: entry.text("ca"), UsernameClaim: entry.text("usernameClaim"),
			UsernamePrefix: entry.text("usernamePrefix"), GroupsClaim: entry.text("groupsClaim"), GroupsPrefix: entry.text("groupsPrefix"),
			RequiredClaims: entry.pairs("requiredClaims")}.WithDefaults())
	}
	return issuers
}

// HasStorage reports whether a storage class has the back-end.
func (c *Cluster) HasStorage(backend kube.Storage) bool {
	for _, class := range c.StorageClasses {
		if class.Backend == backend {
			return true
		}
	}
	return false
}

// Peer is a router with which the nodes of a cluster exchange routes, as the model names it.
type Peer struct {
	Address string
	AS      uint32
}

func readPeers(p properties) (peers []Peer) {
	for _, entry := range p.objects("bgpPeers") {
		peers = append(peers, Peer{entry.text("address"), uint32(entry.number("as", 0))})
	}
	return peers
}

// Routers are the peers of a cluster with this pod network, and the mistakes among them.
func (c *Cluster) Routers(pods PodNetwork) (peers []network.Peer, mistakes []error) {
	if len(c.Peers) > 0 && pods.Encapsulation != network.Unwrapped {
		mistakes = append(mistakes, fmt.Errorf("bgpPeers of cluster %s are routers that learn where its pods are, and packets between its nodes are wrapped (podEncapsulation: %s): leave bgpPeers out, "+
			"or make a cluster with podEncapsulation: %s", c.Name, pods.Encapsulation, network.Unwrapped))
	}
	seen := map[netip.Addr]bool{}
	for _, one := range c.Peers {
		address, err := netip.ParseAddr(one.Address)
		switch {
		case err != nil || !address.Is4():
			mistakes = append(mistakes, fmt.Errorf("bgpPeers of cluster %s has the address %q: give the one of a router, of IPv4, such as 192.0.2.1", c.Name, one.Address))
			continue
		case pods.Pods.Contains(address) || pods.Services.Contains(address):
			mistakes = append(mistakes, fmt.Errorf("bgpPeers of cluster %s has the address %s, which is among those of its pods and Services: give the one of a router", c.Name, address))
		case seen[address]:
			mistakes = append(mistakes, fmt.Errorf("bgpPeers of cluster %s has the address %s twice", c.Name, address))
		}
		seen[address] = true
		peers = append(peers, network.Peer{Address: address, AS: one.AS})
	}
	return peers, mistakes
}
