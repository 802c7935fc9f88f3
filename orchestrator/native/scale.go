package native

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/workloads"
)

// Arguments of the scaling actions.
const (
	argumentCount    = "count"
	argumentSessions = "sessions"
)

// The words of scale for nodes of no group of minions; addGroup refuses them as names.
const (
	wordMasters  = "masters"
	wordMinions  = "minions"
	wordGateways = "gateways"
)

// pool is a kind of list of nodes whose first ones are there.
type pool struct {
	list, count string // properties
	role        nodes.Role
	fewest      int
	what        string
	most, least string // the reports at the limits
	beside      int    // nodes that count but are not in the list
}

// The ones of a cluster, at whose limits Murano's words are reported, and the one of a group.
var (
	minions  = pool{"minionNodes", "nodeCount", nodes.Minion, 1, "node", "The maximum number of nodes has been reached", "At least one node must be in cluster", 0}
	gateways = pool{"gatewayNodes", "gatewayCount", nodes.Gateway, 1, "gateway", "The maximum number of gateway nodes has been reached", "No gateway nodes that can be removed", 0}
	grouped  = pool{"nodes", "count", nodes.Minion, 0, "node of the group", "The maximum number of nodes has been reached", "The group has no nodes that can be removed", 0}
	// masters are the ones beside the first.
	masters = pool{list: "masterNodes", count: "masterCount", role: nodes.Master, what: "master", beside: 1}
)

// nodeList is such a list, with the object that has it: a cluster, or one of its groups.
type nodeList struct {
	pool
	of *muranopl.Object
}

// nodeLists are all of a cluster.
func nodeLists(cluster *muranopl.Object) []nodeList {
	if task.OnlyGateways(cluster) {
		return []nodeList{{gateways, cluster}}
	}
	lists := []nodeList{{masters, cluster}, {minions, cluster}}
	for _, group := range cluster.Objects(propertyGroups) {
		lists = append(lists, nodeList{grouped, group})
	}
	return append(lists, nodeList{gateways, cluster})
}

func (l nodeList) all() []*muranopl.Object { return l.of.Objects(l.list) }

// size is how many nodes are to run.
func (l nodeList) size() int { return min(l.of.Int(l.count)-l.beside, len(l.all())) }

// active lists the nodes that are to run, and idle the others.
func (l nodeList) active() []*muranopl.Object { return l.all()[:l.size()] }

func (l nodeList) idle() []*muranopl.Object { return l.all()[l.size():] }

// limit is how many may run, and the source of that limit.
func (l nodeList) limit() (most int, said string) {
	if l.list == grouped.list {
		most = l.of.Int(propertyMaximum)
		return most, fmt.Sprintf("the maximum of group %s is %d", l.of.Text("name"), most)
	}
	return len(l.all()), fmt.Sprintf("%s lists %d", l.list, len(l.all()))
}

// listed finds the list that an action is about.
type listed func(call muranopl.Call) (nodeList, error)

// ofCluster is for the actions on a list of the cluster's own.
func ofCluster(p pool) listed {
	return func(call muranopl.Call) (nodeList, error) { return nodeList{p, call.Object}, nil }
}

// nodeScaling changes the numbers of nodes of a cluster, by actions and by load.
type nodeScaling struct{ clusterClass }

func nodeScalingOf(c clusterClass) nodeScaling { return nodeScaling{c} }

// scale is the action that sets the number of nodes of a group, or its limits. When it fails, the model does not change, so that the same action goes on.
func (c nodeScaling) scale(ctx context.Context, call muranopl.Call) (any, error) {
	volumeLossesOf(c.clusters).allowLoss(call)
	named, _ := call.Args[argumentGroup].(string)
	l, err := ofGroup(call)
	switch {
	case err == nil: // a group that a former version has called masters, too
		err = notOf(call, named, argumentSessions)
		if err == nil {
			err = c.scaleGroup(ctx, call, l)
		}
	case named == wordMasters:
		err = notOf(call, named, propertyMinimum, propertyMaximum, propertyAfter, argumentSessions)
		if err == nil {
			err = c.scaleMasters(ctx, call)
		}
	case named == wordMinions:
		err = notOf(call, named, propertyMinimum, propertyMaximum, propertyAfter, argumentSessions)
		if count, given := call.Args[argumentCount].(int64); err == nil && given {
			l := nodeList{minions, call.Object}
			err = c.resizeTo(ctx, call, l, l.all(), c.within(ctx, call, l, count))
		}
	case named == wordGateways:
		err = notOf(call, named, propertyMaximum)
		if err == nil {
			err = c.scaleGateways(ctx, call)
		}
	}
	return nil, err
}

// notOf refuses arguments that the nodes of a group do not have.
func notOf(call muranopl.Call, group string, arguments ...string) error {
	for _, one := range arguments {
		if call.Args[one] != nil {
			return fault.New(fault.Invalid, "%s is no setting of %s: leave it out", one, group)
		}
	}
	return nil
}

// limited reports whether a call sets limits.
func limited(call muranopl.Call) bool {
	return slices.ContainsFunc([]string{propertyMinimum, propertyMaximum, propertyAfter, argumentSessions}, func(one string) bool { return call.Args[one] != nil })
}

// scaleGroup scales a group of minions.
func (c nodeScaling) scaleGroup(ctx context.Context, call muranopl.Call, l nodeList) error {
	undo, err := c.setLimits(ctx, l.of, call, map[string]string{propertyMinimum: propertyMinimum, propertyMaximum: propertyMaximum, propertyAfter: propertyAfter})
	if err != nil {
		return err
	}
	group := desired.ReadGroup(l.of)
	if err := group.CheckLimits(); err != nil {
		undo()
		return fault.New(fault.Invalid, "%s", err)
	}
	l.fewest = group.Fewest()
	count := group.Count
	if asked, given := call.Args[argumentCount].(int64); given {
		count = c.within(ctx, call, l, asked)
	}
	if group.Elastic() {
		count = group.Between(count)
	}
	if count > group.Maximum {
		undo()
		return fault.New(fault.Invalid, "group %s has %d nodes, more than the maximum of %d: have it have fewer first, or give it a minimum too", group.Name, count, group.Maximum)
	}
	return c.resizeLimited(ctx, call, l, count, undo)
}

// scaleGateways scales the gateways.
func (c nodeScaling) scaleGateways(ctx context.Context, call muranopl.Call) error {
	undo, err := c.setLimits(ctx, call.Object, call, map[string]string{propertyMinimum: propertyFewest, argumentSessions: propertySessions, propertyAfter: propertyGatewayAfter})
	if err != nil {
		return err
	}
	wanted := task.Desired(call.Object)
	if err := wanted.CheckGatewayLimits(); err != nil {
		undo()
		return fault.New(fault.Invalid, "%s", err)
	}
	l := nodeList{gateways, call.Object}
	count := l.size()
	if asked, given := call.Args[argumentCount].(int64); given {
		count = c.within(ctx, call, l, asked)
	}
	if limits := wanted.GatewayLimits; limits != nil {
		count = limits.Between(count)
	}
	return c.resizeLimited(ctx, call, l, count, undo)
}

// resizeLimited resizes a list whose limits were set; undo restores these on a failure.
func (c nodeScaling) resizeLimited(ctx context.Context, call muranopl.Call, l nodeList, count int, undo func()) error {
	resize := c.resizeTo
	if limited(call) {
		resize = c.fillAndResize
	}
	err := resize(ctx, call, l, l.all(), count)
	if err != nil {
		undo()
	}
	return err
}

// scaleUp is the action that adds nodes, as many as there may be.
func (c nodeScaling) scaleUp(find listed) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		l, err := find(call)
		if err != nil {
			return nil, err
		}
		count, _ := call.Args[argumentCount].(int64)
		return nil, c.resizeTo(ctx, call, l, l.all(), c.within(ctx, call, l, int64(l.size())+count))
	}
}

// scaleDown is the action that removes nodes: the last ones, or the named one.
func (c nodeScaling) scaleDown(find listed) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		volumeLossesOf(c.clusters).allowLoss(call)
		l, err := find(call)
		if err != nil {
			return nil, err
		}
		count, _ := call.Args[argumentCount].(int64)
		named, _ := call.Args[known.ArgumentNode].(string)
		active, list := l.active(), l.all()
		if named != "" {
			if count != 1 {
				return nil, fault.New(fault.Invalid, "count is %d and node is %s: name one node, or say how many go", count, named)
			}
			at, err := nodeNamesOf(c.clusters).named(ctx, active, named)
			if err != nil {
				return nil, fault.New(fault.Invalid, "%s is no %s of cluster %s: %s", named, l.what, call.Object.Text("name"), err)
			}
			// From now on it is the last one of all, so that the counts, which take from the front, leave it out.
			list = append(slices.Delete(slices.Clone(list), at, at+1), list[at])
		}
		return nil, c.resizeTo(ctx, call, l, list, c.within(ctx, call, l, int64(len(active))-count))
	}
}

// within is the number of nodes that a list gets when a caller asks for count. It warns at the limits of the list.
func (c nodeScaling) within(ctx context.Context, call muranopl.Call, l nodeList, count int64) int {
	now := l.size()
	if count > int64(now) {
		most, said := l.limit()
		target := int(min(count, int64(most)))
		if int64(target) < count {
			c.reports.Warn(ctx, call.Object, l.most, fmt.Sprintf("%s and %d are there, so that %d can be added: allow more for a larger cluster", said, now, max(target-now, 0)))
		}
		return max(target, now)
	}
	target := int(max(count, int64(l.fewest)))
	if int64(target) > count {
		c.reports.Warn(ctx, call.Object, l.least, fmt.Sprintf("%d are there, so that %d can be removed", now, max(now-target, 0)))
	}
	return min(target, now)
}

// resizeTo resizes a list to its first nodes in this order, unless it has that number of nodes.
func (c nodeScaling) resizeTo(ctx context.Context, call muranopl.Call, l nodeList, order []*muranopl.Object, count int) error {
	if count == l.size() {
		return nil
	}
	return c.fillAndResize(ctx, call, l, order, count)
}

// fillAndResize is resizeTo where a deployment may be needed for the same number of nodes, as with other limits.
func (c nodeScaling) fillAndResize(ctx context.Context, call muranopl.Call, l nodeList, order []*muranopl.Object, count int) error {
	if l.list == grouped.list && count > len(order) {
		if err := c.clusters.groups.fill(ctx, call.Interpreter, l.of, count); err != nil {
			return err
		}
		order = l.all()
	}
	return c.resize(ctx, call, resizing{l, order, count})
}

// resizing is the wanted state of a list of nodes: its nodes, of which so many run.
type resizing struct {
	nodeList
	order []*muranopl.Object
	count int
}

func (r resizing) set() error {
	if err := r.of.SetObjects(r.list, r.order); err != nil {
		return err
	}
	return r.of.Set(r.nodeList.count, int64(r.count))
}

// resize deploys the cluster with other nodes in these lists. When that fails, the model does not change, so the same action goes on where it
// stopped, and a deployment of the environment restores the former nodes.
func (c nodeScaling) resize(ctx context.Context, call muranopl.Call, changes ...resizing) (err error) {
	defer c.clusters.Close()
	var former []resizing
	gateways := false
	for _, one := range changes {
		former = append(former, resizing{one.nodeList, one.all(), one.of.Int(one.nodeList.count)})
		gateways = gateways || one.role == nodes.Gateway
		err = errors.Join(err, one.set())
	}
	if err == nil {
		err = c.redeploy(ctx, call, gateways)
	}
	if err != nil {
		for _, one := range former {
			if undo := one.set(); undo != nil {
				c.reports.Logger.WarnContext(ctx, "the model keeps nodes that are not there", "cluster", call.Object.ID(), "error", undo)
			}
		}
	}
	return err
}

// redeploy deploys the cluster, and the objects that name its gateways when these are others.
func (c nodeScaling) redeploy(ctx context.Context, call muranopl.Call, otherGateways bool) error {
	if _, err := call.Interpreter.Invoke(ctx, call.Object, task.MethodDeploy, nil); err != nil {
		return err
	}
	if !otherGateways {
		return nil
	}
	return c.updateRoutes(ctx, call)
}

// updateRoutes deploys the applications of a cluster again that publish the addresses of its gateways. Routes of gateways of their own only update them.
func (c nodeScaling) updateRoutes(ctx context.Context, call muranopl.Call) error {
	if task.OnlyGateways(call.Object) {
		return workloads.UpdateEndpoints(ctx, c.clusters.runtime, c.clusters.objects, call.Object, gatewayAddresses(call.Object))
	}
	var pods []*muranopl.Object
	for _, pod := range c.objects.All(task.ClassPod) {
		if pod.Object("kubernetesCluster") == call.Object {
			pods = append(pods, pod)
		}
	}
	return task.Each(pods, func(pod *muranopl.Object) error {
		_, err := call.Interpreter.Invoke(ctx, pod, task.MethodDeploy, nil)
		return err
	})
}
