package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/burano/burano/web/client"
)

// connection is how to reach the cloud and the server; its fields are the flags that all commands share.
type connection struct {
	cloud string
	url   string
}

func (c *connection) addFlags(root *cobra.Command) {
	root.PersistentFlags().StringVar(&c.cloud, "os-cloud", os.Getenv("OS_CLOUD"), "entry of clouds.yaml to sign in with (OS_CLOUD)")
	root.PersistentFlags().StringVar(&c.url, "url", os.Getenv("BURANO_URL"), "address of the Burano server (BURANO_URL); by default it comes from the service catalog")
}

// connect signs in and finds the server.
func (c *connection) connect(ctx context.Context) (*client.Client, error) {
	return client.Connect(ctx, c.cloud, c.url)
}

// signedIn makes a command's function of work, which gets a client of the server.
func (c *connection) signedIn(work func(command *cobra.Command, api *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		api, err := c.connect(command.Context())
		if err != nil {
			return err
		}
		return work(command, api, args)
	}
}

// deleteEach is signedIn for commands that delete each of their arguments; a failure does not stop the others. remove returns how the thing is printed.
// name is how an error names the argument, with a verb for it.
func (c *connection) deleteEach(name string, remove func(ctx context.Context, api *client.Client, argument string) (label string, err error)) func(*cobra.Command, []string) error {
	return c.signedIn(func(command *cobra.Command, api *client.Client, args []string) error {
		var failed []error
		for _, argument := range args {
			label, err := remove(command.Context(), api, argument)
			if err != nil {
				failed = append(failed, fmt.Errorf("delete "+name+": %w", argument, err))
				continue
			}
			fmt.Fprintf(command.OutOrStdout(), "%s: deleted\n", label)
		}
		return errors.Join(failed...)
	})
}
