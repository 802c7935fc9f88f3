// Package author has the commands by which packages are made, checked, tried and imported.
package author

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func packageProperties(p client.Package) func(*tabwriter.Writer) {
	return cli.Properties([2]any{"ID", p.ID}, [2]any{"Full name", p.FullName}, [2]any{"Name", p.Name}, [2]any{"Version", p.Version}, [2]any{"Type", p.Type},
		[2]any{"Author", p.Author}, [2]any{"Description", p.Description}, [2]any{"Tags", p.Tags}, [2]any{"Categories", p.Categories},
		[2]any{"Classes", p.Classes}, [2]any{"Public", p.Public}, [2]any{"Enabled", p.Enabled}, [2]any{"Owner", p.OwnerID},
		[2]any{"Created", p.Created}, [2]any{"Updated", p.Updated})
}

func packageTable(rows []client.Package) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "ID\tFULL NAME\tVERSION\tNAME\tTYPE\tPUBLIC\tENABLED")
		for _, row := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%t\t%t\n", row.ID, row.FullName, row.Version, row.Name, row.Type, row.Public, row.Enabled)
		}
	}
}

// PackageCommand is burano package.
func PackageCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "package", Short: "Packages of the catalog"}
	command.AddCommand(packageImportCommand(connection), packageListCommand(connection), packageShowCommand(connection), packageUpdateCommand(connection),
		packageDeleteCommand(connection), packageDownloadCommand(connection), packageCreateCommand(), packageCheckCommand(), packageTestCommand(),
		packageRunCommand(), packageSchemaCommand(), packageSaveCommand())
	return command
}

// completePackages completes names of packages for the shell.
func completePackages(connection *cli.Connection) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		api, err := connection.Connect(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		rows, err := api.Packages().List(command.Context(), url.Values{"include_disabled": {"true"}, "limit": {"100"}})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		names := make([]string, 0, len(rows))
		for _, row := range rows {
			names = append(names, cobra.CompletionWithDesc(row.FullName, row.Name))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func packageListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var all, owned bool
	filters := map[string]*string{}
	command := &cobra.Command{
		Use:   "list",
		Short: "List packages: the deployable ones, or all",
		Example: `  burano package list --search kubernetes
  burano package list --owned --all -o json`,
		Args: cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			query := url.Values{"limit": {"100"}, "owned": {strconv.FormatBool(owned)}}
			if all {
				query.Set("include_disabled", "true")
			} else {
				query.Set("catalog", "true")
			}
			for name, value := range filters {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			rows, err := api.Packages().List(command.Context(), query)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, packageTable(rows))
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVar(&all, "all", false, "also list disabled packages and, for administrators, packages of other projects")
	command.Flags().BoolVar(&owned, "owned", false, "list only the project's own")
	for name, usage := range map[string]string{"search": "with these words in any of their texts, separated by commas", "fqn": "with this full name", "name": "with this display name",
		"type": "of this type: Application or Library", "category": "of this category", "tag": "with this tag", "class": "with a class of this name"} {
		parameter := map[string]string{"class": "class_name"}[name]
		if parameter == "" {
			parameter = name
		}
		filters[parameter] = command.Flags().String(name, "", "list only packages "+usage)
	}
	return command
}

func packageShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:               "show NAME|ID",
		Short:             "Show a package",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePackages(connection),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			row, err := api.Packages().Get(command.Context(), args[0])
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), row, packageProperties(row))
		}),
	}
	print.AddFlag(command)
	return command
}

func packageUpdateCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var name, description string
	var public, enabled bool
	var tags, categories []string
	command := &cobra.Command{
		Use:   "update NAME|ID",
		Short: "Change name, description, tags, categories or visibility of a package",
		Example: `  burano package update io.example.App --public=true
  burano package update io.example.App --tags web,demo --categories Web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePackages(connection),
		RunE: func(command *cobra.Command, args []string) error {
			var changes []client.PackageChange
			for flag, change := range map[string]client.PackageChange{"name": {Field: "name", Value: name}, "description": {Field: "description", Value: description},
				"public": {Field: "is_public", Value: public}, "enabled": {Field: "enabled", Value: enabled}, "tags": {Field: "tags", Value: tags},
				"categories": {Field: "categories", Value: categories}} {
				if command.Flags().Changed(flag) {
					changes = append(changes, change)
				}
			}
			if len(changes) == 0 {
				return errors.New("nothing to change: name at least one of --name, --description, --public, --enabled, --tags and --categories")
			}
			api, err := connection.Connect(command.Context())
			if err != nil {
				return err
			}
			row, err := api.Packages().Get(command.Context(), args[0])
			if err != nil {
				return err
			}
			if row, err = api.Packages().Update(command.Context(), row.ID, changes...); err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), row, packageProperties(row))
		},
	}
	print.AddFlag(command)
	command.Flags().StringVar(&name, "name", "", "display name")
	command.Flags().StringVar(&description, "description", "", "description")
	command.Flags().BoolVar(&public, "public", false, "let every project use the package")
	command.Flags().BoolVar(&enabled, "enabled", true, "offer the package for deployments")
	command.Flags().StringSliceVar(&tags, "tags", nil, "tags, which replace the former ones")
	command.Flags().StringSliceVar(&categories, "categories", nil, "categories, which replace the former ones")
	return command
}

func packageDeleteCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME|ID…",
		Short:             "Delete packages",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completePackages(connection),
		RunE: connection.DeleteEach("%s", func(ctx context.Context, api *client.Client, name string) (string, error) {
			row, err := api.Packages().Get(ctx, name)
			if err != nil {
				return "", err
			}
			return fmt.Sprintf("%s (%s)", row.FullName, row.ID), api.Packages().Delete(ctx, row.ID)
		}),
	}
}

func packageDownloadCommand(connection *cli.Connection) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:               "download NAME|ID [FILE]",
		Short:             "Save a package's zip as FILE (default <full name>.zip; - is standard output)",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completePackages(connection),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			row, err := api.Packages().Get(command.Context(), args[0])
			if err != nil {
				return err
			}
			file := row.FullName + ".zip"
			if len(args) == 2 {
				file = args[1]
			}
			archive, err := api.Packages().Download(command.Context(), row.ID)
			if err != nil {
				return err
			}
			if file == "-" {
				_, err := command.OutOrStdout().Write(archive)
				return err
			}
			if err := save(file, archive, force); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: saved as %s\n", row.FullName, file)
			return nil
		}),
	}
	command.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return command
}

// save writes a new file, or over an old one when it is asked to.
func save(file string, content []byte, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	target, err := os.OpenFile(file, flags, 0o644)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: name another file, or write over it with --force", file)
	}
	if err != nil {
		return err
	}
	_, err = target.Write(content)
	return errors.Join(err, target.Close())
}
