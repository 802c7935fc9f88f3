// Package restores saves the states of clusters and environments, and restores them.
package restores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/network"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/store"
)

const (
	argumentSnapshot = "snapshot"
)

// Restores save a cluster's state and restore it.
type Restores struct{ *clusters.Clusters }

// New returns the restores of clusters.
func New(c *clusters.Clusters) Restores { return Restores{c} }

// Actions are the actions of clusters that save and restore their states.
func (c Restores) Actions() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"snapshot": c.snapshot, "restore": c.restore, "recoverQuorum": c.recoverQuorum}
}

// snapshot is the action that takes a snapshot and returns which it is.
func (c Restores) snapshot(ctx context.Context, call muranopl.Call) (any, error) {
	cluster, facts, err := c.Former(ctx, call.Object)
	if err != nil {
		return nil, err
	}
	if cluster == nil {
		return nil, fault.New(fault.Invalid, "Cluster %s was never up: deploy it first", call.Object.Text("name"))
	}
	defer cluster.Close()
	reason, _ := call.Args[known.ArgumentReason].(string)
	taken, err := known.SnapshotOf(ctx, c.Settings.Snapshots, cluster, clusters.StatesOf(c.Clusters).Subject(ctx, call.Object, facts, store.Requested, reason), cluster.Snapshot)
	if err != nil {
		return nil, err
	}
	c.Reports.Inform(ctx, call.Object, "Snapshot %s of the cluster was taken, %d bytes, and opens", taken.ID, taken.Size)
	return taken.ID, nil
}

// restore is the action that restores a cluster to the state of a snapshot, with new servers for lost ones.
func (c Restores) restore(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	named, _ := call.Args[argumentSnapshot].(string)
	from, err := c.find(ctx, call.Object, named)
	if err != nil {
		return nil, err
	}
	if err := c.fits(ctx, call.Object, from); err != nil {
		return nil, err
	}
	c.Reports.Inform(ctx, call.Object, "%s", Loss(from))
	if err := c.takeOver(ctx, call.Object, from); err != nil {
		return nil, err
	}
	if err := c.comeBack(ctx, call, func(ctx context.Context, live *nodes.Cluster) error {
		return c.restoreFrom(ctx, live, from)
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
func (c Restores) find(ctx context.Context, object *muranopl.Object, id string) (store.Snapshot, error) {
	archive := c.Settings.Snapshots
	if archive == nil {
		return store.Snapshot{}, errors.New("this Burano keeps no snapshots")
	}
	if id == "" {
		list, err := archive.Snapshots(ctx, store.SnapshotFilter{EnvironmentID: c.Runtime.EnvironmentID(), ClusterID: object.ID()})
		if err != nil {
			return store.Snapshot{}, err
		}
		if len(list) == 0 {
			return store.Snapshot{}, fault.New(fault.Invalid, "There is no snapshot of cluster %s", object.Text("name"))
		}
		id = list[0].ID
	}
	environment, err := archive.Environment(ctx, c.Runtime.EnvironmentID())
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
func (c Restores) fits(ctx context.Context, object *muranopl.Object, from store.Snapshot) error {
	kept, err := nodes.AddressingOf([]byte(from.Secrets))
	if err != nil {
		return err
	}
	own, err := c.PodNetwork(ctx, object)
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

func (c Restores) restoreFrom(ctx context.Context, live *nodes.Cluster, from store.Snapshot) error {
	return live.Restore(ctx, nodes.Restoration{
		Run: c.Runtime.TaskID() + "-" + from.ID, Snapshot: from.ID, Keys: []byte(from.Secrets),
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			return c.Settings.Snapshots.Open(ctx, from.ID)
		},
	})
}

// recoverQuorum is the action that recovers a cluster whose etcd has lost its majority, from the best remaining member.
func (c Restores) recoverQuorum(ctx context.Context, call muranopl.Call) (any, error) {
	defer c.Close()
	return nil, c.comeBack(ctx, call, func(ctx context.Context, live *nodes.Cluster) error {
		begun, err := live.Restoring(ctx)
		if err != nil {
			return err
		}
		if begun == "" {
			left, err := live.BestLeft(ctx)
			if errors.Is(err, nodes.ErrMajority) {
				c.Reports.Inform(ctx, call.Object, "A majority of the etcd members answers: there is nothing to recover, and nothing is lost")
				return live.Deploy(ctx)
			}
			if err != nil {
				return err
			}
			facts, err := c.Facts(ctx, call.Object)
			if err != nil {
				return err
			}
			of := clusters.StatesOf(c.Clusters).Subject(ctx, call.Object, facts, store.Requested, "of the best etcd member that was left, on "+left.Node.Name)
			taken, err := known.SnapshotOf(ctx, c.Settings.Snapshots, live, of, left.Write)
			if err != nil {
				return err
			}
			begun = taken.ID
		}
		from, err := c.find(ctx, call.Object, begun)
		if err != nil {
			return err
		}
		c.Reports.Inform(ctx, call.Object, "Its majority is lost: the cluster goes on with what the best etcd member that is left has (snapshot %s). "+
			"What was written in the last moments before, and had not reached this member, is lost", from.ID)
		return c.restoreFrom(ctx, live, from)
	})
}

// comeBack makes the servers that are gone, and has the cluster begin again.
func (c Restores) comeBack(ctx context.Context, call muranopl.Call, begin func(ctx context.Context, live *nodes.Cluster) error) error {
	if err := clusters.ModelChecksOf(c.Clusters).Check(ctx, call.Object); err != nil {
		return err
	}
	if err := clusters.DeploymentsOf(c.Clusters).DeployNodes(ctx, call.Interpreter, call.Object, false, begin); err != nil {
		return err
	}
	clusters.DeploymentsOf(c.Clusters).AwaitCluster(call.Object)
	c.Reports.Inform(ctx, call.Object, "Kubernetes cluster %s is up and running", call.Object.Text("name"))
	return nil
}
