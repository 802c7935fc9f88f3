package nodes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/pki"
)

// Status is a cluster at a moment. Failed questions are missing, and among Problems.
type Status struct {
	Nodes    []NodeStatus
	Members  []MemberStatus
	Routes   []route.Route // by gateway port
	Problems []string      // for a person; none when all is well
	// Etcd and Kubernetes are why these did not answer; nil when they did.
	Etcd, Kubernetes error
}

// NodeStatus is a node as it is found.
type NodeStatus struct {
	Node
	Reached bool   // over SSH; of one that was spared (Cluster.Status) its kubelet's word is taken for it
	Ready   *bool  // takes pods; nil where that is not known, and on nodes without a kubelet. On those that have a Node object all the same, whether Kubernetes takes them for well
	Version string // of the kubelet, "" where it is not known
	Problem error  // why it is not reached, or not ready
	Disk    *Disk  // nil where it is not known
	// Pressure are the resources that run short by its kubelet's report; it ends pods for that.
	Pressure []string
	// Kubernetes are all its labels and taints in Kubernetes, from any source. Nil if they are not known.
	Kubernetes *kube.Settings
}

// MemberStatus is a member of etcd as it is found.
type MemberStatus struct {
	Name    string // of its node; "" for one that has never run and is of no node
	Learner bool
	Answers bool
	Space   etcd.Space // zero where it does not answer
}

// kubeletPatience is how long Kubernetes may take to say how kubelets are, before nodes that it may spare are asked themselves.
const kubeletPatience = 2 * time.Second

// Status asks nodes, etcd and Kubernetes at the same time how they are. It changes nothing, and takes as long as the context and
// Config.Patience let it. Where spare is nil, as a person asks, it names the units that do not run. Minions that spare names are asked over SSH only where Kubernetes does not say that they are ready, and short
// of nothing; of the others nothing is known of the disk.
func (c *Cluster) Status(ctx context.Context, spare func(node string) bool) Status {
	a := &asking{cluster: c, spared: map[string]bool{}, units: spare == nil}
	for _, node := range c.config.Nodes {
		a.status.Nodes = append(a.status.Nodes, NodeStatus{Node: node})
	}
	var all sync.WaitGroup
	var spared []*NodeStatus
	reach := func(node *NodeStatus) {
		all.Go(func() {
			node.Problem = a.reach(ctx, node)
			a.noteNode(node, node.Problem)
		})
	}
	for i := range a.status.Nodes {
		if node := &a.status.Nodes[i]; spare != nil && node.Role == Minion && spare(node.Name) {
			spared = append(spared, node)
			a.spared[node.Name] = true
		} else {
			reach(node)
		}
	}
	if c.config.Alone() {
		all.Go(func() { a.note("gateways", panics.Run(func() error { return a.stores(ctx) })) })
		all.Wait()
		slices.Sort(a.status.Problems)
		return a.status
	}
	authorities, unknown := c.authorities(ctx)
	all.Go(func() {
		a.status.Etcd = panics.Run(func() error {
			if unknown != nil {
				return unknown
			}
			return a.etcd(ctx, authorities)
		})
		a.note("etcd", a.status.Etcd)
	})
	var kubelets []corev1.Node
	var answered bool
	heard := make(chan struct{})
	all.Go(func() {
		defer close(heard)
		err := panics.Run(func() (err error) {
			if unknown != nil {
				return unknown
			}
			kubelets, err = a.kubelets(ctx, authorities)
			return err
		})
		answered, a.status.Kubernetes = err == nil, err
		a.note("Kubernetes", err)
	})
	all.Go(func() {
		var said []corev1.Node
		select {
		case <-heard:
			said = kubelets
		case <-time.After(kubeletPatience):
		}
		for _, node := range spared {
			if node.Reached = well(said, node.Name); !node.Reached {
				reach(node)
			}
		}
	})
	all.Wait()
	if answered {
		a.ready(kubelets)
	}
	slices.Sort(a.status.Problems)
	return a.status
}

// asking is one call of Status.
type asking struct {
	cluster *Cluster
	spared  map[string]bool // by name: their members of etcd are asked through a master
	units   bool            // nodes are asked which units do not run
	mu      sync.Mutex
	status  Status
}

func (a *asking) note(what string, err error) {
	if err == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status.Problems = append(a.status.Problems, fmt.Sprintf("%s: %v", what, err))
}

// noteNode notes the problems of a node, unless it is locked: its user knows them.
func (a *asking) noteNode(node *NodeStatus, err error) {
	if !node.Settings.Locked {
		a.note("node "+node.Name, err)
	}
}

// well tells whether a node's kubelet says that it takes pods and is short of nothing.
func well(kubelets []corev1.Node, name string) bool {
	at := slices.IndexFunc(kubelets, func(found corev1.Node) bool { return found.Name == name })
	if at < 0 {
		return false
	}
	ready, _ := isReady(kubelets[at])
	return ready && len(pressure(kubelets[at])) == 0
}

func (a *asking) reach(ctx context.Context, node *NodeStatus) (err error) {
	defer panics.Catch(&err)
	client, err := a.cluster.connect(ctx, node.Node)
	if node.Reached = err == nil; !node.Reached {
		return err
	}
	if node.Disk, err = diskOf(ctx, client); err != nil { // it is reached all the same
		a.cluster.config.Logger.DebugContext(ctx, "the disk of a node cannot be looked at", "node", node.Name, "error", err)
	}
	if a.units {
		return stoppedUnits(ctx, client)
	}
	return nil
}

// etcd asks who is a member, whether they answer, and for the routes.
func (a *asking) etcd(ctx context.Context, authorities *pki.Cluster) error {
	masters, err := a.cluster.voters(ctx)
	if err != nil {
		return err
	}
	client, err := a.cluster.etcdBy(ctx, authorities, etcd.Root, masters, a.dialMember)
	if err != nil {
		return err
	}
	defer client.Close()
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return err
	}
	a.status.Members = make([]MemberStatus, len(members))
	var all sync.WaitGroup
	for i, member := range members {
		found := &a.status.Members[i]
		*found = MemberStatus{Name: member.Name, Learner: member.IsLearner}
		for _, node := range a.cluster.config.Nodes {
			if slices.Contains(member.PeerURLs, etcdNode(node).PeerURL()) {
				found.Name = node.Name
			}
		}
		all.Go(func() {
			space, err := etcd.SpaceOf(ctx, client, member)
			found.Answers, found.Space = err == nil, space
			switch {
			case !found.Answers:
				a.note("etcd member "+found.Name, errors.New("it does not answer"))
			case space.Full:
				a.note("etcd member "+found.Name, errors.New("its store is full, so that nothing can be written"))
			}
		})
	}
	all.Wait()
	slices.SortFunc(a.status.Members, func(x, y MemberStatus) int { return strings.Compare(x.Name, y.Name) })
	routes, broken, err := routesIn(ctx, client)
	for _, err := range broken {
		a.note("a route", err)
	}
	a.status.Routes = routes
	return err
}

// memberPatience is how long a master may take to connect to another node's member, before that node does it itself.
const memberPatience = time.Second

// dialMember connects to a member of etcd at its node, to that of a spared one from a master, as other nodes do, where that works.
func (a *asking) dialMember(ctx context.Context, node Node, address string) (net.Conn, error) {
	for _, master := range a.cluster.masters() {
		if connection := a.cluster.connections.Made(master.server().Key); a.spared[node.Name] && connection != nil {
			limited, cancel := context.WithTimeout(ctx, memberPatience)
			conn, err := connection.DialContext(limited, "tcp", address)
			if cancel(); err == nil {
				return conn, nil
			}
		}
	}
	return a.cluster.dialFrom(ctx, node, address)
}

// Routes are the ports that the gateways publish, as etcd has them now, by gateway port. Those that cannot be read are left out.
func (c *store) Routes(ctx context.Context) ([]route.Route, error) {
	authorities, err := c.authorities(ctx)
	if err != nil {
		return nil, err
	}
	client, err := c.etcdAs(ctx, authorities, etcd.Root)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	routes, _, err := routesIn(ctx, client)
	return routes, err
}

// routesIn reads all routes, by gateway port, and returns the problems of unreadable ones.
func routesIn(ctx context.Context, client *clientv3.Client) (routes []route.Route, broken []error, err error) {
	kept, err := client.Get(ctx, route.RoutesPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, nil, fmt.Errorf("read the routes: %w", err)
	}
	for _, pair := range kept.Kvs {
		one, err := route.Decode(string(pair.Key), pair.Value)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		routes = append(routes, one)
	}
	slices.SortFunc(routes, func(x, y route.Route) int { return int(x.GatewayPort) - int(y.GatewayPort) })
	return routes, broken, nil
}

func (a *asking) kubelets(ctx context.Context, authorities *pki.Cluster) ([]corev1.Node, error) {
	config, err := a.cluster.kubernetesBy(authorities, ownUser, kube.AdminsGroup)
	if err != nil {
		return nil, err
	}
	client, err := typedcorev1.NewForConfig(kube.Protobuf(config))
	if err != nil {
		return nil, err
	}
	list, err := client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// ready notes which nodes take pods. Minions, and masters that run pods, have a kubelet; of others the node itself tells Kubernetes that it lives, where it has an object there.
func (a *asking) ready(kubelets []corev1.Node) {
	for i := range a.status.Nodes {
		node := &a.status.Nodes[i]
		podless := a.cluster.config.podless(node.Node)
		if !node.RunsPods() && !podless {
			continue
		}
		ready, why := false, "its kubelet has not registered it"
		if podless {
			why = "Kubernetes has no Node object of it, so that other nodes know no way to it and it none to pods: deploy the cluster"
		}
		for _, found := range kubelets {
			if found.Name == node.Name {
				node.Version = found.Status.NodeInfo.KubeletVersion
				ready, why = isReady(found)
				if !podless { // nobody sets anything of it
					node.Pressure = pressure(found)
					node.Kubernetes = kube.SettingsOf(found)
				}
			}
		}
		for _, one := range node.Pressure {
			a.noteNode(node, errors.New(one))
		}
		if node.Ready = &ready; !ready {
			problem := errors.New(why)
			if node.Problem == nil {
				node.Problem = problem
			}
			a.noteNode(node, problem)
		}
	}
}

// pressure are the resources that a node runs short of, by its kubelet.
func pressure(node corev1.Node) (all []string) {
	for _, condition := range node.Status.Conditions {
		short := slices.Contains([]corev1.NodeConditionType{corev1.NodeDiskPressure, corev1.NodeMemoryPressure, corev1.NodePIDPressure}, condition.Type)
		if short && condition.Status == corev1.ConditionTrue {
			all = append(all, fmt.Sprintf("it takes no pods and ends some, because of %s: %s", condition.Type, condition.Message))
		}
	}
	return all
}

func isReady(node corev1.Node) (bool, string) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, "it is not Ready: " + condition.Message
		}
	}
	return false, "its kubelet has not reported yet"
}
