package cluster

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// clusterOptions choose a cluster of an environment, and a namespace in it.
type clusterOptions struct{ cluster, namespace string }

func (o *clusterOptions) addFlags(command *cobra.Command, namespace, usage string) {
	command.Flags().StringVar(&o.cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	command.Flags().StringVarP(&o.namespace, "namespace", "n", namespace, usage)
}

func podsCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var options clusterOptions
	command := &cobra.Command{
		Use:   "pods ENVIRONMENT",
		Short: "List the workloads of a cluster, and the pods with their states",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			cluster, err := environment.ClusterID(options.cluster)
			if err != nil {
				return err
			}
			found, err := api.Workloads().Running(command.Context(), environment.ID, cluster, options.namespace)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), found, func(table *tabwriter.Writer) { printRunning(found, table) })
		}),
	}
	options.addFlags(command, "", "namespace (default: all)")
	print.AddFlag(command)
	return command
}

func printRunning(found client.Running, table *tabwriter.Writer) {
	fmt.Fprintln(table, "WORKLOAD\tNAMESPACE\tNAME\tREADY")
	for _, one := range found.Workloads {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d/%d\n", one.Kind, one.Namespace, one.Name, one.Ready, one.Wanted)
	}
	fmt.Fprintln(table, "\nPOD\tNAMESPACE\tREADY\tSTATE\tRESTARTS\tNODE")
	for _, pod := range found.Pods {
		ready, all, restarts := counts(pod)
		fmt.Fprintf(table, "%s\t%s\t%d/%d\t%s\t%d\t%s\n", pod.Name, pod.Namespace, ready, all, pod.State, restarts, pod.Node)
	}
}

// counts are the containers of a pod that are ready, all but those that prepare it, and how often they were started again.
func counts(pod client.Pod) (ready, all, restarts int) {
	for _, container := range pod.Containers {
		restarts += container.Restarts
		if container.Init {
			continue
		}
		all++
		if container.Ready {
			ready++
		}
	}
	return ready, all, restarts
}

func podCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var options clusterOptions
	command := &cobra.Command{
		Use:   "pod ENVIRONMENT POD",
		Short: "Show a pod, its containers and its events of the last hour",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			cluster, err := environment.ClusterID(options.cluster)
			if err != nil {
				return err
			}
			pod, err := api.Workloads().Pod(command.Context(), environment.ID, cluster, options.namespace, args[0])
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), pod, func(table *tabwriter.Writer) { printPod(pod, table) })
		}),
	}
	options.addFlags(command, "default", "namespace")
	print.AddFlag(command)
	return command
}

func printPod(pod client.Pod, table *tabwriter.Writer) {
	fmt.Fprintf(table, "%s/%s\t%s\t%s\t%s\n\n", pod.Namespace, pod.Name, pod.State, pod.Node, pod.Message)
	fmt.Fprintln(table, "CONTAINER\tSTATE\tREADY\tRESTARTS\tIMAGE")
	for _, one := range pod.Containers {
		fmt.Fprintf(table, "%s\t%s\t%t\t%d\t%s\n", one.Name, one.State, one.Ready, one.Restarts, one.Image)
	}
	printEvents(pod.Events, table)
}

func printEvents(events []client.KubernetesEvent, table *tabwriter.Writer) {
	if len(events) > 0 {
		fmt.Fprintln(table, "\nLAST\tTYPE\tREASON\tTIMES\tMESSAGE")
	}
	for _, event := range events {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\n", event.Last, event.Type, event.Reason, event.Count, event.Message)
	}
}

func recreatePodCommand(connection *cli.Connection) *cobra.Command {
	var options clusterOptions
	command := &cobra.Command{
		Use:   "recreate-pod ENVIRONMENT POD",
		Short: "End a pod, so that its workload makes it again",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			cluster, err := environment.ClusterID(options.cluster)
			if err != nil {
				return err
			}
			return api.Workloads().RecreatePod(command.Context(), environment.ID, cluster, options.namespace, args[0])
		}),
	}
	options.addFlags(command, "default", "namespace")
	return command
}

func logsCommand(connection *cli.Connection) *cobra.Command {
	var options clusterOptions
	var log client.LogOptions
	var follow bool
	command := &cobra.Command{
		Use:   "logs ENVIRONMENT POD",
		Short: "Print the last lines of a pod's log, and with --follow the next ones",
		Example: `  burano cluster logs demo web-6f7c-abcde --follow
  burano cluster logs demo coredns-5d78-fghij -n kube-system --previous`,
		Args: cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			cluster, err := environment.ClusterID(options.cluster)
			if err != nil {
				return err
			}
			ctx, output := command.Context(), command.OutOrStdout()
			if !follow {
				text, err := api.Workloads().PodLog(ctx, environment.ID, cluster, options.namespace, args[0], log)
				if err == nil {
					_, err = output.Write(text)
				}
				return err
			}
			end, err := api.Workloads().FollowPodLog(ctx, environment.ID, cluster, options.namespace, args[0], log, func(text string) error {
				_, err := fmt.Fprintln(output, text)
				return err
			}, func(state string) { fmt.Fprintf(command.ErrOrStderr(), "the container does not run: %s\n", state) })
			if err == nil {
				fmt.Fprintf(command.ErrOrStderr(), "the pod will not run again: %s\n", cmp.Or(end, "it has ended"))
			}
			return err
		}),
	}
	options.addFlags(command, "default", "namespace")
	command.Flags().StringVarP(&log.Container, "container", "c", "", "container (default: the pod's main one)")
	command.Flags().IntVar(&log.Tail, "tail", 0, "number of last lines (default: 500)")
	command.Flags().BoolVarP(&log.Previous, "previous", "p", false, "the log of the container's former run")
	command.Flags().BoolVarP(&follow, "follow", "f", false, "print lines as they come")
	return command
}
