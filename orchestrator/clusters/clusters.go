// Package clusters deploys the Kubernetes clusters of a model during one task: it knows their desired nodes, prepares and connects these, and replaces servers.
package clusters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// Settings are the server's settings for clusters.
type Settings struct {
	known.Reach
	// Binary is the burano program that is copied onto masters and gateways.
	Binary string
	// SSHFrom are the ranges from which servers of clusters let SSH in; nil for everywhere.
	SSHFrom []string
	// ServerPatience is how long a change of servers may take until all of them run.
	ServerPatience time.Duration
	// SSHPatience is how long a server that runs may take until its sshd answers.
	SSHPatience time.Duration
	// StepPatience is how long one step of a node may take, and DrainPatience how long the pods of a node that is removed.
	StepPatience, DrainPatience time.Duration
	// Issued is nodes.Config.Issued.
	Issued func() time.Time
	// TokenGrace is nodes.Config.TokenGrace.
	TokenGrace time.Duration
	// ShareContainer shares the container of a project for snapshots with the server (openstack.Service).
	ShareContainer func(ctx context.Context, project *openstack.Project, name string) (address string, err error)
}

// Runtime is the part of a task that clusters use.
type Runtime interface {
	EnvironmentID() string
	TaskID() string
	Submitter() string
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	Project(ctx context.Context) (*openstack.Project, error)
	Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	Planned(object *muranopl.Object, steps map[string][]string)
	AtEnd(do func(context.Context) error)
	Fence() uint64
	Alive() error
}

// Clusters are the Kubernetes clusters of the model during one task.
type Clusters struct {
	Runtime      Runtime
	Objects      task.Objects
	Reports      task.Reports
	Once         *task.Once
	servers      servers
	Templates    *stacks.Templates
	own          *stacks.OwnStack
	Successions  successions
	NodeSettings nodeSettings
	Groups       minionGroups
	Masters      furtherMasters
	images       workloads.Images
	Settings     Settings

	naming sync.Mutex
	called serverNames // nil before they were asked for

	preparing sync.Mutex
	prepared  []string // the servers that were prepared last

	stored loadedFacts

	skewing sync.Mutex
	skew    map[string]skewCheck // by the ids of clusters

	mutex   sync.Mutex
	network netip.Prefix              // of the nodes; not valid before they were prepared
	further map[string][]netip.Prefix // further networks of nodes, by the ids of their clusters
	known   map[string]*cluster       // by object id
	// outdated are servers that differ from the model, with the differences, by the ids of their instances.
	outdated map[string][]*openstack.ServerChange
	// lose is true if nodes may go with which volumes are lost.
	lose bool
	// awaited are the ports of gateways that must answer before a deployment ends, by the ids of their clusters, which are the awaitedObjects.
	awaited        map[string]map[uint16]bool
	awaitedObjects []*muranopl.Object
	// last run after the servers of a deleted environment are gone.
	last []func(context.Context) error
}

// New returns the clusters of a task's model.
func New(runtime task.Runtime, objects task.Objects, reports task.Reports, once *task.Once, own *stacks.OwnStacks, images workloads.Images, settings Settings) *Clusters {
	c := &Clusters{Runtime: runtime, own: own.First, Objects: objects, Reports: reports, Once: once, servers: servers{runtime, reports}, Templates: own.Templates, Successions: successions{runtime},
		NodeSettings: nodeSettings{runtime}, Groups: minionGroups{runtime}, Masters: furtherMasters{runtime}, images: images, Settings: settings}
	own.First.Nodes = c
	return c
}

// cluster is a Kubernetes cluster of the model during one task.
type cluster struct {
	object *muranopl.Object
	live   *nodes.Cluster // knows addresses; nil before the servers are there
	stop   func()         // ends the server of its volumes
}

// ActiveNode is a node of a cluster that is to run.
type ActiveNode struct {
	Object *muranopl.Object
	Role   nodes.Role
}

// ActiveNodes lists the nodes that must run, masters first: of all but the first master as many as the counts ask for.
func ActiveNodes(cluster *muranopl.Object) []ActiveNode {
	var active []ActiveNode
	if !task.OnlyGateways(cluster) {
		active = append(active, ActiveNode{cluster.Object("masterNode"), nodes.Master})
	}
	for _, list := range Lists(cluster) {
		for _, node := range list.Active() {
			active = append(active, ActiveNode{node, list.Role})
		}
	}
	return active
}

// Connections connect to clusters through their nodes.
type Connections struct{ *Clusters }

// ConnectionsOf returns the connections of a task's clusters.
func ConnectionsOf(c *Clusters) Connections { return Connections{c} }

// Connect returns the cluster with the present servers of its nodes.
func (c Connections) Connect(ctx context.Context, object *muranopl.Object, list []nodes.Node) (*nodes.Cluster, error) {
	return c.ConnectPatient(ctx, object, list, 0)
}

// DrainPatience is how long the pods of a node have to leave it, without a setting.
func (c Connections) DrainPatience() time.Duration {
	return cmp.Or(c.Clusters.Settings.DrainPatience, nodes.DefaultDrainPatience)
}

// ConnectPatient is Connect with the time that pods have to leave a node; 0 for the setting of the server.
func (c Connections) ConnectPatient(ctx context.Context, object *muranopl.Object, list []nodes.Node, patience time.Duration) (*nodes.Cluster, error) {
	config, err := c.config(ctx, object, list)
	if err != nil {
		return nil, err
	}
	config.DrainPatience = cmp.Or(patience, config.DrainPatience)
	config.NodeNetwork, config.Further = c.Clusters.nodeNetworks(object)
	answering, stop := context.WithCancel(context.WithoutCancel(ctx))
	var live *nodes.Cluster
	config.Storing = sync.OnceFunc(func() { go c.Clusters.answer(answering, object, live, list) })
	if live, err = nodes.NewCluster(config); err != nil {
		stop()
		return nil, err
	}
	c.Clusters.mutex.Lock()
	former := c.Clusters.known[object.ID()]
	if c.Clusters.known == nil {
		c.Clusters.known = map[string]*cluster{}
	}
	c.Clusters.known[object.ID()] = &cluster{object: object, live: live, stop: stop}
	c.Clusters.mutex.Unlock()
	if former != nil {
		c.end(former)
	}
	return live, nil
}

func (c Connections) end(known *cluster) {
	known.stop()
	if err := known.live.Close(); err != nil {
		c.Reports.Logger.Debug("closing the connections of a cluster", "cluster", known.object.ID(), "error", err)
	}
}

// Live returns the cluster if this task has brought it up, and else an error.
func (c *Clusters) Live(object *muranopl.Object) (*nodes.Cluster, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if known := c.known[object.ID()]; known != nil {
		return known.live, nil
	}
	return nil, fmt.Errorf("%s is not up", object)
}

// Kubernetes returns access to the API of a cluster that this task has brought up, and else an error.
func (c *Clusters) Kubernetes(ctx context.Context, object *muranopl.Object) (*rest.Config, error) {
	live, err := c.Live(object)
	if err != nil {
		return nil, err
	}
	return live.Kubernetes(ctx)
}

// Remaining is the cluster of a leaving object (its property kubernetesCluster), brought up; nil where the cluster goes as well.
func (c *Clusters) Remaining(ctx context.Context, call muranopl.Call) (*muranopl.Object, error) {
	return c.StillThere(ctx, call.Interpreter, call.Object.Object("kubernetesCluster"))
}

// StillThere is a cluster, brought up, if the model has it; else nil.
func (c *Clusters) StillThere(ctx context.Context, interpreter *muranopl.Interpreter, was *muranopl.Object) (*muranopl.Object, error) {
	if was == nil {
		return nil, nil
	}
	cluster := c.Objects.Find(was.ID())
	if cluster == nil {
		return nil, nil
	}
	if _, err := interpreter.Invoke(ctx, cluster, task.MethodDeploy, nil); err != nil {
		return nil, err
	}
	return cluster, nil
}

// EnsureOpen makes live return the cluster of the last deployment, if this task has not brought it up: this sends no request to the cloud or a node. A cluster
// that never was up, or that a former version deployed, stays unknown.
func (c *Clusters) EnsureOpen(ctx context.Context, object *muranopl.Object) error {
	return c.Once.Do("stand "+object.ID(), func() error {
		if _, err := c.Live(object); err == nil {
			return nil
		}
		known, err := c.Facts(ctx, object)
		if err != nil || known == nil || !known.Network.IsValid() {
			return err
		}
		c.UseFacts(object, known)
		_, err = ConnectionsOf(c).Connect(ctx, object, known.Nodes)
		return err
	})
}

// setNetwork sets the range of the nodes' addresses.
func (c *Clusters) setNetwork(network netip.Prefix) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.network = network
}

// UseFacts sets the ranges of the nodes' addresses as a cluster's last deployment had them.
func (c *Clusters) UseFacts(object *muranopl.Object, known *known.Facts) {
	c.setNetwork(known.Network)
	c.setFurther(object, known.Further)
}

// setFurther sets the further networks of a cluster's nodes.
func (c *Clusters) setFurther(object *muranopl.Object, further []netip.Prefix) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.further == nil {
		c.further = map[string][]netip.Prefix{}
	}
	c.further[object.ID()] = further
}

// nodeNetworks are where the nodes of a cluster are: the environment's network, and others.
func (c *Clusters) nodeNetworks(object *muranopl.Object) (own netip.Prefix, further []netip.Prefix) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.network, c.further[object.ID()]
}

// AfterServers defers work until the servers of a deleted environment are gone.
func (c *Clusters) AfterServers(do func(context.Context) error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last = append(c.last, do)
}

// ServersGone does the work that was deferred until the servers of a deleted environment are gone.
func (c *Clusters) ServersGone(ctx context.Context) error {
	c.mutex.Lock()
	list := c.last
	c.mutex.Unlock()
	var failures []error
	for _, do := range list {
		failures = append(failures, do(ctx))
	}
	return errors.Join(failures...)
}

// Close ends the connections to nodes.
func (c *Clusters) Close() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, known := range c.known {
		ConnectionsOf(c).end(known)
	}
}

func (c Connections) config(ctx context.Context, object *muranopl.Object, list []nodes.Node) (nodes.Config, error) {
	wanted := task.Desired(object) // check has refused one with mistakes
	pods, err := c.Clusters.PodNetwork(ctx, object)
	if err != nil {
		return nodes.Config{}, err
	}
	peers, _ := wanted.Routers(pods)
	registry, err := imageChecksOf(c.Clusters).registryOf(ctx, object)
	if err != nil {
		return nodes.Config{}, err
	}
	return nodes.Config{
		Name:           wanted.Name,
		Nodes:          list,
		Virtual:        wanted.Virtual,
		APIAddress:     wanted.APIAddress,
		SSHFrom:        c.Clusters.Settings.SSHFrom,
		Network:        pods.Kind,
		Addressing:     pods.Addressing,
		NodeNetwork6:   pods.Nodes6,
		PodMTU:         int(pods.MTU),
		Encapsulation:  pods.Encapsulation,
		Peers:          peers,
		Datastore:      pods.Datastore,
		EtcdOnMasters:  wanted.EtcdOnMasters,
		Vault:          known.Vault{Runtime: c.Runtime, Cluster: object.ID()},
		Image:          c.images.Load,
		Binary:         c.Clusters.Settings.Binary,
		Patience:       c.Clusters.Settings.SSHPatience,
		StepPatience:   c.Clusters.Settings.StepPatience,
		DrainPatience:  c.Clusters.Settings.DrainPatience,
		Connected:      c.Clusters.Settings.Connected,
		Issued:         c.Clusters.Settings.Issued,
		TokenGrace:     c.Clusters.Settings.TokenGrace,
		DNS:            wanted.DNS,
		Metrics:        wanted.Metrics,
		Runtime:        wanted.Runtime,
		Registries:     wanted.Registries,
		Proxy:          wanted.Proxy,
		StorageClasses: wanted.StorageClasses,
		Issuers:        wanted.Issuers,
		KeystoneSignIn: wanted.KeystoneSignIn,
		Registry:       registry,
		LoseVolumes:    VolumeLossesOf(c.Clusters).MayLose(),
		Fence:          c.Runtime.Fence(),
		Alive:          c.Runtime.Alive,
		Report: func(ctx context.Context, node, text string) {
			if node != "" {
				text = node + ": " + text
			}
			c.Reports.Inform(ctx, object, "%s", text)
		},
		Step: func(ctx context.Context, node, name string, run func(context.Context) error) error {
			return c.Runtime.Step(ctx, object, StepName(node, name), run)
		},
		Planned: func(steps []plan.Step) { c.Runtime.Planned(object, waitingSteps(steps)) },
		Server:  func(ctx context.Context, node string) nodes.ServerState { return c.servers.state(ctx, list, node) },
		Console: func(ctx context.Context, node string) string { return c.servers.console(ctx, list, node) },
		Logger:  c.Reports.Logger,
	}, nil
}

// StepName is the name of a node's step among the steps of its cluster.
func StepName(node, name string) string {
	if node == "" {
		return name
	}
	return node + ": " + name
}

// waitingSteps are the names of a plan's steps, each with the names of its dependencies.
func waitingSteps(steps []plan.Step) map[string][]string {
	names, waiting := map[string]string{}, map[string][]string{}
	for _, step := range steps {
		names[step.ID()] = StepName(step.Node, step.Name)
	}
	for _, step := range steps {
		all := []string{}
		for _, id := range step.After {
			all = append(all, names[id])
		}
		for _, soft := range step.Soft {
			if name := names[soft.ID]; !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		waiting[names[step.ID()]] = all
	}
	return waiting
}

// loadedFacts is the data of clusters that a task has loaded, by the ids of their objects; nil for a cluster that never was up.
type loadedFacts struct {
	mutex sync.Mutex
	of    map[string]*known.Facts
}

// Facts returns the stored data of a cluster that was up before; nil when it never was. A task loads it once, and may change its copy.
func (c *Clusters) Facts(ctx context.Context, object *muranopl.Object) (*known.Facts, error) {
	c.stored.mutex.Lock()
	defer c.stored.mutex.Unlock()
	facts, loaded := c.stored.of[object.ID()]
	if !loaded {
		text, found, err := known.Vault{Runtime: c.Runtime, Cluster: object.ID()}.Load(ctx, known.FactsName)
		if err != nil {
			return nil, err
		}
		if found {
			facts = &known.Facts{}
			if err := json.Unmarshal(text, facts); err != nil {
				return nil, fmt.Errorf("read the facts of cluster %s: %w", object.ID(), err)
			}
		}
		c.stored.keep(object, facts)
	}
	return facts.Clone(), nil
}

// keep notes the data of a cluster. The caller holds the mutex.
func (l *loadedFacts) keep(object *muranopl.Object, facts *known.Facts) {
	if l.of == nil {
		l.of = map[string]*known.Facts{}
	}
	l.of[object.ID()] = facts
}

// Shrink takes out of all clusters the nodes that run in them and are not wanted any more, once per task. It must be done before their
// servers go.
func (c *Clusters) Shrink(ctx context.Context) error {
	return task.Each(c.Objects.Clusters(), func(object *muranopl.Object) error { return shrinkingOf(c).shrinkOne(ctx, object) })
}

// shrinking takes nodes out of clusters.
type shrinking struct{ *Clusters }

func shrinkingOf(c *Clusters) shrinking { return shrinking{c} }

func (c shrinking) shrinkOne(ctx context.Context, object *muranopl.Object) error {
	return c.Once.Do("shrink "+object.ID(), func() error {
		known, err := c.Clusters.Facts(ctx, object)
		if err != nil || known == nil {
			return err
		}
		leaving, staying, err := c.leavers(ctx, object, known)
		if err != nil || len(leaving) == 0 {
			return err
		}
		if err := c.masterStays(ctx, object, known.Nodes, leaving, staying); err != nil {
			return err
		}
		gone, err := c.servers.revive(ctx, object, staying)
		if err != nil {
			return err
		}
		staying = slices.DeleteFunc(staying, func(node nodes.Node) bool { return slices.Contains(gone, node.Name) })
		if !task.OnlyGateways(object) && !slices.ContainsFunc(staying, func(node nodes.Node) bool { return node.Role == nodes.Minion }) {
			return fmt.Errorf("%s cannot be removed: of the nodes that are to stay Nova does not know %s any more, so that nobody would take the pods. "+
				"Deploy the cluster with the nodes that it had, for new servers in the place of those that are gone, and make it smaller then",
				strings.Join(leaving, ", "), strings.Join(gone, ", "))
		}
		leaving = append(leaving, gone...)
		return c.remove(ctx, object, known.Nodes, leaving...)
	})
}

// leavers are the running nodes of a cluster that are not wanted any more; staying are the others.
func (c shrinking) leavers(ctx context.Context, object *muranopl.Object, known *known.Facts) (leaving []string, staying []nodes.Node, err error) {
	list, err := c.Clusters.Members(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	names, err := NodeNamesOf(c.Clusters).Names(ctx)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[string]bool{}
	for _, one := range list {
		wanted[one.Server.Name()] = true
		for former := one.Server.Number - 1; one.absent && former > 0; former-- { // whose place it takes leaves with it
			wanted[names.Server(one.Instance(), one.known, former).Name()] = true
		}
	}
	external, err := MachinesOf(c.Clusters).externalNodes(ctx, object)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range known.Nodes {
		if wanted[node.Name] && node.Machine == nil || sameMachine(external, node) {
			staying = append(staying, node)
		} else {
			leaving = append(leaving, node.Name)
		}
	}
	return leaving, staying, nil
}

// remove takes nodes out of a cluster.
func (c shrinking) remove(ctx context.Context, object *muranopl.Object, all []nodes.Node, leaving ...string) error {
	config, err := ConnectionsOf(c.Clusters).config(ctx, object, all)
	if err != nil {
		return err
	}
	config.NodeNetwork, config.Further = c.Clusters.nodeNetworks(object)
	former, err := nodes.NewCluster(config)
	if err != nil {
		return err
	}
	defer former.Close()
	defer StatesOf(c.Clusters).SaveBefore(ctx, object, former, strings.Join(leaving, ", ")+" left")()
	c.Reports.Inform(ctx, object, "Removing %s", strings.Join(leaving, ", "))
	if err := former.Remove(ctx, leaving...); err != nil {
		return err
	}
	return c.Clusters.keepFacts(ctx, object, slices.DeleteFunc(slices.Clone(all), func(node nodes.Node) bool { return slices.Contains(leaving, node.Name) }))
}

// apiURL is that of the API, for users; "" where there is none.
func apiURL(list []nodes.Node, api, virtual nodes.VirtualAddress) string {
	if len(list) == 0 || nodes.Alone(list) {
		return ""
	}
	address := api.Reach()
	if !address.IsValid() {
		address = apiAddress(list, virtual)
	}
	return "https://" + netip.AddrPortFrom(address, kube.APIServerPort).String()
}

// apiAddress is where users reach an API whose masters share no address: at the master, or where there are several, at the address that the gateways share, or at a gateway,
// which passes requests on to ready masters.
func apiAddress(list []nodes.Node, virtual nodes.VirtualAddress) netip.Addr {
	address, several := list[0].Access, false
	for _, node := range list[1:] {
		switch {
		case node.Role == nodes.Master && node.Leaving && !address.IsValid():
			address = node.Access // it still has the floating address
		case node.Role == nodes.Master && !node.Leaving:
			several = true
			if virtual.Address.IsValid() {
				return virtual.Reach()
			}
		case node.Role == nodes.Gateway && !node.Leaving && !node.Settings.Locked && several && node.Access.IsValid():
			return node.Access
		}
	}
	if !address.IsValid() {
		address = list[0].Address
	}
	return address
}

// masterStays makes sure that of the masters that are to stay one is there when others leave.
func (c shrinking) masterStays(ctx context.Context, object *muranopl.Object, all []nodes.Node, leaving []string, staying []nodes.Node) error {
	var left, gone []string
	for _, node := range all {
		if node.Role == nodes.Master && !node.Leaving && slices.Contains(leaving, node.Name) {
			left = append(left, node.Name)
		}
	}
	if len(left) == 0 {
		return nil
	}
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	for _, node := range staying {
		if node.Role != nodes.Master {
			continue
		}
		state, err := project.Server(ctx, node.Server)
		if err != nil {
			return err
		}
		if state.Status == openstack.Gone {
			gone = append(gone, node.Name)
		}
	}
	if len(gone) > 0 {
		return fault.New(fault.Conflict, "masters %s cannot leave cluster %s: Nova does not know %s any more, which is to stay. Deploy the cluster with the masters that it had, "+
			"for a new server in its place, and have fewer then", strings.Join(left, ", "), object.Text("name"), strings.Join(gone, ", "))
	}
	return nil
}

// keepFacts stores the cluster's data for a kubeconfig.
func (c *Clusters) keepFacts(ctx context.Context, object *muranopl.Object, list []nodes.Node) error {
	own, further := c.nodeNetworks(object)
	pods, err := c.PodNetwork(ctx, object)
	if err != nil {
		return err
	}
	registry, err := imageChecksOf(c).registryName(ctx, object)
	if err != nil {
		return err
	}
	wanted := task.Desired(object)
	return c.StoreFacts(ctx, object, known.Facts{Name: wanted.Name, API: apiURL(list, wanted.APIAddress, wanted.Virtual), Nodes: list, Network: own, Further: further,
		Addressing: pods.Addressing, Datastore: pods.Datastore, Encapsulation: pods.Encapsulation,
		SnapshotContainer: StatesOf(c).snapshotContainer(ctx, object), Groups: groupFacts(wanted), Gateways: wanted.GatewayLimits, Virtual: wanted.Virtual,
		APIAddress: wanted.APIAddress, Registry: registry})
}

// StoreFacts stores the data of a cluster for later tasks, the keeper and the API.
func (c *Clusters) StoreFacts(ctx context.Context, object *muranopl.Object, facts known.Facts) error {
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	c.stored.mutex.Lock()
	defer c.stored.mutex.Unlock()
	if err := (known.Vault{Runtime: c.Runtime, Cluster: object.ID()}).Store(ctx, known.FactsName, text); err != nil {
		return err
	}
	c.stored.keep(object, facts.Clone())
	return nil
}

func groupFacts(cluster *desired.Cluster) (list []known.GroupFact) {
	for _, one := range cluster.Groups {
		list = append(list, known.GroupFact{Name: one.Name, Minimum: one.Minimum, Maximum: one.Maximum, After: one.After})
	}
	return list
}
