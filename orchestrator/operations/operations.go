// Package operations has the actions on single nodes of a cluster, such as repairs and reboots, and those that renew its certificates, keys and files.
package operations

import (
	"context"
	"maps"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
)

// Users' settings of nodes are stored with the nodes' instances, so that every server of a node gets them.

// Arguments of the actions on one node.
const (
	argumentLabels       = "labels"
	argumentRemoveLabels = "removeLabels"
	argumentTaints       = "taints"
	argumentRemoveTaints = "removeTaints"
	argumentCordoned     = "cordoned"
	argumentLocked       = "locked"
	argumentForce        = "force"
	argumentPatience     = "patience"
)

// namedNode is the node that an action is about.
type namedNode struct {
	nodes.Node
	cluster  *muranopl.Object
	instance *muranopl.Object
	known    *known.Facts
}

// Operations are the operations on single nodes of a cluster: labels, taints, cordons, locks and restarts.
type Operations struct{ *clusters.Clusters }

// New returns the operations on the nodes of clusters.
func New(c *clusters.Clusters) Operations { return Operations{c} }

// Actions are the actions of clusters on single nodes, and on all nodes as they were deployed last.
func (c Operations) Actions() map[string]muranopl.NativeMethod {
	actions := c.GatewayActions()
	maps.Copy(actions, map[string]muranopl.NativeMethod{"rotate": c.asDeployed(c.rotate), "setNode": c.asDeployed(c.setNode), "rebootNode": c.asDeployed(c.rebootNode), "swactNode": c.asDeployed(c.swactNode)})
	return actions
}

// GatewayActions are those of gateways without a cluster.
func (c Operations) GatewayActions() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{known.RepairNode: c.repairNode, "replaceNode": c.replaceNode,
		known.RenewCertificates: c.asDeployed(c.renewCertificates), known.DefragmentEtcd: c.asDeployed(c.defragment)}
}

// namedNode finds the node that the argument names.
func (c Operations) namedNode(ctx context.Context, call muranopl.Call, facts *known.Facts) (*namedNode, error) {
	named, _ := call.Args[known.ArgumentNode].(string)
	if machine, is := task.Desired(call.Object).MachineCalled(named); is {
		external := machine.Object
		node, there := facts.Node(named)
		if !there {
			return nil, fault.New(fault.Conflict, "Node %s has not joined cluster %s yet: deploy the environment", named, call.Object.Text("name"))
		}
		one := &namedNode{Node: node, cluster: call.Object, instance: external, known: facts}
		var err error
		one.Settings, err = c.NodeSettings.Of(ctx, external)
		return one, err
	}
	active := clusters.ActiveNodes(call.Object)
	all := make([]*muranopl.Object, len(active))
	for i, node := range active {
		all[i] = node.Object
	}
	at, err := clusters.NodeNamesOf(c.Clusters).Named(ctx, all, named)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s is no node of cluster %s: %s", named, call.Object.Text("name"), err)
	}
	name, err := clusters.NodeNamesOf(c.Clusters).NameOf(ctx, all[at])
	if err != nil {
		return nil, err
	}
	node, there := facts.Node(name)
	if !there {
		return nil, fault.New(fault.Conflict, "Node %s has not joined cluster %s yet: deploy the environment", name, call.Object.Text("name"))
	}
	one := &namedNode{Node: node, cluster: call.Object, instance: all[at].Object("instance"), known: facts}
	one.Settings, err = c.NodeSettings.Of(ctx, one.instance)
	return one, err
}

// set stores a node's new settings, and returns the cluster with them.
func (c Operations) set(ctx context.Context, one *namedNode, settings kube.Settings) (*nodes.Cluster, error) {
	if err := settings.Check(); err != nil {
		return nil, fault.New(fault.Invalid, "%w", err)
	}
	if err := c.NodeSettings.Keep(ctx, one.instance, settings); err != nil {
		return nil, err
	}
	for i := range one.known.Nodes {
		if one.known.Nodes[i].Name == one.Name {
			one.known.Nodes[i].Settings = clusters.WholeSettings(one.instance, settings)
		}
	}
	one.Settings = settings
	if err := c.StoreFacts(ctx, one.cluster, *one.known); err != nil {
		return nil, err
	}
	return c.connectKnown(ctx, one, 0)
}

// connectKnown returns the cluster of the last deployment, whose pods have so many seconds to leave a node; 0 for the server's setting.
func (c Operations) connectKnown(ctx context.Context, one *namedNode, patience int64) (*nodes.Cluster, error) {
	c.UseFacts(one.cluster, one.known)
	return clusters.ConnectionsOf(c.Clusters).ConnectPatient(ctx, one.cluster, one.known.Nodes, seconds(patience))
}

// nodeChange holds the arguments of setNode.
type nodeChange struct {
	labels                     map[string]string
	taints                     []kube.Taint
	removeLabels, removeTaints []string
	cordoned, locked           *bool
	patience                   int64
	force                      bool
}

func changeOf(call muranopl.Call) nodeChange {
	change := nodeChange{labels: map[string]string{}, removeLabels: texts(call.Args[argumentRemoveLabels]), removeTaints: texts(call.Args[argumentRemoveTaints])}
	given, _ := call.Args[argumentLabels].(map[string]any)
	for key, value := range given {
		change.labels[key], _ = value.(string)
	}
	taints, _ := call.Args[argumentTaints].([]any)
	change.taints = clusters.TaintsOf(taints)
	if cordoned, given := call.Args[argumentCordoned].(bool); given {
		change.cordoned = &cordoned
	}
	if locked, given := call.Args[argumentLocked].(bool); given {
		change.locked = &locked
	}
	change.patience, _ = call.Args[argumentPatience].(int64)
	change.force, _ = call.Args[argumentForce].(bool)
	return change
}

// opens reports whether the node takes pods again, also after others have cordoned it.
func (n nodeChange) opens() bool { return n.cordoned != nil && !*n.cordoned }

// onlyLocks reports whether a change is about the lock alone.
func (n nodeChange) onlyLocks() bool {
	return n.locked != nil && n.cordoned == nil && len(n.labels)+len(n.taints)+len(n.removeLabels)+len(n.removeTaints) == 0
}

// check refuses a change that a node's present state, or its group, does not admit.
func (n nodeChange) check(one *namedNode) error {
	if err := clusters.GroupKeeps(one.instance, one.Name, one.Settings, n.removeLabels); err != nil {
		return err
	}
	if err := clusters.GroupKeeps(one.instance, one.Name, one.Settings, n.removeTaints); err != nil {
		return err
	}
	locked := one.Settings.Locked
	if n.locked != nil {
		locked = *n.locked
	}
	if n.opens() && locked {
		return fault.New(fault.Conflict, "%s is locked: unlock it, and it takes pods again", one.Name)
	}
	if n.locked != nil && *n.locked && one.lastTaker() && !n.force {
		return fault.New(fault.Conflict, "%s is not locked: %s. Add a node or unlock one first, or say force", one.Name, noTaker)
	}
	return nil
}

// settings are a node's settings with the change.
func (n nodeChange) settings(one *namedNode) kube.Settings {
	settings := one.Settings.With(n.labels, n.removeLabels, n.taints, n.removeTaints)
	settings.Cordoned, settings.Locked = one.Settings.Cordoned, one.Settings.Locked
	if n.cordoned != nil {
		settings.Cordoned = *n.cordoned
	}
	if n.locked != nil {
		settings.Locked = *n.locked
	}
	return settings
}

// setNode is the action that changes a node: whether it is out of service, and of a minion its labels and taints, and whether it takes pods.
func (c Operations) setNode(ctx context.Context, call muranopl.Call, known *known.Facts) error {
	one, err := c.namedNode(ctx, call, known)
	if err != nil {
		return err
	}
	change := changeOf(call)
	if one.Role != nodes.Minion {
		return c.lockServer(ctx, call, one, change)
	}
	if err := change.check(one); err != nil {
		return err
	}
	settings := change.settings(one)
	settings.Assigned = one.Settings.Assign(change.labels, change.removeLabels, c.Runtime.TaskID(), c.Runtime.Submitter(), time.Now())
	if err := settings.Check(); err != nil {
		return fault.New(fault.Invalid, "%w", err)
	}
	unlocks := change.locked != nil && !*change.locked
	if change.locked != nil && *change.locked {
		live, err := c.connectKnown(ctx, one, change.patience)
		if err != nil {
			return err
		}
		if err := c.empty(ctx, call, one, live); err != nil {
			return err
		}
	}
	live, err := c.set(ctx, one, settings)
	if err != nil {
		return err
	}
	if unlocks { // it may be off, or gone
		if err := c.recoverNode(ctx, call, known, one.Node); err != nil {
			return err
		}
	}
	if !unlocks || change.opens() { // else the node has them again with recoverNode
		if err := live.ApplySettings(ctx, one.Name, change.opens()); err != nil {
			return err
		}
	}
	c.reportNode(ctx, one, change)
	return nil
}

func (c Operations) reportNode(ctx context.Context, one *namedNode, change nodeChange) {
	if count, removed := len(change.labels), len(change.removeLabels); count+removed > 0 {
		c.Reports.Inform(ctx, one.cluster, "%s: labels set: %d, removed: %d", one.Name, count, removed)
	}
	if count, removed := len(change.taints), len(change.removeTaints); count+removed > 0 {
		c.Reports.Inform(ctx, one.cluster, "%s: taints set: %d, removed: %d", one.Name, count, removed)
	}
	switch {
	case change.opens():
		c.Reports.Inform(ctx, one.cluster, "%s takes pods", one.Name)
	case change.cordoned != nil:
		c.Reports.Inform(ctx, one.cluster, "%s takes no new pods", one.Name)
	}
	switch {
	case change.locked == nil:
	case *change.locked && one.Role != nodes.Minion:
		c.Reports.Inform(ctx, one.cluster, "%s is locked: it serves nothing, and its member of etcd goes on, until it is unlocked", one.Name)
	case *change.locked:
		c.Reports.Inform(ctx, one.cluster, "%s is locked: nothing runs on it, and Burano neither repairs nor starts it until it is unlocked", one.Name)
	default:
		c.Reports.Inform(ctx, one.cluster, "%s is unlocked", one.Name)
	}
}

// texts are the texts of a list.
func texts(value any) (all []string) {
	list, _ := value.([]any)
	for _, one := range list {
		if text, ok := one.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
