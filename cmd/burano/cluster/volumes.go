package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func volumesCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "volumes", Short: "Claims and volumes that nothing in a cluster uses: list, delete"}
	command.AddCommand(volumesListCommand(connection), volumesDeleteCommand(connection))
	return command
}

// unusedVolume is an element of the result of the action listUnusedVolumes.
type unusedVolume struct {
	Kind   string    `json:"kind" yaml:"kind"` // claim, volume, snapshot or share
	Name   string    `json:"name" yaml:"name"` // of the others than claims the id
	Called string    `json:"called" yaml:"called"`
	Size   string    `json:"size" yaml:"size"`
	Made   time.Time `json:"made" yaml:"made"`
}

func (u unusedVolume) String() string {
	return fmt.Sprintf("%s %s (%s, made %s)", u.Kind, u.Name, u.Size, u.Made.Format("2 January 2006"))
}

func unusedVolumes(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) (list []unusedVolume, err error) {
	result, err := act(command.Context(), api, environment, cluster+"_listUnusedVolumes", map[string]any{}, io.Discard)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(result, &list); err != nil {
		return nil, fmt.Errorf("read the list of unused volumes: %w", err)
	}
	return list, nil
}

func volumesListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "list ENVIRONMENT [CLUSTER]",
		Short: "List claims that no application uses, and volumes, snapshots and shares that were made for the cluster and that it does not know",
		Args:  cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			list, err := unusedVolumes(command, api, environment, cluster)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), list, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "KIND\tNAME\tCALLED\tSIZE\tMADE")
				for _, one := range list {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", one.Kind, one.Name, one.Called, one.Size, one.Made.Local().Format(time.DateTime))
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

func volumesDeleteCommand(connection *cli.Connection) *cobra.Command {
	var all, yes bool
	var cluster string
	command := &cobra.Command{
		Use:   "delete ENVIRONMENT NAME…",
		Short: "Delete claims and volumes that nothing uses, with their data; what is used is never deleted",
		Args:  cobra.MinimumNArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, environment client.Environment, names []string) error {
			id, err := environment.ClusterID(cluster)
			if err != nil {
				return err
			}
			list, err := unusedVolumes(command, api, environment, id)
			if err != nil {
				return err
			}
			if all == (len(names) > 0) {
				return fmt.Errorf("name what is to be deleted, or say --all: burano cluster volumes list %s lists it", environment.Name)
			}
			var lost []string
			for _, one := range list {
				if all {
					names = append(names, one.Name)
				}
				if all || slices.Contains(names, one.Name) {
					lost = append(lost, one.String())
				}
			}
			if len(names) == 0 {
				fmt.Fprintln(command.OutOrStdout(), "nothing is unused")
				return nil
			}
			if !yes && len(lost) > 0 {
				return fmt.Errorf("this is deleted, with its data: %s. Say --yes", strings.Join(lost, ", "))
			}
			_, err = act(command.Context(), api, environment, id+"_deleteUnusedVolumes", map[string]any{"names": names}, command.OutOrStdout())
			return err
		}),
	}
	command.Flags().StringVar(&cluster, "cluster", "", "name or id of the cluster, where the environment has several")
	command.Flags().BoolVar(&all, "all", false, "all that is unused")
	command.Flags().BoolVar(&yes, "yes", false, "delete it")
	return command
}
