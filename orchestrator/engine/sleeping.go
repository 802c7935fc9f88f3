package engine

import (
	"context"
	"errors"

	"github.com/burano/burano/orchestrator/store"
)

// sleeping is the part of a Runtime about the hibernation of the task's environment.
type sleeping struct {
	rows *store.Store
	held *held
}

// Hibernation reads whether the environment sleeps.
func (s sleeping) Hibernation(ctx context.Context) (store.Hibernation, error) {
	return s.rows.Hibernations().Of(ctx, s.held.Task().EnvironmentID)
}

// Settled reads the state of the environment's schedule.
func (s sleeping) Settled(ctx context.Context, row store.Hibernation) (store.Settled, error) {
	return s.rows.Hibernations().Settled(ctx, row)
}

// SetHibernation writes whether the environment sleeps, and, unless they are nil, the servers to start when it wakes. It is durable on return. A task of the keeper makes way
// for a user's task that waits.
func (s sleeping) SetHibernation(ctx context.Context, state store.HibernationState, servers []store.StoppedServer) error {
	err := s.held.SetHibernation(ctx, state, servers)
	if errors.Is(err, store.ErrBusy) {
		s.held.away.Store(true)
		return errMadeWayForUser
	}
	return err
}

// admitAwake returns an error where the environment of a task sleeps, and the task neither changes that nor deletes it. Such a task was submitted before.
func (e *Engine) admitAwake(ctx context.Context, h *held) error {
	task := h.Task()
	if task.Sleeps() || task.Kind() == "deletion" || task.CancelledBy != "" {
		return nil
	}
	found, err := e.Store.Hibernations().Of(ctx, task.EnvironmentID)
	if err != nil {
		return err
	}
	refused := found.Refusal()
	if refused != nil && task.Repair {
		h.away.Store(true)
	}
	return refused
}
