package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/orchestrator/store"
)

func TestTheLoadIsWhatWaitsRunsAndHasLostItsServer(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		load := func() store.Load {
			t.Helper()
			load, err := s.Tasks().Load(t.Context())
			require.NoError(t, err)
			return load
		}
		require.Zero(t, load())
		deploy(t, s, environment(t, s, "one"))
		deploy(t, s, environment(t, s, "two"))
		require.NoError(t, db.Exec("UPDATE tasks SET created = created - 60000000 WHERE environment_id IN (SELECT id FROM environments WHERE name = 'two')").Error)
		now := load()
		require.EqualValues(t, 2, now.Waiting)
		require.InDelta(t, time.Minute, now.Oldest, float64(30*time.Second))
		take(t, s)
		now = load()
		require.EqualValues(t, []int64{1, 1, 0}, []int64{now.Waiting, now.Running, now.Overdue})
		require.NoError(t, s.Tasks().EndLeases(t.Context()))
		require.EqualValues(t, 1, load().Overdue)
	})
}
