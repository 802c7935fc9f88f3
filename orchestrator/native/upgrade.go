package native

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// An upgrade gives the nodes of a cluster servers of another image, one node after another. A node's image changes in the model when its turn
// comes, so that the model says at each moment what there is: deployments and repairs in the middle of an upgrade make nothing newer than
// it may be. What is known of an upgrade is kept before anything is done for it.

const (
	methodUpgrade      = "upgrade"
	methodBack         = "upgradeBack"
	argumentImage      = "image"
	upgradeName        = "upgrade"       // Upgrade as JSON, among the cluster's secrets
	upgradePauseName   = "upgrade-pause" // the task that is to pause
	replacementsName   = "replacements"  // how long nodes of each role took last, in seconds, as JSON
	assumedReplacement = 90              // seconds for a node, where nothing was measured
)

// The states of a node in an upgrade.
const (
	nodeWaits   = "waiting"
	nodeChanges = "replacing"
	nodeDone    = "done"
)

type (
	// Upgrade is one that has begun and not ended.
	Upgrade struct {
		Image      string    `json:"image"`      // id
		ImageName  string    `json:"image_name"` //
		From       string    `json:"from"`       // the Kubernetes of the API server when it began, such as v1.35.8
		Kubernetes string    `json:"kubernetes"` // to which it goes
		Began      time.Time `json:"began"`
		State      string    `json:"state"` // running, paused, or going back
		Snapshot   string    `json:"snapshot"`
		// Nodes are in the order of their turns.
		Nodes []UpgradeNode `json:"nodes"`
		// Turned says that nodes in the middle of it were turned back.
		Turned bool `json:"turned,omitempty"`
		// Task works on it, or did last.
		Task string `json:"task"`
	}
	// UpgradeNode is a node with how far it has come.
	UpgradeNode struct {
		Instance string     `json:"instance"` // id of the object
		Name     string     `json:"name"`     // of its server when the upgrade began
		Role     nodes.Role `json:"role"`
		Former   string     `json:"former"` // the image that it had in the model, or its id where the name is another image's by now
		State    string     `json:"state"`  // waiting, replacing or done
	}
)

// The states of an upgrade.
const (
	upgradeRuns   = "running"
	upgradePaused = "paused"
	upgradeBacks  = "going back"
)

func loadUpgrade(ctx context.Context, load func(ctx context.Context, name string) ([]byte, bool, error)) (*Upgrade, error) {
	text, found, err := load(ctx, upgradeName)
	if err != nil || !found {
		return nil, err
	}
	var known *Upgrade
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("read what is known of an upgrade: %w", err)
	}
	return known, nil
}

// upgradeOf is the upgrade of a cluster that has begun and not ended, nil for none.
func (c *clusters) upgradeOf(ctx context.Context, object *muranopl.Object) (*Upgrade, error) {
	return loadUpgrade(ctx, vault{c.runtime, object.ID()}.Load)
}

func (c *clusters) keepUpgrade(ctx context.Context, object *muranopl.Object, known *Upgrade) error {
	text, err := json.Marshal(known) // null when it has ended
	if err != nil {
		return err
	}
	return vault{c.runtime, object.ID()}.Store(ctx, upgradeName, text)
}

// PauseUpgrade has the upgrade of a cluster that runs stop before the next node, and before a master is taken away whose successor is up. It is
// called outside of its task.
func PauseUpgrade(ctx context.Context, secrets Secrets, environmentID, objectID string) error {
	keep := environmentVault{secrets, environmentID, objectID}
	known, err := loadUpgrade(ctx, keep.Load)
	if err != nil {
		return err
	}
	if known == nil || known.State != upgradeRuns {
		return fault.New(fault.Conflict, "No upgrade of this cluster runs: there is nothing to pause")
	}
	return keep.Store(ctx, upgradePauseName, []byte(known.Task))
}

// halts tells whether an upgrade is to pause, and notes that it does.
func (c *clusters) halts(ctx context.Context, object *muranopl.Object) (bool, error) {
	known, err := c.upgradeOf(ctx, object)
	if err != nil || known == nil || known.Task != c.runtime.TaskID() || known.State == upgradeBacks {
		return false, err
	}
	if known.State == upgradePaused {
		return true, nil
	}
	asked, found, err := vault{c.runtime, object.ID()}.Load(ctx, upgradePauseName)
	if err != nil || !found || string(asked) != known.Task {
		return false, err
	}
	known.State = upgradePaused
	if err := c.keepUpgrade(ctx, object, known); err != nil {
		return false, err
	}
	done := 0
	for _, node := range known.Nodes {
		if node.State == nodeDone {
			done++
		}
	}
	c.reports.inform(ctx, object, "The upgrade of cluster %s pauses: %d of %d nodes are done. The action upgrade goes on with it, and upgradeBack goes back as long as Kubernetes allows it",
		object.Text("name"), done, len(known.Nodes))
	return true, nil
}

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

// goOn does what is left of an upgrade. One that has failed is as one that was paused.
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
	// The cluster as the model says it is, with what was begun.
	if _, err := call.Interpreter.Invoke(ctx, object, methodDeploy, nil); err != nil {
		return err
	}
	if !back {
		known.join(activeNodes(object))
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

// join gives turns to nodes that have come since the upgrade began.
func (u *Upgrade) join(active []activeNode) {
	for _, one := range active {
		instance := one.object.Object("instance")
		known := slices.ContainsFunc(u.Nodes, func(node UpgradeNode) bool { return node.Instance == instance.ID() })
		if image := instance.Text("image"); !known && image != u.Image && image != u.ImageName {
			u.Nodes = append(u.Nodes, UpgradeNode{Instance: instance.ID(), Name: instance.Text("name"), Role: one.role, Former: image, State: nodeWaits})
		}
	}
}

// show has the model say which image each node of an upgrade has by now, or is about to get.
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

// hold keeps with a cluster's further masters and its groups which images their nodes have: while an upgrade is under way it is not what the first
// master and the groups say. held is false when the upgrade has ended.
func (c clusterClass) hold(ctx context.Context, object *muranopl.Object, held bool) error {
	for _, group := range object.Objects(propertyGroups) {
		if err := c.clusters.groups.hold(ctx, group, held); err != nil {
			return err
		}
	}
	return c.clusters.masters.hold(ctx, object, held)
}

// recordImages gives the image to what an upgrade's nodes do not show: nodes that do not run, and groups.
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

// measured keeps how long the replacement of a node took.
func (c *clusters) measured(ctx context.Context, object *muranopl.Object, role nodes.Role, took time.Duration) error {
	all, err := c.replacements(ctx, object)
	if err != nil {
		return err
	}
	all[role] = int(took.Seconds() + 0.5)
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return vault{c.runtime, object.ID()}.Store(ctx, replacementsName, text)
}

func (c *clusters) replacements(ctx context.Context, object *muranopl.Object) (map[nodes.Role]int, error) {
	all := map[nodes.Role]int{}
	text, found, err := vault{c.runtime, object.ID()}.Load(ctx, replacementsName)
	if err == nil && found {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// upgradeBack is the action that gives the nodes that an upgrade has changed their former images back, as long as Kubernetes allows it: before
// the last API server of the former version is gone, or where the minor version is the same.
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

// mayGoBack tells why an upgrade cannot go back.
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

// UpgradePlan says what an upgrade would do.
type UpgradePlan struct {
	Image      string        `json:"image"` // id
	ImageName  string        `json:"image_name"`
	From       string        `json:"from"`       // the Kubernetes of the API server, such as v1.35.8; "" where it is not known
	Kubernetes string        `json:"kubernetes"` // to which it would go
	Nodes      []PlannedNode `json:"nodes"`      // that would get other servers, in that order
	Seconds    int           `json:"seconds"`    // about how long it would take
	Measured   bool          `json:"measured"`   // whether that is by what nodes took before, and not assumed
	// Means says what it costs, in a sentence.
	Means    string        `json:"means"`
	Problems []PlanProblem `json:"problems"`

	turns []UpgradeNode
}

// PlannedNode is a node that would get another server.
type PlannedNode struct {
	Name       string     `json:"name"`
	Role       nodes.Role `json:"role"`
	Kubernetes string     `json:"kubernetes"` // that it has; "" where it is not known
	Image      string     `json:"image"`      // that it has, by name or id
	Seconds    int        `json:"seconds"`
}

// PlanProblem is what stands in the way. What is grave cannot be passed over.
type PlanProblem struct {
	Text  string `json:"text"`
	Grave bool   `json:"grave"`
}

// refusal is why an upgrade does not begin.
func (p *UpgradePlan) refusal(force bool) error {
	var texts []string
	grave := false
	for _, one := range p.Problems {
		if one.Grave || !force {
			texts = append(texts, one.Text)
			grave = grave || one.Grave
		}
	}
	if len(texts) == 0 {
		return nil
	}
	remedy := "Mend that, and do the same again"
	if !grave {
		remedy += ", or say force to upgrade all the same"
	}
	return fault.New(fault.Conflict, "The cluster is not upgraded to image %s, and nothing was changed: %s. %s", p.ImageName, strings.Join(texts, "; "), remedy)
}

// lines say a plan to people.
func (p *UpgradePlan) lines() []string {
	about := fmt.Sprintf("about %s", (time.Duration(p.Seconds) * time.Second).Round(time.Second))
	if !p.Measured {
		about += ", by guess"
	}
	return []string{fmt.Sprintf("Upgrade from Kubernetes %s to %s (image %s): %s, %s", cmp.Or(p.From, "(not known)"), cmp.Or(p.Kubernetes, "(not known)"), p.ImageName, p.Means, about)}
}

// planUpgrade finds out what an upgrade to an image would do, and what stands in its way.
func (c *clusters) planUpgrade(ctx context.Context, object *muranopl.Object, image openstack.NodeImage) (*UpgradePlan, error) {
	plan := &UpgradePlan{Image: image.ID, ImageName: image.Name, Kubernetes: image.Kubernetes, Nodes: []PlannedNode{}, Problems: []PlanProblem{}}
	problem := func(grave bool, format string, args ...any) {
		plan.Problems = append(plan.Problems, PlanProblem{fmt.Sprintf(format, args...), grave})
	}
	live, known, err := c.former(ctx, object)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", object.Text("name"))
	}
	defer live.Close()
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	has := live.Versions(ctx)
	list, err := c.members(ctx, object)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b member) int { return slices.Index(upgradeOrder, a.role) - slices.Index(upgradeOrder, b.role) })
	took, err := c.replacements(ctx, object)
	if err != nil {
		return nil, err
	}
	wanted := parseKubernetes(image.Kubernetes)
	plan.Measured = true
	var due []member
	var versions []nodeVersion
	minions := 0
	for _, one := range list {
		if one.leaving {
			problem(true, "%s is being replaced: deploy the environment, which ends that, first", one.server.name())
			continue
		}
		name := one.server.name()
		if one.role == nodes.Minion {
			minions++
		}
		version := nodeVersion{name: name, role: one.role, now: parseKubernetes(has[name])}
		node, _ := known.node(name)
		made, err := project.ImageOf(ctx, node.Server)
		if err != nil {
			return nil, err
		}
		said := one.instance().Text("image")
		if one.role == nodes.Master && plan.From == "" {
			plan.From = has[name]
		}
		if made == image.ID && made != "" {
			versions = append(versions, version)
			continue
		}
		version.wanted = wanted
		versions = append(versions, version)
		former := said
		if made != "" {
			if now, err := project.Image(ctx, said); err != nil || now.ID != made {
				former = made // the name is another image's by now
			}
		}
		seconds, measured := took[one.role]
		if !measured {
			seconds, plan.Measured = assumedReplacement, false
		}
		due = append(due, one)
		plan.Seconds += seconds
		plan.Nodes = append(plan.Nodes, PlannedNode{Name: name, Role: one.role, Kubernetes: has[name], Image: former, Seconds: seconds})
		plan.turns = append(plan.turns, UpgradeNode{Instance: one.instance().ID(), Name: name, Role: one.role, Former: former, State: nodeWaits})
	}
	if len(due) == 0 {
		return plan, nil
	}
	external, stay := externalVersions(known, has)
	versions = append(versions, external...)
	if wanted == nil {
		problem(true, "image %s does not say which Kubernetes it holds, so that the rules for versions cannot be kept: burano image check %s says what to do", image.Name, image.Name)
	} else {
		if text := unknownTo(object, wanted); text != "" {
			problem(true, "%s", text)
		}
		for _, text := range skewed(versions) {
			problem(true, "%s", text)
		}
		if plan.From == "" {
			problem(true, "the master does not say which Kubernetes it has: repair it first")
		}
		obstacles, err := live.Obstacles(ctx, int(wanted.Minor()))
		if err != nil {
			return nil, err
		}
		for _, one := range obstacles {
			problem(one.Grave, "%s", one.Text)
		}
	}
	takesPods := func(one member) bool { return one.role == nodes.Minion }
	if i := slices.IndexFunc(due, takesPods); i >= 0 && image.Docker == "" && kube.Runtime(object.Text(propertyRuntime)) == kube.Docker {
		problem(true, "%v", noDocker(image.Name, due[i].server.name(), image.ID))
	}
	pods, err := c.podNetwork(ctx, object)
	if err != nil {
		return nil, err
	}
	for _, need := range pods.needs() {
		if i := slices.IndexFunc(due, func(one member) bool { return need.has(one.role) }); i >= 0 {
			if missing := need.missing(image, image.Name, due[i].server.name()); missing != nil {
				problem(true, "%v", missing)
			}
		}
	}
	why, err := c.noRoom(ctx, object, due[0].instance())
	if err != nil {
		return nil, err
	}
	var leaving []string
	for _, one := range due {
		leaving = append(leaving, one.server.name())
	}
	volumes, err := live.VolumesLost(ctx, leaving...)
	if err != nil {
		return nil, err
	}
	if len(volumes) > 0 && !c.mayLose() {
		problem(true, "%v", &nodes.VolumesLost{Volumes: volumes})
	}
	if why != "" && minions == 1 {
		problem(true, "the only node that takes pods would go before there is another one, %s: add a node first, or make room for one server more and set surge to 1", why)
	}
	plan.Means = replacements(due, why) + stay
	return plan, nil
}
