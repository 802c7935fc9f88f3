package author

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/check"
	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/orchestrator/execution"
)

func packageCheckCommand() *cobra.Command {
	var beside []string
	command := &cobra.Command{
		Use:   "check PATH…",
		Short: "Check packages (zips or folders) for mistakes",
		Long: `Check reads packages as the server does and reports the faults that it can find without running them. These are a wrong manifest, classes that cannot be read,
unknown classes, functions and methods, wrong contracts, and values with $ that are no expressions. They are also unreachable instructions, templates of execution
plans that cannot run, and unused resources. Each fault is a
line: file:line:column: rule: text. The exit code is 1 when a fault prevents a package from working.`,
		Example: `  burano package check ./io.example.App
  burano package check app.zip --packages ./libraries`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, paths []string) error {
			shelf, err := shelf(command.Context(), beside)
			if err != nil {
				return err
			}
			embedded, err := apps.Packages()
			if err != nil {
				return err
			}
			reserved := catalog.ReservedBy(embedded)
			wrong := 0
			for _, path := range paths {
				var findings []check.Finding
				pkg, err := readPackage(command.Context(), path)
				if err != nil {
					if _, missing := os.Stat(path); missing != nil {
						return missing
					}
					findings = []check.Finding{check.Unreadable(err)}
				} else {
					findings = check.Package(command.Context(), pkg, shelf, execution.Check)
					if err := reserved.Check(pkg); err != nil {
						findings = append(findings, check.Unreadable(err))
					}
				}
				for _, finding := range findings {
					level := "error"
					if finding.Warning {
						level = "warning"
					} else {
						wrong++
					}
					fmt.Fprintf(command.OutOrStdout(), "%s/%s (%s)\n", filepath.ToSlash(path), finding, level)
				}
				if len(findings) == 0 {
					fmt.Fprintf(command.OutOrStdout(), "%s: %s %s is in order\n", path, pkg.FullName(), pkg.Version())
				}
			}
			if wrong > 0 {
				return fmt.Errorf("%d errors in what was checked", wrong)
			}
			return nil
		},
	}
	command.Flags().StringArrayVar(&beside, "packages", nil, "package, or folder of packages, that the checked ones may require (repeatable); Burano's own packages are always known")
	return command
}

// readPackage reads a package that is a zip or a folder.
func readPackage(ctx context.Context, path string) (*catalog.Package, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return process.PackageReader().Folder(ctx, os.DirFS(path))
	}
	zip, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return process.PackageReader().Zip(ctx, bytes.NewReader(zip), int64(len(zip)))
}

// shelf is the packages of paths, each a package or a folder of packages, before those that come with Burano.
func shelf(ctx context.Context, paths []string) (catalog.Shelf, error) {
	var packages catalog.Shelf
	for _, path := range paths {
		candidates := []string{path}
		if entries, err := os.ReadDir(path); err == nil && !isPackage(path) {
			candidates = nil
			for _, entry := range entries {
				if inner := filepath.Join(path, entry.Name()); filepath.Ext(inner) == ".zip" || isPackage(inner) {
					candidates = append(candidates, inner)
				}
			}
			if len(candidates) == 0 {
				return nil, fmt.Errorf("%s: there is no package in this folder: one has a manifest.yaml", path)
			}
		}
		for _, candidate := range candidates {
			p, err := readPackage(ctx, candidate)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", candidate, err)
			}
			packages = append(packages, p)
		}
	}
	embedded, err := apps.Packages()
	return append(packages, embedded...), err
}

// isPackage tells whether a folder holds a package.
func isPackage(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "manifest.yaml"))
	return err == nil
}
