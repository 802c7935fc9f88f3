package clusters

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/task"
)

// States are the snapshots of a cluster's state.
type States struct{ *Clusters }

// StatesOf returns the snapshots of a task's clusters.
func StatesOf(c *Clusters) States { return States{c} }

// snapshotContainer has the environment's project share a container with the server, if snapshots are to be in one, and returns its
// address. Where that fails they are kept in the database, which is reported: no deployment fails for it.
func (c States) snapshotContainer(ctx context.Context, object *muranopl.Object) string {
	if c.Clusters.Settings.SnapshotContainer == "" || c.Clusters.Settings.ShareContainer == nil {
		return ""
	}
	project, err := c.Runtime.Project(ctx)
	address := ""
	if err == nil {
		address, err = c.Clusters.Settings.ShareContainer(ctx, project, c.Clusters.Settings.SnapshotContainer)
	}
	if err != nil && ctx.Err() == nil {
		c.Reports.Warn(ctx, object, fmt.Sprintf("The project's object store has no container for snapshots of cluster %s: they are kept in Burano's database until a deployment "+
			"finds one", object.Text("name")), err.Error())
	}
	return address
}

// Subject describes a snapshot of a cluster.
func (c States) Subject(ctx context.Context, object *muranopl.Object, facts *known.Facts, kind store.SnapshotKind, reason string) snapshot.Subject {
	of := snapshot.Subject{EnvironmentID: c.Runtime.EnvironmentID(), ClusterID: object.ID(), ClusterName: object.Text("name"), Kind: kind, Reason: reason}
	if kind == store.BeforeChange {
		of.Keep = keptChanges
	}
	of.Container = c.Clusters.Settings.ContainerOf(facts)
	of.Refused = func(why error) { c.Reports.Warn(ctx, object, "T"+known.InDatabaseInstead[1:], why.Error()) }
	return of
}

// Former is the cluster as it is known to be, reached only where it answers soon; nil where it was never up. The caller closes it.
func (c *Clusters) Former(ctx context.Context, object *muranopl.Object) (*nodes.Cluster, *known.Facts, error) {
	facts, err := c.Facts(ctx, object)
	if err != nil || facts == nil {
		return nil, nil, err
	}
	config, err := ConnectionsOf(c).config(ctx, object, facts.Nodes)
	if err != nil {
		return nil, nil, err
	}
	config.Patience = known.ReachPatience
	former, err := nodes.NewCluster(config)
	return former, facts, err
}

// SaveBefore takes a snapshot of a cluster before its members or servers change. The snapshot is stored when it returns; the returned function waits
// until the snapshot was opened and checked, which goes on beside the change. A change that repairs a cluster must go on without a snapshot, and the
// failure is reported. The snapshot is read through the connections of the changing cluster, unless that has another master.
func (c States) SaveBefore(ctx context.Context, object *muranopl.Object, changes *nodes.Cluster, change string) (wait func()) {
	wait = func() {}
	if c.Clusters.Settings.Snapshots == nil || task.OnlyGateways(object) { // what gateways serve is kept with Burano
		return wait
	}
	cluster, facts, err := c.Clusters.Former(ctx, object)
	if cluster == nil && err == nil {
		return wait
	}
	done, stored := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		if err == nil {
			defer cluster.Close()
			if changes.SameMaster(facts.Nodes) {
				cluster = changes
			}
			of := c.Subject(ctx, object, facts, store.BeforeChange, "before "+change)
			of.Stored = func() { close(stored) }
			_, err = known.SnapshotOf(ctx, c.Clusters.Settings.Snapshots, cluster, of, func(ctx context.Context, to io.Writer) error {
				ctx, cancel := context.WithTimeoutCause(ctx, snapshotReach, fmt.Errorf("it took longer than %s", snapshotReach))
				defer cancel()
				return cluster.Snapshot(ctx, to)
			})
		}
		if err != nil && ctx.Err() == nil {
			c.Reports.Warn(ctx, object, fmt.Sprintf("No snapshot was taken of the cluster before %s", change), err.Error())
		}
	}()
	select {
	case <-stored:
	case <-done:
	}
	return func() { <-done }
}

// changed is true if the nodes of a cluster, or their servers, differ from the former ones.
func changed(former, now []nodes.Node) bool {
	return !slices.EqualFunc(former, now, func(a, b nodes.Node) bool { return a.Name == b.Name && a.Server == b.Server && a.Leaving == b.Leaving })
}

// keptChanges is how many snapshots that were taken before changes a cluster keeps.
const keptChanges = 5

// snapshotReach is how long a change waits for a snapshot to be read from etcd.
const snapshotReach = time.Minute
