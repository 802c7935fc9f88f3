package client

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// FindingCommand is burano finding.
func FindingCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{
		Use:   "finding",
		Short: "Faults of environments, and their remedies",
		Long: `Burano checks deployed environments regularly: nodes and members of clusters, and servers where an environment has a standing
delegation. A fault is a finding until a later check does not find it any more. Burano repairs clusters whose property autoRepair is true.`,
	}
	command.AddCommand(findingListCommand(connection))
	return command
}

func findingListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var closed bool
	command := &cobra.Command{
		Use:   "list [ENVIRONMENT]",
		Short: "List the findings of an environment, or of all of the project, the worst first",
		Args:  cobra.MaximumNArgs(1),
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			environments, err := api.Environments().List(command.Context(), nil)
			if err != nil {
				return err
			}
			names, id := map[string]string{}, ""
			for _, one := range environments {
				names[one.ID] = one.Name
			}
			if len(args) > 0 {
				found, err := api.Environments().Get(command.Context(), args[0])
				if err != nil {
					return err
				}
				id, names[found.ID] = found.ID, found.Name
			}
			rows, err := api.Environments().Findings(command.Context(), id, closed)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, findingTable(rows, names))
		}),
	}
	print.AddFlag(command)
	command.Flags().BoolVar(&closed, "closed", false, "also list recently closed findings")
	return command
}

// findingTable lists findings, each with its remedy below.
func findingTable(rows []client.Finding, names map[string]string) func(*tabwriter.Writer) {
	return func(table *tabwriter.Writer) {
		fmt.Fprintln(table, "ENVIRONMENT\tSEVERITY\tSINCE\tUNTIL\tREPAIRS\tWHAT")
		for _, row := range rows {
			until := ""
			if row.Closed != nil {
				until = row.Closed.UTC().Format(time.RFC3339)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\n", names[row.EnvironmentID], row.Severity, row.Since.UTC().Format(time.RFC3339), until, row.Repairs, row.Text)
			if row.Closed == nil {
				fmt.Fprintf(table, "\t\t\t\t\t→ %s\n", row.Mends)
			}
		}
	}
}
