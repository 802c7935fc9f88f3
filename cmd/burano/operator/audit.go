package operator

import (
	"fmt"
	"net/url"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// AuditCommand is burano audit.
func AuditCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "audit", Short: "The audit log: the actions of users"}
	command.AddCommand(auditListCommand(connection))
	return command
}

func auditListCommand(connection *cli.Connection) *cobra.Command {
	var print cli.Output
	var limit int
	filters := map[string]*string{}
	command := &cobra.Command{
		Use:   "list",
		Short: "List calls that changed something, sign-ins, refusals and downloads of kubeconfigs, newest first",
		Long: `List shows the audit log as far back as the server keeps it (its setting audit-time), newest first. By default only administrators may
read it. The policy rule list_audit_events lets others read the events of their own project.`,
		Args: cobra.NoArgs,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, _ []string) error {
			query := url.Values{}
			for name, value := range filters {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			rows, err := api.AuditEvents(command.Context(), query, limit)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), rows, func(table *tabwriter.Writer) {
				fmt.Fprintln(table, "TIME\tUSER\tPROJECT\tADDRESS\tACTION\tOUTCOME\tREQUEST\tREQUEST ID")
				for _, row := range rows {
					user := row.Initiator.Name
					if user == "" {
						user = row.Initiator.ID
					}
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row.Time, user, row.Initiator.ProjectID, row.Initiator.Host.Address,
						row.Action, row.Outcome+" "+row.Reason.Code, row.Request, row.RequestID)
				}
			})
		}),
	}
	print.AddFlag(command)
	command.Flags().IntVar(&limit, "limit", 100, "how many events to list")
	for flag, filter := range map[string][2]string{
		"project": {"project_id", "of callers of the project with this id"}, "user": {"user_id", "of the user with this id"},
		"action": {"action", "such as create or authenticate/login"}, "target": {"target_id", "on what has this id"},
		"outcome": {"outcome", "success or failure"}, "request": {"request_id", "of the request with this id"},
		"since": {"since", "not before this time, such as 2026-11-22T04:05:06Z"}, "until": {"until", "before this time"},
	} {
		filters[filter[0]] = command.Flags().String(flag, "", filter[1])
	}
	return command
}
