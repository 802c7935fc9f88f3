package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/burano/burano/images"
	"github.com/burano/burano/internal/version"
)

// releaseFilesCommand is for images/package/build.sh, which packs the program: the program itself writes the files beside it.
func releaseFilesCommand() *cobra.Command {
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
			options := &serveOptions{}
			if err := os.WriteFile(filepath.Join(folder, "burano.yaml"), commentedSettings(options.flags()), 0o644); err != nil {
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

// packaged are the settings that a package gives.
var packaged = map[string]string{cloudFlag: "burano-service", "state": "/var/lib/burano"}

// commentedSettings is a file of all settings with their meaning, each with its default and commented out.
func commentedSettings(flags *pflag.FlagSet) []byte {
	var text bytes.Buffer
	text.WriteString("# Settings of the server of Burano. What is commented out has its default.\n# `burano serve --config FILE --print-config` shows all that are in force; `burano doctor --config FILE` looks whether they are good.\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if !isSetting(flag) || flag.Hidden {
			return
		}
		fmt.Fprintf(&text, "\n# %s.\n", strings.ToUpper(flag.Usage[:1])+flag.Usage[1:])
		if value, given := packaged[flag.Name]; given {
			fmt.Fprintf(&text, "%s: %s\n", flag.Name, value)
			return
		}
		value := flag.DefValue
		if value == "" {
			value = `""`
		}
		fmt.Fprintf(&text, "#%s: %s\n", flag.Name, value)
	})
	return text.Bytes()
}
