package engine_test

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/database/databasetest"
	"github.com/burano/burano/orchestrator/store"
)

// onEachDatabase runs the test over every kind of database that several handles, and so several servers, can use.
func onEachDatabase(t *testing.T, test func(t *testing.T, open func() *gorm.DB)) {
	onEachDatabaseFor(t, shortLease, test)
}

// onEachDatabaseFor is onEachDatabase for servers with leases of this length.
func onEachDatabaseFor(t *testing.T, lease time.Duration, test func(t *testing.T, open func() *gorm.DB)) {
	t.Run("SQLite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "burano.db")
		test(t, func() *gorm.DB {
			db, err := database.Open(path)
			require.NoError(t, err)
			return db
		})
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		url := databasetest.Postgres(t)
		test(t, func() *gorm.DB {
			db, err := database.OpenPostgres(t.Context(), url, lease/3)
			require.NoError(t, err)
			return db
		})
	})
}

// shortLease lets tests wait for its end, and a loaded machine renew it.
const shortLease = 3 * time.Second

// another is a second server over the same database, cloud and world.
func (h *house) another() *house {
	other := *h
	other.connect()
	other.start()
	return &other
}

// begun waits until the world was asked to do this so many times.
func (h *house) begun(what string, times int) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return count(h.world.Log(), "begin "+what) == times }, 30*time.Second, 5*time.Millisecond)
}

func count(list []string, wanted string) int {
	found := 0
	for _, one := range list {
		if one == wanted {
			found++
		}
	}
	return found
}

func TestATaskOfAServerThatIsCutOffIsTakenOverAndTheFirstDoesNothingMore(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		a := newHouseOver(t, open)
		a.lease = shortLease
		a.start()
		release := a.world.Hold("deploy slow")
		id := a.create("one")
		a.deploy(id, application("a1", "alpha", nil), application("a2", "slow", nil))
		a.begun("deploy slow", 1)
		b := a.another()
		// From here on the first server reaches the database no more, as if it were dead; it does not know yet.
		require.NoError(t, database.Close(a.db))
		b.begun("deploy slow", 2)
		log := b.world.Log()
		stop, second := slices.Index(log, "stop deploy slow"), len(log)-1
		require.GreaterOrEqual(t, stop, 0, "the first has stopped by itself: %v", log)
		require.Less(t, stop, second, "and before the second began")
		release()

		deployment := b.ended(id)
		require.Equal(t, "success", deployment.State)
		require.Equal(t, "ready", b.status(id))
		lines := texts(b.reports(id, deployment))
		require.Contains(t, lines[3], "The Burano server that ran this deployment is gone. Another one has taken it over")
		require.Equal(t, 1, count(b.world.Log(), "deploy alpha"), "what was done before is not done again")
		require.Equal(t, 1, count(b.world.Log(), "deploy slow"))
		steps, err := b.service.Deployments().Steps(t.Context(), demo, deployment.ID)
		require.NoError(t, err)
		require.Len(t, steps, 3)
		require.Nil(t, steps[1].Finished, "the step that was cut off has no end")
	})
}

func TestAServerThatIsStoppedGivesItsTasksBack(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		a := newHouseOver(t, open)
		a.start()
		release := a.world.Hold("deploy slow")
		id := a.create("one")
		a.deploy(id, application("a1", "slow", nil))
		a.begun("deploy slow", 1)
		a.stop()
		require.Equal(t, "deploying", a.status(id))
		b := a.another() // with the long lease: it waits for no lease to run out
		b.begun("deploy slow", 2)
		release()
		deployment := b.ended(id)
		require.Equal(t, "success", deployment.State)
		lines := texts(b.reports(id, deployment), "info")
		require.Contains(t, lines[2], "Burano was stopped while this deployment ran. It goes on")
		require.Contains(t, lines[3], "A Burano server goes on with this deployment")
	})
}

func TestADeletionIsTakenOverToo(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		a := newHouseOver(t, open)
		a.start()
		id := a.create("one")
		a.deploy(id, application("a1", "alpha", nil), application("a2", "beta", nil))
		require.Equal(t, "success", a.ended(id).State)
		release := a.world.Hold("destroy alpha")
		require.NoError(t, a.service.Environments().Delete(t.Context(), demo, id, false))
		a.begun("destroy alpha", 1)
		a.stop()
		require.Equal(t, "deleting", a.status(id))
		b := a.another()
		b.begun("destroy alpha", 2)
		release()
		b.gone(id)
		require.Eventually(t, func() bool { there, _ := b.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond)
	})
}

func TestSeveralServersShareTheWork(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, open func() *gorm.DB) {
		a := newHouseOver(t, open)
		a.start()
		b := a.another()
		var ids []string
		for _, name := range []string{"one", "two", "three", "four", "five", "six"} {
			id := a.create(name)
			a.deploy(id, application("a-"+name, name, nil))
			b.engine.Wake()
			ids = append(ids, id)
		}
		for i, id := range ids {
			require.Equal(t, "success", a.ended(id).State)
			require.Equal(t, 1, count(a.world.Log(), "deploy "+[]string{"one", "two", "three", "four", "five", "six"}[i]))
		}
	})
}

func TestTheOnlyServerGoesOnAtItsStartWithoutWaitingForALease(t *testing.T) {
	h := newHouse(t)
	h.stop()
	dead, waiting := h.create("dead"), h.create("waiting")
	h.deploy(dead, application("a1", "alpha", nil))
	hold, _, err := h.store.Tasks().Take(t.Context(), store.Taking{Worker: "a process that died", Lease: time.Hour})
	require.NoError(t, err)
	require.Equal(t, dead, hold.Task().EnvironmentID)
	h.deploy(waiting, application("a1", "beta", nil))

	h.start()
	deployment := h.ended(dead)
	require.Equal(t, "success", deployment.State)
	require.Contains(t, texts(h.reports(dead, deployment))[1], "has taken it over and goes on")
	require.Equal(t, "success", h.ended(waiting).State)
}
