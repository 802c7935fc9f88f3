package cluster

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func scaleCommand(connection *cli.Connection) *cobra.Command {
	var options nodeOptions
	var lose bool
	numbers := []struct {
		flag, argument, help string
		number               int
	}{
		{"count", "count", "number of nodes afterwards; of masters 1, 2, 3 or 5", 0},
		{"minimum", "minimum", "minimum number of nodes or gateways, with which their number follows the load; -1 ends that", 0},
		{"maximum", "maximum", "maximum number of nodes of a group", 0},
		{"scale-down-after", "scaleDownAfter", "seconds for which a node that follows the load must be unneeded before it is removed", 0},
		{"sessions", "sessions", "connections that a gateway is to have at most, on average", 0},
	}
	command := &cobra.Command{
		Use:   "scale ENVIRONMENT GROUP",
		Short: "Set the number of nodes of a group, or let it follow its load",
		Long: `Scale sets the number of nodes of a group of minions, or of masters, minions or gateways, which are words for the nodes of no group. With a minimum
the number follows the load. The model's lists minionNodes and gatewayNodes limit minions and gateways.`,
		Example: `  burano cluster scale demo workers --count 3 --follow
  burano cluster scale demo workers --minimum 0 --maximum 10 --follow
  burano cluster scale demo masters --count 3 --follow
  burano cluster scale demo gateways --minimum 2 --sessions 10000 --follow`,
		Args: cobra.ExactArgs(2),
		RunE: options.onNode(connection, func(command *cobra.Command, api *client.Client, environment, cluster, group string, _ []string) (string, error) {
			arguments := map[string]any{"group": group, "loseVolumes": lose}
			for _, one := range numbers {
				if command.Flags().Changed(one.flag) {
					arguments[one.argument] = one.number
				}
			}
			if len(arguments) == 2 {
				return "", errors.New("nothing to set: give --count, or a limit such as --minimum")
			}
			return api.Actions().Call(command.Context(), environment, cluster+"_scale", arguments)
		}),
	}
	options.addFlags(command)
	for i := range numbers {
		command.Flags().IntVar(&numbers[i].number, numbers[i].flag, 0, numbers[i].help)
	}
	command.Flags().BoolVar(&lose, loseVolumesFlag, false, loseVolumesHelp)
	return command
}
