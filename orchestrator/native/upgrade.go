package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// An upgrade gives the nodes of a cluster servers of another image, one node after another. A node's image changes in the model when its turn comes, so
// that the model is true at each moment: deployments and repairs in the middle of an upgrade make nothing newer than allowed. The state of an upgrade is
// stored before each of its changes.

const (
	methodUpgrade      = "upgrade"
	methodBack         = "upgradeBack"
	argumentImage      = "image"
	upgradeName        = "upgrade"       // Upgrade as JSON, among the cluster's secrets
	upgradePauseName   = "upgrade-pause" // the task that is to pause
	replacementsName   = "replacements"  // how long nodes of each role took last, in seconds, as JSON
	assumedReplacement = 90              // seconds for a node, where nothing was measured
)

// upgrade is the action that gives the nodes of a cluster servers of another image: masters, minions, gateways. Called again it goes on.
func (c clusterClass) upgrade(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.close()
	c.clusters.allowLoss(call)
	named, _ := call.Args[argumentImage].(string)
	force, _ := call.Args[argumentForce].(bool)
	object := call.Object
	known, err := c.clusters.upgradeOf(ctx, object)
	if err != nil {
		return nil, err
	}
	if known == nil && named == "" {
		return nil, fault.New(fault.Invalid, "No upgrade of cluster %s has begun that could go on: say to which image", object.Text("name"))
	}
	var image openstack.NodeImage
	if named != "" {
		project, err := c.clusters.runtime.Project(ctx)
		if err != nil {
			return nil, err
		}
		if image, err = project.Image(ctx, named); err != nil {
			return nil, err
		}
	}
	if known != nil {
		if named != "" && image.ID != known.Image {
			return nil, fault.New(fault.Conflict, "Cluster %s is being upgraded to image %s (%s) already: go on with that (upgrade without an image) or go back (upgradeBack) first",
				object.Text("name"), known.ImageName, known.Image)
		}
		if known.State == upgradeBacks && known.Task != c.clusters.runtime.TaskID() {
			return nil, fault.New(fault.Conflict, "Cluster %s goes back from its upgrade to image %s: call upgradeBack again, which ends that", object.Text("name"), known.ImageName)
		}
		if known.Task != c.clusters.runtime.TaskID() { // else this task was taken over, and may be asked to pause
			known.State, known.Task = upgradeRuns, c.clusters.runtime.TaskID()
		}
		if err := c.clusters.keepUpgrade(ctx, object, known); err != nil {
			return nil, err
		}
		return nil, c.goOn(ctx, call, known)
	}
	plan, err := c.clusters.planUpgrade(ctx, object, image)
	if err != nil {
		return nil, err
	}
	if err := plan.refusal(force); err != nil {
		return nil, err
	}
	if len(plan.Nodes) == 0 {
		c.reports.inform(ctx, object, "All nodes of cluster %s have image %s already: nothing was changed", object.Text("name"), image.Name)
		return nil, nil
	}
	for _, line := range plan.lines() {
		c.reports.inform(ctx, object, "%s", line)
	}
	known = &Upgrade{Image: image.ID, ImageName: image.Name, From: plan.From, Kubernetes: plan.Kubernetes, Began: time.Now().UTC(), State: upgradeRuns,
		Nodes: plan.turns, Task: c.clusters.runtime.TaskID()}
	if known.Snapshot, err = c.saveUpgrade(ctx, object, plan); err != nil {
		return nil, err
	}
	if err := c.clusters.keepUpgrade(ctx, object, known); err != nil {
		return nil, err
	}
	return nil, c.goOn(ctx, call, known)
}

// saveUpgrade takes the snapshot without which no upgrade begins.
func (c clusterClass) saveUpgrade(ctx context.Context, object *muranopl.Object, plan *UpgradePlan) (id string, err error) {
	if c.clusters.server.Snapshots == nil {
		return "", nil
	}
	cluster, facts, err := c.clusters.former(ctx, object)
	if err != nil {
		return "", err
	}
	defer cluster.Close()
	of := c.clusters.subject(ctx, object, facts, store.BeforeChange, fmt.Sprintf("before the upgrade from %s to %s", plan.From, plan.Kubernetes))
	taken, err := takeSnapshot(ctx, c.clusters.server.Snapshots, cluster, of, cluster.Snapshot)
	if err != nil {
		return "", fmt.Errorf("no snapshot can be taken, without which no upgrade begins: %w", err)
	}
	c.reports.inform(ctx, object, "Snapshot %s of the cluster was taken, %d bytes, and opens", taken.ID, taken.Size)
	return taken.ID, nil
}

// goOn does the rest of an upgrade. A failed one is like a paused one.
func (c clusterClass) goOn(ctx context.Context, call muranopl.Call, known *Upgrade) error {
	err := c.takeTurns(ctx, call, known)
	if err == nil || known.State != upgradeRuns || ctx.Err() != nil { // whose context has ended may be taken over, and goes on then
		return err
	}
	known.State = upgradePaused
	return errors.Join(err, c.clusters.keepUpgrade(ctx, call.Object, known))
}

func (c clusterClass) takeTurns(ctx context.Context, call muranopl.Call, known *Upgrade) error {
	object := call.Object
	back := known.State == upgradeBacks
	if err := c.show(ctx, call.Interpreter, object, known); err != nil {
		return err
	}
	// The cluster of the model, with the changes that were begun.
	if _, err := call.Interpreter.Invoke(ctx, object, methodDeploy, nil); err != nil {
		return err
	}
	if !back {
		giveTurns(known, activeNodes(object))
	}
	for i := range known.Nodes {
		node := &known.Nodes[i]
		ended := nodeDone
		if back {
			ended = nodeWaits
		}
		if node.State == ended {
			continue
		}
		began, over := node.State == nodeChanges, false
		if began { // the deployment may have done it
			one, there, err := c.memberOf(ctx, object, node)
			if err != nil {
				return err
			}
			over = !there || !one.replacing
		}
		if !over {
			if paused, err := c.clusters.halts(ctx, object); err != nil || paused {
				return err
			}
		}
		if !began {
			node.State = nodeChanges
			if err := c.clusters.keepUpgrade(ctx, object, known); err != nil {
				return err
			}
			if err := c.show(ctx, call.Interpreter, object, known); err != nil {
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
		if err := c.clusters.keepUpgrade(ctx, object, known); err != nil {
			return err
		}
		c.reports.inform(ctx, object, "%s is done: %d of %d", node.Name, i+1, len(known.Nodes))
	}
	if !back {
		c.recordImages(object, known)
	}
	if err := c.hold(ctx, object, false); err != nil {
		return err
	}
	if err := c.clusters.keepUpgrade(ctx, object, nil); err != nil {
		return err
	}
	if back {
		c.reports.inform(ctx, object, "Cluster %s is back on Kubernetes %s", object.Text("name"), known.From)
	} else {
		c.reports.inform(ctx, object, "Cluster %s is upgraded to Kubernetes %s (image %s)", object.Text("name"), cmp.Or(known.Kubernetes, "of the image"), known.ImageName)
	}
	return c.retell(ctx, call)
}

// giveTurns gives turns to nodes that have come since the upgrade began.
func giveTurns(u *Upgrade, active []activeNode) {
	for _, one := range active {
		instance := one.object.Object("instance")
		known := slices.ContainsFunc(u.Nodes, func(node UpgradeNode) bool { return node.Instance == instance.ID() })
		if image := instance.Text("image"); !known && image != u.Image && image != u.ImageName {
			u.Nodes = append(u.Nodes, UpgradeNode{Instance: instance.ID(), Name: instance.Text("name"), Role: one.role, Former: image, State: nodeWaits})
		}
	}
}

// show writes the present or next image of each node of an upgrade to the model.
func (c clusterClass) show(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, known *Upgrade) error {
	back := known.State == upgradeBacks
	for _, one := range activeNodes(object) {
		instance := one.object.Object("instance")
		i := slices.IndexFunc(known.Nodes, func(node UpgradeNode) bool { return node.Instance == instance.ID() })
		if i < 0 {
			continue // it joined since
		}
		image := known.Nodes[i].Former
		if state := known.Nodes[i].State; state == nodeDone || state == nodeChanges && !back {
			image = known.Image
		}
		if err := instance.Initialise("image", image); err != nil {
			return err
		}
	}
	return c.hold(ctx, object, true)
}

// hold stores the images of a cluster's further masters and of its groups' nodes: during an upgrade they differ from the images of the first master and
// the groups. held is false when the upgrade has ended.
func (c clusterClass) hold(ctx context.Context, object *muranopl.Object, held bool) error {
	for _, group := range object.Objects(propertyGroups) {
		if err := c.clusters.groups.hold(ctx, group, held); err != nil {
			return err
		}
	}
	return c.clusters.masters.hold(ctx, object, held)
}

// recordImages gives the image to objects without a running node of the upgrade: stopped nodes, and groups.
func (c clusterClass) recordImages(object *muranopl.Object, known *Upgrade) {
	give := func(to *muranopl.Object) {
		if err := to.Initialise("image", known.Image); err != nil {
			c.reports.logger.Warn("the image of an object cannot be set", "object", to.ID(), "error", err)
		}
	}
	for _, list := range nodeLists(object) {
		for _, node := range list.all() {
			give(node.Object("instance"))
		}
		if list.list == grouped.list && list.of.Text("image") != "" {
			give(list.of)
		}
	}
}

// memberOf is the node of the cluster that has a turn in an upgrade; there is false when it was removed since.
func (c clusterClass) memberOf(ctx context.Context, object *muranopl.Object, node *UpgradeNode) (one member, there bool, err error) {
	members, err := c.clusters.members(ctx, object)
	i := slices.IndexFunc(members, func(one member) bool { return one.instance().ID() == node.Instance && !one.leaving })
	if err != nil || i < 0 {
		return member{}, false, err
	}
	return members[i], true, nil
}

// turn gives a node of an upgrade its server; done is false when the upgrade pauses in the middle.
func (c clusterClass) turn(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, node *UpgradeNode) (done bool, err error) {
	one, there, err := c.memberOf(ctx, object, node)
	if err != nil || !there {
		return err == nil, err
	}
	started := time.Now()
	if err := c.replaceOne(ctx, interpreter, object, one); err != nil {
		return false, err
	}
	known, err := c.clusters.successions.of(ctx, one.instance())
	if err != nil || known.replacing() {
		return false, err
	}
	return true, c.clusters.measured(ctx, object, node.Role, time.Since(started))
}
