package client

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// EnvironmentBackupCommand is burano backup.
func EnvironmentBackupCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "backup", Short: "Whole environments as they were at one moment, with their clusters and claims: make, list, restore"}
	command.AddCommand(backupCreateCommand(connection), backupListCommand(connection), backupShowCommand(connection), backupRestoreCommand(connection), backupDeleteCommand(connection),
		backupDownloadCommand(connection), backupCheckCommand(), backupUploadCommand(connection), backupScheduleCommand(connection), backupDrillCommand(connection), backupDrillsCommand(connection))
	return command
}

func backupCreateCommand(connection *cli.Connection) *cobra.Command {
	var options client.BackupOptions
	var dryRun bool
	command := &cobra.Command{
		Use:   "create ENVIRONMENT",
		Short: "Back up an environment, and wait until the backup is whole",
		Long: `Create keeps the environment with Burano as it is at this moment: its model with the versions of its packages, the etcd of its
clusters, and the files of all claims, of one moment. Pods that use claims are frozen while these are copied on their nodes. Claims that cannot
be backed up are refused, each with the reason, unless --incomplete allows a backup without them.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			if dryRun {
				preview, err := api.Backups().Preview(command.Context(), environment.ID)
				if err == nil {
					writeCopied(command.OutOrStdout(), preview)
				}
				return err
			}
			task, err := api.Backups().Make(command.Context(), environment.ID, options)
			if err != nil {
				return err
			}
			return cli.Follow(command.Context(), api, task, command.OutOrStdout())
		}),
	}
	command.Flags().StringVar(&options.Reason, "reason", "", "what it is for; it is kept with the backup")
	command.Flags().BoolVar(&options.Incomplete, "incomplete", false, "allow claims that cannot be backed up, and applications whose beforeBackup fails")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only list the claims that it would have")
	return command
}

func backupTable(list []client.Backup) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "ID\tMADE\tENVIRONMENT\tKIND\tCLAIMS\tBYTES\tREASON")
		for _, one := range list {
			claims := 0
			for _, cluster := range one.Clusters {
				claims += len(cluster.Claims)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", one.ID, one.Created.Local().Format(time.DateTime), one.EnvironmentName, one.Kind, claims, one.Bytes, one.Reason)
		}
	}
}

func backupListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list [ENVIRONMENT]",
		Short: "List backups of environments, the newest first; without an environment those of the project, also of environments that were deleted",
		Args:  cobra.MaximumNArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			environmentID := ""
			if len(args) > 0 {
				environment, err := api.Environments().Get(command.Context(), args[0])
				if err != nil {
					return err
				}
				environmentID = environment.ID
			}
			list, err := api.Backups().List(command.Context(), environmentID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), list, backupTable(list))
		}),
	}
	print.AddFlag(command)
	return command
}

func backupShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show BACKUP",
		Short: "Show the parts of a backup: clusters, claims with their sizes, and claims that are missing",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			found, err := api.Backups().Show(command.Context(), args[0])
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), found, func(table *tabwriter.Writer) {
				backupTable([]client.Backup{found})(table)
				fmt.Fprintf(table, "\nCLUSTER\tCLAIM\tCLASS\tSIZE\tBYTES\tSHA-256\n")
				for _, cluster := range found.Clusters {
					for _, claim := range cluster.Claims {
						fmt.Fprintf(table, "%s\t%s/%s\t%s\t%s\t%d\t%s\n", cluster.Name, claim.Namespace, claim.Name, claim.Class, claim.Size, claim.Bytes, claim.Checksum)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(found.Missing)) {
					fmt.Fprintf(table, "not in it: %s: %s\n", name, found.Missing[name])
				}
				for _, warning := range found.Warnings {
					fmt.Fprintf(table, "warning: %s\n", warning)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func backupRestoreCommand(connection *cli.Connection) *cobra.Command {
	var name, region string
	var watch bool
	command := &cobra.Command{
		Use:   "restore BACKUP --name ENVIRONMENT",
		Short: "Make a new environment of a backup, and deploy it; its claims have their files before pods use them",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			made, err := api.Backups().Restore(ctx, args[0], name, region)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "environment %s (%s) is made of backup %s\n", name, made, args[0])
			if !watch {
				return nil
			}
			return cli.FollowNewest(ctx, api, made, out)
		}),
	}
	command.Flags().StringVar(&name, "name", "", "of the new environment")
	command.Flags().StringVar(&region, "region", "", "region of the cloud in which it is made; default: the backup's")
	command.Flags().BoolVar(&watch, "follow", false, "show the log until the deployment has ended")
	_ = command.MarkFlagRequired("name")
	return command
}

func backupDeleteCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "delete BACKUP...",
		Short: "Delete backups with all that they have",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.DeleteEach("backup %s", func(ctx context.Context, api *client.Client, id string) (string, error) {
			return id, api.Backups().Delete(ctx, id)
		}),
	}
}

func backupScheduleCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var wanted client.BackupSchedule
	var never bool
	command := &cobra.Command{
		Use:   "schedule ENVIRONMENT",
		Short: "Show how often backups of an environment are made by themselves, or set it with --every, or end it with --never",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) (err error) {
			ctx := command.Context()
			if never {
				return api.Backups().DropSchedule(ctx, environment.ID)
			}
			var now client.BackupSchedule
			if wanted.Hours > 0 {
				now, err = api.Backups().SetSchedule(ctx, environment.ID, wanted)
			} else {
				now, err = api.Backups().Schedule(ctx, environment.ID)
			}
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), now, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "HOURS\tKEPT\tINCOMPLETE\tDRILL HOURS\tSET BY\tAT")
				fmt.Fprintf(table, "%d\t%d\t%t\t%d\t%s\t%s\n", now.Hours, now.Kept, now.Incomplete, now.DrillHours, now.UserName, now.Updated.Local().Format(time.DateTime))
			})
		}),
	}
	print.AddFlag(command)
	command.Flags().Int64Var(&wanted.Hours, "every", 0, "how many hours after one backup the next one is made")
	command.Flags().Int64Var(&wanted.Kept, "keep", 7, "how many of these backups stay")
	command.Flags().BoolVar(&wanted.Incomplete, "incomplete", false, "allow claims that cannot be backed up, and applications whose beforeBackup fails")
	command.Flags().Int64Var(&wanted.DrillHours, "drill-every", 0, "how many hours after one drill of the newest backup the next one begins; 0 for none")
	command.Flags().BoolVar(&never, "never", false, "make no more by themselves; those that are there stay")
	command.MarkFlagsMutuallyExclusive("every", "never")
	return command
}
