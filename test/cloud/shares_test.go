package cloud

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/fault"
	driver "github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// Requests of clusters to Manila for their claims.
func TestSharesDoTheSameOnEveryCloud(t *testing.T) {
	c := open(t)
	c.rows = openRows(t)
	for _, try := range []struct {
		name string
		run  func(*testing.T, *storage)
	}{
		{"a share is made once, is for nodes that use it, grows, and is deleted", aShareIsMadeOnce},
		{"a quota of shares that is full is named", aQuotaOfSharesIsNamed},
	} {
		t.Run(try.name, func(t *testing.T) {
			began := time.Now()
			try.run(t, storageOf(t, c))
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
	}
}

// share makes a share as a provisioner does.
func (s *storage) share(t *testing.T, wanted *csi.CreateVolumeRequest) *csi.Volume {
	t.Helper()
	made, err := again(t, func(ctx context.Context) (*csi.CreateVolumeResponse, error) {
		return s.sharing.CreateVolume(ctx, wanted)
	})
	require.NoError(t, err)
	return made.Volume
}

func (s *storage) deleteShare(t *testing.T, id string) {
	t.Helper()
	_, err := again(t, func(ctx context.Context) (*csi.DeleteVolumeResponse, error) {
		return s.sharing.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	})
	require.NoError(t, err)
	require.Equal(t, fault.NotFound, fault.KindOf(second(s.shares.Share(t.Context(), id))))
}

func (s *storage) sharesLeft(t *testing.T) []driver.Share {
	t.Helper()
	list, err := s.shares.Tagged(context.WithoutCancel(t.Context()), "", map[string]string{volumes.ClusterMetadata: s.cluster})
	require.NoError(t, err)
	return list
}

func aShareIsMadeOnce(t *testing.T, s *storage) {
	ctx := t.Context()
	id := s.share(t, claimOf("pvc-share", 1)).VolumeId
	require.Equal(t, id, s.share(t, claimOf("pvc-share", 1)).VolumeId, "asked for again")
	require.Len(t, s.sharesLeft(t), 1)
	wanted := claimOf("pvc-untyped", 1)
	wanted.Parameters[volumes.ParameterType] = "nothing"
	_, err := s.sharing.CreateVolume(ctx, wanted)
	require.Equal(t, codes.NotFound, status.Code(err), err)
	t.Log(err)
	wanted = claimOf("pvc-unconnected", 1)
	wanted.Parameters[volumes.ParameterNetwork] = "nothing"
	_, err = s.sharing.CreateVolume(ctx, wanted)
	require.Equal(t, codes.InvalidArgument, status.Code(err), err)
	require.ErrorContains(t, err, "Manila has no share network nothing")

	s.addresses["one"], s.addresses["two"] = "10.76.0.11", "10.76.0.12"
	give := func(node string) string {
		t.Helper()
		given, err := again(t, func(ctx context.Context) (*csi.ControllerPublishVolumeResponse, error) {
			return s.sharing.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: fileSystem})
		})
		require.NoError(t, err)
		return given.PublishContext["export"]
	}
	take := func(node string) {
		t.Helper()
		_, err := again(t, func(ctx context.Context) (*csi.ControllerUnpublishVolumeResponse, error) {
			return s.sharing.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
		})
		require.NoError(t, err)
	}
	allowed := func() (addresses []string) {
		t.Helper()
		list, err := s.shares.Allowed(ctx, id)
		require.NoError(t, err)
		for _, one := range list {
			require.Equal(t, driver.AccessActive, one.State)
			addresses = append(addresses, one.Address)
		}
		return addresses
	}
	export := give("one")
	t.Logf("mounted from %s", export)
	require.Contains(t, export, ":")
	require.Equal(t, export, give("one"), "again is fine")
	require.Equal(t, export, give("two"))
	require.ElementsMatch(t, []string{"10.76.0.11", "10.76.0.12"}, allowed())
	kind := fault.KindOf(s.shares.Allow(ctx, id, "10.76.0.11"))
	require.Contains(t, []fault.Kind{fault.Invalid, fault.Conflict}, kind, "it has access already")
	s.addresses["two"] = "10.76.0.13" // a new server has the node's name
	give("two")
	require.ElementsMatch(t, []string{"10.76.0.11", "10.76.0.13"}, allowed())

	grown, err := again(t, func(ctx context.Context) (*csi.ControllerExpandVolumeResponse, error) {
		return s.sharing.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}})
	})
	require.NoError(t, err)
	require.EqualValues(t, 2*gib, grown.CapacityBytes)
	require.Equal(t, fault.Invalid, fault.KindOf(s.shares.Grow(ctx, id, 1)), "none becomes smaller")

	_, err = s.sharing.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id})
	require.Equal(t, codes.FailedPrecondition, status.Code(err), err)
	take("one")
	take("one")
	require.Equal(t, []string{"10.76.0.13"}, allowed())
	take("")
	require.Empty(t, allowed())
	share, err := s.shares.Share(ctx, id)
	require.NoError(t, err)
	require.Equal(t, map[string]string{volumes.ClusterMetadata: s.cluster}, share.Metadata, "nothing is noted any more")
	s.deleteShare(t, id)
	s.deleteShare(t, id)
	require.Empty(t, s.sharesLeft(t))
}

// sharesQuota sets the project's quota in Manila until the test ends.
func (s *storage) sharesQuota(t *testing.T, quota map[string]any) {
	t.Helper()
	admin := s.cloud.as(t, "admin").client(t, openstack.NewSharedFileSystemV2)
	admin.Microversion = "2.7"
	project := s.projectID(t)
	set := func(ctx context.Context, quota map[string]any) {
		response, err := admin.Put(ctx, admin.ServiceURL("quota-sets", project), map[string]any{"quota_set": quota}, nil, &gophercloud.RequestOpts{OkCodes: []int{http.StatusOK}})
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
	}
	set(t.Context(), quota)
	t.Cleanup(func() { set(context.Background(), map[string]any{"shares": 50, "gigabytes": 1000}) })
}

func aQuotaOfSharesIsNamed(t *testing.T, s *storage) {
	s.sharesQuota(t, map[string]any{"shares": 1, "gigabytes": 2})
	first := s.share(t, claimOf("pvc-first", 1)).VolumeId
	refused := func(err error) string {
		t.Helper()
		require.Equal(t, codes.ResourceExhausted, status.Code(err), err)
		t.Log(status.Convert(err).Message())
		return status.Convert(err).Message()
	}
	_, err := s.sharing.CreateVolume(t.Context(), claimOf("pvc-second", 1))
	require.Contains(t, refused(err), "Maximum number of shares allowed (1)")
	_, err = s.sharing.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: first, CapacityRange: &csi.CapacityRange{RequiredBytes: 3 * gib}})
	require.Contains(t, refused(err), "gigabytes quota")
	s.deleteShare(t, first)
}
