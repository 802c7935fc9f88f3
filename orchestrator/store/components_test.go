package store_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/orchestrator/store"
)

// component is an application with one part.
func component(id string, size int64) map[string]any {
	return map[string]any{"?": map[string]any{"id": id, "type": "org.test.A", "_actions": map[string]any{}}, "size": size,
		"part": map[string]any{"?": map[string]any{"id": id + "-part", "type": "org.test.Part"}}}
}

// draftOf opens a session with these applications.
func draftOf(t *testing.T, s *store.Store, e store.Environment, components ...any) store.Session {
	t.Helper()
	session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
	require.NoError(t, err)
	require.NoError(t, s.Sessions().Edit(t.Context(), session.ID, func(model *store.Model) error {
		model.Objects = maps.Clone(model.Objects)
		model.Objects["services"] = components
		return nil
	}))
	return session
}

// ending is how a task of a test ends.
type ending struct {
	failed    bool
	about     string // id of the object of its error; "" for none
	deployed  []string
	destroyed []string
	nothing   bool // it leaves no model
}

// ends ends the waiting task.
func ends(t *testing.T, s *store.Store, how ending) {
	t.Helper()
	hold := take(t, s)
	set := func(ids []string) map[string]bool {
		found := map[string]bool{}
		for _, id := range ids {
			found[id] = true
		}
		return found
	}
	outcome := store.Outcome{Failed: how.failed, Result: store.Document{}, Reached: store.Reached{Deployed: set(how.deployed), Destroyed: set(how.destroyed)}}
	if task := hold.Task(); task.Objects != nil && !how.nothing {
		require.NoError(t, hold.SaveObjectsCopy(t.Context(), task.Objects, nil))
		outcome.Objects, outcome.ObjectsCopy = store.ForAPI(task.Objects), task.Objects
	}
	if how.failed {
		report := store.Report{Level: "error", Text: "it failed"}
		if how.about != "" {
			report.EntityID = &how.about
		}
		require.NoError(t, hold.AddReport(t.Context(), report))
	}
	_, err := hold.Finish(t.Context(), outcome)
	require.NoError(t, err)
}

func submitted(t *testing.T, s *store.Store, e store.Environment, session store.Session) {
	t.Helper()
	_, err := s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"}, Text: "begin"})
	require.NoError(t, err)
}

func acted(t *testing.T, s *store.Store, e store.Environment, object, method string, how ending) {
	t.Helper()
	_, err := s.Tasks().SubmitAction(t.Context(), e.ID, "u1", store.Submission{Action: store.Action{ObjectID: object, Method: method}, Text: "begin"})
	require.NoError(t, err)
	ends(t, s, how)
}

// statesOf are the states of the components of an environment by their ids; "" is the environment's own.
func statesOf(t *testing.T, s *store.Store, e store.Environment) map[string]store.ComponentState {
	t.Helper()
	row, err := s.Environments().Get(t.Context(), e.ID)
	require.NoError(t, err)
	records, err := s.Components().Of(t.Context(), row)
	require.NoError(t, err)
	if records == nil {
		return nil
	}
	found := map[string]store.ComponentState{}
	for id, record := range records {
		found[id] = record.State
	}
	return found
}

type of = map[string]store.ComponentState

func TestTheStateOfAComponentFollowsFromItsOwnRuns(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		e := environment(t, s, "one")
		require.Nil(t, statesOf(t, s, e), "it was never deployed")

		submitted(t, s, e, draftOf(t, s, e, component("a", 1), component("b", 1), component("c", 1)))
		ends(t, s, ending{failed: true, about: "b-part", deployed: []string{"a"}})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentFailed, "c": store.ComponentNotDeployed}, statesOf(t, s, e))

		acted(t, s, e, "a", "tell", ending{})
		acted(t, s, e, "b", "tell", ending{})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentFailed, "c": store.ComponentNotDeployed}, statesOf(t, s, e), "an action ends no failure")

		submitted(t, s, e, draftOf(t, s, e, component("a", 1), component("b", 1), component("c", 1)))
		ends(t, s, ending{deployed: []string{"a", "b", "c"}})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentReady, "c": store.ComponentReady}, statesOf(t, s, e))

		// A deployment of changes that fails for one of them, reaches another one, and does not reach the third.
		submitted(t, s, e, draftOf(t, s, e, component("a", 2), component("b", 2), component("c", 2), component("d", 1)))
		ends(t, s, ending{failed: true, about: "a", deployed: []string{"b"}})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentFailed, "b": store.ComponentReady, "c": store.ComponentChanged, "d": store.ComponentNotDeployed}, statesOf(t, s, e))

		// An action that fails says so until it succeeds, or the component is deployed.
		submitted(t, s, e, draftOf(t, s, e, component("a", 2), component("b", 2)))
		ends(t, s, ending{deployed: []string{"a", "b"}})
		acted(t, s, e, "a-part", "grow", ending{failed: true})
		acted(t, s, e, "a", "tell", ending{})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentActionFailed, "b": store.ComponentReady}, statesOf(t, s, e))
		acted(t, s, e, "a-part", "grow", ending{})
		require.Equal(t, store.ComponentReady, statesOf(t, s, e)["a"])
		acted(t, s, e, "a", "grow", ending{failed: true, about: "b-part"})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentActionFailed, "b": store.ComponentActionFailed}, statesOf(t, s, e), "its error is about another component, too")
		submitted(t, s, e, draftOf(t, s, e, component("a", 2), component("b", 2)))
		ends(t, s, ending{})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentReady}, statesOf(t, s, e))

		// An error about no component is the environment's.
		submitted(t, s, e, draftOf(t, s, e, component("a", 2), component("b", 2)))
		ends(t, s, ending{failed: true, about: e.ID, deployed: []string{"a", "b"}})
		require.Equal(t, of{"": store.ComponentFailed, "a": store.ComponentReady, "b": store.ComponentReady}, statesOf(t, s, e))
		submitted(t, s, e, draftOf(t, s, e, component("a", 2), component("b", 2)))
		ends(t, s, ending{})
		require.Equal(t, store.ComponentReady, statesOf(t, s, e)[""])

		// A rejected deployment changes nothing.
		submitted(t, s, e, draftOf(t, s, e, component("a", 3)))
		ends(t, s, ending{failed: true, nothing: true})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentReady}, statesOf(t, s, e))

		// A deletion that fails for one has destroyed the other one.
		_, err := s.Tasks().SubmitDeletion(t.Context(), e.ID, "u1", store.Submission{Text: "begin"})
		require.NoError(t, err)
		ends(t, s, ending{failed: true, about: "b-part", destroyed: []string{"a", "a-part"}})
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentNotDeployed, "b": store.ComponentFailed}, statesOf(t, s, e))
		counts, err := s.Components().Counts(t.Context(), store.Part{ProjectID: "p1"})
		require.NoError(t, err)
		require.Len(t, counts, 3)
	})
}

func TestADraftIsEditedWhenItDiffersFromItsEnvironment(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		e := environment(t, s, "one")
		submitted(t, s, e, draftOf(t, s, e, component("a", 1)))
		ends(t, s, ending{})
		row, err := s.Environments().Get(t.Context(), e.ID)
		require.NoError(t, err)
		differs := func(session store.Session) bool {
			_, all, err := s.Environments().List(t.Context(), "")
			require.NoError(t, err)
			for _, one := range all[e.ID] {
				if one.ID == session.ID {
					return one.MayDiffer(row.Version)
				}
			}
			t.Fatal("there is no such session")
			return false
		}
		session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
		require.NoError(t, err)
		require.False(t, differs(session))
		edit := func(size int64) {
			require.NoError(t, s.Sessions().Edit(t.Context(), session.ID, func(model *store.Model) error {
				model.Objects["services"].([]any)[0].(map[string]any)["size"] = size
				return nil
			}))
		}
		edit(2)
		require.True(t, differs(session))
		edit(1)
		require.False(t, differs(session))
		require.NoError(t, db.Exec("UPDATE sessions SET edited = NULL").Error) // as a former version has it
		require.True(t, differs(session))
	})
}

// TestAnEnvironmentOfAFormerVersionShowsWhatItsTasksShow removes the records, as a former version makes none.
func TestAnEnvironmentOfAFormerVersionShowsWhatItsTasksShow(t *testing.T) {
	for name, c := range map[string]struct {
		runs func(t *testing.T, s *store.Store, e store.Environment)
		gone bool // the row of the oldest task
		want of
	}{
		"its last deployment succeeded, and an action since": {func(t *testing.T, s *store.Store, e store.Environment) {
			submitted(t, s, e, draftOf(t, s, e, component("a", 1), component("b", 1)))
			ends(t, s, ending{})
			acted(t, s, e, "a", "tell", ending{})
		}, false, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentReady}},
		"its last deployment failed, and an action hides that": {func(t *testing.T, s *store.Store, e store.Environment) {
			submitted(t, s, e, draftOf(t, s, e, component("a", 1), component("b", 1)))
			ends(t, s, ending{failed: true, about: "b"})
			acted(t, s, e, "a", "tell", ending{})
		}, false, of{"": store.ComponentReady, "a": store.ComponentUnknown, "b": store.ComponentFailed}},
		"an action failed since": {func(t *testing.T, s *store.Store, e store.Environment) {
			submitted(t, s, e, draftOf(t, s, e, component("a", 1), component("b", 1)))
			ends(t, s, ending{})
			acted(t, s, e, "b", "grow", ending{failed: true})
			acted(t, s, e, "b", "tell", ending{})
		}, false, of{"": store.ComponentReady, "a": store.ComponentReady, "b": store.ComponentActionFailed}},
		"its deployment is not stored any more": {func(t *testing.T, s *store.Store, e store.Environment) {
			submitted(t, s, e, draftOf(t, s, e, component("a", 1)))
			ends(t, s, ending{})
			acted(t, s, e, "a", "tell", ending{})
		}, true, of{"": store.ComponentUnknown, "a": store.ComponentUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
				s := open(t, db)
				e := environment(t, s, "one")
				c.runs(t, s, e)
				if c.gone {
					require.NoError(t, db.Exec("DELETE FROM tasks WHERE created = (SELECT MIN(created) FROM tasks)").Error)
				}
				require.NoError(t, db.Exec("DELETE FROM components").Error)
				require.Nil(t, statesOf(t, s, e))
				completed, err := s.Components().Complete(t.Context())
				require.NoError(t, err)
				require.Equal(t, 1, completed)
				require.Equal(t, c.want, statesOf(t, s, e))
				completed, err = s.Components().Complete(t.Context())
				require.NoError(t, err)
				require.Zero(t, completed)

				// A server of a former version runs a task, and writes no records: they are made anew.
				require.NoError(t, db.Exec("UPDATE environments SET version = version + 1").Error)
				require.Nil(t, statesOf(t, s, e))
				acted(t, s, e, "a", "tell", ending{})
				require.Equal(t, c.want, statesOf(t, s, e))
			})
		})
	}
}

func TestARestoredEnvironmentHasNothingDeployed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s, err := store.New(context.Background(), db, nil, store.Undelete(time.Hour))
		require.NoError(t, err)
		e := environment(t, s, "one")
		submitted(t, s, e, draftOf(t, s, e, component("a", 1)))
		ends(t, s, ending{})
		_, err = s.Tasks().SubmitDeletion(t.Context(), e.ID, "u1", store.Submission{Text: "begin"})
		require.NoError(t, err)
		ends(t, s, ending{destroyed: []string{"a"}})
		_, err = s.Deleted().Restore(t.Context(), e.ID, "")
		require.NoError(t, err)
		require.Equal(t, of{"": store.ComponentReady, "a": store.ComponentNotDeployed}, statesOf(t, s, e))
	})
}
