package client

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// DeploymentCommand is burano deployment.
func DeploymentCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "deployment", Short: "Deployments, actions and deletions, with their reports"}
	command.AddCommand(deploymentListCommand(connection), deploymentShowCommand(connection), deploymentStepsCommand(connection), deploymentCancelCommand(connection), deploymentRetryCommand(connection))
	return command
}

// listedDeployments is how many deployments are listed where nothing is said.
const listedDeployments = 50

func deploymentListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var limit int
	var all bool
	command := &cobra.Command{
		Use:   "list [ENVIRONMENT]",
		Short: "List the deployments of an environment, or of all environments of the project, newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			if limit <= 0 {
				return fmt.Errorf("--limit %d: it must be more than 0; --all lists all", limit)
			}
			environment := ""
			if len(args) > 0 {
				found, err := api.Environments().Get(command.Context(), args[0])
				if err != nil {
					return err
				}
				environment = found.ID
			}
			if all {
				limit = 0
			}
			rows, err := api.Deployments().List(command.Context(), environment, limit)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tENVIRONMENT\tACTION\tSTATE\tSTARTED\tFINISHED")
				for _, row := range rows {
					finished := ""
					if row.Finished != nil {
						finished = *row.Finished
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", row.ID, row.EnvironmentID, row.Method(), row.State, row.Started, finished)
				}
			})
		}),
	}
	print.AddFlag(command)
	command.Flags().IntVar(&limit, "limit", listedDeployments, "how many to list")
	command.Flags().BoolVar(&all, "all", false, "list all of them")
	command.MarkFlagsMutuallyExclusive("limit", "all")
	return command
}

// onDeployment is signedIn for commands whose argument names a deployment.
func onDeployment(c *cli.Connection, work func(command *cobra.Command, api *client.Client, found client.Deployment) error) func(*cobra.Command, []string) error {
	return c.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
		found, err := api.Deployments().Get(command.Context(), args[0])
		if err != nil {
			return err
		}
		return work(command, api, found)
	})
}

func deploymentShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var watch bool
	command := &cobra.Command{
		Use:   "show DEPLOYMENT|ENVIRONMENT",
		Short: "Show the reports of a deployment, or of the newest one of an environment",
		Args:  cobra.ExactArgs(1),
		RunE: onDeployment(connection, func(command *cobra.Command, api *client.Client, row client.Deployment) error {
			if watch {
				return cli.Follow(command.Context(), api, row.ID, command.OutOrStdout())
			}
			reports, err := api.Deployments().Reports(command.Context(), row.EnvironmentID, row.ID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), reports, func(table *tabwriter.Writer) {
				for _, report := range reports {
					fmt.Fprintf(table, "%s\t%s\t%s\n", report.Created, report.Level, report.Text)
				}
			})
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show new reports, until the end; the exit code is 0 when it succeeded")
	return command
}

func deploymentStepsCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "steps DEPLOYMENT|ENVIRONMENT",
		Short: "Show the steps of a deployment, their durations and their dependencies",
		Args:  cobra.ExactArgs(1),
		RunE: onDeployment(connection, func(command *cobra.Command, api *client.Client, row client.Deployment) error {
			steps, err := api.Deployments().Steps(command.Context(), row.ID)
			if err != nil {
				return err
			}
			names := map[string]string{}
			for _, step := range steps {
				names[step.ID] = step.Name
			}
			return print.Print(command.OutOrStdout(), steps, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "STEP\tSTARTED\tSECONDS\tAFTER\tERROR")
				for _, step := range steps {
					var after []string
					for _, id := range step.WaitsFor {
						after = append(after, names[id])
					}
					seconds, problem := "runs", ""
					if step.Seconds != nil {
						seconds = fmt.Sprintf("%.1f", *step.Seconds)
					}
					if step.Error != nil {
						problem = cli.InOneLine(*step.Error)
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", step.Name, step.Started, seconds, strings.Join(after, ", "), problem)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func deploymentCancelCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel DEPLOYMENT|ENVIRONMENT",
		Short: "Cancel a deployment; its created resources stay",
		Args:  cobra.ExactArgs(1),
		RunE: onDeployment(connection, func(command *cobra.Command, api *client.Client, row client.Deployment) error {
			if err := api.Deployments().Cancel(command.Context(), row.ID); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "deployment %s is being ended\n", row.ID)
			return nil
		}),
	}
}

func deploymentRetryCommand(connection *cli.Connection) *cobra.Command {
	var watch bool
	command := &cobra.Command{
		Use:   "retry DEPLOYMENT|ENVIRONMENT",
		Short: "Run the last deployment of an environment again, when it failed or was cancelled",
		Args:  cobra.ExactArgs(1),
		RunE: onDeployment(connection, func(command *cobra.Command, api *client.Client, row client.Deployment) error {
			started, err := api.Deployments().Retry(command.Context(), row.ID)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "deployment %s runs\n", started)
			if !watch {
				return nil
			}
			return cli.Follow(command.Context(), api, started, command.OutOrStdout())
		}),
	}
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show its reports as they come; the exit code is 0 when it succeeded")
	return command
}
