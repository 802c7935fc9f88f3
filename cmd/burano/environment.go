package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// environmentRow is an environment as the API tells it.
type environmentRow struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Status   string           `json:"status"`
	Created  string           `json:"created"`
	Updated  string           `json:"updated"`
	Services []map[string]any `json:"services"`
}

func environmentCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "environment", Aliases: []string{"env"}, Short: "Environments: sets of applications that are deployed together"}
	command.AddCommand(environmentListCommand(connection), environmentShowCommand(connection), environmentDeleteCommand(connection))
	return command
}

func environmentListCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the project's environments",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			rows, err := client.environments(command.Context())
			if err != nil {
				return err
			}
			table := tabwriter.NewWriter(command.OutOrStdout(), 0, 4, 2, ' ', 0)
			fmt.Fprintln(table, "ID\tNAME\tSTATUS\tCREATED\tUPDATED")
			for _, row := range rows {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.ID, row.Name, row.Status, row.Created, row.Updated)
			}
			return table.Flush()
		},
	}
}

func environmentShowCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|ID",
		Short: "Show an environment with its applications, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			found, err := client.environment(command.Context(), args[0])
			if err != nil {
				return err
			}
			var whole json.RawMessage
			if err := client.call(command.Context(), http.MethodGet, "/v1/environments/"+found.ID, nil, &whole); err != nil {
				return err
			}
			output := json.NewEncoder(command.OutOrStdout())
			output.SetIndent("", "  ")
			output.SetEscapeHTML(false)
			return output.Encode(whole)
		},
	}
}

func environmentDeleteCommand(connection *connection) *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "delete NAME|ID",
		Short: "Delete an environment with all that was deployed in it, and wait until it is gone",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			client, err := connection.connect(ctx)
			if err != nil {
				return err
			}
			found, err := client.environment(ctx, args[0])
			if err != nil {
				return err
			}
			if err := client.call(ctx, http.MethodDelete, "/v1/environments/"+found.ID, nil, nil); err != nil {
				return err
			}
			if err := client.waitDeleted(ctx, found.ID); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is deleted\n", found.Name)
			return nil
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait until it is gone")
	return command
}

func (c *client) environments(ctx context.Context) ([]environmentRow, error) {
	var answer struct {
		Environments []environmentRow `json:"environments"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/environments", nil, &answer)
	return answer.Environments, err
}

// environment finds an environment of the project by name or id.
func (c *client) environment(ctx context.Context, nameOrID string) (environmentRow, error) {
	rows, err := c.environments(ctx)
	if err != nil {
		return environmentRow{}, err
	}
	for _, row := range rows {
		if row.ID == nameOrID || row.Name == nameOrID {
			var whole environmentRow
			err := c.call(ctx, http.MethodGet, "/v1/environments/"+row.ID, nil, &whole)
			return whole, err
		}
	}
	return environmentRow{}, &refusal{status: http.StatusNotFound, message: fmt.Sprintf(
		"the project has no environment %q: `burano environment list` shows those it has", nameOrID)}
}

// waitDeleted returns when the environment is gone, or with the reports of a deletion that failed.
func (c *client) waitDeleted(ctx context.Context, id string) error {
	return every(ctx, pollInterval, func() (bool, error) {
		var current environmentRow
		err := c.call(ctx, http.MethodGet, "/v1/environments/"+id, nil, &current)
		if isStatus(err, http.StatusNotFound) {
			return true, nil
		}
		if err == nil && current.Status == "delete failure" {
			return false, c.explainFailure(ctx, id)
		}
		return false, err
	})
}

// explainFailure makes an error of the error reports of the environment's newest deployment.
func (c *client) explainFailure(ctx context.Context, environment string) error {
	newest, err := c.newestDeployment(ctx, environment)
	if err != nil {
		return err
	}
	reports, err := c.reports(ctx, environment, newest.ID)
	if err != nil {
		return err
	}
	text := ""
	for _, report := range reports {
		if report.Level == "error" {
			text += "\n  " + report.Text
		}
	}
	return fmt.Errorf("it failed:%s", text)
}

// every calls try at once and then in this interval until it says it is done, fails, or ctx ends.
func every(ctx context.Context, interval time.Duration, try func() (bool, error)) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		done, err := try()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain: %w", context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
