// Package attachments reconciles the volumes that Cinder and Nova have attached to the servers of a cluster's nodes with Kubernetes' records of them. They
// differ after a restore of an older snapshot, and when servers are deleted in the cloud: then a volume stays attached with no controller to detach it, and
// its pods wait.
package attachments

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// Cloud is the project of a cluster. Its faults name the obstacle.
type Cloud interface {
	Tagged(ctx context.Context, name string, metadata map[string]string) ([]openstack.Volume, error)
	Detach(ctx context.Context, id, server string) error
	// DropAttachment deletes an attachment of Cinder whose server is gone from Nova.
	DropAttachment(ctx context.Context, id string) error
}

// Kubernetes is the cluster's.
type Kubernetes interface {
	Records(ctx context.Context) (kube.Attachments, error)
	Again(ctx context.Context, record kube.Attachment) error
	Forget(ctx context.Context, record kube.Attachment) error
	End(ctx context.Context, volume kube.Volume, node string) error
}

// Cluster is a cluster with volumes of Cinder.
type Cluster struct {
	ID, Name   string            // ID is its volumes.ClusterID
	Servers    map[string]string // ids in Nova, by the names of all nodes; "" for a machine beside the cloud
	Cloud      Cloud
	Kubernetes Kubernetes
	// Server asks Nova for a server.
	Server func(ctx context.Context, id string) (openstack.ServerState, error)
	// Mounts asks a node whether anything on it uses a volume.
	Mounts func(ctx context.Context, node, volume string) (bool, error)
}

// Difference is a volume whose state differs between the cloud and Kubernetes.
type Difference struct {
	Volume string // its id in Cinder; "" where Kubernetes alone knows of it
	Text   string // a sentence without its full stop
	// Mends is the remedy: Burano's, or a person's task.
	Mends string
	// Ours is set if the remedy needs no person.
	Ours bool
}

const (
	itself = "Burano mends it"
	// settleLook is the pause between two looks of Settle.
	settleLook = 2 * time.Second
)

// Reconcile finds the differences, and mends all that can be mended now. It never detaches a volume that a node may use.
func (c Cluster) Reconcile(ctx context.Context) (found []Difference, err error) {
	// A change in progress changes one of both reads of the records.
	before, err := c.Kubernetes.Records(ctx)
	if err != nil {
		return nil, err
	}
	all, err := c.Cloud.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: c.ID})
	if err != nil {
		return nil, err
	}
	after, err := c.Kubernetes.Records(ctx)
	if err != nil {
		return nil, err
	}
	attached := map[string]openstack.Volume{}
	for _, volume := range all {
		attached[volume.ID] = volume
		if volume.Status != openstack.VolumeInUse {
			continue
		}
		for _, server := range volume.Servers {
			difference, err := c.unrecorded(ctx, volume, server, before, after)
			if err != nil {
				return found, err
			}
			if difference != nil {
				found = append(found, *difference)
			}
		}
	}
	for _, record := range after.List {
		difference, err := c.unattached(ctx, record, attached, before, after)
		if err != nil {
			return found, err
		}
		if difference != nil {
			found = append(found, *difference)
		}
	}
	return found, nil
}

// node is the node of a server; false where the cluster has none.
func (c Cluster) node(server string) (string, bool) {
	for node, of := range c.Servers {
		if of == server {
			return node, true
		}
	}
	return "", false
}

// unrecorded ends an attachment that the cloud has and Kubernetes does not record.
func (c Cluster) unrecorded(ctx context.Context, volume openstack.Volume, server string, before, after kube.Attachments) (*Difference, error) {
	node, own := c.node(server)
	if !own {
		return c.elsewhere(ctx, volume, server, after)
	}
	recorded := func(records kube.Attachments) bool {
		return slices.ContainsFunc(records.List, func(one kube.Attachment) bool { return one.Handle == volume.ID && one.Node == node })
	}
	if recorded(before) || recorded(after) {
		return nil, nil
	}
	difference := &Difference{Volume: volume.ID, Ours: true, Mends: itself + " as soon as nothing on the node uses the volume, which is when its kubelet has ended the pods that Kubernetes does not know",
		Text: fmt.Sprintf("%s of cluster %s is attached to node %s in the cloud, and Kubernetes has no record of it, so that no other node gets it", name(volume, after), c.Name, node)}
	if after.InUse[node][volume.ID] {
		return difference, nil
	}
	state, err := c.Server(ctx, server)
	if err != nil {
		return nil, err
	}
	if !state.Off() {
		mounted, err := c.Mounts(ctx, node, volume.ID)
		if err != nil {
			difference.Mends = fmt.Sprintf("%s when the node answers; until then it may use the volume (%v)", itself, err)
			return difference, nil
		}
		if mounted {
			return difference, nil
		}
	}
	difference.Mends = itself + ": it is detached"
	if known, there := after.Volumes[volume.ID]; there {
		return difference, c.Kubernetes.End(ctx, known, node)
	}
	return difference, c.Cloud.Detach(ctx, volume.ID, server)
}

// elsewhere ends an attachment to a server outside of the cluster, if that server is gone.
func (c Cluster) elsewhere(ctx context.Context, volume openstack.Volume, server string, after kube.Attachments) (*Difference, error) {
	state, err := c.Server(ctx, server)
	if err != nil {
		return nil, err
	}
	if state.Status != openstack.Gone {
		return &Difference{Volume: volume.ID,
			Text:  fmt.Sprintf("%s of cluster %s is attached to server %s, which is %s and no node of the cluster: no node gets it", name(volume, after), c.Name, server, state),
			Mends: fmt.Sprintf("Detach it when nothing on that server uses it: openstack server remove volume %s %s", server, volume.ID)}, nil
	}
	difference := &Difference{Volume: volume.ID, Ours: true, Mends: itself + ": it is detached",
		Text: fmt.Sprintf("%s of cluster %s is attached to server %s, which is gone", name(volume, after), c.Name, server)}
	if err := c.Cloud.Detach(ctx, volume.ID, server); err != nil {
		return nil, err
	}
	if id := volume.Attachments[server]; id != "" {
		return difference, c.Cloud.DropAttachment(ctx, id)
	}
	return difference, nil
}

// unattached mends a record of an attachment that the cloud does not have.
func (c Cluster) unattached(ctx context.Context, record kube.Attachment, attached map[string]openstack.Volume, before, after kube.Attachments) (*Difference, error) {
	if record.Ending {
		return nil, nil
	}
	server, known := c.Servers[record.Node]
	if _, registered := after.InUse[record.Node]; !known && !registered {
		return &Difference{Volume: record.Handle, Ours: true, Mends: itself + ": the record is deleted",
			Text: fmt.Sprintf("Kubernetes records that volume %s is attached to node %s, which cluster %s does not have", record.Volume, record.Node, c.Name)}, c.Kubernetes.Forget(ctx, record)
	}
	volume, there := attached[record.Handle]
	same := slices.ContainsFunc(before.List, func(one kube.Attachment) bool { return one.Name == record.Name && one.Version == record.Version })
	if server == "" || !there || !record.Done || !same || slices.Contains(volume.Servers, server) {
		return nil, nil
	}
	return &Difference{Volume: volume.ID, Ours: true, Mends: itself + ": it is attached again",
		Text: fmt.Sprintf("Kubernetes records that %s is attached to node %s of cluster %s, and the cloud has not attached it", name(volume, after), record.Node, c.Name)}, c.Kubernetes.Again(ctx, record)
}

// name is a volume's name for people.
func name(volume openstack.Volume, records kube.Attachments) string {
	if known, there := records.Volumes[volume.ID]; there && known.Claim != "" {
		return fmt.Sprintf("volume %s of claim %s", volume.ID, known.Claim)
	}
	return fmt.Sprintf("volume %s (%s)", volume.ID, volume.Name)
}

// Settle reconciles until every difference left needs a person, for patience at most. It reports each difference once, and returns the remaining ones.
func (c Cluster) Settle(ctx context.Context, patience time.Duration, report func(Difference)) (left []Difference, err error) {
	reported := map[string]bool{}
	err = wait.Every(settleLook).For(patience).Until(ctx, func(ctx context.Context) error {
		found, err := c.Reconcile(ctx)
		if err != nil {
			return wait.Again(err)
		}
		left = found
		for _, one := range found {
			if !reported[one.Text] {
				reported[one.Text] = true
				report(one)
			}
		}
		if slices.ContainsFunc(found, func(one Difference) bool { return one.Ours }) {
			return wait.Again(fmt.Errorf("attachments that differ: %d", len(found)))
		}
		return nil
	})
	return left, err
}
