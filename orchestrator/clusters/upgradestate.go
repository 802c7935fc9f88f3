package clusters

import (
	"context"
	"encoding/json"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/known"
)

// Upgrades are the stored states of upgrades.
type Upgrades struct{ *Clusters }

// UpgradesOf returns the stored states of the upgrades of a task's clusters.
func UpgradesOf(c *Clusters) Upgrades { return Upgrades{c} }

// Current is the upgrade of a cluster that has begun and not ended, nil for none.
func (c Upgrades) Current(ctx context.Context, object *muranopl.Object) (*known.Upgrade, error) {
	return known.LoadUpgrade(ctx, known.Vault{Runtime: c.Runtime, Cluster: object.ID()}.Load)
}

// Keep stores the state of an upgrade; nil when it has ended.
func (c Upgrades) Keep(ctx context.Context, object *muranopl.Object, facts *known.Upgrade) error {
	text, err := json.Marshal(facts) // null when it has ended
	if err != nil {
		return err
	}
	return known.Vault{Runtime: c.Runtime, Cluster: object.ID()}.Store(ctx, known.UpgradeName, text)
}

// Halts returns whether an upgrade must pause, and records the pause.
func (c Upgrades) Halts(ctx context.Context, object *muranopl.Object) (bool, error) {
	facts, err := c.Current(ctx, object)
	if err != nil || facts == nil || facts.Task != c.Runtime.TaskID() || facts.State == known.UpgradeBacks {
		return false, err
	}
	if facts.State == known.UpgradePaused {
		return true, nil
	}
	asked, found, err := known.Vault{Runtime: c.Runtime, Cluster: object.ID()}.Load(ctx, known.UpgradePauseName)
	if err != nil || !found || string(asked) != facts.Task {
		return false, err
	}
	facts.State = known.UpgradePaused
	if err := c.Keep(ctx, object, facts); err != nil {
		return false, err
	}
	done := 0
	for _, node := range facts.Nodes {
		if node.State == known.NodeDone {
			done++
		}
	}
	c.Reports.Inform(ctx, object, "The upgrade of cluster %s pauses: %d of %d nodes are done. The action upgrade goes on with it, and upgradeBack goes back as long as Kubernetes allows it",
		object.Text("name"), done, len(facts.Nodes))
	return true, nil
}
