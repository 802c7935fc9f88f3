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
	away   []Node // locked nodes that do not answer: the user who locked them knows

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
	if d.record.Restoring != nil {
		return false, fmt.Errorf("deploy cluster %s: its etcd was about to be restored from snapshot %s, and that has not ended: run the action restore with this snapshot again",
			c.config.Name, d.record.Restoring.Snapshot)
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
	masters := c.config.masters()
	var candidates []etcd.Candidate
	for _, node := range staying {
		if node.Elastic || node.Machine != nil || c.config.EtcdOnMasters && len(masters) >= 3 && node.Role != Master {
			continue
		}
		candidates = append(candidates, etcd.Candidate{Name: node.Name, Rank: slices.Index([]Role{Master, Minion, Gateway}, node.Role)})
	}
	voters := etcd.Voters(candidates, d.record.Voters)
	if elects := len(masters) > 1 || d.record.Elects; elects != d.record.Elects || !slices.Equal(voters, d.record.Voters) {
		d.record.Voters, d.record.Elects = voters, elects
		if err := d.saveRecord(ctx); err != nil {
			return nil, err
		}
	}
	d.design = design{cluster: c.config, driver: c.driver, authorities: authorities, voters: voters, elect: d.record.Elects, runtime: cmp.Or(c.config.Runtime, kube.Containerd)}
	if err := d.chooseStorage(ctx); err != nil {
		return nil, err
	}
	if err := d.chooseRegistry(ctx); err != nil {
		return nil, err
	}
	images, err := loadImages(ctx, c.config.Vault)
	if err != nil {
		return nil, err
	}
	d.images = images.all()
	d.chooseLead(ctx)
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
	return d, nil
}

func (c *Cluster) loadRecord(ctx context.Context) (record etcdRecord, err error) {
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

// plan draws the graph. The API server starts as soon as its own etcd member and its user are there; everything that
// fits beside its start (the other members, the network, the container runtime) does.
func (d *deployment) plan() *plan.Plan {
	p := &plan.Plan{}
	last := map[string][]string{} // by node: the steps that start something there
	addStep := func(step plan.Step, node Node, run func(context.Context, Node, plan.Progress) error) string {
		id := d.cluster.addStep(p, step, node, d.cluster.config.StepPatience, func(ctx context.Context, done plan.Progress) error { return run(ctx, node, done) })
		last[node.Name] = append(last[node.Name], id)
		return id
	}
	add := func(node Node, name string, run func(context.Context, Node) error, after ...string) string {
		return addStep(plan.Step{Name: name, After: after}, node, func(ctx context.Context, node Node, _ plan.Progress) error { return run(ctx, node) })
	}
	nodes, master, several := d.present(), d.lead, d.cluster.config.severalMasters()
	on := func(node Node, name string) string { return plan.ID(node.Name, name) }
	withBinary := d.design.binary != ""
	admits := withBinary && len(d.cluster.config.Further) > 0

	for _, node := range nodes {
		add(node, stepConnect, d.connect)
		ready := on(node, stepConnect)
		if node.Machine != nil {
			ready = add(node, stepMachine, d.takeMachine, ready)
		}
		add(node, stepFiles, d.install, ready)
		if withBinary && node.Role != Minion {
			// after the files, because other steps wait for the files
			add(node, stepBinary, d.copyBinary, on(node, stepFiles))
		}
	}

	for _, node := range nodes {
		if node.Role == Master {
			continue
		}
		way := plan.Step{Name: stepAPIForwarder, After: []string{on(node, stepFiles)}}
		if d.again {
			way.Mutexes = []string{mutexWays}
		}
		addStep(way, node, func(ctx context.Context, node Node, _ plan.Progress) error { return d.apiForwarder(ctx, node) })
	}

	// etcd: the lead's member, users, all learners, then one join after the other. No step waits for a node that does not come.
	var joiners, members []Node
	for _, node := range nodes {
		if node.Name != master.Name && slices.Contains(d.design.voters, node.Name) {
			joiners = append(joiners, node)
		}
		if node.Name != master.Name && slices.Contains(d.record.Members, node.Name) {
			members = append(members, node)
		}
	}
	member := plan.Step{Name: stepEtcdMember, After: []string{on(master, stepFiles)}}
	if d.again {
		member.After = append(member.After, add(master, stepEtcdData, d.lookForEtcdData, on(master, stepFiles)))
		for _, other := range members {
			member.Soft = append(member.Soft, plan.Soft{ID: on(other, stepConnect), For: joinGrace, When: func(plan.Progress) bool { return d.etcdLost }})
		}
	}
	addStep(member, master, func(ctx context.Context, node Node, done plan.Progress) error {
		return d.etcdMember(ctx, node, append(through(done, members, stepConnect), d.former...))
	})
	users := add(master, stepEtcdUsers, d.etcdUsers, on(master, stepEtcdMember))
	before := users
	if len(joiners) > 0 {
		learners := plan.Step{Name: stepEtcdLearners, After: []string{users}}
		for _, node := range joiners {
			learners.Soft = append(learners.Soft, plan.Soft{ID: on(node, stepConnect), For: joinGrace})
		}
		before = addStep(learners, master, func(ctx context.Context, _ Node, done plan.Progress) error {
			return d.etcdLearners(ctx, through(done, joiners, stepConnect))
		})
		for _, node := range joiners {
			addStep(plan.Step{Name: stepEtcdJoin, After: []string{before, on(node, stepFiles)}, Mutexes: []string{mutexJoin}}, node,
				func(ctx context.Context, node Node, _ plan.Progress) error { return d.etcdJoin(ctx, node) })
		}
	}
	vote := plan.Step{Name: stepEtcdVoters, After: []string{before}}
	for _, node := range joiners {
		vote.Soft = append(vote.Soft, plan.Soft{ID: on(node, stepEtcdJoin), For: d.cluster.config.StepPatience,
			When: func(done plan.Progress) bool { return done(on(node, stepConnect)) }}) // one that has not come yet joins by itself later
	}
	voters := addStep(vote, master, func(ctx context.Context, _ Node, _ plan.Progress) error { return d.etcdVoters(ctx) })
	for _, node := range nodes {
		forwarder := plan.Step{Name: stepForwarder, After: []string{voters, on(node, stepFiles)}}
		if d.again {
			// Where forwarders run, one after another is restarted, so that clients on only one node at a time have to connect again.
			forwarder.Mutexes = []string{mutexForwarder}
		}
		addStep(forwarder, node, func(ctx context.Context, node Node, _ plan.Progress) error { return d.forwarder(ctx, node) })
	}

	if d.again && d.record.Elects && !d.cluster.shrinking { // else there is no member too many, or it leaves together with its node
		retire := plan.Step{Name: stepEtcdRetire}
		for _, node := range nodes {
			retire.After = append(retire.After, on(node, stepForwarder))
		}
		addStep(retire, master, func(ctx context.Context, _ Node, _ plan.Progress) error { return d.retire(ctx, nodes) })
	}

	// control plane
	serve := func(node Node, after ...string) (serves string) {
		server := plan.Step{Name: stepAPIServer, After: after}
		start := d.units(false, "kube-apiserver")
		if several && d.again { // one that is restarted serves before the next one is
			server.Mutexes = []string{mutexAPI}
			start = d.apiServer
		}
		addStep(server, node, func(ctx context.Context, node Node, _ plan.Progress) error { return start(ctx, node) })
		return add(node, stepAPIServes, d.apiServes, on(node, stepAPIServer))
	}
	serves := serve(master, users)
	ready := add(master, stepAPIReady, d.apiReady, serves)
	controlled := []string{serves}
	network := d.design.driver.Units()
	for _, former := range d.cluster.config.formerMasters() {
		if d.design.elect && !slices.ContainsFunc(d.design.former, func(node Node) bool { return node.Name == former.Name }) {
			continue
		}
		// Two controller managers would both answer for the same objects.
		controlled = append(controlled, d.cluster.addStep(p, plan.Step{Name: stepFormerControllers, After: []string{serves}}, former, farewellLimit, func(ctx context.Context, _ plan.Progress) error {
			d.cluster.stopPolitely(ctx, former, append([]string{"kube-controller-manager", "kube-scheduler"}, network.Controllers...)...)
			return nil
		}))
	}
	// The lead's controllers first: where there was one master before, they have had no leader.
	add(master, stepControllers, d.units(false, "kube-controller-manager", "kube-scheduler"), controlled...)
	access := add(master, stepAccess, d.access, serves)
	var store []string // the needs of the network's programs where their store is Kubernetes
	if d.cluster.config.registers() {
		store = []string{access, add(master, stepNetworkDefinitions, d.networkDefinitions, serves)}
	}
	// networked is the step that starts a node's network, after others.
	networked := func(node Node, after ...string) {
		if d.cluster.config.registers() {
			way := stepAPIForwarder
			if node.Role == Master {
				way = stepAPIServes
			}
			registered := on(node, stepRegister)
			if node.Role == Minion {
				registered = on(node, stepSettings)
			} else {
				add(node, stepRegister, d.register, on(node, stepFiles), ready)
				add(node, stepLease, d.units(false, kube.LeaseUnit), registered, on(node, way))
			}
			after = slices.Concat(after, store, []string{registered, on(node, way)})
		}
		add(node, stepNetwork, d.units(true, network.Daemons...), after...)
	}
	for _, node := range nodes {
		if node.Role != Master {
			continue
		}
		begun := []string{access, on(node, stepForwarder)}
		if node.Name != master.Name {
			own := serve(node, users, on(node, stepEtcdJoin))
			add(node, stepControllers, d.units(false, "kube-controller-manager", "kube-scheduler"), own, on(master, stepControllers))
			begun = append(begun, own)
		}
		if len(network.Controllers) > 0 {
			add(node, stepNetworkControllers, d.units(false, network.Controllers...), slices.Concat(controlled, begun, store)...)
		}
		if withBinary {
			add(node, stepPublisher, d.units(false, "burano-publish"), append(begun, on(node, stepBinary))...)
			if d.cluster.config.Proxy.ThroughMasters() {
				add(node, stepWay, d.way, on(node, stepBinary), on(node, stepFiles))
			} else if d.again {
				add(node, stepWay, d.endWay, on(node, stepFiles))
			}
		}
	}
	add(master, stepServiceAccount, d.serviceAccount, ready, on(master, stepControllers))
	if slices.ContainsFunc(nodes, func(node Node) bool { return node.Role == Gateway }) {
		// Definitions keep the API server busy: they wait until it is ready, for which others wait.
		add(master, stepGatewayAPI, d.gatewayAPI, access, ready)
	}
	if d.cluster.config.DNS {
		dns := plan.Step{Name: stepDNS, After: []string{ready}}
		for _, node := range nodes {
			dns.Soft = append(dns.Soft, plan.Soft{ID: on(node, stepFiles), For: joinGrace})
		}
		addStep(dns, master, func(ctx context.Context, node Node, done plan.Progress) error {
			return d.dns(ctx, node, through(done, nodes, stepFiles))
		})
	}
	if d.cluster.config.Metrics || d.again {
		metrics := plan.Step{Name: stepMetrics, After: []string{ready, access}}
		for _, node := range nodes {
			if node.Role == Master && node.Name != master.Name {
				metrics.Soft = append(metrics.Soft, plan.Soft{ID: on(node, stepAPIServes), For: joinGrace})
			}
		}
		addStep(metrics, master, func(ctx context.Context, node Node, done plan.Progress) error {
			return d.metrics(ctx, node, through(done, nodes, stepAPIServes))
		})
	}
	if len(d.design.storage) > 0 {
		storage := plan.Step{Name: stepStorage, After: []string{ready, access}}
		for _, node := range nodes {
			switch node.Role {
			case Master:
				if node.Name != master.Name {
					storage.Soft = append(storage.Soft, plan.Soft{ID: on(node, stepAPIServes), For: joinGrace})
				}
			case Minion:
				served := add(node, stepStorageNode, d.storageNode, on(node, stepFiles))
				storage.Soft = append(storage.Soft, plan.Soft{ID: served, For: joinGrace})
			}
		}
		addStep(storage, master, func(ctx context.Context, node Node, done plan.Progress) error {
			return d.storage(ctx, node, through(done, nodes, stepAPIServes))
		})
	}
	if d.registry != nil && !d.registry.Ended {
		registry := plan.Step{Name: stepRegistry, After: []string{ready, access}}
		if len(d.design.storage) > 0 {
			registry.After = append(registry.After, on(master, stepStorage))
		}
		for _, node := range nodes {
			if node.Role == Minion {
				registry.Soft = append(registry.Soft, plan.Soft{ID: on(node, stepNodeReady), For: d.cluster.config.StepPatience,
					When: func(done plan.Progress) bool { return done(on(node, stepConnect)) }})
			}
		}
		addStep(registry, master, func(ctx context.Context, node Node, _ plan.Progress) error { return d.serveRegistry(ctx, node) })
	}
	for _, node := range nodes {
		switch node.Role {
		case Master:
			// No step waits for the master's routes to pods: they come when the busiest seconds are over.
			after := []string{on(node, stepForwarder), ready}
			if len(d.dead) > 0 && node.Name == master.Name {
				after = append(after, add(node, stepForgetDead, d.forgetDead, on(node, stepForwarder), ready))
			}
			networked(node, after...)
			if _, some := d.design.driver.Configure(); some && node.Name == master.Name {
				add(node, stepConfigureNetwork, d.configureNetwork, on(node, stepNetwork))
			}
		case Minion:
			began := []string{on(node, stepForwarder)}
			if d.again {
				began = append(began, add(node, stepFormerNode, d.formerNode, ready, on(node, stepForwarder)))
			}
			networked(node, began...)
			add(node, stepRuntime, d.runtime, on(node, stepFiles))
			kubelet := plan.Step{Name: stepKubelet, After: append(began, on(node, stepRuntime), on(node, stepAPIForwarder), access)}
			if len(d.images) > 0 {
				kubelet.After = append(kubelet.After, add(node, stepContainerImages, d.podImages, on(node, stepRuntime)))
			}
			switch {
			case d.cluster.config.registers():
				kubelet.After = append(kubelet.After, add(node, stepSettings, d.register, append(began, ready)...))
			case d.again || !node.Settings.IsZero():
				kubelet.After = append(kubelet.After, add(node, stepSettings, d.applySettings, append(began, ready)...))
			}
			for _, other := range nodes {
				if other.Role == Gateway && admits { // pods are asked as soon as they run
					kubelet.Soft = append(kubelet.Soft, plan.Soft{ID: on(other, stepAdmit), For: joinGrace})
				}
			}
			addStep(kubelet, node, func(ctx context.Context, node Node, _ plan.Progress) error {
				return d.start(ctx, node, false, "kubelet", "kube-proxy")
			})
			add(node, stepNodeReady, d.nodeReady, on(node, stepKubelet), on(node, stepNetwork))
		case Gateway:
			networked(node, on(node, stepForwarder))
			if withBinary {
				// The daemon writes HAProxy's configuration and starts it.
				add(node, stepGateway, d.units(admits, "burano-gateway"), on(node, stepBinary), on(node, stepForwarder))
				if admits {
					add(node, stepAdmit, d.admit, on(node, stepGateway))
				}
			} else {
				add(node, stepGateway, d.units(true, "haproxy"), on(node, stepFiles))
			}
		}
	}
	if withBinary {
		d.planVirtualAddress(nodes, master, add, addStep)
	}
	addresses := plan.Step{Name: stepGatewayAddresses, After: []string{users}}
	for _, node := range nodes {
		if node.Role == Gateway {
			addresses.Soft = append(addresses.Soft, plan.Soft{ID: on(node, stepGateway), For: joinGrace})
		}
	}
	addStep(addresses, master, func(ctx context.Context, node Node, done plan.Progress) error {
		return d.listGateways(ctx, node, through(done, nodes, stepGateway))
	})
	for _, node := range nodes {
		add(node, stepServices, d.services, last[node.Name]...)
	}
	return p
}

// through are the nodes on which a step is done.
func through(done plan.Progress, nodes []Node, step string) []Node {
	var list []Node
	for _, node := range nodes {
		if done(plan.ID(node.Name, step)) {
			list = append(list, node)
		}
	}
	return list
}

// units is the step that starts units. With block, it waits until they are up.
func (d *deployment) units(block bool, names ...string) func(context.Context, Node) error {
	return func(ctx context.Context, node Node) error { return d.start(ctx, node, block, names...) }
}

// configureNetwork writes the settings of the network's store that nodes do not write.
func (d *deployment) configureNetwork(ctx context.Context, node Node) error {
	script, _ := d.design.driver.Configure()
	_, err := d.script(ctx, node, script.Name, script.Body, script.Env)
	return err
}

func (d *deployment) connect(ctx context.Context, node Node) error {
	_, err := d.cluster.connect(ctx, node)
	return err
}

// services makes sure that no unit has ended that was started without a wait.
func (d *deployment) services(ctx context.Context, node Node) error {
	d.mu.Lock()
	names := slices.Sorted(maps.Keys(d.installed[node.Name].units))
	d.mu.Unlock()
	names = slices.DeleteFunc(names, d.optional)
	_, err := d.script(ctx, node, "look at services", servicesScript, map[string]string{"UNITS": strings.Join(names, "\n")})
	return err
}
