package client

import (
	"context"
	"net/http"
	"net/url"
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
