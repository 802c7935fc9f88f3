package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
)

// saveOptions say where packages are saved to, and from.
type saveOptions struct {
	folder     string
	repository string
	noImages   bool
}

func (o *saveOptions) addFlags(command *cobra.Command) {
	command.Flags().StringVarP(&o.folder, "path", "p", ".", "folder to save to; it is made when it is not there")
	command.Flags().BoolVar(&o.noImages, "no-images", false, "leave out the images that the packages need")
	addRepositoryFlag(command, &o.repository)
}

func packageSaveCommand() *cobra.Command {
	var options saveOptions
	command := &cobra.Command{
		Use:   "save NAME|URL|PATH…",
		Short: "Save packages of a repository with all that they require, and their images, to a folder",
		Long: `Saves the packages as <full name>.zip, with those that they require and that do not come with Burano, and the images of their images.lst
under their names. No server is asked: the folder can be carried to where there is no way to the repository, and imported there.`,
		Example: "  burano package save --repository https://apps.example.org --path ./carry io.example.App",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := newPackageFinder(options.repository)
			asked, err := finder.findAll(command.Context(), names)
			if err != nil {
				return err
			}
			return finder.save(command.Context(), command.OutOrStdout(), asked, options)
		},
	}
	options.addFlags(command)
	return command
}

// save writes packages, what they require and their images into a folder.
func (f packageFinder) save(ctx context.Context, output io.Writer, asked []localPackage, options saveOptions) error {
	embedded, err := apps.Packages()
	if err != nil {
		return err
	}
	comes := map[string]bool{}
	for _, one := range embedded {
		comes[one.FullName()] = true
	}
	ordered, err := f.withRequired(ctx, asked, func(_ context.Context, name string) (bool, error) { return comes[name], nil })
	if err != nil {
		return err
	}
	if err := os.MkdirAll(options.folder, 0o755); err != nil {
		return err
	}
	for _, one := range ordered {
		path := filepath.Join(options.folder, one.name()+".zip")
		if err := os.WriteFile(path, one.zip, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(output, "%s: saved as %s\n", one.name(), path)
	}
	if options.noImages {
		return nil
	}
	var failed []error
	for _, one := range ordered {
		images, problems := one.pkg.Images()
		for _, problem := range problems {
			failed = append(failed, fmt.Errorf("%s: %s:%d:%d: %w", one.name(), problem.File, problem.Line, problem.Column, problem))
		}
		for _, image := range images {
			path, err := f.saveImage(ctx, image, options)
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: image %s: %w", one.name(), image.Name, err))
				continue
			}
			fmt.Fprintf(output, "%s: image %s saved as %s\n", one.name(), image.Name, path)
		}
	}
	return errors.Join(failed...)
}

// saveImage saves an image under the last part of where it is. The file appears whole or not at all.
func (f packageFinder) saveImage(ctx context.Context, image catalog.Image, options saveOptions) (path string, err error) {
	address := imageAddress(image, options.repository)
	if address == "" {
		return "", errors.New("nobody says where it is: name a repository with --repository")
	}
	name := filepath.Base(cmp.Or(image.URL, image.Name))
	if !filepath.IsLocal(name) || name == "." {
		return "", fmt.Errorf("%q is no name for a file", name)
	}
	f.http.Timeout = 0 // images are large
	content, err := f.get(ctx, address)
	if err != nil {
		return "", err
	}
	defer content.Close()
	path = filepath.Join(options.folder, name)
	file, err := os.CreateTemp(options.folder, ".image-*")
	if err != nil {
		return "", err
	}
	defer os.Remove(file.Name())
	_, err = io.Copy(file, content)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return "", fmt.Errorf("download %s: %w", address, err)
	}
	return path, os.Rename(file.Name(), path)
}
