package volumes

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
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

// fakeShares is a Manila that does everything at the second look.
type fakeShares struct {
	mutex  sync.Mutex
	shares map[string]openstack.Share
	next   map[string]func(*openstack.Share) // the effects of a look; a share without a status is gone then
	access map[string][]openstack.Access     // by share
	made   int
	fails  func(call string) error // before anything is done
	after  func(call string) error // when it is done
	why    string
}

func newFakeShares() *fakeShares {
	none := func(string) error { return nil }
	return &fakeShares{shares: map[string]openstack.Share{}, next: map[string]func(*openstack.Share){}, access: map[string][]openstack.Access{}, fails: none, after: none}
}

// change does something with a share that is there.
func (f *fakeShares) change(call, id string, do func(*openstack.Share)) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.fails(call); err != nil {
		return err
	}
	share, there := f.shares[id]
	if !there {
		return fault.New(fault.NotFound, "there is no share %s", id)
	}
	share.Metadata = maps.Clone(share.Metadata)
	do(&share)
	f.shares[id] = share
	return f.after(call)
}

func (f *fakeShares) Tagged(_ context.Context, name string, metadata map[string]string) (list []openstack.Share, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, share := range f.shares {
		if (name == "" || share.Name == name) && share.Metadata[ClusterMetadata] == metadata[ClusterMetadata] {
			list = append(list, share)
		}
	}
	slices.SortFunc(list, func(a, b openstack.Share) int { return a.Made.Compare(b.Made) })
	return list, f.fails("list")
}

func (f *fakeShares) Share(_ context.Context, id string) (openstack.Share, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	share, there := f.shares[id]
	if !there {
		return share, fault.New(fault.NotFound, "there is no share %s", id)
	}
	if next := f.next[id]; next != nil {
		now := share
		next(&now)
		delete(f.next, id)
		if f.shares[id] = now; now.Status == "" {
			delete(f.shares, id)
		}
	}
	return share, nil
}

func (f *fakeShares) Create(_ context.Context, wanted openstack.NewShare) (openstack.Share, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if err := f.fails("create"); err != nil {
		return openstack.Share{}, err
	}
	f.made++
	share := openstack.Share{ID: fmt.Sprintf("share-%d", f.made), Name: wanted.Name, Status: "creating", GiB: wanted.GiB, Metadata: wanted.Metadata, Made: time.Unix(int64(f.made), 0)}
	f.shares[share.ID] = share
	f.next[share.ID] = func(s *openstack.Share) {
		if s.Status = openstack.ShareAvailable; f.why != "" {
			s.Status = openstack.ShareError
		}
	}
	return share, f.after("create")
}

func (f *fakeShares) Delete(_ context.Context, id string) error {
	return f.change("delete", id, func(s *openstack.Share) {
		s.Status = openstack.ShareDeleting
		f.next[id] = func(s *openstack.Share) { s.Status = "" }
	})
}

func (f *fakeShares) Grow(_ context.Context, id string, gib int) error {
	return f.change("grow", id, func(s *openstack.Share) {
		s.Status = "extending"
		f.next[id] = func(s *openstack.Share) { s.Status, s.GiB = openstack.ShareAvailable, gib }
	})
}

func (f *fakeShares) Export(_ context.Context, id string) (string, error) {
	return "10.0.0.5:/" + id, nil
}

func (f *fakeShares) Allowed(_ context.Context, id string) ([]openstack.Access, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	list := slices.Clone(f.access[id])
	for i, one := range f.access[id] {
		if one.State == "new" {
			f.access[id][i].State = openstack.AccessActive
		}
	}
	f.access[id] = slices.DeleteFunc(f.access[id], func(one openstack.Access) bool { return one.State == "denying" })
	return list, nil
}

func (f *fakeShares) Allow(_ context.Context, id, address string) error {
	return f.change("allow", id, func(*openstack.Share) {
		f.access[id] = append(f.access[id], openstack.Access{ID: "rule-" + address, Address: address, State: "new"})
	})
}

func (f *fakeShares) Deny(_ context.Context, id, access string) error {
	return f.change("deny", id, func(*openstack.Share) {
		for i, one := range f.access[id] {
			if one.ID == access {
				f.access[id][i].State = "denying"
			}
		}
	})
}

func (f *fakeShares) Note(_ context.Context, id string, metadata map[string]string) error {
	return f.change("note", id, func(s *openstack.Share) { maps.Copy(s.Metadata, metadata) })
}

func (f *fakeShares) Forget(_ context.Context, id, key string) error {
	return f.change("forget", id, func(s *openstack.Share) { delete(s.Metadata, key) })
}

func (f *fakeShares) Why(context.Context, string) string { return f.why }

// addresses are the addresses with access to a share.
func (f *fakeShares) addresses(id string) (list []string) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, one := range f.access[id] {
		list = append(list, one.Address)
	}
	slices.Sort(list)
	return list
}

// shareConnection calls the Controller service for shares, as the controllers do.
type shareConnection struct{ grpc.ClientConnInterface }

func (c shareConnection) Invoke(ctx context.Context, method string, request, answer any, options ...grpc.CallOption) error {
	return c.ClientConnInterface.Invoke(ctx, strings.Replace(method, "csi.v1.Controller", "io.burano.manila.v1.Controller", 1), request, answer, options...)
}

// sharingWith is the driver of the shares of a cluster with nodes a and b, as its controllers call it.
func sharingWith(t *testing.T, cloud *fakeShares) (csi.ControllerClient, map[string]string) {
	t.Helper()
	nodes := map[string]string{"a": "10.1.0.1", "b": "10.1.0.2"}
	at := grpc.NewServer()
	Serve(at, Cluster{ID: "cluster-1", Name: "web", Logger: slog.New(slog.DiscardHandler), Shares: func(context.Context) (Shares, error) { return cloud, nil },
		Addresses: func(context.Context) (map[string]string, error) { return nodes, nil }})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = at.Serve(listener) }()
	t.Cleanup(at.Stop)
	client, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return csi.NewControllerClient(shareConnection{client}), nodes
}

var mounted = &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER}}

func share(name string, bytes int64) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: bytes}, VolumeCapabilities: []*csi.VolumeCapability{mounted}}
}

func TestAShareIsMadeGivenToNodesTakenBackGrownAndDeleted(t *testing.T) {
	cloud := newFakeShares()
	driver, nodes := sharingWith(t, cloud)
	order := share("pvc-1", 3*gib/2)
	order.Parameters = map[string]string{ParameterType: "fast", ParameterKeep: "true", claimName: "data", claimNamespace: "default"}
	made, err := driver.CreateVolume(t.Context(), order)
	require.NoError(t, err)
	id := made.Volume.VolumeId
	require.EqualValues(t, 2*gib, made.Volume.CapacityBytes)
	require.Equal(t, map[string]string{ClusterMetadata: "cluster-1", RetainMetadata: "true"}, cloud.shares[id].Metadata)
	again, err := driver.CreateVolume(t.Context(), order)
	require.NoError(t, err)
	require.Equal(t, id, again.Volume.VolumeId)

	publish := func(node string) (*csi.ControllerPublishVolumeResponse, error) {
		return driver.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: mounted})
	}
	unpublish := func(node string) error {
		_, err := driver.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: node})
		return err
	}
	remove := func() error {
		_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id})
		return err
	}
	for _, node := range []string{"a", "b", "b"} {
		given, err := publish(node)
		require.NoError(t, err)
		require.Equal(t, "10.0.0.5:/"+id, given.PublishContext["export"])
	}
	require.Equal(t, []string{"10.1.0.1", "10.1.0.2"}, cloud.addresses(id))
	_, err = publish("c")
	require.Equal(t, codes.NotFound, status.Code(err))
	require.ErrorContains(t, remove(), "node ")

	grown, err := driver.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: id, CapacityRange: &csi.CapacityRange{RequiredBytes: 5 * gib}})
	require.NoError(t, err)
	require.EqualValues(t, 5*gib, grown.CapacityBytes)
	require.False(t, grown.NodeExpansionRequired)

	// Another server takes the place of node b, and node a is gone for good: their access is removed.
	nodes["b"] = "10.1.0.3"
	_, err = publish("b")
	require.NoError(t, err)
	require.Equal(t, []string{"10.1.0.1", "10.1.0.3"}, cloud.addresses(id))
	delete(nodes, "a")
	require.NoError(t, unpublish("a"))
	require.NoError(t, unpublish("a"))
	require.Equal(t, []string{"10.1.0.3"}, cloud.addresses(id))
	require.NoError(t, unpublish(""))
	require.Empty(t, cloud.addresses(id))
	require.Equal(t, map[string]string{ClusterMetadata: "cluster-1", RetainMetadata: "true"}, cloud.shares[id].Metadata)
	require.NoError(t, remove())
	require.NoError(t, remove())
	require.NoError(t, unpublish("b"))
	require.Empty(t, cloud.shares)
}

func TestAShareOfSomebodyElseIsLeftAlone(t *testing.T) {
	cloud := newFakeShares()
	cloud.shares["theirs"] = openstack.Share{ID: "theirs", Status: openstack.ShareAvailable, GiB: 1, Metadata: map[string]string{ClusterMetadata: "cluster-2"}}
	driver, _ := sharingWith(t, cloud)
	_, err := driver.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "theirs"})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = driver.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "theirs", NodeId: "a", VolumeCapability: mounted})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	_, err = driver.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: "theirs", CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * gib}})
	require.Equal(t, codes.PermissionDenied, status.Code(err))
	require.Len(t, cloud.shares, 1)
}

func TestAShareThatManilaCannotMakeSaysWhyAndLeavesNothing(t *testing.T) {
	cloud := newFakeShares()
	driver, _ := sharingWith(t, cloud)
	cloud.why = "No storage could be allocated for this share request."
	_, err := driver.CreateVolume(t.Context(), share("pvc-1", 1))
	require.Equal(t, codes.Internal, status.Code(err))
	require.ErrorContains(t, err, "(its status is error): No storage could be allocated for this share request. It is deleted, and another one is tried")
	require.Equal(t, openstack.ShareDeleting, cloud.shares["share-1"].Status)
	cloud.why = ""
	cloud.fails = func(call string) error {
		if call == "create" {
			return fault.New(fault.TooLarge, "Manila says: ShareLimitExceeded: Maximum number of shares allowed (50)")
		}
		return nil
	}
	_, err = driver.CreateVolume(t.Context(), share("pvc-1", 1))
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "ShareLimitExceeded")
}

func TestANodeThatManilaGivesNoAccessIsAskedForAgain(t *testing.T) {
	cloud := newFakeShares()
	driver, _ := sharingWith(t, cloud)
	made, err := driver.CreateVolume(t.Context(), share("pvc-1", 1))
	require.NoError(t, err)
	id := made.Volume.VolumeId
	cloud.access[id] = []openstack.Access{{ID: "rule-1", Address: "10.1.0.1", State: openstack.AccessError}}
	publish := &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "a", VolumeCapability: mounted}
	_, err = driver.ControllerPublishVolume(t.Context(), publish)
	require.ErrorContains(t, err, "Manila could not give node a (10.1.0.1) access to share "+id)
	_, err = driver.ControllerPublishVolume(t.Context(), publish)
	require.NoError(t, err)
	require.NoError(t, TakeBack(t.Context(), cloud, cloud.shares[id]))
	_, err = cloud.Allowed(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, cloud.addresses(id))
	require.Equal(t, map[string]string{ClusterMetadata: "cluster-1"}, cloud.shares[id].Metadata)
}

func TestWhatAShareCannotBeIsRefused(t *testing.T) {
	cloud := newFakeShares()
	driver, _ := sharingWith(t, cloud)
	block := share("pvc-1", 1)
	block.VolumeCapabilities = []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}, AccessMode: mounted.AccessMode}}
	copied := share("pvc-1", 1)
	copied.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: "share-0"}}}
	for text, request := range map[string]*csi.CreateVolumeRequest{"a block device is asked for": block, "begins empty here": copied} {
		_, err := driver.CreateVolume(t.Context(), request)
		require.Equal(t, codes.InvalidArgument, status.Code(err))
		require.ErrorContains(t, err, text)
	}
	require.Empty(t, cloud.shares)
}
