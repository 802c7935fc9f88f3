package client

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// CategoryCommand is burano category.
func CategoryCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "category", Short: "Categories of packages"}
	command.AddCommand(categoryListCommand(connection), categoryShowCommand(connection), categoryCreateCommand(connection), categoryDeleteCommand(connection))
	return command
}

func completeCategories(connection *cli.Connection) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		api, err := connection.Connect(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		rows, err := api.Categories().List(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := make([]string, 0, len(rows))
		for _, row := range rows {
			names = append(names, row.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func categoryListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list",
		Short: "List categories",
		Args:  cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			rows, err := api.Categories().List(command.Context())
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tPACKAGES")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%d\n", row.ID, row.Name, row.Count)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func categoryShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:               "show NAME|ID",
		Short:             "Show a category with its packages",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeCategories(connection),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			row, err := api.Categories().Get(command.Context(), args[0])
			if err != nil {
				return err
			}
			names := make([]string, 0, len(row.Packages))
			for _, one := range row.Packages {
				names = append(names, one.FullName)
			}
			return print.Print(command.OutOrStdout(), row, cli.Properties([2]any{"ID", row.ID}, [2]any{"Name", row.Name}, [2]any{"Packages", names},
				[2]any{"Created", row.Created}, [2]any{"Updated", row.Updated}))
		}),
	}
	print.AddFlag(command)
	return command
}

func categoryCreateCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME…",
		Short: "Create categories (administrators)",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			for _, name := range args {
				row, err := api.Categories().Create(command.Context(), name)
				if err != nil {
					return fmt.Errorf("make the category %q: %w", name, err)
				}
				fmt.Fprintf(command.OutOrStdout(), "%s (%s): made\n", row.Name, row.ID)
			}
			return nil
		}),
	}
}

func categoryDeleteCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME|ID…",
		Short:             "Delete categories that have no packages (administrators)",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeCategories(connection),
		RunE: connection.DeleteEach("the category %q", func(ctx context.Context, api *client.Client, name string) (string, error) {
			row, err := api.Categories().Get(ctx, name)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s (%s)", row.Name, row.ID), api.Categories().Delete(ctx, row.ID)
		}),
	}
}
