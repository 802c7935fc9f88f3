package database_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
)

func onSQLite(t *testing.T) *gorm.DB {
	t.Helper()
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	require.NoError(t, db.Exec("CREATE TABLE things (name TEXT PRIMARY KEY, size INTEGER)").Error)
	return db
}

func TestAStatementThatRunsAgainSeesWhatItIsGivenThen(t *testing.T) {
	db := onSQLite(t)
	for n := range 3 {
		require.NoError(t, db.Exec("INSERT INTO things VALUES (?, ?)", fmt.Sprint("thing ", n), n).Error)
		var size int
		require.NoError(t, database.Reading(db).Raw("SELECT size FROM things WHERE name = ?", fmt.Sprint("thing ", n)).Scan(&size).Error)
		require.Equal(t, n, size)
	}
	err := db.Exec("INSERT INTO things VALUES (?, ?)", "thing 1", 1).Error
	require.True(t, database.IsDuplicate(err), "%v", err)
	require.NoError(t, db.Exec("INSERT INTO things VALUES (?, ?)", "thing 3", 3).Error, "a statement that failed runs again")
}

func TestAStatementCanRunBesideItself(t *testing.T) {
	db := onSQLite(t)
	require.NoError(t, db.Exec("INSERT INTO things VALUES ('a', 1), ('b', 2), ('c', 3)").Error)
	const query = "SELECT name FROM things ORDER BY name"
	names := func(tx *gorm.DB) (names []string) {
		require.NoError(t, tx.Raw(query).Scan(&names).Error)
		return names
	}
	require.NoError(t, db.Transaction(func(tx *gorm.DB) error {
		rows, err := tx.Raw(query).Rows()
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.Equal(t, []string{"a", "b", "c"}, names(tx))
		var name string
		require.True(t, rows.Next())
		require.NoError(t, rows.Scan(&name))
		require.Equal(t, "b", name)
		require.NoError(t, rows.Close(), "before the last row")
		require.Equal(t, []string{"a", "b", "c"}, names(tx))
		return nil
	}))
}

func TestAStatementSeesATableThatHasChanged(t *testing.T) {
	db := onSQLite(t)
	read := func() map[string]any {
		row := map[string]any{}
		require.NoError(t, db.Raw("SELECT * FROM things").Scan(&row).Error)
		return row
	}
	require.NoError(t, db.Exec("INSERT INTO things VALUES ('a', 1)").Error)
	require.Equal(t, map[string]any{"name": "a", "size": int64(1)}, read())
	require.NoError(t, db.Exec("ALTER TABLE things ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'").Error)
	require.Equal(t, map[string]any{"name": "a", "size": int64(1), "colour": "red"}, read())
	require.NoError(t, db.Exec("DROP TABLE things").Error, "a statement that is kept holds no table")
	require.Error(t, db.Exec("SELECT * FROM things").Error)
}

func TestMoreStatementsThanAreKeptRun(t *testing.T) {
	db := onSQLite(t)
	for range 2 {
		for n := range 600 {
			var found int
			require.NoError(t, db.Raw(fmt.Sprintf("SELECT %d", n)).Scan(&found).Error)
			require.Equal(t, n, found)
		}
	}
}
