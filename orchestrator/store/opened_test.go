package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/store"
)

// The test submits a draft whose models were read before, and writes the rows of a task.
func TestATaskOpensNoModelThatWasOpenedAlready(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	sealer := &plainSealer{}
	s, err := store.New(t.Context(), db, nil, store.Sealed(sealer), store.Alone())
	require.NoError(t, err)
	require.NoError(t, s.Environments().Create(t.Context(), &store.Environment{ID: "e", ProjectID: "p", Name: "e", Model: store.Model{Objects: large(100)}}))
	look := func() store.Environment {
		t.Helper()
		environment, err := s.Environments().Peek(t.Context(), "e")
		require.NoError(t, err)
		return environment
	}
	seen := look()
	opens := func(want int64, do func()) {
		t.Helper()
		before := sealer.opened.Load()
		do()
		require.Equal(t, want, sealer.opened.Load()-before)
	}
	var draft store.Session
	opens(0, func() {
		draft, err = s.Sessions().Open(t.Context(), "e", store.Holder{ID: "u"})
		require.NoError(t, err)
	})
	_, err = s.Sessions().Peek(t.Context(), draft.ID)
	require.NoError(t, err)
	opens(0, func() {
		_, err = s.Tasks().Submit(t.Context(), store.Submission{SessionID: draft.ID, Action: store.Action{ObjectID: "e", Method: "deploy"}})
		require.NoError(t, err)
	})
	hold := take(t, s)
	copied := map[string]any{"?": map[string]any{"id": "e"}}
	opens(0, func() { require.NoError(t, hold.SaveObjectsCopy(t.Context(), copied, nil)) })
	require.Equal(t, copied, look().Model.ObjectsCopy)
	opens(0, func() {
		_, err = hold.Finish(t.Context(), store.Outcome{Objects: map[string]any{"name": "made"}, ObjectsCopy: copied})
		require.NoError(t, err)
	})
	require.Equal(t, map[string]any{"name": "made"}, look().Model.Objects)
	require.Equal(t, large(100)["services"], seen.Model.Objects["services"], "what is shared was changed")
	require.Nil(t, seen.Model.ObjectsCopy)
}

// The test counts opened models, over PostgreSQL too, where another server changes the model in between.
func TestAModelThatIsLookedAtAgainIsOpenedOnce(t *testing.T) {
	looks := func(t *testing.T, s, other *store.Store, sealer *plainSealer) {
		e := store.Environment{ID: "e", ProjectID: "p", Name: "e", Model: store.Model{Objects: large(100)}}
		require.NoError(t, s.Environments().Create(t.Context(), &e))
		draft, err := s.Sessions().Open(t.Context(), "e", store.Holder{ID: "u"})
		require.NoError(t, err)
		look := func(applications int) (opened int64) {
			t.Helper()
			before := sealer.opened.Load()
			row, err := s.Sessions().Peek(t.Context(), draft.ID)
			require.NoError(t, err)
			require.Len(t, row.Model.Objects["services"], applications)
			environment, err := s.Environments().Peek(t.Context(), "e")
			require.NoError(t, err)
			require.Len(t, environment.Model.Objects["services"], 100)
			return sealer.opened.Load() - before
		}
		require.Positive(t, look(100))
		for range 10 {
			require.Zero(t, look(100))
		}
		require.NoError(t, other.Sessions().Edit(t.Context(), draft.ID, func(model *store.Model) error {
			services := model.Objects["services"].([]any)
			model.Objects["services"] = append(services, services[0])
			return nil
		}))
		require.Positive(t, look(101), "what was written since is read")
		require.Zero(t, look(101))
		own, err := s.Sessions().Get(t.Context(), draft.ID)
		require.NoError(t, err)
		own.Model.Objects["services"] = nil // it may be changed
		look(101)
		sessions, err := s.Sessions().PeekList(t.Context(), "e")
		require.NoError(t, err)
		require.Len(t, sessions, 1)
		require.NoError(t, other.Sessions().Delete(t.Context(), draft.ID))
		sessions, err = s.Sessions().PeekList(t.Context(), "e")
		require.NoError(t, err)
		require.Empty(t, sessions)
		_, err = s.Sessions().Peek(t.Context(), draft.ID)
		require.ErrorIs(t, err, store.ErrNotFound)
	}
	t.Run("the only server", func(t *testing.T) {
		db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		sealer := &plainSealer{}
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer), store.Alone())
		require.NoError(t, err)
		looks(t, s, s, sealer)
	})
	t.Run("one of two servers", func(t *testing.T) {
		url := databasetest.Postgres(t)
		sealer := &plainSealer{}
		open := func() *store.Store {
			db, err := database.OpenPostgres(t.Context(), url, 10*time.Second)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, database.Close(db)) })
			s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
			require.NoError(t, err)
			return s
		}
		looks(t, open(), open(), sealer)
	})
}
