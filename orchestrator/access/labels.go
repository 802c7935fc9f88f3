package access

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
)

// Host is a server of the cloud that is a node of a cluster.
type Host struct {
	Environment, Cluster, Node string
	Server                     string // its id in Nova
	Labels                     []HostLabel
}

// HostLabel is a label that was set through Burano, in the form of StarlingX.
type HostLabel struct {
	UUID      string     `json:"uuid"`
	HostUUID  string     `json:"host_uuid"`
	Label     string     `json:"label"` // KEY=VALUE
	Key       string     `json:"label_key"`
	Value     string     `json:"label_value"`
	CreatedAt *time.Time `json:"created_at"` // null for labels of groups, and labels that former versions set
	UpdatedAt *time.Time `json:"updated_at"` // of the last other value; null for none
	CreatedBy *string    `json:"created_by"` // the name of the user who set it first
}

// Hosts are the hosts of an environment, with their labels. No node is asked.
func (c Clusters) Hosts(ctx context.Context, environmentID string) (hosts []Host, err error) {
	ids, err := c.ClusterIDs(ctx, environmentID)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		facts, err := known.FactsOf(ctx, c.vault(environmentID, id))
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, node := range facts.Nodes {
			if node.Server != "" && !node.Leaving {
				hosts = append(hosts, Host{environmentID, id, node.Name, node.Server, labelsOf(node)})
			}
		}
	}
	return hosts, nil
}

// labelsOf are the labels of a node, by their keys.
func labelsOf(node nodes.Node) []HostLabel {
	list := []HostLabel{}
	for _, key := range slices.Sorted(maps.Keys(node.Settings.Labels)) {
		value, set := node.Settings.Labels[key], node.Settings.Assigned[key]
		one := HostLabel{UUID: cmp.Or(set.ID, kube.LabelID(node.Server, key)), HostUUID: node.Server, Label: key + "=" + value, Key: key, Value: value}
		if !set.Created.IsZero() {
			one.CreatedAt, one.CreatedBy = &set.Created, &set.By
		}
		if !set.Changed.IsZero() {
			one.UpdatedAt = &set.Changed
		}
		list = append(list, one)
	}
	return list
}

// NewHostLabel is the label of a key that a task is about to set for the first time.
func NewHostLabel(of Host, task, key string) HostLabel {
	return HostLabel{UUID: kube.LabelID(task, key), HostUUID: of.Server, Key: key}
}
