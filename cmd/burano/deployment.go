package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// deploymentRow is a deployment as the API tells it.
type deploymentRow struct {
	ID            string          `json:"id" yaml:"id"`
	EnvironmentID string          `json:"environment_id" yaml:"environment_id"`
	State         string          `json:"state" yaml:"state"`
	Started       string          `json:"started" yaml:"started"`
	Finished      *string         `json:"finished" yaml:"finished"`
	Action        json.RawMessage `json:"action" yaml:"-"`
}

// what says what was run: the method of an action, or the deletion of the environment.
func (d deploymentRow) what() string {
	var action *struct {
		Method string `json:"method"`
	}
	if json.Unmarshal(d.Action, &action) != nil || action == nil {
		return "delete"
	}
	return action.Method
}

func deploymentCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "deployment", Short: "Deployments: what ran, what runs, what it says"}
	command.AddCommand(deploymentListCommand(connection), deploymentShowCommand(connection), deploymentCancelCommand(connection), deploymentRetryCommand(connection))
	return command
}

func deploymentListCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "list [ENVIRONMENT]",
		Short: "List the deployments of an environment, or of all environments of the project, newest first",
		Args:  cobra.MaximumNArgs(1),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			environment := ""
			if len(args) > 0 {
				environment = args[0]
			}
			rows, err := client.deploymentRows(command.Context(), environment)
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tENVIRONMENT\tACTION\tSTATE\tSTARTED\tFINISHED")
				for _, row := range rows {
					finished := ""
					if row.Finished != nil {
						finished = *row.Finished
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", row.ID, row.EnvironmentID, row.what(), row.State, row.Started, finished)
				}
			})
		}),
	}
	print.addFlag(command)
	return command
}

// deploymentRows lists deployments; environment is a name or an id, "" for all.
func (c *client) deploymentRows(ctx context.Context, environment string) ([]deploymentRow, error) {
	path := "/v1/deployments"
	if environment != "" {
		found, err := c.environment(ctx, environment)
		if err != nil {
			return nil, err
		}
		path = "/v1/environments/" + found.ID + "/deployments"
	}
	var answer struct {
		Deployments []deploymentRow `json:"deployments"`
	}
	err := c.call(ctx, http.MethodGet, path, nil, &answer)
	return answer.Deployments, err
}

// onDeployment is signedIn for commands whose argument names a deployment.
func (c *connection) onDeployment(work func(command *cobra.Command, client *client, found deploymentRow) error) func(*cobra.Command, []string) error {
	return c.signedIn(func(command *cobra.Command, client *client, args []string) error {
		found, err := client.deploymentOf(command.Context(), args[0])
		if err != nil {
			return err
		}
		return work(command, client, found)
	})
}

// deploymentOf finds a deployment by its id, or the newest one of an environment that is named instead.
func (c *client) deploymentOf(ctx context.Context, name string) (deploymentRow, error) {
	rows, err := c.deploymentRows(ctx, "")
	if err != nil {
		return deploymentRow{}, err
	}
	for _, row := range rows {
		if row.ID == name {
			return row, nil
		}
	}
	rows, err = c.deploymentRows(ctx, name)
	if isStatus(err, http.StatusNotFound) {
		return deploymentRow{}, fmt.Errorf("the project has neither a deployment nor an environment %q: `burano deployment list` shows its deployments", name)
	}
	if err == nil && len(rows) == 0 {
		err = errors.New("nothing was ever deployed in this environment")
	}
	if err != nil {
		return deploymentRow{}, err
	}
	return rows[0], nil
}

func deploymentShowCommand(connection *connection) *cobra.Command {
	var print output
	var follow bool
	command := &cobra.Command{
		Use:   "show DEPLOYMENT|ENVIRONMENT",
		Short: "Show what a deployment reports; of an environment, its newest one",
		Args:  cobra.ExactArgs(1),
		RunE: connection.onDeployment(func(command *cobra.Command, client *client, row deploymentRow) error {
			if follow {
				return client.followDeployment(command.Context(), row.ID, command.OutOrStdout())
			}
			var answer struct {
				Reports []map[string]any `json:"reports"`
			}
			if err := client.call(command.Context(), http.MethodGet, "/v1/environments/"+row.EnvironmentID+"/deployments/"+row.ID, nil, &answer); err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), answer.Reports, func(table *tabwriter.Writer) {
				for _, report := range answer.Reports {
					fmt.Fprintf(table, "%s\t%s\t%s\n", report["created"], report["level"], report["text"])
				}
			})
		}),
	}
	print.addFlag(command)
	command.Flags().BoolVarP(&follow, "follow", "f", false, "show reports as they come, until the end; the exit code tells how it ended")
	return command
}

func deploymentCancelCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel DEPLOYMENT|ENVIRONMENT",
		Short: "Have a deployment end before it is done; what it has made stays",
		Args:  cobra.ExactArgs(1),
		RunE: connection.onDeployment(func(command *cobra.Command, client *client, row deploymentRow) error {
			if err := client.call(command.Context(), http.MethodPost, "/burano/v1/deployments/"+row.ID+"/cancel", nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "deployment %s is being ended\n", row.ID)
			return nil
		}),
	}
}

func deploymentRetryCommand(connection *connection) *cobra.Command {
	var follow bool
	command := &cobra.Command{
		Use:   "retry DEPLOYMENT|ENVIRONMENT",
		Short: "Run the last deployment of an environment again, which has failed",
		Args:  cobra.ExactArgs(1),
		RunE: connection.onDeployment(func(command *cobra.Command, client *client, row deploymentRow) error {
			var started struct {
				Task string `json:"task_id"`
			}
			if err := client.call(command.Context(), http.MethodPost, "/burano/v1/deployments/"+row.ID+"/retry", nil, &started); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "deployment %s runs\n", started.Task)
			if !follow {
				return nil
			}
			return client.followDeployment(command.Context(), started.Task, command.OutOrStdout())
		}),
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "show its reports as they come; the exit code tells how it ended")
	return command
}
