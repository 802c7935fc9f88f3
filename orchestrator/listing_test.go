package orchestrator_test

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

const listed = "p-listed"

var reader = identity.Caller{UserID: "u", ProjectID: listed, Roles: []string{"member"}}

// objects is a model of 20 objects: the environment, its network, and six applications with two parts each.
func objects(name string) map[string]any {
	object := func(kind, id string, properties map[string]any) map[string]any {
		properties["?"] = map[string]any{"id": id, "type": kind}
		return properties
	}
	var services []any
	for i := range 6 {
		id := func(part int) string { return fmt.Sprintf("%s-%d-%d", name, i, part) }
		services = append(services, object("org.test.Application", id(0), map[string]any{"name": "application of a user", "size": 3,
			"first":  object("org.test.Part", id(1), map[string]any{"name": "one part", "text": strings.Repeat("x", 100)}),
			"second": object("org.test.Part", id(2), map[string]any{"name": "another part"})}))
	}
	return object("io.murano.Environment", name, map[string]any{"name": name, "services": services,
		"defaultNetworks": map[string]any{"environment": object("io.murano.resources.NeutronNetwork", name+"-network", map[string]any{"name": name}), "flat": nil}})
}

// fill makes the project have so many environments, each with an old and a failed deployment, their reports and an open session.
func fill(t testing.TB, db *gorm.DB, from, to int) (last string) {
	t.Helper()
	var environments []store.Environment
	var sessions []store.Session
	var tasks []store.Task
	var reports []store.Report
	var components []store.Component
	for i := from; i < to; i++ {
		name := fmt.Sprintf("e%05d", i)
		model := store.Model{Objects: objects(name)}
		environments = append(environments, store.Environment{ID: name, ProjectID: listed, Name: name, Version: 2, Model: model, Created: store.Time(i), Updated: store.Time(i)})
		components = append(components, store.Component{EnvironmentID: name, State: store.ComponentReady, Outcome: store.OutcomeDeployed, Version: 2})
		for j, service := range model.Objects["services"].([]any) {
			id := service.(map[string]any)["?"].(map[string]any)["id"].(string)
			components = append(components, store.Component{EnvironmentID: name, ObjectID: id, State: []store.ComponentState{store.ComponentReady, store.ComponentFailed}[j%2], Outcome: store.OutcomeFailed})
		}
		for j, state := range []store.State{store.Deployed, store.DeployFailure, store.Opened} {
			session := store.Session{ID: fmt.Sprintf("%s-%d", name, j), EnvironmentID: name, UserID: "u", State: state, Version: int64(j), Created: store.Time(j)}
			if state == store.Opened {
				session.Model = model
			}
			sessions = append(sessions, session)
			if state == store.Opened {
				continue
			}
			finished := store.Time(j + 1)
			tasks = append(tasks, store.Task{ID: session.ID, EnvironmentID: name, SessionID: session.ID, Action: store.Action{ObjectID: name, Method: "deploy"},
				Objects: store.ForClasses(name, model.Objects), Result: store.Document{"isException": false}, Started: store.Time(j), Created: store.Time(j), Finished: &finished})
			for k, level := range []string{"info", "warning", "error"}[:1+2*j] {
				about, class := name+"-0-0", "org.test.Application"
				reports = append(reports, store.Report{ID: fmt.Sprintf("%s-%d", session.ID, k), TaskID: session.ID, Number: int64(k + 1), Level: level, Text: "A line",
					EntityID: &about, Entity: &class})
			}
		}
		last = name
	}
	const batch = 500 // the number of parameters of a statement is limited
	require.NoError(t, db.CreateInBatches(&environments, batch).Error)
	require.NoError(t, db.CreateInBatches(&sessions, batch).Error)
	require.NoError(t, db.CreateInBatches(&tasks, batch).Error)
	require.NoError(t, db.CreateInBatches(&reports, batch).Error)
	require.NoError(t, db.CreateInBatches(&components, batch).Error)
	return last
}

// service is a Service over a database, which needs neither engine nor Keystone to show things.
func service(t testing.TB, db *gorm.DB) *orchestrator.Service {
	rows, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	return orchestrator.New(orchestrator.Config{Store: rows, Logger: slog.New(slog.DiscardHandler)})
}

// views are the lists that clients read again and again. id is an environment, session one of its sessions; the result is the number of listed items.
func views(s *orchestrator.Service, t testing.TB, id string) map[string]func() (int, error) {
	return map[string]func() (int, error){
		"the environments of a project": func() (int, error) {
			list, err := s.Environments().List(t.Context(), reader, orchestrator.ListOptions{})
			return len(list), err
		},
		"the states of a project": func() (int, error) {
			list, _, err := s.Environments().Overviews(t.Context(), reader, orchestrator.ListOptions{}, nil)
			for _, one := range list {
				if one.State != orchestrator.StateFailed || one.Components[orchestrator.StateReady] != 3 {
					return 0, fmt.Errorf("environment %s is %s: %v", one.ID, one.State, one.Components)
				}
			}
			return len(list), err
		},
		"its components": func() (int, error) {
			_, _, list, err := s.Environments().Components(t.Context(), reader, id, id+"-2")
			return len(list), err
		},
		"an environment": func() (int, error) {
			environment, err := s.Environments().Get(t.Context(), reader, id, "")
			return len(environment.Services.List), err
		},
		"an environment's draft": func() (int, error) {
			environment, err := s.Environments().Get(t.Context(), reader, id, id+"-2")
			return len(environment.Services.List), err
		},
		"its applications": func() (int, error) {
			list, err := s.Models().Services(t.Context(), reader, id, "", nil)
			if err != nil {
				return 0, err
			}
			return len(list.(orchestrator.Applications).List), nil
		},
		"the last reports of its applications": func() (int, error) {
			reports, err := s.Environments().LastReports(t.Context(), reader, id, "")
			return len(reports), err
		},
		"its deployments": func() (int, error) {
			list, err := s.Deployments().List(t.Context(), reader, id)
			return len(list), err
		},
		"the deployments of a project": func() (int, error) {
			list, err := s.Deployments().OfProject(t.Context(), reader)
			return len(list), err
		},
	}
}

// The test counts the statements that reach the database, transactions' ends apart.
func TestLookingMakesAsManyStatementsForAThousandEnvironmentsAsForTen(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := service(t, db)
		var statements atomic.Int64
		require.NoError(t, database.Observe(db, func(string, time.Duration, bool) { statements.Add(1) }))
		const few, many = 10, 1000
		const perProject, perEnvironment = 2, 3 // statements at most
		first := fill(t, db, 0, few)
		count := func(view func() (int, error)) (answers int, made int64) {
			before := statements.Load()
			answers, err := view()
			require.NoError(t, err)
			return answers, statements.Load() - before
		}
		made := map[string]int64{}
		for name, view := range views(s, t, first) {
			_, made[name] = count(view)
		}
		last := fill(t, db, few, many)
		for name, view := range views(s, t, last) {
			answers, again := count(view)
			require.Equal(t, made[name], again, "%s", name)
			want, most := 6, int64(perEnvironment)
			switch name {
			case "the environments of a project":
				want, most = many, perProject
			case "the states of a project":
				want, most = many, perProject+4 // of components, findings, running tasks and sleep
			case "its components":
				most = perEnvironment + 6 // and of their records, and of sleep
			case "the deployments of a project":
				want, most = 2*many, perProject
			case "its deployments":
				want = 2
			}
			require.Equal(t, want, answers, "%s", name)
			require.Positive(t, again, "%s", name)
			require.LessOrEqual(t, again, most, "%s", name)
			t.Logf("%s: %d statements", name, again)
		}
	})
}

func onEachDatabase(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	run := func(name string, open func(t *testing.T) (*gorm.DB, error)) {
		t.Run(name, func(t *testing.T) {
			db, err := open(t)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, database.Close(db)) })
			test(t, db)
		})
	}
	run("SQLite", func(t *testing.T) (*gorm.DB, error) { return database.Open(filepath.Join(t.TempDir(), "burano.db")) })
	run("PostgreSQL", func(t *testing.T) (*gorm.DB, error) {
		return database.OpenPostgres(t.Context(), databasetest.Postgres(t), time.Minute)
	})
}

// BenchmarkLooking measures time and memory of each view of a project of 1,000 environments of 20 objects each, over SQLite.
func BenchmarkLooking(b *testing.B) {
	db, err := database.Open(filepath.Join(b.TempDir(), "burano.db"))
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, database.Close(db)) })
	s := service(b, db)
	last := fill(b, db, 0, 1000)
	for name, view := range views(s, b, last) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := view(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
