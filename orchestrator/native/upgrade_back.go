package native

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
)

// upgradeBack is the action that gives the nodes that an upgrade has changed their former images back, as long as Kubernetes allows it: before the last
// API server of the former version is gone, or where the minor version is the same.
func (c clusterClass) upgradeBack(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.close()
	c.clusters.allowLoss(call)
	object, task := call.Object, c.clusters.runtime.TaskID()
	known, err := c.clusters.upgradeOf(ctx, object)
	if err != nil {
		return nil, err
	}
	if known == nil {
		return nil, fault.New(fault.Invalid, "No upgrade of cluster %s has begun that could go back", object.Text("name"))
	}
	if known.State != upgradeBacks {
		if err := c.mayGoBack(ctx, object, known); err != nil {
			return nil, err
		}
		known.State = upgradeBacks
	}
	known.Task = task
	if err := c.clusters.keepUpgrade(ctx, object, known); err != nil {
		return nil, err
	}
	if !known.Turned {
		for i := range known.Nodes {
			if known.Nodes[i].State != nodeChanges {
				continue
			}
			turned, err := c.clusters.turnBack(ctx, object, known.Nodes[i])
			if err != nil {
				return nil, err
			}
			if !turned {
				known.Nodes[i].State = nodeDone // soon, and then it is replaced again
			}
		}
		known.Turned = true
		if err := c.clusters.keepUpgrade(ctx, object, known); err != nil {
			return nil, err
		}
	}
	c.reports.inform(ctx, object, "Cluster %s goes back to the images that it had before the upgrade to %s", object.Text("name"), known.ImageName)
	return nil, c.goOn(ctx, call, known)
}

// mayGoBack returns the reason why an upgrade cannot go back.
func (c clusterClass) mayGoBack(ctx context.Context, object *muranopl.Object, known *Upgrade) error {
	from, to := parseKubernetes(known.From), parseKubernetes(known.Kubernetes)
	if from == nil || to == nil || above(to, from) == 0 {
		return nil
	}
	for _, node := range known.Nodes {
		if node.Role != nodes.Master || node.State == nodeDone {
			continue
		}
		one := c.objects.find(node.Instance)
		if one == nil {
			continue
		}
		has, err := c.clusters.successions.of(ctx, one)
		if err != nil {
			return err
		}
		if node.State == nodeWaits || has.replacing() && !has.Leaves && !has.Gone {
			return nil
		}
	}
	snapshot := ""
	if known.Snapshot != "" {
		snapshot = fmt.Sprintf(" Snapshot %s, from before the upgrade, can be restored into a new cluster of the former image.", known.Snapshot)
	}
	return fault.New(fault.Conflict, "Cluster %s cannot go back to Kubernetes %s: its last API server of that version is gone, or has begun to go, and Kubernetes does not go back. "+
		"Go on with the upgrade (the action upgrade).%s", object.Text("name"), known.From, snapshot)
}

// turnBack takes back that a node gets another server, where the former one is still there: the new one leaves in its place, if it has come
// so far that the cluster knows it.
func (c *clusters) turnBack(ctx context.Context, object *muranopl.Object, node UpgradeNode) (turned bool, err error) {
	instance := c.objects.find(node.Instance)
	if instance == nil {
		return true, nil
	}
	known, err := c.successions.of(ctx, instance)
	if err != nil || !known.replacing() || known.Current < known.Former { // turned back before, or not begun
		return true, err
	}
	if known.Gone || known.Leaves {
		return false, nil
	}
	names, err := c.names(ctx)
	if err != nil {
		return false, err
	}
	current := names.server(instance, known, known.Current)
	facts, err := c.facts(ctx, object)
	if err != nil {
		return false, err
	}
	if _, came := facts.node(current.name()); !came || known.First {
		c.reports.inform(ctx, object, "%s: given up, the former server stays as it is", current.name())
		return true, c.successions.keep(ctx, instance, succession{Current: known.Former})
	}
	c.reports.inform(ctx, object, "%s leaves again, and the former server stays", current.name())
	return true, c.successions.keep(ctx, instance, succession{Current: known.Former, Former: known.Current, FormerName: current.name(), Moved: !known.Moved, Task: known.Task})
}
