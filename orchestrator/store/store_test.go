package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// onEachDatabase runs the test over a new database of each kind.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	with := func(t *testing.T, db *gorm.DB, err error) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, database.Close(db)) })
		test(t, db)
	}
	t.Run("SQLite", func(t *testing.T) {
		db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
		with(t, db, err)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), 10*time.Second)
		with(t, db, err)
	})
}

// TestTheStoreIsTheSameOnEachDatabase runs all that follows on both.
func TestTheStoreIsTheSameOnEachDatabase(t *testing.T) {
	tests := map[string]func(t *testing.T, s *store.Store){
		"environments come back as they were stored":                        environmentsComeBack,
		"a session can be edited only while it is open and up to date":      sessionsAreEdited,
		"one task of an environment runs at a time and each is taken once":  tasksAreTaken,
		"reports are numbered and decide how a deployment ends":             reportsDecide,
		"reports are read within memory":                                    reportsAreReadWithinMemory,
		"a deletion removes everything and orphans the trust":               deletionsRemove,
		"what Heat needs is no orphaned trust":                              heatNeedsTrusts,
		"attributes and secrets are replaced and read":                      attributesAndSecrets,
		"attributes are remembered as the database has them":                attributesAreRemembered,
		"a worker that lost its task can write nothing":                     losersWriteNothing,
		"writes that come together are refused and kept one by one":         writesThatComeTogether,
		"of many that deploy an environment at the same time one is let":    oneDeploys,
		"the first proof of a key is kept":                                  keysAreProved,
		"templates are kept by project and some are seen by all":            templatesAreKept,
		"an environment from a template comes with its draft or not at all": templatesBecomeEnvironments,
		"sign-ins end and are few":                                          signInsEnd,
		"requests are counted by host and instances by environment":         statisticsAreKept,
	}
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		for name, test := range tests {
			t.Run(name, func(t *testing.T) {
				s := open(t, db)
				test(t, s)
				environments, _, err := s.Environments().List(t.Context(), "")
				require.NoError(t, err)
				for _, e := range environments {
					require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
				}
			})
		}
	})
}

func signInsEnd(t *testing.T, s *store.Store) {
	add := func(id, user string, now store.Time) {
		t.Helper()
		require.NoError(t, s.SignIns().AddSignIn(t.Context(), store.SignIn{ID: id, UserID: user, Tokens: "sealed " + id, Created: now, Used: now, Expires: now + 100}, now-30, 3))
	}
	there := func(ids ...string) {
		t.Helper()
		for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
			row, err := s.SignIns().SignIn(t.Context(), id)
			if slices.Contains(ids, id) {
				require.NoError(t, err, id)
				require.Equal(t, "sealed "+id, row.Tokens)
				continue
			}
			require.ErrorIs(t, err, store.ErrNotFound, id)
		}
	}
	add("a", "u", 1000)
	add("b", "u", 1001)
	add("c", "u", 1002)
	require.NoError(t, s.SignIns().UseSignIn(t.Context(), "a", 1003))
	add("d", "v", 1004)
	add("e", "u", 1004)
	there("a", "c", "d", "e") // u's longest unused one is gone
	require.NoError(t, s.SignIns().RemoveSignIn(t.Context(), "c"))
	require.NoError(t, s.SignIns().RemoveSignIn(t.Context(), "c"))
	there("a", "d", "e")
	require.NoError(t, s.SignIns().UseSignIn(t.Context(), "e", 1010))
	add("f", "w", 1034)
	there("e", "f") // the ones unused for 30 are gone
	require.NoError(t, s.SignIns().UseSignIn(t.Context(), "e", 1103))
	add("a", "w", 1104)
	there("a") // and that whose time is over
	require.NoError(t, s.SignIns().RemoveSignIn(t.Context(), "a"))
}

// TestWhatUsersPutIntoModelsIsNotInTheDatabase writes a password wherever a user or a class can, and looks for it in every column of every
// table. Values that were written unsealed, by a Burano that did not seal yet, are read all the same.
func TestWhatUsersPutIntoModelsIsNotInTheDatabase(t *testing.T) {
	const password = "correct horse battery staple"
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		key := filepath.Join(t.TempDir(), "key")
		sealer, err := secret.Open(key)
		require.NoError(t, err)
		old, err := store.New(t.Context(), db, nil)
		require.NoError(t, err)
		s, err := store.New(t.Context(), db, nil, store.Sealed(sealer))
		require.NoError(t, err)
		former := environment(t, old, "former")
		read, err := s.Environments().Get(t.Context(), former.ID)
		require.NoError(t, err)
		require.Equal(t, former, read)

		model := map[string]any{"?": map[string]any{"id": "e"}, "name": "one", "services": []any{map[string]any{"opening": password}}}
		e := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "one", Model: store.Model{Objects: model}}
		require.NoError(t, s.Environments().Create(t.Context(), &e))
		template := store.Template{ID: store.NewID(), ProjectID: "p1", Name: "one", Services: store.List{password}}
		require.NoError(t, s.Templates().Create(t.Context(), &template))
		_, err = s.Templates().Edit(t.Context(), template.ID, func(row *store.Template) error { row.Services = append(row.Services, password); return nil })
		require.NoError(t, err)
		fromTemplate := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "two", Model: store.Model{Objects: map[string]any{}}}
		_, err = s.Environments().CreateWithSession(t.Context(), &fromTemplate, store.Holder{ID: "u1"}, template.Services)
		require.NoError(t, err)
		session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
		require.NoError(t, err)
		require.NoError(t, s.Sessions().Edit(t.Context(), session.ID, func(m *store.Model) error { m.Objects["other"] = password; return nil }))
		action := store.Action{ObjectID: e.ID, Method: "deploy", Args: map[string]any{"opening": password}}
		task, err := s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: action, Text: "Action deploy is scheduled"})
		require.NoError(t, err)
		hold := take(t, s)
		require.Equal(t, action, hold.Task().Action)
		require.NoError(t, hold.SaveObjectsCopy(t.Context(), model, nil))
		require.NoError(t, hold.SetAttribute(t.Context(), "a", "c", "n", password))
		_, err = hold.Finish(t.Context(), store.Outcome{Objects: model, ObjectsCopy: model, Result: store.Document{"result": password}})
		require.NoError(t, err)

		// It comes back as it was,
		read, err = s.Environments().Get(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, store.Model{Objects: model, ObjectsCopy: model}, read.Model)
		done, err := s.Tasks().Get(t.Context(), task.ID)
		require.NoError(t, err)
		require.Equal(t, store.Document{"result": password}, done.Result)
		value, _, err := s.Attributes().Get(t.Context(), e.ID, "a", "c", "n")
		require.NoError(t, err)
		require.Equal(t, password, value)
		kept, err := s.Templates().Get(t.Context(), template.ID)
		require.NoError(t, err)
		require.Equal(t, store.List{password, password}, kept.Services)
		// and is in no column; nor can it be read without the key.
		require.Empty(t, columnsWith(t, db, password))
		require.NotEmpty(t, columnsWith(t, db, "Action deploy is scheduled"), "columns are looked at")
		_, err = old.Environments().Get(t.Context(), e.ID)
		require.ErrorContains(t, err, "no key")
		other, err := secret.Open(filepath.Join(t.TempDir(), "key"))
		require.NoError(t, err)
		foreign, err := store.New(t.Context(), db, nil, store.Sealed(other))
		require.NoError(t, err)
		_, err = foreign.Environments().Get(t.Context(), e.ID)
		require.ErrorContains(t, err, "another key")
	})
}

// columnsWith are the columns, of all tables, in which a text is.
func columnsWith(t *testing.T, db *gorm.DB, text string) (found []string) {
	tables, err := db.Migrator().GetTables()
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, table := range tables {
		var rows []map[string]any
		require.NoError(t, db.Table(table).Find(&rows).Error)
		for _, row := range rows {
			for column, value := range row {
				if strings.Contains(fmt.Sprintf("%s", value), text) {
					found = append(found, table+"."+column)
				}
			}
		}
	}
	return found
}

// open returns a store with a clock that steps a second at each look.
func open(t *testing.T, db *gorm.DB) *store.Store {
	var mu sync.Mutex
	now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	s, err := store.New(t.Context(), db, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Second)
		return now
	})
	require.NoError(t, err)
	return s
}

func environment(t *testing.T, s *store.Store, name string) store.Environment {
	row := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: name,
		Model: store.Model{Objects: map[string]any{"name": name, "count": int64(3), "ratio": 1.5}}}
	require.NoError(t, s.Environments().Create(t.Context(), &row))
	return row
}

func deploy(t *testing.T, s *store.Store, e store.Environment) (store.Session, store.Task) {
	session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
	require.NoError(t, err)
	task, err := s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"},
		Text: "Action deploy is scheduled"})
	require.NoError(t, err)
	return session, task
}

// take takes the oldest task for a minute.
func take(t *testing.T, s *store.Store) *store.Hold {
	hold, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w1", Lease: time.Minute})
	require.NoError(t, err)
	return hold
}

func environmentsComeBack(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	read, err := s.Environments().Get(t.Context(), e.ID)
	require.NoError(t, err)
	require.Equal(t, e, read)
	require.IsType(t, int64(0), read.Model.Objects["count"])
	require.Nil(t, read.Model.ObjectsCopy)

	err = s.Environments().Create(t.Context(), &store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "one"})
	require.ErrorIs(t, err, store.ErrDuplicate)
	require.NoError(t, s.Environments().Create(t.Context(), &store.Environment{ID: store.NewID(), ProjectID: "p2", Name: "one"}))
	_, err = s.Environments().Get(t.Context(), "nope")
	require.ErrorIs(t, err, store.ErrNotFound)

	environment(t, s, "two")
	_, err = s.Environments().Rename(t.Context(), e.ID, "two")
	require.ErrorIs(t, err, store.ErrDuplicate)
	renamed, err := s.Environments().Rename(t.Context(), e.ID, "three")
	require.NoError(t, err)
	require.Equal(t, "three", renamed.Name)
	require.Greater(t, renamed.Updated, e.Updated)

	_, err = s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
	require.NoError(t, err)
	own, sessions, err := s.Environments().List(t.Context(), "p1")
	require.NoError(t, err)
	require.Len(t, own, 2)
	require.Len(t, sessions[e.ID], 1)
	all, _, err := s.Environments().List(t.Context(), "")
	require.NoError(t, err)
	require.Len(t, all, 3)
}

func sessionsAreEdited(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	stale, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
	require.NoError(t, err)
	require.NoError(t, s.Sessions().Edit(t.Context(), stale.ID, func(m *store.Model) error { m.Objects["services"] = []any{}; return nil }))
	session, _ := deploy(t, s, e)

	edit := func(id string) error {
		return s.Sessions().Edit(t.Context(), id, func(*store.Model) error { return nil })
	}
	require.ErrorIs(t, edit(session.ID), store.ErrStale, "it is deploying")
	require.ErrorIs(t, edit(stale.ID), store.ErrStale, "another one is deploying")
	require.ErrorIs(t, s.Sessions().Delete(t.Context(), session.ID), store.ErrBusy)
	_, err = s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
	require.ErrorIs(t, err, store.ErrBusy)

	failed, err := take(t, s).Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}, Objects: map[string]any{"name": "new"}})
	require.NoError(t, err)
	require.False(t, failed)
	require.ErrorIs(t, edit(stale.ID), store.ErrStale, "the environment is newer")
	require.NoError(t, s.Sessions().Delete(t.Context(), stale.ID))
	read, err := s.Environments().Get(t.Context(), e.ID)
	require.NoError(t, err)
	require.EqualValues(t, 1, read.Version)
	require.Equal(t, "new", read.Model.Objects["name"])
	after, err := s.Sessions().Get(t.Context(), session.ID)
	require.NoError(t, err)
	require.Equal(t, store.Deployed, after.State)
}

func tasksAreTaken(t *testing.T, s *store.Store) {
	var want []string
	for _, name := range []string{"one", "two", "three"} {
		_, task := deploy(t, s, environment(t, s, name))
		want = append(want, task.ID)
	}
	var mu sync.Mutex
	var got []string
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			hold, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w1", Lease: time.Minute})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				got = append(got, hold.Task().ID)
			}
		})
	}
	group.Wait()
	require.ElementsMatch(t, want, got)
}

func reportsDecide(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	_, task := deploy(t, s, e)
	hold := take(t, s)
	entity, class := "a", "org.test.A"
	require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "warning", Text: "hm", EntityID: &entity, Entity: &class}))
	require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "error", Text: "no", EntityID: &entity, Entity: &class}))
	failed, err := hold.Finish(t.Context(), store.Outcome{Result: store.Document{"isException": false}})
	require.NoError(t, err)
	require.True(t, failed)
	read, err := s.Environments().Get(t.Context(), e.ID)
	require.NoError(t, err)
	require.Equal(t, store.ForAPI(task.Objects), read.Model.Objects, "an end without a model leaves the draft")
	reports, err := s.Reports().List(t.Context(), task.ID, 0, 0)
	require.NoError(t, err)
	var texts []string
	for i, report := range reports {
		require.EqualValues(t, i+1, report.Number)
		texts = append(texts, report.Text)
	}
	require.Equal(t, []string{"Action deploy is scheduled", "hm", "no", "Deployment finished with errors"}, texts)
	last, err := s.Reports().Newest(t.Context(), e.ID)
	require.NoError(t, err)
	require.Equal(t, "no", last["a"].Text)
	tasks, counts, err := s.Tasks().List(t.Context(), "", "p1")
	require.NoError(t, err)
	require.Len(t, tasks, 1)
	require.NotNil(t, tasks[0].Finished)
	require.Equal(t, store.Counts{Errors: 1, Warnings: 1}, counts[task.ID])
}

func reportsAreReadWithinMemory(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	_, task := deploy(t, s, e)
	hold := take(t, s)
	entity, class, long := "a", "org.test.A", strings.Repeat("x", 200<<10)
	for range 30 {
		require.NoError(t, hold.AddReport(t.Context(), store.Report{Level: "info", Text: long, Details: &long, EntityID: &entity, Entity: &class}))
	}
	budget := memory.NewGuard(nil).Budget(4 << 20)
	within := func() context.Context { return memory.With(t.Context(), budget.Account("p1")) }
	var none *memory.None
	_, err := s.Reports().Page(within(), task.ID, nil, store.Page{})
	require.ErrorAs(t, err, &none)
	budget = memory.NewGuard(nil).Budget(4 << 20)
	_, err = s.Reports().ObjectPage(within(), e.ID, []string{"a"}, store.Page{Limit: 1000})
	require.ErrorAs(t, err, &none)
	budget = memory.NewGuard(nil).Budget(4 << 20)
	page, err := s.Reports().ObjectPage(within(), e.ID, []string{"a"}, store.Page{Limit: 5})
	require.NoError(t, err)
	require.Len(t, page, 5)
	budget = memory.NewGuard(nil).Budget(4 << 20)
	last, err := s.Reports().Newest(within(), e.ID)
	require.NoError(t, err, "older reports are not read")
	require.EqualValues(t, 31, last["a"].Number)
}

func deletionsRemove(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	delegation := store.Delegation{EnvironmentID: e.ID, Kind: store.Trust, Sealed: "sealed"}
	require.NoError(t, s.Delegations().Add(t.Context(), &delegation))
	task, err := s.Tasks().SubmitDeletion(t.Context(), e.ID, "u1", store.Submission{Text: "Action None is scheduled", DelegationID: delegation.ID})
	require.NoError(t, err)
	orphaned, err := s.Delegations().Orphaned(t.Context(), 10, 0, true)
	require.NoError(t, err)
	require.Empty(t, orphaned, "the task holds it now")
	hold := take(t, s)
	require.NoError(t, hold.SetAttribute(t.Context(), "a", "org.test.A", "x", map[string]any{"n": 1}))
	require.NoError(t, hold.SetSecret(t.Context(), "key", "sealed"))
	step, err := hold.StartStep(t.Context(), store.Step{ObjectID: "a", Class: "org.test.A", Name: "make", WaitsFor: store.Names{"prepare"}})
	require.NoError(t, err)
	require.NoError(t, hold.EndStep(t.Context(), step, ""))
	steps, err := s.Tasks().Steps(t.Context(), task.ID)
	require.NoError(t, err)
	require.Equal(t, store.Names{"prepare"}, steps[0].WaitsFor)

	failed, err := hold.Finish(t.Context(), store.Outcome{Failed: true})
	require.NoError(t, err)
	require.True(t, failed)
	kept, err := s.Environments().Get(t.Context(), e.ID)
	require.NoError(t, err)
	require.Equal(t, e.Model, kept.Model, "a deletion that failed leaves the model")
	task, err = s.Tasks().SubmitDeletion(t.Context(), e.ID, "u1", store.Submission{Text: "Action None is scheduled"})
	require.NoError(t, err)
	failed, err = take(t, s).Finish(t.Context(), store.Outcome{})
	require.NoError(t, err)
	require.False(t, failed)
	_, err = s.Environments().Get(t.Context(), e.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Tasks().Get(t.Context(), task.ID)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, found, err := s.Secrets().Get(t.Context(), e.ID, "key")
	require.NoError(t, err)
	require.False(t, found)
	orphaned, err = s.Delegations().Orphaned(t.Context(), 10, 0, true)
	require.NoError(t, err)
	require.Len(t, orphaned, 1)
	require.NoError(t, s.Delegations().Forget(t.Context(), orphaned[0].ID))
}

func heatNeedsTrusts(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	row := store.Delegation{EnvironmentID: e.ID, Kind: store.Trust, Sealed: "sealed", Used: true}
	require.NoError(t, s.Delegations().Add(t.Context(), &row))
	count := func() int64 {
		load, err := s.Tasks().Load(t.Context())
		require.NoError(t, err)
		return load.Orphaned
	}
	before := count()
	require.NoError(t, s.Delegations().Postpone(t.Context(), row.ID, time.Hour, false))
	require.Equal(t, before-1, count(), "it is looked at again later")
	require.NoError(t, s.Delegations().Postpone(t.Context(), row.ID, time.Hour, true))
	require.Equal(t, before, count(), "it could not be revoked")
	orphaned, err := s.Delegations().Orphaned(t.Context(), 10, 0, false)
	require.NoError(t, err)
	require.Empty(t, orphaned)
	require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
	require.NoError(t, s.Delegations().Forget(t.Context(), row.ID))
}

// attributesAreRemembered has a hold write attributes at the same time, one value over another, and remove them: its memory of them then equals the
// database.
func attributesAreRemembered(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	deploy(t, s, e)
	require.NoError(t, take(t, s).SetAttribute(t.Context(), "a", "c", "of a former worker", 1))
	require.NoError(t, s.Tasks().EndLeases(t.Context()))
	hold := take(t, s)
	agrees := func(object, name string) (found bool) {
		want, there, err := s.Attributes().Get(t.Context(), e.ID, object, "c", name)
		require.NoError(t, err)
		has, found, err := hold.Attribute(t.Context(), object, "c", name)
		require.NoError(t, err)
		require.Equal(t, there, found, name)
		require.Equal(t, want, has, name)
		return found
	}
	require.NoError(t, hold.SetAttribute(t.Context(), "b", "c", "before any question", "x"))
	require.True(t, agrees("a", "of a former worker"))
	require.True(t, agrees("b", "before any question"))
	require.False(t, agrees("a", "none"))
	for range 20 {
		var group errgroup.Group
		for i := range 12 {
			group.Go(func() error {
				switch name := fmt.Sprint(i % 2); {
				case i == 5:
					return hold.RemoveAttributes(t.Context(), "a", "")
				case i%4 == 0:
					return hold.SetAttribute(t.Context(), "a", "c", name, nil)
				default:
					_, _, err := hold.Attribute(t.Context(), "a", "c", name)
					return errors.Join(err, hold.SetAttribute(t.Context(), "a", "c", name, []any{int64(i), "text"}))
				}
			})
		}
		require.NoError(t, group.Wait())
		agrees("a", "0")
		agrees("a", "1")
		require.True(t, agrees("b", "before any question"))
	}

	require.NoError(t, s.Tasks().EndLeases(t.Context()))
	other := take(t, s)
	require.NoError(t, other.SetAttribute(t.Context(), "b", "c", "before any question", "of another worker"))
	value, _, err := hold.Attribute(t.Context(), "b", "c", "before any question")
	require.NoError(t, err)
	require.Equal(t, "x", value, "it is remembered")
	require.ErrorIs(t, hold.SetAttribute(t.Context(), "b", "c", "before any question", "late"), store.ErrFenced)
	require.True(t, agrees("b", "before any question"), "a hold whose write failed asks the database")
	require.NoError(t, other.SetAttribute(t.Context(), "b", "c", "large", strings.Repeat("x", 5<<20)))
	hold = other
	require.True(t, agrees("b", "large"))
	require.True(t, agrees("b", "before any question"))
}

func attributesAndSecrets(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	deploy(t, s, e)
	hold := take(t, s)
	_, found, err := s.Attributes().Get(t.Context(), e.ID, "a", "org.test.A", "x")
	require.NoError(t, err)
	require.False(t, found)
	for _, value := range []any{int64(1), "two", []any{map[string]any{"three": int64(3)}}, true} {
		require.NoError(t, hold.SetAttribute(t.Context(), "a", "org.test.A", "x", value))
		read, found, err := s.Attributes().Get(t.Context(), e.ID, "a", "org.test.A", "x")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, value, read)
	}
	require.NoError(t, hold.SetAttribute(t.Context(), "a", "org.test.A", "x", nil))
	_, found, err = s.Attributes().Get(t.Context(), e.ID, "a", "org.test.A", "x")
	require.NoError(t, err)
	require.False(t, found)

	for _, value := range []string{"one", "two"} {
		require.NoError(t, s.Secrets().Set(t.Context(), e.ID, "key", value))
		read, found, err := s.Secrets().Get(t.Context(), e.ID, "key")
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, value, read)
	}
}

func oneDeploys(t *testing.T, s *store.Store) {
	e := environment(t, s, "one")
	var sessions []store.Session
	for range 8 {
		session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u1"})
		require.NoError(t, err)
		sessions = append(sessions, session)
	}
	errs := make([]error, len(sessions))
	var group sync.WaitGroup
	for i, session := range sessions {
		group.Go(func() {
			_, errs[i] = s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"},
				Text: "Action deploy is scheduled"})
		})
	}
	group.Wait()
	went := 0
	for _, err := range errs {
		if err == nil {
			went++
		} else {
			require.ErrorIs(t, err, store.ErrStale)
		}
	}
	require.Equal(t, 1, went)
}

func keysAreProved(t *testing.T, s *store.Store) {
	for _, sealed := range []string{"first", "second"} {
		kept, err := s.Keys().Proof(t.Context(), sealed)
		require.NoError(t, err)
		require.Equal(t, "first", kept)
	}
}

func templatesAreKept(t *testing.T, s *store.Store) {
	services := store.List{map[string]any{"?": map[string]any{"id": "a"}, "count": int64(2), "ratio": 0.5}}
	one := store.Template{ID: store.NewID(), ProjectID: "p1", Name: "one", DescriptionText: "text", Services: services}
	require.NoError(t, s.Templates().Create(t.Context(), &one))
	read, err := s.Templates().Get(t.Context(), one.ID)
	require.NoError(t, err)
	require.Equal(t, one, read)
	public := store.Template{ID: store.NewID(), ProjectID: "p2", Name: "one", Public: true}
	require.NoError(t, s.Templates().Create(t.Context(), &public))
	foreign := store.Template{ID: store.NewID(), ProjectID: "p2", Name: "private"}
	require.NoError(t, s.Templates().Create(t.Context(), &foreign))
	require.ErrorIs(t, s.Templates().Create(t.Context(), &store.Template{ID: store.NewID(), ProjectID: "p1", Name: "one"}), store.ErrDuplicate)

	for visible, want := range map[store.Visible][]string{store.OwnOrPublic: {one.ID, public.ID}, store.AllPublic: {public.ID}, store.OwnPrivate: {one.ID}} {
		rows, err := s.Templates().List(t.Context(), "p1", visible, store.Page{})
		require.NoError(t, err)
		var ids []string
		for _, row := range rows {
			require.Empty(t, row.Services)
			ids = append(ids, row.ID)
		}
		require.Equal(t, want, ids)
	}

	edited, err := s.Templates().Edit(t.Context(), one.ID, func(row *store.Template) error {
		row.Name, row.Public, row.Services = "two", true, nil
		return nil
	})
	require.NoError(t, err)
	read, err = s.Templates().Get(t.Context(), one.ID)
	require.NoError(t, err)
	require.Equal(t, edited.Updated, read.Updated)
	require.Greater(t, read.Updated, one.Updated)
	require.Equal(t, "two", read.Name)
	require.True(t, read.Public)
	require.Empty(t, read.Services)
	_, err = s.Templates().Edit(t.Context(), foreign.ID, func(row *store.Template) error { row.Name = "one"; return nil })
	require.ErrorIs(t, err, store.ErrDuplicate)
	refused := errors.New("not this")
	_, err = s.Templates().Edit(t.Context(), foreign.ID, func(row *store.Template) error { row.Name = "changed"; return refused })
	require.Equal(t, refused, err)
	read, err = s.Templates().Get(t.Context(), foreign.ID)
	require.NoError(t, err)
	require.Equal(t, "private", read.Name)

	for _, row := range []store.Template{one, public, foreign} {
		require.NoError(t, s.Templates().Delete(t.Context(), row.ID))
		require.ErrorIs(t, s.Templates().Delete(t.Context(), row.ID), store.ErrNotFound)
	}
	_, err = s.Templates().Edit(t.Context(), one.ID, func(*store.Template) error { return nil })
	require.ErrorIs(t, err, store.ErrNotFound)
}

func templatesBecomeEnvironments(t *testing.T, s *store.Store) {
	row := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "one", Model: store.Model{Objects: map[string]any{"name": "one"}}}
	session, err := s.Environments().CreateWithSession(t.Context(), &row, store.Holder{ID: "u1"}, []any{"x"})
	require.NoError(t, err)
	read, err := s.Sessions().Get(t.Context(), session.ID)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"name": "one", "services": []any{"x"}}, read.Model.Objects)
	kept, err := s.Environments().Get(t.Context(), row.ID)
	require.NoError(t, err)
	require.Equal(t, row, kept, "the services are in the draft only")
	again := store.Environment{ID: store.NewID(), ProjectID: "p1", Name: "one", Model: row.Model}
	_, err = s.Environments().CreateWithSession(t.Context(), &again, store.Holder{ID: "u1"}, nil)
	require.ErrorIs(t, err, store.ErrDuplicate)
}

func statisticsAreKept(t *testing.T, s *store.Store) {
	for i, host := range []string{"first", "second", "first"} {
		require.NoError(t, s.Statistics().SaveRequests(t.Context(), store.RequestStatistics{Host: host, Requests: int64(i + 1), Seconds: 0.25,
			Projects: store.Document{"p1": int64(i + 1)}, CPUs: 2}))
	}
	rows, err := s.Statistics().Requests(t.Context())
	require.NoError(t, err)
	require.Len(t, rows, 2)
	require.Equal(t, []any{int64(1), "first", int64(3), 0.25, store.Document{"p1": int64(3)}},
		[]any{rows[0].ID, rows[0].Host, rows[0].Requests, rows[0].Seconds, rows[0].Projects})
	require.Greater(t, rows[0].Updated, rows[0].Created)
	require.Equal(t, int64(2), rows[1].ID)

	e := environment(t, s, "one")
	deploy(t, s, e)
	hold := take(t, s)
	title, units := "A title", int64(1)
	count := func(id string) {
		require.NoError(t, hold.TrackInstance(t.Context(), store.InstanceStatistics{InstanceID: id, Type: store.ServerInstance, TypeName: "org.Server", TypeTitle: &title, UnitCount: &units}))
	}
	count("a")
	count("b")
	first, err := s.Statistics().Instances(t.Context(), e.ID)
	require.NoError(t, err)
	title = "Another"
	count("a")
	require.NoError(t, hold.UntrackInstance(t.Context(), "b"))
	require.NoError(t, hold.UntrackInstance(t.Context(), "nobody"))
	then, err := s.Statistics().Instances(t.Context(), e.ID)
	require.NoError(t, err)
	require.Len(t, then, 2)
	require.Equal(t, first[0].Created, then[0].Created, "counting goes on")
	require.Equal(t, "Another", *then[0].TypeTitle)
	require.Nil(t, then[0].Destroyed)
	require.Greater(t, *then[1].Destroyed, then[1].Created)
	require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
	rest, err := s.Statistics().Instances(t.Context(), e.ID)
	require.NoError(t, err)
	require.Empty(t, rest)
}

// TestNoReaderWaitsForAWriter reads everything while a transaction that writes does not end, and one that reads neither.
func TestNoReaderWaitsForAWriter(t *testing.T) {
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	s, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	e := environment(t, s, "one")
	session, task := deploy(t, s, e)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	writing := db.Begin()
	require.NoError(t, writing.Exec("UPDATE environments SET name = 'other'").Error)
	reading, err := database.Reading(db).Table("tasks").Rows()
	require.NoError(t, err)
	require.True(t, reading.Next())
	for name, read := range map[string]func() error{
		"environment":  func() error { _, err := s.Environments().Get(ctx, e.ID); return err },
		"environments": func() error { _, _, err := s.Environments().List(ctx, e.ProjectID); return err },
		"session":      func() error { _, err := s.Sessions().Get(ctx, session.ID); return err },
		"sessions":     func() error { _, err := s.Sessions().List(ctx, e.ID); return err },
		"task":         func() error { _, err := s.Tasks().Get(ctx, task.ID); return err },
		"tasks":        func() error { _, _, err := s.Tasks().List(ctx, e.ID, ""); return err },
		"reports":      func() error { _, err := s.Reports().List(ctx, task.ID, 0, 0); return err },
		"last reports": func() error { _, err := s.Reports().Newest(ctx, e.ID); return err },
		"templates": func() error {
			_, err := s.Templates().List(ctx, e.ProjectID, store.OwnOrPublic, store.Page{})
			return err
		},
	} {
		require.NoError(t, read(), name)
	}
	require.NoError(t, writing.Commit().Error, "who writes does not wait for who reads")
	_, err = take(t, s).Renew(ctx, time.Minute)
	require.NoError(t, err, "no lease ends because somebody reads")
	require.NoError(t, reading.Close())
}

func TestTheAgeOfATrustIsJudgedByTheClockOfTheDatabase(t *testing.T) {
	db, err := database.OpenPostgres(t.Context(), databasetest.Postgres(t), 10*time.Second)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	behind, err := store.New(t.Context(), db, func() time.Time { return time.Now().Add(-time.Hour) })
	require.NoError(t, err)
	ahead, err := store.New(t.Context(), db, func() time.Time { return time.Now().Add(time.Hour) })
	require.NoError(t, err)
	e := environment(t, behind, "one")
	made := store.Delegation{EnvironmentID: e.ID, Kind: store.Trust, Roles: store.Names{"member"}, Sealed: "sealed"}
	require.NoError(t, behind.Delegations().Add(t.Context(), &made))
	orphaned, err := ahead.Delegations().Orphaned(t.Context(), 10, 10*time.Minute, true)
	require.NoError(t, err)
	require.Empty(t, orphaned, "it is just being made")
	orphaned, err = behind.Delegations().Orphaned(t.Context(), 10, 0, true)
	require.NoError(t, err)
	require.Len(t, orphaned, 1)
	require.NoError(t, ahead.Delegations().Postpone(t.Context(), made.ID, time.Minute, false))
	require.NoError(t, db.Exec("UPDATE delegations SET next_try = next_try - 61000000").Error)
	orphaned, err = behind.Delegations().Orphaned(t.Context(), 10, 0, false)
	require.NoError(t, err)
	require.Len(t, orphaned, 1, "it was postponed for a minute, which is over")
}
