package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/snapshot"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/task"
)

const (
	// keptChanges is how many snapshots that were taken before changes a cluster keeps.
	keptChanges = 5
	// snapshotReach is how long a change waits for a snapshot to be read from etcd.
	snapshotReach    = time.Minute
	argumentSnapshot = "snapshot"
	methodRestore    = "restore"
)

// clusterStates are the snapshots of a cluster's state.
type clusterStates struct{ *clusters }

func clusterStatesOf(c *clusters) clusterStates { return clusterStates{c} }

// snapshotContainer has the environment's project share a container with the server, if snapshots are to be in one, and returns its
// address. Where that fails they are kept in the database, which is reported: no deployment fails for it.
func (c clusterStates) snapshotContainer(ctx context.Context, object *muranopl.Object) string {
	if c.clusters.server.SnapshotContainer == "" || c.clusters.server.ShareContainer == nil {
		return ""
	}
	project, err := c.runtime.Project(ctx)
	address := ""
	if err == nil {
		address, err = c.clusters.server.ShareContainer(ctx, project, c.clusters.server.SnapshotContainer)
	}
	if err != nil && ctx.Err() == nil {
		c.reports.Warn(ctx, object, fmt.Sprintf("The project's object store has no container for snapshots of cluster %s: they are kept in Burano's database until a deployment "+
			"finds one", object.Text("name")), err.Error())
	}
	return address
}

func (c clusterStates) subject(ctx context.Context, object *muranopl.Object, facts *known.Facts, kind store.SnapshotKind, reason string) snapshot.Subject {
	of := snapshot.Subject{EnvironmentID: c.runtime.EnvironmentID(), ClusterID: object.ID(), ClusterName: object.Text("name"), Kind: kind, Reason: reason}
	if kind == store.BeforeChange {
		of.Keep = keptChanges
	}
	of.Container = c.clusters.server.ContainerOf(facts)
	of.Refused = func(why error) { c.reports.Warn(ctx, object, "T"+known.InDatabaseInstead[1:], why.Error()) }
	return of
}

// former is the cluster as it is known to be, reached only where it answers soon; nil where it was never up. The caller closes it.
func (c *clusters) former(ctx context.Context, object *muranopl.Object) (*nodes.Cluster, *known.Facts, error) {
	facts, err := c.facts(ctx, object)
	if err != nil || facts == nil {
		return nil, nil, err
	}
	config, err := clusterConnectionsOf(c).config(ctx, object, facts.Nodes)
	if err != nil {
		return nil, nil, err
	}
	config.Patience = known.ReachPatience
	former, err := nodes.NewCluster(config)
	return former, facts, err
}

// saveBefore takes a snapshot of a cluster before its members or servers change. The snapshot is stored when it returns; the returned function waits
// until the snapshot was opened and checked, which goes on beside the change. A change that repairs a cluster must go on without a snapshot, and the
// failure is reported. The snapshot is read through the connections of the changing cluster, unless that has another master.
func (c clusterStates) saveBefore(ctx context.Context, object *muranopl.Object, changes *nodes.Cluster, change string) (wait func()) {
	wait = func() {}
	if c.clusters.server.Snapshots == nil || task.OnlyGateways(object) { // what gateways serve is kept with Burano
		return wait
	}
	cluster, facts, err := c.clusters.former(ctx, object)
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
			of := c.subject(ctx, object, facts, store.BeforeChange, "before "+change)
			of.Stored = func() { close(stored) }
			_, err = known.SnapshotOf(ctx, c.clusters.server.Snapshots, cluster, of, func(ctx context.Context, to io.Writer) error {
				ctx, cancel := context.WithTimeoutCause(ctx, snapshotReach, fmt.Errorf("it took longer than %s", snapshotReach))
				defer cancel()
				return cluster.Snapshot(ctx, to)
			})
		}
		if err != nil && ctx.Err() == nil {
			c.reports.Warn(ctx, object, fmt.Sprintf("No snapshot was taken of the cluster before %s", change), err.Error())
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

// clusterRestores save a cluster's state and restore it.
type clusterRestores struct{ clusterClass }

func clusterRestoresOf(c clusterClass) clusterRestores { return clusterRestores{c} }

// snapshot is the action that takes a snapshot and returns which it is.
func (c clusterRestores) snapshot(ctx context.Context, call muranopl.Call) (any, error) {
	cluster, facts, err := c.clusters.former(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	if cluster == nil {
		return nil, fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", call.Object.Text("name"))
	}
	defer cluster.Close()
	reason, _ := call.Args[known.ArgumentReason].(string)
	taken, err := known.SnapshotOf(ctx, c.clusters.server.Snapshots, cluster, clusterStatesOf(c.clusters).subject(ctx, call.Object, facts, store.Requested, reason), cluster.Snapshot)
	if err != nil {
		return nil, err
	}
	c.reports.Inform(ctx, call.Object, "Snapshot %s of the cluster was taken, %d bytes, and opens", taken.ID, taken.Size)
	return taken.ID, nil
}

// restore is the action that restores a cluster to the state of a snapshot, with new servers for lost ones.
func (c clusterRestores) restore(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.Close()
	named, _ := call.Args[argumentSnapshot].(string)
	from, err := clusterStatesOf(c.clusters).find(ctx, call.Object, named)
	if err != nil {
		return nil, err
	}
	if err := clusterStatesOf(c.clusters).fits(ctx, call.Object, from); err != nil {
		return nil, err
	}
	c.reports.Inform(ctx, call.Object, "%s", Loss(from))
	if err := clusterStatesOf(c.clusters).takeOver(ctx, call.Object, from); err != nil {
		return nil, err
	}
	if err := c.comeBack(ctx, call, func(ctx context.Context, live *nodes.Cluster) error {
		return clusterStatesOf(c.clusters).restoreFrom(ctx, live, from)
	}); err != nil {
		return nil, err
	}
	if err := c.settleAttachments(ctx, call.Object); err != nil {
		return nil, err
	}
	return nil, c.adoptPods(ctx, call)
}

// Loss computes the data that a restore removes.
func Loss(from store.Snapshot) string {
	return fmt.Sprintf("Cluster %s is restored as it was on %s (snapshot %s). What Kubernetes was told since is lost: objects that were made, changed or deleted. "+
		"Pods start anew; what is on the disks of servers that are gone stays lost", from.ClusterName, from.Created.Time().Format(time.RFC1123), from.ID)
}

// find returns the snapshot of that id, of any cluster of the project, or the cluster's newest one.
func (c clusterStates) find(ctx context.Context, object *muranopl.Object, id string) (store.Snapshot, error) {
	archive := c.clusters.server.Snapshots
	if archive == nil {
		return store.Snapshot{}, errors.New("this Burano keeps no snapshots")
	}
	if id == "" {
		list, err := archive.Snapshots(ctx, store.SnapshotFilter{EnvironmentID: c.runtime.EnvironmentID(), ClusterID: object.ID()})
		if err != nil {
			return store.Snapshot{}, err
		}
		if len(list) == 0 {
			return store.Snapshot{}, fault.New(fault.Invalid, "There is no snapshot of cluster %s", object.Text("name"))
		}
		id = list[0].ID
	}
	environment, err := archive.Environment(ctx, c.runtime.EnvironmentID())
	if err != nil {
		return store.Snapshot{}, err
	}
	found, err := archive.Snapshot(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && found.ProjectID != environment.ProjectID {
		return found, fault.New(fault.Invalid, "There is no snapshot %s in the project", id)
	}
	return found, err
}

// fits refuses a snapshot whose pods and Services have addresses outside the networks of the cluster.
func (c clusterStates) fits(ctx context.Context, object *muranopl.Object, from store.Snapshot) error {
	kept, err := nodes.AddressingOf([]byte(from.Secrets))
	if err != nil {
		return err
	}
	own, err := c.clusters.PodNetwork(ctx, object)
	if err != nil {
		return err
	}
	unwrapped, err := nodes.UnwrappedIn([]byte(from.Secrets))
	if err != nil {
		return err
	}
	if unwrapped != (own.Encapsulation == network.Unwrapped) {
		holds := "which wraps packets"
		if unwrapped {
			holds = "with podEncapsulation: none"
		}
		return fault.New(fault.Invalid, "Snapshot %s cannot be restored into cluster %s: it is of a cluster %s, and this one has podEncapsulation: %s; the addresses of pods belong to a pool "+
			"that says so. Restore it into one that is made like it. Nothing was changed", from.ID, object.Text("name"), holds, own.Encapsulation)
	}
	datastore, err := nodes.DatastoreIn([]byte(from.Secrets))
	if err != nil {
		return err
	}
	if datastore != own.Datastore {
		return fault.New(fault.Invalid, "Snapshot %s cannot be restored into cluster %s: it is of a cluster with calicoDatastore: %s, and this one has calicoDatastore: %s, so that its nodes would look "+
			"for what is not there. Restore it into one that is made like it. Nothing was changed", from.ID, object.Text("name"), datastore, own.Datastore)
	}
	if kept == own.Addressing {
		return nil
	}
	return fault.New(fault.Invalid, "Snapshot %s cannot be restored into cluster %s: its pods and Services have their addresses from %s and %s and their names in %s, those of the cluster "+
		"from %s and %s in %s. Restore it into one that is made with podRange %[3]s, serviceRange %[4]s and clusterDomain %[5]s. Nothing was changed",
		from.ID, object.Text("name"), network.Text(kept.PodRanges()), network.Text(kept.ServiceRanges()), kept.Domain, network.Text(own.PodRanges()), network.Text(own.ServiceRanges()), own.Domain)
}

func (c clusterStates) restoreFrom(ctx context.Context, live *nodes.Cluster, from store.Snapshot) error {
	return live.Restore(ctx, nodes.Restoration{
		Run: c.runtime.TaskID() + "-" + from.ID, Snapshot: from.ID, Keys: []byte(from.Secrets),
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			return c.clusters.server.Snapshots.Open(ctx, from.ID)
		},
	})
}

// recoverQuorum is the action that recovers a cluster whose etcd has lost its majority, from the best remaining member.
func (c clusterRestores) recoverQuorum(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.clusters.Close()
	return nil, c.comeBack(ctx, call, func(ctx context.Context, live *nodes.Cluster) error {
		begun, err := live.Restoring(ctx)
		if err != nil {
			return err
		}
		if begun == "" {
			left, err := live.BestLeft(ctx)
			if errors.Is(err, nodes.ErrMajority) {
				c.reports.Inform(ctx, call.Object, "A majority of the etcd members answers: there is nothing to recover, and nothing is lost")
				return live.Deploy(ctx)
			}
			if err != nil {
				return err
			}
			facts, err := c.clusters.facts(ctx, call.Object)
			if err != nil {
				return err
			}
			of := clusterStatesOf(c.clusters).subject(ctx, call.Object, facts, store.Requested, "of the best etcd member that was left, on "+left.Node.Name)
			taken, err := known.SnapshotOf(ctx, c.clusters.server.Snapshots, live, of, left.Write)
			if err != nil {
				return err
			}
			begun = taken.ID
		}
		from, err := clusterStatesOf(c.clusters).find(ctx, call.Object, begun)
		if err != nil {
			return err
		}
		c.reports.Inform(ctx, call.Object, "Its majority is lost: the cluster goes on with what the best etcd member that is left has (snapshot %s). "+
			"What was written in the last moments before, and had not reached this member, is lost", from.ID)
		return clusterStatesOf(c.clusters).restoreFrom(ctx, live, from)
	})
}

// comeBack makes the servers that are gone, and has the cluster begin again.
func (c clusterRestores) comeBack(ctx context.Context, call muranopl.Call, begin func(ctx context.Context, live *nodes.Cluster) error) error {
	if err := c.check(ctx, call.Object); err != nil {
		return err
	}
	if err := c.deployNodes(ctx, call.Interpreter, call.Object, false, begin); err != nil {
		return err
	}
	c.reports.Inform(ctx, call.Object, "Kubernetes cluster %s is up and running", call.Object.Text("name"))
	return nil
}
