package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/task"
)

// replaceable are the properties, as Heat calls them, for which a node gets another server in place of the one that has them otherwise.
var replaceable = []string{"flavor", "image", "key_name", "availability_zone"}

// Postpone is part of stacks.Nodes. It notes which nodes have servers that differ from the model.
func (c *clusters) Postpone(ctx context.Context, changes []*openstack.ServerChange, active []stacks.Server) (refused []*openstack.ServerChange, err error) {
	if refused, err = c.refuseSkew(ctx, changes, active); err != nil || len(refused) > 0 {
		return refused, err
	}
	byResource := map[string][]*openstack.ServerChange{}
	for _, change := range changes {
		byResource[change.Resource] = append(byResource[change.Resource], change)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(byResource)) {
		i := slices.IndexFunc(active, func(server stacks.Server) bool { return openstack.ServerResource(server.ID()) == resource })
		other := func(change *openstack.ServerChange) bool { return !slices.Contains(replaceable, change.Property) }
		if i < 0 || slices.ContainsFunc(byResource[resource], other) {
			refused = append(refused, byResource[resource]...)
			continue
		}
		c.stacks.Restore(c.stacks.Own(), resource, byResource[resource][0].Definition)
		if c.outdated == nil {
			c.outdated = map[string][]*openstack.ServerChange{}
		}
		c.outdated[active[i].Instance.ID()] = byResource[resource]
	}
	return refused, nil
}

// Locked is part of stacks.Nodes.
func (c *clusters) Locked(ctx context.Context, instance *muranopl.Object) (bool, error) {
	settings, err := c.settings.of(ctx, instance)
	return settings.Locked, err
}

func (c *clusters) foreseeReplacements(ctx context.Context, foreseen *preview.Foreseen) {
	for _, object := range c.objects.Clusters() {
		due, err := clusterReplacementsOf(c).due(ctx, object)
		if err != nil {
			continue
		}
		if len(due) > 0 {
			why, _ := clusterReplacementsOf(c).noRoom(ctx, object, due[0].instance()) // the deployment asks again
			foreseen.Effects = append(foreseen.Effects, "cluster "+object.Text("name")+": "+replacements(due, why))
		}
		for _, one := range due {
			text := fmt.Sprintf("node %s of cluster %s is replaced", one.server.Name(), object.Text("name"))
			foreseen.Replaced = append(foreseen.Replaced, preview.Note{ObjectID: one.object.ID(), Text: text})
			if err := clusterReplacementsOf(c).checkSuccessor(ctx, one.instance()); fault.KindOf(err) == fault.Invalid {
				foreseen.Refused = append(foreseen.Refused, preview.Note{ObjectID: one.object.ID(), Text: err.Error()})
			}
		}
		volumeLossesOf(c).foreseeLoss(ctx, object, due, foreseen)
	}
}

// clusterReplacements finds the servers that must be replaced.
type clusterReplacements struct{ *clusters }

func clusterReplacementsOf(c *clusters) clusterReplacements { return clusterReplacements{c} }

// checkSuccessor refuses another server of an instance if its flavor, image, zone or networks are missing in the cloud.
func (c clusterReplacements) checkSuccessor(ctx context.Context, instance *muranopl.Object) error {
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	return project.CheckServers(ctx, false, stacks.NewServer(instance))
}

// nodeReplacements replace the servers of nodes.
type nodeReplacements struct{ clusterClass }

func nodeReplacementsOf(c clusterClass) nodeReplacements { return nodeReplacements{c} }

// replaceNode is the action that gives a node another server.
func (c nodeReplacements) replaceNode(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.Close()
	volumeLossesOf(c.clusters).allowLoss(call)
	named, _ := call.Args[known.ArgumentNode].(string)
	if _, is := task.Desired(call.Object).MachineCalled(named); is {
		return nil, byHand(named)
	}
	var all []*muranopl.Object
	for _, node := range activeNodes(call.Object) {
		all = append(all, node.object)
	}
	at, err := nodeNamesOf(c.clusters).named(ctx, all, named)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s is no node of cluster %s: %s", named, call.Object.Text("name"), err)
	}
	node := activeNodes(call.Object)[at]
	if err := versionSkewOf(c.clusters).admit(ctx, call.Object, []activeNode{node}); err != nil {
		return nil, err
	}
	if err := c.order(ctx, call.Object, node, false); err != nil {
		return nil, err
	}
	return nil, nodeScalingOf(c.clusterClass).redeploy(ctx, call, node.role == nodes.Gateway)
}

// order has a node get another server, unless it does already: the former one goes first where the cluster or the project's quota has no
// room for both. edit is succession.Edit.
func (c nodeReplacements) order(ctx context.Context, object *muranopl.Object, node activeNode, edit bool) error {
	instance := node.object.Object("instance")
	if ordered, err := c.clusters.successions.ordered(ctx, instance); err != nil || ordered {
		return err
	}
	name, err := nodeNamesOf(c.clusters).nameOf(ctx, node.object)
	if err != nil {
		return err
	}
	if node.role == nodes.Minion {
		if err := volumeLossesOf(c.clusters).keepVolumes(ctx, object, name); err != nil {
			return err
		}
	}
	why, err := clusterReplacementsOf(c.clusters).noRoom(ctx, object, instance)
	if err != nil {
		return err
	}
	if why == "" {
		return c.clusters.successions.order(ctx, instance, name, false, edit)
	}
	alone := !slices.ContainsFunc(activeNodes(object), func(other activeNode) bool { return other.role == nodes.Minion && other.object != node.object })
	if node.role == nodes.Minion && alone {
		return fault.New(fault.Conflict, "%s cannot be replaced: it is the only node that takes pods, and it would go before there is another one, %s. "+
			"Add a node first, or make room for one server more and set surge to 1", name, why)
	}
	known, err := c.clusters.facts(ctx, object)
	if err != nil {
		return err
	}
	project, err := c.clusters.servers.runtime.Project(ctx)
	if err != nil {
		return err
	}
	state := openstack.ServerState{Status: openstack.Gone}
	if former, there := known.Node(name); there {
		if state, err = project.Server(ctx, former.Server); err != nil {
			return err
		}
	}
	if state.Status == openstack.Gone {
		return c.clusters.successions.order(ctx, instance, name, false, edit)
	}
	c.reports.Inform(ctx, object, "%s goes before its successor is made, %s", name, why)
	return c.clusters.successions.order(ctx, instance, name, true, edit)
}

// vacate takes a node out of the cluster before its successor is there. On a master the services stop, and its membership goes with its successor,
// since a cluster cannot be deployed without one.
func (c nodeReplacements) vacate(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, one member, known succession) error {
	if known.Gone {
		return nil
	}
	names, err := nodeNamesOf(c.clusters).names(ctx)
	if err != nil {
		return err
	}
	former := names.server(one.instance(), known, known.Former).Name()
	if one.role == nodes.Master {
		live, err := c.clusters.Live(object)
		if err != nil {
			return err
		}
		if err := live.Vacate(ctx, former); err != nil {
			return err
		}
	} else {
		list, err := c.servers(ctx, interpreter, object)
		if err != nil {
			return err
		}
		if err := clusterShrinkingOf(c.clusters).remove(ctx, object, list, former); err != nil {
			return err
		}
	}
	known.Gone, known.Moved = true, true
	return c.clusters.successions.keep(ctx, one.instance(), known)
}

// makeRoom deletes the servers of nodes that go first.
func (c nodeReplacements) makeRoom(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	list, err := c.clusters.members(ctx, object)
	if err != nil {
		return err
	}
	for _, one := range list {
		if !one.absent || one.leaving {
			continue
		}
		if err := c.own.Push(ctx, interpreter); err != nil {
			return err
		}
		known, err := c.clusters.successions.of(ctx, one.instance())
		if err != nil {
			return err
		}
		known.First = false
		if one.role != nodes.Master { // it has left the cluster
			known.Former, known.FormerName, known.Gone, known.Moved = 0, "", false, false
		}
		if err := c.clusters.successions.keep(ctx, one.instance(), known); err != nil {
			return err
		}
	}
	return nil
}

// upgradeOrder is the order in which nodes get a newer Kubernetes.
var upgradeOrder = []nodes.Role{nodes.Master, nodes.Minion, nodes.Gateway}

// replaceNodes gives new servers to the nodes whose servers differ from the model, and ends begun replacements: one node after the other, the master
// last unless it gets a newer Kubernetes, and each new server before its former one goes.
func (c nodeReplacements) replaceNodes(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	due, err := clusterReplacementsOf(c.clusters).due(ctx, object)
	if err != nil || len(due) == 0 {
		return err
	}
	why, err := clusterReplacementsOf(c.clusters).noRoom(ctx, object, due[0].instance())
	if err != nil {
		return err
	}
	c.reports.Inform(ctx, object, "%s", replacements(due, why))
	for _, one := range due {
		if err := c.replaceOne(ctx, interpreter, object, one); err != nil {
			return fmt.Errorf("replace %s: %w", one.server.Name(), err)
		}
	}
	return nil
}

// replacements describes the effect of the replacement of these nodes; why is the reason that there is no room for one more server, "" if there is.
func replacements(due []member, why string) string {
	names := make([]string, len(due))
	for i, one := range due {
		if names[i] = one.server.Name(); one.misnamed() && !one.replacing {
			names[i] += ", then called " + stacks.Server{Instance: one.instance(), Number: one.server.Number + 1}.Name()
		}
		if one.moves && !one.replacing {
			names[i] += ", then in " + cmp.Or(one.wished, "the environment's network")
		}
	}
	text := fmt.Sprintf("%d nodes are replaced one after another", len(due))
	if len(due) == 1 {
		text = "1 node is replaced"
	}
	order, away := "a new one joins before the former one goes", "When the new master takes over, connections to the API end, and are made anew; the API itself is away for a second or two"
	if why != "" {
		order, away = "the former one goes before a new one is made, "+why, "The API is away until the new master is up, about half a minute and what the cloud takes for a server"
	}
	text += " (" + order + "): " + strings.Join(names, ", ")
	if i := slices.IndexFunc(due, func(one member) bool { return one.role == nodes.Master }); i >= 0 {
		if due[i].object.FindEmbedded(task.ClassCluster).Int(masters.count) > 1 {
			away = "The other masters serve meanwhile"
		}
		text += ". " + away
	}
	return text
}

// noRoom is the reason why a node's server must go before another takes its place, "" for none.
func (c clusterReplacements) noRoom(ctx context.Context, object, instance *muranopl.Object) (why string, err error) {
	if task.Desired(object).Surge == 0 {
		return "because surge is 0", nil
	}
	project, err := c.servers.runtime.Project(ctx)
	if err != nil {
		return "", err
	}
	missing, err := project.RoomFor(ctx, instance.Text("flavor"))
	if err != nil || len(missing) == 0 {
		return "", err
	}
	return "because there is no room for one server more: " + strings.Join(missing, ", "), nil
}

// due lists the nodes that get other servers, in the order in which they do.
func (c clusterReplacements) due(ctx context.Context, object *muranopl.Object) ([]member, error) {
	list, err := c.clusters.members(ctx, object)
	if err != nil {
		return nil, err
	}
	order := []nodes.Role{nodes.Minion, nodes.Gateway, nodes.Master}
	if versionSkewOf(c.clusters).raised(object) {
		order = upgradeOrder
	}
	c.clusters.mutex.Lock()
	defer c.clusters.mutex.Unlock()
	list = slices.DeleteFunc(list, func(one member) bool {
		return one.leaving || !one.replacing && !one.misnamed() && !one.moves && len(c.clusters.outdated[one.instance().ID()]) == 0
	})
	slices.SortStableFunc(list, func(a, b member) int {
		if a.replacing != b.replacing { // what was begun is ended first
			if a.replacing {
				return -1
			}
			return 1
		}
		return slices.Index(order, a.role) - slices.Index(order, b.role)
	})
	return list, nil
}

func (c nodeReplacements) replaceOne(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, one member) error {
	instance := one.instance()
	if !one.replacing {
		if err := c.order(ctx, object, activeNode{one.object, one.role}, true); err != nil {
			return err
		}
		c.clusters.mutex.Lock()
		delete(c.clusters.outdated, instance.ID())
		c.clusters.mutex.Unlock()
	}
	known, err := c.clusters.successions.of(ctx, instance)
	if err != nil {
		return err
	}
	if !known.replacing() {
		return errors.New("it was replaced by this deployment already, and Heat still has it otherwise than the model wants it")
	}
	if known.First {
		if err := c.vacate(ctx, interpreter, object, one, known); err != nil {
			return err
		}
		if err := c.makeRoom(ctx, interpreter, object); err != nil {
			return err
		}
		if known, err = c.clusters.successions.of(ctx, instance); err != nil {
			return err
		}
	}
	if !one.replacing || one.waits {
		if err := c.ensureNodes(ctx, interpreter, object); err != nil {
			return err
		}
	}
	if !known.replacing() {
		return nil // it has left already
	}
	names, err := nodeNamesOf(c.clusters).names(ctx)
	if err != nil {
		return err
	}
	former := names.server(instance, known, known.Former)
	if one.role == nodes.Master && !known.Leaves && !known.First {
		if paused, err := upgradePlansOf(c.clusters).halts(ctx, object); err != nil || paused {
			return err
		}
	}
	if instance.Bool("assignFloatingIp") && !known.Moved {
		known.Moved = true
		if err := c.clusters.successions.keep(ctx, instance, known); err != nil {
			return err
		}
		if err := c.own.Push(ctx, interpreter); err != nil {
			return err
		}
		c.reports.Inform(ctx, object, "%s: has the floating address of %s", names.server(instance, known, known.Current).Name(), former.Name())
	}
	list, err := c.servers(ctx, interpreter, object)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(node nodes.Node) bool { return node.Name == former.Name() }) { // else it has left already
		known.Leaves = true
		if err := c.clusters.successions.keep(ctx, instance, known); err != nil {
			return err
		}
		if err := clusterShrinkingOf(c.clusters).remove(ctx, object, list, former.Name()); err != nil {
			return err
		}
	}
	known.Former, known.FormerName, known.Moved, known.Gone, known.Leaves = 0, "", false, false, false
	if err := c.clusters.successions.keep(ctx, instance, known); err != nil {
		return err
	}
	if err := c.own.Push(ctx, interpreter); err != nil {
		return err
	}
	if list, err = c.servers(ctx, interpreter, object); err != nil {
		return err
	}
	_, err = clusterConnectionsOf(c.clusters).connect(ctx, object, list)
	return err
}
