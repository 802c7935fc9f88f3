package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database/backup"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/scratch"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// contents are the lines of each table of a backup, in an order of their own.
func contents(t *testing.T, path string) map[string][]string {
	t.Helper()
	files, err := zip.OpenReader(path)
	require.NoError(t, err)
	defer files.Close()
	tables := map[string][]string{}
	for _, file := range files.File {
		if !strings.HasPrefix(file.Name, "tables/") {
			continue
		}
		entry, err := file.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(entry)
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		slices.Sort(lines)
		tables[file.Name] = lines
	}
	return tables
}

// fill writes rows as a server does, with bytes, booleans, fractions and nulls among them.
func fill(t *testing.T, options *server.Options, environments int) {
	t.Helper()
	rows, sealer, end := openRows(t, options)
	defer end()
	for i := range environments {
		e := store.Environment{ID: store.NewID(), ProjectID: "p", Name: fmt.Sprint(i), Model: store.Model{Objects: map[string]any{"number": int64(i), "ratio": 0.5}}}
		require.NoError(t, rows.Environments().Create(t.Context(), &e))
		if i == 0 {
			session, err := rows.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
			require.NoError(t, err)
			_, err = rows.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"}, Text: "scheduled <&>"})
			require.NoError(t, err)
			_, err = archiveOf(t, rows, sealer).Take(t.Context(), snapshot.Subject{EnvironmentID: e.ID, ClusterID: "c", ClusterName: "c", Kind: store.Requested, Secrets: []byte("keys")},
				func(_ context.Context, to io.Writer) error { _, err := to.Write(snapshotContent()); return err })
			require.NoError(t, err)
		}
	}
	require.NoError(t, rows.Templates().Create(t.Context(), &store.Template{ID: store.NewID(), ProjectID: "p", Name: "t", Public: true, Services: store.List{}}))
	db, err := options.OpenDatabase(t.Context())
	require.NoError(t, err)
	handle, err := db.DB()
	require.NoError(t, err)
	defer handle.Close()
	require.NoError(t, db.Exec("INSERT INTO packages (id, full_name, name, type, version, description, author, supplier, owner_id, is_public, enabled, embedded, created, updated, bytes) "+
		"VALUES ('k1', 'a.b', 'n', 'Application', '1.0.0', 'd', 'a', '{}', 'o', ?, ?, ?, 1, 2, 4)", true, true, false).Error)
	require.NoError(t, db.Exec("INSERT INTO package_archives VALUES ('k1', ?)", []byte{0, 255, '"', '\n'}).Error)
	require.NoError(t, db.Exec("INSERT INTO request_statistics VALUES (1, 'h', 1, 0, 2.0, '{}', 0.125, 0, 4, 99.5, 1, 1)").Error)
	require.NoError(t, db.Exec("DELETE FROM categories WHERE name = 'SAP'").Error)
}

// snapshotContent is more than fits into one piece, however it is compressed.
func snapshotContent() []byte {
	content := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return content
}

func archiveOf(t *testing.T, rows *store.Store, sealer *secret.Sealer) *snapshot.Archive {
	return snapshot.New(rows.Snapshots(), nil, sealer, func(context.Context, string) (snapshot.Checked, error) { return snapshot.Checked{Revision: 7}, nil }, scratch.New(t.TempDir(), 1<<30))
}

func TestABackupGoesIntoADatabaseOfEitherKind(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, from *server.Options, settings []string) {
		fill(t, from, 5)
		file := filepath.Join(t.TempDir(), "backup")
		output := run(t, append([]string{"db", "backup", file}, settings...)...)
		require.Contains(t, output, "its secrets need the keys")
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		key, err := os.ReadFile(from.KeyFile())
		require.NoError(t, err)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(text), strings.TrimSpace(string(key)))
		_, err = program(t, append([]string{"db", "backup", file}, settings...)...).CombinedOutput()
		require.Error(t, err, "a file that is there stays")
		before := contents(t, file)
		require.Len(t, before["tables/environments.jsonl"], 6)
		require.Greater(t, len(before["tables/snapshot_pieces.jsonl"]), 3)
		require.Len(t, before["tables/categories.jsonl"], 9, "one was deleted")

		onEachDatabase(t, func(t *testing.T, to *server.Options, settings []string) {
			output := run(t, append([]string{"db", "restore", file}, settings...)...)
			require.Contains(t, output, "WARNING: its secrets need the keys")
			if to.Database == "" {
				restored, err := os.Stat(to.SQLite())
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o600), restored.Mode().Perm())
			}
			output2, err := program(t, append([]string{"db", "restore", file}, settings...)...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(output2), "--replace")
			require.NoError(t, os.WriteFile(to.KeyFile(), key, 0o600))
			output = run(t, append([]string{"db", "restore", "--replace", file}, settings...)...)
			require.Contains(t, output, "the keys of its secrets are there")
			require.Contains(t, output, "the former database is kept")
			again := filepath.Join(t.TempDir(), "again")
			run(t, append([]string{"db", "backup", again}, settings...)...)
			require.Equal(t, before, contents(t, again))
			rows, sealer, _ := openRows(t, to)
			found, _, err := rows.Environments().List(t.Context(), "p")
			require.NoError(t, err)
			require.Len(t, found, 5)

			// A cluster can be restored with the restored data, even after all else is lost.
			list, err := rows.Snapshots().Snapshots(t.Context(), store.SnapshotFilter{ProjectID: "p"})
			require.NoError(t, err)
			require.Len(t, list, 1)
			kept, err := rows.Snapshots().Snapshot(t.Context(), list[0].ID)
			require.NoError(t, err)
			require.Equal(t, "keys", kept.Secrets)
			reader, err := archiveOf(t, rows, sealer).Open(t.Context(), kept.ID)
			require.NoError(t, err)
			content, err := io.ReadAll(reader)
			require.NoError(t, err)
			require.NoError(t, reader.Close())
			require.True(t, bytes.Equal(snapshotContent(), content), "each piece is there, in its order")
		})
	})
}

func TestABackupIsOfOneMomentWhileTheServerWrites(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, options *server.Options, settings []string) {
		fill(t, options, 1)
		rows, _, _ := openRows(t, options)
		stop := make(chan struct{})
		var writer errgroup.Group
		writer.Go(func() error {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return nil
				default:
				}
				// An environment and its session are written in one transaction.
				e := store.Environment{ID: store.NewID(), ProjectID: "w", Name: fmt.Sprint("w", i), Model: store.Model{Objects: map[string]any{}}}
				if _, err := rows.Environments().CreateWithSession(t.Context(), &e, store.Holder{ID: "u"}, store.List{}); err != nil {
					return err
				}
			}
		})
		for i := range 3 {
			file := filepath.Join(t.TempDir(), fmt.Sprint(i))
			run(t, append([]string{"db", "backup", file}, settings...)...)
			tables := contents(t, file)
			require.Equal(t, len(tables["tables/environments.jsonl"]), len(tables["tables/sessions.jsonl"]))
		}
		close(stop)
		require.NoError(t, writer.Wait())
	})
}

func TestARestoreThatWasKilledChangedNothingAndIsRunAgain(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, options *server.Options, settings []string) {
		fill(t, options, 300)
		file, other := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "other")
		run(t, append([]string{"db", "backup", file}, settings...)...)
		rows, _, end := openRows(t, options)
		require.NoError(t, rows.Environments().Create(t.Context(), &store.Environment{ID: store.NewID(), ProjectID: "later", Name: "later"}))
		if options.Database != "" {
			output, err := program(t, append([]string{"db", "restore", "--replace", file}, settings...)...).CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(output), "stop the servers")
		}
		end()
		run(t, append([]string{"db", "backup", other}, settings...)...)

		killAfter(t, "environments: 300 rows", append([]string{"db", "restore", "--replace", file}, settings...)...)
		still := filepath.Join(t.TempDir(), "still")
		run(t, append([]string{"db", "backup", still}, settings...)...)
		require.Equal(t, contents(t, other), contents(t, still), "nothing has changed")

		output := run(t, append([]string{"db", "restore", "--replace", file}, settings...)...)
		require.Contains(t, output, "the keys of its secrets are there")
		again := filepath.Join(t.TempDir(), "again")
		run(t, append([]string{"db", "backup", again}, settings...)...)
		require.Equal(t, contents(t, file), contents(t, again))
	})
}

func TestADamagedBackupIsNotRestored(t *testing.T) {
	options := &server.Options{State: t.TempDir(), Lease: server.MinLease}
	fill(t, options, 2)
	file, damaged := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "damaged")
	run(t, "db", "backup", file, "--state", options.State)
	files, err := zip.OpenReader(file)
	require.NoError(t, err)
	defer files.Close()
	out, err := os.Create(damaged)
	require.NoError(t, err)
	changed := zip.NewWriter(out)
	for _, entry := range files.File {
		to, err := changed.Create(entry.Name)
		require.NoError(t, err)
		from, err := entry.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(from)
		require.NoError(t, err)
		if entry.Name == "tables/templates.jsonl" {
			text = []byte(strings.Replace(string(text), `"t"`, `"u"`, 1))
		}
		_, err = to.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, changed.Close())
	require.NoError(t, out.Close())
	state := t.TempDir()
	output, err := program(t, "db", "restore", damaged, "--state", state).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(output), "damaged")
	require.NoFileExists(t, filepath.Join(state, "burano.db"))
	_, err = backup.Open(filepath.Join(state, "nothing"))
	require.Error(t, err)
}

func TestARestoreLeavesOtherTablesOfADatabaseAlone(t *testing.T) {
	url, state := databasetest.Postgres(t), t.TempDir()
	options := &server.Options{State: state, Database: url, Lease: server.MinLease}
	fill(t, options, 1)
	file := filepath.Join(t.TempDir(), "backup")
	run(t, "db", "backup", file, "--state", state, "--database", url)
	db, err := options.OpenDatabase(t.Context())
	require.NoError(t, err)
	handle, err := db.DB()
	require.NoError(t, err)
	require.NoError(t, db.Exec("CREATE TABLE of_somebody_else (name TEXT)").Error)
	require.NoError(t, handle.Close())
	run(t, "db", "restore", "--replace", file, "--state", state, "--database", url)
	db, err = options.OpenDatabase(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, handle.Close()) }()
	var there int64
	require.NoError(t, db.Raw("SELECT COUNT(*) FROM of_somebody_else").Scan(&there).Error)
	handle, err = db.DB()
	require.NoError(t, err)
}
