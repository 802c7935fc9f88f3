package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ClusterClass is the class whose objects are Kubernetes clusters.
const ClusterClass = "com.mirantis.docker.kubernetes.KubernetesCluster"

// GatewaysClass is the class of gateways without a cluster. Calls about a cluster's nodes work for them, too.
const GatewaysClass = "io.burano.Gateways"

// SharedAddress is an address that the nodes of a role share.
type SharedAddress struct {
	Address  string `json:"address" yaml:"address"`
	Floating string `json:"floating_address" yaml:"floating_address"` // "" for none
}

// Cluster is a Kubernetes cluster: its parts and its present state.
type Cluster struct {
	Name string `json:"name" yaml:"name"`
	API  string `json:"api" yaml:"api"`
	// VirtualAddress is the address that the gateways share; nil for none.
	VirtualAddress *SharedAddress `json:"virtual_address" yaml:"virtual_address"`
	// APIAddress is the address that the masters share; nil for none.
	APIAddress *SharedAddress `json:"api_address" yaml:"api_address"`
	// Registry is the cluster's own registry in names of images; "" for none.
	Registry string   `json:"registry" yaml:"registry"`
	Healthy  bool     `json:"healthy" yaml:"healthy"`
	Problems []string `json:"problems" yaml:"problems"`
	Nodes    []Node   `json:"nodes" yaml:"nodes"`
	Members  []struct {
		Name    string `json:"name" yaml:"name"`
		Learner bool   `json:"learner" yaml:"learner"`
		Healthy bool   `json:"healthy" yaml:"healthy"`
		Size    int64  `json:"size" yaml:"size"`     // bytes of its file; 0 where it does not answer
		InUse   int64  `json:"in_use" yaml:"in_use"` // of them
		Quota   int64  `json:"quota" yaml:"quota"`   // of the file
		Full    bool   `json:"full" yaml:"full"`     // nothing can be written
	} `json:"members" yaml:"members"`
	// Certificates are authorities and the nodes' certificates, the one first that ends first.
	Certificates []struct {
		Node    string    `json:"node" yaml:"node"` // "" for an authority
		Name    string    `json:"name" yaml:"name"`
		Expires time.Time `json:"expires" yaml:"expires"`
	} `json:"certificates" yaml:"certificates"`
	// Rotation of authorities or keys that has begun and not ended; nil for none.
	Rotation *struct {
		Parts []string  `json:"parts" yaml:"parts"`
		Stage string    `json:"stage" yaml:"stage"`
		Began time.Time `json:"began" yaml:"began"`
	} `json:"rotation" yaml:"rotation"`
	// Upgrade is one that has begun and not ended; nil for none.
	Upgrade *struct {
		ImageName  string    `json:"image_name" yaml:"image_name"`
		From       string    `json:"from" yaml:"from"`
		Kubernetes string    `json:"kubernetes" yaml:"kubernetes"`
		Began      time.Time `json:"began" yaml:"began"`
		State      string    `json:"state" yaml:"state"` // running, paused or going back
		Snapshot   string    `json:"snapshot" yaml:"snapshot"`
		Nodes      []struct {
			Name  string `json:"name" yaml:"name"`
			Role  string `json:"role" yaml:"role"`
			State string `json:"state" yaml:"state"` // waiting, replacing or done
		} `json:"nodes" yaml:"nodes"`
	} `json:"upgrade" yaml:"upgrade"`
	// Groups are the groups of minions, beside the cluster's own list.
	Groups []struct {
		Name           string `json:"name" yaml:"name"`
		Nodes          int    `json:"nodes" yaml:"nodes"`
		Minimum        *int   `json:"minimum" yaml:"minimum"` // nil: it does not follow its load
		Maximum        int    `json:"maximum" yaml:"maximum"`
		ScaleDownAfter int    `json:"scale_down_after" yaml:"scale_down_after"` // seconds
		// LastDecision is how its load changed it last; nil for never.
		LastDecision *ScalingDecision `json:"last_decision" yaml:"last_decision"`
	} `json:"groups" yaml:"groups"`
	// GatewayScaling are the limits and the last decision for gateways whose number follows their connections; nil where it does not.
	GatewayScaling *struct {
		Minimum        int `json:"minimum" yaml:"minimum"`
		Maximum        int `json:"maximum" yaml:"maximum"`
		Sessions       int `json:"sessions" yaml:"sessions"`                 // connections at once of each gateway, at most and on average
		ScaleDownAfter int `json:"scale_down_after" yaml:"scale_down_after"` // seconds
		// LastDecision is how connections changed their number last; nil for never.
		LastDecision *ScalingDecision `json:"last_decision" yaml:"last_decision"`
	} `json:"gateway_scaling" yaml:"gateway_scaling"`
	Routes []struct {
		Namespace   string `json:"namespace" yaml:"namespace"`
		Service     string `json:"service" yaml:"service"`
		Port        string `json:"port" yaml:"port"`
		GatewayPort int    `json:"gateway_port" yaml:"gateway_port"`
		Backends    []struct {
			Address  string `json:"address" yaml:"address"`
			Port     int    `json:"port" yaml:"port"`
			Node     string `json:"node" yaml:"node"`
			Ready    bool   `json:"ready" yaml:"ready"`
			Draining bool   `json:"draining" yaml:"draining"`
		} `json:"backends" yaml:"backends"`
	} `json:"routes" yaml:"routes"`
}

// ScalingDecision is a change of a number of nodes that the load of a cluster was the reason of.
type ScalingDecision struct {
	At         time.Time `json:"at" yaml:"at"`
	From       int       `json:"from" yaml:"from"`
	To         int       `json:"to" yaml:"to"`
	Text       string    `json:"text" yaml:"text"` // with the reason, for people
	Deployment string    `json:"deployment" yaml:"deployment"`
}

// Clusters are the calls about Kubernetes clusters, their nodes and the access to them.
type Clusters struct{ client *Client }

// Clusters returns the calls about Kubernetes clusters.
func (c *Client) Clusters() Clusters { return Clusters{c} }

// Get asks how a cluster is, by the ids of its environment and of its object.
func (c Clusters) Get(ctx context.Context, environment, cluster string) (Cluster, error) {
	var status Cluster
	return status, c.client.Call(ctx, http.MethodGet, clusterPath(environment, cluster), nil, &status)
}

// UpgradePlan is the plan of a cluster's upgrade to an image.
type UpgradePlan struct {
	Image      string `json:"image" yaml:"image"` // id
	ImageName  string `json:"image_name" yaml:"image_name"`
	From       string `json:"from" yaml:"from"` // the Kubernetes of the API server, "" where it is not known
	Kubernetes string `json:"kubernetes" yaml:"kubernetes"`
	Seconds    int    `json:"seconds" yaml:"seconds"`   // about how long it would take
	Measured   bool   `json:"measured" yaml:"measured"` // whether the estimate is from former replacements
	Means      string `json:"means" yaml:"means"`
	Nodes      []struct {
		Name       string `json:"name" yaml:"name"`
		Role       string `json:"role" yaml:"role"`
		Kubernetes string `json:"kubernetes" yaml:"kubernetes"`
		Image      string `json:"image" yaml:"image"`
		Seconds    int    `json:"seconds" yaml:"seconds"`
	} `json:"nodes" yaml:"nodes"` // in the order in which they get other servers
	Problems []struct {
		Text  string `json:"text" yaml:"text"`
		Grave bool   `json:"grave" yaml:"grave"` // it cannot be passed over by force
	} `json:"problems" yaml:"problems"`
}

// UpgradePlan returns the plan of a cluster's upgrade to an image, named by its id or name.
func (c Clusters) UpgradePlan(ctx context.Context, environment, cluster, image string) (plan UpgradePlan, err error) {
	return plan, c.client.Call(ctx, http.MethodGet, clusterPath(environment, cluster)+"/upgrade?image="+url.QueryEscape(image), nil, &plan)
}

// PauseUpgrade has the upgrade of a cluster that runs pause before its next node.
func (c Clusters) PauseUpgrade(ctx context.Context, environment, cluster string) error {
	return c.client.Call(ctx, http.MethodPost, clusterPath(environment, cluster)+"/upgrade/pause", nil, nil)
}

// KubeconfigOptions are the options of a kubeconfig; zero values are the server's defaults.
type KubeconfigOptions struct {
	Groups    []string // of Kubernetes
	Namespace string   // that it begins in
	Lifetime  string   // of its certificate, such as 8h
	SignIn    string   // certificate, or keystone for one without
}

// Kubeconfig gives a kubeconfig (YAML or JSON) of a cluster.
func (c Clusters) Kubeconfig(ctx context.Context, environment, cluster string, options KubeconfigOptions) ([]byte, error) {
	values := url.Values{"group": options.Groups}
	for name, value := range map[string]string{"namespace": options.Namespace, "lifetime": options.Lifetime, "sign_in": options.SignIn} {
		if value != "" {
			values.Set(name, value)
		}
	}
	path := clusterPath(environment, cluster) + "/kubeconfig"
	if query := values.Encode(); query != "" {
		path += "?" + query
	}
	return c.client.Send(ctx, http.MethodGet, path, nil)
}

// Credential is a user's credential for the API server of a cluster.
type Credential struct {
	User        string    `json:"user" yaml:"user"`
	Groups      []string  `json:"groups" yaml:"groups"`
	Certificate string    `json:"certificate" yaml:"certificate"` // PEM
	Key         string    `json:"key" yaml:"key"`                 // PEM
	Expires     time.Time `json:"expires" yaml:"expires"`
}

// Credential issues a certificate of an hour at most to the caller, with the rights that their roles give.
func (c Clusters) Credential(ctx context.Context, environment, cluster string) (made Credential, err error) {
	return made, c.client.Call(ctx, http.MethodGet, clusterPath(environment, cluster)+"/credential", nil, &made)
}

// SSHKey is the line of authorized_keys by which a machine lets the cluster's Burano in.
func (c Clusters) SSHKey(ctx context.Context, environment, cluster string) (string, error) {
	var found struct {
		PublicKey string `json:"public_key"`
	}
	return found.PublicKey, c.client.Call(ctx, http.MethodGet, clusterPath(environment, cluster)+"/ssh-key", nil, &found)
}

// GiveSSHKey gives the private key with which Burano logs in to an external node in place of its own, and returns its public half; with "" its own is
// used again.
func (c Clusters) GiveSSHKey(ctx context.Context, environment, cluster, node, private string) (string, error) {
	path := clusterPath(environment, cluster) + "/ssh-keys/" + url.PathEscape(node)
	if private == "" {
		return "", c.client.Call(ctx, http.MethodDelete, path, nil, nil)
	}
	var found struct {
		PublicKey string `json:"public_key"`
	}
	return found.PublicKey, c.client.Call(ctx, http.MethodPut, path, map[string]string{"private_key": private}, &found)
}

// ClusterID returns the id of the environment's cluster, or of its gateways without one, of that name or id. When none is named it is the only cluster, or, where there is
// none, the only gateways.
func (e Environment) ClusterID(wanted string) (id string, err error) {
	var names, gateways []string
	var alone string
	for _, service := range e.Services {
		header, _ := service["?"].(map[string]any)
		kind, _ := header["type"].(string)
		kind, _, _ = strings.Cut(kind, "/")
		name, _ := service["name"].(string)
		key, _ := header["id"].(string)
		switch {
		case isCluster(kind, service) && (wanted == "" || wanted == name || wanted == key), kind == GatewaysClass && (wanted == name || wanted == key):
			id = key
			names = append(names, name)
		case kind == GatewaysClass && wanted == "":
			alone = key
			gateways = append(gateways, name)
		}
	}
	if len(names) == 0 {
		id, names = alone, gateways
	}
	switch {
	case len(names) == 1:
		return id, nil
	case len(names) > 1:
		return "", fmt.Errorf("environment %s has several clusters: name one of %s", e.Name, strings.Join(names, ", "))
	case wanted != "":
		return "", fmt.Errorf("environment %s has no cluster %q", e.Name, wanted)
	default:
		return "", fmt.Errorf("environment %s has no Kubernetes cluster", e.Name)
	}
}

// isCluster reports whether a component is a Kubernetes cluster, also of a class that extends the one of clusters: it has the lists of nodes of a cluster.
func isCluster(kind string, service map[string]any) bool {
	_, master := service["masterNode"].(map[string]any)
	_, minions := service["minionNodes"].([]any)
	return kind == ClusterClass || master && minions
}

// Running is the workloads and pods of a cluster.
type Running struct {
	Workloads []Workload `json:"workloads" yaml:"workloads"`
	Pods      []Pod      `json:"pods" yaml:"pods"`
}

// Workload makes pods.
type Workload struct {
	Kind      string   `json:"kind" yaml:"kind"` // Deployment, StatefulSet, DaemonSet or Job
	Namespace string   `json:"namespace" yaml:"namespace"`
	Name      string   `json:"name" yaml:"name"`
	Wanted    int      `json:"wanted" yaml:"wanted"` // pods
	Ready     int      `json:"ready" yaml:"ready"`
	Images    []string `json:"images" yaml:"images"`
	// Managed marks a workload that Burano writes; Object is the id of its component, "" for none.
	Managed bool   `json:"managed" yaml:"managed"`
	Object  string `json:"object" yaml:"object"`
	// Events are the events of the last hour, the newest first; only Workloads.Get returns them.
	Events []KubernetesEvent `json:"events,omitempty" yaml:"events,omitempty"`
}

// KubernetesEvent is something that Kubernetes noted.
type KubernetesEvent struct {
	Type    string `json:"type" yaml:"type"` // Normal or Warning
	Reason  string `json:"reason" yaml:"reason"`
	Message string `json:"message" yaml:"message"`
	Count   int    `json:"count" yaml:"count"`
	Last    string `json:"last" yaml:"last"`
}

// Pod is a pod of a cluster.
type Pod struct {
	Namespace  string `json:"namespace" yaml:"namespace"`
	Name       string `json:"name" yaml:"name"`
	State      string `json:"state" yaml:"state"`
	Healthy    bool   `json:"healthy" yaml:"healthy"`
	Message    string `json:"message" yaml:"message"`
	Node       string `json:"node" yaml:"node"`
	Address    string `json:"address" yaml:"address"`
	Created    string `json:"created" yaml:"created"`
	Containers []struct {
		Name     string `json:"name" yaml:"name"`
		Image    string `json:"image" yaml:"image"`
		Init     bool   `json:"init" yaml:"init"`
		State    string `json:"state" yaml:"state"`
		Message  string `json:"message" yaml:"message"`
		Ready    bool   `json:"ready" yaml:"ready"`
		Restarts int    `json:"restarts" yaml:"restarts"`
	} `json:"containers" yaml:"containers"`
	// Events are the events of the last hour, the newest first; only Workloads.Pod returns them.
	Events []KubernetesEvent `json:"events,omitempty" yaml:"events,omitempty"`
}

// Workloads are the calls about the pods and workloads of a cluster.
type Workloads struct{ client *Client }

// Workloads returns the calls about the pods and workloads of a cluster.
func (c *Client) Workloads() Workloads { return Workloads{c} }

// Running lists the workloads and pods of a namespace of a cluster; "" is all namespaces.
func (c Workloads) Running(ctx context.Context, environment, cluster, namespace string) (Running, error) {
	var found Running
	path := clusterPath(environment, cluster) + "/running"
	if namespace != "" {
		path += "?" + url.Values{"namespace": {namespace}}.Encode()
	}
	return found, c.client.Call(ctx, http.MethodGet, path, nil, &found)
}

// Pod reads a pod of a cluster.
func (c Workloads) Pod(ctx context.Context, environment, cluster, namespace, pod string) (Pod, error) {
	var found Pod
	return found, c.client.Call(ctx, http.MethodGet, podPath(environment, cluster, namespace, pod), nil, &found)
}

// RecreatePod ends a pod, so that its workload makes it again.
func (c Workloads) RecreatePod(ctx context.Context, environment, cluster, namespace, pod string) error {
	return c.client.Call(ctx, http.MethodPost, podPath(environment, cluster, namespace, pod)+"/recreate", nil, nil)
}

// Get reads a workload of a cluster.
func (c Workloads) Get(ctx context.Context, environment, cluster, namespace, kind, name string) (Workload, error) {
	var found Workload
	return found, c.client.Call(ctx, http.MethodGet, workloadPath(environment, cluster, namespace, kind, name), nil, &found)
}

// Scale has a Deployment or StatefulSet have so many pods.
func (c Workloads) Scale(ctx context.Context, environment, cluster, namespace, kind, name string, pods int) error {
	return c.client.Call(ctx, http.MethodPut, workloadPath(environment, cluster, namespace, kind, name)+"/scale", map[string]int{"pods": pods}, nil)
}

// Restart has all pods of a workload made again.
func (c Workloads) Restart(ctx context.Context, environment, cluster, namespace, kind, name string) error {
	return c.client.Call(ctx, http.MethodPost, workloadPath(environment, cluster, namespace, kind, name)+"/restart", nil, nil)
}

// LogOptions select lines of a pod's log; zero values select the last 500 of its main container.
type LogOptions struct {
	Container string
	Tail      int
	Previous  bool // of the container's former run
}

func (o LogOptions) query() string {
	values := url.Values{}
	if o.Container != "" {
		values.Set("container", o.Container)
	}
	if o.Tail > 0 {
		values.Set("tail", strconv.Itoa(o.Tail))
	}
	if o.Previous {
		values.Set("previous", "true")
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// PodLog gives the last lines of a pod's log.
func (c Workloads) PodLog(ctx context.Context, environment, cluster, namespace, pod string, options LogOptions) ([]byte, error) {
	return c.client.Send(ctx, http.MethodGet, podPath(environment, cluster, namespace, pod)+"/log"+options.query(), nil)
}

// FollowPodLog calls line for each line of a pod's log, past ones first, and changed with each state in which its container does not run. It
// returns the last state of a pod that will not run again. A stream that breaks off goes on where it was.
func (c Workloads) FollowPodLog(ctx context.Context, environment, cluster, namespace, pod string, options LogOptions, line func(text string) error, changed func(state string)) (end string, err error) {
	stream := &eventStream{client: c.client, path: podPath(environment, cluster, namespace, pod) + "/log/events" + options.query()}
	err = stream.read(ctx, func(name string, data []byte) (bool, error) {
		var event struct {
			State string `json:"state"`
			Lines []struct {
				Text string `json:"text"`
			} `json:"lines"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return false, fmt.Errorf("read the log of pod %s: %w", pod, err)
		}
		switch name {
		case "lines":
			for _, one := range event.Lines {
				if err := line(one.Text); err != nil {
					return false, err
				}
			}
		case "state":
			changed(event.State)
		case "end":
			end = event.State
			return true, nil
		}
		return false, nil
	})
	return end, err
}

func clusterPath(environment, cluster string) string {
	return "/burano/v1/environments/" + environment + "/clusters/" + cluster
}

func podPath(environment, cluster, namespace, pod string) string {
	return clusterPath(environment, cluster) + "/pods/" + url.PathEscape(namespace) + "/" + url.PathEscape(pod)
}

func workloadPath(environment, cluster, namespace, kind, name string) string {
	return clusterPath(environment, cluster) + "/workloads/" + url.PathEscape(namespace) + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
}
