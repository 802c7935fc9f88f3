package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// previewTable lists changes, the losses in the cloud, and problems.
func previewTable(p client.Preview) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		changesTable(p.Changes)(table)
		if !p.Changing() {
			fmt.Fprintln(table, "nothing would be added, changed or removed")
		}
		for _, one := range p.Means {
			fmt.Fprintf(table, "> %s\n", one)
		}
		for _, one := range p.Notes {
			fmt.Fprintf(table, "= %s\n", one)
		}
		for _, one := range p.Losses {
			fmt.Fprintf(table, "x the %s %s is deleted, with all that is on it\n", one.Kind, strings.TrimSpace(one.Object+" "+one.CloudID))
		}
		for _, one := range p.Kubernetes {
			fmt.Fprintf(table, "%s in %s: %s %s\n", signs[one.Change], one.Object, one.Kind, strings.TrimPrefix(one.Namespace+"/"+one.Name, "/"))
			for _, field := range one.Fields {
				fmt.Fprintf(table, "    %s\n", changedLine(field.Path, shortJSON(field.Before), shortJSON(field.After)))
			}
			if one.More > 0 {
				fmt.Fprintf(table, "    and %d more\n", one.More)
			}
		}
		for _, one := range p.Problems {
			fmt.Fprintf(table, "! %s: %s\n", cmp.Or(one.Path, one.Class, "the environment"), one.Message) // one cell: a sentence would widen the columns of all rows
		}
	}
}

// shownJSON is how much of a value is shown, in characters.
const shownJSON = 60

// shortJSON is a value as JSON in one line, and no more of it than a person reads.
func shortJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if runes := []rune(string(text)); len(runes) > shownJSON {
		return string(runes[:shownJSON]) + "…"
	}
	return string(text)
}

// SessionCommand is burano session.
func SessionCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "session", Short: "Sessions: drafts of an environment"}
	command.AddCommand(sessionListCommand(connection), sessionCreateCommand(connection), sessionShowCommand(connection), sessionDeleteCommand(connection), sessionDeployCommand(connection),
		sessionPreviewCommand(connection))
	return command
}

func sessionTable(row client.Session) func(*tabwriter.Writer) {
	return cli.Properties([2]any{"ID", row.ID}, [2]any{"State", row.State}, [2]any{"Version", row.Version}, [2]any{"Created", row.Created}, [2]any{"Updated", row.Updated})
}

func sessionCreateCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "create ENVIRONMENT",
		Short: "Open a session, which drafts changes of the environment",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			row, err := api.Sessions().Configure(command.Context(), environment.ID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), row, sessionTable(row))
		}),
	}
	print.AddFlag(command)
	return command
}

func sessionListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list ENVIRONMENT",
		Short: "List the open sessions of an environment: holder, time, and whether the draft is out of date",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, _ []string) error {
			rows, err := api.Sessions().Drafts(command.Context(), environment.ID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tUSER\tSTATE\tCREATED\tUPDATED")
				for _, row := range rows {
					state := "up to date"
					switch {
					case row.Outdated:
						state = "out of date"
					case row.Rejected:
						state = "rejected"
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", cmp.Or(row.ID, "(another user's)"), cmp.Or(row.UserName, row.UserID), state, row.Created, row.Updated)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func sessionShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT SESSION",
		Short: "Show a session",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			row, err := api.Sessions().Get(command.Context(), environment.ID, args[0])
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), row, sessionTable(row))
		}),
	}
	print.AddFlag(command)
	return command
}

func sessionDeleteCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "delete ENVIRONMENT SESSION",
		Short: "Discard a draft",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			if err := api.Sessions().Delete(command.Context(), environment.ID, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: deleted\n", args[0])
			return nil
		}),
	}
}

func sessionDeployCommand(connection *cli.Connection) *cobra.Command {
	var watch bool
	var allowDestroy []string
	command := &cobra.Command{
		Use:   "deploy ENVIRONMENT SESSION",
		Short: "Deploy a draft",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			if err := api.Sessions().Deploy(command.Context(), environment.ID, args[0], allowDestroy...); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s (%s) is being deployed\n", environment.Name, environment.ID)
			if !watch {
				return nil
			}
			return cli.FollowNewest(command.Context(), api, environment.ID, command.OutOrStdout())
		}),
	}
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show the deployment's reports as they come; the exit code is 0 when it succeeded")
	command.Flags().StringSliceVar(&allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	return command
}

// previewed is the end of --dry-run, once the preview is printed.
func previewed(p client.Preview, allowDestroy ...string) error {
	if err := p.Err(allowDestroy...); err != nil {
		return err
	}
	if p.Changing() {
		return cli.ErrWouldChange
	}
	return nil
}

// exitCodesOfPreviews is part of the help of commands with --dry-run.
const exitCodesOfPreviews = "The exit code is 0 when nothing would change, 2 when something would, and 1 when it would be refused, or could not be found out."

func sessionPreviewCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var allowDestroy []string
	command := &cobra.Command{
		Use:   "preview ENVIRONMENT SESSION",
		Short: "Show the changes that a deployment of the draft would make, and its faults",
		Long:  "Preview shows the changes that a deployment of the draft would make, and its faults. The exit code is 1 when it would be refused.",
		Args:  cobra.ExactArgs(2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
			answer, err := api.Sessions().Preview(command.Context(), environment.ID, args[0])
			if err != nil {
				return err
			}
			if err := print.Print(command.OutOrStdout(), answer, previewTable(answer)); err != nil {
				return err
			}
			return answer.Err(allowDestroy...)
		}),
	}
	command.Flags().StringSliceVar(&allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	print.AddFlag(command)
	return command
}
