package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/store"
)

// Undeletion restores environments that were deleted.
type Undeletion struct {
	kept store.DeletedEnvironments
	// forget removes the facts about the nodes of an environment's clusters: their servers are gone.
	forget func(ctx context.Context, environmentID string) error
}

// NewUndeletion makes an Undeletion.
func NewUndeletion(rows *store.Store, forget func(ctx context.Context, environmentID string) error) *Undeletion {
	return &Undeletion{rows.Deleted(), forget}
}

// Period is how long deleted environments stay, 0 for not at all.
func (u *Undeletion) Period() time.Duration { return u.kept.Period() }

// Expires is when a deleted environment is removed for good.
func (u *Undeletion) Expires(row store.DeletedEnvironment) time.Time {
	return row.Deleted.Time().Add(u.Period())
}

// List lists the deleted environments that can be restored, the newest first.
func (u *Undeletion) List(ctx context.Context, caller identity.Caller, options ListOptions) ([]store.DeletedEnvironment, error) {
	project, err := options.project(caller)
	if err != nil {
		return nil, err
	}
	return u.kept.Of(ctx, project)
}

func (u *Undeletion) find(ctx context.Context, caller identity.Caller, id string) (store.DeletedEnvironment, error) {
	row, err := u.kept.Environment(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return row, fault.New(fault.NotFound, "There is no deleted environment with id %s: it was never there, is there still, or was deleted longer ago than %s (undelete-period)", id, u.Period())
	}
	return row, visible(store.Environment{ProjectID: row.ProjectID}, caller, id, err)
}

// Undelete restores an environment, under another name where that is not "". Nothing of it is in the cloud until it is deployed, unless it was left there.
func (u *Undeletion) Undelete(ctx context.Context, caller identity.Caller, id, name string) (Environment, error) {
	row, err := u.find(ctx, caller, id)
	if err == nil {
		err = checkLength(name)
	}
	if err != nil {
		return Environment{}, err
	}
	if !row.Abandoned {
		if err := u.forget(ctx, id); err != nil {
			return Environment{}, err
		}
	}
	back, err := u.kept.Restore(ctx, id, strings.TrimSpace(name))
	if errors.Is(err, store.ErrDuplicate) {
		return Environment{}, fault.New(fault.Conflict, "The project has another environment %s by now. Give the deleted one another name: burano environment undelete %s --name NAME; or rename the other: burano environment rename %[1]s NAME",
			firstText(name, row.Name), id)
	}
	return seen(back), err
}

func firstText(texts ...string) string {
	for _, text := range texts {
		if strings.TrimSpace(text) != "" {
			return text
		}
	}
	return ""
}

// Purge removes a deleted environment for good.
func (u *Undeletion) Purge(ctx context.Context, caller identity.Caller, id string) error {
	if _, err := u.find(ctx, caller, id); err != nil {
		return err
	}
	return u.kept.Purge(ctx, id)
}

// sweepPause is the pause between two sweeps.
const sweepPause = 10 * time.Minute

// Tidy records the states of components whose environments were deployed by a former version, and removes expired rows, at first and again and again, until ctx ends. It also removes the unfinished snapshots of servers that died; remove
// removes one with its pieces.
func Tidy(ctx context.Context, rows *store.Store, keep store.Retention, remove func(ctx context.Context, id string) error, log *slog.Logger) {
	ticker := time.NewTicker(sweepPause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		swept, err := rows.Expired().Sweep(ctx, keep, remove)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.WarnContext(ctx, "what is kept for long enough could not be removed; trying again", "after", sweepPause, "error", err)
		case swept != (store.Swept{}):
			log.InfoContext(ctx, "what was kept for long enough was removed", "deployments", swept.Deployments, "reports", swept.Reports,
				"sessions", swept.Sessions, "statistics", swept.Statistics, "snapshots", swept.Snapshots, "states", swept.States, "environments", swept.Environments)
		}
		switch completed, err := rows.Components().Complete(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			log.WarnContext(ctx, "the states of components could not be recorded; trying again", "after", sweepPause, "error", err)
		case completed > 0:
			log.InfoContext(ctx, "the states of components were recorded from former deployments", "environments", completed)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}
