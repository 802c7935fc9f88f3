// Package cli is shared by commands: it connects to the server, prints answers, and follows deployments.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/burano/burano/web/client"
)

// Connection is how to reach the cloud and the server; its fields are the flags that all commands share.
type Connection struct {
	Cloud string
	URL   string
}

// AddFlags adds the flags that all commands share.
func (c *Connection) AddFlags(root *cobra.Command) {
	root.PersistentFlags().StringVar(&c.Cloud, "os-cloud", os.Getenv("OS_CLOUD"), "entry of clouds.yaml to sign in with (OS_CLOUD)")
	root.PersistentFlags().StringVar(&c.URL, "url", os.Getenv("BURANO_URL"), "address of the Burano server (BURANO_URL); by default it comes from the service catalog")
}

// Connect signs in and finds the server.
func (c *Connection) Connect(ctx context.Context) (*client.Client, error) {
	return client.Connect(ctx, c.Cloud, c.URL)
}

// SignedIn makes a command's function of work, which gets a client of the server.
func (c *Connection) SignedIn(work func(command *cobra.Command, api *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		api, err := c.Connect(command.Context())
		if err != nil {
			return err
		}
		return work(command, api, args)
	}
}

// DeleteEach is signedIn for commands that delete each of their arguments; a failure does not stop the others. remove returns how the thing is printed.
// name is how an error names the argument, with a verb for it.
func (c *Connection) DeleteEach(name string, remove func(ctx context.Context, api *client.Client, argument string) (label string, err error)) func(*cobra.Command, []string) error {
	return c.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
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

// OnEnvironment is signedIn for commands whose first argument names an environment; args are the others.
func (c *Connection) OnEnvironment(work func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error) func(*cobra.Command, []string) error {
	return c.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
		found, err := api.Environments().Get(command.Context(), args[0])
		if err != nil {
			return err
		}
		return work(command, api, found, args[1:])
	})
}

// OnCluster works on a cluster of an environment: the one that the second argument names, or its only one.
func (c *Connection) OnCluster(work func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error) func(*cobra.Command, []string) error {
	return c.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, args []string) error {
		cluster, err := environment.ClusterID(strings.Join(args, ""))
		if err != nil {
			return err
		}
		return work(command, api, environment, cluster)
	})
}

// AddRepositoryFlag adds the flag of the repository of packages.
func AddRepositoryFlag(command *cobra.Command, repository *string) {
	command.Flags().StringVar(repository, "repository", os.Getenv("MURANO_REPO_URL"), "URL of the repository in which packages are looked up by name (MURANO_REPO_URL)")
}
