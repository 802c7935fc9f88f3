// Package upgrades plans the upgrades of clusters to other images, does them one node after another, and goes back.
package upgrades

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/resizing"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/task"
)

// An upgrade gives the nodes of a cluster servers of another image, one node after another. A node's image changes in the model when its turn comes, so
// that the model is true at each moment: deployments and repairs in the middle of an upgrade make nothing newer than allowed. The state of an upgrade is
// stored before each of its changes.

const (
	argumentImage      = "image"
	replacementsName   = "replacements" // how long nodes of each role took last, in seconds, as JSON
	assumedReplacement = 90             // seconds for a node, where nothing was measured
)

// Upgrades upgrade the nodes of a cluster to another image, one by one, and back.
type Upgrades struct{ *clusters.Clusters }

// New returns the upgrades of clusters.
func New(c *clusters.Clusters) Upgrades { return Upgrades{c} }

// Actions are the actions of clusters that upgrade them.
func (c Upgrades) Actions() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"upgrade": c.upgrade, "upgradeBack": c.upgradeBack}
}

// upgrade is the action that gives the nodes of a cluster servers of another image: masters, minions, gateways. Called again it goes on.
func (c Upgrades) upgrade(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
	named, _ := call.Args[argumentImage].(string)
	force, _ := call.Args["force"].(bool)
	object := call.Object
	facts, err := clusters.UpgradesOf(c.Clusters).Current(ctx, object)
	if err != nil {
		return nil, err
	}
	if facts == nil && named == "" {
		return nil, fault.New(fault.Invalid, "No upgrade of cluster %s has begun that could go on: say to which image", object.Text("name"))
	}
	var image openstack.NodeImage
	if named != "" {
		project, err := c.Runtime.Project(ctx)
		if err != nil {
			return nil, err
		}
		if image, err = project.Image(ctx, named); err != nil {
			return nil, err
		}
	}
	if facts != nil {
		if named != "" && image.ID != facts.Image {
			return nil, fault.New(fault.Conflict, "Cluster %s is being upgraded to image %s (%s) already: go on with that (upgrade without an image) or go back (upgradeBack) first",
				object.Text("name"), facts.ImageName, facts.Image)
		}
		if facts.State == known.UpgradeBacks && facts.Task != c.Runtime.TaskID() {
			return nil, fault.New(fault.Conflict, "Cluster %s goes back from its upgrade to image %s: call upgradeBack again, which ends that", object.Text("name"), facts.ImageName)
		}
		if facts.Task != c.Runtime.TaskID() { // else this task was taken over, and may be asked to pause
			facts.State, facts.Task = known.UpgradeRuns, c.Runtime.TaskID()
		}
		if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, facts); err != nil {
			return nil, err
		}
		return nil, c.goOn(ctx, call, facts)
	}
	plan, err := PlansOf(c.Clusters).PlanUpgrade(ctx, object, image)
	if err != nil {
		return nil, err
	}
	if err := plan.refusal(force); err != nil {
		return nil, err
	}
	if len(plan.Nodes) == 0 {
		c.Reports.Inform(ctx, object, "All nodes of cluster %s have image %s already: nothing was changed", object.Text("name"), image.Name)
		return nil, nil
	}
	for _, line := range plan.lines() {
		c.Reports.Inform(ctx, object, "%s", line)
	}
	facts = &known.Upgrade{Image: image.ID, ImageName: image.Name, From: plan.From, Kubernetes: plan.Kubernetes, Began: time.Now().UTC(), State: known.UpgradeRuns,
		Nodes: plan.turns, Task: c.Runtime.TaskID()}
	if facts.Snapshot, err = c.saveUpgrade(ctx, object, plan); err != nil {
		return nil, err
	}
	if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, facts); err != nil {
		return nil, err
	}
	return nil, c.goOn(ctx, call, facts)
}

// saveUpgrade takes the snapshot without which no upgrade begins.
func (c Upgrades) saveUpgrade(ctx context.Context, object *muranopl.Object, plan *Plan) (id string, err error) {
	if c.Settings.Snapshots == nil {
		return "", nil
	}
	cluster, facts, err := c.Former(ctx, object)
	if err != nil {
		return "", err
	}
	defer cluster.Close()
	of := clusters.StatesOf(c.Clusters).Subject(ctx, object, facts, store.BeforeChange, fmt.Sprintf("before the upgrade from %s to %s", plan.From, plan.Kubernetes))
	taken, err := known.SnapshotOf(ctx, c.Settings.Snapshots, cluster, of, cluster.Snapshot)
	if err != nil {
		return "", fmt.Errorf("no snapshot can be taken, without which no upgrade begins: %w", err)
	}
	c.Reports.Inform(ctx, object, "Snapshot %s of the cluster was taken, %d bytes, and opens", taken.ID, taken.Size)
	return taken.ID, nil
}

// goOn does the rest of an upgrade. A failed one is like a paused one.
func (c Upgrades) goOn(ctx context.Context, call muranopl.Call, facts *known.Upgrade) error {
	err := c.takeTurns(ctx, call, facts)
	if err == nil || facts.State != known.UpgradeRuns || ctx.Err() != nil { // whose context has ended may be taken over, and goes on then
		return err
	}
	facts.State = known.UpgradePaused
	return errors.Join(err, clusters.UpgradesOf(c.Clusters).Keep(ctx, call.Object, facts))
}

func (c Upgrades) takeTurns(ctx context.Context, call muranopl.Call, facts *known.Upgrade) error {
	object := call.Object
	back := facts.State == known.UpgradeBacks
	if err := c.show(ctx, call.Interpreter, object, facts); err != nil {
		return err
	}
	// The cluster of the model, with the changes that were begun.
	if _, err := call.Interpreter.Invoke(ctx, object, task.MethodDeploy, nil); err != nil {
		return err
	}
	if !back {
		giveTurns(facts, clusters.ActiveNodes(object))
	}
	for i := range facts.Nodes {
		node := &facts.Nodes[i]
		ended := known.NodeDone
		if back {
			ended = known.NodeWaits
		}
		if node.State == ended {
			continue
		}
		began, over := node.State == known.NodeChanges, false
		if began { // the deployment may have done it
			one, there, err := c.memberOf(ctx, object, node)
			if err != nil {
				return err
			}
			over = !there || !one.Replacing
		}
		if !over {
			if paused, err := clusters.UpgradesOf(c.Clusters).Halts(ctx, object); err != nil || paused {
				return err
			}
		}
		if !began {
			node.State = known.NodeChanges
			if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, facts); err != nil {
				return err
			}
			if err := c.show(ctx, call.Interpreter, object, facts); err != nil {
				return err
			}
		}
		if !over {
			done, err := c.turn(ctx, call.Interpreter, object, node)
			if err != nil {
				return fmt.Errorf("upgrade %s: %w", node.Name, err)
			}
			if !done {
				return nil // paused
			}
		}
		node.State = ended
		if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, facts); err != nil {
			return err
		}
		c.Reports.Inform(ctx, object, "%s is done: %d of %d", node.Name, i+1, len(facts.Nodes))
	}
	if !back {
		c.recordImages(object, facts)
	}
	if err := c.hold(ctx, object, false); err != nil {
		return err
	}
	if err := clusters.UpgradesOf(c.Clusters).Keep(ctx, object, nil); err != nil {
		return err
	}
	if back {
		c.Reports.Inform(ctx, object, "Cluster %s is back on Kubernetes %s", object.Text("name"), facts.From)
	} else {
		c.Reports.Inform(ctx, object, "Cluster %s is upgraded to Kubernetes %s (image %s)", object.Text("name"), cmp.Or(facts.Kubernetes, "of the image"), facts.ImageName)
	}
	return resizing.New(c.Clusters).UpdateRoutes(ctx, call)
}

// giveTurns gives turns to nodes that have come since the upgrade began.
func giveTurns(u *known.Upgrade, active []clusters.ActiveNode) {
	for _, one := range active {
		instance := one.Object.Object("instance")
		facts := slices.ContainsFunc(u.Nodes, func(node known.UpgradeNode) bool { return node.Instance == instance.ID() })
		if image := instance.Text("image"); !facts && image != u.Image && image != u.ImageName {
			u.Nodes = append(u.Nodes, known.UpgradeNode{Instance: instance.ID(), Name: instance.Text("name"), Role: one.Role, Former: image, State: known.NodeWaits})
		}
	}
}

// show writes the present or next image of each node of an upgrade to the model.
func (c Upgrades) show(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, facts *known.Upgrade) error {
	back := facts.State == known.UpgradeBacks
	for _, one := range clusters.ActiveNodes(object) {
		instance := one.Object.Object("instance")
		i := slices.IndexFunc(facts.Nodes, func(node known.UpgradeNode) bool { return node.Instance == instance.ID() })
		if i < 0 {
			continue // it joined since
		}
		image := facts.Nodes[i].Former
		if state := facts.Nodes[i].State; state == known.NodeDone || state == known.NodeChanges && !back {
			image = facts.Image
		}
		if err := instance.Initialise("image", image); err != nil {
			return err
		}
	}
	return c.hold(ctx, object, true)
}

// hold stores the images of a cluster's further masters and of its groups' nodes: during an upgrade they differ from the images of the first master and
// the groups. held is false when the upgrade has ended.
func (c Upgrades) hold(ctx context.Context, object *muranopl.Object, held bool) error {
	for _, group := range object.Objects(clusters.PropertyGroups) {
		if err := c.Groups.Hold(ctx, group, held); err != nil {
			return err
		}
	}
	return c.Masters.Hold(ctx, object, held)
}

// recordImages gives the image to objects without a running node of the upgrade: stopped nodes, and groups.
func (c Upgrades) recordImages(object *muranopl.Object, known *known.Upgrade) {
	give := func(to *muranopl.Object) {
		if err := to.Initialise("image", known.Image); err != nil {
			c.Reports.Logger.Warn("the image of an object cannot be set", "object", to.ID(), "error", err)
		}
	}
	for _, list := range clusters.Lists(object) {
		for _, node := range list.All() {
			give(node.Object("instance"))
		}
		if list.Property == clusters.Grouped.Property && list.Of.Text("image") != "" {
			give(list.Of)
		}
	}
}

// memberOf is the node of the cluster that has a turn in an upgrade; there is false when it was removed since.
func (c Upgrades) memberOf(ctx context.Context, object *muranopl.Object, node *known.UpgradeNode) (one clusters.Member, there bool, err error) {
	members, err := c.Members(ctx, object)
	i := slices.IndexFunc(members, func(one clusters.Member) bool { return one.Instance().ID() == node.Instance && !one.Leaving })
	if err != nil || i < 0 {
		return clusters.Member{}, false, err
	}
	return members[i], true, nil
}

// turn gives a node of an upgrade its server; done is false when the upgrade pauses in the middle.
func (c Upgrades) turn(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, node *known.UpgradeNode) (done bool, err error) {
	one, there, err := c.memberOf(ctx, object, node)
	if err != nil || !there {
		return err == nil, err
	}
	started := time.Now()
	if err := clusters.ReplacementsOf(c.Clusters).ReplaceOne(ctx, interpreter, object, one); err != nil {
		return false, err
	}
	known, err := c.Successions.Of(ctx, one.Instance())
	if err != nil || known.Replacing() {
		return false, err
	}
	return true, PlansOf(c.Clusters).measured(ctx, object, node.Role, time.Since(started))
}
