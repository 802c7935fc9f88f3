package database_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
)

// TestADatabaseThatCrashesIsWaitedForAndEachTransactionIsDoneOnce counts in transactions and reads, while PostgreSQL crashes again and again.
func TestADatabaseThatCrashesIsWaitedForAndEachTransactionIsDoneOnce(t *testing.T) {
	server := databasetest.Start(t)
	db, err := database.OpenPostgres(t.Context(), server.URL, 15*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	tables := fstest.MapFS{"0001_things.sql": {Data: []byte("-- +goose Up\nCREATE TABLE counts (writer INTEGER PRIMARY KEY, count INTEGER NOT NULL);\n" +
		"CREATE TABLE commits (id TEXT PRIMARY KEY, written BIGINT NOT NULL);\n")}}
	ledger := database.NewLedger("commits")
	require.NoError(t, database.Schema{Owner: "things", Files: tables}.Migrate(t.Context(), db))

	const writers = 4
	ending := make(chan struct{})
	var done [writers]int
	var reads atomic.Int64
	group, working := errgroup.WithContext(t.Context())
	for writer := range writers {
		require.NoError(t, db.Exec("INSERT INTO counts VALUES (?, 0)", writer).Error)
		group.Go(func() error {
			for {
				select {
				case <-ending:
					return nil
				default:
				}
				err := database.Transaction(db.WithContext(t.Context()), ledger, func(tx *gorm.DB) error {
					return tx.Exec("UPDATE counts SET count = count + 1 WHERE writer = ?", writer).Error
				})
				if err != nil {
					return err
				}
				done[writer]++
				var count int
				if err := database.Reading(db.WithContext(t.Context())).Table("counts").Select("count").Where("writer = ?", writer).Scan(&count).Error; err != nil {
					return err
				}
				reads.Add(1)
			}
		})
	}
	for range 8 {
		before := reads.Load()
		require.Eventually(t, func() bool { return working.Err() != nil || reads.Load() > before+200 }, time.Minute, time.Millisecond)
		server.Crash()
	}
	close(ending)
	require.NoError(t, group.Wait())
	for writer, wanted := range done {
		var count int
		require.NoError(t, db.Raw("SELECT count FROM counts WHERE writer = ?", writer).Scan(&count).Error)
		require.Equal(t, wanted, count, "each transaction counts once")
	}
	var entries int64
	require.NoError(t, db.Table("commits").Count(&entries).Error)
	require.Less(t, entries, int64(100), "the ledger stays small")
	require.NoError(t, ledger.Sweep(db))
}

func TestTheEndOfTheContextEndsTheWaitForADatabaseThatIsAway(t *testing.T) {
	server := databasetest.Start(t)
	db, err := database.OpenPostgres(t.Context(), server.URL, time.Minute)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	server.Stop()
	cancelled := errors.New("it was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(cancelled) })
	var one int
	require.Error(t, db.WithContext(ctx).Raw("SELECT 1").Scan(&one).Error)
	require.Error(t, database.Transaction(db.WithContext(ctx), nil, func(tx *gorm.DB) error { return tx.Exec("SELECT 1").Error }))
	server.Begin()
	require.NoError(t, db.WithContext(t.Context()).Raw("SELECT 1").Scan(&one).Error)
}
