package engine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/blackbox"
	"github.com/burano/burano/orchestrator/lease"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// held is a task that this process holds. Its methods write all text about the task for people, and remove known secrets from it.
type held struct {
	*store.Hold
	lease *lease.Lease
	known secret.Known
	log   *slog.Logger
	note  *blackbox.Note // of the task, for the server's next start
	again bool           // it was held before, and goes on

	reached reached

	wanted atomic.Bool // a user's task waits for the environment: a repair begins no other step
	away   atomic.Bool // a step was refused for that
}

// step returns an error unless another step of the task may begin.
func (h *held) step() error {
	if !h.wanted.Load() {
		return nil
	}
	h.away.Store(true)
	return errMadeWayForUser
}

// renew renews the lease of the task, and ends the task when a user has cancelled it.
func (h *held) renew(ctx context.Context, length time.Duration) error {
	wanted, err := h.Renew(ctx, length)
	switch {
	case errors.Is(err, store.ErrFenced):
		return lease.Over(errTakenOver)
	case errors.Is(err, store.ErrNotFound):
		return lease.Over(errAbandoned)
	case err == nil && wanted.CancelledBy != "":
		h.lease.End(errCancelled)
	case err == nil && wanted.Way:
		h.wanted.Store(true)
	}
	return err
}

// know records the secrets of the models that the task is about, and of its arguments.
func (h *held) know(models ...map[string]any) {
	for _, model := range models {
		h.known.Note("", model)
	}
}

// AddReport adds a line to the task's log.
func (h *held) AddReport(ctx context.Context, report store.Report) error {
	return h.Hold.AddReport(ctx, h.hidden(report))
}

// GiveBack ends the hold, with a last report.
func (h *held) GiveBack(ctx context.Context, report store.Report) error {
	return h.Hold.GiveBack(ctx, h.hidden(report))
}

func (h *held) hidden(report store.Report) store.Report {
	report.Text = h.known.Hide(report.Text)
	if report.Details != nil {
		details := h.known.Hide(*report.Details)
		report.Details = &details
	}
	return report
}

// StartStep writes the beginning of a step, whose name may describe its work.
func (h *held) StartStep(ctx context.Context, step store.Step) (string, error) {
	step.Name = h.known.Hide(step.Name)
	return h.Hold.StartStep(ctx, step)
}

// EndStep writes the end of a step.
func (h *held) EndStep(ctx context.Context, id, problem string) error {
	return h.Hold.EndStep(ctx, id, h.known.Hide(problem))
}

// reached is how far the task has come with the components of its environment. It is safe for concurrent use.
type reached struct {
	mutex sync.Mutex
	store.Reached
}

// deployed notes that the deployment of a component succeeded.
func (r *reached) deployed(component *muranopl.Object) { r.note(&r.Deployed, component.ID()) }

// destroyed notes that an object was destroyed.
func (r *reached) destroyed(object *muranopl.Object) { r.note(&r.Destroyed, object.ID()) }

func (r *reached) note(set *map[string]bool, id string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if *set == nil {
		*set = map[string]bool{}
	}
	(*set)[id] = true
}

// concerns notes the component of an object that an error is about: the object below the environment that owns it. A model may not have the object.
func (r *reached) concerns(object *muranopl.Object) {
	component := object
	for owner := object.Owner(); owner != nil && owner.Owner() != nil; owner = owner.Owner() {
		component = owner
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.Owners == nil {
		r.Owners = map[string]string{}
	}
	r.Owners[object.ID()] = component.ID()
}

// track begins to count an application or a server.
func (h *held) track(ctx context.Context, object *muranopl.Object, kind int64, title string, units int64) error {
	row := store.InstanceStatistics{InstanceID: object.ID(), Type: kind, TypeName: object.Class().Name, UnitCount: &units}
	if title != "" {
		row.TypeTitle = &title
	}
	return h.TrackInstance(ctx, row)
}

// Finish writes the end of the task. An action's result is for the user who called it, and stays as it is; others see the masked form beside it.
func (h *held) Finish(ctx context.Context, outcome store.Outcome) (failed bool, err error) {
	if isException, _ := outcome.Result["isException"].(bool); isException {
		outcome.Result, _ = h.known.HideIn(map[string]any(outcome.Result)).(map[string]any)
	} else if listed := h.known.HideIn(outcome.Result["result"]); !reflect.DeepEqual(listed, outcome.Result["result"]) {
		outcome.Result = maps.Clone(outcome.Result)
		outcome.Result[store.ResultListed] = listed
	}
	h.reached.mutex.Lock()
	outcome.Reached = h.reached.Reached
	h.reached.mutex.Unlock()
	return h.Hold.Finish(ctx, outcome)
}

// report writes the lines of a failure.
func (h *held) report(ctx context.Context, lines []line) error {
	for _, l := range lines {
		report := store.Report{Level: string(LevelError), Text: l.text}
		if details := h.withRequest(l.details); details != "" {
			report.Details = &details
		}
		if l.object != nil {
			h.reached.concerns(l.object)
			id, class := l.object.ID(), l.object.Class().Name
			report.EntityID, report.Entity = &id, &class
		}
		if err := h.AddReport(ctx, report); err != nil {
			return err
		}
	}
	return nil
}

// withRequest adds to the details of a failure the id of the request that submitted the task. The logs of Burano and of the cloud's services have more
// under that id.
func (h *held) withRequest(details string) string {
	id := h.Task().RequestID
	if id == "" {
		return details
	}
	return strings.TrimLeft(details+"\nRequest: "+id, "\n")
}
