package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"gorm.io/gorm"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/backup"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// restoreSchema is where PostgreSQL has the tables of a restore until they are whole.
const restoreSchema = "burano_restore"

func (c *databaseCommands) backup() *cobra.Command {
	return &cobra.Command{
		Use:   "backup FILE",
		Short: "Back the whole database up into a file, while the server runs or not",
		Long: `Backup writes the state of the database at one moment, SQLite or PostgreSQL, into one file. "burano db restore" reads it into a database of
either kind. FILE appears whole or not at all. It contains no key: keep a copy of secret.key, apart from it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			ctx := command.Context()
			db, err := c.openCurrent(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, database.Close(db)) }()
			manifest, err := writeBackup(ctx, db, args[0])
			if err != nil {
				return fmt.Errorf("write the backup %s: %w", args[0], err)
			}
			var rows int64
			for _, table := range manifest.Tables {
				rows += table.Rows
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %d rows of %d tables; its secrets need the keys %s\n", args[0], rows, len(manifest.Tables), keyNames(manifest.Keys))
			return err
		},
	}
}

func keyNames(ids []string) string {
	names := slices.Clone(ids)
	for i, id := range names {
		if id == "" {
			names[i] = "that the server had when it had one key only"
		}
	}
	if len(names) == 0 {
		return "(none)"
	}
	return strings.Join(names, ", ")
}

// writeBackup writes to a file beside path, which gets its name when it is whole and on the disk.
func writeBackup(ctx context.Context, db *gorm.DB, path string) (manifest backup.Manifest, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return manifest, errors.Join(err, fs.ErrExist)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return manifest, err
	}
	defer os.Remove(file.Name())
	source := backup.Source{DB: db, Schemas: server.Schemas(), Program: version.Version, KeyOf: store.KeyOf(secret.KeyOf), Now: time.Now}
	if manifest, err = source.Write(ctx, file); err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return manifest, err
	}
	if err := os.Link(file.Name(), path); err != nil { // and never in the place of another file
		return manifest, err
	}
	return manifest, syncFolder(filepath.Dir(path))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (c *databaseCommands) restore() *cobra.Command {
	var replace bool
	command := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a backup into a new database, SQLite or PostgreSQL",
		Long: `Restore fills a database that does not exist yet or is empty, and migrates it. Its servers must be stopped. With --replace it
replaces an existing database, which stays under another name; the command prints that name. The new database appears whole or not at
all: an interrupted restore has changed nothing, and can be run again.

Deployments that ran at the time of the backup continue, or fail where the cloud has changed since.`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) (err error) {
			ctx, out := command.Context(), command.OutOrStdout()
			if _, err := c.options.Resolve(c.flags); err != nil {
				return err
			}
			archive, err := backup.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, archive.Close()) }()
			if err := os.MkdirAll(c.options.State, 0o700); err != nil {
				return fmt.Errorf("make the state folder: %w", err)
			}
			restore := restoreSQLite
			if c.options.Database != "" {
				restore = restorePostgres
			}
			former, err := restore(ctx, c.options, archive, replace, func(table backup.Table) { fmt.Fprintf(out, "%s: %d rows\n", table.Name, table.Rows) })
			if err != nil {
				return fmt.Errorf("restore %s: %w", args[0], err)
			}
			if former != "" {
				fmt.Fprintf(out, "the former database is kept: %s\n", former)
			}
			_, err = fmt.Fprintf(out, "the database is restored as it was on %s\n%s\n", archive.Manifest.Created.Format(time.RFC1123), keysFor(ctx, c.options, archive.Manifest))
			return err
		},
	}
	command.Flags().BoolVar(&replace, "replace", false, "replace an existing database, which stays under another name")
	return command
}

// keysFor reports whether the present keys open the restored secrets.
func keysFor(ctx context.Context, o *server.Options, manifest backup.Manifest) string {
	sealer, err := secret.OpenExisting(o.KeyFile())
	if err != nil {
		return fmt.Sprintf("WARNING: its secrets need the keys %s, and there is no key file that can be used (%v): put the secret.key of the backup's server there before the server starts", keyNames(manifest.Keys), err)
	}
	var missing []string
	for _, id := range manifest.Keys {
		if id != "" && !slices.Contains(sealer.Keys(), id) {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return fmt.Sprintf("WARNING: its secrets need the keys %s, which are not in %s: add their lines to it before the server starts", keyNames(missing), o.KeyFile())
	}
	if err := provesKey(ctx, o, sealer); err != nil {
		return "WARNING: " + err.Error()
	}
	return "the keys of its secrets are there"
}

// provesKey opens the proof of the key in the database, as a server does when it starts.
func provesKey(ctx context.Context, o *server.Options, sealer *secret.Sealer) (err error) {
	db, err := o.OpenDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close(db)) }()
	rows, err := store.New(ctx, db, time.Now, store.Sealed(sealer))
	if err != nil {
		return err
	}
	return server.CheckKey(ctx, rows, sealer)
}

var errThere = errors.New("there is a database already: --replace keeps it under another name and takes its place")

// restoreSQLite fills a file beside the server's, and then gives it that one's name.
func restoreSQLite(ctx context.Context, o *server.Options, archive *backup.Archive, replace bool, did func(backup.Table)) (former string, err error) {
	unlock, err := server.LockState(o.State)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	path := o.SQLite()
	_, err = os.Stat(path)
	there := err == nil
	if there && !replace {
		return "", errThere
	}
	if !there && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if err := checkpointed(path, there); err != nil {
		return "", err
	}
	unfinished := path + ".restore"
	for _, name := range []string{unfinished, unfinished + "-wal", unfinished + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	file, err := os.OpenFile(unfinished, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // it holds users' data
	if err != nil {
		return "", err
	}
	if err := file.Close(); err != nil {
		return "", err
	}
	db, err := database.Open(unfinished)
	if err != nil {
		return "", err
	}
	if err := errors.Join(archive.Load(ctx, db, server.Schemas(), did), database.Close(db)); err != nil {
		return "", err
	}
	if err := checkpointed(unfinished, false); err != nil {
		return "", err
	}
	if there {
		former = path + ".before-restore-" + time.Now().UTC().Format("20060102T150405.000")
		if err := os.Link(path, former); err != nil {
			return "", err
		}
	}
	if err := os.Rename(unfinished, path); err != nil {
		return "", err
	}
	return former, syncFolder(o.State)
}

// checkpointed makes sure that all of a SQLite database is in its one file. A log that is left beside it would be taken for that of the
// file that gets its name.
func checkpointed(path string, open bool) error {
	if open {
		db, err := database.Open(path)
		if err == nil {
			err = errors.Join(database.Answers(context.Background(), db), database.Close(db)) // the last to close it empties the log
		}
		if err != nil {
			return err
		}
	}
	info, err := os.Stat(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%s is in use: stop what uses it", path))
}

// connectionsPatience is how long connections of Burano to a database may still be there that is to be replaced.
const connectionsPatience = 5 * time.Second

// restorePostgres fills a schema of its own, and then moves its tables to where the server looks for them, in one transaction.
func restorePostgres(ctx context.Context, o *server.Options, archive *backup.Archive, replace bool, did func(backup.Table)) (former string, err error) {
	db, err := o.OpenDatabase(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, database.Close(db)) }()
	// PostgreSQL ends the connections of a server that has just ended a moment after it.
	err = wait.Every(100*time.Millisecond).For(connectionsPatience).Until(ctx, func(ctx context.Context) error {
		var others int64
		err := db.WithContext(ctx).Raw("SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = ? AND "+
			"pid <> pg_backend_pid()", database.Application).Scan(&others).Error
		if err == nil && others > 0 {
			return wait.Again(fmt.Errorf("the database is in use by %d connections of Burano: stop the servers", others))
		}
		return err
	})
	if err != nil {
		return "", err
	}
	ours, err := database.TablesOf(ctx, server.Schemas())
	if err != nil {
		return "", err
	}
	used := false
	for _, schema := range server.Schemas() {
		have, want, err := schema.Version(ctx, db) // makes the table that it looks for
		if err != nil {
			return "", err
		}
		if have > want {
			return "", fmt.Errorf("the database that is there is of a newer Burano (%s has version %d, this one knows %d): restore into another one", schema.Owner, have, want)
		}
		used = used || have > 0
		ours = append(ours, database.Table{Name: schema.Table()})
	}
	if used && !replace {
		return "", errThere
	}
	all, err := database.Tables(ctx, db)
	if err != nil {
		return "", err
	}
	there := slices.DeleteFunc(all, func(table database.Table) bool {
		return !slices.ContainsFunc(ours, func(t database.Table) bool { return t.Name == table.Name })
	})
	for _, statement := range []string{"DROP SCHEMA IF EXISTS " + restoreSchema + " CASCADE", "CREATE SCHEMA " + restoreSchema} {
		if err := db.WithContext(ctx).Exec(statement).Error; err != nil {
			return "", err
		}
	}
	filled, err := database.OpenSchema(ctx, o.Database, time.Hour, restoreSchema)
	if err != nil {
		return "", err
	}
	err = archive.Load(ctx, filled, server.Schemas(), did)
	var restored []database.Table
	if err == nil {
		restored, err = database.Tables(ctx, filled)
	}
	if err := errors.Join(err, database.Close(filled)); err != nil {
		return "", err
	}
	return exchange(ctx, o, db, used, there, restored)
}

// exchange puts the tables that were restored in the place of those that are there, which stay if anything was made of them.
func exchange(ctx context.Context, o *server.Options, db *gorm.DB, used bool, there, restored []database.Table) (former string, err error) {
	kept := "burano_before_restore_" + strings.ReplaceAll(time.Now().UTC().Format("20060102t150405.000"), ".", "_")
	var home string
	if err := db.WithContext(ctx).Raw("SELECT quote_ident(current_schema())").Scan(&home).Error; err != nil {
		return "", err
	}
	var statements []string
	if used {
		former = "schema " + kept
		statements = append(statements, "CREATE SCHEMA "+kept)
	}
	for _, table := range there {
		statement := "ALTER TABLE " + home + "." + table.Name + " SET SCHEMA " + kept
		if !used {
			statement = "DROP TABLE " + home + "." + table.Name
		}
		statements = append(statements, statement)
	}
	for _, table := range restored {
		statements = append(statements, "ALTER TABLE "+restoreSchema+"."+table.Name+" SET SCHEMA "+home)
	}
	statements = append(statements, "DROP SCHEMA "+restoreSchema)
	return former, db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		for _, statement := range statements {
			if err := tx.Exec(statement).Error; err != nil {
				return err
			}
		}
		return nil
	})
}
