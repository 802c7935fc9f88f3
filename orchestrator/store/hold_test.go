package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/store"
)

// writes are all that a task can write, by name.
func writes(hold *store.Hold, t interface{ Context() context.Context }) map[string]error {
	ctx := t.Context()
	step, start := hold.StartStep(ctx, store.Step{ObjectID: "a", Class: "c", Name: "n"})
	_, renewal := hold.Renew(ctx, time.Minute)
	return map[string]error{
		"report":       hold.AddReport(ctx, store.Report{Level: "info", Text: "x"}),
		"step":         start,
		"step's end":   hold.EndStep(ctx, step, ""),
		"attribute":    hold.SetAttribute(ctx, "a", "c", "n", 1),
		"no attribute": hold.SetAttribute(ctx, "a", "c", "n", nil),
		"attributes":   hold.RemoveAttributes(ctx, "a", ""),
		"secret":       hold.SetSecret(ctx, "n", "v"),
		"copy":         hold.SaveObjectsCopy(ctx, map[string]any{}, nil),
		"renewal":      renewal,
	}
}

func TestLookingForATaskThatIsNotThereWaitsForNoWriter(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	s := open(t, db)
	environment(t, s, "one")
	writing := db.Begin()
	require.NoError(t, writing.Error)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // a caller that waits for a writer waits for minutes
	defer cancel()
	_, _, err = s.Tasks().Take(ctx, store.Taking{Worker: "w1", Lease: time.Minute})
	require.ErrorIs(t, err, store.ErrNotFound)
	require.NoError(t, writing.Rollback().Error)
}

func losersWriteNothing(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	deploy(t, s, e)
	first := take(t, s)
	for name, err := range writes(first, t) {
		require.NoError(t, err, name)
	}
	_, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w2", Lease: time.Minute})
	require.ErrorIs(t, err, store.ErrNotFound, "it is held")
	require.NoError(t, s.Tasks().EndLeases(t.Context()))
	second, before, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w2", Lease: time.Minute})
	require.NoError(t, err)
	require.Equal(t, "w1", before.Worker)
	require.EqualValues(t, 1, second.Task().Deaths)
	require.Greater(t, second.Fence(), first.Fence())
	refused := func(hold *store.Hold) {
		t.Helper()
		for name, err := range writes(hold, t) {
			require.ErrorIs(t, err, store.ErrFenced, name)
		}
		_, err := hold.Finish(t.Context(), store.Outcome{})
		require.ErrorIs(t, err, store.ErrFenced)
		require.ErrorIs(t, hold.GiveBack(t.Context(), store.Report{Level: "info", Text: "x"}), store.ErrFenced)
	}
	refused(first)
	require.NoError(t, second.GiveBack(t.Context(), store.Report{Level: "info", Text: "given back"}))
	refused(second)
	third := take(t, s)
	require.EqualValues(t, 1, third.Task().Deaths, "giving back is not dying")
	_, err = third.Finish(t.Context(), store.Outcome{Objects: map[string]any{}})
	require.NoError(t, err)
	refused(third)

	deploy(t, s, e)
	fourth := take(t, s)
	require.Greater(t, fourth.Fence(), third.Fence(), "the number grows from task to task of an environment")
	require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
	for name, err := range writes(fourth, t) {
		require.ErrorIs(t, err, store.ErrNotFound, name)
	}
}

// TestALeaseIsHeldByOneAtATime does random things with workers that may die at any instant, over a clock that only goes forward.
// A worker within its lease is never disturbed, and of two holds of a task only the later one can write.
func TestALeaseIsHeldByOneAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "burano.db")
	db, err := database.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s, err := store.New(t.Context(), db, func() time.Time { return now })
	require.NoError(t, err)
	const length = 30 * time.Second

	type holding struct {
		hold  *store.Hold
		until time.Time
	}
	rapid.Check(t, func(r *rapid.T) {
		var environments []string
		for range rapid.IntRange(1, 3).Draw(r, "environments") {
			e := environment(t, s, store.NewID())
			environments = append(environments, e.ID)
			deploy(t, s, e)
		}
		latest := map[string]*holding{} // by environment
		var former []*store.Hold
		last := map[string]uint64{}
		r.Repeat(map[string]func(*rapid.T){
			"time passes": func(r *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 20).Draw(r, "seconds")) * time.Second)
			},
			"somebody takes a task": func(r *rapid.T) {
				hold, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(r, "worker"), Lease: length})
				if errors.Is(err, store.ErrNotFound) {
					for id, h := range latest {
						require.True(r, h != nil && now.Before(h.until), "environment %s has a task that nobody holds", id)
					}
					return
				}
				require.NoError(r, err)
				id := hold.Task().EnvironmentID
				if h := latest[id]; h != nil {
					require.False(r, now.Before(h.until), "it was held")
					former = append(former, h.hold)
				}
				require.Greater(r, hold.Fence(), last[id])
				last[id], latest[id] = hold.Fence(), &holding{hold, now.Add(length)}
			},
			"a holder renews its lease": func(r *rapid.T) {
				id := rapid.SampledFrom(environments).Draw(r, "environment")
				if h := latest[id]; h != nil {
					_, err := h.hold.Renew(t.Context(), length)
					require.NoError(r, err)
					h.until = now.Add(length)
				}
			},
			"a holder writes": func(r *rapid.T) {
				id := rapid.SampledFrom(environments).Draw(r, "environment")
				if h := latest[id]; h != nil {
					require.NoError(r, h.hold.SetAttribute(t.Context(), "a", "c", "n", 1))
				}
			},
			"a holder gives its task back": func(r *rapid.T) {
				id := rapid.SampledFrom(environments).Draw(r, "environment")
				if h := latest[id]; h != nil {
					require.NoError(r, h.hold.GiveBack(t.Context(), store.Report{Level: "info", Text: "back"}))
					former, latest[id] = append(former, h.hold), nil
				}
			},
			"a former holder writes": func(r *rapid.T) {
				if len(former) > 0 {
					hold := rapid.SampledFrom(former).Draw(r, "hold")
					require.ErrorIs(r, hold.SetAttribute(t.Context(), "a", "c", "n", 2), store.ErrFenced)
					_, err := hold.Renew(t.Context(), length)
					require.ErrorIs(r, err, store.ErrFenced)
				}
			},
		})
		for _, id := range environments {
			require.NoError(r, s.Environments().Remove(t.Context(), id, ""))
		}
	})
}
