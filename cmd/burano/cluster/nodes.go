package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// NodeCommand is burano node.
func NodeCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "node", Short: "Nodes of clusters: labels, taints, cordon, lock, swact, reboot, replace"}
	command.AddCommand(nodeListCommand(connection), nodeLabelCommand(connection), nodeTaintCommand(connection),
		nodeDeedCommand(connection, "cordon", "Stop a node from taking new pods; its present pods stay", false),
		nodeDeedCommand(connection, "uncordon", "Let a node take pods again, independently of who cordoned it", false),
		nodeDeedCommand(connection, "lock", "Empty a node, also a dead one, and take it out of service until it is unlocked", true),
		nodeDeedCommand(connection, "unlock", "Take a locked node into service again", false),
		nodeDeedCommand(connection, "swact", "Move leadership away from a master, before work on it", false),
		nodeDeedCommand(connection, "reboot", "Restart a node's server, once its pods are elsewhere", true),
		nodeAddCommand(connection), nodeRemoveCommand(connection), nodeTokenCommand(connection), nodeJoinCommand(),
		nodeDeedCommand(connection, "replace", "Give a node another server, which joins before the former one goes", false))
	return command
}

// nodeOptions are those of commands about one node.
type nodeOptions struct {
	cluster string
	watch   bool
}

func (o *nodeOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	command.Flags().BoolVarP(&o.watch, "follow", "f", false, "show the reports as they come; the exit code is 0 when it was done")
}

// onNode is a command about a node, which its second argument names. run starts a task.
func (o *nodeOptions) onNode(connection *cli.Connection, run func(command *cobra.Command, api *client.Client, environment, cluster, node string, args []string) (task string, err error)) func(*cobra.Command, []string) error {
	return connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
		cluster, err := environment.ClusterID(o.cluster)
		if err != nil {
			return err
		}
		task, err := run(command, api, environment.ID, cluster, args[0], args[1:])
		if err != nil {
			return err
		}
		fmt.Fprintf(command.OutOrStdout(), "%s of %s runs (task %s)\n", command.Name(), args[0], task)
		if !o.watch {
			return nil
		}
		return cli.Follow(command.Context(), api, task, command.OutOrStdout())
	})
}

func nodeListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var wide bool
	command := &cobra.Command{
		Use:   "list ENVIRONMENT [CLUSTER]",
		Short: "List the nodes of a cluster with their state, and the labels and taints that are set through Burano",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			status, err := api.Clusters().Get(command.Context(), environment.ID, cluster)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), status.Nodes, nodeTable(status.Nodes, wide))
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVar(&wide, "all", false, "show all labels and taints, not only those that were set through Burano")
	return command
}

func nodeTable(list []client.Node, all bool) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "NODE\tROLE\tREACHABLE\tREADY\tSTATE\tLABELS\tTAINTS")
		for _, one := range list {
			ready := ""
			if one.Ready != nil {
				ready = fmt.Sprint(*one.Ready)
			}
			labels, taints := one.Set.Labels, one.Set.Taints
			if all {
				labels, taints = one.Labels, one.Taints
			}
			var pairs, tainted []string
			for _, key := range slices.Sorted(maps.Keys(labels)) {
				pairs = append(pairs, key+"="+labels[key])
			}
			for _, taint := range taints {
				tainted = append(tainted, taint.String())
			}
			fmt.Fprintf(table, "%s\t%s\t%t\t%s\t%s\t%s\t%s\n", one.Name, roleOf(one), one.Reachable, ready, one.State, strings.Join(pairs, ","), strings.Join(tainted, ","))
		}
	}
}

// roleOf is a node's role, and that it is no server of the cloud.
func roleOf(node client.Node) string {
	if node.External {
		return node.Role + " (machine)"
	}
	return node.Role
}

// splitRemovals takes arguments apart into those that set something and, without their final dash, those that remove it.
func splitRemovals(args []string) (set, remove []string, err error) {
	for _, one := range args {
		if key, removes := strings.CutSuffix(one, "-"); removes && !strings.Contains(one, "=") {
			remove = append(remove, key)
		} else {
			set = append(set, one)
		}
	}
	if len(set) > 0 && len(remove) > 0 {
		return nil, nil, fmt.Errorf("set and remove in two calls: %s are set, %s removed", strings.Join(set, ", "), strings.Join(remove, ", "))
	}
	return set, remove, nil
}

func nodeLabelCommand(connection *cli.Connection) *cobra.Command {
	set := func(written []string) (any, error) { return labelsOf(written) }
	command := nodeMarkCommand(connection, &cobra.Command{
		Use:   "label ENVIRONMENT NODE KEY=VALUE... | KEY-...",
		Short: "Set labels of a node, which stay with it when it gets another server, or remove them",
		Example: `  burano node label demo murano-kube-2 disk=fast zone=b --follow
  burano node label demo murano-kube-2 disk-`,
	}, "labels", set)
	assign := nodeMarkCommand(connection, &cobra.Command{Use: "assign ENVIRONMENT NODE KEY=VALUE...", Short: "Set labels of a node, as label does"}, "labels", set)
	remove := nodeMarkCommand(connection, &cobra.Command{Use: "remove ENVIRONMENT NODE KEY...", Short: "Remove labels of a node, as label does with KEY-"}, "labels", set)
	run := remove.RunE
	remove.RunE = func(command *cobra.Command, args []string) error {
		args = slices.Clone(args)
		for i := 2; i < len(args); i++ {
			args[i] = strings.TrimSuffix(args[i], "-") + "-"
		}
		return run(command, args)
	}
	command.AddCommand(assign, nodeLabelListCommand(connection), remove)
	return command
}

func nodeLabelListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var cluster string
	command := &cobra.Command{
		Use:   "list ENVIRONMENT NODE",
		Short: "List the labels of a node that are set through Burano, with their ids, times and users",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			id, err := environment.ClusterID(cluster)
			if err != nil {
				return err
			}
			node, err := api.Clusters().Node(command.Context(), environment.ID, id, args[0])
			if err != nil {
				return err
			}
			if node.Server == "" {
				return fmt.Errorf("%s is no server of the cloud, and its labels have no ids: burano node list shows them", node.Name)
			}
			labels, err := api.Clusters().HostLabels(command.Context(), node.Server)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), labels, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tLABEL\tCREATED\tUPDATED\tBY")
				for _, one := range labels {
					by := ""
					if one.CreatedBy != nil {
						by = *one.CreatedBy
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", one.UUID, one.Label, timeText(one.CreatedAt), timeText(one.UpdatedAt), by)
				}
			})
		}),
	}
	command.Flags().StringVar(&cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	print.AddFlag(command)
	return command
}

// timeText is a time, "" for none.
func timeText(at *time.Time) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.DateTime)
}

func nodeTaintCommand(connection *cli.Connection) *cobra.Command {
	return nodeMarkCommand(connection, &cobra.Command{
		Use:   "taint ENVIRONMENT NODE KEY[=VALUE]:EFFECT... | KEY[:EFFECT]-...",
		Short: "Set taints of a node, which stay with it when it gets another server, or remove them",
		Example: `  burano node taint demo murano-kube-2 gpu=yes:NoSchedule --follow
  burano node taint demo murano-kube-2 gpu-`,
	}, "taints", func(set []string) (any, error) { return taintsOf(set) })
}

// nodeMarkCommand sets or removes marks of a node of one kind: labels or taints.
func nodeMarkCommand(connection *cli.Connection, command *cobra.Command, kind string, read func(written []string) (any, error)) *cobra.Command {
	var options nodeOptions
	command.Args = cobra.MinimumNArgs(3)
	command.RunE = options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, node string, args []string) (string, error) {
		set, remove, err := splitRemovals(args)
		if err != nil {
			return "", err
		}
		if len(remove) > 0 {
			return api.Clusters().ClearNode(command.Context(), environment, cluster, node, kind, remove)
		}
		marks, err := read(set)
		if err != nil {
			return "", fmt.Errorf("%w, or KEY- to remove it", err)
		}
		return api.Clusters().ChangeNode(command.Context(), environment, cluster, node, kind, map[string]any{kind: marks})
	})
	options.addFlags(command)
	return command
}

// The flag of commands that remove or replace nodes.
const (
	loseVolumesFlag = "lose-volumes"
	loseVolumesHelp = "also where volumes are on the disks of nodes that go: what claims have there is lost"
)

// nodeDeedCommand is a command that changes a node. With empties its pods are evicted first.
func nodeDeedCommand(connection *cli.Connection, deed, short string, empties bool) *cobra.Command {
	var options nodeOptions
	var force, lose bool
	var patience time.Duration
	command := &cobra.Command{
		Use:   deed + " ENVIRONMENT NODE",
		Short: short,
		Args:  cobra.ExactArgs(2),
		RunE: options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, node string, _ []string) (string, error) {
			fields := map[string]any{}
			if empties {
				fields["force"], fields["patience"] = force, int(patience.Round(time.Second).Seconds())
			}
			if deed == "replace" {
				fields["loseVolumes"] = lose
			}
			return api.Clusters().ChangeNode(command.Context(), environment, cluster, node, deed, fields)
		}),
	}
	options.addFlags(command)
	if deed == "replace" {
		command.Flags().BoolVar(&lose, loseVolumesFlag, false, loseVolumesHelp)
	}
	if empties {
		command.Flags().DurationVar(&patience, "patience", 0, "time for pods to move, as disruption budgets allow; default: the server's setting")
		command.Flags().BoolVar(&force, "force", false, "also when pods do not move in time, or when more than the node is interrupted")
	}
	return command
}
