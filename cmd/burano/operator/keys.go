package operator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// lateWrites is how long a value may be on its way into the database after it was sealed: as long as a request or a transaction lasts.
const lateWrites = time.Minute

func (c *databaseCommands) keys() *cobra.Command {
	command := &cobra.Command{
		Use:   "keys",
		Short: "List and change the keys of the secrets, with the number of values under each",
		Long: `The file secret.key below --state has a key on each line: the first one is active and seals, all of them open. To replace a key,
while the server runs:

  burano db reseal --new-key     adds a key, makes it active and seals everything again under it
  burano db keys remove ID       removes the former key, once nothing is sealed under it

A backup needs the keys of its time: store the former file with it. Where several servers share a database, run "keys add --inactive",
copy the file to all servers, then "keys activate" on each of them, then "reseal", and last "keys remove" on each.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return c.withRows(command.Context(), func(rows *store.Store, sealer *secret.Sealer) error { return printKeys(command, rows, sealer) })
		},
	}
	var inactive bool
	add := &cobra.Command{
		Use:   "add",
		Short: "Add a new key, which seals from now on",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if _, err := c.options.Resolve(c.flags); err != nil {
				return err
			}
			id, err := secret.AddKey(c.options.KeyFile(), !inactive)
			if err == nil {
				_, err = fmt.Fprintln(command.OutOrStdout(), id)
			}
			return err
		},
	}
	add.Flags().BoolVar(&inactive, "inactive", false, "let the key only open, until burano db keys activate makes it seal")
	command.AddCommand(add, &cobra.Command{
		Use:   "activate ID",
		Short: "Make a key of the file the active one",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := c.options.Resolve(c.flags); err != nil {
				return err
			}
			return secret.ActivateKey(c.options.KeyFile(), args[0])
		},
	}, &cobra.Command{
		Use:   "remove ID",
		Short: "Remove a key under which nothing is sealed any more",
		Args:  cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return c.withRows(command.Context(), func(rows *store.Store, _ *secret.Sealer) error {
				return removeKey(command.Context(), rows, c.options.KeyFile(), args[0])
			})
		},
	})
	return command
}

func (c *databaseCommands) reseal() *cobra.Command {
	var newKey bool
	command := &cobra.Command{
		Use:   "reseal",
		Short: "Seal all values of former keys under the active key",
		Long: `Reseal works through the database in small steps, while the server runs or not. It may be interrupted at any moment and run
again: it continues with the rest. Afterwards nothing needs the former keys, and "burano db keys remove" removes them.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, out := command.Context(), command.OutOrStdout()
			return c.withRows(ctx, func(rows *store.Store, sealer *secret.Sealer) error {
				if newKey {
					id, err := secret.AddKey(c.options.KeyFile(), true)
					if err != nil {
						return err
					}
					fmt.Fprintf(out, "%s is the active key\n", id)
				}
				var total int64
				err := rows.Keys().Reseal(ctx, sealer, func(column string, values int64) {
					total += values
					fmt.Fprintf(out, "%d values sealed again, last of %s\n", total, column)
				})
				return errors.Join(err, printKeys(command, rows, sealer))
			})
		},
	}
	command.Flags().BoolVar(&newKey, "new-key", false, "add a new key first, and make it the active one")
	return command
}

// withRows runs do with the rows of a database of this program's version, and with the keys that are there.
func (c *databaseCommands) withRows(ctx context.Context, do func(*store.Store, *secret.Sealer) error) (err error) {
	db, err := c.openCurrent(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close(db)) }()
	sealer, err := secret.OpenExisting(c.options.KeyFile())
	if err != nil {
		return err
	}
	rows, err := store.New(ctx, db, time.Now, store.Sealed(sealer))
	if err != nil {
		return err
	}
	if err := server.CheckKey(ctx, rows, sealer); err != nil {
		return err
	}
	return do(rows, sealer)
}

func printKeys(command *cobra.Command, rows *store.Store, sealer *secret.Sealer) error {
	values, err := rows.Keys().SealedValues(command.Context())
	if err != nil {
		return err
	}
	numbers := map[string]int64{}
	for _, one := range values {
		numbers[one.KeyID] += one.Number
	}
	table := tabwriter.NewWriter(command.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KEY\tSTATE\tVALUES")
	for i, id := range sealer.Keys() {
		state := "opens"
		if i == 0 {
			state = "active"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\n", id, state, numbers[id])
		delete(numbers, id)
	}
	for id, number := range numbers {
		state := "missing"
		if id == "" {
			id, state = "-", "not said"
		}
		fmt.Fprintf(table, "%s\t%s\t%d\n", id, state, number)
	}
	return table.Flush()
}

// removeKey takes a key away under which nothing is sealed, and nothing can be any more.
func removeKey(ctx context.Context, rows *store.Store, path, id string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if age := time.Since(info.ModTime()); age < lateWrites {
		return fmt.Errorf("the keys changed %s ago, and a server may still write what it sealed before: try again in %s", age.Round(time.Second), (lateWrites - age).Round(time.Second))
	}
	values, err := rows.Keys().SealedValues(ctx)
	if err != nil {
		return err
	}
	for _, one := range values {
		if one.KeyID == id || one.KeyID == "" {
			return fmt.Errorf("%d values of %s are sealed under this key, or do not say under which: run `burano db reseal` first", one.Number, one.Column)
		}
	}
	return secret.RemoveKey(path, id)
}
