package store_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"
	"pgregory.net/rapid"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// sleeping is an environment that is hibernated and woken by workers that die, and its state by the rules.
type sleeping struct {
	*store.Store
	ctx context.Context
	r   *rapid.T
	e   store.Environment

	state   store.HibernationState
	version int64
	method  string // of the task that waits or runs; "" for none
	hold    *store.Hold
	former  []*store.Hold
	servers []store.StoppedServer
	draft   string
}

var one = []store.StoppedServer{{ID: "s1", Name: "murano-kube-1", Role: "master", Cluster: "kube"}}

func (s *sleeping) submit(method string) error {
	_, err := s.Tasks().SubmitAction(s.ctx, s.e.ID, "u1", store.Submission{Action: store.Action{ObjectID: s.e.ID, Method: method, Args: map[string]any{}}, Text: "Action " + method + " is scheduled"})
	return err
}

func (s *sleeping) begin(method string) func(*rapid.T) {
	return func(r *rapid.T) {
		err := s.submit(method)
		if s.method != "" {
			require.ErrorIs(r, err, store.ErrBusy)
			return
		}
		require.NoError(r, err)
		s.method = method
	}
}

// take has a worker take the task, after the death of its holder.
func (s *sleeping) take(r *rapid.T) {
	if s.method == "" {
		return
	}
	require.NoError(r, s.Tasks().EndLeases(s.ctx))
	hold, _, err := s.Tasks().Take(s.ctx, store.Taking{Worker: "w1", Lease: time.Minute})
	require.NoError(r, err)
	require.Equal(r, "action", ptr(hold.Task()).Kind())
	if s.hold != nil {
		s.former = append(s.former, s.hold)
	}
	s.hold = hold
	for _, dead := range s.former {
		require.ErrorIs(r, dead.SetHibernation(s.ctx, store.Awake, nil), store.ErrFenced)
	}
}

func ptr(t store.Task) *store.Task { return &t }

// advance writes the next state of the task.
func (s *sleeping) advance(r *rapid.T) {
	if s.hold == nil {
		return
	}
	next, servers := store.Asleep, []store.StoppedServer(nil)
	switch {
	case s.method == store.MethodHibernate && s.state != store.Hibernating:
		next, servers, s.servers = store.Hibernating, one, one
	case s.method == store.MethodWake && s.state != store.Waking:
		next = store.Waking
	case s.method == store.MethodWake:
		next = store.Awake
	}
	require.NoError(r, s.hold.SetHibernation(s.ctx, next, servers))
	s.state = next
}

func (s *sleeping) end(failed bool) func(*rapid.T) {
	return func(r *rapid.T) {
		if s.hold == nil {
			return
		}
		_, err := s.hold.Finish(s.ctx, store.Outcome{Failed: failed, Result: store.Document{"isException": failed}, Objects: map[string]any{"name": "of the task"}})
		require.NoError(r, err)
		s.method, s.hold, s.former = "", nil, append(s.former, s.hold)
	}
}

// act submits another action, which is refused unless the environment is awake and idle, and ends it.
func (s *sleeping) act(r *rapid.T) {
	err := s.submit("scale")
	switch {
	case s.method != "":
		require.ErrorIs(r, err, store.ErrBusy)
	case s.state != store.Awake:
		require.Equal(r, fault.Conflict, fault.KindOf(err))
		require.ErrorContains(r, err, "wake it first")
	default:
		require.NoError(r, err)
		require.NoError(r, s.Tasks().EndLeases(s.ctx))
		hold, _, err := s.Tasks().Take(s.ctx, store.Taking{Worker: "w1", Lease: time.Minute})
		require.NoError(r, err)
		_, err = hold.Finish(s.ctx, store.Outcome{Failed: true, Result: store.Document{}})
		require.NoError(r, err)
		s.version++
	}
}

func (s *sleeping) look(r *rapid.T) {
	found, err := s.Hibernations().Of(s.ctx, s.e.ID)
	require.NoError(r, err)
	require.Equal(r, s.state, found.State)
	require.ElementsMatch(r, s.servers, found.Servers, "they stay until the next hibernation")
	states, err := s.Hibernations().States(s.ctx, store.Part{ProjectID: s.e.ProjectID})
	require.NoError(r, err)
	require.Equal(r, s.state, states[s.e.ID])
	environment, err := s.Environments().Get(s.ctx, s.e.ID)
	require.NoError(r, err)
	require.Equal(r, s.version, environment.Version, "sleeping changes no version")
	require.NotEqual(r, "of the task", environment.Model.Objects["name"], "nor the model")
	sessions, err := s.Sessions().PeekList(s.ctx, s.e.ID)
	require.NoError(r, err)
	drafts, busy := 0, 0
	for _, one := range sessions {
		if one.ID == s.draft {
			drafts++
		}
		if one.State == store.Deploying {
			busy++
		}
	}
	require.Equal(r, 1, drafts, "drafts stay")
	require.Equal(r, s.method != "", busy == 1)
}

// TestAnEnvironmentSleepsAndWakesUnderDeaths does random things with the tasks that hibernate and wake an environment, while workers die, and with other tasks.
func TestAnEnvironmentSleepsAndWakesUnderDeaths(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		rapid.Check(t, func(r *rapid.T) {
			e := environment(t, s, store.NewID())
			defer func() { require.NoError(r, s.Environments().Remove(t.Context(), e.ID, "")) }()
			draft, err := s.Sessions().Open(t.Context(), e.ID, store.Holder{ID: "u2"})
			require.NoError(r, err)
			w := &sleeping{Store: s, ctx: t.Context(), r: r, e: e, draft: draft.ID}
			r.Repeat(map[string]func(*rapid.T){
				"hibernate": w.begin(store.MethodHibernate), "wake": w.begin(store.MethodWake), "take": w.take, "advance": w.advance, "succeed": w.end(false), "fail": w.end(true),
				"act": w.act, "": w.look,
			})
		})
	})
}

func TestARepairStartsNothingInAnEnvironmentThatSleepsAndAScheduledHibernationMakesWay(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		e := environment(t, s, "one")
		deploy(t, s, e)
		_, err := take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		require.NoError(t, s.Hibernations().SetSchedule(t.Context(), e.ID, "{}", "demo"))
		repair := func(method string) error {
			t.Helper()
			claims, err := s.Keepers().Claim(t.Context(), "w1", time.Minute, 10)
			require.NoError(t, err)
			require.Len(t, claims, 1)
			standing, err := s.Keepers().EndLook(t.Context(), claims[0], store.Looked{Duties: []string{"d"}, Findings: []store.Finding{{Duty: "d", Kind: method, Severity: "info"}},
				Due: store.Dues{"d": 0}, Mends: func(store.Finding) string { return "" }})
			require.NoError(t, err)
			_, err = s.Tasks().SubmitRepair(t.Context(), store.Repair{Finding: standing[0], TaskFence: claims[0].TaskFence, Most: 4, Action: store.Action{ObjectID: e.ID, Method: method}, Text: "x"})
			return err
		}
		require.NoError(t, repair(store.MethodHibernate))
		hold := take(t, s)
		session, _ := deploy(t, s, e) // a user's deployment comes first
		require.ErrorIs(t, hold.SetHibernation(t.Context(), store.Hibernating, nil), store.ErrBusy)
		_, err = hold.Finish(t.Context(), store.Outcome{Failed: true})
		require.NoError(t, err)
		user := take(t, s)
		require.Equal(t, session.ID, user.Task().SessionID)
		_, err = user.Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)

		require.NoError(t, repair(store.MethodHibernate))
		hold = take(t, s)
		require.NoError(t, hold.SetHibernation(t.Context(), store.Asleep, one))
		_, err = hold.Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		require.ErrorIs(t, repair("repairNode"), store.ErrBusy, "its servers are off because they are to be")
		require.NoError(t, repair(store.MethodWake))

		require.NoError(t, s.Environments().Remove(t.Context(), e.ID, ""))
		found, err := s.Hibernations().Of(t.Context(), e.ID)
		require.NoError(t, err)
		require.Equal(t, store.Awake, found.State, "it goes with the environment")
	})
}

// found is an open finding of an environment that a task of its schedule mends.
func found(t *testing.T, s *store.Store, e store.Environment, method string) store.Repair {
	t.Helper()
	require.NoError(t, s.Keepers().Add(t.Context()))
	claims, err := s.Keepers().Claim(t.Context(), "w1", time.Minute, 100)
	require.NoError(t, err)
	var repair store.Repair
	for _, claim := range claims {
		looked := store.Looked{Due: store.Dues{"d": 0}, Mends: func(store.Finding) string { return "" }}
		if claim.EnvironmentID == e.ID {
			looked.Duties, looked.Findings = []string{"d"}, []store.Finding{{Duty: "d", Kind: method, Severity: "info"}}
		}
		standing, err := s.Keepers().EndLook(t.Context(), claim, looked)
		require.NoError(t, err)
		if claim.EnvironmentID == e.ID {
			repair = store.Repair{Finding: standing[0], TaskFence: claim.TaskFence, Most: 3, Action: store.Action{ObjectID: e.ID, Method: method}, Text: "By its schedule"}
		}
	}
	require.NotZero(t, repair.Most, "the environment is due")
	return repair
}

func TestAScheduleStaysBesideTheStateAndUsersOverruleIt(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		e := environment(t, s, "one")
		row := func() store.Hibernation {
			row, err := s.Hibernations().Of(t.Context(), e.ID)
			require.NoError(t, err)
			return row
		}
		settled := func() store.Settled {
			settled, err := s.Hibernations().Settled(t.Context(), row())
			require.NoError(t, err)
			return settled
		}
		require.ErrorIs(t, s.Hibernations().SetSchedule(t.Context(), "none", "{}", "demo"), store.ErrNotFound)
		_, err := s.Tasks().SubmitRepair(t.Context(), found(t, s, e, store.MethodHibernate))
		require.ErrorIs(t, err, store.ErrNotFound, "the schedule was ended meanwhile")
		require.NoError(t, s.Hibernations().SetSchedule(t.Context(), e.ID, `{"zone":"UTC"}`, "demo"))
		require.Equal(t, store.Awake, row().State)
		require.Equal(t, store.Settled{At: row().Scheduled}, settled())

		_, task := deploy(t, s, e)
		require.Equal(t, store.Settled{At: task.Created}, settled())
		_, err = take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)

		scheduled, err := s.Tasks().SubmitRepair(t.Context(), found(t, s, e, store.MethodHibernate))
		require.NoError(t, err)
		hold := take(t, s)
		require.NoError(t, hold.SetHibernation(t.Context(), store.Hibernating, one))
		require.Equal(t, store.Settled{At: task.Created}, settled(), "its own task overrules nothing, and runs")
		_, err = hold.Finish(t.Context(), store.Outcome{Failed: true, Result: store.Document{"isException": true}})
		require.NoError(t, err)
		require.Equal(t, store.Settled{At: task.Created, Failed: scheduled.ID, Tried: scheduled.Created}, settled())
		cancelled, err := s.Tasks().SubmitRepair(t.Context(), found(t, s, e, store.MethodHibernate))
		require.NoError(t, err)
		require.NoError(t, s.Tasks().Cancel(t.Context(), cancelled.ID, "demo", "cancelled"))
		require.Equal(t, store.Settled{At: cancelled.Created}, settled(), "a user has cancelled this time")
		_, err = take(t, s).Finish(t.Context(), store.Outcome{Failed: true, Result: store.Document{"isException": true}})
		require.NoError(t, err)
		require.Equal(t, store.Settled{At: cancelled.Created}, settled())
		done, err := s.Tasks().SubmitRepair(t.Context(), found(t, s, e, store.MethodHibernate))
		require.NoError(t, err)
		_, err = take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		require.Equal(t, store.Settled{At: done.Created}, settled(), "an earlier time, by another server's clock, undoes nothing")
		require.Equal(t, `{"zone":"UTC"}`, row().Schedule)
		require.Equal(t, store.Hibernating, row().State)

		require.NoError(t, s.ProjectRoles().Enable(t.Context(), &store.ProjectRole{ProjectID: "p1", Roles: store.Names{"member"}}))
		require.True(t, settled().Delegated)
		require.NoError(t, s.ProjectRoles().Disable(t.Context(), "p1"))
		require.False(t, settled().Delegated)
		delegation := store.Delegation{EnvironmentID: e.ID, UserID: "u1", Kind: store.Trust}
		require.NoError(t, s.Delegations().Add(t.Context(), &delegation))
		require.NoError(t, s.Delegations().SetStanding(t.Context(), e.ID, delegation.ID, ""))
		require.True(t, settled().Delegated)

		require.NoError(t, s.Hibernations().SetSchedule(t.Context(), e.ID, "", "other"))
		require.Equal(t, store.Hibernating, row().State)
		require.Empty(t, row().Schedule)
		require.Equal(t, "other", row().UserName)
		require.Equal(t, one, []store.StoppedServer(row().Servers))
		require.Greater(t, settled().At, scheduled.Created)

		failures := func() int {
			var record store.Component
			require.NoError(t, db.Where("environment_id = ? AND object_id = ''", e.ID).Take(&record).Error)
			return len(record.Failures)
		}
		_, err = s.Tasks().SubmitAction(t.Context(), e.ID, "u1", store.Submission{Action: store.Action{ObjectID: e.ID, Method: store.MethodWake, Args: map[string]any{}}, Text: "x"})
		require.NoError(t, err)
		_, err = take(t, s).Finish(t.Context(), store.Outcome{Failed: true, Result: store.Document{"isException": true}})
		require.NoError(t, err)
		require.Equal(t, 1, failures())
		require.NoError(t, s.Hibernations().SetSchedule(t.Context(), e.ID, "{}", "demo"))
		_, err = s.Tasks().SubmitRepair(t.Context(), found(t, s, e, store.MethodWake))
		require.NoError(t, err)
		_, err = take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		require.Zero(t, failures(), "the schedule's success settles the failure of the user's task")
	})
}

func TestFewSchedulesStartTasksAtATime(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, db *gorm.DB) {
		s := open(t, db)
		var due []store.Repair
		for i := range 12 {
			e := environment(t, s, string(rune('a'+i)))
			require.NoError(t, s.Hibernations().SetSchedule(t.Context(), e.ID, "{}", "demo"))
			due = append(due, found(t, s, e, store.MethodHibernate))
		}
		begin := func() (begun int) {
			var all sync.WaitGroup
			var count atomic.Int64
			for _, repair := range due {
				all.Go(func() {
					_, err := s.Tasks().SubmitRepair(t.Context(), repair)
					if err == nil {
						count.Add(1)
					} else if !errors.Is(err, store.ErrBusy) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			return int(count.Load())
		}
		require.Equal(t, 3, begin(), "also when all begin at once")
		require.Zero(t, begin())
		broken := found(t, s, environment(t, s, "broken"), "repairNode")
		broken.Most = 1
		_, err := s.Tasks().SubmitRepair(t.Context(), broken)
		require.NoError(t, err, "repairs have places of their own")
		_, err = take(t, s).Finish(t.Context(), store.Outcome{})
		require.NoError(t, err)
		require.Equal(t, 1, begin())
	})
}
