package client

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// listDeleted prints the deleted environments that can be restored.
func listDeleted(ctx context.Context, to io.Writer, api *client.Client, query url.Values, print cli.Output) error {
	rows, err := api.Environments().ListDeleted(ctx, query)
	if err != nil {
		return err
	}
	return print.Print(to, rows, func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "ID\tNAME\tDELETED\tUNTIL\tBYTES")
		for _, row := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", row.ID, row.Name, row.Deleted.Format(time.RFC3339), row.Expires.Format(time.RFC3339), row.Size)
		}
	})
}

func environmentUndeleteCommand(connection *cli.Connection) *cobra.Command {
	var name string
	var deploy, follow bool
	command := &cobra.Command{
		Use:   "undelete NAME|ID",
		Short: "Restore a deleted environment, with its model, history, secrets and snapshots",
		Long: `Restore a deleted environment, with its model, its history, its secrets and the snapshots of its clusters. What was deleted in the cloud is made anew by
the next deployment (--deploy). Then burano cluster snapshot restore restores the objects of a cluster, with the volumes that stayed in the cloud. An environment that was
abandoned is as it was left.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			found, err := api.Environments().GetDeleted(command.Context(), args[0])
			if err != nil {
				return err
			}
			back, err := api.Environments().Undelete(command.Context(), found.ID, name)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is back, with the id %s.\n", back.Name, back.ID)
			if !deploy {
				if !found.Abandoned {
					fmt.Fprintf(command.OutOrStdout(), "Nothing of it is in the cloud until it is deployed\n")
				}
				return nil
			}
			draft, err := api.Sessions().Configure(command.Context(), back.ID)
			if err == nil {
				err = api.Sessions().Deploy(command.Context(), back.ID, draft.ID)
			}
			if err != nil {
				return fmt.Errorf("deploy environment %s: %w", back.Name, err)
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s (%s) is being deployed\n", back.Name, back.ID)
			if !follow {
				return nil
			}
			return cli.FollowNewest(command.Context(), api, back.ID, command.OutOrStdout())
		}),
	}
	command.Flags().StringVar(&name, "name", "", "another name for it")
	command.Flags().BoolVar(&deploy, "deploy", false, "deploy it, too")
	command.Flags().BoolVarP(&follow, "follow", "f", false, "with --deploy: show the deployment's reports as they come; the exit code is 0 when it succeeded")
	return command
}

func environmentPurgeCommand(connection *cli.Connection) *cobra.Command {
	var yes bool
	command := &cobra.Command{
		Use:   "purge NAME|ID",
		Short: "Remove a deleted environment for good, before its time",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			found, err := api.Environments().GetDeleted(command.Context(), args[0])
			if err != nil {
				return err
			}
			if !yes {
				return fmt.Errorf("environment %s (%s), deleted %s, cannot be restored then, with its model, history and secrets: say --yes", found.Name, found.ID, found.Deleted.Format(time.RFC3339))
			}
			if err := api.Environments().Purge(command.Context(), found.ID); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is removed for good\n", found.Name)
			return nil
		}),
	}
	command.Flags().BoolVar(&yes, "yes", false, "remove it")
	return command
}
