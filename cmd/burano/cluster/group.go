package cluster

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func groupCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "group", Short: "Groups of a cluster's minions that are alike; burano cluster show lists them"}
	command.AddCommand(groupAddCommand(connection), groupRemoveCommand(connection))
	return command
}

func groupAddCommand(connection *cli.Connection) *cobra.Command {
	var options nodeOptions
	var count, minimum, maximum, after int
	var flavor, image string
	var zones, labels, taints []string
	command := &cobra.Command{
		Use:   "add ENVIRONMENT GROUP",
		Short: "Add a group of minions to a cluster",
		Long: `Add adds a group of new nodes to a cluster. Omitted properties are the same as those of the first minion in the cluster's list. A group with a minimum
follows its load: it has as many nodes as its pods need, from the minimum to the maximum.`,
		Example: `  burano cluster group add demo workers --count 2 --flavor m1.large --label disk=fast --follow
  burano cluster group add demo batch --minimum 0 --maximum 10 --taint batch=yes:NoSchedule --follow`,
		Args: cobra.ExactArgs(2),
		RunE: options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, group string, _ []string) (string, error) {
			arguments := map[string]any{"name": group, "zones": append([]string{}, zones...)}
			for _, one := range []struct {
				flag, argument string
				number         int
			}{{"count", "count", count}, {"minimum", "minimum", minimum}, {"maximum", "maximum", maximum}, {"scale-down-after", "scaleDownAfter", after}} {
				if command.Flags().Changed(one.flag) {
					arguments[one.argument] = one.number
				}
			}
			for name, text := range map[string]string{"flavor": flavor, "image": image} {
				if text != "" {
					arguments[name] = text
				}
			}
			set, err := labelsOf(labels)
			if err != nil {
				return "", err
			}
			tainted, err := taintsOf(taints)
			if err != nil {
				return "", err
			}
			arguments["labels"], arguments["taints"] = set, tainted
			return callNamed(command, api, environment, cluster, "addGroup", arguments)
		}),
	}
	options.addFlags(command)
	flags := command.Flags()
	flags.IntVar(&count, "count", 1, "initial number of nodes")
	flags.IntVar(&minimum, "minimum", 0, "minimum number of nodes; with it the group follows its load")
	flags.IntVar(&maximum, "maximum", 1000, "maximum number of nodes")
	flags.IntVar(&after, "scale-down-after", 600, "seconds for which a node of a group that follows its load must be unneeded before it is removed")
	flags.StringVar(&flavor, "flavor", "", "flavor of its servers")
	flags.StringVar(&image, "image", "", "image of its servers")
	flags.StringArrayVar(&zones, "zone", nil, "availability zone (repeatable); nodes are spread over several zones")
	flags.StringArrayVar(&labels, "label", nil, "label KEY=VALUE of all its nodes in Kubernetes (repeatable)")
	flags.StringArrayVar(&taints, "taint", nil, "taint KEY[=VALUE]:EFFECT of all its nodes (repeatable)")
	return command
}

func groupRemoveCommand(connection *cli.Connection) *cobra.Command {
	var options nodeOptions
	command := &cobra.Command{
		Use:   "remove ENVIRONMENT GROUP",
		Short: "Remove a group of minions from a cluster, with all its nodes",
		Args:  cobra.ExactArgs(2),
		RunE: options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, group string, _ []string) (string, error) {
			return callNamed(command, api, environment, cluster, "removeGroup", map[string]any{"group": group})
		}),
	}
	options.addFlags(command)
	return command
}

// labelsOf reads labels as they are written.
func labelsOf(written []string) (map[string]string, error) {
	labels := map[string]string{}
	for _, one := range written {
		key, value, ok := strings.Cut(one, "=")
		if !ok {
			return nil, fmt.Errorf("%q is no label: write KEY=VALUE", one)
		}
		labels[key] = value
	}
	return labels, nil
}

// taintsOf reads taints as they are written.
func taintsOf(written []string) ([]client.Taint, error) {
	taints := []client.Taint{}
	for _, one := range written {
		key, effect, ok := strings.Cut(one, ":")
		if !ok {
			return nil, fmt.Errorf("%q is no taint: write KEY[=VALUE]:EFFECT, with an effect of NoSchedule, PreferNoSchedule or NoExecute", one)
		}
		key, value, _ := strings.Cut(key, "=")
		taints = append(taints, client.Taint{Key: key, Value: value, Effect: effect})
	}
	return taints, nil
}
