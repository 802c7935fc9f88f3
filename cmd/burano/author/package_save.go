package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// saveOptions say where packages are saved to, and from.
type saveOptions struct {
	folder     string
	repository string
	noImages   bool
}

func (o *saveOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&o.folder, "path", "p", ".", "folder to save to, created when it does not exist")
	command.Flags().BoolVar(&o.noImages, "no-images", false, "leave out the images that the packages need")
	cli.AddRepositoryFlag(command, &o.repository)
}

func packageSaveCommand() *cobra.Command {
	var options saveOptions
	command := &cobra.Command{
		Use:   "save NAME|URL|PATH…",
		Short: "Save packages of a repository, their required packages, and their images to a folder",
		Long: `Save writes the packages as <full name>.zip, with their required packages that do not come with Burano, and the images of their images.lst
under their names. It needs no server. The folder can be imported where the repository cannot be reached.`,
		Example: "  burano package save --repository https://apps.example.org --path ./carry io.example.App",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := client.NewFinder(options.repository)
			asked, err := finder.FindAll(command.Context(), names)
			if err != nil {
				return err
			}
			return savePackages(command.Context(), command.OutOrStdout(), finder, asked, options)
		},
	}
	options.addFlags(command)
	return command
}

// savePackages writes packages, their dependencies and their images into a folder.
func savePackages(ctx context.Context, output io.Writer, finder client.Finder, asked []client.LocalPackage, options saveOptions) error {
	embedded, err := apps.Packages()
	if err != nil {
		return err
	}
	comes := map[string]bool{}
	for _, one := range embedded {
		comes[one.FullName()] = true
	}
	ordered, err := finder.WithRequired(ctx, asked, func(_ context.Context, name string) (bool, error) { return comes[name], nil })
	if err != nil {
		return err
	}
	if err := os.MkdirAll(options.folder, 0o755); err != nil {
		return err
	}
	for _, one := range ordered {
		path := filepath.Join(options.folder, one.Name()+".zip")
		if err := os.WriteFile(path, one.Zip, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(output, "%s: saved as %s\n", one.Name(), path)
	}
	if options.noImages {
		return nil
	}
	var failed []error
	for _, one := range ordered {
		images, problems := one.Package.Images()
		for _, problem := range problems {
			failed = append(failed, fmt.Errorf("%s: %s:%d:%d: %w", one.Name(), problem.File, problem.Line, problem.Column, problem))
		}
		for _, image := range images {
			path, err := finder.SaveImage(ctx, image, options.folder)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: image %s: %w", one.Name(), image.Name, err))
				continue
			}
			fmt.Fprintf(output, "%s: image %s saved as %s\n", one.Name(), image.Name, path)
		}
	}
	return errors.Join(failed...)
}
