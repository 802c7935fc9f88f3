// Package resizing has the actions that change the number of a cluster's nodes: by hand, by load, groups, and machines outside the cloud.
package resizing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/routes"
	"github.com/burano/burano/orchestrator/task"
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

// listed finds the list that an action is about.
type listed func(call muranopl.Call) (clusters.List, error)

// ofCluster is for the actions on a list of the cluster's own.
func ofCluster(p clusters.Pool) listed {
	return func(call muranopl.Call) (clusters.List, error) { return p.In(call.Object), nil }
}

// Scaling changes the numbers of nodes of a cluster, by actions and by load.
type Scaling struct{ *clusters.Clusters }

// New returns the actions on the numbers of nodes of clusters.
func New(c *clusters.Clusters) Scaling { return Scaling{c} }

// Actions are the actions of clusters that change the numbers of their nodes.
func (c Scaling) Actions() map[string]muranopl.NativeMethod {
	actions := c.GatewayActions()
	maps.Copy(actions, map[string]muranopl.NativeMethod{
		"scaleNodesUp": c.scaleUp(ofCluster(clusters.Minions)), "scaleNodesDown": c.scaleDown(ofCluster(clusters.Minions)),
		"scale": c.scale, "addGroup": c.addGroup, "removeGroup": c.removeGroup,
		"scaleGroupUp": c.scaleUp(ofGroup), "scaleGroupDown": c.scaleDown(ofGroup),
		known.ScaleByLoad: c.scaleByLoad, known.ScaleGatewaysByLoad: c.scaleGatewaysByLoad,
		"addExternalNode": c.addExternalNode, "removeExternalNode": c.removeExternalNode,
	})
	return actions
}

// GatewayActions are those of gateways without a cluster.
func (c Scaling) GatewayActions() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"scaleGatewaysUp": c.scaleUp(ofCluster(clusters.Gateways)), "scaleGatewaysDown": c.scaleDown(ofCluster(clusters.Gateways))}
}

// scale is the action that sets the number of nodes of a group, or its limits. When it fails, the model does not change, so that the same action goes on.
func (c Scaling) scale(ctx context.Context, call muranopl.Call) (any, error) {
	clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
	named, _ := call.Args[clusters.ArgumentGroup].(string)
	l, err := ofGroup(call)
	switch {
	case err == nil: // a group that a former version has called masters, too
		err = notOf(call, named, argumentSessions)
		if err == nil {
			err = c.scaleGroup(ctx, call, l)
		}
	case named == wordMasters:
		err = notOf(call, named, propertyMinimum, clusters.PropertyMaximum, propertyAfter, argumentSessions)
		if err == nil {
			err = c.scaleMasters(ctx, call)
		}
	case named == wordMinions:
		err = notOf(call, named, propertyMinimum, clusters.PropertyMaximum, propertyAfter, argumentSessions)
		if count, given := call.Args[argumentCount].(int64); err == nil && given {
			l := clusters.Minions.In(call.Object)
			err = c.resizeTo(ctx, call, l, l.All(), c.within(ctx, call, l, count))
		}
	case named == wordGateways:
		err = notOf(call, named, clusters.PropertyMaximum)
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
	return slices.ContainsFunc([]string{propertyMinimum, clusters.PropertyMaximum, propertyAfter, argumentSessions}, func(one string) bool { return call.Args[one] != nil })
}

// scaleGroup scales a group of minions.
func (c Scaling) scaleGroup(ctx context.Context, call muranopl.Call, l clusters.List) error {
	undo, err := c.setLimits(ctx, l.Of, call, map[string]string{propertyMinimum: propertyMinimum, clusters.PropertyMaximum: clusters.PropertyMaximum, propertyAfter: propertyAfter})
	if err != nil {
		return err
	}
	group := desired.ReadGroup(l.Of)
	if err := group.CheckLimits(); err != nil {
		undo()
		return fault.New(fault.Invalid, "%s", err)
	}
	l.Fewest = group.Fewest()
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
func (c Scaling) scaleGateways(ctx context.Context, call muranopl.Call) error {
	undo, err := c.setLimits(ctx, call.Object, call, map[string]string{propertyMinimum: propertyFewest, argumentSessions: propertySessions, propertyAfter: propertyGatewayAfter})
	if err != nil {
		return err
	}
	wanted := task.Desired(call.Object)
	if err := wanted.CheckGatewayLimits(); err != nil {
		undo()
		return fault.New(fault.Invalid, "%s", err)
	}
	l := clusters.Gateways.In(call.Object)
	count := l.Size()
	if asked, given := call.Args[argumentCount].(int64); given {
		count = c.within(ctx, call, l, asked)
	}
	if limits := wanted.GatewayLimits; limits != nil {
		count = limits.Between(count)
	}
	return c.resizeLimited(ctx, call, l, count, undo)
}

// resizeLimited resizes a list whose limits were set; undo restores these on a failure.
func (c Scaling) resizeLimited(ctx context.Context, call muranopl.Call, l clusters.List, count int, undo func()) error {
	resize := c.resizeTo
	if limited(call) {
		resize = c.fillAndResize
	}
	err := resize(ctx, call, l, l.All(), count)
	if err != nil {
		undo()
	}
	return err
}

// scaleUp is the action that adds nodes, as many as there may be.
func (c Scaling) scaleUp(find listed) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		l, err := find(call)
		if err != nil {
			return nil, err
		}
		count, _ := call.Args[argumentCount].(int64)
		return nil, c.resizeTo(ctx, call, l, l.All(), c.within(ctx, call, l, int64(l.Size())+count))
	}
}

// scaleDown is the action that removes nodes: the last ones, or the named one.
func (c Scaling) scaleDown(find listed) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
		l, err := find(call)
		if err != nil {
			return nil, err
		}
		count, _ := call.Args[argumentCount].(int64)
		named, _ := call.Args[known.ArgumentNode].(string)
		active, list := l.Active(), l.All()
		if named != "" {
			if count != 1 {
				return nil, fault.New(fault.Invalid, "count is %d and node is %s: name one node, or say how many go", count, named)
			}
			at, err := clusters.NodeNamesOf(c.Clusters).Named(ctx, active, named)
			if err != nil {
				return nil, fault.New(fault.Invalid, "%s is no %s of cluster %s: %s", named, l.Noun, call.Object.Text("name"), err)
			}
			// From now on it is the last one of all, so that the counts, which take from the front, leave it out.
			list = append(slices.Delete(slices.Clone(list), at, at+1), list[at])
		}
		return nil, c.resizeTo(ctx, call, l, list, c.within(ctx, call, l, int64(len(active))-count))
	}
}

// within is the number of nodes that a list gets when a caller asks for count. It warns at the limits of the list.
func (c Scaling) within(ctx context.Context, call muranopl.Call, l clusters.List, count int64) int {
	now := l.Size()
	if count > int64(now) {
		most, said := l.Limit()
		target := int(min(count, int64(most)))
		if int64(target) < count {
			c.Reports.Warn(ctx, call.Object, l.Most, fmt.Sprintf("%s and %d are there, so that %d can be added: allow more for a larger cluster", said, now, max(target-now, 0)))
		}
		return max(target, now)
	}
	target := int(max(count, int64(l.Fewest)))
	if int64(target) > count {
		c.Reports.Warn(ctx, call.Object, l.Least, fmt.Sprintf("%d are there, so that %d can be removed", now, max(now-target, 0)))
	}
	return min(target, now)
}

// resizeTo resizes a list to its first nodes in this order, unless it has that number of nodes.
func (c Scaling) resizeTo(ctx context.Context, call muranopl.Call, l clusters.List, order []*muranopl.Object, count int) error {
	if count == l.Size() {
		return nil
	}
	return c.fillAndResize(ctx, call, l, order, count)
}

// fillAndResize is resizeTo where a deployment may be needed for the same number of nodes, as with other limits.
func (c Scaling) fillAndResize(ctx context.Context, call muranopl.Call, l clusters.List, order []*muranopl.Object, count int) error {
	if l.Property == clusters.Grouped.Property && count > len(order) {
		if err := c.Groups.Fill(ctx, call.Interpreter, l.Of, count); err != nil {
			return err
		}
		order = l.All()
	}
	return c.resize(ctx, call, sizing{l, order, count})
}

// sizing is the wanted state of a list of nodes: its nodes, of which so many run.
type sizing struct {
	clusters.List
	order []*muranopl.Object
	count int
}

func (r sizing) set() error {
	if err := r.Of.SetObjects(r.Property, r.order); err != nil {
		return err
	}
	return r.Of.Set(r.List.CountProperty, int64(r.count))
}

// resize deploys the cluster with other nodes in these lists. When that fails, the model does not change, so the same action goes on where it
// stopped, and a deployment of the environment restores the former nodes.
func (c Scaling) resize(ctx context.Context, call muranopl.Call, changes ...sizing) (err error) {
	defer c.Close()
	var former []sizing
	gateways := false
	for _, one := range changes {
		former = append(former, sizing{one.List, one.All(), one.Of.Int(one.List.CountProperty)})
		gateways = gateways || one.Role == nodes.Gateway
		err = errors.Join(err, one.set())
	}
	if err == nil {
		err = c.Redeploy(ctx, call, gateways)
	}
	if err != nil {
		for _, one := range former {
			if undo := one.set(); undo != nil {
				c.Reports.Logger.WarnContext(ctx, "the model keeps nodes that are not there", "cluster", call.Object.ID(), "error", undo)
			}
		}
	}
	return err
}

// Redeploy deploys the cluster, and the objects that name its gateways when these are others.
func (c Scaling) Redeploy(ctx context.Context, call muranopl.Call, otherGateways bool) error {
	if _, err := call.Interpreter.Invoke(ctx, call.Object, task.MethodDeploy, nil); err != nil {
		return err
	}
	if !otherGateways {
		return nil
	}
	return c.UpdateRoutes(ctx, call)
}

// UpdateRoutes deploys the applications of a cluster again that publish the addresses of its gateways. Routes of gateways of their own only update them.
func (c Scaling) UpdateRoutes(ctx context.Context, call muranopl.Call) error {
	if task.OnlyGateways(call.Object) {
		return routes.UpdateEndpoints(ctx, c.Runtime, c.Objects, call.Object, clusters.GatewayAddresses(call.Object))
	}
	var pods []*muranopl.Object
	for _, pod := range c.Objects.All(task.ClassPod) {
		if pod.Object("kubernetesCluster") == call.Object {
			pods = append(pods, pod)
		}
	}
	return task.Each(pods, func(pod *muranopl.Object) error {
		_, err := call.Interpreter.Invoke(ctx, pod, task.MethodDeploy, nil)
		return err
	})
}

// ofGroup is for the actions on the group that is named.
func ofGroup(call muranopl.Call) (clusters.List, error) {
	named, _ := call.Args[clusters.ArgumentGroup].(string)
	var names []string
	for _, group := range call.Object.Objects(clusters.PropertyGroups) {
		if group.Text("name") == named {
			list := clusters.Grouped.In(group)
			list.Fewest = desired.ReadGroup(group).Fewest()
			return list, nil
		}
		names = append(names, group.Text("name"))
	}
	there := "it has none"
	if len(names) > 0 {
		there = "there are " + strings.Join(names, ", ")
	}
	return clusters.List{}, fault.New(fault.Invalid, "%s is no group of cluster %s: %s", named, call.Object.Text("name"), there)
}

// scaleMasters sets the number of masters. When it fails, the model does not change, so the same action goes on where it stopped, and a deployment of
// the environment restores the former masters.
func (c Scaling) scaleMasters(ctx context.Context, call muranopl.Call) error {
	defer c.Close()
	count, _ := call.Args[argumentCount].(int64)
	if !slices.Contains([]int64{1, 2, 3, 5}, count) {
		return fault.New(fault.Invalid, "a cluster has 1, 2, 3 or 5 masters: give one of these as count")
	}
	was := call.Object.Int(clusters.Masters.CountProperty)
	known, err := c.Masters.Known(ctx, call.Object)
	if err != nil {
		return err
	}
	if err := call.Object.Set(clusters.Masters.CountProperty, count); err != nil {
		return err
	}
	if err := c.Masters.Make(ctx, call.Interpreter, call.Object, known, max(int(count), len(call.Object.Objects(clusters.Masters.Property))+1)); err != nil {
		return err
	}
	err = c.Redeploy(ctx, call, false)
	if err != nil {
		if undo := call.Object.Set(clusters.Masters.CountProperty, int64(was)); undo != nil {
			c.Reports.Logger.WarnContext(ctx, "the model keeps masters that are not there", "cluster", call.Object.ID(), "error", undo)
		}
	}
	return err
}
