package cluster

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// watchEvery is how often traffic is shown that is watched.
const watchEvery = 2 * time.Second

func trafficCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var watch bool
	command := &cobra.Command{
		Use:   "traffic ENVIRONMENT [CLUSTER]",
		Short: "Show the counters of a cluster's gateways for each port; the exit code is 0 when all gateways answer",
		Long: `Traffic shows HAProxy's counters on each gateway, by port. They are the open connections, the connections of the last second and since HAProxy last loaded
a configuration, and bytes, errors and retries since then. The backends and their health are in the output as JSON or YAML.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx := command.Context()
			next := time.NewTicker(watchEvery)
			defer next.Stop()
			for {
				found, err := api.Clusters().Traffic(ctx, environment.ID, cluster)
				if err != nil {
					return err
				}
				if err := print.Print(command.OutOrStdout(), found, trafficTable(found)); err != nil {
					return err
				}
				if !watch {
					return silentGateways(found)
				}
				select {
				case <-ctx.Done():
					return nil
				case <-next.C:
				}
			}
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVarP(&watch, "watch", "w", false, "show it again every two seconds, until you interrupt it")
	return command
}

func trafficTable(found client.Traffic) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "GATEWAY\tPORT\tOPEN\tPER SECOND\tTOTAL\tBYTES IN\tBYTES OUT\tERRORS\tRETRIES\tBACKENDS UP")
		for _, gateway := range found.Gateways {
			for _, one := range gateway.Listeners {
				up := 0
				for _, backend := range one.Backends {
					if backend.State == "up" {
						up++
					}
				}
				fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d of %d\n", gateway.Name, one.Port, one.Connections, one.ConnectionsPerSecond, one.ConnectionsTotal,
					one.BytesIn, one.BytesOut, one.Errors(), one.Retries, up, len(one.Backends))
			}
		}
	}
}

// silentGateways is an error that names the gateways that do not answer.
func silentGateways(found client.Traffic) error {
	var problems []error
	for _, gateway := range found.Gateways {
		if gateway.Problem != "" {
			problems = append(problems, fmt.Errorf("gateway %s does not answer: %s", gateway.Name, gateway.Problem))
		}
	}
	return errors.Join(problems...)
}
