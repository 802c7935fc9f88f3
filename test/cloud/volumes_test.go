package cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/availabilityzones"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/quotasets"
	cinder "github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// Requests of clusters to Cinder for their claims, by the service that answers their controllers.
func TestVolumesDoTheSameOnEveryCloud(t *testing.T) {
	c := open(t)
	c.rows = openRows(t)
	for _, try := range []struct {
		name string
		run  func(*testing.T, *storage)
	}{
		{"a volume is made once, in its zone, grows, and is deleted", aVolumeIsMadeOnce},
		{"a snapshot and a copy have what their volume had", copiesHaveWhatTheirVolumeHad},
		{"a backup has what its volume had, and outlives it", aBackupOutlivesItsVolume},
		{"a quota of volumes that is full is named", aQuotaOfVolumesIsNamed},
		{"what volumes lack is named before anything is made", whatVolumesLackIsNamedBefore},
		{"a server has a volume, which grows, is copied and is not deleted meanwhile", aServerHasAVolume},
		{"a hundred claims at once have a volume each, and leave none", aHundredClaimsLeaveNothing},
	} {
		t.Run(try.name, func(t *testing.T) {
			began := time.Now()
			try.run(t, storageOf(t, c))
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// onRealCloud reports whether the tests' cloud is a real one.
func onRealCloud() bool { return os.Getenv(cloudsVariable) != "" }

// storage gives access to the claims of a cluster in the project demo. The test ends when it has left nothing.
type storage struct {
	cloud              *cloud
	user               user
	project            *driver.Project
	volumes            *driver.BlockStorage
	driver             csi.ControllerClient
	shares             *driver.SharedFileSystems
	sharing            csi.ControllerClient
	servers, addresses map[string]string // by nodes
	cluster            string            // its ClusterID
}

func storageOf(t *testing.T, c *cloud) *storage {
	demo := c.as(t, "demo")
	s := &storage{cloud: c, user: demo, project: demo.projectBy(t, c, c.rows), servers: map[string]string{}, addresses: map[string]string{}, cluster: volumes.ClusterID("test", fmt.Sprint(time.Now().UnixNano()))}
	var err, withoutShares error
	s.volumes, err = s.project.BlockStorage()
	s.shares, withoutShares = s.project.SharedFileSystems()
	if missing := errors.Join(err, withoutShares); missing != nil {
		require.True(t, onRealCloud() && fault.KindOf(missing) == fault.NotFound, missing)
		t.Skip(missing) // make test-openstack-storage has both
	}
	t.Cleanup(func() { // a failed test may have left something
		for _, one := range s.snapshotsLeft(t) {
			require.NoError(t, s.volumes.DeleteSnapshot(context.Background(), one.ID))
			require.NoError(t, volumes.SnapshotGone(context.Background(), s.volumes, one.ID))
		}
		for _, one := range s.left(t) {
			require.NoError(t, s.volumes.Delete(context.Background(), one.ID))
		}
		for _, one := range s.sharesLeft(t) {
			require.NoError(t, s.shares.Delete(context.Background(), one.ID))
		}
	})
	at := grpc.NewServer()
	volumes.Serve(at, volumes.Cluster{ID: s.cluster, Name: "test", Logger: slog.New(slog.DiscardHandler),
		Cloud:     func(context.Context) (volumes.Cloud, error) { return s.volumes, nil },
		Shares:    func(context.Context) (volumes.Shares, error) { return s.shares, nil },
		Servers:   func(context.Context) (map[string]string, error) { return s.servers, nil },
		Addresses: func(context.Context) (map[string]string, error) { return s.addresses, nil }})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = at.Serve(listener) }()
	t.Cleanup(at.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	s.driver, s.sharing = csi.NewControllerClient(connection), csi.NewControllerClient(ofShares{connection})
	return s
}

// ofShares calls the service of shares under its own name, which differs from the service of volumes.
type ofShares struct{ grpc.ClientConnInterface }

func (c ofShares) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, strings.Replace(method, "/csi.v1.Controller/", "/io.burano.manila.v1.Controller/", 1), in, out, options...)
}

// left are the volumes of the cluster.
func (s *storage) left(t *testing.T) []driver.Volume {
	t.Helper()
	list, err := s.volumes.Tagged(context.WithoutCancel(t.Context()), "", map[string]string{volumes.ClusterMetadata: s.cluster})
	require.NoError(t, err)
	return list
}

func (s *storage) snapshotsLeft(t *testing.T) []driver.Snapshot {
	t.Helper()
	list, err := s.volumes.TaggedSnapshots(context.WithoutCancel(t.Context()), "", map[string]string{volumes.ClusterMetadata: s.cluster})
	require.NoError(t, err)
	return list
}

var fileSystem = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}

const gib = 1 << 30

func claimOf(name string, gibs int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: gibs * gib}, VolumeCapabilities: []*csi.VolumeCapability{fileSystem}, Parameters: map[string]string{
		"csi.storage.k8s.io/pvc/name": "data", "csi.storage.k8s.io/pvc/namespace": "web"}}
}

// make makes a volume as a provisioner does, which repeats a call that has ended before the volume was there.
func (s *storage) make(t *testing.T, wanted *csi.CreateVolumeRequest) *csi.Volume {
	t.Helper()
	made, err := again(t, func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return s.driver.CreateVolume(ctx, wanted)
	})
	require.NoError(t, err)
	return made.Volume
}

func (s *storage) delete(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		_, err := again(t, func(ctx context.Context) (*csi.DeleteVolumeResponse, error) {
			return s.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
		})
		require.NoError(t, err)
		require.Equal(t, fault.NotFound, fault.KindOf(second(s.volumes.Volume(t.Context(), id))))
	}
}

func second[T any](_ T, err error) error { return err }

// again repeats a call while it ends without a result, as with DeadlineExceeded.
func again[T any](t *testing.T, call func(context.Context) (T, error)) (answer T, err error) {
	deadline := time.Now().Add(patience())
	for {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		answer, err = call(ctx)
		cancel()
		switch status.Code(err) {
		case codes.DeadlineExceeded, codes.Aborted, codes.Unavailable, codes.Canceled:
			if time.Now().Before(deadline) {
				continue
			}
		}
		return answer, err
	}
}

func aVolumeIsMadeOnce(t *testing.T, s *storage) {
	pages, err := availabilityzones.List(s.user.client(t, openstack.NewBlockStorageV3)).AllPages(t.Context())
	require.NoError(t, err)
	zones, err := availabilityzones.ExtractAvailabilityZones(pages)
	require.NoError(t, err)
	require.NotEmpty(t, zones)
	for _, zone := range zones {
		wanted := claimOf("pvc-"+zone.ZoneName, 1)
		wanted.Parameters[volumes.ParameterZone] = zone.ZoneName
		made := s.make(t, wanted)
		require.EqualValues(t, gib, made.CapacityBytes)
		require.Equal(t, zone.ZoneName, made.AccessibleTopology[0].Segments[volumes.Zone])
		require.Equal(t, made.VolumeId, s.make(t, wanted).VolumeId, "asked for again")
		known, err := s.volumes.Volume(t.Context(), made.VolumeId)
		require.NoError(t, err)
		require.Equal(t, driver.VolumeAvailable, known.Status)
		require.Equal(t, zone.ZoneName, known.Zone)
	}
	require.Len(t, s.left(t), len(zones))
	wanted := claimOf("pvc-nowhere", 1)
	wanted.Parameters[volumes.ParameterZone] = "nowhere"
	_, err = s.driver.CreateVolume(t.Context(), wanted)
	require.Equal(t, codes.InvalidArgument, status.Code(err), err)
	require.ErrorContains(t, err, "Availability zone 'nowhere' is invalid")
	wanted = claimOf("pvc-untyped", 1)
	wanted.Parameters[volumes.ParameterType] = "nothing"
	_, err = s.driver.CreateVolume(t.Context(), wanted)
	require.Equal(t, codes.NotFound, status.Code(err), err)
	require.ErrorContains(t, err, "nothing could not be found")
	larger := claimOf("pvc-"+zones[0].ZoneName, 2)
	_, err = s.driver.CreateVolume(t.Context(), larger)
	require.Equal(t, codes.AlreadyExists, status.Code(err), err)
	for _, one := range s.left(t) {
		grown, err := again(t, func(ctx context.Context) (*csi.ControllerExpandVolumeResponse, error) {
			return s.driver.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: one.ID, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}, VolumeCapability: fileSystem})
		})
		require.NoError(t, err)
		require.EqualValues(t, 2*gib, grown.CapacityBytes)
		require.Equal(t, fault.Invalid, fault.KindOf(s.volumes.Grow(t.Context(), one, 1)), "none becomes smaller")
		s.delete(t, one.ID)
		s.delete(t, one.ID)
	}
	require.Empty(t, s.left(t))
}

// written makes a volume of the cluster with content, without a server: of an image. The driver knows it by its name. On the local cloud the volume is empty: the cloud's own
// tests check the content of copies.
func (s *storage) written(t *testing.T, name, content string) (id string) {
	t.Helper()
	if !onRealCloud() {
		return s.make(t, claimOf(name, 1)).VolumeId
	}
	glance := s.user.client(t, openstack.NewImageV2)
	image, err := images.Create(t.Context(), glance, images.CreateOpts{Name: name, DiskFormat: "raw", ContainerFormat: "bare"}).Extract()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, images.Delete(context.Background(), glance, image.ID).ExtractErr()) })
	require.NoError(t, imagedata.Upload(t.Context(), glance, image.ID, bytes.NewReader(append([]byte(content), make([]byte, 1<<20-len(content))...))).ExtractErr())
	made, err := cinder.Create(t.Context(), s.user.client(t, openstack.NewBlockStorageV3), cinder.CreateOpts{Name: name, Size: 1, ImageID: image.ID,
		Metadata: map[string]string{volumes.ClusterMetadata: s.cluster}}, nil).Extract()
	require.NoError(t, err)
	require.Equal(t, made.ID, s.make(t, claimOf(name, 1)).VolumeId)
	return made.ID
}

// requireContent looks at the beginning of a volume, through an image of it.
func (s *storage) requireContent(t *testing.T, volume, content string) {
	t.Helper()
	if !onRealCloud() {
		return
	}
	glance := s.user.client(t, openstack.NewImageV2)
	made, err := cinder.UploadImage(t.Context(), s.user.client(t, openstack.NewBlockStorageV3), volume, cinder.UploadImageOpts{ImageName: "burano-test-look", DiskFormat: "raw", ContainerFormat: "bare"}).Extract()
	require.NoError(t, err)
	eventually(t, "there is an image of the volume", func() bool {
		image, err := images.Get(t.Context(), glance, made.ImageID).Extract()
		require.NoError(t, err)
		return image.Status == images.ImageStatusActive
	})
	body, err := imagedata.Download(t.Context(), glance, made.ImageID).Extract()
	require.NoError(t, err)
	defer func() { require.NoError(t, body.Close()) }()
	begins := make([]byte, len(content))
	_, err = io.ReadFull(body, begins)
	require.NoError(t, err)
	require.Equal(t, content, string(begins))
	require.NoError(t, images.Delete(t.Context(), glance, made.ImageID).ExtractErr())
	eventually(t, "the volume is available again", func() bool {
		now, err := s.volumes.Volume(t.Context(), volume)
		require.NoError(t, err)
		return now.Status == driver.VolumeAvailable
	})
}

// snapshot makes a snapshot that is complete.
func (s *storage) snapshot(t *testing.T, name, volume string) *csi.Snapshot {
	t.Helper()
	var made *csi.CreateSnapshotResponse
	eventually(t, "the snapshot is complete", func() bool {
		var err error
		made, err = s.driver.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
		require.NoError(t, err)
		return made.Snapshot.ReadyToUse
	})
	return made.Snapshot
}

func (s *storage) deleteSnapshot(t *testing.T, id string) {
	t.Helper()
	_, err := again(t, func(ctx context.Context) (*csi.DeleteSnapshotResponse, error) {
		return s.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: id})
	})
	require.NoError(t, err)
}

func ofSnapshot(name, id string, gibs int64) *csi.CreateVolumeRequest {
	wanted := claimOf(name, gibs)
	wanted.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
	return wanted
}

func ofVolume(name, id string, gibs int64) *csi.CreateVolumeRequest {
	wanted := claimOf(name, gibs)
	wanted.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: id}}}
	return wanted
}

func copiesHaveWhatTheirVolumeHad(t *testing.T, s *storage) {
	const content = "what the volume had when it was copied"
	volume := s.written(t, "pvc-copied", content)
	taken := s.snapshot(t, "snapshot-1", volume)
	require.EqualValues(t, gib, taken.SizeBytes)
	require.Equal(t, taken.SnapshotId, s.snapshot(t, "snapshot-1", volume).SnapshotId, "asked for again")
	list, err := s.driver.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SourceVolumeId: volume})
	require.NoError(t, err)
	require.Len(t, list.Entries, 1)

	restored := s.make(t, ofSnapshot("pvc-restored", taken.SnapshotId, 2))
	require.EqualValues(t, 2*gib, restored.CapacityBytes, "larger than what it was made of")
	s.requireContent(t, restored.VolumeId, content)
	clone := s.make(t, ofVolume("pvc-clone", volume, 1))
	s.requireContent(t, clone.VolumeId, content)

	_, err = s.driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: volume})
	require.Equal(t, codes.FailedPrecondition, status.Code(err), err)
	require.ErrorContains(t, err, taken.SnapshotId)
	_, err = again(t, func(ctx context.Context) (*csi.DeleteSnapshotResponse, error) {
		return s.driver.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: taken.SnapshotId})
	})
	if err != nil { // Ceph keeps it for the volume that is made of it
		require.Equal(t, codes.FailedPrecondition, status.Code(err), err)
		require.ErrorContains(t, err, "its back-end keeps it while there are volumes that were made of it")
		t.Log(err)
		s.delete(t, restored.VolumeId)
		s.deleteSnapshot(t, taken.SnapshotId)
	}
	s.deleteSnapshot(t, taken.SnapshotId)
	s.delete(t, volume)
	s.requireContent(t, clone.VolumeId, content)
	s.delete(t, restored.VolumeId, clone.VolumeId)
	require.Empty(t, s.left(t))
}

func aBackupOutlivesItsVolume(t *testing.T, s *storage) {
	const content = "what the volume had when it was backed up"
	ctx := t.Context()
	volume := s.written(t, "pvc-valued", content)
	claim := volumes.Claim{Namespace: "web", Name: "data", Reclaim: "Delete", Modes: []string{"ReadWriteOnce"}, Mode: "Filesystem", FileSystem: "ext4",
		MountOptions: []string{"noatime"}, Volume: volume}
	order := volumes.Order{Cluster: s.cluster, ClusterName: "test", Why: volumes.Requested, Reason: "before the test", Run: "1"}
	made, err := volumes.BackUp(ctx, s.volumes, order, claim, nil)
	require.NoError(t, err)
	require.Equal(t, volumes.KindBackup, made.Kind)
	require.NoError(t, complete(t, s, made))
	list, err := volumes.Backups(ctx, s.volumes, s.cluster)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, claim, list[0].Claim)
	same, err := volumes.BackUp(ctx, s.volumes, order, claim, list)
	require.NoError(t, err)
	require.Equal(t, made.ID, same.ID, "asked for again")
	s.delete(t, volume)

	var restored driver.Volume
	eventually(t, "a volume is made of the backup", func() bool {
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		restored, err = volumes.Restore(short, s.volumes, list[0], s.cluster, "pvc-restored", claim)
		require.Zero(t, fault.KindOf(err), err)
		return err == nil
	})
	require.Equal(t, 1, restored.GiB)
	s.requireContent(t, restored.ID, content)
	require.NoError(t, volumes.DeleteBackup(ctx, s.volumes, made))
	require.NoError(t, volumes.BackupGone(ctx, s.volumes, made))
	require.NoError(t, volumes.DeleteBackup(ctx, s.volumes, made), "again is fine")
	s.delete(t, restored.ID)
	require.Empty(t, s.left(t))
}

func complete(t *testing.T, s *storage, backup volumes.Backup) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	return volumes.Complete(ctx, s.volumes, backup)
}

// quota sets the project's quota in Cinder until the test ends; nil restores the default.
func (s *storage) quota(t *testing.T, opts quotasets.UpdateOpts) {
	t.Helper()
	admin := s.cloud.as(t, "admin").client(t, openstack.NewBlockStorageV3)
	project := s.projectID(t)
	before, err := quotasets.Get(t.Context(), admin, project).Extract()
	require.NoError(t, err)
	_, err = quotasets.Update(t.Context(), admin, project, opts).Extract()
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := quotasets.Update(context.Background(), admin, project, quotasets.UpdateOpts{Volumes: &before.Volumes, Gigabytes: &before.Gigabytes, Snapshots: &before.Snapshots, Backups: &before.Backups}).Extract()
		require.NoError(t, err)
	})
}

func (s *storage) projectID(t *testing.T) string {
	return s.user.caller(t, s.cloud.service(t)).ProjectID
}

// whatVolumesLackIsNamedBefore: the volumes of a stack, and those of claims, are compared with Cinder's types and quotas.
func whatVolumesLackIsNamedBefore(t *testing.T, s *storage) {
	name := begin(t, s.project, "room-of-volumes")
	volume := func(properties map[string]any) driver.Content {
		template := emptyTemplate()
		template.Resources["disk"] = stackResource{Type: "OS::Cinder::Volume", Properties: properties}
		return template.content(t)
	}
	room := func(properties map[string]any) error {
		_, err := s.project.CheckRoom(t.Context(), name, volume(properties))
		return err
	}
	require.NoError(t, room(map[string]any{"size": 1}))
	err := room(map[string]any{"size": 1, "name": "data", "volume_type": "no-such-type", "image": "no-such-image"})
	require.Equal(t, fault.Invalid, fault.KindOf(err), err)
	require.ErrorContains(t, err, `volume data: the project sees no volume type with the name or id "no-such-type": there are `)
	require.ErrorContains(t, err, `volume data: the project sees no active image with the name or id "no-such-image": there are `)
	types, err := s.volumes.Types(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, types)
	require.NoError(t, s.volumes.CheckType(t.Context(), types[0].Name))
	require.ErrorContains(t, s.volumes.CheckType(t.Context(), "no-such-type"), types[0].Name)

	two, three := 2, 3
	s.quota(t, quotasets.UpdateOpts{Volumes: &two, Gigabytes: &three})
	require.NoError(t, room(map[string]any{"size": 3}))
	err = room(map[string]any{"size": 4})
	require.ErrorContains(t, err, "the project's quota of room for volumes (GiB) is exceeded: 4 more are needed and 3 of 3 are left, so 1 are missing")
	_, err = s.project.ApplyStack(t.Context(), name, volume(map[string]any{"size": 1}))
	require.NoError(t, err)
	require.NoError(t, room(map[string]any{"size": 3}), "it grows by 2")
	require.ErrorContains(t, room(map[string]any{"size": 4}), "3 more are needed and 2 of 3 are left")
	require.NoError(t, driver.CheckVolumes(t.Context(), s.project, []driver.VolumeDemand{{Name: "of claim a", GiB: 2, Count: 1, More: 2}}))
	err = driver.CheckVolumes(t.Context(), s.project, []driver.VolumeDemand{{Name: "of claim a", GiB: 1, Count: 2, More: 2}, {Name: "of claim b", Type: "no-such-type", GiB: 1, Count: 1, More: 1}})
	require.ErrorContains(t, err, `volume of claim b: the project sees no volume type`)
	require.ErrorContains(t, err, "the project's quota of volumes is exceeded: 3 more are needed and 1 of 2 are left, so 2 are missing")
}

func aQuotaOfVolumesIsNamed(t *testing.T, s *storage) {
	one, two, five := 1, 2, 5
	s.quota(t, quotasets.UpdateOpts{Volumes: &one, Gigabytes: &two, Snapshots: &one, Backups: &one})
	first := s.make(t, claimOf("pvc-first", 1))
	refused := func(wanted *csi.CreateVolumeRequest) string {
		t.Helper()
		_, err := s.driver.CreateVolume(t.Context(), wanted)
		require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
		t.Log(status.Convert(err).Message()) // an Event has this text
		return status.Convert(err).Message()
	}
	require.Regexp(t, `Cinder says: VolumeLimitExceeded: Maximum number of volumes allowed \(1\) exceeded for quota 'volumes'\.`, refused(claimOf("pvc-second", 1)))
	s.quota(t, quotasets.UpdateOpts{Volumes: &two})
	require.Regexp(t, `Cinder says: VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota\. Requested 2G, quota is 2G and 1G has been consumed\.`,
		refused(claimOf("pvc-third", 2)))
	_, err := s.driver.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: first.VolumeId, CapacityRange: &csi.CapacityRange{RequiredBytes: 3 * gib}})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	t.Log(err)
	taken := s.snapshot(t, "snapshot-1", first.VolumeId)
	_, err = s.driver.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "snapshot-2", SourceVolumeId: first.VolumeId})
	require.ErrorContains(t, err, "VolumeSizeExceedsAvailableQuota", "of what is full at the same time the room is named")
	s.quota(t, quotasets.UpdateOpts{Gigabytes: &five})
	_, err = s.driver.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "snapshot-2", SourceVolumeId: first.VolumeId})
	require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
	t.Log(err)
	require.ErrorContains(t, err, "SnapshotLimitExceeded: Maximum number of snapshots allowed (1) exceeded")
	none := 0
	s.quota(t, quotasets.UpdateOpts{Backups: &none})
	_, err = volumes.BackUp(t.Context(), s.volumes, volumes.Order{Cluster: s.cluster, Why: volumes.Requested, Run: "1"}, volumes.Claim{Namespace: "web", Name: "data", Volume: first.VolumeId}, nil)
	require.Equal(t, fault.TooLarge, fault.KindOf(err), err)
	t.Log(err)
	require.ErrorContains(t, err, "BackupLimitExceeded: Maximum number of backups allowed (0) exceeded")
	s.deleteSnapshot(t, taken.SnapshotId)
	s.delete(t, first.VolumeId)
	require.Empty(t, s.left(t))
}

func aServerHasAVolume(t *testing.T, s *storage) {
	if _, err := os.Stat("/dev/loop-control"); err != nil && !onRealCloud() {
		t.Skipf("volumes of the local cloud's servers are loop devices, which this machine has not: %v", err)
	}
	ctx, nova := t.Context(), s.user.nova(t)
	name := begin(t, s.project, "storage")
	stack, err := s.project.ApplyStack(ctx, name, plan(t, s.project, "one", "two").content(t))
	require.NoError(t, err)
	for _, node := range []string{"one", "two"} {
		server, _ := stack.Addresses(node)
		s.servers[node] = server.ServerID
	}
	volume := s.make(t, claimOf("pvc-attached", 1)).VolumeId
	attach := func(node string) error {
		_, err := again(t, func(ctx context.Context) (*csi.ControllerPublishVolumeResponse, error) {
			return s.driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: volume, NodeId: node, VolumeCapability: fileSystem})
		})
		return err
	}
	detach := func(node string) {
		t.Helper()
		_, err := again(t, func(ctx context.Context) (*csi.ControllerUnpublishVolumeResponse, error) {
			return s.driver.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: node})
		})
		require.NoError(t, err)
	}
	require.NoError(t, attach("one"))
	require.NoError(t, attach("one"), "again is fine")
	has, err := s.volumes.Volume(ctx, volume)
	require.NoError(t, err)
	require.Equal(t, []string{s.servers["one"]}, has.Servers)
	s.sees(t, "one", "vdb", 1)

	require.Equal(t, codes.FailedPrecondition, status.Code(attach("two")))
	_, err = s.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
	require.Equal(t, codes.FailedPrecondition, status.Code(err), err)
	require.ErrorContains(t, err, "is attached to server "+s.servers["one"])
	require.Equal(t, fault.Invalid, fault.KindOf(s.volumes.Delete(ctx, volume)), "and Cinder itself refuses it")

	_, err = again(t, func(ctx context.Context) (*csi.ControllerExpandVolumeResponse, error) {
		return s.driver.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}})
	})
	require.NoError(t, err)
	s.sees(t, "one", "vdb", 2)
	s.deleteSnapshot(t, s.snapshot(t, "snapshot-1", volume).SnapshotId)
	backup, err := volumes.BackUp(ctx, s.volumes, volumes.Order{Cluster: s.cluster, Why: volumes.Requested, Run: "1"}, volumes.Claim{Namespace: "web", Name: "data", Volume: volume}, nil)
	require.NoError(t, err)
	require.NoError(t, complete(t, s, backup))
	require.NoError(t, volumes.DeleteBackup(ctx, s.volumes, backup))
	require.NoError(t, volumes.BackupGone(ctx, s.volumes, backup))

	detach("two")
	detach("one")
	detach("one")
	require.NoError(t, attach("two"))
	s.sees(t, "two", "vdb", 2)
	// Its server is gone: the volume is free by itself, and can be detached from a missing server.
	require.NoError(t, servers.Delete(ctx, nova, s.servers["two"]).ExtractErr())
	eventually(t, "the volume is free", func() bool {
		now, err := s.volumes.Volume(ctx, volume)
		require.NoError(t, err)
		return now.Status == driver.VolumeAvailable && len(now.Servers) == 0
	})
	detach("two")
	s.delete(t, volume)
	require.Empty(t, s.left(t))
}

// sees waits until the kernel of a node's server has logged this size of a device. Servers of the local cloud have no kernel of their own.
func (s *storage) sees(t *testing.T, node, device string, gibs int) {
	t.Helper()
	if !onRealCloud() {
		return
	}
	eventually(t, "server "+node+" sees its volume", func() bool {
		output, err := servers.ShowConsoleOutput(t.Context(), s.user.nova(t), s.servers[node], servers.ShowConsoleOutputOpts{}).Extract()
		require.NoError(t, err)
		return slices.ContainsFunc(strings.Split(output, "\n"), func(line string) bool {
			return strings.Contains(line, "["+device+"]") && strings.Contains(line, fmt.Sprintf("%d 512-byte logical blocks", gibs<<21))
		})
	})
}

func aHundredClaimsLeaveNothing(t *testing.T, s *storage) {
	const claims = 100
	more := claims + 10
	s.quota(t, quotasets.UpdateOpts{Volumes: &more})
	began := time.Now()
	var all errgroup.Group
	ids := make([]string, claims)
	for i := range claims {
		all.Go(func() error {
			wanted := claimOf(fmt.Sprintf("pvc-%d", i), 1)
			made, err := again(t, func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
				return s.driver.CreateVolume(ctx, wanted)
			})
			if err == nil {
				ids[i] = made.Volume.VolumeId
			}
			return err
		})
	}
	require.NoError(t, all.Wait())
	t.Logf("made in %.1f s", time.Since(began).Seconds())
	list := s.left(t)
	require.Len(t, list, claims)
	names := map[string]bool{}
	for _, one := range list {
		require.Equal(t, driver.VolumeAvailable, one.Status)
		require.False(t, names[one.Name], "%s is doubled", one.Name)
		names[one.Name] = true
	}
	began = time.Now()
	for _, id := range ids {
		all.Go(func() error {
			_, err := again(t, func(ctx context.Context) (*csi.DeleteVolumeResponse, error) {
				return s.driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
			})
			return err
		})
	}
	require.NoError(t, all.Wait())
	t.Logf("deleted in %.1f s", time.Since(began).Seconds())
	require.Empty(t, s.left(t))
	pages, err := cinder.List(s.user.client(t, openstack.NewBlockStorageV3), cinder.ListOpts{}).AllPages(t.Context())
	require.NoError(t, err)
	everything, err := cinder.ExtractVolumes(pages)
	require.NoError(t, err)
	require.Empty(t, everything)
}
