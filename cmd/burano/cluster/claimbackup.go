package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func claimBackupCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "backup", Short: "Backups of the volumes of a cluster's claims in the cloud: make, list, restore"}
	command.AddCommand(claimBackupCreateCommand(connection), claimBackupListCommand(connection), claimBackupRestoreCommand(connection), claimBackupDeleteCommand(connection))
	return command
}

// act calls an action of a cluster, shows its reports until it has ended, and returns its result.
func act(ctx context.Context, api *client.Client, environment client.Environment, action string, arguments map[string]any, out io.Writer) (json.RawMessage, error) {
	task, err := api.Actions().Call(ctx, environment.ID, action, arguments)
	if err != nil {
		return nil, err
	}
	if err := cli.Follow(ctx, api, task, out); err != nil {
		if out == io.Discard { // where the reports would have said why
			err = cmp.Or(cli.PrintResult(ctx, api, environment.ID, task, io.Discard, true), err)
		}
		return nil, err
	}
	result, err := api.Actions().Result(ctx, environment.ID, task)
	return result.Result, err
}

func claimBackupCreateCommand(connection *cli.Connection) *cobra.Command {
	var claims []string
	var reason string
	command := &cobra.Command{
		Use:   "create ENVIRONMENT [CLUSTER]",
		Short: "Make backups of claims with volumes in Cinder, and wait until they are complete",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			_, err := act(command.Context(), api, environment, cluster+"_backUpClaims", map[string]any{"claims": append([]string{}, claims...), "reason": reason}, command.OutOrStdout())
			return err
		}),
	}
	command.Flags().StringArrayVar(&claims, "claim", nil, "NAMESPACE/NAME, or NAME in the namespace default (repeatable); default: all")
	command.Flags().StringVar(&reason, "reason", "", "its purpose, which is stored with the backup")
	return command
}

// claimBackup is a backup of a claim, as the action listClaimBackups returns it.
type claimBackup struct {
	ID      string    `json:"id" yaml:"id"`
	Kind    string    `json:"kind" yaml:"kind"` // backup or snapshot
	Claim   string    `json:"claim" yaml:"claim"`
	Status  string    `json:"status" yaml:"status"` // in Cinder
	GiB     int       `json:"gib" yaml:"gib"`
	Made    time.Time `json:"made" yaml:"made"`
	Why     string    `json:"why" yaml:"why"` // requested or scheduled
	Cluster string    `json:"cluster" yaml:"cluster"`
	Volume  string    `json:"volume" yaml:"volume"`
	Failure string    `json:"failure" yaml:"failure"`
}

func claimBackupListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var all bool
	command := &cobra.Command{
		Use:   "list ENVIRONMENT [CLUSTER]",
		Short: "List backups of claims, the newest first",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			result, err := act(command.Context(), api, environment, cluster+"_listClaimBackups", map[string]any{"all": all}, io.Discard)
			if err != nil {
				return err
			}
			var list []claimBackup
			if err := json.Unmarshal(result, &list); err != nil {
				return fmt.Errorf("read the list of backups: %w", err)
			}
			return print.Print(command.OutOrStdout(), list, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tMADE\tCLUSTER\tCLAIM\tKIND\tGIB\tWHY\tSTATUS")
				for _, one := range list {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", one.ID, one.Made.Local().Format(time.DateTime), one.Cluster, one.Claim, one.Kind, one.GiB, one.Why, one.Status)
				}
			})
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVar(&all, "all", false, "list backups of all clusters of the project, also of deleted ones")
	return command
}

func claimBackupRestoreCommand(connection *cli.Connection) *cobra.Command {
	var backup, claim string
	command := &cobra.Command{
		Use:   "restore ENVIRONMENT [CLUSTER] --backup BACKUP",
		Short: "Make a claim from a backup, which may be of another cluster of the project; an existing claim stays unchanged",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			arguments := map[string]any{"backup": backup}
			if claim != "" {
				arguments["claim"] = claim
			}
			_, err := act(command.Context(), api, environment, cluster+"_restoreClaim", arguments, command.OutOrStdout())
			return err
		}),
	}
	command.Flags().StringVar(&backup, "backup", "", "id of the backup")
	command.Flags().StringVar(&claim, "claim", "", "NAMESPACE/NAME, or NAME in the namespace default, of the new claim; default: its former name")
	_ = command.MarkFlagRequired("backup")
	return command
}

func claimBackupDeleteCommand(connection *cli.Connection) *cobra.Command {
	var backup string
	command := &cobra.Command{
		Use:   "delete ENVIRONMENT [CLUSTER] --backup BACKUP",
		Short: "Delete a backup of a claim",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			_, err := act(command.Context(), api, environment, cluster+"_deleteClaimBackup", map[string]any{"backup": backup}, command.OutOrStdout())
			return err
		}),
	}
	command.Flags().StringVar(&backup, "backup", "", "id of the backup")
	_ = command.MarkFlagRequired("backup")
	return command
}
