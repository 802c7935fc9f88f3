package main

import (
	"fmt"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/web/client"
)

func versionCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var server bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Show the version, the commit that the program was built from, and the version of Go",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if server {
				return connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
					found, err := api.ServerVersion(command.Context())
					if err != nil {
						return err
					}
					return print.Print(command.OutOrStdout(), found, func(table *tabwriter.Writer) {
						fmt.Fprintf(table, "burano %s (commit %s)\n", found.Version, found.Commit)
					})
				})(command, args)
			}
			built := struct {
				Version  string `json:"version" yaml:"version"`
				Commit   string `json:"commit" yaml:"commit"`
				Go       string `json:"go" yaml:"go"`
				Platform string `json:"platform" yaml:"platform"`
			}{version.Version, version.Commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return print.Print(command.OutOrStdout(), built, func(table *tabwriter.Writer) { fmt.Fprintln(table, "burano "+version.Text()) })
		},
	}
	command.Flags().BoolVar(&server, "server", false, "also show the server's version")
	print.AddFlag(command)
	return command
}
