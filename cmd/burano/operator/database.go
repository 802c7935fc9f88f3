// Package operator has the commands by which operators set up, examine, back up and upgrade servers, and keep images of nodes.
package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gorm.io/gorm"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
)

// DatabaseCommand is burano db.
func DatabaseCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "db",
		Short: "Maintain the server's database and the keys of its secrets",
		Long: `The server migrates its database when it starts. These commands work on the database without a server. They find it as the
server does: --database (PostgreSQL), or burano.db below --state (SQLite), from flags, environment or the file of --config.`,
	}
	options := &server.Options{}
	flags := options.Flags()
	for _, name := range []string{server.ConfigFlag, "state", "database"} {
		command.PersistentFlags().AddFlag(flags.Lookup(name))
	}
	c := &databaseCommands{options: options, flags: flags}
	command.AddCommand(&cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			db, err := c.open(command.Context(), true)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close(db)) }()
			for _, schema := range server.Schemas() {
				if err := schema.Migrate(command.Context(), db); err != nil {
					return err
				}
			}
			return printVersions(command, db)
		},
	}, &cobra.Command{
		Use:   "version",
		Short: "Show the version of the database, and the version that this program needs",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			db, err := c.open(command.Context(), false)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close(db)) }()
			return printVersions(command, db)
		},
	}, c.keys(), c.reseal(), c.backup(), c.restore(), c.importMurano())
	return command
}

// databaseCommands are the commands below `burano db`, with the settings by which they find the database.
type databaseCommands struct {
	options *server.Options
	flags   *pflag.FlagSet
}

// open opens the database that the settings name. create makes the folder of one that is not there yet.
func (c *databaseCommands) open(ctx context.Context, create bool) (*gorm.DB, error) {
	if _, err := c.options.Resolve(c.flags); err != nil {
		return nil, err
	}
	if c.options.Database == "" {
		if create {
			if err := os.MkdirAll(c.options.State, 0o700); err != nil {
				return nil, fmt.Errorf("make the state folder: %w", err)
			}
		} else if _, err := os.Stat(c.options.SQLite()); err != nil {
			return nil, fmt.Errorf("there is no database yet: %w (the server makes it, and so does `burano db migrate`)", err)
		}
	}
	return c.options.OpenDatabase(ctx)
}

// openCurrent opens a database of this program's version.
func (c *databaseCommands) openCurrent(ctx context.Context) (*gorm.DB, error) {
	db, err := c.open(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, schema := range server.Schemas() {
		have, want, err := schema.Version(ctx, db)
		if err == nil && have != want {
			err = fmt.Errorf("the tables of %s have version %d, and this program is for %d: use the program of the server, or run `burano db migrate`", schema.Owner, have, want)
		}
		if err != nil {
			return nil, errors.Join(err, database.Close(db))
		}
	}
	return db, nil
}

func printVersions(command *cobra.Command, db *gorm.DB) error {
	table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TABLES\tDATABASE\tPROGRAM")
	for _, schema := range server.Schemas() {
		have, want, err := schema.Version(command.Context(), db)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%d\n", schema.Owner, have, want)
	}
	return table.Flush()
}
