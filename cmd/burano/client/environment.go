// Package client has the commands by which users work with environments, deployments and their project.
package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"text/tabwriter"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// EnvironmentCommand is burano environment.
func EnvironmentCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "environment", Aliases: []string{"env"}, Short: "Environments: sets of applications that are deployed together"}
	command.AddCommand(environmentListCommand(connection), environmentShowCommand(connection), environmentCreateCommand(connection),
		environmentRenameCommand(connection), environmentModelCommand(connection), environmentObjectsCommand(connection), environmentComponentsCommand(connection), environmentReportsCommand(connection), environmentDeleteCommand(connection), environmentUndeleteCommand(connection), environmentPurgeCommand(connection), delegationCommand(connection),
		environmentHibernateCommand(connection), environmentWakeCommand(connection), hibernationCommand(connection),
		environmentHistoryCommand(connection), environmentDiffCommand(connection), environmentRollbackCommand(connection), environmentDiscardCommand(connection),
		environmentExportCommand(connection), environmentImportCommand(connection), environmentKeyCommand(), environmentCloneCommand(connection), environmentMoveCommand(connection))
	return command
}

func environmentListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var all, deleted bool
	var project string
	command := &cobra.Command{
		Use:   "list",
		Short: "List the environments of the project, or, for administrators, of others",
		Args:  cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			query := url.Values{}
			if all {
				query.Set("all_tenants", "true")
			}
			if project != "" {
				query.Set("tenant", project)
			}
			if deleted {
				return listDeleted(command.Context(), command.OutOrStdout(), api, query, print)
			}
			rows, err := api.Environments().Overviews(command.Context(), query)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tSTATE\tCREATED\tUPDATED")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.ID, row.Name, row.State, row.Created, row.Updated)
				}
			})
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVar(&all, "all-projects", false, "list the environments of all projects (administrators)")
	command.Flags().StringVar(&project, "project", "", "list the environments of the project with this id (administrators)")
	command.Flags().BoolVar(&deleted, "deleted", false, "list deleted environments that can be restored")
	command.MarkFlagsMutuallyExclusive("all-projects", "project")
	return command
}

func environmentShowCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|ID",
		Short: "Show an environment with its applications, as JSON",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			var whole json.RawMessage
			if err := api.Call(command.Context(), http.MethodGet, "/v1/environments/"+found.ID, nil, &whole); err != nil {
				return err
			}
			return cli.WriteJSON(command.OutOrStdout(), whole)
		}),
	}
}

func environmentCreateCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var description, region, network, subnet string
	command := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an environment without applications",
		Args:  cobra.ExactArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			options := client.EnvironmentOptions{Name: args[0], Description: description, Region: region}
			if network != "" {
				existing := map[string]any{"?": map[string]any{"id": uuid.NewString(), "type": "io.murano.resources.ExistingNeutronNetwork"}, "internalNetworkName": network}
				if subnet != "" {
					existing["internalSubnetworkName"] = subnet
				}
				options.DefaultNetworks = map[string]any{"flat": nil, "environment": existing}
			} else if subnet != "" {
				return errors.New("--subnet is one of a network: name that by --network")
			}
			row, err := api.Environments().Create(command.Context(), options)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), row, cli.Properties([2]any{"ID", row.ID}, [2]any{"Name", row.Name}, [2]any{"Created", row.Created}))
		}),
	}
	print.AddFlag(command)
	command.Flags().StringVar(&description, "description", "", "description")
	command.Flags().StringVar(&region, "region", "", "region of the cloud")
	command.Flags().StringVar(&network, "network", "", "name or id of an existing network, in place of one of its own")
	command.Flags().StringVar(&subnet, "subnet", "", "name or id of the network's subnet, when it has several")
	return command
}

func environmentRenameCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "rename NAME|ID NEW-NAME",
		Short: "Rename an environment",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error {
			if err := api.Environments().Rename(command.Context(), found.ID, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s is called %s now\n", found.Name, args[0])
			return nil
		}),
	}
}

func environmentObjectsCommand(connection *cli.Connection) *cobra.Command {
	var session, class string
	var print cli.Output
	command := &cobra.Command{
		Use:   "objects NAME|ID",
		Short: "List the objects of an environment, or of the draft of a session",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			rows, err := api.Classes().Objects(command.Context(), found.ID, session, class)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tCLASS\tNAME\tPATH")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", row.ID, row.Type, row.Name, row.Path)
				}
			})
		}),
	}
	command.Flags().StringVar(&session, "session", "", "session of the draft")
	command.Flags().StringVar(&class, "class", "", "only objects of this class or a subclass")
	print.AddFlag(command)
	return command
}

func environmentComponentsCommand(connection *cli.Connection) *cobra.Command {
	var session string
	var print cli.Output
	command := &cobra.Command{
		Use:   "components NAME|ID",
		Short: "List the components of an environment, or of the draft of a session, with their states",
		Long: `Components lists the components of an environment with their states and the errors that they come from. The state of a component follows from its last
deployment, its failed actions, its findings and its changes. The environment has the worst of them. No action ends a failed deployment.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			states, err := api.Environments().Components(command.Context(), found.ID, session)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), states, componentTable(states))
		}),
	}
	command.Flags().StringVar(&session, "session", "", "session of the draft")
	print.AddFlag(command)
	return command
}

// componentTable lists components, each with its errors below.
func componentTable(states client.ComponentStates) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		failures := func(deployment *client.ComponentRun, failures []client.ComponentRun) {
			if deployment != nil && deployment.Failed {
				fmt.Fprintf(table, "\t\t\t\t%s %s: %s\n", deployment.Kind, deployment.Deployment, deployment.Text)
			}
			for _, one := range failures {
				fmt.Fprintf(table, "\t\t\t\t%s %s: %s\n", one.Method, one.Deployment, one.Text)
			}
		}
		fmt.Fprintln(table, "ID\tNAME\tCLASS\tSTATE\tCHANGE")
		for _, row := range states.Components {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", row.ID, row.Name, row.Type, row.State, row.Change)
			failures(row.Deployment, row.Failures)
		}
		if states.Deployment != nil && states.Deployment.Failed || len(states.Failures) > 0 {
			fmt.Fprintf(table, "-\tthe environment\t\t%s\t\n", states.State)
			failures(states.Deployment, states.Failures)
		}
	}
}

func environmentReportsCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var limit int
	command := &cobra.Command{
		Use:   "reports NAME|ID OBJECT",
		Short: "Show the reports of an object in all runs, newest first",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error {
			reports, err := api.Deployments().ObjectReports(command.Context(), found.ID, args[0], limit)
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
	command.Flags().IntVar(&limit, "limit", 100, "how many to show")
	print.AddFlag(command)
	return command
}

func environmentModelCommand(connection *cli.Connection) *cobra.Command {
	var session, path, patch string
	command := &cobra.Command{
		Use:   "model NAME|ID",
		Short: "Show the object model of an environment as JSON, or change the draft of a session",
		Long: `Model prints the object model of an environment, or with --session that of a draft. --path selects a part of it: keys, ids and indexes
separated by /. --patch changes the draft by a JSON patch.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			var answer json.RawMessage
			var err error
			switch {
			case patch == "":
				answer, err = api.Environments().Model(command.Context(), found.ID, session, path)
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
				answer, err = api.Environments().PatchModel(command.Context(), found.ID, session, input)
			}
			if err != nil {
				return err
			}
			return cli.WriteJSON(command.OutOrStdout(), answer)
		}),
	}
	command.Flags().StringVar(&session, "session", "", "session of the draft")
	command.Flags().StringVar(&path, "path", "", "part of the model to show")
	command.Flags().StringVar(&patch, "patch", "", "file with a JSON patch (RFC 6902, the operations add, replace and remove), - for standard input")
	return command
}
