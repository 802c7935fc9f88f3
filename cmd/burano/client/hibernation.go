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
	command := &cobra.Command{Use: "hibernation", Short: "Whether an environment sleeps, and its times to sleep and to wake"}
	command.AddCommand(hibernationShowCommand(connection), hibernationSetCommand(connection), hibernationUnsetCommand(connection))
	return command
}

func hibernationShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT",
		Short: "Show whether an environment sleeps, the servers that start when it wakes, and its schedule",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			state, err := api.Hibernations().Get(command.Context(), found.ID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), state, hibernationTable(found.Name, state))
		}),
	}
	print.AddFlag(command)
	return command
}

func hibernationSetCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var wanted client.HibernationSchedule
	command := &cobra.Command{
		Use:   "set ENVIRONMENT",
		Short: "Set when an environment sleeps and wakes by itself",
		Long: `Set gives an environment a schedule. Times are cron expressions: minute, hours, *, *, weekdays. Hours and weekdays are lists of numbers and ranges; weekdays are 0 to 7
(0 and 7 are Sunday) or SUN to SAT. Times are at least an hour apart. Burano needs the environment's standing delegation, or a role in the project.

Only the last time counts, and only where no user has submitted a task in the environment since: who wakes it at night has it until the next time to sleep.`,
		Example: `burano environment hibernation set demo --sleep "0 20 * * 1-5" --wake "0 7 * * 1-5" --zone Europe/Berlin
burano environment hibernation set demo --sleep "30 18 * * *"    # it wakes by hand`,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			state, err := api.Hibernations().SetSchedule(command.Context(), found.ID, wanted)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), state, hibernationTable(found.Name, state))
		}),
	}
	command.Flags().StringArrayVar(&wanted.Sleep, "sleep", nil, "when it is hibernated, such as \"0 20 * * 1-5\"; may be repeated")
	command.Flags().StringArrayVar(&wanted.Wake, "wake", nil, "when it is woken, such as \"0 7 * * 1-5\"; may be repeated")
	command.Flags().StringVar(&wanted.Zone, "zone", "UTC", "time zone of these times, by its name in IANA's database, such as Europe/Berlin")
	command.MarkFlagsOneRequired("sleep", "wake")
	print.AddFlag(command)
	return command
}

func hibernationUnsetCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "unset ENVIRONMENT",
		Short: "End the schedule of an environment, which stays asleep or awake",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			return api.Hibernations().DropSchedule(command.Context(), found.ID)
		}),
	}
}

// hibernationTable writes whether an environment sleeps, with its schedule.
func hibernationTable(name string, state client.Hibernation) func(*tabwriter.Writer) {
	shown := func(at *time.Time) string {
		if at == nil {
			return "never"
		}
		return at.Format(time.RFC3339)
	}
	since := ""
	if state.Since != nil {
		since = state.Since.UTC().Format(time.RFC3339)
	}
	return func(table *tabwriter.Writer) {
		cli.Properties([2]any{"State", state.State}, [2]any{"Since", since}, [2]any{"Deployment", state.DeploymentID})(table)
		for _, one := range state.Servers {
			fmt.Fprintf(table, "Server\t%s (%s)\n", one.Name, cmp.Or(one.Role, "server"))
		}
		schedule := state.Schedule
		if schedule == nil {
			return
		}
		for _, one := range schedule.Sleep {
			fmt.Fprintf(table, "Sleeps\t%s (%s)\n", one, schedule.Zone)
		}
		for _, one := range schedule.Wake {
			fmt.Fprintf(table, "Wakes\t%s (%s)\n", one, schedule.Zone)
		}
		cli.Properties([2]any{"Next sleep", shown(schedule.NextSleep)}, [2]any{"Next wake", shown(schedule.NextWake)}, [2]any{"Set by", schedule.UserName})(table)
		if !schedule.Delegated {
			fmt.Fprintf(table, "Not carried out\tthe environment has no standing delegation (burano environment delegation set %s)\n", name)
		}
	}
}
