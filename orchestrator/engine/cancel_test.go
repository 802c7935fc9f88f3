package engine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// newest is the environment's newest deployment, whether it has ended or not.
func (h *house) newest(id string) orchestrator.Deployment {
	h.t.Helper()
	list, err := h.service.Deployments().List(h.t.Context(), demo, id)
	require.NoError(h.t, err)
	return list[0]
}

func requireFault(t *testing.T, kind fault.Kind, err error) {
	t.Helper()
	require.Equal(t, kind, fault.KindOf(err), "%v", err)
}

func TestACancelledDeploymentEndsAndCanBeTriedAgain(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		release := h.world.Hold("deploy slow")
		defer release()
		id := h.create("one")
		h.deploy(id, application("a1", "alpha", nil), application("a2", "slow", nil))
		h.begun("deploy slow", 1)
		cancelled := h.newest(id)
		_, err := h.service.Deployments().Retry(t.Context(), demo, cancelled.ID)
		requireFault(t, fault.Forbidden, err)
		other := identity.Caller{UserID: "u-other", ProjectID: "p-other", Roles: []string{"member"}}
		requireFault(t, fault.Forbidden, h.service.Deployments().Cancel(t.Context(), other, cancelled.ID))
		require.NoError(t, h.service.Deployments().Cancel(t.Context(), demo, cancelled.ID))
		deployment := h.ended(id)
		require.Equal(t, "completed_w_errors", deployment.State)
		require.Equal(t, "deploy failure", h.status(id))
		reports := h.reports(id, deployment)
		require.Equal(t, []string{"the deployment was cancelled before it was done. What it has made stays. " +
			"Deploy the environment again to go on: what is there is taken over, not made twice."}, texts(reports, "error"))
		require.Equal(t, []string{"The user asked for the end of this deployment"}, texts(reports, "warning"))
		requireFault(t, fault.Conflict, h.service.Deployments().Cancel(t.Context(), demo, cancelled.ID))

		_, err = h.service.Deployments().Retry(t.Context(), other, cancelled.ID)
		requireFault(t, fault.Forbidden, err)
		release()
		again, err := h.service.Deployments().Retry(t.Context(), demo, cancelled.ID)
		require.NoError(t, err)
		deployment = h.ended(id)
		require.Equal(t, again, deployment.ID)
		require.Equal(t, "success", deployment.State)
		require.Equal(t, 1, count(h.world.Log(), "deploy alpha"), "what the cancelled one had made was taken over")
		for _, ended := range []string{cancelled.ID, again} {
			_, err = h.service.Deployments().Retry(t.Context(), demo, ended)
			requireFault(t, fault.Conflict, err)
		}
	})
}

func TestACancelReachesTheServerThatRunsTheDeployment(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		a := newHouseOver(t, open)
		a.lease = shortLease
		a.start()
		defer a.world.Hold("deploy slow")()
		id := a.create("one")
		a.deploy(id, application("a1", "slow", nil))
		a.begun("deploy slow", 1)
		b := a.another()
		require.NoError(t, b.service.Deployments().Cancel(t.Context(), demo, b.newest(id).ID))
		require.Equal(t, "completed_w_errors", b.ended(id).State)
		require.Equal(t, 1, count(b.world.Log(), "stop deploy slow"))
	})
}

func TestADeploymentThatIsCancelledWhileItWaitsDoesNothing(t *testing.T) {
	h := newHouse(t)
	h.stop()
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	require.NoError(t, h.service.Deployments().Cancel(t.Context(), demo, h.newest(id).ID))
	require.NoError(t, h.service.Deployments().Cancel(t.Context(), demo, h.newest(id).ID), "asked twice")
	h.start()
	require.Equal(t, "completed_w_errors", h.ended(id).State)
	require.Empty(t, h.world.Log())
}

func TestADeletionCanBeCancelledAndTriedAgain(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	require.Equal(t, "success", h.ended(id).State)
	release := h.world.Hold("destroy alpha")
	defer release()
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	h.begun("destroy alpha", 1)
	deletion := h.newest(id)
	require.NoError(t, h.service.Deployments().Cancel(t.Context(), demo, deletion.ID))
	require.Equal(t, "completed_w_errors", h.ended(id).State)
	require.Equal(t, "delete failure", h.status(id))
	release()
	_, err := h.service.Deployments().Retry(t.Context(), demo, deletion.ID)
	require.NoError(t, err)
	h.gone(id)
}

func TestAProjectWithManyDeploymentsDoesNotKeepAnotherWaiting(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		h := newHouseOver(t, open)
		h.start()
		h.stop() // nothing takes tasks but the test
		var ids []string
		for _, name := range []string{"one", "two", "three", "four"} {
			id := h.create(name)
			h.deploy(id, application("a1", "alpha", nil))
			ids = append(ids, id)
		}
		other := identity.Caller{UserID: "u-other", ProjectID: "p-other", Roles: []string{"member"}}
		environment, err := h.service.Environments().Create(t.Context(), other, map[string]any{"name": "other"})
		require.NoError(t, err)
		session, err := h.service.Sessions().Open(t.Context(), other, environment.ID)
		require.NoError(t, err)
		require.NoError(t, h.service.Sessions().Deploy(t.Context(), other, environment.ID, session.ID))

		var taken []string
		for range 5 {
			hold, _, err := h.store.Tasks().Take(context.Background(), store.Taking{Worker: "w", Lease: time.Minute})
			require.NoError(t, err)
			taken = append(taken, hold.Task().EnvironmentID)
		}
		require.Equal(t, []string{ids[0], environment.ID, ids[1], ids[2], ids[3]}, taken)
	})
}
