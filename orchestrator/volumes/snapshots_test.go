package volumes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// fakeSnapshots are the snapshots of a fakeCloud, by their ids.
type fakeSnapshots map[string]openstack.Snapshot

func (f *fakeCloud) TaggedSnapshots(_ context.Context, name string, metadata map[string]string) (list []openstack.Snapshot, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, id := range slices.Sorted(maps.Keys(f.fakeSnapshots)) {
		if one := f.fakeSnapshots[id]; (name == "" || one.Name == name) && one.Metadata[ClusterMetadata] == metadata[ClusterMetadata] {
			list = append(list, one)
		}
	}
	return list, nil
}

func (f *fakeCloud) Snapshot(_ context.Context, id string) (openstack.Snapshot, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	one, there := f.fakeSnapshots[id]
	if !there {
		return one, fault.New(fault.NotFound, "there is no snapshot %s", id)
	}
	if one.Status == openstack.VolumeDeleting {
		delete(f.fakeSnapshots, id)
	}
	return one, nil
}

func (f *fakeCloud) CreateSnapshot(_ context.Context, wanted openstack.NewSnapshot) (openstack.Snapshot, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.fails("create"); err != nil {
		return openstack.Snapshot{}, err
	}
	one := openstack.Snapshot{ID: fmt.Sprintf("snapshot-%d", len(f.fakeSnapshots)+1), Name: wanted.Name, Status: "creating", Volume: wanted.Volume, GiB: f.volumes[wanted.Volume].GiB, Metadata: wanted.Metadata,
		Made: time.Unix(1000, 0)}
	f.fakeSnapshots[one.ID] = one
	return one, f.after("create")
}

func (f *fakeCloud) DeleteSnapshot(_ context.Context, id string) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	one := f.fakeSnapshots[id]
	one.Status = openstack.VolumeDeleting
	f.fakeSnapshots[id] = one
	return nil
}

func (f *fakeCloud) setSnapshot(id, status string) {
	one := f.fakeSnapshots[id]
	one.Status = status
	f.fakeSnapshots[id] = one
}

func TestASnapshotIsMadeUsedAndDeleted(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	ctx := t.Context()
	made, err := driver.CreateVolume(ctx, wanted("pvc-1", 2*gib))
	require.NoError(t, err)
	volume := made.Volume.VolumeId
	take := &csi.CreateSnapshotRequest{Name: "snapshot-a", SourceVolumeId: volume, Parameters: map[string]string{snapshotName: "daily", snapshotNamespace: "default"}}
	taken, err := driver.CreateSnapshot(ctx, take)
	require.NoError(t, err)
	require.False(t, taken.Snapshot.ReadyToUse, "nobody waits for it")
	id := taken.Snapshot.SnapshotId
	restore := wanted("pvc-2", gib)
	restore.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
	_, err = driver.CreateVolume(ctx, restore)
	require.ErrorContains(t, err, "snapshot snapshot-1 is creating, and a volume is made of it when it is available")
	cloud.setSnapshot(id, openstack.VolumeAvailable)
	taken, err = driver.CreateSnapshot(ctx, take)
	require.NoError(t, err)
	require.True(t, taken.Snapshot.ReadyToUse)
	require.Equal(t, []any{id, int64(2 * gib), volume}, []any{taken.Snapshot.SnapshotId, taken.Snapshot.SizeBytes, taken.Snapshot.SourceVolumeId})
	require.Len(t, cloud.fakeSnapshots, 1)

	restored, err := driver.CreateVolume(ctx, restore)
	require.NoError(t, err)
	require.EqualValues(t, 2*gib, restored.Volume.CapacityBytes, "it is as large as what is on it")
	require.Equal(t, id, restored.Volume.ContentSource.GetSnapshot().GetSnapshotId())
	require.Equal(t, id, cloud.copied[restored.Volume.VolumeId])
	restore.Name, restore.CapacityRange.LimitBytes = "pvc-3", gib
	_, err = driver.CreateVolume(ctx, restore)
	require.Equal(t, codes.OutOfRange, status.Code(err))

	listed, err := driver.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: id})
	require.NoError(t, err)
	require.Len(t, listed.Entries, 1)
	_, err = driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "volume volume-1 has snapshots still, and is deleted when these are: snapshot-1 (snapshot-a)")
	_, err = driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	require.NoError(t, err)
	require.Empty(t, cloud.fakeSnapshots)
	_, err = driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	require.NoError(t, err, "again is fine")
	_, err = driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
	require.NoError(t, err)
}

func TestAVolumeIsMadeOfAnother(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	made, err := driver.CreateVolume(t.Context(), wanted("pvc-1", gib))
	require.NoError(t, err)
	again := wanted("pvc-2", 2*gib)
	again.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: made.Volume.VolumeId}}}
	copied, err := driver.CreateVolume(t.Context(), again)
	require.NoError(t, err)
	require.EqualValues(t, 2*gib, copied.Volume.CapacityBytes)
	require.Equal(t, made.Volume.VolumeId, cloud.copied[copied.Volume.VolumeId])
}

// Cinder makes a copy where its source is, whatever node is to use it: pods follow it there.
func TestACopyIsInTheZoneOfItsSource(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	first := wanted("pvc-1", gib)
	first.Parameters = map[string]string{ParameterZone: "az1", ParameterZones: "az1,az2"}
	made, err := driver.CreateVolume(t.Context(), first)
	require.NoError(t, err)
	again := wanted("pvc-2", gib)
	again.Parameters = map[string]string{ParameterZone: "az2", ParameterZones: "az1,az2"}
	again.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: made.Volume.VolumeId}}}
	copied, err := driver.CreateVolume(t.Context(), again)
	require.NoError(t, err)
	require.Equal(t, "az1", copied.Volume.AccessibleTopology[0].Segments[Zone])
}

func TestASnapshotWhoseAnswerWasLostIsNotMadeTwice(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	made, err := driver.CreateVolume(t.Context(), wanted("pvc-1", gib))
	require.NoError(t, err)
	take := &csi.CreateSnapshotRequest{Name: "snapshot-a", SourceVolumeId: made.Volume.VolumeId}
	cloud.after = func(string) error { return errors.New("the answer was lost") }
	_, err = driver.CreateSnapshot(t.Context(), take)
	require.Equal(t, codes.Unavailable, status.Code(err))
	cloud.after = func(string) error { return nil }
	_, err = driver.CreateSnapshot(t.Context(), take)
	require.NoError(t, err)
	require.Len(t, cloud.fakeSnapshots, 1)
}

func TestASnapshotThatCinderCouldNotMakeIsTriedAgain(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	made, err := driver.CreateVolume(t.Context(), wanted("pvc-1", gib))
	require.NoError(t, err)
	take := &csi.CreateSnapshotRequest{Name: "snapshot-a", SourceVolumeId: made.Volume.VolumeId}
	cloud.fails = func(string) error {
		return fault.New(fault.TooLarge, "Maximum number of snapshots allowed (1) exceeded for quota 'snapshots'")
	}
	_, err = driver.CreateSnapshot(t.Context(), take)
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "quota 'snapshots'")
	cloud.fails = func(string) error { return nil }
	taken, err := driver.CreateSnapshot(t.Context(), take)
	require.NoError(t, err)
	cloud.setSnapshot(taken.Snapshot.SnapshotId, openstack.VolumeError)
	_, err = driver.CreateSnapshot(t.Context(), take)
	require.ErrorContains(t, err, "it is deleted, and another one is tried")
	_, err = driver.CreateSnapshot(t.Context(), take)
	require.NoError(t, err)
}

func TestSnapshotsOfOthersAreLeftAlone(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	cloud.fakeSnapshots["theirs"] = openstack.Snapshot{ID: "theirs", Status: openstack.VolumeAvailable, Metadata: map[string]string{ClusterMetadata: "cluster-2"}}
	_, err := driver.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: "theirs"})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	from := wanted("pvc-1", gib)
	from.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: "theirs"}}}
	_, err = driver.CreateVolume(t.Context(), from)
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	require.Empty(t, cloud.volumes)
	listed, err := driver.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
	require.NoError(t, err)
	require.Empty(t, listed.Entries)
	require.Equal(t, openstack.VolumeAvailable, cloud.fakeSnapshots["theirs"].Status)
}

// Back-ends that make volumes of snapshots without copying keep the snapshots as long as there are such volumes: Cinder's answer to a deletion does not
// show that.
func TestASnapshotThatTheBackEndKeepsIsNotTakenForDeleted(t *testing.T) {
	cloud := newFakeCloud()
	cloud.fakeSnapshots["snapshot-1"] = openstack.Snapshot{ID: "snapshot-1", Status: openstack.VolumeAvailable}
	err := SnapshotGone(t.Context(), cloud, "snapshot-1")
	require.Equal(t, fault.Conflict, fault.KindOf(err))
	require.ErrorContains(t, err, "keeps it while there are volumes that were made of it")
}
