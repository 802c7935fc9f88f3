package client

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// stateNumber reads the number of a state.
func stateNumber(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 {
		return 0, fmt.Errorf("%q is no number of a state: burano environment history lists them", text)
	}
	return number, nil
}

func environmentHistoryCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "history NAME|ID [STATE]",
		Short: "List the states of an environment, the newest first, or show one with its model",
		Long: `History lists the states of an environment: the results of deployments and actions that succeeded, each with its user and its source. A deployment that
changes nothing adds no state, and neither does a failed one. With STATE it shows that state as JSON, with its model; secrets are masked.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error {
			if len(args) == 1 {
				number, err := stateNumber(args[0])
				if err != nil {
					return err
				}
				state, err := api.States().Get(command.Context(), found.ID, number)
				if err != nil {
					return err
				}
				return cli.WriteJSON(command.OutOrStdout(), state)
			}
			history, err := api.States().History(command.Context(), found.ID)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), history, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "\tSTATE\tTIME\tBY\tFROM\tIMAGES\tDEPLOYMENT")
				for _, row := range history.States {
					present := ""
					if row.Number == history.Present {
						present = "*"
					}
					fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", present, row.Number, row.Created, cmp.Or(row.UserName, row.UserID), stateSource(row), stateImages(row), row.Deployment)
				}
			})
		}),
	}
	print.AddFlag(command)
	return command
}

// stateSource is the origin of a state: a file, an action, or another state.
func stateSource(state client.State) string {
	switch {
	case state.Back > 0:
		return fmt.Sprintf("back to %d", state.Back)
	case state.File != "":
		return fmt.Sprintf("%s (%.12s)", state.File, state.Digest)
	case state.Method != "" && state.Method != "deploy":
		return "action " + state.Method
	case state.Method == "":
		return "deployed before there was a history"
	}
	return "session"
}

func stateImages(state client.State) string {
	names := make([]string, len(state.Images))
	for i, one := range state.Images {
		names[i] = one.Name
	}
	return strings.Join(names, ", ")
}

func environmentDiffCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   "diff NAME|ID STATE [STATE]",
		Short: "Show the difference between two states of an environment, or between a state and now",
		Args:  cobra.RangeArgs(2, 3),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error {
			var numbers [2]int64
			for i, text := range args {
				number, err := stateNumber(text)
				if err != nil {
					return err
				}
				numbers[i] = number
			}
			difference, err := api.States().Difference(command.Context(), found.ID, numbers[0], numbers[1])
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), difference, differenceTable(difference))
		}),
	}
	print.AddFlag(command)
	return command
}

func differenceTable(difference client.Difference) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		if len(difference.Changes)+len(difference.Packages)+len(difference.Images) == 0 {
			fmt.Fprintln(table, "nothing differs")
		}
		changesTable(difference.Changes)(table)
		partTable(table, "package", difference.Packages)
		partTable(table, "image", difference.Images)
	}
}

func partTable(table *tabwriter.Writer, kind string, list []client.PartChange) {
	for _, one := range list {
		fmt.Fprintf(table, "%s %s: %s → %s\n", kind, one.Name, cmp.Or(one.Before, "none"), cmp.Or(one.After, "none"))
	}
}

func environmentRollbackCommand(connection *cli.Connection) *cobra.Command {
	var secrets string
	var dryRun, follow bool
	var allowDestroy []string
	command := &cobra.Command{
		Use:   "rollback NAME|ID [STATE]",
		Short: "Deploy a former state of an environment again",
		Long: `Rollback deploys the model of a former state, with its versions of packages, and shows the preview first. Objects keep their ids, servers and data. Without
STATE the target is the last state before the present one; after a failed deployment it is the last good one.

Data in volumes stays as it is. Losses need consent by --allow-destroy, as in any deployment.

` + exitCodesOfRollback,
		Args: cobra.RangeArgs(1, 2),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, args []string) error {
			if secrets != "now" && secrets != "then" {
				return fmt.Errorf("--secrets %s: now or then", secrets)
			}
			ctx, out := command.Context(), command.OutOrStdout()
			number, err := stateToGoBackTo(ctx, api, found, args)
			if err != nil {
				return err
			}
			preview, notes, err := api.States().PreviewBack(ctx, found.ID, number, secrets == "then")
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "environment %s goes back to state %d:\n", found.Name, number)
			table := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
			for _, note := range notes {
				fmt.Fprintf(table, "> %s\n", note)
			}
			previewTable(preview)(table)
			if err := table.Flush(); err != nil {
				return err
			}
			if dryRun {
				return previewed(preview, allowDestroy...)
			}
			if err := preview.Err(allowDestroy...); err != nil {
				return err
			}
			if err := api.States().GoBack(ctx, found.ID, number, secrets == "then", preview.Plan, allowDestroy...); err != nil {
				return err
			}
			fmt.Fprintf(out, "environment %s (%s) is being deployed\n", found.Name, found.ID)
			if !follow {
				return nil
			}
			return cli.FollowNewest(ctx, api, found.ID, out)
		}),
	}
	command.Flags().StringVar(&secrets, "secrets", "now", "now: secrets keep their present values; then: they get the values of the state")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "only show the preview")
	command.Flags().BoolVarP(&follow, "follow", "f", false, "show the deployment's reports as they come; the exit code is 0 when it succeeded")
	command.Flags().StringSliceVar(&allowDestroy, "allow-destroy", nil, allowDestroyUsage)
	return command
}

const exitCodesOfRollback = "With --dry-run nothing is made or stored. " + exitCodesOfPreviews

// stateToGoBackTo is the state that an argument names, or else the last one before that in which the environment is.
func stateToGoBackTo(ctx context.Context, api *client.Client, found client.Environment, args []string) (int64, error) {
	if len(args) > 0 {
		return stateNumber(args[0])
	}
	history, err := api.States().History(ctx, found.ID)
	if err != nil {
		return 0, err
	}
	for _, one := range history.States {
		if one.Number != history.Present {
			return one.Number, nil
		}
	}
	return 0, fmt.Errorf("environment %s has no former state: burano environment history lists its states", found.Name)
}

func environmentDiscardCommand(connection *cli.Connection) *cobra.Command {
	return &cobra.Command{
		Use:   "discard NAME|ID",
		Short: "Discard your drafts of an environment, and an edit whose deployment was refused",
		Long: `Discard deletes your own drafts of an environment. It also reverts an edit whose deployment was refused before it made anything: the environment gets the
model of its last deployment. Nothing that runs changes. After a deployment that failed midway use burano environment rollback.`,
		Args: cobra.ExactArgs(1),
		RunE: connection.OnEnvironment(func(command *cobra.Command, api *client.Client, found client.Environment, _ []string) error {
			edits, drafts, err := api.States().Discard(command.Context(), found.ID)
			var did []string
			if drafts > 0 {
				did = append(did, fmt.Sprintf("drafts discarded: %d", drafts))
			}
			if edits > 0 {
				did = append(did, "the refused edit is reverted")
			}
			if err == nil && len(did) == 0 {
				did = []string{"there is no draft of yours, and no refused edit"}
			}
			if len(did) > 0 {
				fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", found.Name, strings.Join(did, "; "))
			}
			return err
		}),
	}
}
