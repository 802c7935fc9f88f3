package store_test

import (
	"io/fs"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// A newer Burano of the same generation has made the additions that such versions may make: this one reads and writes all the same.
func TestAServerWorksOverADatabaseThatANewerOneHasBroughtUpToDate(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		files := fstest.MapFS{"0998_more.sql": {Data: []byte(`-- +goose Up
ALTER TABLE environments ADD COLUMN later TEXT NOT NULL DEFAULT 'x';
ALTER TABLE sessions ADD COLUMN later BIGINT;
ALTER TABLE tasks ADD COLUMN later BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE templates ADD COLUMN later TEXT;
ALTER TABLE sign_ins ADD COLUMN later TEXT NOT NULL DEFAULT '';
ALTER TABLE attributes ADD COLUMN later TEXT NOT NULL DEFAULT '';
CREATE TABLE later_things (id TEXT PRIMARY KEY);
CREATE INDEX tasks_later ON tasks (later);
`)}}
		own := store.Schema()
		names, err := fs.Glob(own.Files, "*.sql")
		require.NoError(t, err)
		for _, name := range names {
			text, err := fs.ReadFile(own.Files, name)
			require.NoError(t, err)
			files[name] = &fstest.MapFile{Data: text}
		}
		require.NoError(t, database.Schema{Owner: own.Owner, Files: files}.Migrate(t.Context(), db))
		sealer, err := secret.Open(filepath.Join(t.TempDir(), "key"))
		require.NoError(t, err)
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		fillEverySealedColumn(t, db, s, sealer, "older")(t, s, sealer)
		have, want, err := own.Version(t.Context(), db)
		require.NoError(t, err)
		require.EqualValues(t, 998, have)
		require.Less(t, want, have)
	})
}
