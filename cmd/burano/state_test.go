package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/cmd/burano/server"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

func TestAStateFolderServesOneServerAtATime(t *testing.T) {
	folder := t.TempDir()
	release, err := server.LockState(folder)
	require.NoError(t, err)
	_, err = server.LockState(folder)
	require.ErrorContains(t, err, folder)
	require.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()))
	require.ErrorContains(t, err, "--state")
	require.NoError(t, release())
	release, err = server.LockState(folder)
	require.NoError(t, err)
	require.NoError(t, release())
}

func TestAServerWithAnotherKeyIsRefused(t *testing.T) {
	folder := t.TempDir()
	db, err := (&server.Options{State: folder}).OpenDatabase(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(db)) }()
	rows, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	first, err := secret.Open(filepath.Join(folder, "first"))
	require.NoError(t, err)
	require.NoError(t, server.CheckKey(t.Context(), rows, first))
	require.NoError(t, server.CheckKey(t.Context(), rows, first))
	second, err := secret.Open(filepath.Join(folder, "second"))
	require.NoError(t, err)
	require.ErrorContains(t, server.CheckKey(t.Context(), rows, second), "secret.key")
}

// A server that was stopped in the middle of a transaction holds its locks for less than its lease: the server that takes its tasks over waits for
// nothing.
func TestAStoppedServerLosesItsTransactionBeforeItsLease(t *testing.T) {
	options := server.Options{Database: databasetest.Postgres(t), Lease: server.MinLease}
	open := func() *gorm.DB {
		db, err := options.OpenDatabase(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		return db
	}
	stopped, other := open(), open()
	require.NoError(t, other.Exec("CREATE TABLE things (name TEXT PRIMARY KEY)").Error)
	require.NoError(t, other.Exec("INSERT INTO things VALUES ('a')").Error)
	transaction := stopped.Begin()
	require.NoError(t, transaction.Exec("UPDATE things SET name = 'b'").Error)
	lease, cancel := context.WithTimeout(t.Context(), options.Lease)
	defer cancel()
	for {
		err := other.WithContext(lease).Exec("UPDATE things SET name = 'c'").Error
		if err == nil {
			break
		}
		require.NoError(t, lease.Err(), "the row was locked for the whole lease: %v", err) // its own wait for the lock has a limit too
	}
	require.Error(t, transaction.Commit().Error)
}
