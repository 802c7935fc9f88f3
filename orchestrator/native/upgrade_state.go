package native

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
)

// The states of a node in an upgrade.
const (
	nodeWaits   = "waiting"
	nodeChanges = "replacing"
	nodeDone    = "done"
)

type (
	// Upgrade is one that has begun and not ended.
	Upgrade struct {
		Image      string    `json:"image"`      // id
		ImageName  string    `json:"image_name"` //
		From       string    `json:"from"`       // the Kubernetes of the API server when it began, such as v1.35.8
		Kubernetes string    `json:"kubernetes"` // to which it goes
		Began      time.Time `json:"began"`
		State      string    `json:"state"` // running, paused, or going back
		Snapshot   string    `json:"snapshot"`
		// Nodes are in the order of their turns.
		Nodes []UpgradeNode `json:"nodes"`
		// Turned is true if nodes in the middle of it were turned back.
		Turned bool `json:"turned,omitempty"`
		// Task works on it, or did last.
		Task string `json:"task"`
	}
	// UpgradeNode is a node with how far it has come.
	UpgradeNode struct {
		Instance string     `json:"instance"` // id of the object
		Name     string     `json:"name"`     // of its server when the upgrade began
		Role     nodes.Role `json:"role"`
		Former   string     `json:"former"` // the image that it had in the model, or its id where the name is another image's by now
		State    string     `json:"state"`  // waiting, replacing or done
	}
)

// The states of an upgrade.
const (
	upgradeRuns   = "running"
	upgradePaused = "paused"
	upgradeBacks  = "going back"
)

func loadUpgrade(ctx context.Context, load func(ctx context.Context, name string) ([]byte, bool, error)) (*Upgrade, error) {
	text, found, err := load(ctx, upgradeName)
	if err != nil || !found {
		return nil, err
	}
	var known *Upgrade
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("read what is known of an upgrade: %w", err)
	}
	return known, nil
}

// upgradeOf is the upgrade of a cluster that has begun and not ended, nil for none.
func (c *clusters) upgradeOf(ctx context.Context, object *muranopl.Object) (*Upgrade, error) {
	return loadUpgrade(ctx, vault{c.runtime, object.ID()}.Load)
}

func (c *clusters) keepUpgrade(ctx context.Context, object *muranopl.Object, known *Upgrade) error {
	text, err := json.Marshal(known) // null when it has ended
	if err != nil {
		return err
	}
	return vault{c.runtime, object.ID()}.Store(ctx, upgradeName, text)
}

// PauseUpgrade has the upgrade of a cluster that runs stop before the next node, and before a master is taken away whose successor is up. It is
// called outside of its task.
func PauseUpgrade(ctx context.Context, secrets Secrets, environmentID, objectID string) error {
	keep := environmentVault{secrets, environmentID, objectID}
	known, err := loadUpgrade(ctx, keep.Load)
	if err != nil {
		return err
	}
	if known == nil || known.State != upgradeRuns {
		return fault.New(fault.Conflict, "No upgrade of this cluster runs: there is nothing to pause")
	}
	return keep.Store(ctx, upgradePauseName, []byte(known.Task))
}

// halts returns whether an upgrade must pause, and records the pause.
func (c *clusters) halts(ctx context.Context, object *muranopl.Object) (bool, error) {
	known, err := c.upgradeOf(ctx, object)
	if err != nil || known == nil || known.Task != c.runtime.TaskID() || known.State == upgradeBacks {
		return false, err
	}
	if known.State == upgradePaused {
		return true, nil
	}
	asked, found, err := vault{c.runtime, object.ID()}.Load(ctx, upgradePauseName)
	if err != nil || !found || string(asked) != known.Task {
		return false, err
	}
	known.State = upgradePaused
	if err := c.keepUpgrade(ctx, object, known); err != nil {
		return false, err
	}
	done := 0
	for _, node := range known.Nodes {
		if node.State == nodeDone {
			done++
		}
	}
	c.reports.inform(ctx, object, "The upgrade of cluster %s pauses: %d of %d nodes are done. The action upgrade goes on with it, and upgradeBack goes back as long as Kubernetes allows it",
		object.Text("name"), done, len(known.Nodes))
	return true, nil
}
