package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

func TestAStateFolderServesOneServerAtATime(t *testing.T) {
	folder := t.TempDir()
	release, err := lockState(folder)
	require.NoError(t, err)
	_, err = lockState(folder)
	require.ErrorContains(t, err, folder)
	require.ErrorContains(t, err, fmt.Sprintf("process %d", os.Getpid()))
	require.ErrorContains(t, err, "--state")
	require.NoError(t, release())
	release, err = lockState(folder)
	require.NoError(t, err)
	require.NoError(t, release())
}

func TestWhatAKilledServerHasLeftIsGoneWithTheNextStart(t *testing.T) {
	state := t.TempDir()
	left := filepath.Join(state, "temporary-files", "check-1", "etcd-1")
	require.NoError(t, os.MkdirAll(left, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(left, "db"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(state, "temporary-files", "snapshot-1"), []byte("secret"), 0o600))
	release, err := lockState(state)
	require.NoError(t, err)
	listen := freeAddress(t)
	second, _ := servingIn(t, state, freeAddress(t), listen)
	require.Error(t, second.Wait())
	require.FileExists(t, filepath.Join(left, "db"), "it is the server's that has the folder")
	require.NoError(t, release())
	server, log := servingIn(t, state, freeAddress(t), listen)
	require.Eventually(t, func() bool { status, _ := get("http://" + listen + "/healthz"); return status == 200 }, time.Minute, 20*time.Millisecond, "%s", log())
	found, err := os.ReadDir(filepath.Join(state, "temporary-files"))
	require.NoError(t, err)
	require.Empty(t, found)
	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
}

func TestAServerWithAnotherKeyIsRefused(t *testing.T) {
	folder := t.TempDir()
	db, err := (&serveOptions{state: folder}).openDatabase(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, database.Close(db)) }()
	rows, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	first, err := secret.Open(filepath.Join(folder, "first"))
	require.NoError(t, err)
	require.NoError(t, checkKey(t.Context(), rows, first))
	require.NoError(t, checkKey(t.Context(), rows, first))
	second, err := secret.Open(filepath.Join(folder, "second"))
	require.NoError(t, err)
	require.ErrorContains(t, checkKey(t.Context(), rows, second), "secret.key")
}

// A server that was stopped in the middle of a transaction holds its locks for less than its lease: the server that takes its tasks over waits for
// nothing.
func TestAStoppedServerLosesItsTransactionBeforeItsLease(t *testing.T) {
	options := serveOptions{database: databasetest.Postgres(t), lease: minLease}
	open := func() *gorm.DB {
		db, err := options.openDatabase(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		return db
	}
	stopped, other := open(), open()
	require.NoError(t, other.Exec("CREATE TABLE things (name TEXT PRIMARY KEY)").Error)
	require.NoError(t, other.Exec("INSERT INTO things VALUES ('a')").Error)
	transaction := stopped.Begin()
	require.NoError(t, transaction.Exec("UPDATE things SET name = 'b'").Error)
	lease, cancel := context.WithTimeout(t.Context(), options.lease)
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
