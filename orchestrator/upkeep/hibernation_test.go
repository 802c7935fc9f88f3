package upkeep

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// noSecrets are the secrets of environments without clusters.
type noSecrets struct{}

func (noSecrets) Secret(context.Context, string, string) ([]byte, bool, error) {
	return nil, false, nil
}

func (noSecrets) SetSecret(context.Context, string, string, []byte) error { return nil }

// settledAt is the state of an environment's schedule.
type settledAt struct{ state store.Settled }

func (s *settledAt) Settled(context.Context, store.Hibernation) (store.Settled, error) {
	return s.state, nil
}

func scheduleText(t *testing.T, schedule hibernation.Schedule) string {
	t.Helper()
	text, err := json.Marshal(schedule)
	require.NoError(t, err)
	return string(text)
}

// oneServer is the model of an environment with a server.
func oneServer(id string) map[string]any {
	return map[string]any{"?": map[string]any{"id": id}, "applications": []any{map[string]any{"?": map[string]any{"id": "object-" + id}, "name": "web", "flavor": "m1.small", "openstackId": "server-" + id}}}
}

func TestAnEnvironmentSleepsAndWakesByItsSchedule(t *testing.T) {
	friday := time.Date(2026, 11, 27, 20, 0, 0, 0, time.UTC)
	now := friday
	rows := &settledAt{store.Settled{Delegated: true, At: store.Time(friday.Add(-time.Hour).UnixMicro())}}
	duty := newHibernationDuty(Config{Secrets: noSecrets{}, Schedules: rows, Interval: time.Minute})
	duty.now = func() time.Time { return now }
	environment := &keeper.Environment{ID: "e", Name: "shop", Model: oneServer("e")}
	look := func() (keeper.Result, []string) {
		result, err := duty.Look(t.Context(), environment)
		require.NoError(t, err)
		return result, kinds(result.Findings)
	}
	_, found := look()
	require.Empty(t, found, "there is no schedule")

	environment.Sleeps.Schedule = scheduleText(t, hibernation.Schedule{Zone: "UTC", Sleep: []string{"0 20 * * 1-5"}, Wake: []string{"0 7 * * 1-5"}})
	now = friday.Add(-time.Minute)
	result, found := look()
	require.Empty(t, found)
	require.Equal(t, 54*time.Second, result.Next, "a look may come a tenth later, and not too late")

	now = friday
	result, found = look()
	require.Equal(t, []string{"info sleep-due "}, found)
	require.Equal(t, turnPause, result.Next)
	require.Equal(t, &keeper.Repair{ObjectID: "e", Method: store.MethodHibernate, Cloud: true, Routine: true, AfterFailure: true, Text: "By its schedule the environment sleeps since 2026-11-27 20:00 UTC"}, result.Findings[0].Repair)

	rows.state.Delegated = false
	_, found = look()
	require.Equal(t, []string{"warning schedule-undelegated "}, found)
	rows.state.Delegated = true

	environment.Model = map[string]any{"?": map[string]any{"id": "e"}}
	result, found = look()
	require.Equal(t, []string{"warning sleep-due "}, found)
	require.Contains(t, result.Findings[0].Text, "it has no servers in the cloud")
	require.Nil(t, result.Findings[0].Repair, "nothing is begun that would be refused")
	environment.Model = oneServer("e")

	rows.state.Failed, rows.state.Tried = "t1", store.Time(friday.Add(-time.Minute).UnixMicro())
	_, found = look()
	require.Equal(t, []string{"info sleep-due "}, found, "that was for a former time")
	rows.state.Tried = store.Time(friday.UnixMicro())
	result, found = look()
	require.Equal(t, []string{"warning sleep-due "}, found)
	require.Contains(t, result.Findings[0].Mends, "burano deployment show t1")
	require.NotNil(t, result.Findings[0].Repair, "it is tried again")

	now = friday.Add(2 * time.Hour)
	_, found = look()
	require.Equal(t, []string{"warning sleep-due "}, found, "it is late")
	now = friday.Add(hibernation.LateSleep + time.Second)
	result, found = look()
	require.Equal(t, []string{"warning sleep-missed "}, found)
	require.Nil(t, result.Findings[0].Repair)
	rows.state.At = store.Time(friday.Add(time.Minute).UnixMicro())
	_, found = look()
	require.Empty(t, found, "a user has acted since")

	environment.Sleeps.State = store.Asleep
	now = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	result, found = look()
	require.Equal(t, []string{"warning wake-due "}, found, "it wakes late, too")
	require.Equal(t, store.MethodWake, result.Findings[0].Repair.Method)
	environment.Sleeps.State = store.Hibernating
	_, found = look()
	require.Equal(t, []string{"warning hibernation-unfinished ", "warning wake-due "}, found)
}

// ahead is a clock that a test moves.
type ahead struct {
	mutex sync.Mutex
	now   time.Time
}

func (a *ahead) Now() time.Time {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.now
}

func (a *ahead) to(now time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.now = now
}

// change is a hibernation or its end.
type change struct {
	method string
	at     time.Time
}

// sleepers are many environments with schedules, on a clock that runs ahead. Their tasks have no effect but their states.
type sleepers struct {
	*store.Store
	t       *testing.T
	db      *gorm.DB
	clock   *ahead
	most    int64
	peak    int64
	changes map[string][]change // by environment
}

func (s *sleepers) count(query string, args ...any) (count int64) {
	require.NoError(s.t, s.db.Raw(query, args...).Scan(&count).Error)
	return count
}

// settle waits until the keeper has looked at all environments that are due.
func (s *sleepers) settle() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		return s.count("SELECT COUNT(*) FROM keepers WHERE due <= ? AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.environment_id = keepers.environment_id AND finished IS NULL)", s.clock.Now().UnixMicro()) == 0
	}, time.Minute, time.Millisecond)
}

// work runs all tasks that wait.
func (s *sleepers) work() {
	s.t.Helper()
	waiting := s.count("SELECT COUNT(*) FROM tasks WHERE finished IS NULL")
	s.peak = max(s.peak, waiting)
	for range waiting {
		hold, _, err := s.Tasks().Take(s.t.Context(), store.Taking{Worker: "w", Lease: time.Minute})
		require.NoError(s.t, err)
		task := hold.Task()
		state := store.Asleep
		if task.Action.Method == store.MethodWake {
			state = store.Awake
		}
		former, err := s.Hibernations().Of(s.t.Context(), task.EnvironmentID)
		require.NoError(s.t, err)
		require.NotEqual(s.t, state, former.State, "nothing is done twice")
		require.NoError(s.t, hold.SetHibernation(s.t.Context(), state, []store.StoppedServer{}))
		_, err = hold.Finish(s.t.Context(), store.Outcome{Result: store.Document{"isException": false}})
		require.NoError(s.t, err)
		if task.Repair {
			s.changes[task.EnvironmentID] = append(s.changes[task.EnvironmentID], change{task.Action.Method, s.clock.Now()})
		}
	}
}

// until runs the clock ahead: in small steps while environments wait for their turn, else to the next look.
func (s *sleepers) until(end time.Time) {
	s.t.Helper()
	for s.clock.Now().Before(end) {
		s.settle()
		s.work()
		s.settle()
		next := s.clock.Now().Add(35 * time.Second)
		if s.count("SELECT COUNT(*) FROM findings WHERE closed IS NULL")+s.count("SELECT COUNT(*) FROM tasks WHERE finished IS NULL") == 0 {
			// The keeper wakes hourly, also where no duty is due: that is left out.
			require.NoError(s.t, s.db.Exec("UPDATE keepers SET due = json_extract(duties, '$.hibernation')").Error)
			next = time.UnixMicro(s.count("SELECT MIN(due) FROM keepers")).Add(10 * time.Minute)
		}
		if next.After(end) {
			next = end
		}
		s.clock.to(next)
	}
}

// TestManyEnvironmentsSleepOverWeekends has four time zones, two weekends, and users who work on a Saturday. `make soak` has 1,000 environments.
func TestManyEnvironmentsSleepOverWeekends(t *testing.T) {
	many, most := 80, 4
	if os.Getenv("BURANO_SOAK") != "" {
		many, most = 1000, 50
	}
	zones := []string{"Pacific/Auckland", "Asia/Kolkata", "Europe/Berlin", "America/New_York"}
	db, err := database.Open(filepath.Join(t.TempDir(), "burano.db"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, database.Close(db)) })
	monday := time.Date(2026, 10, 19, 0, 0, 0, 0, time.UTC) // the clocks of two zones change on the weekends after it
	clock := &ahead{now: monday}
	rows, err := store.New(t.Context(), db, clock.Now)
	require.NoError(t, err)
	require.NoError(t, rows.ProjectRoles().Enable(t.Context(), &store.ProjectRole{ProjectID: "p", Roles: store.Names{"member"}}))
	s := &sleepers{Store: rows, t: t, db: db, clock: clock, most: int64(most), changes: map[string][]change{}}
	var ids []string
	for i := range many {
		id := store.NewID()
		ids = append(ids, id)
		require.NoError(t, s.Environments().Create(t.Context(), &store.Environment{ID: id, ProjectID: "p", Name: fmt.Sprint("e", i), Model: store.Model{Objects: store.ForAPI(oneServer(id)), ObjectsCopy: oneServer(id)}}))
		require.NoError(t, s.Hibernations().SetSchedule(t.Context(), id, scheduleText(t, hibernation.Schedule{Zone: zones[i%len(zones)], Sleep: []string{"0 20 * * fri"}, Wake: []string{"0 7 * * mon"}}), "demo"))
	}
	require.NoError(t, s.Keepers().Add(t.Context()))
	duty := newHibernationDuty(Config{Secrets: noSecrets{}, Schedules: s.Hibernations(), Interval: 84 * time.Hour})
	duty.now = clock.Now
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = keeper.New(keeper.Config{Store: rows, Duties: []keeper.Duty{duty}, Hibernations: most, Poll: time.Millisecond, Sole: true, Wake: func() {}, Logger: slog.New(slog.DiscardHandler),
			Clusters: func(context.Context, string) ([]string, error) { return nil, nil },
			Project: func(context.Context, string, string) (*openstack.Project, string, error) {
				return &openstack.Project{}, "role", nil
			}}).Run(ctx)
	})
	defer running.Wait()
	defer cancel()

	saturday := monday.AddDate(0, 0, 5).Add(12 * time.Hour)
	s.until(saturday)
	byHand := func(i int) bool { return i%20 < len(zones) } // some of each zone
	for i, id := range ids {
		require.Len(t, s.changes[id], 1, "all sleep on Saturday")
		if byHand(i) {
			_, err := s.Tasks().SubmitAction(t.Context(), id, "u1", store.Submission{Action: store.Action{ObjectID: id, Method: store.MethodWake, Args: map[string]any{}}, Text: "Action wake is scheduled"})
			require.NoError(t, err)
		}
	}
	require.LessOrEqual(t, s.peak, s.most)
	s.work()
	s.peak = 0
	s.until(monday.AddDate(0, 0, 15))
	require.LessOrEqual(t, s.peak, s.most, "few sleep and wake at the same time")
	require.Zero(t, s.count("SELECT COUNT(*) FROM findings WHERE closed IS NULL"))
	for i, id := range ids {
		zone, err := time.LoadLocation(zones[i%len(zones)])
		require.NoError(t, err)
		wanted := []change{{store.MethodHibernate, time.Date(2026, 10, 23, 20, 0, 0, 0, zone)}, {store.MethodWake, time.Date(2026, 10, 26, 7, 0, 0, 0, zone)},
			{store.MethodHibernate, time.Date(2026, 10, 30, 20, 0, 0, 0, zone)}, {store.MethodWake, time.Date(2026, 11, 2, 7, 0, 0, 0, zone)}}
		if byHand(i) {
			wanted = append(wanted[:1:1], wanted[2:]...)
		}
		require.Len(t, s.changes[id], len(wanted), "environment %d", i)
		for j, one := range s.changes[id] {
			require.Equal(t, wanted[j].method, one.method)
			require.False(t, one.at.Before(wanted[j].at), "%d is early: %s, not %s", i, one.at, wanted[j].at)
			require.Less(t, one.at.Sub(wanted[j].at), time.Hour, "%d waits too long", i)
		}
	}
}
