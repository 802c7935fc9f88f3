package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/database"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/memory"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

func TestMain(m *testing.M) {
	// database/sql keeps one goroutine per handle until it is closed; tests close theirs.
	goleak.VerifyTestMain(m)
}

var demo = identity.Caller{UserID: "u-demo", ProjectID: "p-demo", Roles: []string{"member"}}

// house is everything behind the API over one database.
type house struct {
	t       *testing.T
	open    func() *gorm.DB
	lease   time.Duration
	workers int  // 0 is the default
	sole    bool // no other process uses the database
	db      *gorm.DB
	store   *store.Store
	sealer  *secret.Sealer
	sweep   time.Duration // 0: the default
	cloud   *enginetest.Cloud
	world   *enginetest.World
	// Of engine.Config; 0 is the default.
	taskTime, aloneTime, makeWay time.Duration
	code                         muranopl.Limits
	metrics                      prometheus.Registerer
	running                      *blackbox.Box
	// packages and natives are enginetest's, unless a test sets others.
	packages []*catalog.Package
	natives  func(*engine.Runtime) muranopl.Natives
	configs  fs.FS
	// rehearsal, if any, is that of previews.
	rehearsal func(*engine.Stage) (muranopl.Natives, engine.Rehearsed)
	memory    *memory.Budget
	logger    *slog.Logger
	engine    *engine.Engine
	service   *orchestrator.Service
	stop      func() // stops the engine and waits
}

func newHouse(t *testing.T) *house {
	path := filepath.Join(t.TempDir(), "burano.db")
	h := newHouseOver(t, func() *gorm.DB {
		db, err := database.Open(path)
		require.NoError(t, err)
		return db
	})
	h.sole = true
	h.start()
	return h
}

// newHouseOver opens the database and starts nothing.
func newHouseOver(t *testing.T, open func() *gorm.DB) *house {
	h := &house{t: t, open: open, cloud: enginetest.NewCloud(), world: enginetest.NewWorld(), logger: slog.New(slog.DiscardHandler)}
	var err error
	h.sealer, err = secret.Open(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	h.connect()
	return h
}

// connect gives the house a handle of its own on its database.
func (h *house) connect() {
	h.db = h.open()
	db := h.db
	h.t.Cleanup(func() { require.NoError(h.t, database.Close(db)) })
	var err error
	h.store, err = store.New(h.t.Context(), db, nil, store.Sealed(h.sealer))
	require.NoError(h.t, err)
}

// poll is an hour where no other process writes tasks: a test that passes shows that waking works.
func (h *house) poll() time.Duration {
	if h.sole {
		return time.Hour
	}
	return 50 * time.Millisecond
}

// start starts a process over the house's database, without running its engine's loop twice.
func (h *house) start() {
	var err error
	if h.packages == nil {
		h.packages, err = enginetest.Packages()
		require.NoError(h.t, err)
		h.natives = h.world.Natives
	}
	h.engine, err = engine.New(h.t.Context(), engine.Config{Store: h.store, Sealer: h.sealer, Cloud: h.cloud,
		Source: enginetest.Source(h.packages), Natives: h.natives, Logger: h.logger, Poll: h.poll(), Lease: h.lease, Workers: h.workers,
		Sole: h.sole, ClassConfigs: h.configs, Sweep: h.sweep, TaskTime: h.taskTime, AloneTime: h.aloneTime, MakeWay: h.makeWay, Code: h.code, Metrics: h.metrics, Rehearsal: h.rehearsal, Running: h.running, Memory: h.memory})
	require.NoError(h.t, err)
	config := orchestrator.Config{Store: h.store, Sealer: h.sealer, Trusts: h.cloud, Engine: h.engine, Logger: slog.New(slog.DiscardHandler)}
	if h.rehearsal != nil {
		config.ProjectOf = func(context.Context, identity.Caller) (*openstack.Project, error) { return nil, nil }
	}
	h.service = orchestrator.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.engine.Run(ctx) }()
	stopped := false
	h.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(h.t, <-done)
		}
	}
	h.t.Cleanup(func() { h.stop() })
}

func (h *house) count(table string) int64 {
	var count int64
	require.NoError(h.t, h.db.Table(table).Count(&count).Error)
	return count
}

func application(id, name string, properties map[string]any) map[string]any {
	model := map[string]any{"?": map[string]any{"id": id, "type": "org.golden.Hello"}, "name": name}
	for key, value := range properties {
		model[key] = value
	}
	return model
}

func (h *house) create(name string) string {
	environment, err := h.service.Environments().Create(h.t.Context(), demo, map[string]any{"name": name})
	require.NoError(h.t, err)
	return environment.ID
}

// deploy makes the applications the environment's, and starts the deployment.
func (h *house) deploy(id string, applications ...any) {
	session, err := h.service.Sessions().Open(h.t.Context(), demo, id)
	require.NoError(h.t, err)
	require.NoError(h.t, h.service.Models().PutServices(h.t.Context(), demo, id, session.ID, nil, applications, false))
	require.NoError(h.t, h.service.Sessions().Deploy(h.t.Context(), demo, id, session.ID))
}

// ended waits until nothing runs in the environment and returns its newest deployment.
func (h *house) ended(id string) orchestrator.Deployment {
	h.t.Helper()
	var last orchestrator.Deployment
	require.Eventually(h.t, func() bool {
		list, err := h.service.Deployments().List(h.t.Context(), demo, id)
		require.NoError(h.t, err)
		last = list[0]
		return last.Finished != nil
	}, 20*time.Second, 5*time.Millisecond)
	return last
}

func (h *house) gone(id string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		_, err := h.store.Environments().Get(h.t.Context(), id)
		return errors.Is(err, store.ErrNotFound)
	}, 20*time.Second, 5*time.Millisecond)
}

func (h *house) status(id string) string {
	environment, err := h.service.Environments().Get(h.t.Context(), demo, id, "")
	require.NoError(h.t, err)
	return environment.Status
}

func (h *house) reports(id string, deployment orchestrator.Deployment) []orchestrator.Report {
	reports, err := h.service.Deployments().Reports(h.t.Context(), demo, id, deployment.ID, nil)
	require.NoError(h.t, err)
	return reports
}

func texts(reports []orchestrator.Report, levels ...string) []string {
	var list []string
	for _, report := range reports {
		if len(levels) == 0 || slices.Contains(levels, report.Level) {
			list = append(list, report.Text)
		}
	}
	return list
}

func TestADeploymentRunsAndItsEndIsWritten(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", map[string]any{"parts": []any{application("b1", "beta", nil)}}))
	deployment := h.ended(id)
	require.Equal(t, "success", deployment.State)
	require.Equal(t, map[string]any{"isException": false, "result": nil}, deployment.Result)
	require.Equal(t, []string{"Action deploy is scheduled", "Deploying alpha", "Deploying beta", "Deployment finished"}, texts(h.reports(id, deployment)))
	require.Equal(t, "ready", h.status(id))
	row, err := h.store.Environments().Get(t.Context(), id)
	require.NoError(t, err)
	require.EqualValues(t, 1, row.Version)
	services := row.Model.Objects["services"].([]any)
	require.Equal(t, "hello world", services[0].(map[string]any)["result"], "Out properties are kept with the model")
	require.Contains(t, row.Model.ObjectsCopy, "applications")
	steps, err := h.service.Deployments().Steps(t.Context(), demo, deployment.ID)
	require.NoError(t, err)
	require.Len(t, steps, 2)
	require.NotNil(t, steps[0].Finished)
	value, found, err := h.engine.Secret(t.Context(), id, "key of alpha")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, "secret of alpha", string(value))
	sealed, _, err := h.store.Secrets().Get(t.Context(), id, "key of alpha")
	require.NoError(t, err)
	require.NotContains(t, sealed, "alpha")
	// Once more: the classes' attributes record that they are deployed.
	before := len(h.world.Log())
	h.deploy(id, services...)
	require.Equal(t, "success", h.ended(id).State)
	require.Len(t, h.world.Log(), before)
	_, made := h.cloud.Trusts()
	require.Equal(t, 2, made, "each task has its own trust")
	require.Eventually(t, func() bool { there, _ := h.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond, "which ends with it")
}

func TestADeploymentWarnsOfUnknownKeysAndGoesOn(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	unknown := map[string]any{"countt": 1}
	for i := range mostWarnings + 3 {
		unknown[fmt.Sprintf("zz%02d", i)] = i
	}
	h.deploy(id, application("a1", "alpha", unknown))
	deployment := h.ended(id)
	require.Equal(t, "success", deployment.State, "as in Murano")
	all := texts(h.reports(id, deployment))
	require.Contains(t, all, "Warning: services[0].countt: countt is not known, and has no effect: did you mean count?")
	require.Contains(t, all, "Warning: 4 more keys of the model are not known, and have no effect")
	require.NotContains(t, strings.Join(all, "\n"), fmt.Sprintf("zz%02d", mostWarnings))
	h.deploy(id, application("a1", "alpha", nil))
	require.NotContains(t, strings.Join(texts(h.reports(id, h.ended(id))), "\n"), "Warning")
}

// mostWarnings is how many unknown keys a deployment names.
const mostWarnings = 20

func TestAModelThatIsWrongEndsBeforeAnythingIsDoneWithOneReportPerError(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id,
		application("a1", "good", nil),
		map[string]any{"?": map[string]any{"id": "a2", "type": "org.golden.Nope"}, "name": "bad"},
		application("a3", "bad", map[string]any{"count": -1}),
		map[string]any{"?": map[string]any{"id": "a4", "type": "org.golden.Hello"}})
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	require.Equal(t, true, deployment.Result["isException"])
	problems := texts(h.reports(id, deployment), "error")
	require.Len(t, problems, 3)
	all := ""
	for _, problem := range problems {
		all += problem + "\n"
	}
	for _, part := range []string{"services[1]", "org.golden.Nope", "services[2].count", "services[3].name", "org.golden.Hello"} {
		require.Contains(t, all, part)
	}
	require.Empty(t, h.world.Log(), "nothing was done")
	require.Equal(t, "deploy failure", h.status(id))

	// A fault can be mended.
	h.deploy(id, application("a1", "good", nil))
	require.Equal(t, "success", h.ended(id).State)
	require.Equal(t, "ready", h.status(id))
}

func TestAMethodThatFailsIsNamedInOneReport(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil), application("a2", "beta", map[string]any{"fail": true}))
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	reports := h.reports(id, deployment)
	require.Equal(t, []string{"org.golden.Hello.deploy: asked to fail"}, texts(reports, "error"))
	require.Equal(t, "Deployment finished with errors", reports[len(reports)-1].Text)
	result := deployment.Result["result"].(map[string]any)
	require.Equal(t, "asked to fail", result["message"])
	require.Contains(t, result["details"], "org.golden.Hello.deploy")
	about, err := h.service.Deployments().Reports(t.Context(), demo, id, deployment.ID, []string{"a2"})
	require.NoError(t, err)
	require.Equal(t, []string{"Deploying beta", "org.golden.Hello.deploy: asked to fail"}, texts(about))
	steps, err := h.service.Deployments().Steps(t.Context(), demo, deployment.ID)
	require.NoError(t, err)
	require.Equal(t, "asked to fail", steps[len(steps)-1].Error)
	last, err := h.service.Environments().LastReports(t.Context(), demo, id, "")
	require.NoError(t, err)
	require.Equal(t, "org.golden.Hello.deploy: asked to fail", last["a2"].Text)
}

func TestEachApplicationThatFailsHasItsOwnReport(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", map[string]any{"fail": true}), application("a2", "beta", nil), application("a3", "gamma", map[string]any{"fail": true}))
	deployment := h.ended(id)
	require.Equal(t, "completed_w_errors", deployment.State)
	var about []string
	for _, report := range h.reports(id, deployment) {
		if report.Level == "error" {
			require.Equal(t, "org.golden.Hello.deploy: asked to fail", report.Text)
			about = append(about, *report.EntityID)
		}
	}
	require.Equal(t, []string{"a1", "a3"}, about)
	require.Contains(t, h.world.Log(), "deploy beta")
}

func TestWhatIsNoLongerInTheModelIsDestroyedOwnedBeforeOwner(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	tree := application("a1", "alpha", map[string]any{"parts": []any{
		application("b1", "beta", map[string]any{"parts": []any{application("c1", "gamma", nil)}}), application("b2", "delta", nil)}})
	h.deploy(id, tree, application("a2", "epsilon", nil))
	require.Equal(t, "success", h.ended(id).State)
	done := len(h.world.Log())
	h.deploy(id, application("a1", "alpha", map[string]any{"parts": []any{application("b2", "delta", nil)}}))
	require.Equal(t, "success", h.ended(id).State)
	require.Equal(t, []string{"begin destroy epsilon", "destroy epsilon", "begin destroy gamma", "destroy gamma", "begin destroy beta", "destroy beta"}, h.world.Log()[done:])
	_, found, err := h.store.Attributes().Get(t.Context(), id, "b1", "org.golden.Hello", "deployed")
	require.NoError(t, err)
	require.False(t, found, "attributes go with their object")

	done = len(h.world.Log())
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	h.gone(id)
	require.Equal(t, []string{"begin destroy delta", "destroy delta", "begin destroy alpha", "destroy alpha", "destroy environment"}, h.world.Log()[done:])
	require.Eventually(t, func() bool { there, _ := h.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond)
}

func TestADeletionThatFailsKeepsTheOwnersAndCanBeTriedAgain(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", map[string]any{"parts": []any{application("b1", "beta", map[string]any{"failDestroy": true})}}), application("a2", "gamma", nil))
	require.Equal(t, "success", h.ended(id).State)
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	require.Eventually(t, func() bool { return h.status(id) == "delete failure" }, 10*time.Second, 5*time.Millisecond)
	deployment := h.ended(id)
	require.Nil(t, deployment.Action)
	reports := h.reports(id, deployment)
	require.Equal(t, []string{"org.golden.Hello.destroy: asked to fail"}, texts(reports, "error"))
	require.Equal(t, "Deletion finished with errors", reports[len(reports)-1].Text)
	require.NotContains(t, h.world.Log(), "destroy alpha")
	require.NotContains(t, h.world.Log(), "destroy environment")
	require.Contains(t, h.world.Log(), "destroy gamma")
	environment, err := h.service.Environments().Get(t.Context(), demo, id, "")
	require.NoError(t, err)
	require.Len(t, environment.Services.List, 2)

	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, true))
	h.gone(id)
	require.Eventually(t, func() bool { there, _ := h.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond)
}

func TestOneEnvironmentRunsOneTaskWhileOthersRunBesideIt(t *testing.T) {
	h := newHouse(t)
	open := h.world.Hold("deploy slow")
	defer open()
	slow, fast := h.create("slow"), h.create("fast")
	h.deploy(slow, application("a1", "slow", nil))
	require.Eventually(t, func() bool { return slices.Contains(h.world.Log(), "begin deploy slow") }, 10*time.Second, time.Millisecond)
	h.deploy(fast, application("a1", "quick", nil))
	require.Equal(t, "success", h.ended(fast).State)
	require.Equal(t, "deploying", h.status(slow))
	_, err := h.service.Sessions().Open(t.Context(), demo, slow)
	require.ErrorContains(t, err, "deploying or deleting")
	require.Error(t, h.service.Environments().Delete(t.Context(), demo, slow, false))
	open()
	require.Equal(t, "success", h.ended(slow).State)
}

func TestATrustThatCannotBeDeletedIsDeletedAtTheNextStart(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	require.Equal(t, "success", h.ended(id).State)
	require.Eventually(t, func() bool { there, _ := h.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond)
	open := h.world.Hold("destroy alpha")
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	h.cloud.Break(errors.New("Keystone is away"))
	open()
	h.gone(id)
	h.stop()
	there, _ := h.cloud.Trusts()
	require.Equal(t, 1, there)
	h.cloud.Break(nil)
	h.start()
	require.Eventually(t, func() bool { there, _ := h.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool {
		return h.count("delegations") == 0
	}, 10*time.Second, time.Millisecond)
}

func TestATrustIsNotLeftWhenTheDeploymentIsRefused(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	session, err := h.service.Sessions().Open(t.Context(), demo, id)
	require.NoError(t, err)
	h.cloud.Break(errors.New("Keystone is away"))
	require.ErrorContains(t, h.service.Sessions().Deploy(t.Context(), demo, id, session.ID), "Keystone is away")
	h.cloud.Break(nil)
	require.Equal(t, "pending", h.status(id), "nothing was written")

	admin := identity.Caller{UserID: "u-admin", ProjectID: "p-admin", Admin: true}
	require.ErrorContains(t, h.service.Sessions().Deploy(t.Context(), admin, id, session.ID), "member of its project")
	there, made := h.cloud.Trusts()
	require.Equal(t, []int{0, 0}, []int{there, made})
	require.Zero(t, h.count("delegations"))
}

func TestWhatIsWrittenWhileADeploymentIsBeingSubmittedIsDeployed(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	session, err := h.service.Sessions().Open(t.Context(), demo, id)
	require.NoError(t, err)
	begun, release := h.cloud.Slow()
	submitted := make(chan error, 1)
	go func() { submitted <- h.service.Sessions().Deploy(t.Context(), demo, id, session.ID) }()
	<-begun
	require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, []any{application("a1", "late", nil)}, false))
	release()
	require.NoError(t, <-submitted)
	require.Equal(t, "success", h.ended(id).State)
	require.Contains(t, h.world.Log(), "deploy late", "what was acknowledged is deployed")
}

func TestAbandoningAnEnvironmentStopsWhatRunsInIt(t *testing.T) {
	h := newHouse(t)
	defer h.world.Hold("deploy slow")()
	id := h.create("one")
	h.deploy(id, application("a1", "slow", nil))
	require.Eventually(t, func() bool { return slices.Contains(h.world.Log(), "begin deploy slow") }, 10*time.Second, time.Millisecond)
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, true))
	h.gone(id)
	require.Eventually(t, func() bool { there, _ := h.cloud.Trusts(); return there == 0 }, 10*time.Second, time.Millisecond)
	h.stop() // returns only when the task has ended
}

func TestWhoFollowsATaskOfAnAbandonedEnvironmentIsToldSo(t *testing.T) {
	for _, deletion := range []bool{false, true} {
		t.Run(fmt.Sprintf("deletion %t", deletion), func(t *testing.T) {
			h := newHouse(t)
			id := h.create("one")
			if deletion {
				h.deploy(id, application("a1", "slow", nil))
				require.Equal(t, "success", h.ended(id).State)
				defer h.world.Hold("destroy slow")()
				require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
			} else {
				defer h.world.Hold("deploy slow")()
				h.deploy(id, application("a1", "slow", nil))
			}
			tasks, err := h.service.Deployments().List(t.Context(), demo, id)
			require.NoError(t, err)
			following, state := make(chan struct{}), make(chan string)
			go func() {
				ended, err := h.service.Deployments().Follow(t.Context(), demo, tasks[0].ID, orchestrator.Follower{
					Report: func(orchestrator.Report) error { return nil }, State: func(string) error { close(following); return nil }})
				state <- fmt.Sprint(ended, err)
			}()
			<-following
			require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, true))
			require.Equal(t, "abandoned<nil>", <-state)
		})
	}
}

// TestAnEnvironmentThatIsDeployedWhileItIsDeletedIsDestroyed deploys right after the deletion has read that nothing was deployed yet.
func TestAnEnvironmentThatIsDeployedWhileItIsDeletedIsDestroyed(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	armed := true
	require.NoError(t, h.db.Callback().Query().After("gorm:query").Register("meanwhile", func(tx *gorm.DB) {
		if armed && tx.Statement.Table == "environments" {
			armed = false
			h.deploy(id, application("a1", "alpha", nil))
			require.Equal(t, "success", h.ended(id).State)
		}
	}))
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	h.gone(id)
	require.Contains(t, h.world.Log(), "destroy alpha", "what was made is not forgotten")
}

func TestAnEnvironmentWhoseModelCannotBeReadIsAbandoned(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	h.deploy(id, application("a1", "alpha", nil))
	require.Equal(t, "success", h.ended(id).State)
	require.NoError(t, h.db.Exec("UPDATE environments SET model = 'what no version of Burano wrote'").Error)
	require.Error(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, true))
	rows, err := h.service.Environments().List(t.Context(), demo, orchestrator.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, rows)
}

func TestAnEnvironmentThatWasNeverDeployedIsRemovedAtOnce(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	require.NoError(t, h.service.Environments().Delete(t.Context(), demo, id, false))
	_, err := h.store.Environments().Get(t.Context(), id)
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestTheTestPackagesAndTheirBodiesMatch(t *testing.T) {
	packages, err := enginetest.Packages()
	require.NoError(t, err)
	list := make([]muranopl.Package, len(packages))
	for i, p := range packages {
		list[i] = p
	}
	classes := muranopl.NewClasses(enginetest.Source(packages)("p"))
	require.NoError(t, muranopl.CheckNatives(t.Context(), classes, list, enginetest.NewWorld().Natives(nil)))
}

func TestAnActionThatAClassHasSinceAnObjectWasDeployedCanBeCalled(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	former := application("a1", "alpha", nil)
	former["?"].(map[string]any)["_actions"] = map[string]any{"a1_boom": map[string]any{"name": "boom", "enabled": true}}
	// A deployment that fails before it loads anything leaves the headers as they were given.
	h.deploy(id, former, map[string]any{"?": map[string]any{"id": "a2", "type": "org.golden.Nope"}})
	h.ended(id)
	for _, name := range []string{"a1_deploy", "a1_mend", "a1_nothing", "a2_shout", "a1"} {
		_, err := h.service.Actions().Call(t.Context(), demo, id, name, nil)
		require.ErrorIs(t, err, orchestrator.ErrNoAction, name)
	}
	session, err := h.service.Sessions().Open(t.Context(), demo, id)
	require.NoError(t, err)
	require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, []any{former}, false))
	_, err = h.service.Actions().Call(t.Context(), demo, id, "a1_shout", nil)
	require.NoError(t, err)
}

func TestAnActionIsPublicAndEnabledWhateverAModelSays(t *testing.T) {
	h := newHouse(t)
	id := h.create("one")
	forged := application("a1", "alpha", nil)
	forged["?"].(map[string]any)["_actions"] = map[string]any{
		"a1_shout":  map[string]any{"name": "shout", "enabled": false},
		"a1_deploy": map[string]any{"name": "deploy", "enabled": true},
	}
	// A deployment that fails before it loads anything leaves the headers as they were given.
	h.deploy(id, forged, map[string]any{"?": map[string]any{"id": "a2", "type": "org.golden.Nope"}})
	h.ended(id)
	_, err := h.service.Actions().Call(t.Context(), demo, id, "a1_shout", nil)
	require.ErrorIs(t, err, orchestrator.ErrActionDisabled)

	session, err := h.service.Sessions().Open(t.Context(), demo, id)
	require.NoError(t, err)
	require.NoError(t, h.service.Models().PutServices(t.Context(), demo, id, session.ID, nil, []any{forged}, false))
	_, err = h.service.Actions().Call(t.Context(), demo, id, "a1_deploy", nil)
	require.NoError(t, err)
	require.Equal(t, true, h.ended(id).Result["isException"])
	require.NotContains(t, h.world.Log(), "deploy alpha")
}
