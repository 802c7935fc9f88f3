package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes/etcd"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/nodes/plan"
	"github.com/burano/burano/nodes/ssh"
)

// Names of the steps of a removal, stable like the steps of Deploy.
const (
	stepCordon       = "cordon"
	stepDrain        = "drain"
	stepDetach       = "detach volumes"
	stepCloseGateway = "close gateway"
	stepHandOver     = "hand over"
	stepEtcdLeave    = "etcd leave"
	stepForget       = "forget"
)

const (
	// DefaultDrainPatience is how long the pods of a node may take to go.
	DefaultDrainPatience = 5 * time.Minute
	// farewellLimit is how long a node that leaves is waited for where it is only asked for politeness: it may be dead.
	farewellLimit = 40 * time.Second
)

//go:embed scripts/etcd-forget.sh
var etcdForgetScript string

//go:embed scripts/stop-units.sh
var stopUnitsScript string

//go:embed scripts/close-gateway.sh
var closeGatewayScript string

// removal is the way of nodes out of a cluster.
type removal struct{ *Cluster }

// Remove takes nodes out of the cluster; afterwards their servers may go. Their pods move to other nodes first, as disruption budgets allow and at most
// for Config.DrainPatience; gateways end the connections that they carry. Then the others are deployed without them, which moves votes of etcd away from
// them and points every forwarder elsewhere. Only then Kubernetes and the network forget them.
//
// When pods do not go, nothing was removed, and the nodes take pods again. After any other failure another call continues, and Deploy takes the nodes
// back.
func (c *Cluster) Remove(ctx context.Context, names ...string) error {
	var leaving []Node
	for _, name := range names {
		node, err := c.node(name)
		if err != nil {
			return err
		}
		leaving = append(leaving, node)
	}
	if c.config.Alone() {
		return removal{c}.removeAlone(ctx, leaving)
	}
	if err := (masterKubelets{c.servers}).mark(ctx, leaving); err != nil {
		return err
	}
	if !slices.ContainsFunc(c.config.masters(), func(node Node) bool { return !slices.Contains(names, node.Name) }) {
		return fmt.Errorf("%s cannot be removed: cluster %s would have no master", strings.Join(names, ", "), c.config.Name)
	}
	api, err := c.bootstrap(ctx)
	if err != nil {
		return err
	}
	if err := c.keepVolumes(ctx, names); err != nil {
		return fmt.Errorf("remove %s from cluster %s: %w", strings.Join(names, ", "), c.config.Name, err)
	}
	started := time.Now()
	if err := (removal{c}).evacuate(ctx, api, leaving); err != nil {
		return fmt.Errorf("remove %s from cluster %s: %w", strings.Join(names, ", "), c.config.Name, removal{c}.stay(ctx, api, leaving, err))
	}
	config := c.config
	config.Nodes = slices.DeleteFunc(slices.Clone(config.Nodes), func(node Node) bool { return slices.Contains(names, node.Name) })
	staying, err := NewCluster(config)
	if err != nil {
		return err
	}
	defer staying.Close()
	staying.shrinking = true
	if err := staying.Deploy(ctx); err != nil {
		return fmt.Errorf("remove %s: %w", strings.Join(names, ", "), err)
	}
	c.lead(staying.master())
	p := &plan.Plan{}
	var after []string
	for _, node := range leaving {
		if node.Role == Master {
			// By now every node knows where its successor is. Clients of this API server, which ends in an orderly way, connect to the other one.
			after = append(after, c.addStep(p, plan.Step{Name: stepHandOver}, node, farewellLimit*2, func(ctx context.Context, _ plan.Progress) error {
				swactPolitely(ctx, c, node)
				c.stopPolitely(ctx, node, virtualUnit, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "burano-publish")
				return nil
			}))
		}
	}
	left := staying.addStep(p, plan.Step{Name: stepEtcdLeave, After: after}, c.master(), c.config.StepPatience,
		func(ctx context.Context, _ plan.Progress) error { return removal{c}.etcdLeave(ctx, staying) })
	for _, node := range leaving {
		c.addStep(p, plan.Step{Name: stepForget, After: []string{left}}, node, farewellLimit*2,
			func(ctx context.Context, _ plan.Progress) error { return removal{c}.forget(ctx, api, node) })
	}
	if _, err := c.run(ctx, p); err != nil {
		return fmt.Errorf("remove %s from cluster %s: %w", strings.Join(names, ", "), c.config.Name, err)
	}
	c.config.Logger.Info("nodes removed", "cluster", c.config.Name, "nodes", names, "took", time.Since(started).Round(time.Millisecond))
	return nil
}

// run runs a plan, after it has passed the plan to the listener.
func (c *servers) run(ctx context.Context, p *plan.Plan) ([]plan.Record, error) {
	if c.config.Planned != nil {
		steps, err := p.Steps()
		if err != nil {
			return nil, err
		}
		c.config.Planned(steps)
	}
	return p.Run(ctx)
}

// Vacate stops the units of a master, so that its server may go before another one takes its place. It is refused where the store may be lost without it.
func (c *Cluster) Vacate(ctx context.Context, name string) error {
	node, err := c.node(name)
	if err != nil {
		return err
	}
	if err := c.storedElsewhere(ctx, node); err != nil {
		return fmt.Errorf("vacate %s: %w", name, err)
	}
	if node.RunsPods() {
		if err := c.Empty(ctx, name, false); err != nil {
			return fmt.Errorf("vacate %s: %w", name, err)
		}
	}
	c.stopPolitely(ctx, node, virtualUnit, "kube-apiserver", "kube-controller-manager", "kube-scheduler", "burano-publish", "etcd")
	return nil
}

// storedElsewhere makes sure that the members of etcd on other nodes are a majority that answers.
func (c *store) storedElsewhere(ctx context.Context, node Node) error {
	authorities, err := c.authorities(ctx)
	if err != nil {
		return err
	}
	client, err := c.etcdAs(ctx, authorities, etcd.Root)
	if err != nil {
		return err
	}
	defer client.Close()
	members, err := etcd.Members(ctx, client)
	if err != nil {
		return err
	}
	own := members.Of(etcdNode(node))
	if own == nil || own.IsLearner {
		return nil
	}
	voters := 0
	for _, member := range members {
		if !member.IsLearner {
			voters++
		}
	}
	if silent := etcd.Silent(ctx, client, members); voters < 3 || len(silent) > 0 {
		return fmt.Errorf("of %d voters of etcd it is one, and without it no majority is sure to be left (%d do not answer): make room for one server more, so that the new node joins first", voters, len(silent))
	}
	return nil
}

// addStep adds a step of a node to a plan, and returns its identity. It is run through Config.Step, each time for at most limit, and again
// when its node goes away in the middle of it (persist).
func (c *servers) addStep(p *plan.Plan, step plan.Step, node Node, limit time.Duration, run func(context.Context, plan.Progress) error) string {
	step.Node = node.Name
	step.Run = func(ctx context.Context, done plan.Progress) error {
		return c.config.Step(ctx, node.Name, step.Name, func(ctx context.Context) error {
			return c.persist(ctx, node, step.Name, limit, func(ctx context.Context) error { return run(ctx, done) })
		})
	}
	p.Add(step)
	return step.ID()
}

// stay has nodes take pods again that could not be emptied, and returns why they could not.
func (c removal) stay(ctx context.Context, api *rest.Config, list []Node, err error) error {
	// The remaining time of a cancelled task is enough for a few calls.
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellLimit)
	defer cancel()
	for _, node := range list {
		if node.RunsPods() {
			err = errors.Join(err, kube.Uncordon(undo, api, node.Name))
		}
	}
	return err
}

// PodsStay is the error of nodes that could not be emptied in time: something keeps their pods, such as a disruption budget.
type PodsStay struct{ Err error }

func (p *PodsStay) Error() string {
	return p.Err.Error() + ". Nothing was changed. Have these pods go (delete them, or loosen their disruption budgets, which " +
		"kubectl get poddisruptionbudgets -A lists), or give them longer (burano serve --drain-patience), and do the same again"
}

func (p *PodsStay) Unwrap() error { return p.Err }

// evacuate moves everything needed away from the nodes. No pod moves from one leaving node to another.
func (c removal) evacuate(ctx context.Context, api *rest.Config, leaving []Node) error {
	volumes, err := HasStorage(ctx, c.config.Vault, kube.Cinder, kube.Manila)
	if err != nil {
		return err
	}
	p := &plan.Plan{}
	var cordoned []string
	for _, node := range leaving {
		if node.RunsPods() {
			cordoned = append(cordoned, c.addStep(p, plan.Step{Name: stepCordon}, node, farewellLimit,
				func(ctx context.Context, _ plan.Progress) error { return kube.Cordon(ctx, api, node.Name) }))
		}
	}
	var drained []string
	for _, node := range leaving {
		if node.RunsPods() {
			drained = append(drained, c.addStep(p, plan.Step{Name: stepDrain, After: cordoned}, node, c.config.DrainPatience,
				func(ctx context.Context, _ plan.Progress) error { return c.drain(ctx, api, node) }))
			if volumes {
				drained = append(drained, c.addStep(p, plan.Step{Name: stepDetach, After: drained[len(drained)-1:]}, node, detachPatience+farewellLimit,
					func(ctx context.Context, _ plan.Progress) error { return c.awaitDetached(ctx, api, node) }))
			}
		}
	}
	for _, node := range leaving {
		if node.Role == Master && c.config.APIAddress.Address.IsValid() { // the others do not know of it any more when they are deployed
			c.addStep(p, plan.Step{Name: stepAPILeave, After: drained}, node, farewellLimit, func(ctx context.Context, _ plan.Progress) error {
				c.stopPolitely(ctx, node, virtualUnit)
				return nil
			})
		}
		if node.Role == Gateway {
			c.addStep(p, plan.Step{Name: stepCloseGateway, After: drained}, node, farewellLimit, func(ctx context.Context, _ plan.Progress) error {
				c.unlist(ctx, node)
				c.polite(ctx, node, "close its connections", ssh.Script{Name: "close gateway", Body: closeGatewayScript})
				return nil
			})
		}
	}
	_, err = c.run(ctx, p)
	return err
}

// drain moves the pods of a node to others.
func (c removal) drain(ctx context.Context, api *rest.Config, node Node) error {
	began := time.Now()
	err := kube.Drain(ctx, api, node.Name, c.config.Server(ctx, node.Name).Down)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && err != nil {
		return &PodsStay{err}
	}
	if err != nil {
		return err
	}
	c.config.Report(ctx, node.Name, fmt.Sprintf("its pods have moved to other nodes (%s)", time.Since(began).Round(100*time.Millisecond)))
	return nil
}

// etcdLeave removes the members of nodes that must not vote any more, one after the other: members of leaving nodes, and one that stays when the number
// would be even. By now their successors vote, and no forwarder points to them.
func (c removal) etcdLeave(ctx context.Context, staying *Cluster) error {
	d, err := staying.newDeployment(ctx)
	if err != nil {
		return err
	}
	defer d.etcd.close()
	client, err := d.etcdClient(ctx)
	if err != nil {
		return err
	}
	voters := d.design.etcdNodes()
	return etcdSteps{d}.leave(ctx, client, func(member *etcdserverpb.Member) bool {
		return !slices.ContainsFunc(voters, func(node etcd.Node) bool { return slices.Contains(member.PeerURLs, node.PeerURL()) })
	})
}

// polite runs a script on a node that leaves. When it fails that is only reported: the node may be dead.
func (c *servers) polite(ctx context.Context, node Node, what string, script ssh.Script) {
	ctx, cancel := context.WithTimeout(ctx, farewellLimit)
	defer cancel()
	if _, err := c.script(ctx, node.Name, script); err != nil {
		c.config.Report(context.WithoutCancel(ctx), node.Name, fmt.Sprintf("could not %s, which is not waited for: %v", what, err))
	}
}

// forgetNetwork deletes the network's data about a node. If the node has a Node object, the object has the data.
func (c *kubernetesAPI) forgetNetwork(ctx context.Context, api *rest.Config, node Node) error {
	if c.config.registers() {
		return kube.Disconnect(ctx, api, node.Name)
	}
	access := network.Access{Endpoint: etcd.LocalEndpoint, AuthorityFile: etcd.AuthorityFile}
	_, err := c.script(ctx, c.master().Name, c.driver.Forget(network.Node{Name: node.Name, Address: node.Address}, access))
	return err
}

// stopPolitely stops units of a leaving node, if it has them.
func (c *servers) stopPolitely(ctx context.Context, node Node, units ...string) {
	what := "stop " + strings.Join(units, " ")
	c.polite(ctx, node, what, ssh.Script{Name: what, Body: stopUnitsScript, Env: map[string]string{"UNITS": strings.Join(units, "\n")}})
}

// forget deletes the data of Kubernetes and the network about a node. Its kubelet and the network's daemon are stopped before, because they would register
// the node again. If another server gets the node's name, it may begin with the host key of its user-data.
func (c removal) forget(ctx context.Context, api *rest.Config, node Node) error {
	units := slices.Clone(c.driver.Units().Daemons)
	if node.RunsPods() {
		units = append([]string{"kubelet", "kube-proxy"}, units...)
	} else if c.config.registers() {
		units = append(units, kube.LeaseUnit)
	}
	if node.Machine != nil {
		c.leaveMachine(ctx, node)
	} else {
		c.stopPolitely(ctx, node, units...)
	}
	if node.RunsPods() || c.config.registers() {
		if err := kube.Delete(ctx, api, kube.NodeRef(node.Name)); err != nil {
			return err
		}
	}
	inherited := slices.ContainsFunc(c.config.staying(), func(other Node) bool { return other.Name != node.Name && other.Address == node.Address })
	if !inherited && !c.config.registers() { // else the network forgot it before its successor got the address
		if err := c.forgetNetwork(ctx, api, node); err != nil {
			return err
		}
	}
	if err := c.connections.Unconfirm(ctx, node.Name); err != nil {
		return err
	}
	c.config.Report(ctx, node.Name, "has left the cluster")
	return nil
}
