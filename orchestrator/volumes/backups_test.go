package volumes

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// backingCloud is a fakeCloud that makes backups, unless it has none.
type backingCloud struct {
	*fakeCloud
	backups map[string]openstack.Backup
	none    bool
}

func newBackingCloud() *backingCloud {
	return &backingCloud{fakeCloud: newFakeCloud(), backups: map[string]openstack.Backup{}}
}

func (b *backingCloud) Backups(_ context.Context, metadata map[string]string) (list []openstack.Backup, err error) {
	for _, id := range slices.Sorted(maps.Keys(b.backups)) {
		if one := b.backups[id]; metadata[ClusterMetadata] == "" || one.Metadata[ClusterMetadata] == metadata[ClusterMetadata] {
			list = append(list, one)
		}
	}
	return list, nil
}

func (b *backingCloud) TaggedSnapshots(_ context.Context, _ string, metadata map[string]string) (list []openstack.Snapshot, err error) {
	for _, id := range slices.Sorted(maps.Keys(b.fakeSnapshots)) {
		if one := b.fakeSnapshots[id]; metadata[ClusterMetadata] == "" || one.Metadata[ClusterMetadata] == metadata[ClusterMetadata] {
			list = append(list, one)
		}
	}
	return list, nil
}

func (b *backingCloud) Backup(_ context.Context, id string) (openstack.Backup, error) {
	one, there := b.backups[id]
	if !there {
		return one, fault.New(fault.NotFound, "there is no backup %s", id)
	}
	switch one.Status {
	case "creating":
		done := one
		done.Status = openstack.VolumeAvailable
		b.backups[id] = done
	case openstack.VolumeDeleting:
		delete(b.backups, id)
	}
	return one, nil
}

func (b *backingCloud) CreateBackup(_ context.Context, wanted openstack.NewSnapshot) (openstack.Backup, error) {
	if b.none {
		return openstack.Backup{}, openstack.ErrNoBackups
	}
	one := openstack.Backup{ID: fmt.Sprintf("backup-%d", len(b.backups)+1), Name: wanted.Name, Status: "creating", Volume: wanted.Volume, GiB: b.volumes[wanted.Volume].GiB, Metadata: wanted.Metadata,
		Made: time.Unix(int64(1000+len(b.backups)), 0)}
	b.backups[one.ID] = one
	return one, b.after("backup")
}

func (b *backingCloud) DeleteBackup(_ context.Context, id string) error {
	one := b.backups[id]
	one.Status = openstack.VolumeDeleting
	b.backups[id] = one
	return nil
}

var backedUp = Claim{Namespace: "shop", Name: "data", Class: "cinder", Reclaim: "Retain", Modes: []string{"ReadWriteOnce"}, Mode: "Filesystem", FileSystem: "ext4", Zone: "west", MountOptions: []string{"noatime", "nodev"}, Volume: "volume-1"}

func withVolume(b *backingCloud) {
	b.volumes["volume-1"] = openstack.Volume{ID: "volume-1", Name: "pvc-1", Status: openstack.VolumeInUse, GiB: 3, Metadata: map[string]string{ClusterMetadata: "cluster-1"}}
	b.made = 1
}

func TestAClaimIsBackedUpOnceByAnOrderAndRestoredIntoAnotherCluster(t *testing.T) {
	for _, none := range []bool{false, true} {
		t.Run(fmt.Sprintf("snapshots %t", none), func(t *testing.T) {
			cloud := newBackingCloud()
			cloud.none = none
			withVolume(cloud)
			ctx, order := t.Context(), Order{Cluster: "cluster-1", ClusterName: "web", Why: Requested, Reason: "before the upgrade", Run: "task"}
			first, err := BackUp(ctx, cloud, order, backedUp, nil)
			require.NoError(t, err)
			list, err := Backups(ctx, cloud, "cluster-1")
			require.NoError(t, err)
			require.Len(t, list, 1)
			require.Equal(t, backedUp, list[0].Claim)
			require.Equal(t, map[bool]string{false: KindBackup, true: KindSnapshot}[none], list[0].Kind)
			again, err := BackUp(ctx, cloud, order, backedUp, list)
			require.NoError(t, err)
			require.Equal(t, first.ID, again.ID, "the order has it already")
			if none { // the fake's snapshots stay in creation
				one := cloud.fakeSnapshots[first.ID]
				one.Status = openstack.VolumeAvailable
				cloud.fakeSnapshots[first.ID] = one
			}
			require.NoError(t, Complete(ctx, cloud, first))

			others, err := Backups(ctx, cloud, "cluster-2")
			require.NoError(t, err)
			require.Empty(t, others)
			volume, err := Restore(ctx, cloud, list[0], "cluster-2", "restored-1", backedUp)
			require.NoError(t, err)
			require.Equal(t, 3, volume.GiB)
			require.Equal(t, map[string]string{ClusterMetadata: "cluster-2", RetainMetadata: "true"}, volume.Metadata)
			same, err := Restore(ctx, cloud, list[0], "cluster-2", "restored-1", backedUp)
			require.NoError(t, err)
			require.Equal(t, volume.ID, same.ID)
			require.NoError(t, DeleteBackup(ctx, cloud, list[0]))
			require.NoError(t, BackupGone(ctx, cloud, list[0]))
		})
	}
}

func TestABackupServiceThatIsAwayIsNotReplacedBySnapshots(t *testing.T) {
	cloud := newBackingCloud()
	cloud.none = true
	withVolume(cloud)
	_, err := BackUp(t.Context(), cloud, Order{Run: "task"}, backedUp, []Backup{{ID: "former", Kind: KindBackup}})
	require.ErrorIs(t, err, openstack.ErrNoBackups)
	require.Empty(t, cloud.fakeSnapshots)
}

func TestABackupThatCinderCouldNotMakeSaysWhy(t *testing.T) {
	cloud := newBackingCloud()
	cloud.backups["b"] = openstack.Backup{ID: "b", Status: "error", Failure: "the object store is full"}
	err := Complete(t.Context(), cloud, Backup{ID: "b", Kind: KindBackup, Claim: backedUp})
	require.ErrorContains(t, err, "could not make the backup b of claim shop/data: the object store is full")
}

func TestBackupsAreDueAndGoBySchedule(t *testing.T) {
	now := time.Unix(100000, 0)
	of := func(id, name, why, status string, hours int) Backup {
		return Backup{ID: id, Why: why, Status: status, Claim: Claim{Namespace: "default", Name: name}, Made: now.Add(-time.Duration(hours) * time.Hour)}
	}
	list := []Backup{of("making", "a", Scheduled, "creating", 1), of("a1", "a", Scheduled, "available", 25), of("b1", "b", Scheduled, "error", 1), of("b2", "b", Requested, "available", 2),
		of("a2", "a", Scheduled, "available", 49), of("a3", "a", Scheduled, "available", 73), of("gone", "gone", Scheduled, "available", 900)}
	claims := []Claim{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "b"}, {Namespace: "default", Name: "new"}}
	require.Equal(t, claims[1:], Due(claims, list, 24*time.Hour, now), "one is being made, one failed, and one was never made")
	var ids []string
	for _, one := range Surplus(list, 2) {
		ids = append(ids, one.ID)
	}
	require.Equal(t, []string{"b1", "a3"}, ids, "what was asked for stays, and so does the last of a claim that is gone")
	require.Len(t, claims, 3)
}
