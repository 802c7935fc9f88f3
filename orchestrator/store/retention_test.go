package store_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/store"
)

// TestALogThatIsFullSaysSoAndTellsTheEnd writes many lines, and one that is long, over two takings of one task.
func TestALogThatIsFullSaysSoAndTellsTheEnd(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(t.Context(), db, nil, store.LimitLogs(store.LogLimits{Lines: 20, Bytes: 1 << 20}))
		require.NoError(t, err)
		e := environment(t, s, "one")
		_, task := deploy(t, s, e)
		hold := take(t, s)
		report := func(level, text string) {
			t.Helper()
			require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: level, Text: text}))
		}
		report("info", strings.Repeat("ü", 1<<20))
		for i := range 50 {
			report("info", fmt.Sprint("line ", i))
		}
		state, err := s.Tasks().State(t.Context(), task.ID)
		require.NoError(t, err)
		require.Zero(t, state.Counts)
		report("warning", "left out, but counted")
		state, err = s.Tasks().State(t.Context(), task.ID)
		require.NoError(t, err)
		require.EqualValues(t, 1, state.Counts.Warnings, "at once, because the state depends on it")
		require.NoError(t, hold.GiveBack(t.Context(), store.Report{Level: "info", Text: "given back"}))

		hold = take(t, s)
		report("info", "left out too")
		for range 30 {
			report("error", "an error")
		}
		failed, err := hold.Finish(t.Context(), store.Outcome{Result: store.Document{}})
		require.NoError(t, err)
		require.True(t, failed)
		state, err = s.Tasks().State(t.Context(), task.ID)
		require.NoError(t, err)
		require.Equal(t, store.Counts{Errors: 30, Warnings: 1}, state.Counts)
		rows, err := s.Reports().List(t.Context(), task.ID, 0, 0)
		require.NoError(t, err)
		said := map[string]int{}
		for i, row := range rows {
			require.EqualValues(t, i+1, row.Number)
			require.Less(t, len(row.Text), 300<<10)
			text, _, _ := strings.Cut(row.Text, ":")
			said[text]++
		}
		require.Equal(t, 1, said["This log is full"], "%v", said)
		require.Equal(t, 1, said["given back"])
		require.Positive(t, said["an error"], "why it failed")
		require.Less(t, len(rows), 30)
		require.True(t, strings.HasPrefix(rows[len(rows)-1].Text, "Deployment finished"), rows[len(rows)-1].Text)
	})
}

// TestWhatWasKeptForLongEnoughGoes sweeps a database in which everything is there in an old and in a new version.
func TestWhatWasKeptForLongEnoughGoes(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		var clock atomic.Int64 // hours
		s, err := store.New(t.Context(), db, func() time.Time { return time.Unix(clock.Load()*3600, 0) })
		require.NoError(t, err)
		e := environment(t, s, "one")
		const deployments = store.KeptDeployments + 15
		var ids []string
		for range deployments {
			clock.Add(1)
			_, task := deploy(t, s, e)
			hold := take(t, s)
			_, err = hold.StartStep(t.Context(), store.Step{ObjectID: "o", Name: "a step"})
			require.NoError(t, err)
			require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "warning", Text: "careful"}))
			require.NoError(t, hold.TrackInstance(t.Context(), store.InstanceStatistics{InstanceID: fmt.Sprint("i", len(ids)), Type: store.ServerInstance}))
			require.NoError(t, hold.UntrackInstance(t.Context(), fmt.Sprint("i", len(ids))))
			_, err = hold.Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}})
			require.NoError(t, err)
			ids = append(ids, task.ID)
		}
		clock.Add(1)
		draft, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
		require.NoError(t, err)
		require.NoError(t, s.Statistics().SaveRequests(t.Context(), store.RequestStatistics{Host: "old"}))
		before, err := s.Tasks().Page(t.Context(), e.ID, "", store.Page{})
		require.NoError(t, err)
		clock.Add(999)
		_, running := deploy(t, s, environment(t, s, "other"))

		swept, err := s.Expired().Sweep(t.Context(), store.Retention{}, s.Snapshots().DeleteSnapshot)
		require.NoError(t, err)
		require.Zero(t, swept, "0 keeps for ever")

		long := time.Hour * (1000 + deployments - 6) // the five oldest are older
		swept, err = s.Expired().Sweep(t.Context(), store.Retention{Reports: long}, s.Snapshots().DeleteSnapshot)
		require.NoError(t, err)
		require.EqualValues(t, 5*3, swept.Reports)
		after, err := s.Tasks().Page(t.Context(), e.ID, "", store.Page{})
		require.NoError(t, err)
		require.Equal(t, before, after, "states stay as they were without their reports")

		swept, err = s.Expired().Sweep(t.Context(), store.Retention{Deployments: time.Hour, Reports: time.Hour, Sessions: time.Hour, Statistics: time.Hour}, s.Snapshots().DeleteSnapshot)
		require.NoError(t, err)
		require.Equal(t, store.Swept{Deployments: 15, Reports: 10 * 3, Sessions: deployments - 1, Statistics: deployments + 1}, swept)
		left, _, err := s.Tasks().List(t.Context(), e.ID, "")
		require.NoError(t, err)
		require.Len(t, left, store.KeptDeployments)
		for i, task := range left {
			require.Equal(t, ids[deployments-1-i], task.ID, "the newest stay")
			reports, err := s.Reports().List(t.Context(), task.ID, 0, 0)
			require.NoError(t, err)
			require.Len(t, reports, 3)
			steps, err := s.Tasks().Steps(t.Context(), task.ID)
			require.NoError(t, err)
			require.Len(t, steps, 1)
		}
		_, err = s.Tasks().Get(t.Context(), running.ID)
		require.NoError(t, err)
		sessions, err := s.Sessions().List(t.Context(), e.ID)
		require.NoError(t, err)
		require.Len(t, sessions, 2)
		require.Equal(t, store.Deployed, sessions[0].State)
		require.Equal(t, draft.ID, sessions[1].ID)
		swept, err = s.Expired().Sweep(t.Context(), store.Retention{Deployments: time.Hour, Reports: time.Hour, Sessions: time.Hour, Statistics: time.Hour}, s.Snapshots().DeleteSnapshot)
		require.NoError(t, err)
		require.Zero(t, swept)
	})
}

// TestOneServerSweepsAtATime has another one that is in the middle of it.
func TestOneServerSweepsAtATime(t *testing.T) {
	db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	var clock atomic.Int64
	s, err := store.New(t.Context(), db, func() time.Time { return time.Unix(clock.Load()*3600, 0) })
	require.NoError(t, err)
	require.NoError(t, s.Statistics().SaveRequests(t.Context(), store.RequestStatistics{Host: "old"}))
	clock.Add(10)
	other := db.Begin()
	require.NoError(t, other.Exec("SELECT pg_advisory_xact_lock(?)", int64(store.SweepLock)).Error)
	swept, err := s.Expired().Sweep(t.Context(), store.Retention{Statistics: time.Hour}, s.Snapshots().DeleteSnapshot)
	require.NoError(t, err)
	require.Zero(t, swept)
	require.NoError(t, other.Commit().Error)
	swept, err = s.Expired().Sweep(t.Context(), store.Retention{Statistics: time.Hour}, s.Snapshots().DeleteSnapshot)
	require.NoError(t, err)
	require.EqualValues(t, 1, swept.Statistics)
}
