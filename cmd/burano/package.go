package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// packageRow is a package as the API tells it.
type packageRow struct {
	ID          string         `json:"id" yaml:"id"`
	FullName    string         `json:"fully_qualified_name" yaml:"fully_qualified_name"`
	Name        string         `json:"name" yaml:"name"`
	Type        string         `json:"type" yaml:"type"`
	Author      string         `json:"author" yaml:"author"`
	Description string         `json:"description" yaml:"description"`
	Supplier    map[string]any `json:"supplier" yaml:"supplier"`
	Tags        []string       `json:"tags" yaml:"tags"`
	Categories  []string       `json:"categories" yaml:"categories"`
	Classes     []string       `json:"class_definitions" yaml:"class_definitions"`
	Public      bool           `json:"is_public" yaml:"is_public"`
	Enabled     bool           `json:"enabled" yaml:"enabled"`
	OwnerID     string         `json:"owner_id" yaml:"owner_id"`
	Created     string         `json:"created" yaml:"created"`
	Updated     string         `json:"updated" yaml:"updated"`
}

func (p packageRow) properties() func(*tabwriter.Writer) {
	return properties([2]any{"ID", p.ID}, [2]any{"Full name", p.FullName}, [2]any{"Name", p.Name}, [2]any{"Type", p.Type},
		[2]any{"Author", p.Author}, [2]any{"Description", p.Description}, [2]any{"Tags", p.Tags}, [2]any{"Categories", p.Categories},
		[2]any{"Classes", p.Classes}, [2]any{"Public", p.Public}, [2]any{"Enabled", p.Enabled}, [2]any{"Owner", p.OwnerID},
		[2]any{"Created", p.Created}, [2]any{"Updated", p.Updated})
}

func packageTable(rows []packageRow) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "ID\tFULL NAME\tNAME\tTYPE\tPUBLIC\tENABLED")
		for _, row := range rows {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\t%t\n", row.ID, row.FullName, row.Name, row.Type, row.Public, row.Enabled)
		}
	}
}

func packageCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "package", Short: "Packages of the catalog"}
	command.AddCommand(packageImportCommand(connection), packageListCommand(connection), packageShowCommand(connection), packageUpdateCommand(connection),
		packageDeleteCommand(connection), packageDownloadCommand(connection), packageCreateCommand(), packageCheckCommand(), packageTestCommand(),
		packageRunCommand(), packageSchemaCommand(), packageSaveCommand())
	return command
}

// packages asks for all packages that fit, page by page.
func (c *client) packages(ctx context.Context, query url.Values) ([]packageRow, error) {
	all := []packageRow{}
	for {
		var page struct {
			Packages []packageRow `json:"packages"`
			Next     string       `json:"next_marker"`
		}
		if err := c.call(ctx, http.MethodGet, "/v1/catalog/packages?"+query.Encode(), nil, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Packages...)
		if page.Next == "" {
			return all, nil
		}
		query.Set("marker", page.Next)
	}
}

var isID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// findPackage finds a package by its id or its full name. Of several packages of a name that can be seen it is the project's own.
func (c *client) findPackage(ctx context.Context, name string) (packageRow, error) {
	var row packageRow
	if isID.MatchString(name) {
		return row, c.call(ctx, http.MethodGet, "/v1/catalog/packages/"+name, nil, &row)
	}
	query := url.Values{"fqn": {name}, "include_disabled": {"true"}, "owned": {"true"}}
	rows, err := c.packages(ctx, query)
	if err == nil && len(rows) == 0 {
		query = url.Values{"fqn": {name}, "include_disabled": {"true"}}
		rows, err = c.packages(ctx, query)
	}
	switch {
	case err != nil:
		return row, err
	case len(rows) == 0:
		return row, fmt.Errorf("there is no package %q; `burano package list --all` lists those there are", name)
	case len(rows) > 1:
		ids := make([]string, 0, len(rows))
		for _, row := range rows {
			ids = append(ids, row.ID)
		}
		return row, fmt.Errorf("there are %d packages %q: name one by its id, of %s", len(rows), name, strings.Join(ids, ", "))
	}
	// Lists hold everything, but for what a later server may add.
	return rows[0], nil
}

// completePackages completes names of packages for the shell.
func completePackages(connection *connection) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		client, err := connection.connect(command.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		rows, err := client.packages(command.Context(), url.Values{"include_disabled": {"true"}, "limit": {"100"}})
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

func packageListCommand(connection *connection) *cobra.Command {
	var print output
	var all, owned bool
	filters := map[string]*string{}
	command := &cobra.Command{
		Use:   "list",
		Short: "List packages: those that can be deployed, or all",
		Example: `  burano package list --search kubernetes
  burano package list --owned --all -o json`,
		Args: cobra.NoArgs,
		RunE: connection.signedIn(func(command *cobra.Command, client *client, _ []string) error {
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
			rows, err := client.packages(command.Context(), query)
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), rows, packageTable(rows))
		}),
	}
	print.addFlag(command)
	command.Flags().BoolVar(&all, "all", false, "also those that are disabled, and for administrators those of other projects")
	command.Flags().BoolVar(&owned, "owned", false, "only the project's own")
	for name, usage := range map[string]string{"search": "words that are looked for in all texts, with ',' between them", "fqn": "full name", "name": "name that is shown",
		"type": "Application or Library", "category": "name of a category", "tag": "tag", "class": "name of a class"} {
		parameter := map[string]string{"class": "class_name"}[name]
		if parameter == "" {
			parameter = name
		}
		filters[parameter] = command.Flags().String(name, "", "only those with this: "+usage)
	}
	return command
}

func packageShowCommand(connection *connection) *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:               "show NAME|ID",
		Short:             "Show a package",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePackages(connection),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			row, err := client.findPackage(command.Context(), args[0])
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), row, row.properties())
		}),
	}
	print.addFlag(command)
	return command
}

func packageUpdateCommand(connection *connection) *cobra.Command {
	var print output
	var name, description string
	var public, enabled bool
	var tags, categories []string
	command := &cobra.Command{
		Use:   "update NAME|ID",
		Short: "Change what the catalog says of a package",
		Example: `  burano package update io.example.App --public=true
  burano package update io.example.App --tags web,demo --categories Web`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completePackages(connection),
		RunE: func(command *cobra.Command, args []string) error {
			changes := []map[string]any{}
			for flag, change := range map[string]struct {
				path  string
				value any
			}{"name": {"/name", name}, "description": {"/description", description}, "public": {"/is_public", public}, "enabled": {"/enabled", enabled},
				"tags": {"/tags", tags}, "categories": {"/categories", categories}} {
				if command.Flags().Changed(flag) {
					changes = append(changes, map[string]any{"op": "replace", "path": change.path, "value": change.value})
				}
			}
			if len(changes) == 0 {
				return errors.New("nothing to change: name at least one of --name, --description, --public, --enabled, --tags and --categories")
			}
			client, err := connection.connect(command.Context())
			if err != nil {
				return err
			}
			row, err := client.findPackage(command.Context(), args[0])
			if err != nil {
				return err
			}
			err = client.call(command.Context(), http.MethodPatch, "/v1/catalog/packages/"+row.ID, changes, &row, "Content-Type", "application/murano-packages-json-patch")
			if err != nil {
				return err
			}
			return print.print(command.OutOrStdout(), row, row.properties())
		},
	}
	print.addFlag(command)
	command.Flags().StringVar(&name, "name", "", "name that is shown")
	command.Flags().StringVar(&description, "description", "", "description")
	command.Flags().BoolVar(&public, "public", false, "let every project use the package")
	command.Flags().BoolVar(&enabled, "enabled", true, "offer the package for deployments")
	command.Flags().StringSliceVar(&tags, "tags", nil, "all tags, in the place of those there are")
	command.Flags().StringSliceVar(&categories, "categories", nil, "all categories, in the place of those there are")
	return command
}

func packageDeleteCommand(connection *connection) *cobra.Command {
	return &cobra.Command{
		Use:               "delete NAME|ID…",
		Short:             "Delete packages",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completePackages(connection),
		RunE: connection.deleteEach("%s", func(ctx context.Context, client *client, name string) (label, path string, err error) {
			row, err := client.findPackage(ctx, name)
			return fmt.Sprintf("%s (%s)", row.FullName, row.ID), "/v1/catalog/packages/" + row.ID, err
		}),
	}
}

func packageDownloadCommand(connection *connection) *cobra.Command {
	var force bool
	command := &cobra.Command{
		Use:               "download NAME|ID [FILE]",
		Short:             "Save a package's zip; without FILE as <full name>.zip, to - for the standard output",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completePackages(connection),
		RunE: connection.signedIn(func(command *cobra.Command, client *client, args []string) error {
			row, err := client.findPackage(command.Context(), args[0])
			if err != nil {
				return err
			}
			file := row.FullName + ".zip"
			if len(args) == 2 {
				file = args[1]
			}
			archive, err := client.send(command.Context(), http.MethodGet, "/v1/catalog/packages/"+row.ID+"/download", nil, "Accept", "application/octet-stream")
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
	command.Flags().BoolVar(&force, "force", false, "write over a file that is there")
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
