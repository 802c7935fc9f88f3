// Package scaling decides how many nodes the groups and gateways of a cluster have by their load, from records of former decisions and from samples.
package scaling

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/autoscale"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
)

// GroupRecordName is the secret of a cluster with its GroupRecord.
const GroupRecordName = "autoscaling"

// GroupRecord is the stored state of a cluster whose groups follow their load.
type GroupRecord struct {
	// Task is the last task that decided, and Changes its decision: another worker continues with them.
	Task    string                 `json:"task,omitempty"`
	Changes []autoscale.Change     `json:"changes,omitempty"`
	Groups  map[string]ScaledGroup `json:"groups,omitempty"`
}

// ScaledGroup is the stored state of a group: the room on its nodes, for when it has none, and the last decision.
type ScaledGroup struct {
	Flavor string              `json:"flavor,omitempty"`
	Room   corev1.ResourceList `json:"room,omitempty"`
	Last   *Decision           `json:"last,omitempty"`
}

// Decision is a change of a group's size that its load was the reason of.
type Decision struct {
	At   time.Time `json:"at"`
	From int       `json:"from"`
	To   int       `json:"to"`
	Text string    `json:"text"` // with the reason, for people
	Task string    `json:"deployment"`
}

// LoadGroupRecord is an empty record where none was stored.
func LoadGroupRecord(ctx context.Context, load func(ctx context.Context, name string) ([]byte, bool, error)) (record GroupRecord, err error) {
	text, found, err := load(ctx, GroupRecordName)
	if err == nil && found {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return record, fmt.Errorf("read what is known of groups that follow their load: %w", err)
	}
	if record.Groups == nil {
		record.Groups = map[string]ScaledGroup{}
	}
	return record, nil
}

// GroupStatuses are the groups of a cluster with their last changes.
func GroupStatuses(ctx context.Context, from func(ctx context.Context, name string) ([]byte, bool, error), facts known.Facts) ([]GroupStatus, error) {
	record, err := LoadGroupRecord(ctx, from)
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

// Load asks a cluster for its load, with its groups that follow it. flavor returns the size of a new node that is not known yet.
func Load(ctx context.Context, client kubernetes.Interface, list []desired.Group, facts known.Facts, record GroupRecord,
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
		group := autoscale.Group{Name: one.Name, Minimum: *one.Minimum, Maximum: one.Maximum, Count: one.Count, After: time.Duration(one.After) * time.Second,
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

// KubernetesOf is a client of a cluster's API.
func KubernetesOf(ctx context.Context, live *nodes.Cluster) (kubernetes.Interface, error) {
	config, err := live.Kubernetes(ctx)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(kube.Protobuf(config))
}

type (
	// GroupStatus is a group of minions.
	GroupStatus struct {
		known.GroupFact
		Nodes int `json:"nodes"`
		// Last is how its load changed it last; nil for never.
		Last *Decision `json:"last_decision"`
	}
)
