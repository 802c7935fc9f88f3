package volumes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// The names of a VolumeSnapshot.
const (
	snapshotName      = "csi.storage.k8s.io/volumesnapshot/name"
	snapshotNamespace = "csi.storage.k8s.io/volumesnapshot/namespace"
)

// CreateSnapshot makes Cinder take a snapshot of a volume, also of an attached one, or finds the one of an earlier call: its name identifies the
// VolumeSnapshot. It does not wait until the snapshot is complete; a later call returns that.
func (d *driver) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	if r.Name == "" || r.SourceVolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "say what the snapshot is called, and of which volume it is")
	}
	cloud, done, err := d.begin(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	defer done()
	volume, err := d.own(ctx, cloud, r.SourceVolumeId)
	if err != nil {
		return nil, err
	}
	there, err := cloud.TaggedSnapshots(ctx, r.Name, d.tag())
	if err != nil {
		return nil, told(err)
	}
	there = slices.DeleteFunc(there, func(one openstack.Snapshot) bool { return strings.HasSuffix(one.Status, openstack.VolumeDeleting) })
	var snapshot openstack.Snapshot
	if len(there) > 0 {
		snapshot = there[0]
	} else {
		description := "Made by Burano for cluster " + d.Name
		if name := r.Parameters[snapshotName]; name != "" {
			description = fmt.Sprintf("VolumeSnapshot %s/%s of cluster %s, made by Burano", r.Parameters[snapshotNamespace], name, d.Name)
		}
		snapshot, err = cloud.CreateSnapshot(ctx, openstack.NewSnapshot{Name: r.Name, Description: description, Volume: volume.ID, Metadata: d.metadata(r.Parameters)})
		if err != nil {
			return nil, told(err)
		}
		d.Logger.InfoContext(ctx, "a snapshot of a volume is made", "cluster", d.Name, "snapshot", snapshot.ID, "volume", volume.ID, "name", r.Name)
	}
	if snapshot.Volume != volume.ID {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s is called %s already, and is of volume %s and not of %s", snapshot.ID, r.Name, snapshot.Volume, volume.ID)
	}
	if snapshot.Status == openstack.VolumeError { // nothing was ever made of it
		if failed := cloud.DeleteSnapshot(ctx, snapshot.ID); failed != nil {
			return nil, told(failed)
		}
		return nil, status.Errorf(codes.Internal, "Cinder could not make snapshot %s (its status is error): it is deleted, and another one is tried", snapshot.ID)
	}
	return &csi.CreateSnapshotResponse{Snapshot: snapshotOf(snapshot)}, nil
}

func snapshotOf(snapshot openstack.Snapshot) *csi.Snapshot {
	return &csi.Snapshot{SnapshotId: snapshot.ID, SourceVolumeId: snapshot.Volume, SizeBytes: int64(snapshot.GiB) * gib, CreationTime: timestamppb.New(snapshot.Made),
		ReadyToUse: snapshot.Status == openstack.VolumeAvailable}
}

// ownSnapshot is a snapshot of this cluster. Others are none of its business.
func (d *driver) ownSnapshot(ctx context.Context, cloud Cloud, id string) (openstack.Snapshot, error) {
	snapshot, err := cloud.Snapshot(ctx, id)
	if err != nil {
		return snapshot, told(err)
	}
	if snapshot.Metadata[ClusterMetadata] != d.ID {
		return snapshot, d.foreign("snapshot", id)
	}
	return snapshot, nil
}

// DeleteSnapshot deletes a snapshot of the cluster, and snapshots of an interrupted call under the same name.
func (d *driver) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if r.SnapshotId == "" {
		return nil, status.Error(codes.InvalidArgument, "say which snapshot")
	}
	cloud, done, err := d.begin(ctx, r.SnapshotId)
	if err != nil {
		return nil, err
	}
	defer done()
	snapshot, err := d.ownSnapshot(ctx, cloud, r.SnapshotId)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	twins, err := cloud.TaggedSnapshots(ctx, snapshot.Name, d.tag())
	if err != nil {
		return nil, told(err)
	}
	others := slices.DeleteFunc(twins, func(other openstack.Snapshot) bool { return other.ID == snapshot.ID })
	for _, one := range append(others, snapshot) { // the known one goes last
		if one.Status == openstack.VolumeDeleting {
			continue
		}
		if err := cloud.DeleteSnapshot(ctx, one.ID); err != nil {
			return nil, told(err)
		}
		d.Logger.InfoContext(ctx, "a snapshot of a volume is deleted", "cluster", d.Name, "snapshot", one.ID, "volume", one.Volume, "name", one.Name)
	}
	if err := SnapshotGone(ctx, cloud, snapshot.ID); err != nil {
		return nil, told(err)
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

// SnapshotGone waits until Cinder has deleted a snapshot. One that it could not delete is a fault, and so is one that it keeps: some back-ends do while volumes need it that were
// made of it.
func SnapshotGone(ctx context.Context, cloud interface {
	Snapshot(ctx context.Context, id string) (openstack.Snapshot, error)
}, id string) error {
	err := looks.Until(ctx, func(ctx context.Context) error {
		now, err := cloud.Snapshot(ctx, id)
		if err != nil {
			return err
		}
		if now.Status == openstack.VolumeAvailable {
			return fault.New(fault.Conflict, "Cinder does not delete snapshot %s: its back-end keeps it while there are volumes that were made of it", id)
		}
		return stillThere("snapshot", id, now.Status)
	})
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// ListSnapshots lists the snapshots of the cluster: one, one volume's, or all. The answer is never in parts.
func (d *driver) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	if r.StartingToken != "" {
		return nil, status.Error(codes.Aborted, "the list is not in parts: leave starting_token out")
	}
	cloud, err := d.cloud(ctx)
	if err != nil {
		return nil, err
	}
	list, err := cloud.TaggedSnapshots(ctx, "", d.tag())
	if err != nil {
		return nil, told(err)
	}
	answer := &csi.ListSnapshotsResponse{}
	for _, one := range list {
		if (r.SnapshotId == "" || one.ID == r.SnapshotId) && (r.SourceVolumeId == "" || one.Volume == r.SourceVolumeId) {
			answer.Entries = append(answer.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: snapshotOf(one)})
		}
	}
	return answer, nil
}

// source finds the source of a new volume's data, and makes the volume large enough for it. zones are its class's.
func (d *driver) source(ctx context.Context, cloud Cloud, from *csi.VolumeContentSource, wanted *openstack.NewVolume, zones string, limit int64) error {
	what, size := "", 0
	switch {
	case from == nil:
		return nil
	case from.GetSnapshot() != nil:
		snapshot, err := d.ownSnapshot(ctx, cloud, from.GetSnapshot().SnapshotId)
		if err != nil {
			return err
		}
		if snapshot.Status != openstack.VolumeAvailable {
			return status.Errorf(codes.Unavailable, "snapshot %s is %s, and a volume is made of it when it is available", snapshot.ID, snapshot.Status)
		}
		wanted.Snapshot, what, size = snapshot.ID, "snapshot "+snapshot.ID, snapshot.GiB
	case from.GetVolume() != nil:
		volume, err := d.own(ctx, cloud, from.GetVolume().VolumeId)
		if err != nil {
			return err
		}
		wanted.Source, what, size = volume.ID, "volume "+volume.ID, volume.GiB
	default:
		return status.Error(codes.InvalidArgument, "a volume begins empty, as a snapshot or as another volume")
	}
	if limit > 0 && int64(size)*gib > limit {
		return status.Errorf(codes.OutOfRange, "%s has %d GiB, and the volume may have %d bytes at most", what, size, limit)
	}
	wanted.GiB = max(wanted.GiB, size)
	if zones != "" { // a copy is where its source is, and pods follow it: the scheduler has not known of that
		wanted.Zone = ""
	}
	return nil
}
