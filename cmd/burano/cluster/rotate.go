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
		Short: "Replace the authorities of certificates, or the keys, of a cluster while it runs",
	}
	var authorities, keys []string
	var keepPods bool
	certificates := rotation(connection, "certificates", "Give a cluster new authorities, and issue every certificate anew", "rotateCertificates", func() map[string]any {
		return map[string]any{"authorities": authorities, "restartPods": !keepPods}
	})
	certificates.Flags().StringSliceVar(&authorities, "authority", []string{}, "rotate this one only (etcd, etcd-peers, kubernetes or front-proxy; repeatable)")
	certificates.Flags().BoolVar(&keepPods, "keep-pods", false, "restart no pods: pods that use the Kubernetes API fail until you restart them")
	of := rotation(connection, "keys", "Exchange the keys that sign tokens of service accounts and encrypt Secrets", "rotateKeys", func() map[string]any {
		return map[string]any{"keys": keys}
	})
	of.Flags().StringSliceVar(&keys, "key", []string{}, "replace this one only (service-account or encryption)")
	command.AddCommand(certificates, of)
	return command
}

// rotation is the command that calls an action of a cluster, after its user has seen the consequences.
func rotation(connection *cli.Connection, name, short, action string, arguments func() map[string]any) *cobra.Command {
	var sure, watch bool
	command := &cobra.Command{
		Use:   name + " ENVIRONMENT [CLUSTER]",
		Short: short,
		Long: short + `, while it runs. The command first lists the credentials that become invalid; without --yes it ends there. Repeat the command to
continue a rotation that failed or was cancelled.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			found, err := environment.Action(cluster, action)
			if err != nil {
				return err
			}
			all, err := api.Classes().Actions(ctx, client.ClassOfType(found.Type))
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(all, func(one client.ClassAction) bool { return one.Name == action }); i >= 0 {
				fmt.Fprintln(out, all[i].Confirm)
			}
			if !sure {
				return errors.New("nothing was done: repeat the command with --yes to rotate")
			}
			task, err := api.Actions().Call(ctx, environment.ID, found.ID, arguments())
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
