package author

import (
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// BundleCommand is burano bundle.
func BundleCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "bundle", Short: "Bundles: lists of packages that belong together", Long: `A bundle is a file in JSON or YAML such as
{"Packages": [{"Name": "io.example.App", "Version": ""}]}. A repository has its bundles at bundles/<name>.bundle.`}
	command.AddCommand(bundleImportCommand(connection), bundleSaveCommand())
	return command
}

func bundleImportCommand(connection *cli.Connection) *cobra.Command {
	var options importOptions
	command := &cobra.Command{
		Use:   "import PATH|URL|NAME…",
		Short: "Upload the packages of bundles and their required packages",
		Long: `Import uploads the packages of bundles as "burano package import" does. For a bundle in a file it looks for the packages beside that file
first.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := client.NewFinder(options.repository)
			var asked []client.LocalPackage
			for _, name := range names {
				found, err := finder.Bundle(command.Context(), name)
				if err != nil {
					return err
				}
				asked = append(asked, found...)
			}
			return importAll(connection, command, finder, asked, options)
		},
	}
	options.addFlags(command)
	return command
}

func bundleSaveCommand() *cobra.Command {
	var options saveOptions
	command := &cobra.Command{
		Use:   "save PATH|URL|NAME",
		Short: "Save the packages of a bundle, their required packages, and their images to a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := client.NewFinder(options.repository)
			asked, err := finder.Bundle(command.Context(), names[0])
			if err != nil {
				return err
			}
			return savePackages(command.Context(), command.OutOrStdout(), finder, asked, options)
		},
	}
	options.addFlags(command)
	return command
}
