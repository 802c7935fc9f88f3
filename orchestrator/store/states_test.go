package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/orchestrator/store"
)

// finished deploys an environment to a model with this name.
func finished(t *testing.T, s *store.Store, e store.Environment, name string, failed bool) {
	t.Helper()
	deploy(t, s, e)
	model := map[string]any{"?": map[string]any{"id": e.ID, "type": "io.murano.Environment"}, "name": name, "count": int64(3)}
	_, err := take(t, s).Finish(t.Context(), store.Outcome{Failed: failed, Result: store.Document{}, Objects: store.ForAPI(model), ObjectsCopy: model,
		Packages: map[string][]string{"io.murano": {"1.0.0"}}})
	require.NoError(t, err)
}

func TestAStateIsKeptOfEachDeploymentThatChangesSomething(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		e := environment(t, s, "one")
		for _, one := range []struct {
			name   string
			failed bool
		}{{"a", false}, {"a", false}, {"b", true}, {"c", false}} {
			finished(t, s, e, one.name, one.failed)
		}
		states := s.States()
		list, err := states.List(t.Context(), e.ID)
		require.NoError(t, err)
		require.Len(t, list, 2)
		require.EqualValues(t, 2, list[0].Number)
		require.Empty(t, list[0].Model, "lists read no model")
		require.Equal(t, []store.PackagePart{{Name: "io.murano", Version: "1.0.0"}}, list[0].Parts.Packages)
		first, err := states.State(t.Context(), e.ID, 1)
		require.NoError(t, err)
		model, err := first.Content()
		require.NoError(t, err)
		require.Equal(t, "a", model.ObjectsCopy["name"])
		require.Equal(t, int64(3), model.ObjectsCopy["count"])
		_, err = states.State(t.Context(), e.ID, 3)
		require.ErrorIs(t, err, store.ErrNotFound)

		require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
		list, err = states.List(t.Context(), e.ID)
		require.NoError(t, err)
		require.Empty(t, list)
	})
}

// TestTheStateOfBeforeThereWasAHistoryIsKept looks at an environment that a former version has deployed: it has no states.
func TestTheStateOfBeforeThereWasAHistoryIsKept(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		e := environment(t, s, "one")
		finished(t, s, e, "before", false)
		require.NoError(t, db.Exec("DELETE FROM states").Error)
		require.NoError(t, db.Exec("UPDATE tasks SET origin = ''").Error)
		tasks, _, err := s.Tasks().List(t.Context(), e.ID, "")
		require.NoError(t, err)
		require.Zero(t, tasks[0].Origin)
		finished(t, s, e, "after", true)
		states := s.States()
		list, err := states.List(t.Context(), e.ID)
		require.NoError(t, err)
		require.Len(t, list, 1)
		row, err := states.State(t.Context(), e.ID, 1)
		require.NoError(t, err)
		model, err := row.Content()
		require.NoError(t, err)
		require.Equal(t, "before", model.ObjectsCopy["name"])
		require.Equal(t, "u1", row.Origin.UserID)
	})
}

func TestOldStatesGoAndTheNewestStays(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		one, two := environment(t, s, "one"), environment(t, s, "two")
		for i := range 6 {
			finished(t, s, one, fmt.Sprint(i), false)
		}
		finished(t, s, two, "only", false)
		states := s.States()
		numbers := func(e store.Environment) (numbers []int64) {
			list, err := states.List(t.Context(), e.ID)
			require.NoError(t, err)
			for _, row := range list {
				numbers = append(numbers, row.Number)
			}
			return numbers
		}
		sweep := func(keep store.Retention) int64 {
			swept, err := s.Expired().Sweep(t.Context(), keep, nil)
			require.NoError(t, err)
			return swept.States
		}
		require.Zero(t, sweep(store.Retention{Deployments: time.Hour}))
		require.EqualValues(t, 2, sweep(store.Retention{States: 4}))
		require.Equal(t, []int64{6, 5, 4, 3}, numbers(one))
		list, err := states.List(t.Context(), one.ID)
		require.NoError(t, err)
		require.EqualValues(t, 2, sweep(store.Retention{States: 9, StateBytes: list[0].Bytes + list[1].Bytes}))
		require.EqualValues(t, 1, sweep(store.Retention{StateBytes: 1}))
		require.Equal(t, []int64{6}, numbers(one))
		require.Equal(t, []int64{1}, numbers(two))
		finished(t, s, one, "next", false)
		require.Equal(t, []int64{7, 6}, numbers(one), "numbers do not come again")
	})
}

func TestARefusedEditIsDiscarded(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		e := environment(t, s, "one")
		finished(t, s, e, "deployed", false)
		states := s.States()
		discarded, err := states.Discard(t.Context(), e.ID)
		require.NoError(t, err)
		require.False(t, discarded)

		session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
		require.NoError(t, err)
		require.NoError(t, s.Sessions().Edit(t.Context(), session.ID, func(model *store.Model) error { model.Objects["name"] = "refused"; return nil }))
		_, err = s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"}, Text: "deploy"})
		require.NoError(t, err)
		_, err = states.Discard(t.Context(), e.ID)
		require.ErrorIs(t, err, store.ErrBusy)
		hold := take(t, s)
		require.NoError(t, hold.Begin(t.Context()))
		_, err = hold.Finish(t.Context(), store.Outcome{Failed: true, Result: store.Document{}})
		require.NoError(t, err)
		stale, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
		require.NoError(t, err)
		discarded, err = states.Discard(t.Context(), e.ID)
		require.NoError(t, err)
		require.True(t, discarded)
		row, err := s.Environments().Get(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, "deployed", row.Model.Objects["name"])
		require.ErrorIs(t, s.Sessions().Edit(t.Context(), stale.ID, func(*store.Model) error { return nil }), store.ErrStale, "a draft of the refused edit is out of date")
	})
}
