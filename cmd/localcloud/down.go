package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/burano/burano/test/localcloud"
)

func downCommand(o *options) *cobra.Command {
	var abandoned bool
	command := &cobra.Command{
		Use:   "down",
		Short: "Remove everything that the cloud made, and put host settings back",
		Long: "down ends the cloud's process, removes its servers, networks, images and state, and puts back the host settings that it " +
			"changed. It works also when the process was killed, and can be repeated.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := o.config()
			if err != nil {
				return err
			}
			if abandoned {
				err = localcloud.Reclaim(command.Context(), config.Prefix)
			} else {
				err = localcloud.Down(command.Context(), config.StateDir)
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), "The local cloud is down; nothing of it is left.")
			return nil
		},
	}
	command.Flags().BoolVar(&abandoned, "abandoned", false, "take down a cloud that has lost its process, wherever its state is or was")
	return command
}
