package native

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/autoscale"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
)

// A group that has a minimum follows its load: the keeper's duty finds that it should be larger or smaller, and starts the action here, which decides by
// its own findings.

const (
	propertyMinimum = "minimum"        // of a group; null: the number of nodes is decided elsewhere
	propertyAfter   = "scaleDownAfter" // seconds
	autoscalingName = "autoscaling"    // scalingRecord as JSON
)

// scalingRecord is the stored state of a cluster whose groups follow their load.
type scalingRecord struct {
	// Task is the last task that decided, and Changes its decision: another worker continues with them.
	Task    string                 `json:"task,omitempty"`
	Changes []autoscale.Change     `json:"changes,omitempty"`
	Groups  map[string]scaledGroup `json:"groups,omitempty"`
}

// scaledGroup is the stored state of a group: the room on its nodes, for when it has none, and the last decision.
type scaledGroup struct {
	Flavor string              `json:"flavor,omitempty"`
	Room   corev1.ResourceList `json:"room,omitempty"`
	Last   *ScalingDecision    `json:"last,omitempty"`
}

// ScalingDecision is a change of a group's size that its load was the reason of.
type ScalingDecision struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Text string    `json:"text"` // with the reason, for people
	Task string    `json:"deployment"`
}

func loadScaling(ctx context.Context, load func(ctx context.Context, name string) ([]byte, bool, error)) (record scalingRecord, err error) {
	text, found, err := load(ctx, autoscalingName)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read what is known of groups that follow their load: %w", err)
	}
	if record.Groups == nil {
		record.Groups = map[string]scaledGroup{}
	}
	return record, nil
}

func groupFacts(cluster *desired.Cluster) (list []known.GroupFact) {
	for _, one := range cluster.Groups {
		list = append(list, known.GroupFact{Name: one.Name, Minimum: one.Minimum, Maximum: one.Maximum, After: one.After})
	}
	return list
}

// groupStatuses are the groups of a cluster with their last changes.
func groupStatuses(ctx context.Context, from func(ctx context.Context, name string) ([]byte, bool, error), facts known.Facts) ([]GroupStatus, error) {
	record, err := loadScaling(ctx, from)
	list := []GroupStatus{}
	for _, one := range facts.Groups {
		status := GroupStatus{GroupFact: one, Last: record.Groups[one.Name].Last}
		for _, node := range facts.Nodes {
			if node.Settings.Labels[known.LabelGroup] == one.Name && !node.Leaving {
				status.Nodes++
			}
		}
		list = append(list, status)
	}
	return list, err
}

// load asks a cluster for its load, with its groups that follow it. flavor returns the size of a new node that is not known yet.
func load(ctx context.Context, client kubernetes.Interface, list []desired.Group, facts known.Facts, record scalingRecord,
	flavor func(ctx context.Context, name string) (*openstack.FlavorChoice, error)) (state autoscale.State, err error) {
	if state, err = kube.Load(ctx, client); err != nil {
		return state, err
	}
	state.Now = time.Now()
	wanted := slices.ContainsFunc(state.Pods, func(pod corev1.Pod) bool { return autoscale.NeedsRoom(&pod) })
	for _, one := range list {
		if !one.Elastic() {
			continue
		}
		group := autoscale.Group{Name: one.Name, Minimum: *one.Minimum, Maximum: one.Maximum, Count: one.Count, After: seconds(int64(one.After)),
			Labels: map[string]string{}}
		maps.Copy(group.Labels, one.Settings.Labels)
		group.Labels[known.LabelGroup] = one.Name
		for _, taint := range one.Settings.Taints {
			group.Taints = append(group.Taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: corev1.TaintEffect(taint.Effect)})
		}
		for _, node := range facts.Nodes {
			if node.Settings.Labels[known.LabelGroup] == one.Name && !node.Leaving && !node.Settings.Locked {
				group.Nodes = append(group.Nodes, node.Name)
			}
		}
		for _, node := range state.Nodes {
			if slices.Contains(group.Nodes, node.Name) && len(node.Status.Allocatable) > 0 {
				group.Allocatable = node.Status.Allocatable
			}
		}
		if kept := record.Groups[one.Name]; group.Allocatable == nil && kept.Flavor == one.Flavor {
			group.Allocatable = kept.Room
		}
		if group.Allocatable == nil && wanted {
			found, err := flavor(ctx, one.Flavor)
			if err != nil {
				return state, err
			}
			if found != nil {
				group.Allocatable = kube.RoomOf(found.CPUs, found.RAM, found.Disk)
			}
		}
		state.Groups = append(state.Groups, group)
	}
	return state, nil
}

// scaleByLoad is the action that gives groups which follow their load as many nodes as their pods need.
func (c clusterClass) scaleByLoad(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.close()
	list := desiredOf(call.Object).Groups
	if !slices.ContainsFunc(list, desired.Group.Elastic) {
		return nil, fault.New(fault.Invalid, "no group of cluster %s has a minimum: give one limits with setGroupLimits", call.Object.Text("name"))
	}
	keep := known.Vault{Runtime: c.clusters.runtime, Cluster: call.Object.ID()}
	record, err := loadScaling(ctx, keep.Load)
	if err != nil {
		return nil, err
	}
	if record.Task != c.clusters.runtime.TaskID() {
		if err := c.decide(ctx, call, list, &record); err != nil {
			return nil, err
		}
		text, err := json.Marshal(record)
		if err != nil {
			return nil, err
		}
		if err := keep.Store(ctx, autoscalingName, text); err != nil {
			return nil, err
		}
	}
	if len(record.Changes) == 0 {
		c.reports.inform(ctx, call.Object, "No group has to become larger or smaller")
		return nil, nil
	}
	var changes []resizing
	for _, change := range record.Changes {
		c.reports.inform(ctx, call.Object, "%s", change.Reason)
		one, err := c.resizingTo(ctx, call, change)
		if err != nil {
			return nil, err
		}
		changes = append(changes, one)
	}
	return nil, c.resize(ctx, call, changes...)
}

// decide decides on the sizes of the groups.
func (c clusterClass) decide(ctx context.Context, call muranopl.Call, list []desired.Group, record *scalingRecord) error {
	known, err := c.clusters.forScaling(ctx, call.Object)
	if err != nil {
		return err
	}
	live, err := c.clusters.bring(ctx, call.Object, known.Nodes)
	if err != nil {
		return err
	}
	return c.clusters.runtime.Step(ctx, call.Object, "decide on the size of groups", func(ctx context.Context) error {
		client, err := kubernetesOf(ctx, live)
		if err != nil {
			return err
		}
		state, err := load(ctx, client, list, *known, *record, func(ctx context.Context, name string) (*openstack.FlavorChoice, error) {
			project, err := c.clusters.runtime.Project(ctx)
			if err != nil {
				return nil, err
			}
			return project.Flavor(ctx, name)
		})
		if err != nil {
			return err
		}
		decision := autoscale.Decide(state)
		record.Task, record.Changes = c.clusters.runtime.TaskID(), decision.Changes
		for _, change := range decision.Changes {
			at := slices.IndexFunc(list, func(one desired.Group) bool { return one.Name == change.Group })
			kept := scaledGroup{Flavor: list[at].Flavor, Last: &ScalingDecision{At: state.Now.UTC(), From: change.From, To: change.Count, Text: change.Reason, Task: record.Task}}
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

// forScaling has the data of a cluster whose number of nodes may be changed by its load.
func (c *clusters) forScaling(ctx context.Context, cluster *muranopl.Object) (*known.Facts, error) {
	known, err := c.facts(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if known == nil || !known.Network.IsValid() {
		return nil, fault.New(fault.Invalid, "cluster %s was never up: deploy the environment", cluster.Text("name"))
	}
	upgrade, err := c.upgradeOf(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if upgrade != nil {
		return nil, fault.New(fault.Conflict, "an upgrade of cluster %s has begun: its nodes follow their load again when it has ended", cluster.Text("name"))
	}
	c.recall(cluster, known)
	return known, nil
}

func kubernetesOf(ctx context.Context, live *nodes.Cluster) (kubernetes.Interface, error) {
	config, err := live.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	config.ContentType = "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(config)
}

// resizingTo makes the nodes for a change, and moves the leaving nodes to the end.
func (c clusterClass) resizingTo(ctx context.Context, call muranopl.Call, change autoscale.Change) (resizing, error) {
	for _, group := range call.Object.Objects(propertyGroups) {
		if group.Text("name") != change.Group {
			continue
		}
		l := nodeList{grouped, group}
		if err := c.clusters.groups.fill(ctx, call.Interpreter, group, change.Count); err != nil {
			return resizing{}, err
		}
		order := l.all()
		for _, name := range change.Remove {
			active := order[:l.size()]
			at, err := c.clusters.named(ctx, active, name)
			if err != nil {
				return resizing{}, fmt.Errorf("find node %s of group %s: %w", name, change.Group, err)
			}
			order = append(slices.Delete(slices.Clone(order), at, at+1), order[at])
		}
		return resizing{l, order, change.Count}, nil
	}
	return resizing{}, fmt.Errorf("group %s has gone from cluster %s", change.Group, call.Object.Text("name"))
}

// setGroupLimits is the action that sets the limits of a group that follows its load. When it fails, the model does not change.
func (c clusterClass) setGroupLimits(ctx context.Context, call muranopl.Call) (any, error) {
	l, err := ofGroup(call)
	if err != nil {
		return nil, err
	}
	undo, err := c.setLimits(ctx, l.of, call, map[string]string{propertyMinimum: propertyMinimum, propertyMaximum: propertyMaximum, propertyAfter: propertyAfter})
	if err != nil {
		return nil, err
	}
	group := desired.ReadGroup(l.of)
	if err := group.CheckLimits(); err != nil {
		undo()
		return nil, fault.New(fault.Invalid, "%s", err)
	}
	count := group.Count
	if group.Elastic() {
		count = group.Between(count)
	}
	if count > group.Maximum {
		undo()
		return nil, fault.New(fault.Invalid, "group %s has %d nodes, more than the maximum of %d: have it have fewer first, or give it a minimum too", group.Name, count, group.Maximum)
	}
	if err := c.clusters.groups.fill(ctx, call.Interpreter, l.of, count); err != nil {
		undo()
		return nil, err
	}
	if err := c.resize(ctx, call, resizing{l, l.all(), count}); err != nil {
		undo()
		return nil, err
	}
	return nil, nil
}

// setLimits sets the properties of an object from a call's arguments, by the names of the arguments; a minimum of -1 is none. When it fails, it has
// already done undo.
func (c clusterClass) setLimits(ctx context.Context, object *muranopl.Object, call muranopl.Call, properties map[string]string) (undo func(), err error) {
	was := map[string]any{}
	undo = func() {
		for name, value := range was {
			if err := object.Set(name, value); err != nil {
				c.reports.logger.WarnContext(ctx, "the model keeps limits that were not set", "object", object.ID(), "error", err)
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
