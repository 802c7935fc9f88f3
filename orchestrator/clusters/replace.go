package clusters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/openstack"
)

// Replacements replace the servers of nodes.
type Replacements struct{ *Clusters }

// ReplacementsOf returns the replacements of nodes in a task's clusters.
func ReplacementsOf(c *Clusters) Replacements { return Replacements{c} }

// Order has a node get another server, unless it does already: the former one goes first where the cluster or the project's quota has no
// room for both. edit is succession.Edit.
func (c Replacements) Order(ctx context.Context, object *muranopl.Object, node ActiveNode, edit bool) error {
	instance := node.Object.Object("instance")
	if ordered, err := c.Clusters.Successions.ordered(ctx, instance); err != nil || ordered {
		return err
	}
	name, err := NodeNamesOf(c.Clusters).NameOf(ctx, node.Object)
	if err != nil {
		return err
	}
	if err := VolumeLossesOf(c.Clusters).keepVolumes(ctx, object, name); err != nil {
		return err
	}
	why, err := DifferencesOf(c.Clusters).NoRoom(ctx, object, instance)
	if err != nil {
		return err
	}
	if why == "" {
		return c.Clusters.Successions.order(ctx, instance, name, false, edit)
	}
	alone := !slices.ContainsFunc(ActiveNodes(object), func(other ActiveNode) bool { return other.Role == nodes.Minion && other.Object != node.Object })
	if node.Role == nodes.Minion && alone {
		return fault.New(fault.Conflict, "%s cannot be replaced: it is the only node that takes pods, and it would go before there is another one, %s. "+
			"Add a node first, or make room for one server more and set surge to 1", name, why)
	}
	known, err := c.Clusters.Facts(ctx, object)
	if err != nil {
		return err
	}
	project, err := c.Clusters.Runtime.Project(ctx)
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
		return c.Clusters.Successions.order(ctx, instance, name, false, edit)
	}
	c.Reports.Inform(ctx, object, "%s goes before its successor is made, %s", name, why)
	return c.Clusters.Successions.order(ctx, instance, name, true, edit)
}

// vacate takes a node out of the cluster before its successor is there. On a master the services stop, and its membership goes with its successor,
// since a cluster cannot be deployed without one.
func (c Replacements) vacate(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, one Member, known Succession) error {
	if known.Gone {
		return nil
	}
	names, err := NodeNamesOf(c.Clusters).Names(ctx)
	if err != nil {
		return err
	}
	former := names.Server(one.Instance(), known, known.Former).Name()
	if one.Role == nodes.Master {
		live, err := c.Clusters.Live(object)
		if err != nil {
			return err
		}
		if err := live.Vacate(ctx, former); err != nil {
			return err
		}
	} else {
		list, err := DeploymentsOf(c.Clusters).servers(ctx, interpreter, object)
		if err != nil {
			return err
		}
		if err := shrinkingOf(c.Clusters).remove(ctx, object, list, former); err != nil {
			return err
		}
	}
	known.Gone, known.Moved = true, true
	return c.Clusters.Successions.Keep(ctx, one.Instance(), known)
}

// makeRoom deletes the servers of nodes that go first.
func (c Replacements) makeRoom(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	list, err := c.Clusters.Members(ctx, object)
	if err != nil {
		return err
	}
	for _, one := range list {
		if !one.absent || one.Leaving {
			continue
		}
		if err := c.own.Push(ctx, interpreter); err != nil {
			return err
		}
		known, err := c.Clusters.Successions.Of(ctx, one.Instance())
		if err != nil {
			return err
		}
		known.First = false
		if one.Role != nodes.Master { // it has left the cluster
			known.Former, known.FormerName, known.Gone, known.Moved = 0, "", false, false
		}
		if err := c.Clusters.Successions.Keep(ctx, one.Instance(), known); err != nil {
			return err
		}
	}
	return nil
}

// replaceNodes gives new servers to the nodes whose servers differ from the model, and ends begun replacements: one node after the other, the master
// last unless it gets a newer Kubernetes, and each new server before its former one goes.
func (c Replacements) replaceNodes(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object) error {
	due, err := DifferencesOf(c.Clusters).due(ctx, object)
	if err != nil || len(due) == 0 {
		return err
	}
	why, err := DifferencesOf(c.Clusters).NoRoom(ctx, object, due[0].Instance())
	if err != nil {
		return err
	}
	c.Reports.Inform(ctx, object, "%s", DescribeReplacements(due, why))
	for _, one := range due {
		if err := c.ReplaceOne(ctx, interpreter, object, one); err != nil {
			return fmt.Errorf("replace %s: %w", one.Server.Name(), err)
		}
	}
	return nil
}

// ReplaceOne gives a node another server, or ends a begun replacement.
func (c Replacements) ReplaceOne(ctx context.Context, interpreter *muranopl.Interpreter, object *muranopl.Object, one Member) error {
	instance := one.Instance()
	if !one.Replacing {
		if err := c.Order(ctx, object, ActiveNode{one.object, one.Role}, true); err != nil {
			return err
		}
		c.Clusters.mutex.Lock()
		delete(c.Clusters.outdated, instance.ID())
		c.Clusters.mutex.Unlock()
	}
	known, err := c.Clusters.Successions.Of(ctx, instance)
	if err != nil {
		return err
	}
	if !known.Replacing() {
		return errors.New("it was replaced by this deployment already, and Heat still has it otherwise than the model wants it")
	}
	if known.First {
		if err := c.vacate(ctx, interpreter, object, one, known); err != nil {
			return err
		}
		if err := c.makeRoom(ctx, interpreter, object); err != nil {
			return err
		}
		if known, err = c.Clusters.Successions.Of(ctx, instance); err != nil {
			return err
		}
	}
	if !one.Replacing || one.waits {
		if err := DeploymentsOf(c.Clusters).ensureNodes(ctx, interpreter, object); err != nil {
			return err
		}
	}
	if !known.Replacing() {
		return nil // it has left already
	}
	names, err := NodeNamesOf(c.Clusters).Names(ctx)
	if err != nil {
		return err
	}
	former := names.Server(instance, known, known.Former)
	if one.Role == nodes.Master && !known.Leaves && !known.First {
		if paused, err := UpgradesOf(c.Clusters).Halts(ctx, object); err != nil || paused {
			return err
		}
	}
	if instance.Bool("assignFloatingIp") && !known.Moved {
		known.Moved = true
		if err := c.Clusters.Successions.Keep(ctx, instance, known); err != nil {
			return err
		}
		if err := c.own.Push(ctx, interpreter); err != nil {
			return err
		}
		c.Reports.Inform(ctx, object, "%s: has the floating address of %s", names.Server(instance, known, known.Current).Name(), former.Name())
	}
	list, err := DeploymentsOf(c.Clusters).servers(ctx, interpreter, object)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(list, func(node nodes.Node) bool { return node.Name == former.Name() }) { // else it has left already
		known.Leaves = true
		if err := c.Clusters.Successions.Keep(ctx, instance, known); err != nil {
			return err
		}
		if err := shrinkingOf(c.Clusters).remove(ctx, object, list, former.Name()); err != nil {
			return err
		}
	}
	known.Former, known.FormerName, known.Moved, known.Gone, known.Leaves = 0, "", false, false, false
	if err := c.Clusters.Successions.Keep(ctx, instance, known); err != nil {
		return err
	}
	if err := c.own.Push(ctx, interpreter); err != nil {
		return err
	}
	if list, err = DeploymentsOf(c.Clusters).servers(ctx, interpreter, object); err != nil {
		return err
	}
	_, err = ConnectionsOf(c.Clusters).Connect(ctx, object, list)
	return err
}
