package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/store"
)

// repair submits the repair of an application of an environment, and begins with it.
func (h *house) repair(_, objectID string) store.Task {
	h.t.Helper()
	task, err := h.submitRepair(store.Repair{Action: store.Action{ObjectID: objectID, Method: "mend"}})
	require.NoError(h.t, err)
	h.engine.Wake()
	return task
}

func (h *house) submitRepair(repair store.Repair) (store.Task, error) {
	h.t.Helper()
	require.NoError(h.t, h.store.Keepers().Add(h.t.Context()))
	require.NoError(h.t, h.db.Exec("UPDATE keepers SET due = 0").Error)
	claims, err := h.store.Keepers().Claim(h.t.Context(), "keeper", time.Minute, 1)
	require.NoError(h.t, err)
	require.Len(h.t, claims, 1)
	standing, err := h.store.Keepers().EndLook(h.t.Context(), claims[0], store.Looked{Duties: []string{"nodes"}, Mends: func(f store.Finding) string { return f.Mends },
		Findings: []store.Finding{{Duty: "nodes", Kind: "away"}}})
	require.NoError(h.t, err)
	repair.Finding, repair.TaskFence, repair.Most, repair.Text = standing[0], claims[0].TaskFence, 4, "It is away"
	return h.store.Tasks().SubmitRepair(h.t.Context(), repair)
}

func TestARepairChangesTheModelAndNeitherVersionNorDraftsNorStatus(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		id := h.create("one")
		h.deploy(id, application("a1", "alpha", nil))
		require.Equal(t, "success", h.ended(id).State)
		before, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		session, err := h.service.Sessions().Open(t.Context(), demo, id)
		require.NoError(t, err)
		require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, []any{}, false))

		release := h.world.Hold("first of alpha")
		defer release()
		task := h.repair(id, "a1")
		h.begun("first of alpha", 1)
		require.Equal(t, "pending", h.status(id), "a draft is open, and nothing that a user wants runs")
		release()
		deployment := h.ended(id)
		require.Equal(t, task.ID, deployment.ID)
		require.Equal(t, "success", deployment.State)
		require.Equal(t, []string{"It is away", "Repair finished"}, texts(h.reports(id, deployment)))
		after, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, before.Version, after.Version)
		require.Equal(t, "mended", after.Model.Objects["services"].([]any)[0].(map[string]any)["result"])
		require.NoError(t, h.service.Sessions().Deploy(t.Context(), demo, id, session.ID), "the draft is as good as before")
		require.Equal(t, "success", h.ended(id).State)
		require.Equal(t, 1, count(h.world.Log(), "destroy alpha"), "and it takes the application out")
	})
}

func TestAUsersDeploymentWaitsForNoMoreThanTheStepOfARepairThatRuns(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		id := h.create("one")
		h.deploy(id, application("a1", "alpha", nil))
		require.Equal(t, "success", h.ended(id).State)
		release := h.world.Hold("first of alpha")
		defer release()
		task := h.repair(id, "a1")
		h.begun("first of alpha", 1)
		h.deploy(id, application("a1", "alpha", nil), application("a2", "beta", nil))
		require.Never(t, func() bool { return count(h.world.Log(), "begin deploy beta") > 0 }, 200*time.Millisecond, 10*time.Millisecond)
		release()
		h.begun("deploy beta", 1)
		require.Equal(t, "success", h.ended(id).State)
		require.Equal(t, 1, count(h.world.Log(), "first of alpha"), "what ran was not cut off")
		require.Zero(t, count(h.world.Log(), "begin second of alpha"))
		list, err := h.service.Deployments().List(t.Context(), demo, id)
		require.NoError(t, err)
		require.Equal(t, task.ID, list[1].ID)
		require.Equal(t, "success", list[1].State, "it says in its log why it ended, and is no failure")
		require.Equal(t, []string{"It is away", "The repair made way for what a user has asked for; it is begun again when it is still needed", "Repair finished"},
			texts(h.reports(id, list[1])))
	})
}

func TestARepairWhoseServerDiesIsGoneOnWithByAnotherOne(t *testing.T) {
	onEachDatabaseFor(t, shortLease, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		id := h.create("one")
		h.deploy(id, application("a1", "alpha", nil))
		require.Equal(t, "success", h.ended(id).State)
		h.stop()
		task := h.repair(id, "a1")
		dead, _, err := h.store.Tasks().Take(t.Context(), store.Taking{Worker: "dead", Lease: shortLease})
		require.NoError(t, err)
		_, err = dead.StartStep(t.Context(), store.Step{ObjectID: "a1", Name: "first"})
		require.NoError(t, err)
		b := h.another()
		require.Eventually(t, func() bool { return b.newest(id).Finished != nil }, 30*time.Second, 10*time.Millisecond)
		require.Equal(t, task.ID, b.newest(id).ID)
		require.Equal(t, 1, count(b.world.Log(), "second of alpha"))
	})
}

func TestARepairDestroysNothingThatADeploymentLeft(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		id := h.create("one")
		h.deploy(id, application("a1", "alpha", nil), application("a2", "beta", nil))
		require.Equal(t, "success", h.ended(id).State)
		// A deployment without beta was submitted and cancelled before it had destroyed it: the model has it no more, the copy has.
		environment, err := h.store.Environments().Get(t.Context(), id)
		require.NoError(t, err)
		environment.Model.Objects["services"] = environment.Model.Objects["services"].([]any)[:1]
		session, err := h.service.Sessions().Open(t.Context(), demo, id)
		require.NoError(t, err)
		require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, environment.Model.Objects["services"].([]any), false))
		release := h.world.Hold("destroy beta")
		require.NoError(t, h.service.Sessions().Deploy(t.Context(), demo, id, session.ID))
		h.begun("destroy beta", 1)
		require.NoError(t, h.service.Deployments().Cancel(t.Context(), demo, h.newest(id).ID))
		require.NotEqual(t, "success", h.ended(id).State)
		release()
		require.NoError(t, h.db.Exec("UPDATE sessions SET state = 'deployed'").Error) // as an action that went well afterwards leaves it
		h.repair(id, "a1")
		require.Equal(t, "success", h.ended(id).State)
		require.Zero(t, count(h.world.Log(), "destroy beta"))
	})
}

// TestAScheduleHibernatesAndWakesWithTheStandingDelegation has Go bodies in place of the ones that stop and start servers.
func TestAScheduleHibernatesAndWakesWithTheStandingDelegation(t *testing.T) {
	h := uploadedHouse(t)
	h.stop()
	own := h.natives
	h.natives = func(runtime *engine.Runtime) muranopl.Natives {
		natives := own(runtime)
		environment := natives["io.murano"]["io.murano.Environment"]
		environment["hibernate"] = func(ctx context.Context, _ muranopl.Call) (any, error) {
			return nil, errors.Join(runtime.SetHibernation(ctx, store.Hibernating, []store.StoppedServer{{ID: "s"}}), runtime.SetHibernation(ctx, store.Asleep, nil))
		}
		environment["wake"] = func(ctx context.Context, _ muranopl.Call) (any, error) {
			return nil, runtime.SetHibernation(ctx, store.Awake, nil)
		}
		return natives
	}
	h.start()
	id := h.create("one")
	h.deploy(id)
	require.Equal(t, "success", h.ended(id).State)
	before, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	_, err = h.service.Hibernations().SetSchedule(t.Context(), demo, id, hibernation.Schedule{Zone: "UTC", Sleep: []string{"0 20 * * *"}})
	require.NoError(t, err)
	hibernate := store.Repair{Cloud: true, Action: store.Action{ObjectID: id, Method: store.MethodHibernate}}
	_, err = h.submitRepair(hibernate)
	require.ErrorIs(t, err, store.ErrRevoked, "there is no delegation")
	_, err = h.service.Delegations().Set(t.Context(), demo, id, orchestrator.Delegate{})
	require.NoError(t, err)
	for _, one := range []struct{ method, state string }{{store.MethodHibernate, "asleep"}, {store.MethodWake, "awake"}} {
		hibernate.Action.Method = one.method
		task, err := h.submitRepair(hibernate)
		require.NoError(t, err)
		h.engine.Wake()
		deployment := h.ended(id)
		require.Equal(t, task.ID, deployment.ID)
		require.Equal(t, "success", deployment.State, texts(h.reports(id, deployment)))
		found, err := h.service.Hibernations().Get(t.Context(), demo, id)
		require.NoError(t, err)
		require.Equal(t, one.state, found.State)
		require.True(t, found.Schedule.Delegated)
	}
	after, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, before.Version, after.Version)
	require.Equal(t, before.Model, after.Model)
}

func TestAProjectIsReachedOutsideOfTasksThroughTheStandingDelegationOnly(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	require.Equal(t, "success", h.ended(id).State)
	_, _, err := h.engine.StandingProject(t.Context(), id, "")
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = h.service.Delegations().Set(t.Context(), demo, id, orchestrator.Delegate{})
	require.NoError(t, err)
	_, delegation, err := h.engine.StandingProject(t.Context(), id, "")
	require.ErrorContains(t, err, "the test cloud has no projects", "it was asked for one")
	project, same, err := h.engine.StandingProject(t.Context(), id, delegation)
	require.NoError(t, err)
	require.Nil(t, project, "the caller has reached it already")
	require.Equal(t, delegation, same)
	require.NoError(t, h.service.Delegations().Revoke(t.Context(), demo, id))
	_, _, err = h.engine.StandingProject(t.Context(), id, delegation)
	require.ErrorIs(t, err, store.ErrNotFound)
}
