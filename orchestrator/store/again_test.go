package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/store"
)

// A task writes and reads all kinds of a task's rows while the database crashes again and again. Nothing fails, is lost or is there twice, and the hold
// remains.
func TestATaskGoesOnWhenPostgreSQLCrashesWithinItsLease(t *testing.T) {
	server := databasetest.Start(t)
	db, err := database.OpenPostgres(t.Context(), server.URL, 15*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	s := open(t, db)
	deploy(t, s, environment(t, s, "one"))
	hold := take(t, s)

	const writers = 4
	ending := make(chan struct{})
	var rounds atomic.Int64
	var reports [writers]int
	group, working := errgroup.WithContext(t.Context())
	for writer := range writers {
		group.Go(func() error {
			object := fmt.Sprintf("object%d", writer)
			for round := 0; ; round++ {
				select {
				case <-ending:
					reports[writer] = round
					return nil
				default:
				}
				if err := hold.AddReport(t.Context(), store.Report{Level: "info", Text: fmt.Sprintf("%d of %d", round, writer)}); err != nil {
					return err
				}
				if err := hold.SetAttribute(t.Context(), object, "class", "round", round); err != nil {
					return err
				}
				step, err := hold.StartStep(t.Context(), store.Step{ObjectID: object, Name: fmt.Sprint(round)})
				if err != nil {
					return err
				}
				if err := hold.EndStep(t.Context(), step, ""); err != nil {
					return err
				}
				if _, err := hold.Renew(t.Context(), time.Minute); err != nil {
					return err
				}
				value, _, err := s.Attributes().Get(t.Context(), hold.Task().EnvironmentID, object, "class", "round")
				if err != nil {
					return err
				}
				if fmt.Sprint(value) != fmt.Sprint(round) {
					return fmt.Errorf("round %d is %v in the database", round, value)
				}
				rounds.Add(1)
			}
		})
	}
	for range 5 {
		before := rounds.Load()
		require.Eventually(t, func() bool { return working.Err() != nil || rounds.Load() > before+20 }, time.Minute, time.Millisecond)
		server.Crash()
	}
	close(ending)
	require.NoError(t, group.Wait())
	wanted := map[string]int{}
	for writer, count := range reports {
		for round := range count {
			wanted[fmt.Sprintf("%d of %d", round, writer)] = 1
		}
	}
	var texts []string
	require.NoError(t, db.Table("reports").Where("task_id = ? AND number > 1", hold.Task().ID).Pluck("text", &texts).Error)
	got := map[string]int{}
	for _, text := range texts {
		got[text]++
	}
	require.Equal(t, wanted, got)
}
