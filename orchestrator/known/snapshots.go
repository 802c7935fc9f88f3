package known

import (
	"context"
	"errors"
	"io"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
)

// Snapshots keeps snapshots of clusters (snapshot.Archive).
type Snapshots interface {
	Take(ctx context.Context, of snapshot.Subject, write func(ctx context.Context, to io.Writer) error) (store.Snapshot, error)
	Open(ctx context.Context, id string) (io.ReadCloser, error)
	Snapshot(ctx context.Context, id string) (store.Snapshot, error)
	Snapshots(ctx context.Context, filter store.SnapshotFilter) ([]store.Snapshot, error)
	Environment(ctx context.Context, id string) (store.Environment, error)
}

// TakeSnapshot takes a snapshot of the cluster that this object of the environment is, outside of tasks. It may happen beside one. of is
// completed here.
func TakeSnapshot(ctx context.Context, secrets Secrets, of snapshot.Subject, config Reach) (store.Snapshot, error) {
	known, cluster, err := Open(ctx, secrets, of.EnvironmentID, of.ClusterID, nodes.Config{Logger: config.Logger, Connected: config.Connected, Patience: ReachPatience})
	if err != nil {
		return store.Snapshot{}, err
	}
	defer cluster.Close()
	of.ClusterName, of.Container = known.Name, config.ContainerOf(&known)
	of.Refused = func(why error) {
		config.Logger.WarnContext(ctx, InDatabaseInstead, "environment", of.EnvironmentID, "cluster", known.Name, "error", why)
	}
	return SnapshotOf(ctx, config.Snapshots, cluster, of, cluster.Snapshot)
}

// SnapshotOf takes a snapshot of an open cluster; write writes its etcd.
func SnapshotOf(ctx context.Context, archive Snapshots, cluster *nodes.Cluster, of snapshot.Subject, write func(context.Context, io.Writer) error) (taken store.Snapshot, err error) {
	if archive == nil {
		return taken, errors.New("this Burano keeps no snapshots")
	}
	if of.Secrets, err = cluster.Keys(ctx); err != nil {
		return taken, err
	}
	return archive.Take(ctx, of, write)
}

// InDatabaseInstead is said when a container takes no snapshot.
const InDatabaseInstead = "the project's object store cannot be used: the snapshot is kept in the database"
