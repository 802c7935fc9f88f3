package main

import (
	"context"
	"fmt"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// categoryRow is a category as the API tells it.
type categoryRow struct {
	ID       string `json:"id" yaml:"id"`
	Name     string `json:"name" yaml:"name"`
	Count    int    `json:"package_count" yaml:"package_count"`
	Created  string `json:"created" yaml:"created"`
	Updated  string `json:"updated" yaml:"updated"`
	Packages []struct {
		ID       string `json:"id" yaml:"id"`
		Name     string `json:"name" yaml:"name"`
		FullName string `json:"fully_qualified_name" yaml:"fully_qualified_name"`
	} `json:"packages,omitempty" yaml:"packages,omitempty"`
}

func categoryCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "category", Short: "Categories of packages"}
	command.AddCommand(categoryListCommand(connection), categoryShowCommand(connection), categoryCreateCommand(connection), categoryDeleteCommand(connection))
	return command
}

func (c *client) categories(ctx context.Context) ([]categoryRow, error) {
	var list struct {
		Categories []categoryRow `json:"categories"`
	}
	err := c.call(ctx, http.MethodGet, "/v1/catalog/categories", nil, &list)
	return list.Categories, err
}

// findCategory finds a category by its name or id.
func (c *client) findCategory(ctx context.Context, name string) (categoryRow, error) {
	rows, err := c.categories(ctx)
	if err != nil {
		return categoryRow{}, err
	}
	for _, row := range rows {
		if row.Name == name || row.ID == name {
			return row, nil
		}
	}
	return categoryRow{}, fmt.Errorf("there is no category %q; `burano category list` lists those there are", name)
}

func completeCategories(connection *connection) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client, err := connection.connect(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		rows, err := client.categories(command.Context())
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

func categoryListCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "list",
		Short: "List categories",
		Args:  cobra.NoArgs,
		RunE: connection.signedIn(func(command *cobra.Command, client *client, _ []string) error {
			rows, err := client.categories(command.Context())
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "ID\tNAME\tPACKAGES")
				for _, row := range rows {
					fmt.Fprintf(table, "%s\t%s\t%d\n", row.ID, row.Name, row.Count)
				}
			})
		}),
	}
	print.addFlag(command)
	return command
}

func categoryShowCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:               "show NAME|ID",
		Short:             "Show a category with its packages",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeCategories(connection),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			row, err := client.findCategory(command.Context(), args[0])
			if err != nil {
				return err
			}
			if err := client.call(command.Context(), http.MethodGet, "/v1/catalog/categories/"+row.ID, nil, &row); err != nil {
				return err
			}
			names := make([]string, 0, len(row.Packages))
			for _, one := range row.Packages {
				names = append(names, one.FullName)
			}
			return print.print(command.OutOrStdout(), row, properties([2]any{"ID", row.ID}, [2]any{"Name", row.Name}, [2]any{"Packages", names},
				[2]any{"Created", row.Created}, [2]any{"Updated", row.Updated}))
		}),
	}
	print.addFlag(command)
	return command
}

func categoryCreateCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "create NAME…",
		Short: "Make categories (administrators)",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			for _, name := range args {
				var row categoryRow
				if err := client.call(command.Context(), http.MethodPost, "/v1/catalog/categories", map[string]any{"name": name}, &row); err != nil {
					return fmt.Errorf("make the category %q: %w", name, err)
				}
				fmt.Fprintf(command.OutOrStdout(), "%s (%s): made\n", row.Name, row.ID)
			}
			return nil
		}),
	}
}

func categoryDeleteCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME|ID…",
		Short:             "Delete categories without packages (administrators)",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeCategories(connection),
		RunE: connection.deleteEach("the category %q", func(ctx context.Context, client *client, name string) (label, path string, err error) {
			row, err := client.findCategory(ctx, name)
			return fmt.Sprintf("%s (%s)", row.Name, row.ID), "/v1/catalog/categories/" + row.ID, err
		}),
	}
}
