package cluster

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func workloadCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "workload", Short: "Deployments, StatefulSets, DaemonSets and Jobs of a cluster"}
	command.AddCommand(workloadShowCommand(connection), workloadScaleCommand(connection), workloadRestartCommand(connection))
	return command
}

// workload is one of an environment's cluster, as the command line names it.
type workload struct{ environment, cluster, namespace, kind, name string }

// onWorkload is a command about a workload, which its second argument names as KIND/NAME.
func (o *clusterOptions) onWorkload(connection *cli.Connection, run func(command *cobra.Command, api *client.Client, one workload, args []string) error) func(*cobra.Command, []string) error {
	return connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
		kind, name, _ := strings.Cut(args[0], "/")
		kinds := map[string]string{"deployment": "Deployment", "statefulset": "StatefulSet", "daemonset": "DaemonSet", "job": "Job"}
		known := kinds[strings.ToLower(kind)]
		if known == "" || name == "" {
			return fmt.Errorf("%q names no workload: write KIND/NAME, such as deployment/web; there are deployments, statefulsets, daemonsets and jobs", args[0])
		}
		cluster, err := environment.ClusterID(o.cluster)
		if err != nil {
			return err
		}
		return run(command, api, workload{environment.ID, cluster, o.namespace, known, name}, args[1:])
	})
}

func workloadShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var options clusterOptions
	command := &cobra.Command{
		Use:     "show ENVIRONMENT KIND/NAME",
		Short:   "Show a workload and its events of the last hour",
		Example: `  burano cluster workload show demo deployment/web`,
		Args:    cobra.ExactArgs(2),
		RunE: options.onWorkload(connection, func(command *cobra.Command, api *client.Client, one workload, _ []string) error {
			found, err := api.Workloads().Get(command.Context(), one.environment, one.cluster, one.namespace, one.kind, one.name)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), found, func(table *tabwriter.Writer) {
				fmt.Fprintf(table, "%s %s/%s\t%d of %d pods ready\t%s\n", found.Kind, found.Namespace, found.Name, found.Ready, found.Wanted, strings.Join(found.Images, ", "))
				printEvents(found.Events, table)
			})
		}),
	}
	options.addFlags(command, "default", "namespace")
	print.AddFlag(command)
	return command
}

func workloadScaleCommand(connection *cli.Connection) *cobra.Command {
	var options clusterOptions
	command := &cobra.Command{
		Use:     "scale ENVIRONMENT KIND/NAME PODS",
		Short:   "Change the number of pods of a Deployment or StatefulSet",
		Example: `  burano cluster workload scale demo deployment/web 3`,
		Args:    cobra.ExactArgs(3),
		RunE: options.onWorkload(connection, func(command *cobra.Command, api *client.Client, one workload, args []string) error {
			pods, err := strconv.Atoi(args[0])
			if err != nil || pods < 0 {
				return fmt.Errorf("%q is no number of pods", args[0])
			}
			return api.Workloads().Scale(command.Context(), one.environment, one.cluster, one.namespace, one.kind, one.name, pods)
		}),
	}
	options.addFlags(command, "default", "namespace")
	return command
}

func workloadRestartCommand(connection *cli.Connection) *cobra.Command {
	var options clusterOptions
	command := &cobra.Command{
		Use:   "restart ENVIRONMENT KIND/NAME",
		Short: "Recreate all pods of a workload, by its own rules",
		Args:  cobra.ExactArgs(2),
		RunE: options.onWorkload(connection, func(command *cobra.Command, api *client.Client, one workload, _ []string) error {
			return api.Workloads().Restart(command.Context(), one.environment, one.cluster, one.namespace, one.kind, one.name)
		}),
	}
	options.addFlags(command, "default", "namespace")
	return command
}
