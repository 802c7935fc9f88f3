package access

import (
	"context"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/known"
)

// PauseUpgrade stops the upgrade of a cluster before the next node, and before a master is taken away whose successor is up.
func (c Clusters) PauseUpgrade(ctx context.Context, environmentID, objectID string) error {
	keep := c.vault(environmentID, objectID)
	facts, err := known.LoadUpgrade(ctx, keep.Load)
	if err != nil {
		return err
	}
	if facts == nil || facts.State != known.UpgradeRuns {
		return fault.New(fault.Conflict, "No upgrade of this cluster runs: there is nothing to pause")
	}
	return keep.Store(ctx, known.UpgradePauseName, []byte(facts.Task))
}
