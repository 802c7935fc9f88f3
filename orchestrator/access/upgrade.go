package access

import (
	"context"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/known"
)

// PauseUpgrade has the upgrade of a cluster that runs stop before the next node, and before a master is taken away whose successor is up. It is
// called outside of its task.
func PauseUpgrade(ctx context.Context, secrets known.Secrets, environmentID, objectID string) error {
	keep := known.EnvironmentVault{Secrets: secrets, Environment: environmentID, Cluster: objectID}
	facts, err := known.LoadUpgrade(ctx, keep.Load)
	if err != nil {
		return err
	}
	if facts == nil || facts.State != known.UpgradeRuns {
		return fault.New(fault.Conflict, "No upgrade of this cluster runs: there is nothing to pause")
	}
	return keep.Store(ctx, known.UpgradePauseName, []byte(facts.Task))
}
