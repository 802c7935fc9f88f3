// Package nodes turns servers into a Kubernetes cluster and keeps it so.
//
// A [Cluster] is given its nodes, a vault for its secrets, and a receiver of reports. Deploy takes each node
// through its steps as soon as what the step needs is there; what is done already is recognised on the node itself, so
// that Deploy can be interrupted anywhere, repeated at will, and called again with more nodes.
package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/signin"
	"github.com/burano/burano/nodes/ssh"
)

// Role is the purpose of a node.
type Role string

// The roles.
const (
	Master  Role = "master"  // API server, controllers, scheduler
	Minion  Role = "minion"  // pods
	Gateway Role = "gateway" // HAProxy, which lets the world in
)

// Network is the program that connects the pods.
type Network string

// The networks.
const (
	Calico  Network = "calico"
	Flannel Network = "flannel"
)

// Node is a server with a role.
type Node struct {
	Name    string // of the server, of the Kubernetes node, and in etcd
	Role    Role
	Address netip.Addr // fixed: by which nodes reach each other
	// Six is its fixed address of IPv6; not valid where the cluster has none. Control planes are reached by IPv4 only.
	Six netip.Addr `json:",omitzero"`
	// Access is where Burano connects first: the floating address. A node without one is reached at Address, directly or
	// through a node that has one, whatever answers.
	Access netip.Addr
	// Server is the cloud's id of the server that the node is now. A node whose server is another than before is taken
	// in as a new one; while the id stays, so must the host key. Empty when not known.
	Server string
	// Launched says when the cloud set that server up last: it changes when the server is rebuilt, and its disk with it. Empty when
	// not known.
	Launched string `json:",omitempty"`
	// Zone is the availability zone of the cloud in which the server is. Empty when not known.
	Zone string `json:",omitempty"`
	// Leaving says that another node has taken its place, and that it goes next (Remove): Deploy leaves it alone, and counts on it for
	// nothing but the ways through it. Of a master, its API server serves until then.
	Leaving bool `json:",omitempty"`
	// Pods is true for a master that runs pods, too: it has a kubelet, and a taint that few pods tolerate.
	Pods bool `json:",omitempty"`
	// Inherits is the floating address that it gets from the node whose place it takes: its certificates name it already.
	Inherits netip.Addr `json:",omitzero"`
	// Elastic is true if it comes and goes with the cluster's load: it is no member of etcd.
	Elastic bool `json:",omitempty"`
	// Machine says how to log in where the server is not the cloud's: its Address is then where it is reached by Burano and by the other nodes. Such a node
	// is a minion, no member of etcd, and its machine stays when it leaves. Nil for the others.
	Machine *access.Machine `json:",omitempty"`
	// Settings are the users' settings of the Kubernetes node. Deploy leaves a locked node alone that does not answer.
	Settings kube.Settings `json:",omitzero"`
}

// ServerState is the cloud's state of a node's server.
type ServerState struct {
	Note string // for the report of a failure: "its server is SHUTOFF"; empty when there is nothing to say
	Down bool   // it does not run, and will not until somebody starts it: nobody waits for it then
	Gone bool   // the cloud does not know it any more
}

// RunsPods is true if a node has a kubelet: a minion, or a master that runs pods, too.
func (n Node) RunsPods() bool { return n.Role == Minion || n.Role == Master && n.Pods }

// reach is where a person or a program outside connects to.
func (n Node) reach() netip.Addr {
	if n.Access.IsValid() {
		return n.Access
	}
	return n.Address
}

// Vault holds secrets that a cluster must not lose or disclose: durable when Store returns, and sealed.
type Vault = access.Vault

// Config is the configuration of a cluster.
type Config struct {
	Name        string       // of the cluster; becomes a part of the API server's name
	Nodes       []Node       // masters first: one, two, three or five; or gateways alone
	NodeNetwork netip.Prefix // where the nodes' fixed addresses are
	// NodeNetwork6 is where their fixed addresses of IPv6 are, in a cluster whose Addressing has both.
	NodeNetwork6 netip.Prefix
	// Further are networks in which nodes stand beside it, with routers between all of them.
	Further []netip.Prefix
	// Virtual is an address that the gateways share; the zero value for none.
	Virtual VirtualAddress
	// APIAddress is an address that the masters share, at which users reach the API; the zero value for none.
	APIAddress VirtualAddress
	SSHFrom    []string // ranges from which gateways let SSH in (CIDRs), beside the cluster's own networks; nil for everywhere
	Network    Network  // of the pods; Calico when empty. A cluster keeps the one it was made with
	// Addressing is of pods and Services; network.DefaultAddressing when zero. A cluster never changes it.
	Addressing network.Addressing
	// PodMTU is that of pods; 0 for what their node's interface carries, less what the network takes.
	PodMTU int
	// Encapsulation is of packets between pods of two nodes; network.Always when empty. A cluster keeps it.
	Encapsulation network.Encapsulation
	// Datastore is Calico's datastore; etcd when empty. A cluster never changes it.
	Datastore network.Datastore
	// Peers are routers with which the nodes exchange routes to pods, where packets are not wrapped.
	Peers []network.Peer
	// EtcdOnMasters has no other nodes be members of etcd where there are several masters, but one beside two.
	EtcdOnMasters bool
	Vault         Vault
	// Report gets events, for a person: "kubelet started". node may be empty. May be nil.
	Report func(ctx context.Context, node, text string)
	// Step runs a step of Deploy; it may refuse it, or note its beginning and end. May be nil.
	Step func(ctx context.Context, node, name string, run func(context.Context) error) error
	// Planned is called with the steps that are about to be run, and their dependencies. May be nil.
	Planned func(steps []plan.Step)
	// Image returns a file with a container image that nodes are to have: an archive as `docker save` makes it. May be nil where there are none.
	Image   func(ctx context.Context, image ContainerImage) (path string, err error)
	Binary  string // path of the burano program to copy to master and gateways; without it their units are left out
	DNS     bool   // run CoreDNS
	Metrics bool   // run metrics-server on masters whose image has it
	// Runtime runs the containers of minions that begin; those that are there keep theirs. Containerd when empty.
	Runtime kube.Runtime
	// Registries are the minions' settings for registries of container images.
	Registries kube.Registries
	// Issuers are those of OpenID Connect whose users sign in at the API server.
	Issuers []signin.Issuer
	// KeystoneSignIn lets users sign in there with tokens of Keystone. It needs Binary.
	KeystoneSignIn bool
	// StorageClasses are the kinds of volumes that pods can have.
	StorageClasses []kube.StorageClass
	// Storing is told, by Deploy, that the controllers of volumes of Cinder run, and wait for somebody who answers them (VolumeLine). May be nil.
	Storing func()
	// Registry is the one that the cluster has of its own; nil for none.
	Registry *kube.Registry
	// LoseVolumes has nodes be removed also where volumes are lost with them.
	LoseVolumes bool
	// Proxy is the minions' way out of a closed network.
	Proxy kube.Proxy
	// Patience is how long a node may take until its sshd answers; ssh.DefaultPatience when 0.
	Patience time.Duration
	// Connected is called for each SSH connection to a node, with 1 when it begins and with -1 when it ends. May be nil.
	Connected func(change int)
	// StepPatience is how long one step of a node may take; DefaultStepPatience when 0.
	StepPatience time.Duration
	// DrainPatience is how long the pods of a node that is removed may take to go, their grace periods and disruption budgets
	// included; DefaultDrainPatience when 0.
	DrainPatience time.Duration
	// TokenGrace is how long the programs of pods may take to read a renewed token; DefaultTokenGrace when 0.
	TokenGrace time.Duration
	// Server returns the cloud's state of a node's server. May be nil.
	Server func(ctx context.Context, node string) ServerState
	// Console returns, for the report that a node cannot be reached, the last lines of its server's console. May be nil.
	Console func(ctx context.Context, node string) string
	Logger  *slog.Logger
	// Issued is when the certificates of nodes are said to be issued; time.Now when nil. It is for tests of their renewal.
	Issued func() time.Time
	// Fence is the number of whoever works on the nodes: nodes refuse one that is lower than the last they saw (ssh.ErrFenced). 0 is
	// no number.
	Fence uint64
	// Alive returns an error when this process may no longer act on the nodes; nothing is sent to them then. May be nil.
	Alive func() error
}

// Cluster is a Kubernetes cluster on servers, or gateways alone. Its methods may be called at the same time.
type Cluster struct {
	*servers
	*store
	*kubernetesAPI
	*gateways
	*podImages

	deploying sync.Mutex // one Deploy at a time
	shrinking bool       // members of nodes that are not in config are still there
}

// servers are the nodes as servers, to which Burano connects over SSH.
type servers struct {
	config Config
	driver network.Driver
	now    func() time.Time

	leading struct { // the master through which the cluster is worked with, "" for the first one
		sync.Mutex
		name string
	}

	connections *access.Connections

	vaultLock sync.Mutex // makes "load, or make and store" one thing
}

// store is the cluster's etcd.
type store struct{ *servers }

// kubernetesAPI is the cluster's Kubernetes, through the API servers of its masters.
type kubernetesAPI struct{ *servers }

// gateways serve publications.
type gateways struct {
	*store
	publishing sync.Mutex // one Publish at a time
}

// podImages are container images that Burano copies to minions.
type podImages struct {
	*servers
	imaging sync.Mutex    // one HaveImages at a time
	copying chan struct{} // has an entry for each node that is getting an archive
}

func clusterOf(config Config, driver network.Driver) *Cluster {
	servers := &servers{config: config, driver: driver, now: time.Now, connections: access.New(config.accessConfig())}
	store := &store{servers}
	return &Cluster{servers: servers, store: store, kubernetesAPI: &kubernetesAPI{servers}, gateways: &gateways{store: store},
		podImages: &podImages{servers: servers, copying: make(chan struct{}, copiesAtOnce)}}
}

var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// NewCluster checks the config. It connects to nothing yet; nodes may lack addresses until Deploy.
func NewCluster(config Config) (*Cluster, error) {
	if config.Vault == nil {
		return nil, errors.New("a cluster needs a vault for its keys")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Report == nil {
		config.Report = func(context.Context, string, string) {}
	}
	config.Patience = cmp.Or(config.Patience, ssh.DefaultPatience)
	config.StepPatience = cmp.Or(config.StepPatience, DefaultStepPatience)
	config.DrainPatience = cmp.Or(config.DrainPatience, DefaultDrainPatience)
	config.TokenGrace = cmp.Or(config.TokenGrace, DefaultTokenGrace)
	if config.Server == nil {
		config.Server = func(context.Context, string) ServerState { return ServerState{} }
	}
	if config.Issued == nil {
		config.Issued = time.Now
	}
	if config.Console == nil {
		config.Console = func(context.Context, string) string { return "" }
	}
	if config.Step == nil {
		config.Step = func(ctx context.Context, _, _ string, run func(context.Context) error) error { return run(ctx) }
	}
	seen := map[string]bool{}
	masters := 0
	for _, node := range config.Nodes {
		if !nodeName.MatchString(node.Name) {
			return nil, fmt.Errorf("node name %q: a node is called as its server and as in Kubernetes, so only small letters, digits and hyphens, at most 63, will do", node.Name)
		}
		if seen[node.Name] {
			return nil, fmt.Errorf("two nodes are called %s", node.Name)
		}
		seen[node.Name] = true
		switch node.Role {
		case Master:
			if node.Machine != nil {
				return nil, fmt.Errorf("node %s is no server of the cloud, and no master can be", node.Name)
			}
			if !node.Leaving {
				masters++
			}
		case Minion, Gateway:
			if node.Role == Gateway && node.Machine != nil {
				return nil, fmt.Errorf("node %s is no server of the cloud, and no gateway can be", node.Name)
			}
		default:
			return nil, fmt.Errorf("node %s has the role %q; roles are master, minion and gateway", node.Name, node.Role)
		}
	}
	if config.Virtual.Address.IsValid() && len(config.gateways()) == 0 {
		return nil, fmt.Errorf("the gateways are to share the address %s, and there is none that stays: have at least one, or no such address", config.Virtual.Address)
	}
	if masters%2 == 0 && masters != 2 && !config.Alone() {
		return nil, fmt.Errorf("a cluster has one, two, three or five masters, this one has %d", masters)
	}
	if config.Addressing == (network.Addressing{}) {
		config.Addressing = network.DefaultAddressing()
	}
	driver, err := config.driver()
	if err != nil {
		return nil, err
	}
	return clusterOf(config, driver), nil
}

func (c Config) driver() (network.Driver, error) {
	switch c.Network {
	case Calico, "":
		return network.Calico{EtcdUser: etcd.Calico, Pods: c.Addressing.Pods, Pods6: c.Addressing.Pods6, MTU: c.PodMTU, Encapsulation: c.Encapsulation, Peers: c.Peers,
			Datastore: c.Datastore}, nil
	case Flannel:
		if c.Datastore == network.InKubernetes {
			return nil, errors.New("the network of pods cannot have its store in Kubernetes: Flannel has it in etcd")
		}
		return network.Flannel{EtcdUser: etcd.Flannel, Pods: c.Addressing.Pods, MTU: c.PodMTU}, nil
	}
	return nil, fmt.Errorf("there is no network %q for pods; networks are %s and %s", c.Network, Calico, Flannel)
}

// registers says that nodes of all roles have Node objects, because the network of pods keeps its data about a node there.
func (c Config) registers() bool { return c.Datastore == network.InKubernetes }

// podless says that a node has a Node object and no kubelet.
func (c Config) podless(node Node) bool { return c.registers() && !node.RunsPods() }

// master is the one through which the cluster is worked with.
func (c *servers) master() Node { return c.masters()[0] }

// masters are those that stay, the one first through which the cluster is worked with.
func (c *servers) masters() []Node {
	c.leading.Lock()
	defer c.leading.Unlock()
	list := c.config.masters()
	serving := c.config.servingMasters()
	list = append(serving, slices.DeleteFunc(list, func(node Node) bool { // locked ones last
		return slices.ContainsFunc(serving, func(other Node) bool { return other.Name == node.Name })
	})...)
	if i := slices.IndexFunc(list, func(node Node) bool { return node.Name == c.leading.name }); i > 0 {
		list = append([]Node{list[i]}, slices.Delete(list, i, i+1)...)
	}
	return list
}

// lead has the cluster be worked with through another master.
func (c *servers) lead(master Node) {
	c.leading.Lock()
	defer c.leading.Unlock()
	c.leading.name = master.Name
}

// SameMaster says whether a master of the cluster runs on the server that was this master's in a list of its nodes.
func (c *servers) SameMaster(list []Node) bool {
	return slices.ContainsFunc(c.masters(), func(master Node) bool {
		return slices.ContainsFunc(list, func(n Node) bool {
			return n.Role == Master && n.Name == master.Name && n.Server == master.Server && n.Launched == master.Launched
		})
	})
}

// masters are those that stay.
func (c Config) masters() (list []Node) {
	for _, node := range c.Nodes {
		if node.Role == Master && !node.Leaving {
			list = append(list, node)
		}
	}
	return list
}

// servingMasters are the masters that are not locked. A cluster never has none: where all are locked, they are all.
func (c Config) servingMasters() []Node {
	if open := only(c.masters(), func(node Node) bool { return !node.Settings.Locked }); len(open) > 0 {
		return open
	}
	return c.masters()
}

func (c Config) severalMasters() bool { return len(c.masters()) > 1 }

// formerMasters are those whose place others take.
func (c Config) formerMasters() (list []Node) {
	for _, node := range c.Nodes {
		if node.Role == Master && node.Leaving {
			list = append(list, node)
		}
	}
	return list
}

// staying are the nodes that do not leave.
func (c Config) staying() []Node {
	return slices.DeleteFunc(slices.Clone(c.Nodes), func(n Node) bool { return n.Leaving })
}

func (c *servers) node(name string) (Node, error) {
	i := slices.IndexFunc(c.config.Nodes, func(n Node) bool { return n.Name == name })
	if i < 0 {
		return Node{}, fmt.Errorf("cluster %s has no node %s", c.config.Name, name)
	}
	return c.config.Nodes[i], nil
}

// Run runs a bash script on a node and returns its standard output. A script that fails gives an *ssh.ExitError with its last lines.
func (c *servers) Run(ctx context.Context, node, script string) (string, error) {
	return c.script(ctx, node, ssh.Script{Name: "command", Body: script})
}

func (c *servers) script(ctx context.Context, name string, script ssh.Script) (string, error) {
	node, err := c.node(name)
	if err != nil {
		return "", err
	}
	client, err := c.connect(ctx, node)
	if err != nil {
		return "", err
	}
	return client.Run(ctx, script)
}

// Stream runs a command on a node, whose output is taken as it comes (ssh.Client.Stream).
func (c *servers) Stream(ctx context.Context, name string, job ssh.Job) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	client, err := c.connect(ctx, node)
	if err != nil {
		return err
	}
	return client.Stream(ctx, job)
}

// without are those of these nodes that answer and fail a test (an expression of bash) for what the image that they were made from may lack.
func (c *servers) without(ctx context.Context, all []Node, what, test string) (lacking []string) {
	for _, node := range all {
		out, err := c.script(ctx, node.Name, ssh.Script{Name: "look for " + what, Body: test + " && echo there || echo none"})
		if err != nil {
			c.config.Logger.InfoContext(ctx, "a node does not say whether its image has what it is to have", "node", node.Name, "what", what, "error", err)
			continue
		}
		if strings.TrimSpace(out) == "none" {
			lacking = append(lacking, node.Name)
		}
	}
	return lacking
}

// Kubernetes returns the access of Burano itself to the API server, dialled through SSH to a master whose API server is ready.
// Its certificate is of the group burano:admins and good for a day; ask again rather than keep it.
func (c *kubernetesAPI) Kubernetes(ctx context.Context) (*rest.Config, error) {
	return c.kubernetes(ctx, ownUser, kube.AdminsGroup)
}

// ownUser is Burano itself as Kubernetes knows it.
const ownUser = "burano:server"

// bootstrap returns an access that works before any rights are given. Its certificate is never written anywhere.
func (c *kubernetesAPI) bootstrap(ctx context.Context) (*rest.Config, error) {
	return c.kubernetes(ctx, "burano:bootstrap", "system:masters")
}

// bootstrapOn is bootstrap with the API server of one master.
func (c *kubernetesAPI) bootstrapOn(ctx context.Context, master Node) (*rest.Config, error) {
	config, err := c.bootstrap(ctx)
	if err == nil {
		config.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dialAPI(ctx, master) }
	}
	return config, err
}

func (c *kubernetesAPI) kubernetes(ctx context.Context, user, group string) (*rest.Config, error) {
	if c.config.Alone() {
		return nil, errAlone
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return nil, err
	}
	return c.kubernetesBy(authorities, user, group)
}

func (c *kubernetesAPI) kubernetesBy(authorities *pki.Cluster, user, group string) (*rest.Config, error) {
	pair, err := authorities.Kubernetes.Issue(pki.Request{CommonName: user, Organization: []string{group}, Usage: pki.Client, Lifetime: userLifetime}, c.now())
	if err != nil {
		return nil, err
	}
	master := c.master()
	if !master.Address.IsValid() {
		return nil, fmt.Errorf("master %s has no address yet", master.Name)
	}
	return kube.Bounded(&rest.Config{
		Host: kube.APIServerURL(c.config.Name),
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: kube.APIServerAlias,
			CAData:     authorities.Kubernetes.Trusted(), CertData: pair.Certificate, KeyData: pair.Key,
		},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return c.dialReadyAPI(ctx, authorities.Kubernetes.Trusted())
		},
		UserAgent: "burano", QPS: 100, Burst: 200,
	}), nil
}

const userLifetime = 24 * time.Hour

// Person is who is to have access to a cluster's API server.
type Person struct {
	User      string   // as Kubernetes knows them
	Groups    []string // which have the rights
	Namespace string   // that their kubeconfig begins in; "" for the default one
	// Lifetime of the certificate: at most, and by default, 24 hours.
	Lifetime time.Duration
	// Command fetches a certificate each time, in place of one in the kubeconfig (pki.User).
	Command []string
	Hint    string
}

// Admin is who has all rights, in the group burano:admins.
func Admin(lifetime time.Duration) Person {
	return Person{User: "burano:admin", Groups: []string{kube.AdminsGroup}, Lifetime: lifetime}
}

// Credential issues a certificate to a person, and tells when it ends.
func (c *kubernetesAPI) Credential(ctx context.Context, person Person) (pair pki.Pair, ends time.Time, err error) {
	if person.Lifetime <= 0 || person.Lifetime > userLifetime {
		person.Lifetime = userLifetime
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return pair, ends, err
	}
	now := c.now()
	pair, err = authorities.Kubernetes.Issue(pki.Request{CommonName: person.User, Organization: person.Groups, Usage: pki.Client, Lifetime: person.Lifetime}, now)
	return pair, now.Add(person.Lifetime), err
}

// Kubeconfig writes the access of a person. server is the URL they will use, or empty for the master's access address. Where there are several masters, each
// gateway has a context of its own, called as it is, for when another one is away.
func (c *kubernetesAPI) Kubeconfig(ctx context.Context, server string, person Person) ([]byte, error) {
	if c.config.Alone() {
		return nil, errAlone
	}
	user := pki.User{Name: person.User, Command: person.Command, Hint: person.Hint}
	if len(person.Command) == 0 {
		var err error
		if user.Pair, _, err = c.Credential(ctx, person); err != nil {
			return nil, err
		}
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return nil, err
	}
	if server == "" {
		address := c.config.APIAddress.Reach()
		if master := c.master(); !address.IsValid() {
			if address = master.reach(); !address.IsValid() {
				return nil, fmt.Errorf("master %s has no address yet: deploy the cluster first", master.Name)
			}
		}
		server = "https://" + net.JoinHostPort(address.String(), strconv.Itoa(kube.APIServerPort))
	}
	var ways []pki.Way
	for _, node := range c.config.Nodes {
		if c.config.severalMasters() && node.Role == Gateway && !node.Leaving && !node.Settings.Locked && node.reach().IsValid() {
			ways = append(ways, pki.Way{Name: node.Name, Server: "https://" + net.JoinHostPort(node.reach().String(), strconv.Itoa(kube.APIServerPort))})
		}
	}
	return pki.UserKubeconfig(c.config.Name, server, kube.APIServerName(c.config.Name), person.Namespace, authorities.Kubernetes.Trusted(), user, ways...)
}

func (c *servers) authorities(ctx context.Context) (*pki.Cluster, error) {
	c.vaultLock.Lock()
	defer c.vaultLock.Unlock()
	return pki.Open(ctx, c.config.Vault, c.now())
}

// Close ends the connections to the nodes.
func (c *servers) Close() error { return c.connections.Close() }
