package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
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

func TestAServerWithAnotherKeyIsRefused(t *testing.T) {
	folder := t.TempDir()
	db, err := serveOptions{state: folder}.open(t.Context())
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
