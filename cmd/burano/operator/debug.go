package operator

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// DebugCommand is burano debug.
func DebugCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "debug", Short: "Look into a running server"}
	command.AddCommand(profileCommand(connection))
	return command
}

func profileCommand(connection *cli.Connection) *cobra.Command {
	var seconds int
	var output string
	command := &cobra.Command{
		Use:   "profile cpu|heap|allocs|goroutine",
		Short: "Take a profile of the server's process for go tool pprof (administrators)",
		Long: `Profile writes a profile of the server that answers into a file for go tool pprof: its processors over some seconds, or its present heap,
allocations since its start, or goroutines. The server's setting profiles must allow it. A profile has names of functions, and no data of users.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"cpu", "heap", "allocs", "goroutine"},
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) (err error) {
			if output == "" {
				output = args[0] + ".pprof"
			}
			content, err := api.Profile(command.Context(), args[0], seconds)
			if err != nil {
				return err
			}
			if err := os.WriteFile(output, content, 0o600); err != nil {
				return fmt.Errorf("write the profile: %w", err)
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%d bytes in %s: go tool pprof -top %s\n", len(content), output, output)
			return err
		}),
	}
	command.Flags().IntVar(&seconds, "seconds", 10, "how long a profile of processors takes, 1 to 30")
	command.Flags().StringVar(&output, "output", "", "file to write (default: the profile's name with .pprof)")
	return command
}
