package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/burano/burano/test/localcloud"
)

func serveCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the cloud in the foreground, until it is interrupted",
		Long: "serve runs the cloud's APIs in the foreground. When it ends, servers and networks stay; started again it finds them, and " +
			"goes on with what was unfinished.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx := command.Context()
			config, err := o.config()
			if err != nil {
				return err
			}
			config.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
			// First the port: without it nothing of the machine is touched.
			listener, err := net.Listen("tcp", config.Listen)
			if err != nil {
				return fmt.Errorf("listen at %s: %w: is a local cloud running there? Choose another port with --listen", config.Listen, err)
			}
			defer listener.Close()
			cloud, err := localcloud.New(ctx, config)
			if err != nil {
				return err
			}
			defer cloud.Close()
			if err := localcloud.RecordProcess(config.StateDir); err != nil {
				return err
			}
			config.Logger.Info("the local cloud answers", "identity", config.Endpoint()+"/identity/v3", "state", config.StateDir)
			return cloud.Serve(ctx, listener)
		},
	}
}
