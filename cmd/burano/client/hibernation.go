package client

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func environmentHibernateCommand(connection *cli.Connection) *cobra.Command {
	return sleepCommand(connection, &cobra.Command{
		Use:   "hibernate NAME|ID",
		Short: "Stop all servers of an environment; nothing is deleted",
		Long: `Hibernate stops the servers of an environment in order: gateways, then minions and servers of applications, then masters. Servers, disks, volumes and addresses
stay. Until it is woken, deployments and actions are refused, and nothing is repaired; it can be deleted.`,
		Args: cobra.ExactArgs(1),
	}, "hibernate", client.Hibernations.Hibernate)
}

func environmentWakeCommand(connection *cli.Connection) *cobra.Command {
	return sleepCommand(connection, &cobra.Command{
		Use:   "wake NAME|ID",
		Short: "Start the servers of an environment that sleeps, and wait until its clusters answer",
		Long: `Wake starts the servers that hibernate has stopped, masters first. It renews certificates that have ended or end soon, and waits until nodes and pods are ready.
Servers that were off before stay off.`,
		Args: cobra.ExactArgs(1),
	}, "wake", client.Hibernations.Wake)
}

// sleepCommand completes a command that begins a task.
func sleepCommand(connection *cli.Connection, command *cobra.Command, does string, begin func(client.Hibernations, context.Context, string) (string, error)) *cobra.Command {
	var watch, dry bool
	command.RunE = connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
		if dry {
			plan, err := api.Hibernations().Preview(command.Context(), found.ID)
			if err != nil {
				return err
			}
			if plan.Does != does {
				return fmt.Errorf("environment %s can only %s now", found.Name, plan.Does)
			}
			return showSleep(command.OutOrStdout(), plan)
		}
		task, err := begin(api.Hibernations(), command.Context(), found.ID)
		if err != nil {
			return err
		}
		fmt.Fprintf(command.OutOrStdout(), "%s of %s runs (task %s)\n", does, found.Name, task)
		if !watch {
			return nil
		}
		return cli.Follow(command.Context(), api, task, command.OutOrStdout())
	})
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show the reports as they come; the exit code is 0 when it succeeded")
	command.Flags().BoolVar(&dry, "dry-run", false, "only show the servers, and the obstacles")
	command.MarkFlagsMutuallyExclusive("follow", "dry-run")
	return command
}

// showSleep prints the plan of a hibernation or its end.
func showSleep(output io.Writer, plan client.HibernationPlan) error {
	verb := "- stops"
	if plan.Does == "wake" {
		verb = "+ starts"
	}
	for _, one := range plan.Servers {
		fmt.Fprintf(output, "%s %s (%s)\n", verb, one.Name, cmp.Or(one.Role, "server"))
	}
	for _, note := range plan.Notes {
		fmt.Fprintln(output, note)
	}
	for _, obstacle := range plan.Obstacles {
		fmt.Fprintf(output, "! %s\n", obstacle)
	}
	if len(plan.Obstacles) > 0 {
		return fmt.Errorf("it is refused now: %s", plan.Obstacles[0])
	}
	return nil
}

func hibernationCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "hibernation", Short: "Whether an environment sleeps"}
	command.AddCommand(hibernationShowCommand(connection))
	return command
}

func hibernationShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT",
		Short: "Show whether an environment sleeps, and the servers that start when it wakes",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			state, err := api.Hibernations().Get(command.Context(), found.ID)
			if err != nil {
				return err
			}
			since := ""
			if state.Since != nil {
				since = state.Since.UTC().Format(time.RFC3339)
			}
			return print.Print(command.OutOrStdout(), state, func(table *tabwriter.Writer) {
				cli.Properties([2]any{"State", state.State}, [2]any{"Since", since}, [2]any{"Deployment", state.DeploymentID})(table)
				for _, one := range state.Servers {
					fmt.Fprintf(table, "Server\t%s (%s)\n", one.Name, cmp.Or(one.Role, "server"))
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}
