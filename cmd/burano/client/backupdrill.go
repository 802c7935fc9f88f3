package client

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/web/client"
)

// drillLook is how often it is looked how a drill goes.
const drillLook = 2 * time.Second

func backupDrillCommand(connection *cli.Connection) *cobra.Command {
	var backup string
	command := &cobra.Command{
		Use:   "drill ENVIRONMENT",
		Short: "Try whether a backup can be restored: an environment is made of it, and removed as soon as it answers or has failed",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			if backup == "" {
				list, err := api.Backups().List(ctx, environment.ID)
				if err != nil {
					return err
				}
				if len(list) == 0 {
					return fmt.Errorf("environment %s has no backup: make one with burano backup create", environment.Name)
				}
				backup = list[0].ID
			}
			begun, err := api.Backups().Drill(ctx, backup)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "environment %s is made of backup %s\n", begun.Environment, backup)
			return wait.Every(drillLook).Until(ctx, func(ctx context.Context) error {
				list, err := api.Backups().Drills(ctx, environment.ID)
				if err != nil {
					return err
				}
				i := slices.IndexFunc(list, func(one client.BackupDrill) bool { return one.ID == begun.ID })
				switch {
				case i < 0:
					return fmt.Errorf("drill %s is not known any more", begun.ID)
				case list[i].Ended == nil:
					return wait.Again(fmt.Errorf("the drill is %s", list[i].State))
				case list[i].Failure != "":
					return fmt.Errorf("the backup could not be restored: %s", list[i].Failure)
				}
				fmt.Fprintf(out, "it answered %.0f s after it was begun, and is removed\n", list[i].Answered.Sub(list[i].Began).Seconds())
				return nil
			})
		}),
	}
	command.Flags().StringVar(&backup, "backup", "", "id of the backup; the environment's newest one when left out")
	return command
}

func backupDrillsCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "drills ENVIRONMENT",
		Short: "List the last drills of an environment's backups, the newest first",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			list, err := api.Backups().Drills(command.Context(), environment.ID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), list, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tBEGAN\tBACKUP\tENVIRONMENT\tSTATE\tFAILURE")
				for _, one := range list {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", one.ID, one.Began.Local().Format(time.DateTime), one.BackupID, one.Environment, one.State, one.Failure)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}
