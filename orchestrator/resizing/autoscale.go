package resizing

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes/autoscale"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/scaling"
	"github.com/burano/burano/orchestrator/task"
)

// A group that has a minimum follows its load: the keeper's duty finds that it should be larger or smaller, and starts the action here, which decides by
// its own findings.

const (
	propertyMinimum = "minimum"        // of a group; null: the number of nodes is decided elsewhere
	propertyAfter   = "scaleDownAfter" // seconds
)

// scaleByLoad is the action that gives groups which follow their load as many nodes as their pods need.
func (c Scaling) scaleByLoad(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	list := task.Desired(call.Object).Groups
	if !slices.ContainsFunc(list, desired.Group.Elastic) {
		return nil, fault.New(fault.Invalid, "no group of cluster %s has a minimum: give one limits with scale", call.Object.Text("name"))
	}
	keep := known.Vault{Runtime: c.Runtime, Cluster: call.Object.ID()}
	record, err := scaling.LoadGroupRecord(ctx, keep.Load)
	if err != nil {
		return nil, err
	}
	err = c.decideOnce(ctx, keep, scaling.GroupRecordName, &record, record.Task, func() error { return c.decide(ctx, call, list, &record) })
	if err != nil {
		return nil, err
	}
	if len(record.Changes) == 0 {
		c.Reports.Inform(ctx, call.Object, "No group has to become larger or smaller")
		return nil, nil
	}
	var changes []sizing
	for _, change := range record.Changes {
		c.Reports.Inform(ctx, call.Object, "%s", change.Reason)
		one, err := c.sizingOf(ctx, call, change)
		if err != nil {
			return nil, err
		}
		changes = append(changes, one)
	}
	return nil, c.resize(ctx, call, changes...)
}

// decideOnce decides, unless this task has decided before: decider is the task of the stored record. It stores the new record before anything follows from it.
func (c Scaling) decideOnce(ctx context.Context, keep known.Vault, name string, record any, decider string, decide func() error) error {
	if decider == c.Runtime.TaskID() {
		return nil
	}
	if err := decide(); err != nil {
		return err
	}
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("write the decision %s: %w", name, err)
	}
	return keep.Store(ctx, name, text)
}

// decide decides on the sizes of the groups.
func (c Scaling) decide(ctx context.Context, call muranopl.Call, list []desired.Group, record *scaling.GroupRecord) error {
	known, err := scalingStateOf(c.Clusters).forScaling(ctx, call.Object)
	if err != nil {
		return err
	}
	live, err := clusters.ConnectionsOf(c.Clusters).Connect(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	return c.Runtime.Step(ctx, call.Object, "decide on the size of groups", func(ctx context.Context) error {
		client, err := scaling.KubernetesOf(ctx, live)
		if err != nil {
			return err
		}
		state, err := scaling.Load(ctx, client, list, *known, *record, func(ctx context.Context, name string) (*openstack.FlavorChoice, error) {
			project, err := c.Runtime.Project(ctx)
			if err != nil {
				return nil, err
			}
			return project.Flavor(ctx, name)
		})
		if err != nil {
			return err
		}
		decision := autoscale.Decide(state)
		record.Task, record.Changes = c.Runtime.TaskID(), decision.Changes
		for _, change := range decision.Changes {
			at := slices.IndexFunc(list, func(one desired.Group) bool { return one.Name == change.Group })
			kept := scaling.ScaledGroup{Flavor: list[at].Flavor, Last: &scaling.Decision{At: state.Now.UTC(), From: change.From, To: change.Count, Text: change.Reason, Task: record.Task}}
			for _, group := range state.Groups {
				if group.Name == change.Group && len(group.Nodes) > 0 {
					kept.Room = group.Allocatable
				}
			}
			record.Groups[change.Group] = kept
		}
		return nil
	})
}

// scalingState is the stored state that scaling needs.
type scalingState struct{ *clusters.Clusters }

func scalingStateOf(c *clusters.Clusters) scalingState { return scalingState{c} }

// forScaling has the data of a cluster whose number of nodes may be changed by its load.
func (c scalingState) forScaling(ctx context.Context, cluster *muranopl.Object) (*known.Facts, error) {
	known, err := c.Facts(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if known == nil || !known.Network.IsValid() {
		return nil, fault.New(fault.Invalid, "cluster %s was never up: deploy the environment", cluster.Text("name"))
	}
	upgrade, err := clusters.UpgradesOf(c.Clusters).Current(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if upgrade != nil {
		return nil, fault.New(fault.Conflict, "an upgrade of cluster %s has begun: its nodes follow their load again when it has ended", cluster.Text("name"))
	}
	c.UseFacts(cluster, known)
	return known, nil
}

// sizingOf makes the nodes for a change, and moves the leaving nodes to the end.
func (c Scaling) sizingOf(ctx context.Context, call muranopl.Call, change autoscale.Change) (sizing, error) {
	for _, group := range call.Object.Objects(clusters.PropertyGroups) {
		if group.Text("name") != change.Group {
			continue
		}
		l := clusters.Grouped.In(group)
		if err := c.Groups.Fill(ctx, call.Interpreter, group, change.Count); err != nil {
			return sizing{}, err
		}
		order := l.All()
		for _, name := range change.Remove {
			active := order[:l.Size()]
			at, err := clusters.NodeNamesOf(c.Clusters).Named(ctx, active, name)
			if err != nil {
				return sizing{}, fmt.Errorf("find node %s of group %s: %w", name, change.Group, err)
			}
			order = append(slices.Delete(slices.Clone(order), at, at+1), order[at])
		}
		return sizing{l, order, change.Count}, nil
	}
	return sizing{}, fmt.Errorf("group %s has gone from cluster %s", change.Group, call.Object.Text("name"))
}

// setLimits sets the properties of an object from a call's arguments, by the names of the arguments; a minimum of -1 is none. When it fails, it has
// already done undo.
func (c Scaling) setLimits(ctx context.Context, object *muranopl.Object, call muranopl.Call, properties map[string]string) (undo func(), err error) {
	was := map[string]any{}
	undo = func() {
		for name, value := range was {
			if err := object.Set(name, value); err != nil {
				c.Reports.Logger.WarnContext(ctx, "the model keeps limits that were not set", "object", object.ID(), "error", err)
			}
		}
	}
	for argument, name := range properties {
		value := call.Args[argument]
		if value == nil {
			continue
		}
		if argument == propertyMinimum && value == int64(-1) {
			value = nil
		}
		was[name], _ = object.Get(name)
		if err := object.Set(name, value); err != nil {
			undo()
			return nil, err
		}
	}
	return undo, nil
}
