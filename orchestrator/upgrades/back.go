package upgrades

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
)

// upgradeBack is the action that gives the nodes that an upgrade has changed their former images back, as long as Kubernetes allows it: before the last
// API server of the former version is gone, or where the minor version is the same.
func (c Upgrades) upgradeBack(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
	object, task := call.Object, c.Runtime.TaskID()
	facts, err := clusters.UpgradesOf(c.Clusters).Current(ctx, object)
	if err != nil {
		return nil, err
	}
	if facts == nil {
		return nil, fault.New(fault.Invalid, "No upgrade of cluster %s has begun that could go back", object.Text("name"))
	}
	if facts.State != known.UpgradeBacks {
		if err := c.mayGoBack(ctx, object, facts); err != nil {
			return nil, err
		}
		facts.State = known.UpgradeBacks
	}
	facts.Task = task
	if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, facts); err != nil {
		return nil, err
	}
	if !facts.Turned {
		for i := range facts.Nodes {
			if facts.Nodes[i].State != known.NodeChanges {
				continue
			}
			turned, err := PlansOf(c.Clusters).turnBack(ctx, object, facts.Nodes[i])
			if err != nil {
				return nil, err
			}
			if !turned {
				facts.Nodes[i].State = known.NodeDone // soon, and then it is replaced again
			}
		}
		facts.Turned = true
		if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, facts); err != nil {
			return nil, err
		}
	}
	c.Reports.Inform(ctx, object, "Cluster %s goes back to the images that it had before the upgrade to %s", object.Text("name"), facts.ImageName)
	return nil, c.goOn(ctx, call, facts)
}

// mayGoBack returns the reason why an upgrade cannot go back.
func (c Upgrades) mayGoBack(ctx context.Context, object *muranopl.Object, facts *known.Upgrade) error {
	from, to := clusters.ParseKubernetes(facts.From), clusters.ParseKubernetes(facts.Kubernetes)
	if from == nil || to == nil || clusters.CompareVersions(to, from) == 0 {
		return nil
	}
	for _, node := range facts.Nodes {
		if node.Role != nodes.Master || node.State == known.NodeDone {
			continue
		}
		one := c.Objects.Find(node.Instance)
		if one == nil {
			continue
		}
		has, err := c.Successions.Of(ctx, one)
		if err != nil {
			return err
		}
		if node.State == known.NodeWaits || has.Replacing() && !has.Leaves && !has.Gone {
			return nil
		}
	}
	snapshot := ""
	if facts.Snapshot != "" {
		snapshot = fmt.Sprintf(" Snapshot %s, from before the upgrade, can be restored into a new cluster of the former image.", facts.Snapshot)
	}
	return fault.New(fault.Conflict, "Cluster %s cannot go back to Kubernetes %s: its last API server of that version is gone, or has begun to go, and Kubernetes does not go back. "+
		"Go on with the upgrade (the action upgrade).%s", object.Text("name"), facts.From, snapshot)
}

// turnBack takes back that a node gets another server, where the former one is still there: the new one leaves in its place, if it has come
// so far that the cluster knows it.
func (c Plans) turnBack(ctx context.Context, object *muranopl.Object, node known.UpgradeNode) (turned bool, err error) {
	instance := c.Objects.Find(node.Instance)
	if instance == nil {
		return true, nil
	}
	known, err := c.Successions.Of(ctx, instance)
	if err != nil || !known.Replacing() || known.Current < known.Former { // turned back before, or not begun
		return true, err
	}
	if known.Gone || known.Leaves {
		return false, nil
	}
	names, err := clusters.NodeNamesOf(c.Clusters).Names(ctx)
	if err != nil {
		return false, err
	}
	current := names.Server(instance, known, known.Current)
	facts, err := c.Facts(ctx, object)
	if err != nil {
		return false, err
	}
	if _, came := facts.Node(current.Name()); !came || known.First {
		c.Reports.Inform(ctx, object, "%s: given up, the former server stays as it is", current.Name())
		return true, c.Successions.Keep(ctx, instance, clusters.Succession{Current: known.Former})
	}
	c.Reports.Inform(ctx, object, "%s leaves again, and the former server stays", current.Name())
	return true, c.Successions.Keep(ctx, instance, clusters.Succession{Current: known.Former, Former: known.Current, FormerName: current.Name(), Moved: !known.Moved, Task: known.Task})
}
