package native

import (
	"context"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// Arguments of the scaling actions.
const (
	argumentCount = "count"
	argumentNode  = "node"
)

// pool is one of the two lists of a cluster whose first nodes are there.
type pool struct {
	list, count string // properties
	what        string
	most, least string // what is reported at the limits, in Murano's words
}

var (
	minions  = pool{"minionNodes", "nodeCount", "node", "The maximum number of nodes has been reached", "At least one node must be in cluster"}
	gateways = pool{"gatewayNodes", "gatewayCount", "gateway", "The maximum number of gateway nodes has been reached", "No gateway nodes that can be removed"}
)

// active lists the nodes of the pool that are to run.
func (p pool) active(cluster *muranopl.Object) []*muranopl.Object {
	all := cluster.Objects(p.list)
	return all[:min(cluster.Int(p.count), len(all))]
}

// scaleUp is the action that adds nodes of the pool, as many as its list still holds.
func (c clusterClass) scaleUp(p pool) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		count, _ := call.Args[argumentCount].(int64)
		now, listed := call.Object.Int(p.count), len(call.Object.Objects(p.list))
		target := int(min(int64(now)+count, int64(listed)))
		if int64(target) < int64(now)+count {
			c.reports.warn(ctx, call.Object, p.most, fmt.Sprintf("%s lists %d and %d are there, so that %d can be added: list more for a larger cluster", p.list, listed, now, target-now))
		}
		if target <= now {
			return nil, nil
		}
		return nil, c.resize(ctx, call, p, call.Object.Objects(p.list), target)
	}
}

// scaleDown is the action that removes nodes of the pool: the last ones, or the one that is named.
func (c clusterClass) scaleDown(p pool) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		count, _ := call.Args[argumentCount].(int64)
		named, _ := call.Args[argumentNode].(string)
		active, list := p.active(call.Object), call.Object.Objects(p.list)
		if named != "" {
			if count != 1 {
				return nil, fault.New(fault.Invalid, "count is %d and node is %s: name one node, or say how many go", count, named)
			}
			at, err := c.clusters.named(ctx, active, named)
			if err != nil {
				return nil, fault.New(fault.Invalid, "%s is no %s of cluster %s: %s", named, p.what, call.Object.Text("name"), err)
			}
			// From now on it is the last one of all, so that the counts, which take from the front, leave it out.
			list = append(slices.Delete(slices.Clone(list), at, at+1), list[at])
		}
		target := int(max(int64(len(active))-count, 1))
		if int64(target) > int64(len(active))-count {
			c.reports.warn(ctx, call.Object, p.least, fmt.Sprintf("%d are there, so that %d can be removed", len(active), len(active)-target))
		}
		if target >= len(active) {
			return nil, nil
		}
		return nil, c.resize(ctx, call, p, list, target)
	}
}

// resize deploys the cluster with other nodes of the pool. When that fails the model is left as it was, so that the same action goes
// on where it was, and a deployment of the environment brings the former nodes back.
func (c clusterClass) resize(ctx context.Context, call muranopl.Call, p pool, list []*muranopl.Object, count int) error {
	defer c.clusters.close()
	cluster := call.Object
	was, former := cluster.Objects(p.list), cluster.Int(p.count)
	set := func(list []*muranopl.Object, count int) error {
		values := make([]any, len(list))
		for i, node := range list {
			values[i] = node
		}
		if err := cluster.Set(p.list, values); err != nil {
			return err
		}
		return cluster.Set(p.count, int64(count))
	}
	if err := set(list, count); err != nil {
		return err
	}
	err := c.redeploy(ctx, call, p.list == gateways.list)
	if err != nil {
		if undo := set(was, former); undo != nil {
			c.reports.logger.WarnContext(ctx, "the model keeps nodes that are not there", "cluster", cluster.ID(), "error", undo)
		}
	}
	return err
}

// redeploy deploys the cluster, and what tells of its gateways when these are others.
func (c clusterClass) redeploy(ctx context.Context, call muranopl.Call, otherGateways bool) error {
	if _, err := call.Interpreter.Invoke(ctx, call.Object, methodDeploy, nil); err != nil {
		return err
	}
	if !otherGateways {
		return nil
	}
	// Applications tell by which gateways they can be reached.
	var pods []*muranopl.Object
	for _, pod := range c.objects.all(classPod) {
		if pod.Object("kubernetesCluster") == call.Object {
			pods = append(pods, pod)
		}
	}
	return each(pods, func(pod *muranopl.Object) error {
		_, err := call.Interpreter.Invoke(ctx, pod, methodDeploy, nil)
		return err
	})
}
