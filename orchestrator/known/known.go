// Package known is the ground floor of clusters: the stored facts and records of a cluster that its tasks, the keeper and the web's questions read, and the one
// way to open a cluster outside of a task.
package known

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/backup"
)

// Reach has the parts of the server by which clusters are reached and saved.
type Reach struct {
	// Connected is called for each SSH connection to a node, with 1 when it begins and with -1 when it ends. May be nil.
	Connected func(change int)
	// MachineNetworks are the ranges in which clusters may have nodes on machines that no cloud made: users name the addresses to which Burano connects.
	// None: there are no such machines.
	MachineNetworks []netip.Prefix
	// Snapshots keeps snapshots of clusters; nil: none are taken.
	Snapshots Snapshots
	// SnapshotContainer is the name of the container for snapshots in each environment's project, "" for the database.
	SnapshotContainer string
	// Backups keeps backups of environments; nil: none are made.
	Backups *backup.Backups
	Logger  *slog.Logger
}

// With opens a cluster outside of tasks, and closes it after do.
func With(ctx context.Context, secrets Secrets, environmentID, objectID string, config Reach, do func(known Facts, cluster *nodes.Cluster) error) error {
	known, cluster, err := Open(ctx, secrets, environmentID, objectID, nodes.Config{Logger: config.Logger, Connected: config.Connected})
	if err != nil {
		return err
	}
	defer cluster.Close()
	return do(known, cluster)
}

// Open makes a cluster from its stored data, outside of tasks.
func Open(ctx context.Context, secrets Secrets, environmentID, objectID string, config nodes.Config) (Facts, *nodes.Cluster, error) {
	keep := EnvironmentVault{secrets, environmentID, objectID}
	known, err := FactsOf(ctx, keep)
	if err != nil {
		return known, nil, err
	}
	config.Name, config.Nodes, config.Vault = known.Name, known.Nodes, keep
	config.Addressing, config.Datastore, config.Encapsulation = known.Addressing, known.Datastore, known.Encapsulation
	cluster, err := nodes.NewCluster(config)
	return known, cluster, err
}

// ContainerOf is where snapshots of a cluster are kept, "" for the database.
func (c Reach) ContainerOf(known *Facts) string {
	if c.SnapshotContainer == "" || known == nil {
		return ""
	}
	return known.SnapshotContainer
}

const (
	// AnswerPatience is how long nodes, etcd and Kubernetes may take to report their state.
	AnswerPatience = 10 * time.Second
	// ReachPatience is how long a node may take until its sshd answers.
	ReachPatience = 5 * time.Second
)
