package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func snapshotCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "snapshot", Short: "Snapshots of the Kubernetes objects of clusters: take, list, download, restore"}
	command.AddCommand(snapshotCreateCommand(connection), snapshotListCommand(connection), snapshotDownloadCommand(connection),
		snapshotRestoreCommand(connection), snapshotDeleteCommand(connection))
	return command
}

func snapshotCreateCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var reason string
	command := &cobra.Command{
		Use:   "create ENVIRONMENT [CLUSTER]",
		Short: "Take a snapshot of a cluster, which Burano stores until it is deleted",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			taken, err := api.Snapshots().Take(command.Context(), environment.ID, cluster, reason)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), taken, snapshotTable([]client.Snapshot{taken}))
		}),
	}
	print.AddFlag(command)
	command.Flags().StringVar(&reason, "reason", "", "its purpose, which is stored with the snapshot")
	return command
}

func snapshotTable(list []client.Snapshot) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "ID\tTAKEN\tENVIRONMENT\tCLUSTER\tKIND\tBYTES\tREASON")
		for _, one := range list {
			environment := one.EnvironmentName
			if one.Deleted != nil {
				environment += " (deleted)"
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\n", one.ID, one.Created.Local().Format(time.DateTime), environment, one.ClusterName, one.Kind, one.Stored, one.Reason)
		}
	}
}

func snapshotListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list [ENVIRONMENT [CLUSTER]]",
		Short: "List snapshots, the newest first; without an environment all of the project, also of deleted environments",
		Args:  cobra.MaximumNArgs(2),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			var environmentID, clusterID string
			if len(args) > 0 {
				environment, err := api.Environments().Get(command.Context(), args[0])
				if err != nil {
					return err
				}
				environmentID = environment.ID
				if len(args) > 1 {
					if clusterID, err = environment.ClusterID(args[1]); err != nil {
						return err
					}
				}
			}
			list, err := api.Snapshots().List(command.Context(), environmentID, clusterID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), list, snapshotTable(list))
		}),
	}
	print.AddFlag(command)
	return command
}

func snapshotDownloadCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "download SNAPSHOT FILE",
		Short: "Write a snapshot into a file for etcdutl; Secrets in it are sealed, and their key stays with Burano",
		Args:  cobra.ExactArgs(2),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) (err error) {
			file, err := os.OpenFile(args[1], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			err = api.Snapshots().Download(command.Context(), args[0], file)
			if err := errors.Join(err, file.Close()); err != nil {
				return errors.Join(err, os.Remove(args[1]))
			}
			return nil
		}),
	}
}

func snapshotRestoreCommand(connection *cli.Connection) *cobra.Command {
	var sure, watch bool
	var id string
	command := &cobra.Command{
		Use:   "restore ENVIRONMENT [CLUSTER]",
		Short: "Restore a cluster from a snapshot, also when nothing is left of the cluster",
		Long: `Restore sets a cluster back to the state of a snapshot: the newest one, or --snapshot, which may be of another
cluster of the project, also of a deleted environment. Missing servers are created. The command first lists the loss; without
--yes it ends there.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			if id == "" {
				list, err := api.Snapshots().List(ctx, environment.ID, cluster)
				if err != nil {
					return err
				}
				if len(list) == 0 {
					return errors.New("there is no snapshot of this cluster: name one of another cluster with --snapshot")
				}
				id = list[0].ID
			}
			from, err := api.Snapshots().Get(ctx, id)
			if err != nil {
				return err
			}
			fmt.Fprintln(out, from.Loss)
			if !sure {
				return errors.New("nothing was done: repeat the command with --yes to restore")
			}
			task, err := api.Actions().Call(ctx, environment.ID, cluster+"_restore", map[string]any{"snapshot": from.ID})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "the restore runs (task %s)\n", task)
			if !watch {
				return nil
			}
			return cli.Follow(ctx, api, task, out)
		}),
	}
	command.Flags().StringVar(&id, "snapshot", "", "id of the snapshot; default: the cluster's newest one")
	command.Flags().BoolVarP(&sure, "yes", "y", false, "restore, and accept the listed loss")
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show the reports as they come; the exit code is 0 when the cluster is restored")
	return command
}

func snapshotDeleteCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "delete SNAPSHOT...",
		Short: "Delete snapshots",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			for _, id := range args {
				if err := api.Snapshots().Delete(command.Context(), id); err != nil {
					return err
				}
				if _, err := io.WriteString(command.OutOrStdout(), id+" is deleted\n"); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
