package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

func upgradeCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var image string
	var plan, pause, back, force, lose, watch bool
	command := &cobra.Command{
		Use:   "upgrade ENVIRONMENT [CLUSTER]",
		Short: "Give the nodes of a cluster an image with a newer Kubernetes, one after another, or show the plan",
		Long: `Upgrade gives each node of a cluster a server of another image: first the masters, then minions, then gateways, each new one before the former one
goes. The option --plan shows the plan and the obstacles, and changes nothing. A running upgrade can be paused; without an image the command continues one
that was paused or has failed. The option --back gives the changed nodes their former images back, as long as Kubernetes allows it: until the last
master is upgraded to a newer minor version.`,
		Example: `  burano cluster upgrade demo --image burano-node-1.36 --plan
  burano cluster upgrade demo --image burano-node-1.36 --follow
  burano cluster upgrade demo --pause
  burano cluster upgrade demo`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnCluster(func(command *cobra.Command, api *client.Client, environment client.Environment, cluster string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			if plan {
				if image == "" {
					return errors.New("say to which image: --image NAME|ID")
				}
				found, err := api.Clusters().UpgradePlan(ctx, environment.ID, cluster, image)
				if err != nil {
					return err
				}
				if err := print.Print(out, found, upgradeTable(found)); err != nil {
					return err
				}
				return upgradeProblems(found)
			}
			if pause {
				if err := api.Clusters().PauseUpgrade(ctx, environment.ID, cluster); err != nil {
					return err
				}
				fmt.Fprintln(out, "the upgrade pauses before its next node")
				return nil
			}
			action, arguments := "upgrade", map[string]any{"force": force, "loseVolumes": lose}
			if image != "" {
				arguments["image"] = image
			}
			if back {
				action, arguments = "upgradeBack", map[string]any{"loseVolumes": lose}
			}
			found, err := environment.Action(cluster, action)
			if err != nil {
				return err
			}
			task, err := api.Actions().Call(ctx, environment.ID, found.ID, arguments)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "the upgrade runs (task %s)\n", task)
			if !watch {
				return nil
			}
			return cli.Follow(ctx, api, task, out)
		}),
	}
	print.AddFlag(command)
	command.Flags().StringVar(&image, "image", "", "name or id of the image (default: the image of the begun upgrade)")
	command.Flags().BoolVar(&plan, "plan", false, "show the nodes in their order, an estimate of the time, and the obstacles; change nothing")
	command.Flags().BoolVar(&pause, "pause", false, "pause the running upgrade before its next node, and before a master goes whose successor is up")
	command.Flags().BoolVar(&back, "back", false, "go back to the former images")
	command.Flags().BoolVar(&force, "force", false, "upgrade although disruption budgets let no pod go, or clients have used APIs that the newer version does not have")
	command.Flags().BoolVar(&lose, loseVolumesFlag, false, loseVolumesHelp)
	command.Flags().BoolVarP(&watch, "follow", "f", false, "show the reports as they come; the exit code is 0 when it has succeeded")
	command.MarkFlagsMutuallyExclusive("plan", "pause", "back")
	command.MarkFlagsMutuallyExclusive("image", "pause")
	command.MarkFlagsMutuallyExclusive("image", "back")
	return command
}

// upgradeTable lists the nodes in the order of their turns.
func upgradeTable(plan client.UpgradePlan) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		if len(plan.Nodes) == 0 {
			fmt.Fprintf(table, "all nodes have image %s already\n", plan.ImageName)
			return
		}
		about := (time.Duration(plan.Seconds) * time.Second).String()
		if !plan.Measured {
			about += ", by guess"
		}
		fmt.Fprintf(table, "from Kubernetes %s to %s (image %s), about %s\n%s\n\n", cmp.Or(plan.From, "(not known)"), cmp.Or(plan.Kubernetes, "(not known)"), plan.ImageName, about, plan.Means)
		fmt.Fprintln(table, "TURN\tNODE\tROLE\tKUBERNETES\tIMAGE\tABOUT")
		for i, one := range plan.Nodes {
			fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%d s\n", i+1, one.Name, one.Role, one.Kubernetes, one.Image, one.Seconds)
		}
	}
}

// upgradeProblems are reasons against an upgrade.
func upgradeProblems(plan client.UpgradePlan) error {
	if len(plan.Problems) == 0 {
		return nil
	}
	texts := make([]string, len(plan.Problems))
	for i, one := range plan.Problems {
		if texts[i] = one.Text; !one.Grave {
			texts[i] += " (--force passes over it)"
		}
	}
	return fmt.Errorf("the upgrade would not begin:\n  %s", strings.Join(texts, "\n  "))
}
