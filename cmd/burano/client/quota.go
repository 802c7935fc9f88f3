package client

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/cli"
	"github.com/burano/burano/web/client"
)

// QuotaCommand is burano quota.
func QuotaCommand(connection *cli.Connection) *cobra.Command {
	command := &cobra.Command{Use: "quota", Short: "Quotas: limits of projects"}
	command.AddCommand(
		quotaOf(connection, "show [PROJECT]", "Show the quotas of a project and its use of them (default: your own project)", cobra.MaximumNArgs(1),
			func(ctx context.Context, api *client.Client, project string, _ []string) (client.Quotas, error) {
				if project == "" {
					return api.Projects().OwnQuotas(ctx)
				}
				return api.Projects().Quotas(ctx, project)
			}),
		quotaOf(connection, "set PROJECT RESOURCE=LIMIT…", "Give a project limits of its own, such as environments=10 or packages=unlimited (administrators)", cobra.MinimumNArgs(2),
			func(ctx context.Context, api *client.Client, project string, args []string) (client.Quotas, error) {
				limits, err := readLimits(args)
				if err != nil {
					return client.Quotas{}, err
				}
				return api.Projects().SetQuotas(ctx, project, limits)
			}),
		quotaOf(connection, "reset PROJECT", "Remove a project's own limits, so that the server's settings hold again (administrators)", cobra.ExactArgs(1),
			func(ctx context.Context, api *client.Client, project string, _ []string) (client.Quotas, error) {
				return api.Projects().ResetQuotas(ctx, project)
			}),
	)
	return command
}

// quotaOf is a command that ends with the quotas of a project.
func quotaOf(connection *cli.Connection, use, short string, args cobra.PositionalArgs,
	do func(ctx context.Context, api *client.Client, project string, args []string) (client.Quotas, error)) *cobra.Command {
	var print cli.Output
	command := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  args,
		RunE: connection.SignedIn(func(command *cobra.Command, api *client.Client, args []string) error {
			project := ""
			if len(args) > 0 {
				project, args = args[0], args[1:]
			}
			quotas, err := do(command.Context(), api, project, args)
			if err != nil {
				return err
			}
			return print.Print(command.OutOrStdout(), quotas, func(table *tabwriter.Writer) { writeQuotas(table, quotas) })
		}),
	}
	print.AddFlag(command)
	return command
}

func writeQuotas(to io.Writer, quotas client.Quotas) {
	fmt.Fprintln(to, "RESOURCE\tUSED\tLIMIT\tSET BY")
	for _, resource := range slices.Sorted(maps.Keys(quotas.Quotas)) {
		quota := quotas.Quotas[resource]
		limit, by := unlimited, "an administrator"
		if quota.Limit >= 0 {
			limit = strconv.FormatInt(quota.Limit, 10)
		}
		if quota.Default {
			by = "the server's settings"
		}
		fmt.Fprintf(to, "%s\t%d\t%s\t%s\n", resource, quota.Used, limit, by)
	}
}

const unlimited = "unlimited"

// readLimits reads RESOURCE=LIMIT.
func readLimits(args []string) (map[string]int64, error) {
	limits := map[string]int64{}
	for _, arg := range args {
		resource, text, ok := strings.Cut(arg, "=")
		limit, err := strconv.ParseInt(text, 10, 64)
		if text == unlimited {
			limit, err = -1, nil
		}
		if !ok || err != nil || limit < -1 {
			return nil, fmt.Errorf("%q: write RESOURCE=LIMIT, such as environments=10 or environments=%s", arg, unlimited)
		}
		limits[resource] = limit
	}
	return limits, nil
}
