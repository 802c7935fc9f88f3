package nodes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/burano/burano/nodes/plan"
)

// The plan of a deployment is a list of features. The steps of a feature stand in the file of their bodies. What runs where, when and after which steps
// is data of a step, so that the lists can be read as a description of the plan.

// plan draws the graph. The API server starts as soon as its own etcd member and its user are there; everything that
// fits beside its start (the other members, the network, the container runtime) does.
func (d *deployment) plan() *plan.Plan {
	return d.draw(
		arrivalSteps{d},  // each node is reached, and a machine of another maker is checked
		fileSteps{d},     // each has its files, and the burano program where it runs it
		etcdSteps{d},     // the lead's member begins, the others join it one after the other, and each node has a forwarder to them
		controlSteps{d},  // API servers, controllers and rights
		signInSteps{d},   // users of issuers sign in at API servers
		networkSteps{d},  // the network of pods
		dnsSteps{d},      // the names of Services
		metricsSteps{d},  // the use of processors and memory
		storageSteps{d},  // volumes of pods
		registrySteps{d}, // a registry of the cluster's own
		minionSteps{d},   // nodes for pods
		podsEndSteps{d},  // masters that run no pods any more
		gatewaySteps{d},  // Services become listeners of gateways
		addressSteps{d},  // the addresses that gateways and masters share
		idleSteps{d},     // a locked gateway or master serves nothing
		serviceSteps{d},  // at the end, no unit has failed
	)
}

// feature is a part of a deployment.
type feature interface{ steps() []step }

// step is a kind of step, which each of some nodes runs once.
type step struct {
	name   string
	on     []Node
	skipIf bool   // leaves the step out
	after  []need // steps that must be done before
	soft   []soft // steps that are waited for without being needed
	mutex  string // of the steps with the same one, one at a time runs; "" for any number
	limit  time.Duration
	run    func(ctx context.Context, node Node) error
	// runKnowing is run for a step that must know which others are done.
	runKnowing func(ctx context.Context, node Node, done plan.Progress) error
}

// need is a step that another step needs: on given nodes, or on its own node.
type need struct {
	name      string // "" for all steps
	nodes     []Node
	here      bool
	ifPlanned bool
}

// here are needed steps on the same node.
func here(names ...string) (needs []need) {
	for _, name := range names {
		needs = append(needs, need{name: name, here: true})
	}
	return needs
}

// at are needed steps on each of some nodes.
func at(nodes []Node, names ...string) (needs []need) {
	for _, name := range names {
		needs = append(needs, need{name: name, nodes: nodes})
	}
	return needs
}

// ifPlanned are needs without the ones that are not in the plan. Otherwise such a need is an error.
func ifPlanned(needs []need) []need {
	for i := range needs {
		needs[i].ifPlanned = true
	}
	return needs
}

// needs joins needs.
func needs(parts ...[]need) []need { return slices.Concat(parts...) }

// soft is a step on some nodes that is waited for without being needed, for at most limit; see plan.Soft. Nodes that have no such step are passed over.
type soft struct {
	name  string
	nodes []Node
	limit time.Duration
	when  func(node Node, done plan.Progress) bool
}

// whereConnected is true if a node was reached in this run.
func whereConnected(node Node, done plan.Progress) bool { return done(plan.ID(node.Name, stepConnect)) }

// leads is the lead as a list.
func (d *deployment) leads() []Node { return []Node{d.lead} }

// with are the nodes of the deployment that have one of these roles.
func (d *deployment) with(roles ...Role) []Node {
	return only(d.present(), func(node Node) bool { return slices.Contains(roles, node.Role) })
}

// serving are the nodes of a deployment that have one of these roles and are not idle.
func serving(d *deployment, roles ...Role) []Node {
	return only(d.with(roles...), func(node Node) bool { return !d.cluster.config.idle(node) })
}

// besidesLead are the masters of the deployment that serve, without the lead.
func (d *deployment) besidesLead() []Node {
	return only(serving(d, Master), func(node Node) bool { return node.Name != d.lead.Name })
}

// only are the nodes for which a condition holds.
func only(nodes []Node, condition func(Node) bool) []Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(node Node) bool { return !condition(node) })
}

// through are the nodes on which a step is done.
func through(done plan.Progress, nodes []Node, step string) []Node {
	return only(nodes, func(node Node) bool { return done(plan.ID(node.Name, step)) })
}

// draw makes the plan of features.
func (d *deployment) draw(features ...feature) *plan.Plan {
	var kinds []step
	planned := map[string][]string{} // by node: the names of its steps
	for _, feature := range features {
		for _, kind := range feature.steps() {
			if kind.skipIf {
				continue
			}
			kinds = append(kinds, kind)
			for _, node := range kind.on {
				planned[node.Name] = append(planned[node.Name], kind.name)
			}
		}
	}
	p := &plan.Plan{}
	for _, kind := range kinds {
		for _, node := range kind.on {
			made := plan.Step{Name: kind.name, After: identities(kind, node, planned)}
			if kind.mutex != "" {
				made.Mutexes = []string{kind.mutex}
			}
			for _, one := range kind.soft {
				for _, other := range one.nodes {
					if !slices.Contains(planned[other.Name], one.name) {
						continue
					}
					waited := plan.Soft{ID: plan.ID(other.Name, one.name), For: one.limit}
					if one.when != nil {
						waited.When = func(done plan.Progress) bool { return one.when(other, done) }
					}
					made.Soft = append(made.Soft, waited)
				}
			}
			run := kind.runKnowing
			if run == nil {
				run = func(ctx context.Context, node Node, _ plan.Progress) error { return kind.run(ctx, node) }
			}
			d.cluster.addStep(p, made, node, cmp.Or(kind.limit, d.cluster.config.StepPatience), func(ctx context.Context, done plan.Progress) error { return run(ctx, node, done) })
		}
	}
	return p
}

// identities are the steps that a step on a node needs.
func identities(kind step, node Node, planned map[string][]string) (ids []string) {
	for _, need := range kind.after {
		nodes, names := need.nodes, []string{need.name}
		if need.here {
			nodes = []Node{node}
		}
		if need.name == "" {
			names = slices.DeleteFunc(slices.Clone(planned[node.Name]), func(name string) bool { return name == kind.name })
		}
		for _, other := range nodes {
			for _, name := range names {
				if id := plan.ID(other.Name, name); !slices.Contains(ids, id) && (!need.ifPlanned || slices.Contains(planned[other.Name], name)) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}
