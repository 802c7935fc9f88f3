package client

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// TemplateCommand is burano template.
func TemplateCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "template", Short: "Templates of environments"}
	command.AddCommand(templateListCommand(connection), templateShowCommand(connection), templateCreateCommand(connection),
		templateAddCommand(connection), templateRemoveCommand(connection), templateRenameCommand(connection), templateCloneCommand(connection),
		templateEnvironmentCommand(connection), templateDeleteCommand(connection))
	return command
}

// onTemplate is a command whose first argument names a template.
func onTemplate(connection *cli.Connection, args cobra.PositionalArgs, use, short string,
	do func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
		found, err := api.Templates().Get(command.Context(), args[0])
		if err != nil {
			return err
		}
		return do(command.Context(), api, found, command, args[1:])
	})}
}

func templateListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list",
		Short: "List the project's templates and public ones",
		Args:  cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			rows, err := api.Templates().List(command.Context())
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tPUBLIC\tCREATED\tUPDATED")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%t\t%s\t%s\n", row.ID, row.Name, row.Public, row.Created, row.Updated)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func templateShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := onTemplate(connection, cobra.ExactArgs(1), "show NAME|ID", "Show a template with its applications",
		func(_ context.Context, _ *client.Client, found client.Template, command *cobra.Command, _ []string) error {
			applications := make([]string, 0, len(found.Services))
			for _, one := range found.Services {
				header, _ := one["?"].(map[string]any)
				applications = append(applications, fmt.Sprintf("%v (%v)", header["type"], header["id"]))
			}
			return print.Print(command.OutOrStdout(), found, cli.Properties([2]any{"ID", found.ID}, [2]any{"Name", found.Name}, [2]any{"Public", found.Public},
				[2]any{"Description", found.Description}, [2]any{"Applications", applications}))
		})
	print.AddFlag(command)
	return command
}

func templateCreateCommand(connection *cli.Connection) *cobra.Command {
	var public bool
	var description, file string
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a template, empty or with the applications of a file as burano deploy takes it",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			options := client.TemplateOptions{Name: args[0], Public: public, Description: description}
			var described client.EnvironmentFile
			var err error
			if file != "" {
				if described, err = client.ReadEnvironmentFile(file); err != nil {
					return err
				}
			}
			api, err := connection.Connect(command.Context())
			if err != nil {
				return err
			}
			if file != "" {
				if options.Applications, err = api.Files().TemplateIDs(command.Context(), args[0], described.Applications); err != nil {
					return err
				}
			}
			row, err := api.Templates().Create(command.Context(), options)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s (%s): made\n", row.Name, row.ID)
			return nil
		},
	}
	command.Flags().BoolVar(&public, "public", false, "let other projects see and copy it")
	command.Flags().StringVar(&description, "description", "", "description")
	command.Flags().StringVar(&file, "file", "", "a YAML file with applications")
	return command
}

func templateAddCommand(connection *cli.Connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "add NAME|ID FILE", "Add the applications of a file to a template",
		func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, args []string) error {
			described, err := client.ReadEnvironmentFile(args[0])
			if err != nil {
				return err
			}
			added, err := api.Files().TemplateIDs(ctx, found.ID, described.Applications)
			if err != nil {
				return err
			}
			if err := api.Templates().Add(ctx, found.ID, added); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: %d applications added\n", found.Name, len(added))
			return nil
		})
}

func templateRemoveCommand(connection *cli.Connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "remove NAME|ID APPLICATION-ID", "Remove an application from a template",
		func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, args []string) error {
			if err := api.Templates().Remove(ctx, found.ID, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: %s removed\n", found.Name, args[0])
			return nil
		})
}

func templateRenameCommand(connection *cli.Connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "rename NAME|ID NEW-NAME", "Rename a template",
		func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, args []string) error {
			if err := api.Templates().Rename(ctx, found.ID, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is called %s now\n", found.Name, args[0])
			return nil
		})
}

func templateCloneCommand(connection *cli.Connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(2), "clone NAME|ID NEW-NAME", "Copy a public template into the project",
		func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, args []string) error {
			row, err := api.Templates().Clone(ctx, found.ID, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s (%s): made\n", row.Name, row.ID)
			return nil
		})
}

func templateEnvironmentCommand(connection *cli.Connection) *cobra.Command {
	var region string
	command := onTemplate(connection, cobra.ExactArgs(2), "create-environment NAME|ID ENVIRONMENT", "Create an environment with the applications of a template",
		func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, args []string) error {
			environment, session, err := api.Templates().Environment(ctx, found.ID, args[0], region)
			if err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s (%s) is made; its applications are drafted in session %s: `burano session deploy %s %s` deploys them\n",
				args[0], environment, session, args[0], session)
			return nil
		})
	command.Flags().StringVar(&region, "region", "", "region of the cloud")
	return command
}

func templateDeleteCommand(connection *cli.Connection) *cobra.Command {
	return onTemplate(connection, cobra.ExactArgs(1), "delete NAME|ID", "Delete a template",
		func(ctx context.Context, api *client.Client, found client.Template, command *cobra.Command, _ []string) error {
			if err := api.Templates().Delete(ctx, found.ID); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: deleted\n", found.Name)
			return nil
		})
}
