package nodes

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

// Names of the steps. They are stable: reports, records and tests know them.
const (
	stepConnect            = "connect"
	stepFiles              = "files"
	stepBinary             = "burano program"
	stepEtcdData           = "etcd data"
	stepEtcdMember         = "etcd member"
	stepEtcdUsers          = "etcd users"
	stepEtcdLearners       = "etcd learners"
	stepEtcdJoin           = "etcd join"
	stepEtcdVoters         = "etcd voters"
	stepForwarder          = "etcd forwarder"
	stepEtcdRetire         = "etcd leave"
	stepAPIForwarder       = "api forwarder"
	stepAPIServer          = "api server"
	stepAPIServes          = "api server serves"
	stepAPIReady           = "api server ready"
	stepIssuers            = "issuers"
	stepSignIn             = "sign-in"
	stepFormerControllers  = "former controllers"
	stepForgetDead         = "forget dead nodes"
	stepControllers        = "controllers"
	stepAccess             = "access rights"
	stepGatewayAPI         = "gateway api"
	stepNetwork            = "network"
	stepNetworkDefinitions = "network definitions"
	stepRegister           = "register"
	stepLease              = "node lease"
	stepNetworkControllers = "network controllers"
	stepConfigureNetwork   = "network settings"
	stepRuntime            = "container runtime"
	stepFormerNode         = "former node"
	stepSettings           = "labels and taints"
	stepPodsEnd            = "pods end"
	stepUncordon           = "uncordon"
	stepKubelet            = "kubelet"
	stepNodeReady          = "node ready"
	stepDNS                = "cluster dns"
	stepPublisher          = "publisher"
	stepWay                = "way to registries"
	stepMetrics            = "metrics"
	stepStorage            = "storage"
	stepStorageNode        = "volumes of pods"
	stepGateway            = "gateway"
	stepGatewayAddresses   = "gateway addresses"
	stepVirtualPeers       = "virtual address peers"
	stepVirtualAddress     = "virtual address"
	stepVirtualHeld        = "virtual address held"
	stepVirtualLeave       = "leave virtual address"
	stepAPIPeers           = "api address peers"
	stepAPIAddress         = "api address"
	stepAPIHeld            = "api address held"
	stepAPILeave           = "leave api address"
	stepServiceAccount     = "service account"
	stepServices           = "services"
)

// DefaultStepPatience ends a step that hangs. The longest honest one is an API server on a slow disk.
const DefaultStepPatience = 4 * time.Minute

const vaultEtcd = "etcd" // etcdRecord as JSON

// etcdRecord is the data about etcd that must be known before any member answers.
type etcdRecord struct {
	Voters       []string `json:"voters"`            // the nodes that must vote
	Members      []string `json:"members,omitempty"` // the voters at the end of the last deployment
	Bootstrapped bool     `json:"bootstrapped"`      // the first member ran: its data must never be begun anew
	// Peers is the stage that all members were at at the end of the last deployment.
	Peers etcd.Stage `json:"peers,omitempty"`
	// Elects is true if the cluster has, or has had, several masters. From then on their controllers elect a leader, so that two never do the same work,
	// whichever of them is stopped or started.
	Elects bool `json:"elects,omitempty"`
	// Restoring is set until a restore has put its snapshot in place: before that, the nodes may have data of either time.
	Restoring *restoring `json:"restoring,omitempty"`
}

// restoring is a restore that has begun.
type restoring struct {
	Snapshot string `json:"snapshot"`
}

//go:embed scripts/services.sh
var servicesScript string

// deployment is one run of Deploy.
type deployment struct {
	cluster *Cluster
	design  design
	record  etcdRecord
	again   bool        // there was one before, at least the beginning of one
	voters  []etcd.Node // set by the step "etcd voters"

	images []ContainerImage // that minions have to have for pods

	registry *registryRecord // of the cluster's own; nil where it never had one

	lead     Node // the master that the others join
	etcdLost bool // by the step "etcd data": the master's data are gone
	// former are members on nodes that leave and can be reached: the store is theirs, too.
	former []Node
	dead   []Node // nodes that leave and do not answer
	// podsEnd are masters that ran pods, and do so no more.
	podsEnd []Node
	// podsEver is true if any master has run pods, or is to run pods.
	podsEver bool
	signIn   signInChange
	away     []Node // locked nodes that do not answer: the user who locked them knows

	mu        sync.Mutex
	installed map[string]installed
	sketched  map[sketch][]string // the possible paths on nodes, which are the same for all nodes with the same sketch
	etcd      etcdClient
	apis      apis
}

// Deploy makes the nodes a cluster, in parallel as far as they do not need each other. It may be called again at any time: it recognises finished work,
// and restarts nothing that runs as it should.
func (c *Cluster) Deploy(ctx context.Context) error {
	c.deploying.Lock()
	defer c.deploying.Unlock()
	if c.config.Alone() {
		return c.deployAlone(ctx)
	}
	return c.deploy(ctx)
}

func (c *Cluster) deploy(ctx context.Context) error {
	for {
		further, err := c.deployStage(ctx)
		if err != nil || !further {
			return err
		}
	}
}

// deployStage deploys the cluster. If a former version has made it, this moves the members a stage further; further is true if there is one more stage.
func (c *Cluster) deployStage(ctx context.Context) (further bool, err error) {
	d, err := c.newDeployment(ctx)
	if err != nil {
		return false, err
	}
	defer d.etcd.close()
	defer d.apis.close()
	if err := d.record.Restoring.ended(c.config.Name); err != nil {
		return false, err
	}
	steps := d.plan()
	started := time.Now()
	records, err := c.run(ctx, steps)
	c.config.Logger.Info("cluster deployed", "cluster", c.config.Name, "took", time.Since(started).Round(time.Millisecond), "failed", err != nil, "criticalPath", describePath(plan.CriticalPath(records)))
	if err != nil {
		return false, fmt.Errorf("deploy cluster %s: %w", c.config.Name, failures(records, err))
	}
	if d.record.Peers == d.design.peers {
		return false, nil
	}
	d.record.Peers = d.design.peers
	c.config.Report(ctx, "", fmt.Sprintf("the etcd members get an authority of their own: %s", d.record.Peers))
	return d.design.peers != d.design.peers.Next(), d.saveRecord(ctx)
}

// ended refuses a deployment of a cluster while its restore has not ended.
func (r *restoring) ended(cluster string) error {
	if r == nil {
		return nil
	}
	return fmt.Errorf("deploy cluster %s: its etcd was about to be restored from snapshot %s, and that has not ended: run the action restore with this snapshot again", cluster, r.Snapshot)
}

// Extent is how far SetUp takes a node.
type Extent string

// The extents: a forwarder to etcd and, on voters, the member; the network of pods; all steps of the node.
const (
	ToEtcd    Extent = "etcd"
	ToNetwork Extent = "network"
	ToNode    Extent = "node"
)

// covers reports whether an extent has a step of the node that is set up.
func (e Extent) covers(step string) bool {
	switch e {
	case ToEtcd:
		return slices.Contains([]string{stepEtcdJoin, stepForwarder}, step)
	case ToNetwork:
		return slices.Contains([]string{stepEtcdJoin, stepNetwork}, step)
	}
	return true
}

// part is the part of the plan that takes a node so far. needed has the steps that must succeed; the others are of further voters and masters.
func (e Extent) part(d *deployment, node Node) (part *plan.Plan, needed map[string]bool) {
	ofLead := map[Role][]string{Minion: {stepRegistry}, Gateway: {stepGatewayAddresses, stepVirtualHeld}, Master: {stepAPIHeld}} // which need a node of the role
	wanted := func(step plan.Step) bool {
		if step.Node != node.Name {
			return e == ToNode && step.Node == d.lead.Name && slices.Contains(ofLead[node.Role], step.Name)
		}
		return e.covers(step.Name) && (node.Name != d.lead.Name || !slices.Contains([]string{stepRegistry, stepVirtualHeld, stepAPIHeld, stepServices}, step.Name))
	}
	// The lead makes lists of these.
	further := map[Role][]string{Master: {stepFiles, stepAPIServes, stepAPIPeers, stepAPIAddress}, Gateway: {stepVirtualPeers, stepVirtualAddress}}
	whole := d.plan()
	needed = map[string]bool{}
	for _, step := range whole.Only(wanted).All() {
		needed[step.ID()] = true
	}
	return whole.Only(func(step plan.Step) bool {
		return wanted(step) || step.Name == stepEtcdJoin || e == ToNode && slices.Contains(further[node.Role], step.Name)
	}), needed
}

// SetUp runs the steps of a deployment that one node needs to come so far, with all steps on other nodes that these need. All voters of etcd join with it,
// so that their number is even for no longer than in Deploy; a voter that cannot join is reported, and the node does not wait for it. SetUp may be called
// again at any time, like Deploy, which does the rest.
func (c *Cluster) SetUp(ctx context.Context, name string, extent Extent) error {
	if c.config.Alone() {
		return errAlone
	}
	node, err := c.node(name)
	if err != nil {
		return err
	}
	c.deploying.Lock()
	defer c.deploying.Unlock()
	d, err := c.newDeployment(ctx)
	if err != nil {
		return err
	}
	defer d.etcd.close()
	defer d.apis.close()
	if err := d.record.Restoring.ended(c.config.Name); err != nil {
		return err
	}
	d.design.peers = d.record.Peers // all members have to be at one stage
	part, needed := extent.part(d, node)
	if len(needed) == 0 {
		return fmt.Errorf("set up %s of cluster %s: it is locked and does not answer: unlock it first", name, c.config.Name)
	}
	records, err := c.run(ctx, part)
	if err == nil {
		return nil
	}
	if ctx.Err() == nil && !slices.ContainsFunc(records, func(record plan.Record) bool { return needed[record.ID()] && record.Outcome != plan.Done }) {
		c.config.Report(ctx, name, fmt.Sprintf("it is set up; other nodes are not: %v", err))
		return nil
	}
	return fmt.Errorf("set up %s of cluster %s: %w", name, c.config.Name, failures(records, err))
}

func describePath(records []plan.Record) string {
	parts := make([]string, 0, len(records))
	for _, record := range records {
		parts = append(parts, fmt.Sprintf("%s %s", record.ID(), record.Took().Round(time.Millisecond)))
	}
	return strings.Join(parts, " → ")
}

func (c *Cluster) newDeployment(ctx context.Context) (*deployment, error) {
	staying := c.config.staying()
	for _, node := range staying {
		if !node.Address.IsValid() {
			return nil, fmt.Errorf("node %s has no address yet: its server must exist before the cluster can be deployed", node.Name)
		}
	}
	authorities, err := c.authorities(ctx)
	if err != nil {
		return nil, err
	}
	d := &deployment{cluster: c, installed: map[string]installed{}}
	if d.record, err = c.loadRecord(ctx); err != nil {
		return nil, err
	}
	d.again = d.record.Bootstrapped
	if !d.again {
		d.record.Peers = etcd.TrustPeers
	}
	voters := c.config.desiredVoters(d.record.Voters)
	masters := c.config.masters()
	if len(masters) == 2 && len(voters) < 3 {
		return nil, fmt.Errorf("%s and %s are the masters of cluster %s, and no third node can vote in etcd with them, so that the loss of one master would stop the cluster: add a minion or a gateway, or have 1, 3 or 5 masters",
			masters[0].Name, masters[1].Name, c.config.Name)
	}
	if elects := len(masters) > 1 || d.record.Elects; elects != d.record.Elects || !slices.Equal(voters, d.record.Voters) {
		d.record.Voters, d.record.Elects = voters, elects
		if err := d.saveRecord(ctx); err != nil {
			return nil, err
		}
	}
	d.design = design{cluster: c.config, driver: c.driver, authorities: authorities, voters: voters, elect: d.record.Elects, runtime: cmp.Or(c.config.Runtime, kube.Containerd)}
	if err := (storageSteps{d}).chooseStorage(ctx); err != nil {
		return nil, err
	}
	if err := (registrySteps{d}).chooseRegistry(ctx); err != nil {
		return nil, err
	}
	images, err := loadImages(ctx, c.config.Vault)
	if err != nil {
		return nil, err
	}
	d.images = images.all()
	if d.podsEnd, d.podsEver, err = (masterKubelets{c.servers}).choose(ctx); err != nil {
		return nil, err
	}
	etcdSteps{d}.chooseLead(ctx)
	d.lookAtLeaving(ctx)
	d.lookAtLocked(ctx)
	d.design.peers = d.record.Peers
	if len(d.former)+len(d.away) == 0 && !c.shrinking { // a member that is not deployed stays where it is
		d.design.peers = d.record.Peers.Next()
	}
	if c.config.Binary != "" {
		if d.design.binary, err = digestOf(c.config.Binary); err != nil {
			return nil, err
		}
	}
	return d, signInSteps{d}.chooseSignIn(ctx)
}

func (c *servers) loadRecord(ctx context.Context) (record etcdRecord, err error) {
	text, found, err := c.config.Vault.Load(ctx, vaultEtcd)
	if err != nil {
		return record, fmt.Errorf("load what is known about etcd: %w", err)
	}
	if found {
		if err := json.Unmarshal(text, &record); err != nil {
			return record, fmt.Errorf("read what is known about etcd: %w", err)
		}
	}
	return record, nil
}

// Forget makes the next deployment of a cluster begin with an empty store, because a user had the cluster destroyed. Its authorities and keys stay, so
// that its snapshots can be restored. If the master still has data, the deployment uses them.
func Forget(ctx context.Context, vault Vault) error {
	if _, found, err := vault.Load(ctx, vaultEtcd); err != nil || !found {
		return err
	}
	if err := vault.Store(ctx, vaultEtcd, []byte("{}")); err != nil {
		return fmt.Errorf("forget what is known about etcd: %w", err)
	}
	return nil
}

func (d *deployment) saveRecord(ctx context.Context) error {
	text, err := json.Marshal(d.record)
	if err != nil {
		return fmt.Errorf("encode what is known about etcd: %w", err)
	}
	if err := d.cluster.config.Vault.Store(ctx, vaultEtcd, text); err != nil {
		return fmt.Errorf("store what is known about etcd: %w", err)
	}
	return nil
}

func (d *deployment) script(ctx context.Context, node Node, name, body string, env map[string]string) (string, error) {
	return d.cluster.script(ctx, node.Name, ssh.Script{Name: name, Body: body, Env: env})
}

// found are the programs that were found and installed on a node by now.
func (d *deployment) found(node Node) installed {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.installed[node.Name]
}

func (d *deployment) report(ctx context.Context, node Node, text string) {
	d.cluster.config.Report(ctx, node.Name, text)
}

// Steps that need several nodes, but not each of them, wait for as long as these can still come, and no longer than a grace.
const (
	// joinGrace is how long members that can join wait for members whose node does not answer yet.
	joinGrace = 30 * time.Second
	// Keys of steps that run on one node at a time.
	mutexJoin      = "etcd join"
	mutexForwarder = "etcd forwarder"
	mutexWays      = "api forwarder"
	mutexAPI       = "api server"
)

func (d *deployment) upload(ctx context.Context, node Node, files ...ssh.File) error {
	client, err := d.cluster.connect(ctx, node)
	if err != nil {
		return err
	}
	return client.Upload(ctx, files)
}

// units is the step that starts units. With block, it waits until they are up.
func (d *deployment) units(block bool, names ...string) func(context.Context, Node) error {
	return func(ctx context.Context, node Node) error { return d.start(ctx, node, block, names...) }
}

func (d *deployment) connect(ctx context.Context, node Node) error {
	_, err := d.cluster.connect(ctx, node)
	return err
}

// serviceSteps look at the units at the end.
type serviceSteps struct{ *deployment }

func (d serviceSteps) steps() []step {
	return []step{{name: stepServices, on: d.present(), after: here(""), run: d.services}}
}

// services makes sure that no unit has ended that was started without a wait.
func (d serviceSteps) services(ctx context.Context, node Node) error {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(d.found(node).units)), storageSteps(d).optional)
	if d.cluster.config.idle(node) {
		ended := d.design.servingUnits(node, d.found(node).layout)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(ended, name) })
	}
	_, err := d.script(ctx, node, "look at services", servicesScript, map[string]string{"UNITS": strings.Join(names, "\n")})
	return err
}
