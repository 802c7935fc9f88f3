package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// onEachDatabase runs the test with the settings of a server over each kind of database.
func onEachDatabase(t *testing.T, test func(t *testing.T, options *server.Options, settings []string)) {
	t.Run("SQLite", func(t *testing.T) {
		state := t.TempDir()
		test(t, &server.Options{State: state, Lease: time.Minute}, []string{"--state", state})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		state, url := t.TempDir(), databasetest.Postgres(t)
		test(t, &server.Options{State: state, Database: url, Lease: time.Minute}, []string{"--state", state, "--database", url})
	})
}

// openRows opens the rows as a server does that serves them.
func openRows(t *testing.T, options *server.Options) (rows *store.Store, sealer *secret.Sealer, end func()) {
	t.Helper()
	db, err := options.OpenDatabase(t.Context())
	require.NoError(t, err)
	end = func() { require.NoError(t, database.Close(db)) } // a second time is no error
	t.Cleanup(end)
	for _, schema := range server.Schemas() {
		require.NoError(t, schema.Migrate(t.Context(), db))
	}
	sealer, err = secret.Open(options.KeyFile())
	require.NoError(t, err)
	rows, err = store.New(t.Context(), db, nil, store.Sealed(sealer))
	require.NoError(t, err)
	require.NoError(t, server.CheckKey(t.Context(), rows, sealer))
	return rows, sealer, end
}

// under counts sealed values by key.
func under(t *testing.T, rows *store.Store) map[string]int64 {
	t.Helper()
	values, err := rows.Keys().SealedValues(t.Context())
	require.NoError(t, err)
	counts := map[string]int64{}
	for _, one := range values {
		counts[one.KeyID] += one.Number
	}
	return counts
}

func TestSealingAgainGoesOnAfterAKillWhileTheServerWrites(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, options *server.Options, settings []string) {
		rows, sealer, _ := openRows(t, options)
		old := sealer.Keys()[0]
		const environments = 400
		var ids []string
		for i := range environments {
			e := store.Environment{ID: store.NewID(), ProjectID: "p", Name: fmt.Sprint(i), Model: store.Model{Objects: map[string]any{"number": int64(i)}}}
			require.NoError(t, rows.Environments().Create(t.Context(), &e))
			ids = append(ids, e.ID)
		}
		edited, err := rows.Sessions().Open(t.Context(), ids[0], store.Holder{ID: "u"})
		require.NoError(t, err)
		stop := make(chan struct{})
		var edits int
		var writer errgroup.Group
		writer.Go(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
				}
				edits++
				if err := rows.Sessions().Edit(t.Context(), edited.ID, func(m *store.Model) error { m.Objects["edits"] = int64(edits); return nil }); err != nil {
					return err
				}
			}
		})
		readAll := func() {
			for i, id := range ids {
				e, err := rows.Environments().Get(t.Context(), id)
				require.NoError(t, err)
				require.EqualValues(t, i, e.Model.Objects["number"])
			}
		}

		killAfter(t, "values sealed again", append([]string{"db", "reseal", "--new-key"}, settings...)...)
		readAll()
		counts := under(t, rows)
		active := sealer.Keys()[0]
		require.NotEqual(t, old, active)
		require.Positive(t, counts[old], "it was killed in between")
		require.Positive(t, counts[active])

		output := run(t, append([]string{"db", "reseal"}, settings...)...)
		require.Contains(t, output, "values sealed again")
		close(stop)
		require.NoError(t, writer.Wait())
		require.Len(t, under(t, rows), 1)
		readAll()
		session, err := rows.Sessions().Get(t.Context(), edited.ID)
		require.NoError(t, err)
		require.EqualValues(t, edits, session.Model.Objects["edits"], "no edit was lost")

		removing := program(t, append([]string{"db", "keys", "remove", old}, settings...)...)
		early, err := removing.CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(early), "try again in")
		hourAgo := time.Now().Add(-time.Hour)
		require.NoError(t, os.Chtimes(options.KeyFile(), hourAgo, hourAgo))
		run(t, append([]string{"db", "keys", "remove", old}, settings...)...)
		output = run(t, append([]string{"db", "keys"}, settings...)...)
		require.Contains(t, output, active)
		require.NotContains(t, output, old)
		rows, _, _ = openRows(t, options)
		readAll()
	})
}

func TestAKeyUnderWhichSomethingIsSealedIsNotRemoved(t *testing.T) {
	options := &server.Options{State: t.TempDir(), Lease: time.Minute}
	_, sealer, end := openRows(t, options)
	defer end()
	old := sealer.Keys()[0]
	_, err := secret.AddKey(options.KeyFile(), true)
	require.NoError(t, err)
	hourAgo := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(options.KeyFile(), hourAgo, hourAgo))
	refused, err := program(t, "db", "keys", "remove", old, "--state", options.State).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(refused), "burano db reseal")
	require.Contains(t, sealer.Keys(), old)
	require.FileExists(t, filepath.Join(options.State, "secret.key"))
}
