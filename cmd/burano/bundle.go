package main

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// maxBundle bounds the size of a bundle, which is a list of names.
const maxBundle = 1 << 20

func bundleCommand(connection *connection) *cobra.Command {
	command := &cobra.Command{Use: "bundle", Short: "Bundles: lists of packages that belong together", Long: `A bundle is a file in JSON or YAML such as
{"Packages": [{"Name": "io.example.App", "Version": ""}]}. A repository has its bundles at bundles/<name>.bundle.`}
	command.AddCommand(bundleImportCommand(connection), bundleSaveCommand())
	return command
}

func bundleImportCommand(connection *connection) *cobra.Command {
	var options importOptions
	command := &cobra.Command{
		Use:   "import PATH|URL|NAME…",
		Short: "Upload the packages of bundles, and what they require",
		Long: `Uploads the packages of bundles as burano package import does. Those of a bundle that is a file are looked for beside it first, by the
names that it gives.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := newPackageFinder(options.repository)
			var asked []localPackage
			for _, name := range names {
				found, err := finder.bundle(command.Context(), name)
				if err != nil {
					return err
				}
				asked = append(asked, found...)
			}
			return connection.importAll(command, finder, asked, options)
		},
	}
	options.addFlags(command)
	return command
}

func bundleSaveCommand() *cobra.Command {
	var options saveOptions
	command := &cobra.Command{
		Use:   "save PATH|URL|NAME",
		Short: "Save the packages of a bundle with all that they require, and their images, to a folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, names []string) error {
			finder := newPackageFinder(options.repository)
			asked, err := finder.bundle(command.Context(), names[0])
			if err != nil {
				return err
			}
			return finder.save(command.Context(), command.OutOrStdout(), asked, options)
		},
	}
	options.addFlags(command)
	return command
}

// bundle finds the packages of a bundle: of a file, a URL, or a name in the repository.
func (f packageFinder) bundle(ctx context.Context, name string) ([]localPackage, error) {
	address, folder := name, ""
	var content io.ReadCloser
	var err error
	switch _, missing := os.Stat(name); {
	case strings.HasPrefix(name, "http://"), strings.HasPrefix(name, "https://"):
		content, err = f.get(ctx, address)
	case missing == nil:
		folder = filepath.Dir(name)
		content, err = os.Open(name)
	case f.repository == "":
		return nil, fmt.Errorf("%s is no file or URL; to look for it by name, say where with --repository or MURANO_REPO_URL", name)
	default:
		address = strings.TrimSuffix(f.repository, "/") + "/bundles/" + url.PathEscape(strings.TrimSuffix(name, ".bundle")) + ".bundle"
		content, err = f.get(ctx, address)
	}
	if err != nil {
		return nil, err
	}
	defer content.Close()
	var listed struct {
		Packages []struct {
			Name    string `yaml:"Name"`
			Version string `yaml:"Version"`
		} `yaml:"Packages"`
	}
	if err := yaml.NewDecoder(io.LimitReader(content, maxBundle)).Decode(&listed); err != nil {
		return nil, fmt.Errorf("%s is no bundle: %w", address, err)
	}
	if len(listed.Packages) == 0 {
		return nil, fmt.Errorf("%s is no bundle: it has no list \"Packages\"", address)
	}
	var all []localPackage
	for i, one := range listed.Packages {
		if one.Name == "" {
			return nil, fmt.Errorf("%s: Packages[%d] has no name", address, i)
		}
		found, err := f.ofBundle(ctx, one.Name, one.Version, folder)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", address, one.Name, err)
		}
		all = append(all, found)
	}
	return all, nil
}

// ofBundle finds a package that a bundle names, beside the bundle's file or in the repository, where one of a certain version has that in
// its name.
func (f packageFinder) ofBundle(ctx context.Context, name, version, folder string) (localPackage, error) {
	if folder != "" {
		for _, path := range []string{filepath.Join(folder, name), filepath.Join(folder, name+".zip")} {
			if _, err := os.Stat(path); err == nil {
				return readLocal(path)
			}
		}
	}
	if f.repository == "" {
		return localPackage{}, fmt.Errorf("it is not beside the bundle: say with --repository or MURANO_REPO_URL where it is")
	}
	if version != "" {
		name += "." + version
	}
	return f.download(ctx, f.address(name))
}
