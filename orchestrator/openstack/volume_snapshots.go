package openstack

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/snapshots"
)

// Snapshot is a snapshot of a volume, as Cinder has it. Its statuses are called as a volume's.
type Snapshot struct {
	ID, Name, Status string
	Volume           string // its id
	GiB              int    // of the volume, when the snapshot was made
	Metadata         map[string]string
	Made             time.Time
}

// NewSnapshot is the request for a snapshot.
type NewSnapshot struct {
	Name, Description string
	Volume            string // its id
	Metadata          map[string]string
}

func snapshotOf(one snapshots.Snapshot) Snapshot {
	return Snapshot{ID: one.ID, Name: one.Name, Status: one.Status, Volume: one.VolumeID, GiB: one.Size, Metadata: maps.Clone(one.Metadata), Made: one.CreatedAt}
}

// TaggedSnapshots are the project's snapshots with all of this metadata, and of this name unless it is "", the oldest first.
func (b *BlockStorage) TaggedSnapshots(ctx context.Context, name string, metadata map[string]string) ([]Snapshot, error) {
	// Metadata are no filter here: only administrators may have it in older releases of Cinder.
	found, err := listAll(ctx, snapshots.List(b.cinder, snapshots.ListOpts{Name: name}), snapshots.ExtractSnapshots)
	if err != nil {
		return nil, refusal(ctx, "Cinder", "list snapshots of volumes", err)
	}
	return tagged(found, snapshotOf, name, metadata, func(one Snapshot) label { return label{one.ID, one.Name, one.Made, one.Metadata} }), nil
}

// Snapshot is the one with this id; NotFound when there is none.
func (b *BlockStorage) Snapshot(ctx context.Context, id string) (Snapshot, error) {
	if err := identified("snapshot", id); err != nil {
		return Snapshot{}, err
	}
	found, err := snapshots.Get(ctx, b.cinder, id).Extract()
	if err != nil {
		return Snapshot{}, refusal(ctx, "Cinder", "look at snapshot "+id, err)
	}
	return snapshotOf(*found), nil
}

// CreateSnapshot asks for a snapshot of a volume, also of one that servers have; it is complete when it is available. After an error that is no fault there may be one all the same.
func (b *BlockStorage) CreateSnapshot(ctx context.Context, wanted NewSnapshot) (Snapshot, error) {
	made, err := snapshots.Create(ctx, b.cinder, snapshots.CreateOpts{VolumeID: wanted.Volume, Force: true, Name: wanted.Name, Description: wanted.Description, Metadata: wanted.Metadata}).Extract()
	if err != nil {
		return Snapshot{}, refusal(ctx, "Cinder", "make a snapshot of volume "+wanted.Volume, err)
	}
	return snapshotOf(*made), nil
}

// NoteSnapshot adds to the metadata of a snapshot.
func (b *BlockStorage) NoteSnapshot(ctx context.Context, id string, metadata map[string]string) error {
	return b.note(ctx, "snapshot", id, metadata)
}

// DeleteSnapshot asks for a snapshot to be deleted. That there is none is fine.
func (b *BlockStorage) DeleteSnapshot(ctx context.Context, id string) error {
	if err := identified("snapshot", id); err != nil {
		return err
	}
	err := snapshots.Delete(ctx, b.cinder, id).ExtractErr()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return nil
	}
	return refusal(ctx, "Cinder", "delete snapshot "+id, err)
}
