package client

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// ProjectCommand is burano project.
func ProjectCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{
		Use:   "project",
		Short: "Projects: whether Burano works in one with a role of its own",
		Long: `By default a task works in the cloud with a trust of the user who starts it. A project can instead let Burano work in it with a role of its own.
Then every token that may deploy is enough, stacks belong to the service user, and nothing depends on the presence of a user.`,
	}
	command.AddCommand(
		projectListCommand(connection),
		projectRoleCommand(connection, "enable", "Let Burano work in the project with a role of its own",
			`Enable gives Burano's service user the role member (the server's setting project-role) in the project, with your own token: Keystone decides whether you may.
By Burano's policy a manager of the project, or an administrator, may. Where Keystone does not let a manager give roles, an administrator gives the role, and
the manager enables it then. Tasks that are submitted from then on work with that role.`, client.Projects.Enable),
		projectRoleCommand(connection, "disable", "Let Burano work in the project with trusts of users again",
			`Disable takes the role from the service user, with your own token. Tasks that were submitted to work with it fail from then on; others make trusts again.`,
			client.Projects.Disable),
		projectRoleCommand(connection, "show", "Show whether Burano works in the project with a role of its own, and whether Keystone still finds it", "", client.Projects.Role),
	)
	return command
}

func projectListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list",
		Short: "List the enabled projects of the cloud (administrators)",
		Args:  cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			rows, err := api.Projects().List(command.Context())
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tDOMAIN")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%s\n", row.ID, row.Name, row.DomainID)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func projectRoleCommand(connection *cli.Connection, use, short, long string,
	do func(client.Projects, context.Context, string) (client.ProjectRole, error)) *cobra.Command {
	var print cli.Output
	var project string
	command := &cobra.Command{
		Use:   use,
		Short: short,
		Long:  long,
		Args:  cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			role, err := do(api.Projects(), command.Context(), project)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), role, projectRoleTable(role))
		}),
	}
	command.Flags().StringVar(&project, "project", "", "id of the project (administrators); by default your own")
	print.AddFlag(command)
	return command
}

func projectRoleTable(role client.ProjectRole) func(*tabwriter.Writer) {
	if !role.Enabled {
		return cli.Properties([2]any{"Project", role.ProjectID}, [2]any{"Works", "by trusts of users"})
	}
	rows := [][2]any{{"Project", role.ProjectID}, {"Works", "with a role of its own"}, {"User", role.User.Name + " (" + role.User.ID + ")"}, {"Roles", role.Roles},
		{"Enabled by", role.EnabledBy}, {"Since", role.Since.UTC().Format(time.RFC3339)}}
	if role.Problem != "" {
		rows = append(rows, [2]any{"Problem", role.Problem})
	}
	return cli.Properties(rows...)
}
