package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/burano/burano/test/localcloud"
)

func statusCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether the cloud is running (exit status 1 if not)",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			config, err := o.config()
			if err != nil {
				return err
			}
			pid, alive, err := serving(config.StateDir)
			switch {
			case err != nil:
				return err
			case alive && answers(command.Context(), config):
				fmt.Fprintf(command.OutOrStdout(), "The local cloud is up: process %d, %s/identity/v3, state in %s.\n",
					pid, config.Endpoint(), config.StateDir)
				return nil
			case alive:
				return fmt.Errorf("process %d is there, but nothing answers at %s: look into %s", pid, config.Endpoint(), logPath(config))
			case pid != 0:
				return fmt.Errorf("the cloud's process has ended, its servers and networks are still there: localcloud up goes on with "+
					"them, localcloud down removes them (state in %s)", config.StateDir)
			default:
				return errors.New("there is no local cloud with its state in " + config.StateDir + ": localcloud up starts one")
			}
		},
	}
}

// serving is the process that serves the cloud of a state folder; not alive, it is the last one that did, or 0.
func serving(stateDir string) (pid int, alive bool, err error) {
	found, alive, err := localcloud.FindProcess(stateDir)
	return found.PID, alive, err
}
