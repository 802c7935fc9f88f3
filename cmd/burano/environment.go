package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
)

// environmentRow is an environment as the API tells it.
type environmentRow struct {
	ID       string           `json:"id" yaml:"id"`
	Name     string           `json:"name" yaml:"name"`
	Status   string           `json:"status,omitempty" yaml:"status,omitempty"`
	Project  string           `json:"tenant_id" yaml:"tenant_id"`
	Created  string           `json:"created" yaml:"created"`
	Updated  string           `json:"updated" yaml:"updated"`
	Services []map[string]any `json:"services,omitempty" yaml:"services,omitempty"`
}

func environmentCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "environment", Aliases: []string{"env"}, Short: "Environments: sets of applications that are deployed together"}
	command.AddCommand(environmentListCommand(connection), environmentShowCommand(connection), environmentCreateCommand(connection),
		environmentRenameCommand(connection), environmentModelCommand(connection), environmentDeleteCommand(connection))
	return command
}

func environmentListCommand(connection *connection) *cobra.Command {
	var print output
	var all bool
	var project string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the project's environments; for admins those of other projects too",
		Args:  cobra.NoArgs,
		RunE: connection.signedIn(func(command *cobra.Command, client *client, _ []string) error {
			query := url.Values{}
			if all {
				query.Set("all_tenants", "true")
			}
			if project != "" {
				query.Set("tenant", project)
			}
			rows, err := client.environments(command.Context(), query)
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tSTATUS\tCREATED\tUPDATED")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.ID, row.Name, row.Status, row.Created, row.Updated)
				}
			})
		}),
	}
	print.addFlag(command)
	command.Flags().BoolVar(&all, "all-projects", false, "those of all projects")
	command.Flags().StringVar(&project, "project", "", "those of the project of this id")
	command.MarkFlagsMutuallyExclusive("all-projects", "project")
	return command
}

func environmentShowCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|ID",
		Short: "Show an environment with its applications, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, found environmentRow, _ []string) error {
			var whole json.RawMessage
			if err := client.call(command.Context(), http.MethodGet, "/v1/environments/"+found.ID, nil, &whole); err != nil {
				return err
			}
			return writeJSON(command.OutOrStdout(), whole)
		}),
	}
}

func environmentCreateCommand(connection *connection) *cobra.Command {
	var print output
	var description, region, network, subnet string
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Make an environment without applications",
		Args:  cobra.ExactArgs(1),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			body := map[string]any{"name": args[0]}
			if description != "" {
				body["description_text"] = description
			}
			if region != "" {
				body["region"] = region
			}
			if network != "" {
				existing := map[string]any{"?": map[string]any{"id": uuid.NewString(), "type": "io.murano.resources.ExistingNeutronNetwork"}, "internalNetworkName": network}
				if subnet != "" {
					existing["internalSubnetworkName"] = subnet
				}
				body["defaultNetworks"] = map[string]any{"flat": nil, "environment": existing}
			} else if subnet != "" {
				return errors.New("--subnet is one of a network: name that by --network")
			}
			var row environmentRow
			if err := client.call(command.Context(), http.MethodPost, "/v1/environments", body, &row); err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), row, properties([2]any{"ID", row.ID}, [2]any{"Name", row.Name}, [2]any{"Created", row.Created}))
		}),
	}
	print.addFlag(command)
	command.Flags().StringVar(&description, "description", "", "what it is for")
	command.Flags().StringVar(&region, "region", "", "region of the cloud")
	command.Flags().StringVar(&network, "network", "", "name or id of a network that is there, in the place of one of its own")
	command.Flags().StringVar(&subnet, "subnet", "", "name or id of the network's subnet, where it has several")
	return command
}

func environmentRenameCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "rename NAME|ID NEW-NAME",
		Short: "Give an environment another name",
		Args:  cobra.ExactArgs(2),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, found environmentRow, args []string) error {
			if err := client.call(command.Context(), http.MethodPut, "/v1/environments/"+found.ID, map[string]any{"name": args[0]}, nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is called %s now\n", found.Name, args[0])
			return nil
		}),
	}
}

func environmentModelCommand(connection *connection) *cobra.Command {
	var session, path, patch string
	command := &cobra.Command{
		Use:   "model NAME|ID",
		Short: "Show the object model of an environment as JSON, or change the draft of a session",
		Long: `Model prints the object model of an environment, of a session's draft of it with --session, or what is at --path of it (keys,
ids and indexes divided by /). With --patch, a file with a JSON patch or - for standard input, it changes the draft.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.onEnvironment(func(command *cobra.Command, client *client, found environmentRow, _ []string) error {
			var headers []string
			if session != "" {
				headers = []string{"X-Configuration-Session", session}
			}
			model := "/v1/environments/" + found.ID + "/model"
			var answer []byte
			var err error
			switch {
			case patch == "":
				answer, err = client.send(command.Context(), http.MethodGet, strings.TrimSuffix(model+"/"+strings.Trim(path, "/"), "/"), nil, headers...)
			case session == "":
				return errors.New("--patch changes a draft: open a session with `burano session create`, and name it by --session")
			default:
				input := command.InOrStdin()
				if patch != "-" {
					file, err := os.Open(patch)
					if err != nil {
						return err
					}
					defer file.Close()
					input = file
				}
				answer, err = client.send(command.Context(), http.MethodPatch, model, input, append(headers, "Content-Type", "application/env-model-json-patch")...)
			}
			if err != nil {
				return err
			}
			return writeJSON(command.OutOrStdout(), json.RawMessage(answer))
		}),
	}
	command.Flags().StringVar(&session, "session", "", "the session whose draft is meant")
	command.Flags().StringVar(&path, "path", "", "what is shown of the model")
	command.Flags().StringVar(&patch, "patch", "", "file with a JSON patch (RFC 6902, the operations add, replace and remove), - for standard input")
	return command
}

func environmentDeleteCommand(connection *connection) *cobra.Command {
	var timeout time.Duration
	var abandon bool
	command := &cobra.Command{
		Use:   "delete NAME|ID…",
		Short: "Delete environments with all that was deployed in them, and wait until they are gone",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(command.Context(), timeout)
			defer cancel()
			client, err := connection.connect(ctx)
			if err != nil {
				return err
			}
			query := ""
			if abandon {
				query = "?abandon=true"
			}
			// All are asked for before any is waited for. What cannot be deleted does not keep the others.
			var going []environmentRow
			var failed []error
			for _, name := range args {
				found, err := client.environment(ctx, name)
				if err == nil {
					err = client.call(ctx, http.MethodDelete, "/v1/environments/"+found.ID+query, nil, nil)
				}
				if err != nil {
					failed = append(failed, fmt.Errorf("delete environment %s: %w", name, err))
					continue
				}
				going = append(going, found)
			}
			for _, one := range going {
				if err := client.waitDeleted(ctx, one.ID); err != nil {
					failed = append(failed, fmt.Errorf("delete environment %s: %w", one.Name, err))
					continue
				}
				fmt.Fprintf(command.OutOrStdout(), "%s is deleted\n", one.Name)
			}
			return errors.Join(failed...)
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "how long to wait until they are gone")
	command.Flags().BoolVar(&abandon, "abandon", false, "forget them at once, and leave in the cloud what is there")
	return command
}

// onEnvironment is signedIn for commands whose first argument names an environment; args are the others.
func (c *connection) onEnvironment(work func(command *cobra.Command, client *client, found environmentRow, args []string) error) func(*cobra.Command, []string) error {
	return c.signedIn(func(command *cobra.Command, client *client, args []string) error {
		found, err := client.environment(command.Context(), args[0])
		if err != nil {
			return err
		}
		return work(command, client, found, args[1:])
	})
}

// environments lists those of the caller's project; query may ask for others.
func (c *client) environments(ctx context.Context, query url.Values) ([]environmentRow, error) {
	var answer struct {
		Environments []environmentRow `json:"environments"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/environments?"+query.Encode(), nil, &answer)
	return answer.Environments, err
}

// idForm is how the ids of environments look.
var idForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// environment finds an environment by name or id; one of another project, which admins may see, by its id.
func (c *client) environment(ctx context.Context, nameOrID string) (environmentRow, error) {
	rows, err := c.environments(ctx, nil)
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
	if idForm.MatchString(nameOrID) {
		var whole environmentRow
		if err := c.call(ctx, http.MethodGet, "/v1/environments/"+nameOrID, nil, &whole); err == nil {
			return whole, nil
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
	var answer struct {
		Reports []report `json:"reports"`
	}
	if err := c.call(ctx, http.MethodGet, "/v1/environments/"+environment+"/deployments/"+newest.ID, nil, &answer); err != nil {
		return err
	}
	text := ""
	for _, report := range answer.Reports {
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
