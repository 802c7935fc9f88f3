// Package cluster has the commands by which users work with clusters and nodes of environments.
package cluster

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// Command is burano cluster.
func Command(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "cluster", Short: "Kubernetes clusters that Burano deployed"}
	command.AddCommand(groupCommand(connection), scaleCommand(connection), snapshotCommand(connection), claimBackupCommand(connection), volumesCommand(connection), upgradeCommand(connection), rotateCommand(connection), clusterShowCommand(connection), trafficCommand(connection), kubeconfigCommand(connection), clusterTokenCommand(connection), sshKeyCommand(connection), podsCommand(connection), podCommand(connection),
		logsCommand(connection), recreatePodCommand(connection), workloadCommand(connection))
	return command
}

// clusterTable lists nodes with their members of etcd, and then routes.
func clusterTable(s client.Cluster) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) { printCluster(s, table) }
}

// decided is the last decision of a scaling, for people.
func decided(last *client.ScalingDecision) string {
	if last == nil {
		return ""
	}
	return last.At.Format(time.DateTime) + ": " + last.Text
}

func printCluster(s client.Cluster, table *tabwriter.Writer) {
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
	fmt.Fprintln(table, "NODE\tROLE\tADDRESS\tFLOATING\tREACHABLE\tREADY\tSTATE\tETCD\tVERSION")
	for _, one := range s.Nodes {
		ready := ""
		if one.Ready != nil {
			ready = fmt.Sprint(*one.Ready)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\t%s\t%s\t%s\t%s\n", one.Name, roleOf(one), one.Address, one.Floating, one.Reachable, ready, one.State, members[one.Name], one.Version)
	}
	if s.VirtualAddress != nil {
		fmt.Fprintf(table, "\nGATEWAYS SHARE\t%s\t\t%s\n", s.VirtualAddress.Address, s.VirtualAddress.Floating)
	}
	if s.APIAddress != nil {
		fmt.Fprintf(table, "\nMASTERS SHARE\t%s\t\t%s\n", s.APIAddress.Address, s.APIAddress.Floating)
	}
	if s.Registry != "" {
		fmt.Fprintf(table, "\nREGISTRY\t%s\n", s.Registry)
	}
	if len(s.Groups) > 0 {
		fmt.Fprintln(table, "\nGROUP\tNODES\tMINIMUM\tMAXIMUM\tLAST DECISION")
	}
	for _, one := range s.Groups {
		minimum := ""
		if one.Minimum != nil {
			minimum = strconv.Itoa(*one.Minimum)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\n", one.Name, one.Nodes, minimum, one.Maximum, decided(one.LastDecision))
	}
	if one := s.GatewayScaling; one != nil {
		fmt.Fprintf(table, "\nGATEWAYS FOLLOW CONNECTIONS\tMINIMUM\tMAXIMUM\tSESSIONS\tLAST DECISION\n\t%d\t%d\t%d\t%s\n", one.Minimum, one.Maximum, one.Sessions, decided(one.LastDecision))
	}
	if len(s.Members) > 0 {
		fmt.Fprintln(table, "\nETCD\tFILE\tIN USE\tQUOTA")
	}
	for _, one := range s.Members {
		const mebibyte = 1 << 20
		fmt.Fprintf(table, "%s\t%d MiB\t%d MiB\t%d MiB\n", one.Name, one.Size/mebibyte, one.InUse/mebibyte, one.Quota/mebibyte)
	}
	if len(s.Certificates) > 0 {
		first := s.Certificates[0]
		what := "Burano renews it before"
		if first.Node == "" {
			what = "burano cluster rotate certificates exchanges it"
		}
		fmt.Fprintf(table, "\nCERTIFICATES\tthe first to end is %s of %s, on %s; %s (-o json lists all)\n",
			first.Name, cmp.Or(first.Node, "the cluster"), first.Expires.Format(time.DateOnly), what)
	}
	if s.Rotation != nil {
		fmt.Fprintf(table, "\nROTATION\tof %s began on %s and has not ended (%s): where no deployment runs, burano cluster rotate goes on with it\n",
			strings.Join(s.Rotation.Parts, ", "), s.Rotation.Began.Format(time.DateTime), s.Rotation.Stage)
	}
	if s.Upgrade != nil {
		done := 0
		for _, one := range s.Upgrade.Nodes {
			if one.State == "done" {
				done++
			}
		}
		fmt.Fprintf(table, "\nUPGRADE\tfrom %s to %s (image %s) began on %s, %d of %d nodes are done (%s): where no deployment runs, burano cluster upgrade goes on with it, and with --back goes back\n",
			s.Upgrade.From, s.Upgrade.Kubernetes, s.Upgrade.ImageName, s.Upgrade.Began.Format(time.DateTime), done, len(s.Upgrade.Nodes), s.Upgrade.State)
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

func clusterShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT [CLUSTER]",
		Short: "Show a cluster's nodes, routes and problems; the exit code is 0 when it is healthy",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			status, err := api.Clusters().Get(command.Context(), environment.ID, cluster)
			if err != nil {
				return err
			}
			if err := print.Print(command.OutOrStdout(), status, clusterTable(status)); err != nil {
				return err
			}
			if !status.Healthy {
				return fmt.Errorf("cluster %s is not healthy:\n  %s", status.Name, strings.Join(status.Problems, "\n  "))
			}
			return nil
		}),
	}
	print.AddFlag(command)
	return command
}
