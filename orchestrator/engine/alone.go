package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/orchestrator/store"
)

// A task over which servers died may be the cause, or may only have run beside it. So it runs alone on its server. Only deaths in that time count
// against it, with no request and no check of the keeper beside it (store.Deaths.Note), and no other task can be hit. Others wait for it no longer than
// AloneTime at first, and twice as long after each further death, so that a slow killer is found too. Then they wait for no suspect for as long again.

// runsAlone is true if a taken task must run alone.
func (e *Engine) runsAlone(task store.Task) bool {
	return task.Suspect() && !e.condemned(task) && task.CancelledBy == ""
}

// condemned is true if a task is known to kill servers.
func (e *Engine) condemned(task store.Task) bool { return task.AloneDeaths >= int64(e.MaxDeaths) }

// aloneTime is how long a task runs alone before others run beside it again.
func (e *Engine) aloneTime(task store.Task) time.Duration {
	length := e.AloneTime
	for deaths := int64(store.SuspectDeaths); deaths < task.Deaths && length < e.TaskTime; deaths++ {
		length *= 2
	}
	return min(length, e.TaskTime)
}

// makeWay waits until nothing runs beside the suspect task, and after a while gives back the tasks that still run. Call end when the task has ended.
func (e *Engine) makeWay(ctx context.Context, h *held) (end func()) {
	began := time.Now()
	ending := sync.OnceFunc(func() {
		e.mutex.Lock()
		e.pool.alone, e.pool.calm = false, time.Now().Add(time.Since(began))
		time.AfterFunc(time.Until(e.pool.calm), e.Wake)
		e.mutex.Unlock()
		e.Wake()
	})
	task := h.Task()
	log := h.log.With("task", task.ID, "environment", task.EnvironmentID, "deaths", task.Deaths)
	if !e.othersEnded(ctx, e.MakeWay) {
		e.mutex.Lock()
		for environmentID, other := range e.running {
			if environmentID != task.EnvironmentID {
				other.lease.End(errMadeWay)
			}
		}
		e.mutex.Unlock()
		e.othersEnded(ctx, e.TaskTime)
	}
	if ctx.Err() != nil {
		return ending // run gives it back
	}
	length := e.aloneTime(task)
	text := fmt.Sprintf("%d Burano servers ended while they ran this %s: it runs alone on its server now, for at most %s", task.Deaths, task.Kind(), length)
	err := h.setAlone(ctx, true)
	if err == nil {
		err = h.AddReport(ctx, store.Report{Level: string(LevelInfo), Text: text})
	}
	if err != nil {
		log.Error("it could not be written that a task runs alone", "error", err)
		return ending
	}
	log.Warn("a task over which servers died runs alone", "longest", length)
	timer := time.AfterFunc(length, func() {
		if err := h.setAlone(ctx, false); err != nil && ctx.Err() == nil {
			log.Error("it could not be written that a task runs alone no more", "error", err)
		}
		ending()
	})
	return func() {
		timer.Stop()
		ending()
	}
}

// setAlone writes whether the task runs alone. The server's next start corrects it if requests or checks ran beside it.
func (h *held) setAlone(ctx context.Context, alone bool) error {
	h.note.Change(func(work *blackbox.Work) { work.Alone = true })
	err := h.SetAlone(ctx, alone)
	if err == nil && !alone {
		h.note.Change(func(work *blackbox.Work) { work.Alone = false })
	}
	return err
}

// HasSuspect reports whether a task runs alone, or is about to, within AloneTime: then the keeper begins no checks beside it.
func (e *Engine) HasSuspect() bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.pool.alone && time.Since(e.pool.since) < e.MakeWay+e.AloneTime
}

// othersEnded waits until the caller's is the only task in this process; false when that takes longer, or ctx ends.
func (e *Engine) othersEnded(ctx context.Context, longest time.Duration) bool {
	timer := time.NewTimer(longest)
	defer timer.Stop()
	for {
		e.mutex.Lock()
		busy, changed := e.pool.busy, e.pool.changed
		e.mutex.Unlock()
		if busy == 1 {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
