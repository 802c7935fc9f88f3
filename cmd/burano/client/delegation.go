package client

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func delegationCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{
		Use:   "delegation",
		Short: "The standing delegation of an environment: Burano's rights there on behalf of a user",
		Long: `A task works with a trust of the user who starts it, which ends with the task. A token that can create no trust, such as one of an
application credential, works with the environment's standing delegation if that belongs to the same user and grants no role that the token lacks. In a project
that lets Burano work with a role of its own (burano project enable) no delegation is needed.`,
	}
	command.AddCommand(delegationShowCommand(connection), delegationSetCommand(connection), delegationRevokeCommand(connection))
	return command
}

func delegationTable(d client.Delegation) func(*tabwriter.Writer) {
	expires := "never"
	if d.Expires != nil {
		expires = d.Expires.UTC().Format(time.RFC3339)
	}
	return cli.Properties([2]any{"Kind", d.Kind}, [2]any{"Owner", d.UserName}, [2]any{"Roles", d.Roles}, [2]any{"Created", d.Created.UTC().Format(time.RFC3339)},
		[2]any{"Expires", expires})
}

func delegationShowCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "show ENVIRONMENT",
		Short: "Show the owner, the roles and the end of the delegation",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			delegation, err := api.Delegations().Get(command.Context(), found.ID)
			if err != nil {
				return err
			}
			if delegation == nil {
				return fmt.Errorf("environment %s has no standing delegation", found.Name)
			}
			return print.Print(command.OutOrStdout(), delegation, delegationTable(*delegation))
		}),
	}
	print.AddFlag(command)
	return command
}

func delegationSetCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var roles []string
	var lasts time.Duration
	var credential, secretFile string
	command := &cobra.Command{
		Use:   "set ENVIRONMENT",
		Short: "Set the delegation: a trust from your token, or one of your application credentials",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			options := client.DelegationOptions{Roles: roles, Credential: credential}
			if lasts > 0 {
				end := time.Now().Add(lasts).UTC()
				options.Expires = &end
			}
			if credential != "" {
				if secretFile == "" {
					return errors.New("--application-credential needs its secret: name the file that has it by --secret-file")
				}
				secret, err := os.ReadFile(secretFile)
				if err != nil {
					return fmt.Errorf("read the secret: %w", err)
				}
				options.Secret = strings.TrimSpace(string(secret))
			}
			delegation, err := api.Delegations().Set(command.Context(), found.ID, options)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), delegation, delegationTable(delegation))
		}),
	}
	print.AddFlag(command)
	command.Flags().StringSliceVar(&roles, "role", nil, "your role that the trust gets (repeatable); by default the roles of the server's setting trust-roles")
	command.Flags().DurationVar(&lasts, "lasts", 0, "how long the trust lasts, such as 720h; by default until it is revoked")
	command.Flags().StringVar(&credential, "application-credential", "", "id of one of your application credentials in this project, in place of a trust")
	command.Flags().StringVar(&secretFile, "secret-file", "", "file with the application credential's secret")
	command.MarkFlagsMutuallyExclusive("application-credential", "role")
	command.MarkFlagsMutuallyExclusive("application-credential", "lasts")
	return command
}

func delegationRevokeCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ENVIRONMENT",
		Short: "Revoke the delegation: no task can be started with it any more",
		Args:  cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			if err := api.Delegations().Revoke(command.Context(), found.ID); err != nil {
				return err
			}
			fmt.Fprintf(command.OutOrStdout(), "environment %s has no standing delegation now\n", found.Name)
			return nil
		}),
	}
}
