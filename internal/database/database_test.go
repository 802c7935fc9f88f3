package database_test

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
)

// onEachDatabase runs the test with a function that opens the same database several times.
func onEachDatabase(t *testing.T, test func(t *testing.T, open func() *gorm.DB)) {
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "burano.db")
		test(t, func() *gorm.DB {
			db, err := database.Open(path)
			require.NoError(t, err)
			return db
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := databasetest.Postgres(t)
		test(t, func() *gorm.DB {
			db, err := database.OpenPostgres(t.Context(), url, 10*time.Second)
			require.NoError(t, err)
			return db
		})
	})
}

func TestMigrationsRunOnceAndDuplicatesAreRecognised(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		db := open()
		migrations := fstest.MapFS{"0001_things.sql": {Data: []byte("-- +goose Up\nCREATE TABLE things (name TEXT PRIMARY KEY);\n")}}
		schema := database.Schema{Owner: "things", Files: migrations}
		version := func(want int64) {
			t.Helper()
			have, newest, err := schema.Version(t.Context(), db)
			require.NoError(t, err)
			require.Equal(t, want, have)
			require.EqualValues(t, len(migrations), newest)
		}
		version(0)
		require.NoError(t, schema.Migrate(t.Context(), db))
		version(1)
		require.NoError(t, schema.Migrate(t.Context(), db))
		version(1)

		require.NoError(t, db.Exec("INSERT INTO things VALUES ('a')").Error)
		err := db.Exec("INSERT INTO things VALUES ('a')").Error
		require.Error(t, err)
		require.True(t, database.IsDuplicate(err))

		var row struct{ Name string }
		err = db.Table("things").Where("name = ?", "b").Take(&row).Error
		require.True(t, database.IsNotFound(err))
		require.False(t, database.IsDuplicate(err))
		require.NoError(t, database.Close(db))

		db = open()
		require.NoError(t, db.Table("things").Take(&row).Error)
		require.Equal(t, "a", row.Name)
		require.NoError(t, database.Close(db))
	})
}

func TestADatabaseOfALaterGenerationIsRefusedAndANewerOneOfTheSameIsNot(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		db := open()
		defer func() { require.NoError(t, database.Close(db)) }()
		first := &fstest.MapFile{Data: []byte("-- +goose Up\nCREATE TABLE things (name TEXT PRIMARY KEY);\n")}
		second := &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE things ADD COLUMN colour TEXT;\n")}
		newer := database.Schema{Owner: "things", Files: fstest.MapFS{"0001_things.sql": first, "0002_colour.sql": second}}
		require.NoError(t, newer.Migrate(t.Context(), db))
		older := database.Schema{Owner: "things", Files: fstest.MapFS{"0001_things.sql": first}}
		require.NoError(t, older.Migrate(t.Context(), db))
		have, want, err := older.Version(t.Context(), db)
		require.NoError(t, err)
		require.NoError(t, database.Compatible(have, want))
		require.EqualValues(t, []int64{2, 1}, []int64{have, want}, "the database stays as the newer one has left it")

		third := &fstest.MapFile{Data: []byte("-- +goose Up\nALTER TABLE things DROP COLUMN colour;\n")}
		later := database.Schema{Owner: "things", Files: fstest.MapFS{"0001_things.sql": first, "0002_colour.sql": second, "1000_no_colour.sql": third}}
		require.NoError(t, later.Migrate(t.Context(), db))
		require.ErrorContains(t, older.Migrate(t.Context(), db), "the database has version 1000, and this Burano knows 1")
		have, want, err = newer.Version(t.Context(), db)
		require.NoError(t, err)
		require.ErrorContains(t, database.Compatible(have, want), "and this Burano knows 2")
	})
}

func TestSeveralServersMayMigrateAtTheSameTime(t *testing.T) {
	url := databasetest.Postgres(t)
	migrations := fstest.MapFS{"0001_things.sql": {Data: []byte("-- +goose Up\nCREATE TABLE things (name TEXT PRIMARY KEY);\n")}}
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			db, err := database.OpenPostgres(t.Context(), url, 10*time.Second)
			if err != nil {
				return err
			}
			return errors.Join(database.Schema{Owner: "things", Files: migrations}.Migrate(t.Context(), db), database.Close(db))
		})
	}
	require.NoError(t, group.Wait())
}

func TestTheDatabaseEndsATransactionThatIsIdleForTooLong(t *testing.T) {
	url := databasetest.Postgres(t)
	stopped, err := database.OpenPostgres(t.Context(), url, 300*time.Millisecond)
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(stopped)) }()
	other, err := database.OpenPostgres(t.Context(), url, 20*time.Second)
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(other)) }()
	require.NoError(t, other.Exec("CREATE TABLE things (name TEXT PRIMARY KEY)").Error)
	require.NoError(t, other.Exec("INSERT INTO things VALUES ('a')").Error)

	open := stopped.Begin()
	require.NoError(t, open.Exec("UPDATE things SET name = 'b'").Error)
	// The other waits for the row's lock, and gets it although the first never ends its transaction.
	require.NoError(t, other.Exec("UPDATE things SET name = 'c'").Error)
	require.Error(t, open.Commit().Error)
	var name string
	require.NoError(t, other.Raw("SELECT name FROM things").Scan(&name).Error)
	require.Equal(t, "c", name)
}

func TestAnAddressThatIsWrongIsRefusedWithoutItsPassword(t *testing.T) {
	for _, dsn := range []string{"postgres://burano:swordfish@127.0.0.1:1/burano", "postgres://burano:swordfish@127.0.0.1:port/burano"} {
		_, err := database.OpenPostgres(t.Context(), dsn, time.Second)
		require.Error(t, err)
		require.NotContains(t, err.Error(), "swordfish")
	}
}

func TestLikeTakesWildcardsLiterally(t *testing.T) {
	require.Equal(t, `%50\%\_\\%`, database.Like(`50%_\`))
}

func TestAMigrationMayTakeLongerThanOtherStatements(t *testing.T) {
	db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), 200*time.Millisecond)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	require.ErrorContains(t, db.Exec("SELECT pg_sleep(1)").Error, "statement timeout")
	migrations := fstest.MapFS{"0001_things.sql": {Data: []byte("-- +goose Up\nSELECT pg_sleep(1);\nCREATE TABLE things (name TEXT PRIMARY KEY);\n")}}
	require.NoError(t, database.Schema{Owner: "things", Files: migrations}.Migrate(t.Context(), db))
	require.ErrorContains(t, db.Exec("SELECT pg_sleep(1)").Error, "statement timeout", "only migrations have the time")
}

func TestReadersWaitForNoWriterAndWriteNothing(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		db := open()
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		require.NoError(t, db.Exec("CREATE TABLE things (name TEXT PRIMARY KEY)").Error)
		require.NoError(t, db.Exec("INSERT INTO things VALUES ('a')").Error)
		reading := database.Reading(db.WithContext(t.Context()))
		names := func() (names []string) {
			require.NoError(t, reading.Table("things").Order("name").Pluck("name", &names).Error)
			return names
		}

		writing := db.Begin()
		require.NoError(t, writing.Exec("INSERT INTO things VALUES ('b')").Error)
		require.Equal(t, []string{"a"}, names(), "while another writes")
		rows, err := reading.Table("things").Rows()
		require.NoError(t, err)
		require.True(t, rows.Next())
		require.Equal(t, []string{"a"}, names(), "while another reads")
		require.NoError(t, writing.Commit().Error, "while somebody reads")
		require.NoError(t, rows.Close())
		require.Equal(t, []string{"a", "b"}, names(), "what was committed is read at once")

		if db.Name() != database.Postgres {
			require.ErrorContains(t, reading.Exec("INSERT INTO things VALUES ('c')").Error, "readonly")
		}
	})
}

func TestAWriterOfSQLiteWaitsForAnotherOneForLongerThanTenSeconds(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "burano.db")
	open := func() *gorm.DB {
		db, err := database.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		return db
	}
	one, other := open(), open()
	require.NoError(t, one.Exec("CREATE TABLE things (name TEXT)").Error)
	holding := one.Begin()
	require.NoError(t, holding.Exec("INSERT INTO things VALUES ('a')").Error)
	time.AfterFunc(11*time.Second, func() { _ = holding.Commit() })
	require.NoError(t, other.Exec("INSERT INTO things VALUES ('b')").Error)
	var count int64
	require.NoError(t, other.Table("things").Count(&count).Error)
	require.EqualValues(t, 2, count, "the other one's was written first")
}
