package main

import (
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/internal/version"
)

func versionCommand() *cobra.Command {
	var print output
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit that the program was built from, and the version of Go",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			built := struct {
				Version  string `json:"version" yaml:"version"`
				Commit   string `json:"commit" yaml:"commit"`
				Go       string `json:"go" yaml:"go"`
				Platform string `json:"platform" yaml:"platform"`
			}{version.Version, version.Commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return print.print(command.OutOrStdout(), built, func(table *tabwriter.Writer) { fmt.Fprintln(table, "burano "+version.Text()) })
		},
	}
	print.addFlag(command)
	return command
}
