package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// clusterClass is the class whose objects are Kubernetes clusters.
const clusterClass = "com.mirantis.docker.kubernetes.KubernetesCluster"

func clusterCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "cluster", Short: "Kubernetes clusters that Burano deployed"}
	command.AddCommand(clusterShowCommand(connection), kubeconfigCommand(connection))
	return command
}

// clusterStatus is a cluster as the API tells it.
type clusterStatus struct {
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

// print lists nodes with their members of etcd, and then routes.
func (s clusterStatus) print(table *tabwriter.Writer) {
	members := map[string]string{}
	for _, one := range s.Members {
		members[one.Name] = "healthy"
		switch {
		case !one.Healthy:
			members[one.Name] = "unhealthy"
		case one.Learner:
			members[one.Name] = "learner"
		}
	}
	fmt.Fprintln(table, "NODE\tROLE\tADDRESS\tFLOATING\tREACHABLE\tREADY\tETCD\tVERSION")
	for _, one := range s.Nodes {
		ready := ""
		if one.Ready != nil {
			ready = fmt.Sprint(*one.Ready)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\t%s\t%s\t%s\n", one.Name, one.Role, one.Address, one.Floating, one.Reachable, ready, members[one.Name], one.Version)
	}
	if len(s.Routes) > 0 {
		fmt.Fprintln(table, "\nPORT\tSERVICE\tREADY BACKENDS")
	}
	for _, one := range s.Routes {
		ready := 0
		for _, backend := range one.Backends {
			if backend.Ready {
				ready++
			}
		}
		fmt.Fprintf(table, "%d\t%s/%s\t%d of %d\n", one.GatewayPort, one.Namespace, one.Service, ready, len(one.Backends))
	}
}

func clusterShowCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT [CLUSTER]",
		Short: "Show a cluster's nodes and routes, and what is wrong with it; the exit code tells whether it is healthy",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, environment environmentRow, args []string) error {
			cluster, err := environment.cluster(strings.Join(args, ""))
			if err != nil {
				return err
			}
			var status clusterStatus
			if err := client.call(command.Context(), http.MethodGet, "/burano/v1/environments/"+environment.ID+"/clusters/"+cluster, nil, &status); err != nil {
				return err
			}
			if err := print.print(command.OutOrStdout(), status, status.print); err != nil {
				return err
			}
			if !status.Healthy {
				return fmt.Errorf("cluster %s is not healthy:\n  %s", status.Name, strings.Join(status.Problems, "\n  "))
			}
			return nil
		}),
	}
	print.addFlag(command)
	return command
}

func kubeconfigCommand(connection *connection) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "kubeconfig ENVIRONMENT [CLUSTER]",
		Short: "Write a kubeconfig for a cluster; its certificate is good for 24 hours",
		Example: `  burano cluster kubeconfig demo > demo.kubeconfig
  kubectl --kubeconfig demo.kubeconfig get nodes`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, environment environmentRow, args []string) error {
			cluster, err := environment.cluster(strings.Join(args, ""))
			if err != nil {
				return err
			}
			config, err := client.send(command.Context(), http.MethodGet, "/burano/v1/environments/"+environment.ID+"/clusters/"+cluster+"/kubeconfig", nil)
			if err != nil {
				return err
			}
			if path == "" {
				_, err = command.OutOrStdout().Write(config)
				return err
			}
			return os.WriteFile(path, config, 0o600)
		}),
	}
	command.Flags().StringVarP(&path, "output", "o", "", "file to write, readable by you alone (default: print)")
	return command
}

// cluster returns the id of the environment's cluster of that name or id, or of its only one when none is named.
func (e environmentRow) cluster(wanted string) (id string, err error) {
	var names []string
	for _, service := range e.Services {
		header, _ := service["?"].(map[string]any)
		kind, _ := header["type"].(string)
		if kind, _, _ = strings.Cut(kind, "/"); kind != clusterClass {
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
