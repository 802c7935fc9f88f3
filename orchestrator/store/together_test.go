package store_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/burano/burano/orchestrator/store"
)

// Two tasks write at the same time, and one of them was taken over: its writes are refused, and the other's are complete.
func writesThatComeTogether(t *testing.T, s *store.Store) {
	lost := environment(t, s, "lost")
	deploy(t, s, lost)
	former := take(t, s)
	require.NoError(t, s.Tasks().EndLeases(t.Context()))
	_, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "other", Lease: time.Minute})
	require.NoError(t, err)
	held := environment(t, s, "held")
	deploy(t, s, held)
	hold := take(t, s)
	require.Equal(t, held.ID, hold.Task().EnvironmentID)

	const many = 200
	var group errgroup.Group
	for i := range many {
		group.Go(func() error {
			id, err := hold.StartStep(t.Context(), store.Step{ObjectID: "o", Class: "c", Name: fmt.Sprint(i)})
			if err != nil {
				return err
			}
			if err := hold.AddReport(t.Context(), store.Report{Level: "info", Text: fmt.Sprint(i)}); err != nil {
				return err
			}
			return hold.EndStep(t.Context(), id, "")
		})
		if i%20 == 0 {
			group.Go(func() error {
				if err := former.SetSecret(t.Context(), "s", "v"); !errors.Is(err, store.ErrFenced) {
					return fmt.Errorf("a former worker was not refused: %w", err)
				}
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	reports, err := s.Reports().List(t.Context(), hold.Task().ID, 0, 0)
	require.NoError(t, err)
	require.Len(t, reports, many+1, "with that of the submission")
	for i, report := range reports {
		require.EqualValues(t, i+1, report.Number)
	}
	steps, err := s.Tasks().Steps(t.Context(), hold.Task().ID)
	require.NoError(t, err)
	require.Len(t, steps, many)
	for _, step := range steps {
		require.NotNil(t, step.Finished)
	}
}
