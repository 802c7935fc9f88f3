package keeper_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// duty returns the test's findings.
type duty struct {
	name  string
	every time.Duration

	mutex sync.Mutex
	looks map[string]int // by environment
	look  func(ctx context.Context, environment *keeper.Environment) (keeper.Result, error)
}

func (d *duty) Name() string         { return d.name }
func (d *duty) Every() time.Duration { return d.every }

func (d *duty) Look(ctx context.Context, environment *keeper.Environment) (keeper.Result, error) {
	d.mutex.Lock()
	if d.looks == nil {
		d.looks = map[string]int{}
	}
	d.looks[environment.ID]++
	look := d.look
	d.mutex.Unlock()
	if look == nil {
		return keeper.Result{}, nil
	}
	return look(ctx, environment)
}

func (d *duty) becomes(look func(ctx context.Context, environment *keeper.Environment) (keeper.Result, error)) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.look = look
}

func (d *duty) count(environmentID string) int {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.looks[environmentID]
}

func finds(findings ...keeper.Finding) func(context.Context, *keeper.Environment) (keeper.Result, error) {
	return func(context.Context, *keeper.Environment) (keeper.Result, error) {
		return keeper.Result{Findings: findings}, nil
	}
}

// onEachDatabase runs the test over a new database of each kind.
func onEachDatabase(t *testing.T, test func(t *testing.T, db *gorm.DB)) {
	for name, open := range map[string]func() (*gorm.DB, error){
		"SQLite": func() (*gorm.DB, error) { return database.Open(filepath.Join(t.TempDir(), "burano.db")) },
		"PostgreSQL": func() (*gorm.DB, error) {
			return database.OpenPostgres(t.Context(), databasetest.Postgres(t), 10*time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			db, err := open()
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, database.Close(db)) })
			test(t, db)
		})
	}
}

func rows(t *testing.T, db *gorm.DB) *store.Store {
	t.Helper()
	s, err := store.New(t.Context(), db, nil)
	require.NoError(t, err)
	return s
}

// deployed is an environment in which something was deployed.
func deployed(t *testing.T, s *store.Store, name string, properties map[string]any) store.Environment {
	t.Helper()
	id := store.NewID()
	cluster := map[string]any{"?": map[string]any{"id": "cluster-" + id}, "name": name}
	for key, value := range properties {
		cluster[key] = value
	}
	model := map[string]any{"?": map[string]any{"id": id}, "applications": []any{cluster}}
	e := store.Environment{ID: id, ProjectID: "p", Name: name, Model: store.Model{Objects: store.ForAPI(model), ObjectsCopy: model}}
	require.NoError(t, s.Environments().Create(t.Context(), &e))
	return e
}

// run runs a keeper until the returned function is called.
func run(t *testing.T, config keeper.Config) (stop func()) {
	t.Helper()
	config.Logger = slog.New(slog.DiscardHandler)
	config.Poll, config.RepairAfter, config.Repairs = 5*time.Millisecond, time.Nanosecond, keeper.DefaultRepairs
	if config.Clusters == nil {
		config.Clusters = func(_ context.Context, id string) ([]string, error) { return []string{"cluster-" + id}, nil }
	}
	config.Project = func(context.Context, string, string) (*openstack.Project, string, error) {
		return nil, "", store.ErrNotFound
	}
	if config.Wake == nil {
		config.Wake = func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- keeper.New(config).Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

func findings(t *testing.T, s *store.Store, environmentID string, closed bool) []store.Finding {
	t.Helper()
	found, err := s.Findings().List(t.Context(), store.FindingsOf{EnvironmentID: environmentID, Closed: closed}, store.Page{})
	require.NoError(t, err)
	return found
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 30*time.Second, 5*time.Millisecond)
}

func TestAFindingIsOpenedOnceChangedAndClosed(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		other := &duty{name: "other", every: 10 * time.Millisecond}
		d := &duty{name: "nodes", every: 10 * time.Millisecond}
		away := keeper.Finding{Kind: "away", Subject: "node-1", Severity: keeper.Warning, Text: "node-1 is away", Mends: "start it"}
		d.becomes(finds(away, away))
		run(t, keeper.Config{Store: s, Duties: []keeper.Duty{d, other}})

		eventually(t, func() bool { return len(findings(t, s, e.ID, false)) == 1 })
		first := findings(t, s, e.ID, false)[0]
		require.Equal(t, []string{"nodes", "away", "node-1", "warning", "node-1 is away", "start it"},
			[]string{first.Duty, first.Kind, first.Subject, first.Severity, first.Text, first.Mends})

		away.Text, away.Severity = "node-1 is away for good", keeper.Critical
		d.becomes(finds(away))
		eventually(t, func() bool { return findings(t, s, e.ID, false)[0].Text == away.Text })
		now := findings(t, s, e.ID, true)
		require.Len(t, now, 1)
		require.Equal(t, first.ID, now[0].ID)
		require.Equal(t, first.Opened, now[0].Opened, "since when it is so does not change")

		d.becomes(func(context.Context, *keeper.Environment) (keeper.Result, error) {
			return keeper.Result{}, errors.New("nobody answers")
		})
		eventually(t, func() bool { return len(findings(t, s, e.ID, false)) == 2 })
		require.Equal(t, "away", findings(t, s, e.ID, false)[0].Kind, "nothing is known of it")
		require.Contains(t, findings(t, s, e.ID, false)[1].Text, "nobody answers")

		d.becomes(nil)
		eventually(t, func() bool { return len(findings(t, s, e.ID, false)) == 0 })
		require.Len(t, findings(t, s, e.ID, true), 2)

		d.becomes(finds(away))
		eventually(t, func() bool { return len(findings(t, s, e.ID, false)) == 1 })
		require.Equal(t, first.ID, findings(t, s, e.ID, false)[0].ID, "soon after, it is the same again")

		require.NoError(t, s.Findings().Forget(t.Context(), 0))
		require.Len(t, findings(t, s, e.ID, true), 1, "what stands is not forgotten")
	})
}

func TestDutiesThatAreDueAtAboutTheSameTimeLookTogether(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		require.NoError(t, s.Keepers().Add(t.Context()))
		now := store.Time(time.Now().UnixMicro())
		dues := store.Dues{"nodes": now, "soon": now + store.Time((2 * time.Minute).Microseconds()), "later": now + store.Time((10 * time.Minute).Microseconds())}
		require.NoError(t, db.Model(&store.Keeper{}).Where("environment_id = ?", e.ID).Update("duties", dues).Error)
		all := map[string]*duty{}
		config := keeper.Config{Store: s}
		for _, name := range []string{"nodes", "soon", "later"} {
			all[name] = &duty{name: name, every: time.Hour}
			config.Duties = append(config.Duties, all[name])
		}
		run(t, config)
		var row store.Keeper
		eventually(t, func() bool {
			return db.Where("environment_id = ? AND worker = '' AND fence > 0", e.ID).Limit(1).Find(&row).RowsAffected == 1
		})
		require.Equal(t, []int{1, 1, 0}, []int{all["nodes"].count(e.ID), all["soon"].count(e.ID), all["later"].count(e.ID)})
		require.Equal(t, row.Duties["nodes"], row.Duties["soon"], "they go on together")
		require.Equal(t, dues["later"], row.Duties["later"])
	})
}

func TestOneServerAtATimeLooksAndAnotherOneGoesOn(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		var mutex sync.Mutex
		looking, most := 0, 0
		look := func(context.Context, *keeper.Environment) (keeper.Result, error) {
			mutex.Lock()
			looking++
			most = max(most, looking)
			mutex.Unlock()
			time.Sleep(2 * time.Millisecond) // long enough for another one to begin
			mutex.Lock()
			looking--
			mutex.Unlock()
			return keeper.Result{}, nil
		}
		one, two := &duty{name: "nodes", every: time.Millisecond, look: look}, &duty{name: "nodes", every: time.Millisecond, look: look}
		stop := run(t, keeper.Config{Store: s, Duties: []keeper.Duty{one}})
		run(t, keeper.Config{Store: s, Duties: []keeper.Duty{two}})
		eventually(t, func() bool { return one.count(e.ID)+two.count(e.ID) > 20 })
		stop()
		seen := two.count(e.ID)
		eventually(t, func() bool { return two.count(e.ID) > seen+3 })
		mutex.Lock()
		defer mutex.Unlock()
		require.Equal(t, 1, most)
	})
}

func TestWhatADeadServerHeldIsLookedAtWhenItsLeaseHasRunOut(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		require.NoError(t, s.Keepers().Add(t.Context()))
		began := time.Now()
		held, err := s.Keepers().Claim(t.Context(), "dead", time.Second, 5)
		require.NoError(t, err)
		require.Len(t, held, 1)
		d := &duty{name: "nodes", every: time.Millisecond}
		run(t, keeper.Config{Store: s, Duties: []keeper.Duty{d}})
		eventually(t, func() bool { return d.count(e.ID) > 0 })
		require.Greater(t, time.Since(began), 900*time.Millisecond)
		_, err = s.Keepers().EndLook(t.Context(), held[0], store.Looked{})
		require.ErrorIs(t, err, store.ErrFenced)
	})
}

func TestNobodyLooksWhileATaskRunsAndEverybodyAfterIt(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		require.NoError(t, s.Keepers().Add(t.Context()))
		claims, err := s.Keepers().Claim(t.Context(), "early", time.Minute, 5)
		require.NoError(t, err)
		require.Len(t, claims, 1)

		session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
		require.NoError(t, err)
		task, err := s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"}, Text: "t"})
		require.NoError(t, err)
		standing, err := s.Keepers().EndLook(t.Context(), claims[0], store.Looked{Duties: []string{"nodes"}, Mends: func(f store.Finding) string { return f.Mends },
			Findings: []store.Finding{{Duty: "nodes", Kind: "away"}}})
		require.NoError(t, err)
		require.Empty(t, standing, "what was seen while a task begins says nothing")

		d := &duty{name: "nodes", every: time.Hour}
		require.NoError(t, db.Exec("UPDATE keepers SET due = 0").Error)
		run(t, keeper.Config{Store: s, Duties: []keeper.Duty{d}})
		hold, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
		require.NoError(t, err)
		require.Equal(t, task.ID, hold.Task().ID)
		require.Never(t, func() bool { return d.count(e.ID) > 0 }, 100*time.Millisecond, 10*time.Millisecond)
		_, err = hold.Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		eventually(t, func() bool { return d.count(e.ID) == 1 })
	})
}

func TestARepairIsATaskThatLeavesVersionAndDraftsAloneAndIsTriedLessAndLessOften(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		draft, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
		require.NoError(t, err)
		d := &duty{name: "nodes", every: 10 * time.Millisecond}
		d.becomes(func(_ context.Context, environment *keeper.Environment) (keeper.Result, error) {
			return keeper.Result{Findings: []keeper.Finding{{Kind: "away", Severity: keeper.Warning, Mends: "it is started", Repair: &keeper.Repair{
				ObjectID: environment.Clusters[0].ID, Method: "start", Text: "It is away"}}}}, nil
		})
		run(t, keeper.Config{Store: s, Duties: []keeper.Duty{d}, Tries: 3, Pause: 50 * time.Millisecond})
		var began []time.Time
		for range 3 {
			var hold *store.Hold
			eventually(t, func() bool {
				var err error
				hold, _, err = s.Tasks().Take(t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
				return err == nil
			})
			began = append(began, hold.Task().Created.Time())
			require.Equal(t, "repair", hold.Task().Kind())
			require.Equal(t, "start", hold.Task().Action.Method)
			_, err := hold.Finish(t.Context(), store.Outcome{Failed: true, Result: store.Document{}, Objects: store.ForAPI(e.Model.ObjectsCopy), ObjectsCopy: e.Model.ObjectsCopy})
			require.NoError(t, err)
		}
		require.Greater(t, began[2].Sub(began[1]), 90*time.Millisecond, "the pause doubles")
		eventually(t, func() bool {
			found := findings(t, s, e.ID, false)
			return len(found) == 1 && found[0].Tries == 3 && found[0].Mends != "it is started"
		})
		require.Contains(t, findings(t, s, e.ID, false)[0].Mends, "It was repaired 3 times, which did not help")

		after, err := s.Environments().Get(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, e.Version, after.Version)
		require.NoError(t, s.Sessions().Edit(t.Context(), draft.ID, func(*store.Model) error { return nil }), "the draft is no older than the environment")
		sessions, err := s.Sessions().List(t.Context(), e.ID)
		require.NoError(t, err)
		require.Len(t, sessions, 1)
	})
}

func TestNothingIsRepairedWhereAUsersTaskFailedOrTheDelegationLacks(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		require.NoError(t, s.Keepers().Add(t.Context()))
		look := func() (store.Claim, store.Finding) {
			t.Helper()
			require.NoError(t, db.Exec("UPDATE keepers SET due = 0").Error)
			claims, err := s.Keepers().Claim(t.Context(), "w", time.Minute, 1)
			require.NoError(t, err)
			require.Len(t, claims, 1)
			standing, err := s.Keepers().EndLook(t.Context(), claims[0], store.Looked{Duties: []string{"nodes"}, Mends: func(f store.Finding) string { return f.Mends },
				Findings: []store.Finding{{Duty: "nodes", Kind: "away"}}})
			require.NoError(t, err)
			return claims[0], standing[0]
		}
		repair := func(change func(*store.Repair)) error {
			claim, finding := look()
			r := store.Repair{Finding: finding, TaskFence: claim.TaskFence, Most: 1, Action: store.Action{ObjectID: "o", Method: "m"}}
			change(&r)
			_, err := s.Tasks().SubmitRepair(t.Context(), r)
			return err
		}
		require.ErrorIs(t, repair(func(r *store.Repair) { r.Cloud = true }), store.ErrRevoked)
		session, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u"})
		require.NoError(t, err)
		_, err = s.Tasks().Submit(t.Context(), store.Submission{SessionID: session.ID, Action: store.Action{ObjectID: e.ID, Method: "deploy"}, Text: "t"})
		require.NoError(t, err)
		hold, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
		require.NoError(t, err)
		require.NoError(t, hold.Begin(t.Context()))
		_, err = hold.Finish(t.Context(), store.Outcome{Failed: true})
		require.NoError(t, err)
		require.ErrorIs(t, repair(func(*store.Repair) {}), store.ErrBusy)
		require.ErrorIs(t, repair(func(r *store.Repair) { r.AfterFailure, r.TaskFence = true, r.TaskFence-1 }), store.ErrBusy, "a task has begun since the look")
		require.ErrorIs(t, repair(func(r *store.Repair) { r.AfterFailure, r.Most = true, 0 }), store.ErrBusy, "enough run")
		require.NoError(t, repair(func(r *store.Repair) { r.AfterFailure = true }))
	})
}

func TestEverydayWorkBeginsAtOnceAndIsNeverGivenUp(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := rows(t, db)
		e := deployed(t, s, "one", nil)
		d := &duty{name: "load", every: 10 * time.Millisecond}
		grow := func(_ context.Context, environment *keeper.Environment) (keeper.Result, error) {
			return keeper.Result{Findings: []keeper.Finding{{Kind: "group-too-small", Subject: "workers: 3", Severity: keeper.Info, Mends: "it grows", Repair: &keeper.Repair{
				ObjectID: environment.Clusters[0].ID, Method: "grow", Text: "It is too small", Routine: true}}}}, nil
		}
		d.becomes(grow)
		run(t, keeper.Config{Store: s, Duties: []keeper.Duty{d}, Tries: 1, Pause: time.Millisecond, RepairAfter: time.Hour})
		ends := func() {
			t.Helper()
			var hold *store.Hold
			eventually(t, func() bool {
				var err error
				hold, _, err = s.Tasks().Take(t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
				return err == nil
			})
			_, err := hold.Finish(t.Context(), store.Outcome{Result: store.Document{}, Objects: store.ForAPI(e.Model.ObjectsCopy), ObjectsCopy: e.Model.ObjectsCopy})
			require.NoError(t, err)
		}
		ends()
		ends()
		standing := findings(t, s, e.ID, false)
		require.Len(t, standing, 1)
		require.Equal(t, "it grows", standing[0].Mends)

		d.becomes(func(context.Context, *keeper.Environment) (keeper.Result, error) { return keeper.Result{}, nil })
		eventually(t, func() bool {
			hold, _, err := s.Tasks().Take(t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
			if err == nil { // of the last look before
				_, err = hold.Finish(t.Context(), store.Outcome{Result: store.Document{}, Objects: store.ForAPI(e.Model.ObjectsCopy), ObjectsCopy: e.Model.ObjectsCopy})
				require.NoError(t, err)
			}
			return len(findings(t, s, e.ID, false)) == 0
		})
		d.becomes(grow)
		eventually(t, func() bool { return len(findings(t, s, e.ID, false)) == 1 })
		require.LessOrEqual(t, findings(t, s, e.ID, false)[0].Tries, int64(1), "found again it is another one")
	})
}
