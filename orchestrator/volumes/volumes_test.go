package volumes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
)

// fakeCloud is a Cinder that does everything at the second look.
type fakeCloud struct {
	mutex   sync.Mutex
	volumes map[string]openstack.Volume
	next    map[string]func(*openstack.Volume) // the effects of a look; a volume without a status is gone then
	copied  map[string]string                  // the sources of volumes, by their ids
	fakeSnapshots
	made  int
	hangs bool                    // looks have no effect
	fails func(call string) error // before anything is done
	after func(call string) error // when it is done
}

func newFakeCloud() *fakeCloud {
	none := func(string) error { return nil }
	return &fakeCloud{volumes: map[string]openstack.Volume{}, copied: map[string]string{}, fakeSnapshots: fakeSnapshots{}, next: map[string]func(*openstack.Volume){}, fails: none, after: none}
}

func (f *fakeCloud) change(call, id, now string, next func(*openstack.Volume)) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.fails(call); err != nil {
		return err
	}
	volume, there := f.volumes[id]
	if !there {
		return fault.New(fault.NotFound, "there is no volume %s", id)
	}
	volume.Status = now
	f.volumes[id], f.next[id] = volume, next
	return f.after(call)
}

func (f *fakeCloud) Tagged(_ context.Context, name string, metadata map[string]string) (list []openstack.Volume, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, volume := range f.volumes {
		if (name == "" || volume.Name == name) && volume.Metadata[ClusterMetadata] == metadata[ClusterMetadata] {
			list = append(list, volume)
		}
	}
	slices.SortFunc(list, func(a, b openstack.Volume) int { return a.Made.Compare(b.Made) })
	return list, f.fails("list")
}

func (f *fakeCloud) Volume(_ context.Context, id string) (openstack.Volume, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	volume, there := f.volumes[id]
	if !there {
		return volume, fault.New(fault.NotFound, "there is no volume %s", id)
	}
	if next := f.next[id]; next != nil && !f.hangs {
		now := volume
		now.Servers = slices.Clone(volume.Servers)
		next(&now)
		delete(f.next, id)
		if f.volumes[id] = now; now.Status == "" {
			delete(f.volumes, id)
		}
	}
	return volume, nil
}

func (f *fakeCloud) Create(_ context.Context, wanted openstack.NewVolume) (openstack.Volume, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.fails("create"); err != nil {
		return openstack.Volume{}, err
	}
	f.made++
	volume := openstack.Volume{ID: fmt.Sprintf("volume-%d", f.made), Name: wanted.Name, Status: "creating", Zone: cmp.Or(wanted.Zone, f.volumes[wanted.Source].Zone), GiB: wanted.GiB, Metadata: wanted.Metadata, Made: time.Unix(int64(f.made), 0)}
	f.volumes[volume.ID], f.copied[volume.ID] = volume, wanted.Snapshot+wanted.Source
	f.next[volume.ID] = func(v *openstack.Volume) { v.Status = openstack.VolumeAvailable }
	return volume, f.after("create")
}

func (f *fakeCloud) Delete(_ context.Context, id string) error {
	for _, one := range f.fakeSnapshots {
		if one.Volume == id {
			return fault.New(fault.Invalid, "delete volume %s: Cinder says: Invalid volume: Volume status must be available, and it must not have snapshots", id)
		}
	}
	return f.change("delete", id, openstack.VolumeDeleting, func(v *openstack.Volume) { v.Status = "" })
}

func (f *fakeCloud) Attach(_ context.Context, id, server string) error {
	return f.change("attach", id, "attaching", func(v *openstack.Volume) { v.Status, v.Servers = openstack.VolumeInUse, append(v.Servers, server) })
}

func (f *fakeCloud) Detach(_ context.Context, id, server string) error {
	return f.change("detach", id, "detaching", func(v *openstack.Volume) {
		v.Status, v.Servers = openstack.VolumeAvailable, slices.DeleteFunc(v.Servers, func(one string) bool { return one == server })
	})
}

func (f *fakeCloud) Grow(_ context.Context, volume openstack.Volume, gib int) error {
	return f.change("grow", volume.ID, "extending", func(v *openstack.Volume) { v.Status, v.GiB = volume.Status, gib })
}

// driven is the driver of a cluster with nodes a and b, and a machine, as its controllers call it.
func driven(t *testing.T, cloud *fakeCloud) (csi.ControllerClient, map[string]string) {
	t.Helper()
	servers := map[string]string{"a": "server-a", "b": "server-b", "machine": ""}
	at := grpc.NewServer()
	Serve(at, Cluster{ID: "cluster-1", Name: "web", Logger: slog.New(slog.DiscardHandler), Cloud: func(context.Context) (Cloud, error) { return cloud, nil },
		Servers: func(context.Context) (map[string]string, error) { return servers, nil }})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = at.Serve(listener) }()
	t.Cleanup(at.Stop)
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return csi.NewControllerClient(client), servers
}

var fileSystem = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}

func wanted(name string, bytes int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, VolumeCapabilities: []*csi.VolumeCapability{fileSystem}}
}

func TestAVolumeIsMadeAttachedMovedGrownAndDeleted(t *testing.T) {
	cloud := newFakeCloud()
	driver, servers := driven(t, cloud)
	ctx := t.Context()
	made, err := driver.CreateVolume(ctx, wanted("pvc-1", gib+1))
	require.NoError(t, err)
	require.EqualValues(t, 2*gib, made.Volume.CapacityBytes, "Cinder has whole GiB")
	id := made.Volume.VolumeId
	attach := func(node string) error {
		_, err := driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: fileSystem})
		return err
	}
	detach := func(node string) error {
		_, err := driver.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
		return err
	}
	require.NoError(t, attach("a"))
	require.NoError(t, attach("a"), "again is fine")
	require.ErrorContains(t, attach("b"), "volume volume-1 is attached to a: it is attached to b when it is not any more")
	require.ErrorContains(t, attach("machine"), "no server of the cloud")
	require.Equal(t, codes.NotFound, status.Code(attach("nobody")))
	require.NoError(t, detach("b"), "it is not there")
	require.Equal(t, []string{"server-a"}, cloud.volumes[id].Servers)
	grown, err := driver.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 3 * gib}})
	require.NoError(t, err)
	require.EqualValues(t, 3*gib, grown.CapacityBytes)
	require.True(t, grown.NodeExpansionRequired)
	_, err = driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	require.Equal(t, codes.FailedPrecondition, status.Code(err))
	require.ErrorContains(t, err, "is attached to server server-a still")
	delete(servers, "a") // its node was removed, and its server is there still
	require.NoError(t, detach("a"))
	require.Empty(t, cloud.volumes[id].Servers)
	require.NoError(t, attach("b"))
	require.NoError(t, detach("a"), "it is with a node that is there")
	require.Equal(t, []string{"server-b"}, cloud.volumes[id].Servers)
	require.NoError(t, detach("b"))
	_, err = driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	require.NoError(t, err)
	require.Empty(t, cloud.volumes)
	_, err = driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	require.NoError(t, err, "again is fine")
	require.NoError(t, detach("b"), "and so is this")
}

// The result of a call may be there although its answer was lost.
func TestACallThatIsMadeAgainFindsWhatTheFirstOneMade(t *testing.T) {
	for _, call := range []string{"create", "attach", "grow", "detach", "delete"} {
		t.Run(call, func(t *testing.T) {
			cloud := newFakeCloud()
			driver, _ := driven(t, cloud)
			ctx := t.Context()
			unheard := true
			cloud.after = func(now string) error {
				if now == call && unheard {
					unheard = false
					return errors.New("the answer was lost")
				}
				return nil
			}
			twice := func(ask func() error) {
				t.Helper()
				err := ask()
				if status.Code(err) == codes.Unavailable {
					err = ask()
				}
				require.NoError(t, err)
			}
			id := ""
			twice(func() error {
				made, err := driver.CreateVolume(ctx, wanted("pvc-1", 1))
				id = made.GetVolume().GetVolumeId()
				return err
			})
			twice(func() error {
				_, err := driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "a", VolumeCapability: fileSystem})
				return err
			})
			twice(func() error {
				_, err := driver.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}})
				return err
			})
			require.Equal(t, 2, cloud.volumes[id].GiB)
			twice(func() error {
				_, err := driver.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "a"})
				return err
			})
			twice(func() error {
				_, err := driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
				return err
			})
			require.False(t, unheard)
			require.Equal(t, 1, cloud.made)
			require.Empty(t, cloud.volumes)
		})
	}
}

func TestAVolumeIsInTheZoneThatIsAskedForAndSaysInWhich(t *testing.T) {
	driver, _ := driven(t, newFakeCloud())
	order := wanted("pvc-1", 1)
	order.Parameters = map[string]string{ParameterZone: "az1"}
	made, err := driver.CreateVolume(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, "az1", made.Volume.AccessibleTopology[0].Segments[Zone])
	order.Parameters[ParameterZone] = "az2"
	again, err := driver.CreateVolume(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, "az1", again.Volume.AccessibleTopology[0].Segments[Zone], "it stays where it is")
}

func TestABlockDeviceGrowsWithoutItsNode(t *testing.T) {
	driver, _ := driven(t, newFakeCloud())
	block := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER}}
	order := wanted("pvc-1", 1)
	order.VolumeCapabilities = []*csi.VolumeCapability{block}
	made, err := driver.CreateVolume(t.Context(), order)
	require.NoError(t, err)
	_, err = driver.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: made.Volume.VolumeId, NodeId: "a", VolumeCapability: block})
	require.NoError(t, err)
	grown, err := driver.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: made.Volume.VolumeId, VolumeCapability: block,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 3 * gib}})
	require.NoError(t, err)
	require.EqualValues(t, 3*gib, grown.CapacityBytes)
	require.False(t, grown.NodeExpansionRequired)
}

func TestACreationThatIsHeardTooLateLeavesNothing(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	made, err := driver.CreateVolume(t.Context(), wanted("pvc-1", 1))
	require.NoError(t, err)
	_, err = cloud.Create(t.Context(), openstack.NewVolume{Name: "pvc-1", GiB: 1, Metadata: map[string]string{ClusterMetadata: "cluster-1"}})
	require.NoError(t, err)
	again, err := driver.CreateVolume(t.Context(), wanted("pvc-1", 1))
	require.NoError(t, err)
	require.Equal(t, made.Volume.VolumeId, again.Volume.VolumeId, "it is the oldest each time")
	_, err = driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: made.Volume.VolumeId})
	require.NoError(t, err)
	_, _ = cloud.Volume(t.Context(), "volume-2") // it is being deleted
	require.Empty(t, cloud.volumes)
}

func TestOnlyTheClustersOwnVolumesAreTouched(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	ctx := t.Context()
	theirs := openstack.Volume{ID: "theirs", Name: "pvc-1", Status: openstack.VolumeAvailable, GiB: 1, Metadata: map[string]string{ClusterMetadata: "cluster-2"}}
	cloud.volumes["theirs"] = theirs
	made, err := driver.CreateVolume(ctx, wanted("pvc-1", 1))
	require.NoError(t, err)
	require.NotEqual(t, "theirs", made.Volume.VolumeId)
	_, attached := driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: "theirs", NodeId: "a", VolumeCapability: fileSystem})
	_, detached := driver.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: "theirs"})
	_, grown := driver.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: "theirs", CapacityRange: &csi.CapacityRange{RequiredBytes: 9 * gib}})
	_, deleted := driver.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "theirs"})
	for _, err := range []error{attached, detached, grown, deleted} {
		require.Equal(t, codes.PermissionDenied, status.Code(err))
		require.ErrorContains(t, err, "was not made for cluster web (its metadata has no burano_cluster=cluster-1), and is left alone")
	}
	require.Equal(t, theirs, cloud.volumes["theirs"])
}

func TestWhatTheCloudRefusesIsToldInItsWords(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	for kind, code := range map[fault.Kind]codes.Code{fault.TooLarge: codes.ResourceExhausted, fault.Invalid: codes.InvalidArgument, fault.Conflict: codes.FailedPrecondition, 0: codes.Unavailable} {
		cloud.fails = func(string) error {
			if kind == 0 {
				return errors.New("quota 'volumes'")
			}
			return fault.New(kind, "quota 'volumes'")
		}
		_, err := driver.CreateVolume(t.Context(), wanted("pvc-1", 1))
		require.Equal(t, code, status.Code(err))
		require.ErrorContains(t, err, "quota 'volumes'")
	}
	require.Empty(t, cloud.volumes)
}

func TestAVolumeThatCinderCouldNotMakeIsDeletedAndMadeAnew(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	cloud.after = func(call string) error {
		if call == "create" {
			cloud.next["volume-1"] = func(v *openstack.Volume) { v.Status = openstack.VolumeError }
		}
		return nil
	}
	_, err := driver.CreateVolume(t.Context(), wanted("pvc-1", 1))
	require.Equal(t, codes.Internal, status.Code(err))
	require.ErrorContains(t, err, "Cinder could not make volume volume-1")
	made, err := driver.CreateVolume(t.Context(), wanted("pvc-1", 1))
	require.NoError(t, err)
	require.Equal(t, "volume-2", made.Volume.VolumeId)
}

func TestWhatAVolumeOfCinderCannotBeIsRefused(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	shared := wanted("pvc-1", 1)
	shared.VolumeCapabilities = []*csi.VolumeCapability{{AccessType: fileSystem.AccessType, AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER}}}
	unsaid := wanted("pvc-1", 1)
	unsaid.VolumeCapabilities = []*csi.VolumeCapability{{AccessMode: fileSystem.AccessMode}}
	narrow := wanted("pvc-1", 100)
	narrow.CapacityRange.LimitBytes = 1000
	for text, request := range map[string]*csi.CreateVolumeRequest{"attached to one node at a time": shared, "a file system or a block device": unsaid, "none is between 100 and 1000 bytes": narrow} {
		_, err := driver.CreateVolume(t.Context(), request)
		require.ErrorContains(t, err, text)
	}
	require.Empty(t, cloud.volumes)
}

// Nova may have an attachment of which Cinder knows nothing: then there is none that both have until it is taken back.
func TestAnAttachmentThatNovaAloneHasIsMadeAnew(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	made, err := driver.CreateVolume(t.Context(), wanted("pvc-1", 1))
	require.NoError(t, err)
	half := true
	cloud.fails = func(call string) error {
		switch {
		case call == "attach" && half:
			return fault.New(fault.Conflict, "already attached")
		case call == "detach":
			half = false
		}
		return nil
	}
	attach := func() error {
		_, err := driver.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: made.Volume.VolumeId, NodeId: "a", VolumeCapability: fileSystem})
		return err
	}
	require.ErrorContains(t, attach(), "already attached")
	require.NoError(t, attach())
}

func TestADetachmentThatHangsIsToldAndGoesOnWhenItIsDone(t *testing.T) {
	cloud := newFakeCloud()
	driver, _ := driven(t, cloud)
	ctx := t.Context()
	made, err := driver.CreateVolume(ctx, wanted("pvc-1", 1))
	require.NoError(t, err)
	id := made.Volume.VolumeId
	attach := func(node string) error {
		_, err := driver.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: fileSystem})
		return err
	}
	require.NoError(t, attach("a"))
	hangs, asked := func(now bool) {
		cloud.mutex.Lock()
		defer cloud.mutex.Unlock()
		cloud.hangs = now
	}, 0
	cloud.fails = func(call string) error { // Nova's answer about work that is under way
		if call != "detach" {
			return nil
		}
		if asked++; asked > 1 {
			return fault.New(fault.Conflict, "volume %s is detaching", id)
		}
		return nil
	}
	detach := func(patience time.Duration) codes.Code {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		_, err := driver.ControllerUnpublishVolume(limited, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "a"})
		return status.Code(err)
	}
	hangs(true)
	require.Equal(t, codes.DeadlineExceeded, detach(300*time.Millisecond))
	becomes := func(want codes.Code, ask func() codes.Code) { // a call that was given up may be ending still
		t.Helper()
		require.Eventually(t, func() bool { return ask() == want }, time.Minute, 20*time.Millisecond)
	}
	var refused error
	becomes(codes.FailedPrecondition, func() codes.Code { refused = attach("b"); return status.Code(refused) })
	require.ErrorContains(t, refused, "is attached to a: it is attached to b when it is not any more")
	hangs(false)
	becomes(codes.OK, func() codes.Code { return detach(time.Minute) })
	require.NoError(t, attach("b"))
	require.Equal(t, 2, asked)
	require.Equal(t, []string{"server-b"}, cloud.volumes[id].Servers)
}
