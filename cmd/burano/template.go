package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// templateRow is a template as the API tells it.
type templateRow struct {
	ID          string           `json:"id" yaml:"id"`
	Name        string           `json:"name" yaml:"name"`
	Public      bool             `json:"is_public" yaml:"is_public"`
	Description string           `json:"description_text" yaml:"description_text"`
	Created     string           `json:"created" yaml:"created"`
	Updated     string           `json:"updated" yaml:"updated"`
	Services    []map[string]any `json:"services,omitempty" yaml:"services,omitempty"`
}

func templateCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "template", Short: "Templates: environments to be"}
	command.AddCommand(templateListCommand(connection), templateShowCommand(connection), templateCreateCommand(connection),
		templateAddCommand(connection), templateRemoveCommand(connection), templateRenameCommand(connection), templateCloneCommand(connection),
		templateEnvironmentCommand(connection), templateDeleteCommand(connection))
	return command
}

// onTemplate is a command whose first argument names a template.
func onTemplate(connection *connection, args cobra.PositionalArgs, use, short string,
	do func(ctx context.Context, client *client, found templateRow, command *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
		found, err := client.template(command.Context(), args[0])
		if err != nil {
			return err
		}
		return do(command.Context(), client, found, command, args[1:])
	})}
}

func (c *client) templates(ctx context.Context) ([]templateRow, error) {
	var answer struct {
		Templates []templateRow `json:"templates"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/templates", nil, &answer)
	return answer.Templates, err
}

// template finds a template by its name or id.
func (c *client) template(ctx context.Context, name string) (templateRow, error) {
	rows, err := c.templates(ctx)
	if err != nil {
		return templateRow{}, err
	}
	for _, row := range rows {
		if row.Name == name || row.ID == name {
			err := c.call(ctx, http.MethodGet, "/v1/templates/"+row.ID, nil, &row)
			return row, err
		}
	}
	return templateRow{}, fmt.Errorf("there is no template %q; `burano template list` lists those there are", name)
}

func templateListCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "list",
		Short: "List the project's templates and public ones",
		Args:  cobra.NoArgs,
		RunE: connection.signedIn(func(command *cobra.Command, client *client, _ []string) error {
			rows, err := client.templates(command.Context())
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tPUBLIC\tCREATED\tUPDATED")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%t\t%s\t%s\n", row.ID, row.Name, row.Public, row.Created, row.Updated)
				}
			})
		}),
	}
	print.addFlag(command)
	return command
}

func templateShowCommand(connection *connection) *cobra.Command {
	var print output
	command := onTemplate(connection, cobra.ExactArgs(1), "show NAME|ID", "Show a template with its applications",
		func(_ context.Context, _ *client, found templateRow, command *cobra.Command, _ []string) error {
			applications := make([]string, 0, len(found.Services))
			for _, one := range found.Services {
				header, _ := one["?"].(map[string]any)
				applications = append(applications, fmt.Sprintf("%v (%v)", header["type"], header["id"]))
			}
			return print.print(command.OutOrStdout(), found, properties([2]any{"ID", found.ID}, [2]any{"Name", found.Name}, [2]any{"Public", found.Public},
				[2]any{"Description", found.Description}, [2]any{"Applications", applications}))
		})
	print.addFlag(command)
	return command
}

func templateCreateCommand(connection *connection) *cobra.Command {
	var public bool
	var description, file string
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Make a template, empty or with the applications of a file as `burano deploy` takes it",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			body := map[string]any{"name": args[0], "is_public": public, "description_text": description}
			if file != "" {
				described, err := readEnvironmentFile(file)
				if err != nil {
					return err
				}
				body["services"] = withStableIDs("template "+args[0], described.Applications)
			}
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			var row templateRow
			if err := client.call(command.Context(), http.MethodPost, "/v1/templates", body, &row); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s (%s): made\n", row.Name, row.ID)
			return nil
		},
	}
	command.Flags().BoolVar(&public, "public", false, "let other projects see and copy it")
	command.Flags().StringVar(&description, "description", "", "what it is for")
	command.Flags().StringVar(&file, "file", "", "a YAML file with applications")
	return command
}

func templateAddCommand(connection *connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "add NAME|ID FILE", "Add the applications of a file to a template",
		func(ctx context.Context, client *client, found templateRow, command *cobra.Command, args []string) error {
			described, err := readEnvironmentFile(args[0])
			if err != nil {
				return err
			}
			added := withStableIDs("template "+found.ID, described.Applications)
			if err := client.call(ctx, http.MethodPost, "/v1/templates/"+found.ID+"/services", added, nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: %d applications added\n", found.Name, len(added))
			return nil
		})
}

func templateRemoveCommand(connection *connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "remove NAME|ID APPLICATION-ID", "Remove an application from a template",
		func(ctx context.Context, client *client, found templateRow, command *cobra.Command, args []string) error {
			if err := client.call(ctx, http.MethodDelete, "/v1/templates/"+found.ID+"/services/"+args[0], nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: %s removed\n", found.Name, args[0])
			return nil
		})
}

func templateRenameCommand(connection *connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "rename NAME|ID NEW-NAME", "Give a template another name",
		func(ctx context.Context, client *client, found templateRow, command *cobra.Command, args []string) error {
			if err := client.call(ctx, http.MethodPut, "/v1/templates/"+found.ID, map[string]any{"name": args[0]}, nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is called %s now\n", found.Name, args[0])
			return nil
		})
}

func templateCloneCommand(connection *connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "clone NAME|ID NEW-NAME", "Copy a public template into the project",
		func(ctx context.Context, client *client, found templateRow, command *cobra.Command, args []string) error {
			var row templateRow
			if err := client.call(ctx, http.MethodPost, "/v1/templates/"+found.ID+"/clone", map[string]any{"name": args[0]}, &row); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s (%s): made\n", row.Name, row.ID)
			return nil
		})
}

func templateEnvironmentCommand(connection *connection) *cobra.Command {
	var region string
	command := onTemplate(connection, cobra.ExactArgs(2), "create-environment NAME|ID ENVIRONMENT", "Make an environment with the applications of a template",
		func(ctx context.Context, client *client, found templateRow, command *cobra.Command, args []string) error {
			body := map[string]any{"name": args[0]}
			if region != "" {
				body["region"] = region
			}
			var answer json.RawMessage
			if err := client.call(ctx, http.MethodPost, "/v1/templates/"+found.ID+"/create-environment", body, &answer); err != nil {
				return err
			}
			var made struct {
				Environment string `json:"environment_id"`
				Session     string `json:"session_id"`
			}
			if err := json.Unmarshal(answer, &made); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s (%s) is made; its applications are drafted in session %s: `burano session deploy %s %s` deploys them\n",
				args[0], made.Environment, made.Session, args[0], made.Session)
			return nil
		})
	command.Flags().StringVar(&region, "region", "", "region of the cloud")
	return command
}

func templateDeleteCommand(connection *connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(1), "delete NAME|ID", "Delete a template",
		func(ctx context.Context, client *client, found templateRow, command *cobra.Command, _ []string) error {
			if err := client.call(ctx, http.MethodDelete, "/v1/templates/"+found.ID, nil, nil); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: deleted\n", found.Name)
			return nil
		})
}
