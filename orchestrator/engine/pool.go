package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/internal/requestid"
	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// pool is the state of the engine's workers. The engine's mutex guards it.
type pool struct {
	busy    int
	alone   bool          // a task runs alone, or is about to: no other is taken
	since   time.Time     // the last task was taken
	calm    time.Time     // until then no task is taken to run alone, as long as there are others
	changed chan struct{} // closed, and made anew, when a worker becomes free
}

// Run takes and runs tasks until ctx ends; then it cancels the running ones and returns when they are given back.
func (e *Engine) Run(ctx context.Context) error {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { e.sweepDelegations(ctx) })

	ticker := time.NewTicker(e.Poll)
	defer ticker.Stop()
	for {
		for ctx.Err() == nil && e.takeOne(ctx, &tasks) { // all free workers get a task before waiting again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.wake:
		case <-ticker.C:
		}
	}
}

// takeOne takes a task, if a worker is free and a task is there, and runs it on a goroutine of its own.
func (e *Engine) takeOne(ctx context.Context, tasks *sync.WaitGroup) bool {
	e.mutex.Lock()
	busy, alone, calm := e.pool.busy, e.pool.alone, time.Now().Before(e.pool.calm)
	e.mutex.Unlock()
	if alone || busy >= e.Workers {
		return false
	}
	taking := store.Taking{Worker: e.Name, Lease: e.Lease, Free: e.Workers - busy, Unsuspected: calm}
	asked := time.Now()
	hold, before, err := e.Store.Tasks().Take(ctx, taking)
	if errors.Is(err, store.ErrNotFound) && calm && busy == 0 {
		taking.Unsuspected, asked = false, time.Now()
		hold, before, err = e.Store.Tasks().Take(ctx, taking)
	}
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) && ctx.Err() == nil {
			e.Logger.Error("no task could be taken; trying again", "after", e.Poll, "error", err)
		}
		return false
	}
	alone = e.runsAlone(hold.Task())
	e.mutex.Lock()
	e.pool.busy++
	e.pool.alone, e.pool.since = alone, time.Now()
	e.mutex.Unlock()
	tasks.Go(func() {
		defer e.free()
		e.hold(ctx, hold, before, asked, alone)
	})
	return true
}

// free gives a worker back.
func (e *Engine) free() {
	e.mutex.Lock()
	e.pool.busy--
	close(e.pool.changed)
	e.pool.changed = make(chan struct{})
	e.mutex.Unlock()
	signal(e.wake) // a worker is free, and the environment
}

// hold renews the lease of a task that was taken at the time asked, and runs the task under it.
func (e *Engine) hold(ctx context.Context, hold *store.Hold, before store.Task, asked time.Time, alone bool) {
	// The task's requests to the cloud, and its log lines, carry the id of the request that submitted it.
	taskCtx, cancel := context.WithCancelCause(requestid.With(context.WithoutCancel(ctx), hold.Task().RequestID))
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(errStopped) })()
	h := &held{Hold: hold, lease: lease.New(e.Lease, asked, cancel)}
	hold.Guard(h.lease.Check)
	environmentID := hold.Task().EnvironmentID
	e.mutex.Lock()
	e.running[environmentID] = h
	e.mutex.Unlock()

	keepCtx, release := context.WithCancel(context.WithoutCancel(ctx))
	var renewing sync.WaitGroup
	renewing.Go(func() { h.lease.Keep(keepCtx, h.renew) })
	defer renewing.Wait()
	defer release()
	h.note = e.Running.Begin(blackbox.Work{Kind: blackbox.Task, What: hold.Task().Kind() + " of environment " + environmentID, Key: hold.Task().ID, Fence: hold.Fence()})
	defer h.note.End()
	h.log = requestid.Logger(h.known.Logger(e.Logger), hold.Task().RequestID)
	if alone {
		defer e.makeWay(taskCtx, h)()
	}
	defer time.AfterFunc(e.TaskTime, func() { cancel(errTime) }).Stop()
	e.run(e.withOutages(openstack.Guarded(taskCtx, h.lease.Check), h), h, before)

	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.running[environmentID] == h { // and not a later task's
		delete(e.running, environmentID)
	}
}
