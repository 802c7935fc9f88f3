package orchestrator

import (
	"context"
	"log/slog"
	"time"

	"github.com/burano/burano/orchestrator/store"
)

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
