// Package nodesteps has the methods of a cluster's nodes that packages call in an order of their own. Each runs its part of the cluster's deployment.
package nodesteps

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/task"
)

// Classes of nodes.
const (
	ClassMaster  = "com.mirantis.docker.kubernetes.KubernetesMasterNode"
	ClassMinion  = "com.mirantis.docker.kubernetes.KubernetesMinionNode"
	ClassGateway = "com.mirantis.docker.kubernetes.KubernetesGatewayNode"
)

const (
	methodSetupEtcd         = "setupEtcd"
	methodSetupNode         = "setupNode"
	methodRemoveFromCluster = "removeFromCluster"
)

// Steps are the methods of the nodes of a task's clusters.
type Steps struct {
	*clusters.Clusters
	turns *turns
}

// turns lets one node of a cluster at a time be set up or removed: each of these connects to the cluster anew.
type turns struct {
	mutex sync.Mutex
	of    map[string]*sync.Mutex // by the ids of clusters
	done  map[string]string      // by node and extent: the nodes of the cluster when this task did it
}

// did reports whether the task has taken a node so far while the cluster had these nodes.
func (t *turns) did(key, among string) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.done[key] == among
}

// note notes that the task has taken a node so far.
func (t *turns) note(key, among string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.done[key] = among
}

// forget has every node be set up again, because one leaves and may come back.
func (t *turns) forget() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	clear(t.done)
}

// nodesOf identifies the nodes that a cluster is to have.
func nodesOf(cluster *muranopl.Object) string {
	var ids []string
	for _, node := range clusters.ActiveNodes(cluster) {
		ids = append(ids, node.Object.ID())
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// take waits for the turn of a caller, who calls done after it.
func (t *turns) take(cluster *muranopl.Object) (done func()) {
	t.mutex.Lock()
	turn := t.of[cluster.ID()]
	if turn == nil {
		turn = &sync.Mutex{}
		t.of[cluster.ID()] = turn
	}
	t.mutex.Unlock()
	turn.Lock()
	return turn.Unlock
}

// New returns the methods of the nodes of a task's clusters.
func New(c *clusters.Clusters) Steps {
	return Steps{c, &turns{of: map[string]*sync.Mutex{}, done: map[string]string{}}}
}

// Methods are the methods of each class of nodes.
func (s Steps) Methods() map[string]map[string]muranopl.NativeMethod {
	setup := func(more map[string]muranopl.NativeMethod) map[string]muranopl.NativeMethod {
		more[methodSetupEtcd], more[methodSetupNode] = s.setUp(nodes.ToEtcd), s.setUp(nodes.ToNode)
		return more
	}
	return map[string]map[string]muranopl.NativeMethod{
		task.ClassNode: {"deployInstance": s.deployInstance, "setupCalico": s.setUpNetwork(nodes.Calico), "setupFlannel": s.setUpNetwork(nodes.Flannel)},
		ClassMaster:    setup(map[string]muranopl.NativeMethod{"isAvailable": s.isAvailable}),
		ClassMinion:    setup(map[string]muranopl.NativeMethod{methodRemoveFromCluster: s.remove}),
		ClassGateway:   setup(map[string]muranopl.NativeMethod{methodRemoveFromCluster: s.remove}),
	}
}

// clusterOf is the cluster that a node belongs to.
func clusterOf(call muranopl.Call) (*muranopl.Object, error) {
	cluster := call.Object.FindEmbedded(task.ClassCluster)
	switch {
	case cluster != nil:
		return cluster, nil
	case call.Object.FindEmbedded(task.ClassGateways) != nil:
		return nil, fault.New(fault.Invalid, "%s belongs to gateways without a cluster, which have no steps of their own: call deploy of %s", call.Object, task.ClassGateways)
	}
	return nil, fault.New(fault.Invalid, "%s belongs to no cluster, so that %s has nothing to work with: put it into masterNode, minionNodes or gatewayNodes of a %s",
		call.Object, call.Method.Name, task.ClassCluster)
}

// placed is a node's place in the list of its cluster; a first master has none.
type placed struct {
	clusters.List
	node *muranopl.Object
	at   int
}

// placeOf finds the list that a node is in.
func placeOf(cluster, node *muranopl.Object) (place placed, found bool) {
	for _, list := range clusters.Lists(cluster) {
		if at := slices.Index(list.All(), node); at >= 0 {
			return placed{list, node, at}, true
		}
	}
	return placed{}, false
}

// runs reports whether the node is one of those that the model counts.
func (p placed) runs() bool { return p.at < p.Size() }

// fewest is the number of nodes of the list that have to stay.
func (p placed) fewest() int {
	if p.Property == clusters.Grouped.Property {
		return desired.ReadGroup(p.Of).Fewest()
	}
	if limits := task.Desired(p.Of).GatewayLimits; limits != nil && p.Role == nodes.Gateway {
		return limits.Minimum
	}
	return p.Fewest
}

// count moves the node to the end of the nodes that the model counts and changes their number by one; undo restores the former list.
func (p placed) count(change int) (undo func() error, err error) {
	former, size := p.All(), p.Size()
	order := slices.Delete(slices.Clone(former), p.at, p.at+1)
	if change > 0 {
		order = slices.Insert(order, size, p.node)
	} else {
		order = append(order, p.node)
	}
	set := func(order []*muranopl.Object, size int) error {
		if err := p.Of.SetObjects(p.Property, order); err != nil {
			return err
		}
		return p.Of.Set(p.CountProperty, int64(size))
	}
	return func() error { return set(former, size) }, set(order, size+change)
}

// include makes the model count a node that is in a list and not among its first ones.
func (s Steps) include(ctx context.Context, cluster, node *muranopl.Object) error {
	place, found := placeOf(cluster, node)
	if !found || place.runs() {
		return nil
	}
	if place.Role == nodes.Master {
		return fault.New(fault.Invalid, "%s is beyond the %d masters of cluster %s: set their number with scale, group masters", node, cluster.Int(clusters.Masters.CountProperty), cluster.Text("name"))
	}
	if _, err := place.count(1); err != nil {
		return err
	}
	s.Reports.Inform(ctx, cluster, "The cluster counts one %s more: %s", place.Noun, node.Object("instance").Text("name"))
	return nil
}

// deployInstance makes the node's server. One change of the stack makes the servers of all nodes that the model counts.
func (s Steps) deployInstance(ctx context.Context, call muranopl.Call) (any, error) {
	cluster, err := clusterOf(call)
	if err != nil {
		return nil, err
	}
	defer s.turns.take(cluster)()
	if err := s.include(ctx, cluster, call.Object); err != nil {
		return nil, err
	}
	if err := clusters.DeploymentsOf(s.Clusters).MakeServers(ctx, call.Interpreter, cluster); err != nil {
		return nil, err
	}
	_, err = call.Interpreter.Invoke(ctx, call.Object.Object("instance"), task.MethodEndDeploy, nil)
	return nil, err
}

// setUp takes a node so far.
func (s Steps) setUp(extent nodes.Extent) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		cluster, err := clusterOf(call)
		if err != nil {
			return nil, err
		}
		defer s.turns.take(cluster)()
		if err := s.include(ctx, cluster, call.Object); err != nil {
			return nil, err
		}
		key, among := call.Object.ID()+" "+string(extent), nodesOf(cluster)
		if s.turns.did(key, among) {
			return nil, nil
		}
		if err := clusters.DeploymentsOf(s.Clusters).SetUp(ctx, call.Interpreter, cluster, call.Object, extent); err != nil {
			return nil, err
		}
		s.turns.note(key, among)
		return nil, nil
	}
}

// setUpNetwork connects a node to the network of pods, and refuses another network than the cluster's.
func (s Steps) setUpNetwork(kind nodes.Network) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		cluster, err := clusterOf(call)
		if err != nil {
			return nil, err
		}
		if flannel, _ := cluster.Get("useFlannel"); (flannel == true) != (kind == nodes.Flannel) {
			return nil, fault.New(fault.Invalid, "%s of %s: useFlannel of cluster %s is %v, and a cluster has one network of pods: call the other method", call.Method.Name, call.Object,
				cluster.Text("name"), flannel)
		}
		return s.setUp(nodes.ToNetwork)(ctx, call)
	}
}

// remove lets a node leave the cluster, and deletes its server. From then on the model does not count it: it is the last one of its list.
func (s Steps) remove(ctx context.Context, call muranopl.Call) (any, error) {
	cluster, err := clusterOf(call)
	if err != nil {
		return nil, err
	}
	defer s.turns.take(cluster)()
	place, found := placeOf(cluster, call.Object)
	if !found {
		return nil, fault.New(fault.Invalid, "%s is in no list of nodes of cluster %s", call.Object, cluster.Text("name"))
	}
	name, err := clusters.NodeNamesOf(s.Clusters).NameOf(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	undo := func() error { return nil }
	if place.runs() {
		if fewest := place.fewest(); place.Size() <= fewest {
			return nil, fault.New(fault.Conflict, "%s cannot leave cluster %s: at least %d %s must remain, and %d are there", name, cluster.Text("name"), fewest, place.Noun, place.Size())
		}
		if undo, err = place.count(-1); err != nil {
			return nil, err
		}
	}
	s.turns.forget()
	if err := clusters.DeploymentsOf(s.Clusters).Leave(ctx, call.Interpreter, cluster, name); err != nil {
		if undone := undo(); undone != nil {
			s.Reports.Logger.WarnContext(ctx, "the model does not count a node that is there", "cluster", cluster.ID(), "node", name, "error", undone)
		}
		return nil, err
	}
	return nil, nil
}

// isAvailable reports whether the API server of a master is ready. A cluster that was never up has none.
func (s Steps) isAvailable(ctx context.Context, call muranopl.Call) (any, error) {
	cluster, err := clusterOf(call)
	if err != nil {
		return nil, err
	}
	if err := s.EnsureOpen(ctx, cluster); err != nil {
		return nil, err
	}
	live, err := s.Live(cluster)
	if err != nil {
		return false, nil
	}
	name, err := clusters.NodeNamesOf(s.Clusters).NameOf(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	if err := live.Available(ctx, name); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.Reports.Logger.InfoContext(ctx, "a master is not available", "cluster", cluster.ID(), "master", name, "error", err)
		return false, nil
	}
	return true, nil
}
