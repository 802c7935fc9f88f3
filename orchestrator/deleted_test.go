package orchestrator_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// TestAnEnvironmentThatIsDeletedWhileItIsReadIsNeverReady has the deletion end after each query that reading makes, in turn.
func TestAnEnvironmentThatIsDeletedWhileItIsReadIsNeverReady(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	rows, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	s := orchestrator.New(orchestrator.Config{Store: rows, Logger: slog.New(slog.DiscardHandler)})
	left := 0 // queries until the deletion ends
	ends := func(*gorm.DB) {
		if left--; left == 0 {
			require.NoError(t, rows.RemoveEnvironment(context.WithoutCancel(t.Context()), "e"))
		}
	}
	require.NoError(t, db.Callback().Query().After("gorm:query").Register("test:deletion ends", ends))

	for after, ended := 1, true; ended; after++ {
		left = 0
		e := store.Environment{ID: "e", ProjectID: listed, Name: "e", Model: store.Model{Objects: objects("e")}}
		require.NoError(t, rows.CreateEnvironment(t.Context(), &e))
		_, err := rows.SubmitDeletion(t.Context(), "e", "u", store.Submission{})
		require.NoError(t, err)
		left = after
		seen, err := s.Environment(t.Context(), reader, "e", "")
		ended, left = left <= 0, 0
		if !ended {
			require.NoError(t, rows.RemoveEnvironment(t.Context(), "e"))
		}
		if err != nil {
			require.Equal(t, fault.NotFound, fault.KindOf(err), "%v", err)
			continue
		}
		require.Equal(t, "deleting", seen.Status, "the deletion ended after query %d", after)
	}
}
