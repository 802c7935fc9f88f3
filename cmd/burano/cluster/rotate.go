package cluster

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func rotateCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the authorities of certificates, the keys, or the registry's passwords of a cluster while it runs",
	}
	var authorities, keys []string
	var keepPods bool
	certificates := rotation(connection, "certificates", "Give a cluster new authorities, and issue every certificate anew", func() map[string]any {
		return map[string]any{"what": orAll(authorities, "certificates"), "restartPods": !keepPods}
	})
	certificates.Flags().StringSliceVar(&authorities, "authority", []string{}, "rotate this one only (etcd, etcd-peers, kubernetes or front-proxy; repeatable)")
	certificates.Flags().BoolVar(&keepPods, "keep-pods", false, "restart no pods: pods that use the Kubernetes API fail until you restart them")
	of := rotation(connection, "keys", "Exchange the keys that sign tokens of service accounts and encrypt Secrets", func() map[string]any {
		return map[string]any{"what": orAll(keys, "keys")}
	})
	of.Flags().StringSliceVar(&keys, "key", []string{}, "replace this one only (service-account or encryption)")
	registry := rotation(connection, "registry", "Give the cluster's own registry other passwords", func() map[string]any {
		return map[string]any{"what": []string{"registry"}}
	})
	command.AddCommand(certificates, of, registry)
	return command
}

// orAll are the named ones, or the word for all of them.
func orAll(named []string, all string) []string {
	if len(named) == 0 {
		return []string{all}
	}
	return named
}

// rotation is the command that rotates something of a cluster, once its user knows what becomes invalid.
func rotation(connection *cli.Connection, name, short string, arguments func() map[string]any) *cobra.Command {
	var sure, watch bool
	command := &cobra.Command{
		Use:   name + " ENVIRONMENT [CLUSTER]",
		Short: short,
		Long: short + `, while it runs. The command first lists the credentials that become invalid; without --yes it ends there. Repeat the command to
continue a rotation that failed or was cancelled.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			all, err := api.Classes().Actions(ctx, client.Class{Name: client.ClusterClass})
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(all, func(one client.ClassAction) bool { return one.Name == "rotate" }); i >= 0 {
				fmt.Fprintln(out, all[i].Confirm)
			}
			if !sure {
				return errors.New("nothing was done: repeat the command with --yes to rotate")
			}
			task, err := api.Actions().Call(ctx, environment.ID, cluster+"_rotate", arguments())
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "the rotation runs (task %s)\n", task)
			if !watch {
				return nil
			}
			return cli.Follow(ctx, api, task, out)
		}),
	}
	command.Flags().BoolVarP(&sure, "yes", "y", false, "rotate, and accept that the listed credentials become invalid")
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show the reports as they come; the exit code is 0 when it has succeeded")
	return command
}
