package engine_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/orchestrator/store"
)

// die takes a task for a process that dies so many times over it.
func (h *house) die(times int, alone bool) {
	h.t.Helper()
	for range times {
		hold, _, err := h.store.Tasks().Take(h.t.Context(), store.Taking{Worker: "a process that died", Lease: time.Hour})
		require.NoError(h.t, err)
		require.NoError(h.t, hold.SetAlone(h.t.Context(), alone))
		require.NoError(h.t, h.store.Tasks().EndLeases(h.t.Context()))
	}
}

func TestATaskThatEndsServersWhileItRunsAloneFailsAtLast(t *testing.T) {
	h := newHouse(t)
	h.stop()
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	h.die(2, false)
	h.die(3, true)
	h.start()
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Equal(t, "5 Burano servers ended while they ran this deployment, the last 3 of them while they ran nothing else, and it got no further; "+
		"the limit (max-deaths) is 3. Their logs say why. Deploy the environment again to go on: what is there is taken over, not made twice.",
		texts(h.reports(id, deployment), "error")[0])
	require.Empty(t, h.world.Log())
	h.deploy(id, application("a1", "alpha", nil))
	require.Equal(t, "success", h.ended(id).State)
}

func TestDeathsBesideOthersCondemnNoTask(t *testing.T) {
	h := newHouse(t)
	h.stop()
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	h.die(30, false)
	h.start()
	deployment := h.ended(id)
	require.Equal(t, "success", deployment.State)
	require.Contains(t, texts(h.reports(id, deployment)), "30 Burano servers ended while they ran this deployment: it runs alone on its server now, for at most 6h0m0s")
}

func TestATaskOverWhichServersDiedRunsAloneForAWhile(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.sole = false
	suspect := h.create("suspect")
	h.deploy(suspect, application("a1", "suspect", nil))
	h.die(1, false)
	_, _, err := h.store.Tasks().Take(t.Context(), store.Taking{Worker: "a process that will die", Lease: time.Hour})
	require.NoError(t, err)
	letOn := h.world.Hold("deploy suspect")
	letOthers := h.world.Hold("deploy other")
	h.aloneTime, h.makeWay = 300*time.Millisecond, 100*time.Millisecond
	other, third := h.create("other"), h.create("third")
	h.deploy(other, application("a1", "other", nil))
	h.start()
	h.begun("deploy other", 1)
	require.NoError(t, h.db.Exec("UPDATE tasks SET lease_until = 0 WHERE environment_id = ?", suspect).Error)

	// The other one, which goes on too long, is given back; then the suspect is alone.
	h.begun("deploy suspect", 1)
	log := h.world.Log()
	require.Less(t, slices.Index(log, "stop deploy other"), slices.Index(log, "begin deploy suspect"), "%v", log)
	h.deploy(third, application("a1", "third", nil))
	// When it has been alone for its time, others run beside it again.
	require.Equal(t, "success", h.ended(third).State)
	h.begun("deploy other", 2)
	require.Equal(t, "deploying", h.status(suspect))
	letOthers()
	deployment := h.ended(other)
	require.Equal(t, "success", deployment.State)
	require.Contains(t, texts(h.reports(other, deployment)), "A task over which Burano servers had died was to run alone on the server while this deployment ran. "+
		"It goes on, from what is there, as soon as a Burano server runs.")
	letOn()
	require.Equal(t, "success", h.ended(suspect).State)
}

func TestTheNextStartWouldKnowWhichTaskRunsAndThatItIsAlone(t *testing.T) {
	h := newHouse(t)
	h.stop()
	path := filepath.Join(t.TempDir(), "running")
	var err error
	h.running, _, _, err = blackbox.Open(path)
	require.NoError(t, err)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	h.die(2, false)
	letOn := h.world.Hold("deploy alpha")
	h.start()
	h.begun("deploy alpha", 1)
	require.True(t, h.engine.HasSuspect())
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	copied := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.WriteFile(copied, now, 0o600))
	_, ran, more, err := blackbox.Open(copied)
	require.NoError(t, err)
	letOn()
	deployment := h.ended(id)
	work, alone := blackbox.Alone(ran, more)
	require.True(t, alone)
	require.True(t, work.Alone)
	require.Positive(t, work.Fence)
	require.Equal(t, []string{blackbox.Task, deployment.ID, "deployment of environment " + id}, []string{work.Kind, work.Key, work.What})
	require.Eventually(t, func() bool { return !h.engine.HasSuspect() }, 10*time.Second, time.Millisecond)
}

func TestATaskHasALongestTime(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.taskTime = 100 * time.Millisecond
	letOn := h.world.Hold("deploy slow")
	h.start()
	id := h.create("one")
	h.deploy(id, application("a1", "slow", nil))
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Equal(t, []string{"the deployment was ended because it took longer than 100ms, the setting task-time-limit. What it has made stays. " +
		"Deploy the environment again to go on: what is there is taken over, not made twice."}, texts(h.reports(id, deployment), "error"))
	letOn()
	h.stop()
	h.taskTime = time.Minute // the one from before may be too short where much else runs
	h.start()
	_, err := h.service.Deployments().Retry(t.Context(), demo, deployment.ID)
	require.NoError(t, err)
	require.Equal(t, "success", h.ended(id).State)
}
