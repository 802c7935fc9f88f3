package store_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/store"
)

// TestARememberedListIsTheOneOfTheDatabase lists after each kind of write, through a store that remembers and one that does not.
func TestARememberedListIsTheOneOfTheDatabase(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	plain, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	s, err := store.New(t.Context(), db, nil, store.Alone())
	require.NoError(t, err)
	var statements atomic.Int64
	require.NoError(t, database.Observe(db, func(string, time.Duration, bool) { statements.Add(1) }))
	same := func(after string) {
		for _, project := range []string{"p1", "p2", ""} {
			environments, sessions, err := plain.Environments().List(t.Context(), project)
			require.NoError(t, err)
			gotten, theirs, err := s.Environments().List(t.Context(), project)
			require.NoError(t, err)
			require.Equal(t, environments, gotten, "%s, project %q", after, project)
			require.Equal(t, sessions, theirs, "%s, project %q", after, project)
			before := statements.Load()
			_, _, err = s.Environments().List(t.Context(), project)
			require.NoError(t, err)
			require.Equal(t, before, statements.Load(), "%s: the list is not remembered", after)
		}
	}
	same("nothing")
	e := environment(t, s, "one")
	same("create")
	_, err = s.Environments().Rename(t.Context(), e.ID, "other")
	require.NoError(t, err)
	same("rename")
	draft, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
	require.NoError(t, err)
	same("open a session")
	require.NoError(t, s.Sessions().Edit(t.Context(), draft.ID, func(m *store.Model) error { m.Objects["a"] = "b"; return nil }))
	same("edit a session")
	_, task := deploy(t, s, e)
	same("deploy")
	hold := take(t, s)
	same("take a task")
	require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "error", Text: "no"}))
	same("report")
	_, err = hold.Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}})
	require.NoError(t, err)
	same("finish")
	_, err = s.Tasks().Resubmit(t.Context(), task.ID, "u1", store.Submission{Text: "again"})
	require.NoError(t, err)
	same("retry")
	_, err = take(t, s).Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}})
	require.NoError(t, err)
	same("finish again")
	require.NoError(t, s.Sessions().Delete(t.Context(), draft.ID))
	same("delete a session")
	from := store.Environment{ID: store.NewID(), ProjectID: "p2", Name: "from a template", Model: store.Model{Objects: map[string]any{}}}
	_, err = s.Environments().CreateWithSession(t.Context(), &from, store.Holder{ID: "u1"}, nil)
	require.NoError(t, err)
	same("create with a session")
	_, err = s.Tasks().SubmitDeletion(t.Context(), e.ID, "u1", store.Submission{Text: "delete"})
	require.NoError(t, err)
	same("delete")
	_, err = take(t, s).Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}})
	require.NoError(t, err)
	same("deleted")
	require.NoError(t, s.Environments().Remove(t.Context(), from.ID, ""))
	same("remove")
}

// TestWhatIsWrittenIsListed: a user that has made an environment finds it in the list, whatever others read and write at the same
// time.
func TestWhatIsWrittenIsListed(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	s, err := store.New(t.Context(), db, nil, store.Alone())
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				row := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: store.NewID(), Model: store.Model{Objects: map[string]any{}}}
				if err := s.Environments().Create(t.Context(), &row); err != nil {
					t.Error(err)
					return
				}
				environments, _, err := s.Environments().List(t.Context(), "p1")
				if err != nil {
					t.Error(err)
					return
				}
				found := false
				for _, e := range environments {
					found = found || e.ID == row.ID
				}
				if !found {
					t.Errorf("environment %s is not in the list of %d", row.ID, len(environments))
				}
			}
		})
	}
	group.Wait()
}
