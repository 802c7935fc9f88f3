package main

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// clusterClass is the class whose objects are Kubernetes clusters.
const clusterClass = "com.mirantis.docker.kubernetes.KubernetesCluster"

func clusterCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "cluster", Short: "Kubernetes clusters that Burano deployed"}
	command.AddCommand(kubeconfigCommand(connection))
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
			wanted := ""
			if len(args) == 1 {
				wanted = args[0]
			}
			cluster, err := environment.cluster(wanted)
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
