package orchestrator_test

import (
	"cmp"
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

func TestAnEnvironmentThatIsDeletedWhileItIsReadIsNeverReady(t *testing.T) {
	whileDeleted(t, func(s *orchestrator.Service) (string, error) {
		seen, err := s.Environments().Get(t.Context(), reader, "e", "")
		return seen.Status, err
	})
}

func TestAPageOfEnvironmentsShowsNoneAsReadyThatIsDeletedWhileItIsRead(t *testing.T) {
	whileDeleted(t, func(s *orchestrator.Service) (string, error) {
		page, next, err := s.Environments().Page(t.Context(), reader, orchestrator.ListOptions{}, store.Page{Limit: 1, Sort: []store.Sort{{Key: "name"}}})
		if err != nil {
			return "", err
		}
		require.Len(t, page, 1, "the page is full")
		if page[0].ID == "f" {
			require.Empty(t, next)
			return "", fault.New(fault.NotFound, "it is gone")
		}
		require.Equal(t, "e", next)
		return page[0].Status, nil
	})
}

func TestAListOfEnvironmentsShowsNoneAsReadyThatIsDeletedWhileItIsRead(t *testing.T) {
	whileDeleted(t, func(s *orchestrator.Service) (string, error) {
		list, err := s.Environments().List(t.Context(), reader, orchestrator.ListOptions{})
		for _, one := range list {
			if one.ID == "e" {
				return one.Status, nil
			}
		}
		return "", cmp.Or(err, fault.New(fault.NotFound, "it is gone"))
	})
}

// whileDeleted has the deletion of the environment "e" end after each query that reading its status makes, in turn. There is a second
// environment, "f".
func whileDeleted(t *testing.T, read func(*orchestrator.Service) (status string, err error)) {
	t.Helper()
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	rows, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	s := orchestrator.New(orchestrator.Config{Store: rows, Logger: slog.New(slog.DiscardHandler)})
	left := 0 // queries until the deletion ends
	ends := func(*gorm.DB) {
		if left--; left == 0 {
			require.NoError(t, rows.Environments().Remove(context.WithoutCancel(t.Context()), "e", ""))
		}
	}
	require.NoError(t, db.Callback().Query().After("gorm:query").Register("test:deletion ends", ends))
	require.NoError(t, db.Callback().Row().After("gorm:row").Register("test:deletion ends", ends))
	e := store.Environment{ID: "f", ProjectID: listed, Name: "f", Model: store.Model{Objects: objects("f")}}
	require.NoError(t, rows.Environments().Create(t.Context(), &e))

	for after, ended := 1, true; ended; after++ {
		left = 0
		e := store.Environment{ID: "e", ProjectID: listed, Name: "e", Model: store.Model{Objects: objects("e")}}
		require.NoError(t, rows.Environments().Create(t.Context(), &e))
		_, err := rows.Tasks().SubmitDeletion(t.Context(), "e", "u", store.Submission{})
		require.NoError(t, err)
		left = after
		status, err := read(s)
		ended, left = left <= 0, 0
		if !ended {
			require.NoError(t, rows.Environments().Remove(t.Context(), "e", ""))
		}
		if err != nil {
			require.Equal(t, fault.NotFound, fault.KindOf(err), "%v", err)
			continue
		}
		require.Equal(t, "deleting", status, "the deletion ended after query %d", after)
	}
}
