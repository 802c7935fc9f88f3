package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorm.io/gorm"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/engine/enginetest"
	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/store"
)

// watch records which tasks of which environments work at the same time: it wraps the bodies of the test packages.
type watch struct {
	world *enginetest.World

	mutex   sync.Mutex
	working map[string]map[string]int // bodies that run, by environment and task
	most    int                       // environments that worked at the same time
	met     []string                  // environments in which two tasks worked at the same time
}

func (w *watch) natives(r *engine.Runtime) muranopl.Natives {
	natives := w.world.Natives(r)
	for _, classes := range natives {
		for _, methods := range classes {
			for name, body := range maps.Clone(methods) {
				methods[name] = func(ctx context.Context, call muranopl.Call) (any, error) {
					w.enter(r.EnvironmentID(), r.TaskID())
					defer w.leave(r.EnvironmentID(), r.TaskID())
					return body(ctx, call)
				}
			}
		}
	}
	return natives
}

func (w *watch) enter(environment, task string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.working[environment] == nil {
		w.working[environment] = map[string]int{}
	}
	w.working[environment][task]++
	if len(w.working[environment]) > 1 {
		w.met = append(w.met, environment)
	}
	w.most = max(w.most, len(w.working))
}

func (w *watch) leave(environment, task string) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.working[environment][task]--; w.working[environment][task] == 0 {
		delete(w.working[environment], task)
	}
	if len(w.working[environment]) == 0 {
		delete(w.working, environment)
	}
}

// watched makes the house's bodies be watched.
func (h *house) watched() *watch {
	w := &watch{world: h.world, working: map[string]map[string]int{}}
	var err error
	h.packages, err = enginetest.Packages()
	require.NoError(h.t, err)
	h.natives = w.natives
	return w
}

// as is a user of a project.
func as(project string) identity.Caller {
	return identity.Caller{UserID: "u-" + project, ProjectID: project, Roles: []string{"member"}}
}

// submit deploys a new environment of the project with one application of that name.
func (h *house) submit(project, name string) (id string) {
	h.t.Helper()
	return h.submitAs(project, name, application("app-"+name, name, nil))
}

// submitAs deploys a new environment of the project with one application.
func (h *house) submitAs(project, name string, application map[string]any) (id string) {
	h.t.Helper()
	environment, err := h.service.Environments().Create(h.t.Context(), as(project), map[string]any{"name": name})
	require.NoError(h.t, err)
	session, err := h.service.Sessions().Open(h.t.Context(), as(project), environment.ID)
	require.NoError(h.t, err)
	require.NoError(h.t, h.service.Models().AddServices(h.t.Context(), as(project), environment.ID, session.ID, nil, application, false))
	require.NoError(h.t, h.service.Sessions().Deploy(h.t.Context(), as(project), environment.ID, session.ID))
	return environment.ID
}

func TestProjectsShareTheWorkersAndOneIsLeftForTheNext(t *testing.T) {
	onEachDatabaseFor(t, lease.Default, func(t *testing.T, open func() *gorm.DB) {
		const workers = 8
		h := newHouseOver(t, open)
		h.workers = workers
		w := h.watched()
		h.start()
		// Each deployment waits where it begins, until it is let go on.
		letOn := map[string][]func(){}
		names := map[string][]string{}
		var ids []string
		add := func(project string, number int) {
			for i := range number {
				name := fmt.Sprintf("%s-%d", project, i)
				letOn[project] = append(letOn[project], h.world.Hold("deploy "+name))
				names[project] = append(names[project], name)
				ids = append(ids, h.submit(project, name))
			}
		}
		begun := func(project string) (number int) {
			for _, name := range names[project] {
				number += count(h.world.Log(), "begin deploy "+name)
			}
			return number
		}
		become := func(project string, number int) {
			t.Helper()
			require.Eventually(t, func() bool { return begun(project) == number }, 20*time.Second, 5*time.Millisecond, "%s", project)
		}
		add("many", 8)
		become("many", 4) // of 8
		add("few", 3)
		become("few", 2) // of the other 4
		add("one", 1)
		become("one", 1)
		add("last", 2)
		become("last", 1)
		require.Equal(t, 4, begun("many"))
		require.Equal(t, 2, begun("few"))

		// A place that becomes free stays free for other projects, until there are enough of them.
		letOn["many"][0]()
		h.finished(ids[0])
		require.Equal(t, []int{4, 2, 1, 1}, []int{begun("many"), begun("few"), begun("one"), begun("last")})
		add("new", 1)
		become("new", 1)
		for _, project := range letOn {
			for _, release := range project {
				release()
			}
		}
		for _, id := range ids {
			h.finished(id)
		}
		require.Equal(t, workers, w.most, "as many at the same time as there are workers, and never more")
		require.Empty(t, w.met)
	})
}

// finished waits until nothing runs in an environment of whichever project.
func (h *house) finished(id string) {
	h.t.Helper()
	require.Eventually(h.t, func() bool {
		tasks, _, err := h.store.Tasks().List(h.t.Context(), id, "")
		require.NoError(h.t, err)
		return !slices.ContainsFunc(tasks, func(task store.Task) bool { return task.Finished == nil })
	}, time.Minute, 5*time.Millisecond)
}

// TestAnEnvironmentHasOneTaskAtATime submits deployments, actions, cancellations and retries at random from many users at once to two
// servers. A refused request is refused for another user's earlier one; every accepted task ends.
func TestAnEnvironmentHasOneTaskAtATime(t *testing.T) {
	onEachDatabaseFor(t, lease.Default, func(t *testing.T, open func() *gorm.DB) {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		const workers, users, turns = 2, 6, 25
		a := newHouseOver(t, open)
		a.workers = workers
		w := a.watched()
		a.start()
		b := a.another()
		houses := []*house{a, b}
		var ids []string
		for i := range 4 {
			ids = append(ids, a.submit(fmt.Sprintf("p%d", i%2), fmt.Sprintf("e%d", i)))
		}
		caller := func(i int) identity.Caller { return as(fmt.Sprintf("p%d", i%2)) }

		var mutex sync.Mutex
		accepted := map[string]int{}
		// enough reports whether each kind of work was accepted at least once: as long as the first tasks wait for their servers, all others are
		// refused.
		enough := func() bool {
			mutex.Lock()
			defer mutex.Unlock()
			return accepted["deploy"] > 0 && accepted["action"] > 0
		}
		deadline := time.Now().Add(time.Minute)
		var group sync.WaitGroup
		for user := range users {
			random := rand.New(rand.NewPCG(seed, uint64(user)))
			group.Go(func() {
				for turn := 0; turn < turns || !enough() && time.Now().Before(deadline); turn++ {
					h, i := houses[random.IntN(len(houses))], random.IntN(len(ids))
					what, err := h.something(random, caller(i), ids[i])
					switch kind := fault.KindOf(err); {
					case err == nil:
						mutex.Lock()
						accepted[what]++
						mutex.Unlock()
					case kind != fault.Forbidden && kind != fault.Conflict && kind != fault.NotFound:
						t.Errorf("%s: %v", what, err)
						return
					}
				}
			})
		}
		group.Wait()
		for _, id := range ids {
			a.finished(id)
		}
		t.Logf("accepted: %v; %d environments worked at the same time", accepted, w.most)
		require.NotZero(t, accepted["deploy"])
		require.NotZero(t, accepted["action"])
		require.Empty(t, w.met)
		require.LessOrEqual(t, w.most, workers*len(houses))
		total := 0
		for _, id := range ids {
			tasks, _, err := a.store.Tasks().List(t.Context(), id, "")
			require.NoError(t, err)
			total += len(tasks)
			sessions, err := a.store.Sessions().List(t.Context(), id)
			require.NoError(t, err)
			for _, session := range sessions {
				require.NotContains(t, []store.State{store.Deploying, store.Deleting}, session.State)
			}
			environment, err := a.store.Environments().Get(t.Context(), id)
			require.NoError(t, err)
			var rejected int64
			require.NoError(t, a.db.Model(&store.Task{}).Where("environment_id = ? AND stage = ?", id, store.Rejected).Count(&rejected).Error)
			require.Equal(t, int64(len(tasks))-rejected, environment.Version, "each task that was not rejected ended once")
			require.Len(t, environment.Model.Objects["services"], 1, "however they ended, the model is there")
		}
		require.Equal(t, accepted["deploy"]+accepted["action"]+accepted["retry"]+len(ids), total, "each that was accepted is there, once")
	})
}

// something does one random thing as a user.
func (h *house) something(random *rand.Rand, caller identity.Caller, id string) (what string, err error) {
	ctx := h.t.Context()
	newest := func() (string, error) {
		list, err := h.service.Deployments().List(ctx, caller, id)
		if err != nil || len(list) == 0 {
			return "", errors.Join(err, fault.New(fault.NotFound, "none"))
		}
		return list[0].ID, nil
	}
	switch random.IntN(5) {
	case 0:
		task, err := newest()
		if err == nil {
			err = h.service.Deployments().Cancel(ctx, caller, task)
		}
		return "cancel", err
	case 1:
		task, err := newest()
		if err == nil {
			_, err = h.service.Deployments().Retry(ctx, caller, task)
		}
		return "retry", err
	case 2:
		environment, err := h.store.Environments().Get(ctx, id)
		if err != nil {
			return "action", err
		}
		services, _ := environment.Model.Objects["services"].([]any)
		if len(services) == 0 {
			return "action", fault.New(fault.NotFound, "none")
		}
		object := services[0].(map[string]any)["?"].(map[string]any)["id"].(string)
		_, err = h.service.Actions().Call(ctx, caller, id, object+"_"+[]string{"shout", "boom"}[random.IntN(2)], nil)
		return "action", err
	default:
		session, err := h.service.Sessions().Open(ctx, caller, id)
		if err != nil {
			return "deploy", err
		}
		name := fmt.Sprintf("n%d", random.IntN(1000))
		// fails now and then, so that there is something to try again
		applications := []any{application("app-"+name, name, map[string]any{"fail": random.IntN(4) == 0})}
		if err := h.service.Models().PutServices(ctx, caller, id, session.ID, nil, applications, false); err != nil {
			return "deploy", err
		}
		return "deploy", h.service.Sessions().Deploy(ctx, caller, id, session.ID)
	}
}
