package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"gorm.io/gorm"

	catalogstore "github.com/burano/burano/catalog/store"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/store"
)

// schemas are all tables of the server's database.
func schemas() []database.Schema {
	return []database.Schema{catalogstore.Schema(), store.Schema()}
}

func databaseCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "db",
		Short: "Look after the server's database",
		Long: `The server brings its database up to date when it starts. These commands do so, or look, without a server. They find the database as the
server does: --database (PostgreSQL), or burano.db below --state (SQLite), from flags, environment or the file that --config names.`,
	}
	options := &serveOptions{}
	flags := options.flags()
	for _, name := range []string{configFlag, "state", "database"} {
		command.PersistentFlags().AddFlag(flags.Lookup(name))
	}
	open := func(ctx context.Context, create bool) (*gorm.DB, error) {
		if _, err := options.resolve(flags); err != nil {
			return nil, err
		}
		if options.database == "" {
			if create {
				if err := os.MkdirAll(options.state, 0o700); err != nil {
					return nil, fmt.Errorf("make the state folder: %w", err)
				}
			} else if _, err := os.Stat(options.sqlite()); err != nil {
				return nil, fmt.Errorf("there is no database yet: %w (the server makes it, and so does `burano db migrate`)", err)
			}
		}
		return options.openDatabase(ctx)
	}
	command.AddCommand(&cobra.Command{
		Use:   "migrate",
		Short: "Bring the database up to date",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			db, err := open(command.Context(), true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close(db)) }()
			for _, schema := range schemas() {
				if err := schema.Migrate(command.Context(), db); err != nil {
					return err
				}
			}
			return printVersions(command, db)
		},
	}, &cobra.Command{
		Use:   "version",
		Short: "Show which version the database has, and which one this program has",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			db, err := open(command.Context(), false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close(db)) }()
			return printVersions(command, db)
		},
	})
	return command
}

func printVersions(command *cobra.Command, db *gorm.DB) error {
	table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TABLES\tDATABASE\tPROGRAM")
	for _, schema := range schemas() {
		have, want, err := schema.Version(command.Context(), db)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%d\n", schema.Owner, have, want)
	}
	return table.Flush()
}
