package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func kubeconfigCommand(connection *cli.Connection) *cobra.Command {
	var path string
	var options client.KubeconfigOptions
	command := &cobra.Command{
		Use:   "kubeconfig ENVIRONMENT [CLUSTER]",
		Short: "Write a kubeconfig for a cluster, with a certificate that is valid for 24 hours, or without one",
		Long: `Kubeconfig writes a kubeconfig with a certificate, whose group determines its rights. The group burano:admins has all rights, burano:editors the rights of
Kubernetes' role edit, and burano:readers the rights of view. Any other group has the rights of the cluster's own bindings. The default is the group with the most
rights that the policy allows you. --namespace is the default namespace of kubectl; it limits nothing.

With --sign-in keystone it has no certificate: kubectl calls burano cluster token each time, which signs in as burano does, with OS_* variables or
clouds.yaml. The roles of the signed-in user determine the rights.`,
		Example: `  burano cluster kubeconfig demo > demo.kubeconfig
  kubectl --kubeconfig demo.kubeconfig get nodes
  burano cluster kubeconfig demo --group burano:readers --namespace shop --lifetime 8h -o shop.kubeconfig
  burano cluster kubeconfig demo --sign-in keystone -o demo.kubeconfig`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			config, err := api.Clusters().Kubeconfig(command.Context(), environment.ID, cluster, options)
			if err == nil && options.SignIn == "keystone" {
				config, err = signingAs(config, connection.URL)
			}
			if err != nil {
				return err
			}
			if path == "" {
				_, err = command.OutOrStdout().Write(config)
				return err
			}
			return os.WriteFile(path, config, 0o600)
		}),
	}
	flags := command.Flags()
	flags.StringVarP(&path, "output", "o", "", "file to write, readable by you only (default: standard output)")
	flags.StringArrayVar(&options.Groups, "group", nil, "group of Kubernetes in the certificate; repeatable")
	flags.StringVarP(&options.Namespace, "namespace", "n", "", "default namespace of kubectl")
	flags.StringVar(&options.Lifetime, "lifetime", "", "how long its certificate is valid, such as 8h; 24h at most")
	flags.StringVar(&options.SignIn, "sign-in", "", "certificate, or keystone for a kubeconfig without one (default: certificate)")
	return command
}

// signingAs has a kubeconfig without a certificate sign in to the cloud, and to the Burano, that this command was called with. Passwords are not written.
func signingAs(config []byte, url string) ([]byte, error) {
	var document map[string]any
	if err := json.Unmarshal(config, &document); err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	type variable struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var environment []variable
	for _, name := range []string{"OS_CLOUD", "OS_CLIENT_CONFIG_FILE"} {
		if value := os.Getenv(name); value != "" {
			environment = append(environment, variable{name, value})
		}
	}
	if url != "" {
		environment = append(environment, variable{"BURANO_URL", url})
	}
	users, _ := document["users"].([]any)
	for _, one := range users {
		entry, _ := one.(map[string]any)
		user, _ := entry["user"].(map[string]any)
		if exec, ok := user["exec"].(map[string]any); ok && len(environment) > 0 {
			exec["env"] = environment
		}
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return append(text, '\n'), nil
}

// clusterTokenCommand is an exec plugin of client-go: https://kubernetes.io/docs/reference/config-api/client-authentication.v1/.
func clusterTokenCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "token ENVIRONMENT [CLUSTER]",
		Short: "Print a certificate of an hour at most for kubectl, by signing in to Keystone",
		Long: `Kubectl calls token for a kubeconfig that was written with --sign-in keystone. Token signs in as every command of burano does, with OS_* variables or
clouds.yaml, and prints an ExecCredential for client-go. The certificate names the user and these groups: the one of burano:admins, burano:editors and
burano:readers that the policy allows to the user's roles, keystone:project:ID, and keystone:role:NAME for each role.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			made, err := api.Clusters().Credential(command.Context(), environment.ID, cluster)
			if err != nil {
				return err
			}
			return json.NewEncoder(command.OutOrStdout()).Encode(map[string]any{
				"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
				"status": map[string]any{"clientCertificateData": made.Certificate, "clientKeyData": made.Key, "expirationTimestamp": made.Expires},
			})
		}),
	}
}

func sshKeyCommand(connection *cli.Connection) *cobra.Command {
	var node, private string
	var own bool
	command := &cobra.Command{
		Use:   "ssh-key ENVIRONMENT [CLUSTER]",
		Short: "Print the public key with which a machine admits Burano, or give Burano a private key for a machine",
		Example: `  burano cluster ssh-key demo | ssh root@198.51.100.7 'cat >> ~/.ssh/authorized_keys'
  burano cluster ssh-key demo --node lab-1 --private-key ~/.ssh/lab
  burano cluster ssh-key demo --node lab-1 --own`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			switch {
			case (private != "" || own) && node == "":
				return errors.New("say for which node: --node NAME")
			case private != "" && own:
				return errors.New("--private-key and --own exclude each other")
			case private != "":
				public, err := giveKey(command, api, environment.ID, cluster, node, private)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(out, "Burano logs in to %s with the private half of %s\n", node, public)
				return err
			case own:
				_, err := api.Clusters().GiveSSHKey(ctx, environment.ID, cluster, node, "")
				return err
			}
			key, err := api.Clusters().SSHKey(ctx, environment.ID, cluster)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(out, key)
			return err
		}),
	}
	command.Flags().StringVar(&node, "node", "", "name of the external node of a private key")
	command.Flags().StringVar(&private, "private-key", "", "file with the private key for Burano's login there; it is stored sealed")
	command.Flags().BoolVar(&own, "own", false, "let Burano log in there with its own key again")
	return command
}

// giveKey gives the private key in a file to Burano, for a node.
func giveKey(command *cobra.Command, api *client.Client, environment, cluster, node, file string) (public string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the private key: %w", err)
	}
	return api.Clusters().GiveSSHKey(command.Context(), environment, cluster, node, string(text))
}
