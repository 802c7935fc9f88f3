package resizing

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

// addGroup is the action that gives a cluster a group of minions. When it fails before any server was made the model is left as it was; else the group stays in
// it, so that a deployment goes on and nothing is made that no object has.
func (c Scaling) addGroup(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	name, _ := call.Args["name"].(string)
	if slices.Contains([]string{wordMasters, wordMinions, wordGateways}, name) {
		return nil, fault.New(fault.Invalid, "a group cannot be called %s, which scale takes for nodes of no group: choose another name", name)
	}
	former := call.Object.Objects(clusters.PropertyGroups)
	if slices.ContainsFunc(former, func(group *muranopl.Object) bool { return group.Text("name") == name }) {
		return nil, fault.New(fault.Invalid, "cluster %s has a group %s: choose another name; where adding it has failed, deploy the environment to go on with it", call.Object.Text("name"), name)
	}
	// A task that is taken over makes the same group again, with the same nodes.
	values := map[string]any{"?": map[string]any{"type": task.ClassMinionGroup, "id": clusters.DerivedID(call.Object.ID(), clusters.PropertyGroups, name)}}
	for argument, value := range call.Args {
		if value != nil {
			values[argument] = value
		}
	}
	made, err := call.Interpreter.New(ctx, task.ClassMinionGroup, call.Object, values)
	if err != nil {
		return nil, err
	}
	if err := call.Object.SetObjects(clusters.PropertyGroups, append(slices.Clone(former), made)); err != nil {
		return nil, err
	}
	if err := errors.Join(task.Desired(call.Object).CheckGroups()...); err != nil {
		return nil, fault.New(fault.Invalid, "%w", errors.Join(err, call.Object.SetObjects(clusters.PropertyGroups, former)))
	}
	err = c.Redeploy(ctx, call, false)
	switch {
	case err == nil:
		return nil, nil
	case scalingStateOf(c.Clusters).begun(ctx, made):
		return nil, fmt.Errorf("%w (group %s is part of the cluster: deploy the environment to go on, or remove the group)", err, name)
	}
	return nil, errors.Join(err, call.Object.SetObjects(clusters.PropertyGroups, former))
}

// removeGroup is the action that takes a group out of a cluster, once its nodes have left. Called again after a failure it goes on.
func (c Scaling) removeGroup(ctx context.Context, call muranopl.Call) (any, error) {
	clusters.VolumeLossesOf(c.Clusters).AllowLoss(call)
	l, err := ofGroup(call)
	if err != nil {
		return nil, err
	}
	if l.Size() > 0 {
		if err := c.resize(ctx, call, sizing{l, l.All(), 0}); err != nil {
			return nil, err
		}
	}
	// Another group of the name begins anew.
	if err := c.Runtime.SetAttribute(ctx, l.Of, clusters.AttributeGroup, nil); err != nil {
		return nil, err
	}
	if err := call.Object.SetObjects(clusters.PropertyGroups, slices.DeleteFunc(call.Object.Objects(clusters.PropertyGroups), func(group *muranopl.Object) bool { return group == l.Of })); err != nil {
		return nil, err
	}
	facts, err := c.Facts(ctx, call.Object)
	if err != nil || facts == nil {
		return nil, err
	}
	facts.Groups = slices.DeleteFunc(facts.Groups, func(group known.GroupFact) bool { return group.Name == l.Of.Text("name") })
	return nil, c.StoreFacts(ctx, call.Object, *facts)
}

// begun is true if a group has servers, or may have.
func (c scalingState) begun(ctx context.Context, group *muranopl.Object) bool {
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return true
	}
	made, err := project.Made(ctx, c.Templates.Own().Name)
	return err != nil || slices.ContainsFunc(group.Objects(clusters.Grouped.Property), func(node *muranopl.Object) bool {
		return made[openstack.ServerResource(node.Object("instance").ID())]
	})
}
