package client

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// ClusterClass is the class whose objects are Kubernetes clusters.
const ClusterClass = "com.mirantis.docker.kubernetes.KubernetesCluster"

// Cluster is a Kubernetes cluster: what it is made of and how it is now.
type Cluster struct {
	Name     string   `json:"name" yaml:"name"`
	API      string   `json:"api" yaml:"api"`
	Healthy  bool     `json:"healthy" yaml:"healthy"`
	Problems []string `json:"problems" yaml:"problems"`
	Nodes    []struct {
		Name      string `json:"name" yaml:"name"`
		Role      string `json:"role" yaml:"role"`
		Address   string `json:"address" yaml:"address"`
		Floating  string `json:"floating_address" yaml:"floating_address"`
		Server    string `json:"server" yaml:"server"`
		Reachable bool   `json:"reachable" yaml:"reachable"`
		Ready     *bool  `json:"ready" yaml:"ready"`
		Version   string `json:"version" yaml:"version"`
	} `json:"nodes" yaml:"nodes"`
	Members []struct {
		Name    string `json:"name" yaml:"name"`
		Learner bool   `json:"learner" yaml:"learner"`
		Healthy bool   `json:"healthy" yaml:"healthy"`
	} `json:"members" yaml:"members"`
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

// Cluster asks how a cluster is, by the ids of its environment and of its object.
func (c *Client) Cluster(ctx context.Context, environment, cluster string) (Cluster, error) {
	var status Cluster
	return status, c.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/clusters/"+cluster, nil, &status)
}

// Kubeconfig gives a kubeconfig (YAML) of a cluster's administrator, which is good for 24 hours.
func (c *Client) Kubeconfig(ctx context.Context, environment, cluster string) ([]byte, error) {
	return c.Send(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/clusters/"+cluster+"/kubeconfig", nil)
}

// ClusterID returns the id of the environment's cluster of that name or id, or of its only one when none is named.
func (e Environment) ClusterID(wanted string) (id string, err error) {
	var names []string
	for _, service := range e.Services {
		header, _ := service["?"].(map[string]any)
		kind, _ := header["type"].(string)
		if kind, _, _ = strings.Cut(kind, "/"); kind != ClusterClass {
			continue
		}
		name, _ := service["name"].(string)
		key, _ := header["id"].(string)
		if wanted == "" || wanted == name || wanted == key {
			id = key
			names = append(names, name)
		}
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
