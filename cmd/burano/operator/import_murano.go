package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/catalog/apps"
	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/cmd/burano/process"
	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/murano"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// muranoDatabase names Murano's database where no argument does: other users of the machine see arguments.
const muranoDatabase = "MURANO_DATABASE"

func (c *databaseCommands) importMurano() *cobra.Command {
	var preview, endUnfinished bool
	command := &cobra.Command{
		Use:   "import-murano [DSN]",
		Short: "Import the database of OpenStack Murano",
		Long: `Import copies packages, categories, environments with their drafts and their history, and templates from Murano's database, which it only
reads. DSN is the setting connection of murano.conf; the default is MURANO_DATABASE, so that no other user of the machine sees the password.

Try --dry-run first: it prints the result for each package and each environment, and changes nothing. The import can be repeated: existing
objects are skipped, and each environment is imported whole or not at all. The next deployment of an environment takes over the stack that
Murano made in Heat, and makes a new trust.`,
		Example: `  burano db import-murano --dry-run mysql+pymysql://murano:PASSWORD@db.example.org/murano`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			dsn := os.Getenv(muranoDatabase)
			if len(args) == 1 {
				dsn = args[0]
			}
			if dsn == "" {
				return fmt.Errorf("which database is Murano's? Name it as the argument, or in %s", muranoDatabase)
			}
			ctx := command.Context()
			db, err := c.openCurrent(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close(db)) }()
			sealer, err := secret.OpenExisting(c.options.KeyFile())
			if err != nil {
				return fmt.Errorf("what is imported is sealed with the server's key: %w (the server makes it when it first starts)", err)
			}
			packages, err := catalogstore.New(ctx, db)
			if err != nil {
				return err
			}
			environments, err := store.New(ctx, db, time.Now, store.Sealed(sealer))
			if err != nil {
				return err
			}
			if err := server.CheckKey(ctx, environments, sealer); err != nil {
				return err
			}
			from, err := murano.Open(ctx, dsn)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, from.Close()) }()
			embedded, err := apps.Packages()
			if err != nil {
				return err
			}
			taking := murano.Import{From: from, Catalog: packages, Environments: environments.Environments(), Templates: environments.Templates(), Packages: process.PackageReader(), Preview: preview, EndUnfinished: endUnfinished,
				NewID: store.NewID}
			for _, one := range embedded {
				taking.Embedded = append(taking.Embedded, one.FullName())
			}
			return runImport(ctx, command, taking)
		},
	}
	command.Flags().BoolVarP(&preview, "dry-run", "n", false, "only print the objects that would be imported, and the reasons for others")
	command.Flags().BoolVar(&endUnfinished, "end-unfinished", false, "import unfinished deployments of Murano as failed; only where no engine of Murano runs any more")
	return command
}

// runImport runs an import, or its preview, and prints a line for each row and their number.
func runImport(ctx context.Context, command *cobra.Command, taking murano.Import) error {
	table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WHAT\tNAME\tID\tFATE\tWHY")
	counts := map[murano.Fate]int{}
	taking.Say = func(line murano.Line) {
		counts[line.Fate]++
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", line.Kind, line.Name, line.ID, line.Fate, line.Why)
	}
	if err := errors.Join(taking.Run(ctx), table.Flush()); err != nil {
		return err
	}
	verb := "imported"
	if taking.Preview {
		verb = "to import"
	}
	_, err := fmt.Fprintf(command.OutOrStdout(), "%d %s, %d skipped, %d in conflict\n", counts[murano.Imported], verb, counts[murano.Skipped], counts[murano.Refused])
	return err
}
