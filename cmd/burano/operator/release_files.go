package operator

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/images"
	"github.com/burano/burano/internal/version"
)

// ReleaseFilesCommand is for images/package/build.sh, which packs the program: the program itself writes the files beside it.
func ReleaseFilesCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "release-files FOLDER",
		Short:  "Write manual pages, shell completions, the commented settings, the bill of materials and the container image of this program",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			root, folder := command.Root(), args[0]
			// The same program writes the same files on every machine.
			root.DisableAutoGenTag = true
			for _, name := range []string{"man", "completion"} {
				if err := os.MkdirAll(filepath.Join(folder, name), 0o755); err != nil {
					return err
				}
			}
			header := &doc.GenManHeader{Section: "1", Source: "Burano " + version.Version, Manual: "Burano"}
			if err := doc.GenManTree(root, header, filepath.Join(folder, "man")); err != nil {
				return fmt.Errorf("write the manual pages: %w", err)
			}
			for name, write := range map[string]func(string) error{
				"burano": func(path string) error { return root.GenBashCompletionFileV2(path, true) }, "_burano": root.GenZshCompletionFile,
				"burano.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
			} {
				if err := write(filepath.Join(folder, "completion", name)); err != nil {
					return fmt.Errorf("write the completion %s: %w", name, err)
				}
			}
			options := &server.Options{}
			if err := os.WriteFile(filepath.Join(folder, "burano.yaml"), server.CommentedSettings(options.Flags()), 0o644); err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			bill, err := images.BillOfProgram(program, "burano", version.Version)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(folder, "burano.spdx.json"), bill, 0o644); err != nil {
				return err
			}
			image := images.ServerImage{Program: program, Certificates: "/etc/ssl/certs/ca-certificates.crt", Version: version.Version, Architecture: runtime.GOARCH}
			if err := image.Write(filepath.Join(folder, "image")); err != nil {
				return fmt.Errorf("write the container image: %w", err)
			}
			return nil
		},
	}
}
