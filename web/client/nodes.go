package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Node is a node of a cluster.
type Node struct {
	Name      string `json:"name" yaml:"name"`
	Role      string `json:"role" yaml:"role"`
	Address   string `json:"address" yaml:"address"`
	Floating  string `json:"floating_address" yaml:"floating_address"`
	Server    string `json:"server" yaml:"server"`
	External  bool   `json:"external" yaml:"external"` // a machine of its own, and no server in Nova
	Reachable bool   `json:"reachable" yaml:"reachable"`
	Ready     *bool  `json:"ready" yaml:"ready"`
	Version   string `json:"version" yaml:"version"`
	// State is "", cordoned (it takes no new pods) or locked (nothing runs on it, and Burano leaves it alone).
	State string `json:"state" yaml:"state"`
	// Labels and Taints are all that Kubernetes has; Set are the ones that were set through Burano, and stay with the node.
	Labels map[string]string `json:"labels" yaml:"labels"`
	Taints []Taint           `json:"taints" yaml:"taints"`
	Set    struct {
		Labels map[string]string `json:"labels" yaml:"labels"`
		Taints []Taint           `json:"taints" yaml:"taints"`
	} `json:"set" yaml:"set"`
}

// Taint keeps pods away from a node that do not tolerate it.
type Taint struct {
	Key    string `json:"key" yaml:"key"`
	Value  string `json:"value" yaml:"value"`
	Effect string `json:"effect" yaml:"effect"` // NoSchedule, PreferNoSchedule or NoExecute
}

func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// HostLabel is a label of a host, which is a server that is a node of a cluster.
type HostLabel struct {
	UUID      string     `json:"uuid" yaml:"uuid"`
	HostUUID  string     `json:"host_uuid" yaml:"host_uuid"` // the id of the server in Nova
	Label     string     `json:"label" yaml:"label"`         // KEY=VALUE
	Key       string     `json:"label_key" yaml:"label_key"`
	Value     string     `json:"label_value" yaml:"label_value"`
	CreatedAt *time.Time `json:"created_at" yaml:"created_at"` // nil where it is not known
	UpdatedAt *time.Time `json:"updated_at" yaml:"updated_at"` // of another value; nil for none
	CreatedBy *string    `json:"created_by" yaml:"created_by"` // the name of the user who set it first
}

// Node is a node of a cluster, by its name.
func (c Clusters) Node(ctx context.Context, environment, cluster, node string) (found Node, err error) {
	err = c.client.Call(ctx, http.MethodGet, nodePath(environment, cluster, node, ""), nil, &found)
	return found, err
}

// HostLabels are the labels of a host that are set through Burano.
func (c Clusters) HostLabels(ctx context.Context, server string) ([]HostLabel, error) {
	var answer struct {
		Labels []HostLabel `json:"labels"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/v1/ihosts/"+url.PathEscape(server)+"/labels", nil, &answer)
	return answer.Labels, err
}

// ChangeNode changes a node, and returns the id of the task, which Follow follows. what is labels, taints (with their fields), cordon, uncordon, lock,
// unlock, reboot (which take patience, in seconds, and force) or replace.
func (c Clusters) ChangeNode(ctx context.Context, environment, cluster, node, what string, fields map[string]any) (task string, err error) {
	var started struct {
		Task string `json:"task_id"`
	}
	err = c.client.Call(ctx, http.MethodPost, nodePath(environment, cluster, node, "/"+what), fields, &started)
	return started.Task, err
}

// ClearNode removes labels, or taints, of these keys that were set through Burano.
func (c Clusters) ClearNode(ctx context.Context, environment, cluster, node, what string, keys []string) (task string, err error) {
	var started struct {
		Task string `json:"task_id"`
	}
	path := nodePath(environment, cluster, node, "/"+what) + "?" + url.Values{"key": keys}.Encode()
	err = c.client.Call(ctx, http.MethodDelete, path, nil, &started)
	return started.Task, err
}

func nodePath(environment, cluster, node, below string) string {
	return clusterPath(environment, cluster) + "/nodes/" + url.PathEscape(node) + below
}
