package cluster

import (
	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func nodeAddCommand(connection *cli.Connection) *cobra.Command {
	var options nodeOptions
	var address, user, hostKey, private string
	var port int
	command := &cobra.Command{
		Use:   "add ENVIRONMENT NAME --address ADDRESS",
		Short: "Add a machine that is no server of the cloud to a cluster as a node",
		Long: `Add joins a prepared machine to a cluster. The machine has the content of a node image, with the Kubernetes of the cluster, and an address by which it
and the other nodes reach each other. It must admit Burano over SSH: add the key of burano cluster ssh-key to its authorized_keys, or give a private key
(--private-key). Its host key is --host-key, or the key of the first connection, which is reported.`,
		Example: `  burano cluster ssh-key demo | ssh root@198.51.100.7 'cat >> ~/.ssh/authorized_keys'
  burano node add demo lab-1 --address 198.51.100.7 --host-key "$(ssh-keyscan -t ed25519 198.51.100.7)" --follow`,
		Args: cobra.ExactArgs(2),
		RunE: options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, node string, _ []string) (string, error) {
			if private != "" {
				if _, err := giveKey(command, api, environment, cluster, node, private); err != nil {
					return "", err
				}
			}
			arguments := map[string]any{"name": node, "address": address, "port": port, "user": user}
			if hostKey != "" {
				arguments["hostKey"] = hostKey
			}
			return callNamed(command, api, environment, cluster, "addExternalNode", arguments)
		}),
	}
	options.addFlags(command)
	flags := command.Flags()
	flags.StringVar(&address, "address", "", "the machine's own address")
	flags.IntVar(&port, "port", 22, "port of its sshd")
	flags.StringVar(&user, "user", "root", "user of the login: root, or a user that becomes root by sudo without a password")
	flags.StringVar(&hostKey, "host-key", "", "its public host key, as ssh-keyscan -t ed25519 prints it")
	flags.StringVar(&private, "private-key", "", "file with the private key for Burano's login; it is stored sealed")
	cobra.CheckErr(command.MarkFlagRequired("address"))
	return command
}

func nodeRemoveCommand(connection *cli.Connection) *cobra.Command {
	var options nodeOptions
	command := &cobra.Command{
		Use:   "remove ENVIRONMENT NAME",
		Short: "Remove a machine that is no server of the cloud from a cluster; the machine stays",
		Args:  cobra.ExactArgs(2),
		RunE: options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, node string, _ []string) (string, error) {
			return callNamed(command, api, environment, cluster, "removeExternalNode", map[string]any{"node": node})
		}),
	}
	options.addFlags(command)
	return command
}

// callNamed calls an action of a cluster by its name.
func callNamed(command *cobra.Command, api *client.Client, environment, cluster, action string, arguments map[string]any) (task string, err error) {
	ctx := command.Context()
	found, err := api.Environments().Get(ctx, environment)
	if err != nil {
		return "", err
	}
	method, err := found.Action(cluster, action)
	if err != nil {
		return "", err
	}
	return api.Actions().Call(ctx, environment, method.ID, arguments)
}
