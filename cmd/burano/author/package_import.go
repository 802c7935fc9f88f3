package author

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// importOptions are the flags of package import.
type importOptions struct {
	exists     string
	public     bool
	categories []string
	tags       []string
	repository string
}

func packageImportCommand(connection *cli.Connection) *cobra.Command {
	var options importOptions
	command := &cobra.Command{
		Use:   "import PATH|URL|NAME…",
		Short: "Upload packages: zips, folders, URLs of zips, or names in a repository",
		Long: `Import uploads packages. Packages that they require and that the catalog does not have are uploaded first. Import looks for them among the
named packages, beside each file (<folder>/<full name>.zip or <folder>/<full name>/), and in the repository.

A repository (--repository or MURANO_REPO_URL) has its packages at apps/<full name>.zip, and images at images/<name>.

At the end it lists the images that the packages need (images.lst), whether Glance has them, and the commands for missing ones.`,
		Example: `  burano package import ./io.example.App
  burano package import --exists-action u app.zip
  burano package import --repository https://apps.example.org io.example.App`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := client.NewFinder(options.repository)
			asked, err := finder.FindAll(command.Context(), names)
			if err != nil {
				return err
			}
			return importAll(connection, command, finder, asked, options)
		},
	}
	options.addFlags(command)
	command.Flags().StringSliceVarP(&options.categories, "categories", "c", nil, "categories to put the packages into")
	command.Flags().StringSliceVar(&options.tags, "tags", nil, "tags in addition to the tags of the manifests")
	return command
}

// addFlags adds the flags of whatever imports packages.
func (o *importOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.exists, "exists-action", "a", "treatment of a package that the project already has: s (skip), u (update: replace, at once) or a (abort)")
	_ = command.RegisterFlagCompletionFunc("exists-action", cobra.FixedCompletions([]string{"s", "u", "a"}, cobra.ShellCompDirectiveNoFileComp))
	command.Flags().BoolVar(&o.public, "public", false, "let every project use the packages")
	cli.AddRepositoryFlag(command, &o.repository)
}

// importAll uploads packages and their dependencies, and prints the results and the images that they need.
func importAll(c *cli.Connection, command *cobra.Command, finder client.Finder, asked []client.LocalPackage, options importOptions) error {
	if !slices.Contains([]string{"s", "u", "a"}, options.exists) {
		return fmt.Errorf("--exists-action is s (skip), u (update) or a (abort), not %q", options.exists)
	}
	api, err := c.Connect(command.Context())
	if err != nil {
		return err
	}
	ordered, err := finder.WithRequired(command.Context(), asked, api.Packages().Has)
	if err != nil {
		return err
	}
	for _, one := range ordered {
		action := options.exists
		if !slices.ContainsFunc(asked, func(a client.LocalPackage) bool { return a.Name() == one.Name() }) {
			action = "s" // dependencies are not replaced
		}
		done, err := importPackage(command.Context(), api, one, action, options)
		if err != nil {
			return fmt.Errorf("import %s: %w", one.From, err)
		}
		fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", one.Name(), done)
	}
	sayImages(command.Context(), command.OutOrStdout(), c, ordered, finder)
	return nil
}

// importPackage uploads a package and returns the outcome as a word.
func importPackage(ctx context.Context, api *client.Client, one client.LocalPackage, exists string, options importOptions) (string, error) {
	upload := client.UploadOptions{Public: options.public, Categories: options.categories, Tags: options.tags}
	err := api.Packages().Upload(ctx, one.Name(), one.Zip, upload)
	if !client.IsStatus(err, http.StatusConflict) {
		return "imported", err
	}
	switch exists {
	case "a":
		return "", fmt.Errorf("%w; --exists-action s leaves what is there, u replaces it", err)
	case "s":
		return "is there already, left as it is", nil
	}
	own, listed := api.Packages().List(ctx, url.Values{"owned": {"true"}, "include_disabled": {"true"}, "fqn": {one.Name()}})
	switch {
	case listed != nil:
		return "", listed
	case len(own) == 0:
		return "", fmt.Errorf("%w, by a package of another name or project, which is not replaced", err)
	}
	return "updated", api.Packages().Replace(ctx, one.Name(), one.Zip, upload)
}
