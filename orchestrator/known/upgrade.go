package known

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/burano/burano/nodes"
)

// Secrets of a cluster about its upgrade.
const (
	UpgradeName      = "upgrade"       // Upgrade as JSON, among the cluster's secrets
	UpgradePauseName = "upgrade-pause" // the task that is to pause
)

// The states of a node in an upgrade.
const (
	NodeWaits   = "waiting"
	NodeChanges = "replacing"
	NodeDone    = "done"
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
	UpgradeRuns   = "running"
	UpgradePaused = "paused"
	UpgradeBacks  = "going back"
)

// LoadUpgrade is nil where no upgrade has begun.
func LoadUpgrade(ctx context.Context, load func(ctx context.Context, name string) ([]byte, bool, error)) (*Upgrade, error) {
	text, found, err := load(ctx, UpgradeName)
	if err != nil || !found {
		return nil, err
	}
	var known *Upgrade
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("read what is known of an upgrade: %w", err)
	}
	return known, nil
}
