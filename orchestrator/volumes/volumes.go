// Package volumes answers a cluster's requests to the cloud for the volumes of its claims. It is the CSI driver's Controller service
// (https://github.com/container-storage-interface/spec), over Cinder and Nova, and over Manila. The controllers run on the cluster's masters, and have no
// credential of the cloud. So their requests are narrow: volumes and shares that were made for this cluster, and its own servers.
package volumes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/openstack"
)

// Driver is the name of the CSI driver.
const Driver = "cinder.burano.io"

// Zone is the key of the zone of a volume, and the label of nodes with theirs.
const Zone = "cinder.burano.io/zone"

// The parameters of a storage class, and the names of a claim.
const (
	ParameterType  = "type"  // of Cinder
	ParameterZone  = "zone"  // of Cinder
	ParameterZones = "zones" // of a class whose volumes are in the zones of the nodes that use them
	ParameterKeep  = "keep"  // "true": the volume is kept when its claim is deleted
	claimName      = "csi.storage.k8s.io/pvc/name"
	claimNamespace = "csi.storage.k8s.io/pvc/namespace"
)

// ClusterMetadata is the metadata of a volume with the ClusterID of its cluster.
const ClusterMetadata = "burano_cluster"

// ClusterID identifies a cluster in a project: objects of two environments may have the same id.
func ClusterID(environment, object string) string { return environment + "/" + object }

// RetainMetadata is the metadata, with any value, of a volume whose class keeps it when its claim, or its cluster, is deleted.
const RetainMetadata = "burano_retain"

// ReleasedMetadata is the metadata, with any value, of a volume or share whose claim was deleted before its cluster.
const ReleasedMetadata = "burano_released"

// gib is the unit of Cinder's sizes.
const gib = 1 << 30

// looks is how often the state of Cinder's or Nova's work is read.
var looks = wait.Policy{First: 200 * time.Millisecond, Most: 2 * time.Second, Growth: 1.5}

// Cloud is the cloud's part (see each call in openstack.BlockStorage). Its refusals are faults.
type Cloud interface {
	Tagged(ctx context.Context, name string, metadata map[string]string) ([]openstack.Volume, error)
	Volume(ctx context.Context, id string) (openstack.Volume, error)
	Create(ctx context.Context, wanted openstack.NewVolume) (openstack.Volume, error)
	Delete(ctx context.Context, id string) error
	Attach(ctx context.Context, id, server string) error
	Detach(ctx context.Context, id, server string) error
	Grow(ctx context.Context, volume openstack.Volume, gib int) error
	TaggedSnapshots(ctx context.Context, name string, metadata map[string]string) ([]openstack.Snapshot, error)
	Snapshot(ctx context.Context, id string) (openstack.Snapshot, error)
	CreateSnapshot(ctx context.Context, wanted openstack.NewSnapshot) (openstack.Snapshot, error)
	DeleteSnapshot(ctx context.Context, id string) error
}

// Cluster is whose volumes they are.
type Cluster struct {
	ID, Name string // ID is its ClusterID
	// Cloud reaches the cluster's project. Its faults are shown to users who wait for a volume.
	Cloud func(ctx context.Context) (Cloud, error)
	// Shares reaches the project's shares.
	Shares func(ctx context.Context) (Shares, error)
	// Servers are the ids in Nova of the nodes' servers, by the names of the nodes; "" for a machine that is none of the cloud's.
	Servers func(ctx context.Context) (map[string]string, error)
	// Addresses are the nodes' addresses, by their names, from which they reach shares.
	Addresses func(ctx context.Context) (map[string]string, error)
	Logger    *slog.Logger
}

// Serve registers the drivers of a cluster at a server.
func Serve(at *grpc.Server, cluster Cluster) {
	d := &driver{Cluster: cluster, turns: newTurns("volume")}
	csi.RegisterIdentityServer(at, d)
	csi.RegisterControllerServer(at, d)
	serveShares(at, cluster)
}

type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	Cluster

	turns *turns
}

// begin has one thing be done with a volume at a time.
func (d *driver) begin(ctx context.Context, volume string) (cloud Cloud, done func(), err error) {
	return begin(ctx, d.turns, volume, d.cloud)
}

// GetPluginInfo is csi.IdentityServer's.
func (*driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: Driver, VendorVersion: "1"}, nil
}

// GetPluginCapabilities is csi.IdentityServer's.
func (*driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{
		{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}}},
		{Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: csi.PluginCapability_VolumeExpansion_ONLINE}}},
	}}, nil
}

// Probe is csi.IdentityServer's.
func (*driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// ControllerGetCapabilities is csi.ControllerServer's.
func (*driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	var all []*csi.ControllerServiceCapability
	for _, one := range []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME, csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS, csi.ControllerServiceCapability_RPC_CLONE_VOLUME} {
		all = append(all, &csi.ControllerServiceCapability{Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: one}}})
	}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: all}, nil
}

// ValidateVolumeCapabilities is csi.ControllerServer's.
func (d *driver) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.VolumeId == "" || len(r.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "say which volume, and what it is to be capable of")
	}
	cloud, err := d.cloud(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := d.own(ctx, cloud, r.VolumeId); err != nil {
		return nil, err
	}
	if err := suits(r.VolumeCapabilities); err != nil {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{VolumeCapabilities: r.VolumeCapabilities}}, nil
}

// suits refuses capabilities that a volume of Cinder does not have here.
func suits(capabilities []*csi.VolumeCapability) error {
	for _, one := range capabilities {
		switch one.GetAccessMode().GetMode() {
		case csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER, csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
			csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		default:
			return status.Errorf(codes.InvalidArgument, "a volume of Cinder is attached to one node at a time, and %s is asked for", one.GetAccessMode().GetMode())
		}
		if one.GetMount() == nil && one.GetBlock() == nil {
			return status.Error(codes.InvalidArgument, "say whether the volume is to be a file system or a block device")
		}
	}
	return nil
}

// cloud reaches the project.
func (d *driver) cloud(ctx context.Context) (Cloud, error) {
	cloud, err := d.Cloud(ctx)
	return cloud, told(err)
}

// own is a volume of this cluster. Others are none of its business.
func (d *driver) own(ctx context.Context, cloud Cloud, id string) (openstack.Volume, error) {
	volume, err := cloud.Volume(ctx, id)
	if err != nil {
		return volume, told(err)
	}
	if volume.Metadata[ClusterMetadata] != d.ID {
		return volume, d.foreign("volume", id)
	}
	return volume, nil
}

// foreign is the error of an object of another maker.
func (c Cluster) foreign(kind, id string) error {
	return status.Errorf(codes.PermissionDenied, "%s %s was not made for cluster %s (its metadata has no %s=%s), and is left alone", kind, id, c.Name, ClusterMetadata, c.ID)
}

// description is that of something new for a claim.
func (c Cluster) description(parameters map[string]string) string {
	if claim := parameters[claimName]; claim != "" {
		return fmt.Sprintf("Claim %s/%s of cluster %s, made by Burano", parameters[claimNamespace], claim, c.Name)
	}
	return "Made by Burano for cluster " + c.Name
}

// CreateVolume makes a volume, or finds the one of an earlier call: its name identifies the claim.
func (d *driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.Name == "" || len(r.VolumeCapabilities) == 0 {
		return nil, status.Error(codes.InvalidArgument, "say what the volume is called, and what it is to be capable of")
	}
	if err := suits(r.VolumeCapabilities); err != nil {
		return nil, err
	}
	size, err := sizeOf(r.CapacityRange)
	if err != nil {
		return nil, err
	}
	cloud, done, err := d.begin(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	defer done()
	there, err := cloud.Tagged(ctx, r.Name, d.tag())
	if err != nil {
		return nil, told(err)
	}
	there = slices.DeleteFunc(there, func(volume openstack.Volume) bool { return strings.HasSuffix(volume.Status, openstack.VolumeDeleting) }) // also error_deleting
	var volume openstack.Volume
	if len(there) > 0 {
		volume = there[0]
	} else {
		wanted := openstack.NewVolume{Name: r.Name, Description: d.description(r.Parameters), Type: r.Parameters[ParameterType], Zone: r.Parameters[ParameterZone], GiB: size, Metadata: d.metadata(r.Parameters)}
		if err := d.source(ctx, cloud, r.VolumeContentSource, &wanted, r.Parameters[ParameterZones], r.CapacityRange.GetLimitBytes()); err != nil {
			return nil, err
		}
		if volume, err = cloud.Create(ctx, wanted); err != nil {
			return nil, told(err)
		}
		d.Logger.InfoContext(ctx, "a volume is made", "cluster", d.Name, "volume", volume.ID, "name", r.Name, "gib", size)
	}
	volume, err = d.until(ctx, cloud, volume.ID, func(now openstack.Volume) bool {
		return now.Status == openstack.VolumeAvailable || now.Status == openstack.VolumeInUse
	})
	if volume.Status == openstack.VolumeError { // it was never used
		if failed := cloud.Delete(ctx, volume.ID); failed != nil {
			return nil, told(failed)
		}
		return nil, status.Errorf(codes.Internal, "Cinder could not make volume %s (its status is error): it is deleted, and another one is tried", volume.ID)
	}
	if err != nil {
		return nil, err
	}
	if volume.GiB < size {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s is called %s already, and has %d GiB and not %d", volume.ID, r.Name, volume.GiB, size)
	}
	made := &csi.Volume{VolumeId: volume.ID, CapacityBytes: int64(volume.GiB) * gib, ContentSource: r.VolumeContentSource}
	if volume.Zone != "" {
		made.AccessibleTopology = []*csi.Topology{{Segments: map[string]string{Zone: volume.Zone}}}
	}
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

// metadata is that of something new, as its class has it.
func (c Cluster) metadata(parameters map[string]string) map[string]string {
	metadata := c.tag()
	if parameters[ParameterKeep] != "" {
		metadata[RetainMetadata] = "true"
	}
	return metadata
}

func (c Cluster) tag() map[string]string { return map[string]string{ClusterMetadata: c.ID} }

// sizeOf is the requested size in GiB, 1 at least.
func sizeOf(asked *csi.CapacityRange) (int, error) {
	size := max(1, (asked.GetRequiredBytes()+gib-1)/gib)
	if limit := asked.GetLimitBytes(); limit > 0 && size*gib > limit {
		return 0, status.Errorf(codes.OutOfRange, "Cinder makes volumes of whole GiB, and none is between %d and %d bytes", asked.GetRequiredBytes(), limit)
	}
	return int(size), nil
}

// until waits for a state of a volume in Cinder. A volume in an error state is returned with an error.
func (d *driver) until(ctx context.Context, cloud Cloud, id string, done func(openstack.Volume) bool) (openstack.Volume, error) {
	return until(ctx, func(ctx context.Context) (openstack.Volume, error) { return cloud.Volume(ctx, id) }, func(now openstack.Volume) error {
		if done(now) {
			return nil
		}
		return stillThere("volume", id, now.Status)
	})
}

// until asks for an object until it is in the desired state, and returns it as it was last. waits is nil for that state.
func until[T any](ctx context.Context, ask func(context.Context) (T, error), waits func(T) error) (last T, err error) {
	err = looks.Until(ctx, func(ctx context.Context) error {
		now, err := ask(ctx)
		if err != nil {
			return err
		}
		last = now
		return waits(now)
	})
	return last, told(err)
}

// stillThere is the error with which a wait for Cinder goes on, unless the object is in an error state.
func stillThere(kind, id, now string) error {
	if strings.HasPrefix(now, openstack.VolumeError) {
		return fault.New(fault.Conflict, "%s %s is in status %s: look at it in Cinder, and have the cloud's operator reset it", kind, id, now)
	}
	return wait.Again(fmt.Errorf("%s %s is in status %s", kind, id, now))
}

// DeleteVolume deletes a volume of the cluster without a server, and volumes of an interrupted call under the same name.
func (d *driver) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "say which volume")
	}
	cloud, done, err := d.begin(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	volume, err := d.own(ctx, cloud, r.VolumeId)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	twins, err := cloud.Tagged(ctx, volume.Name, d.tag())
	if err != nil {
		return nil, told(err)
	}
	others := slices.DeleteFunc(twins, func(other openstack.Volume) bool { return other.ID == volume.ID })
	for _, one := range append(others, volume) { // the known one goes last
		if len(one.Servers) > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to server %s still: it is deleted when it is not", one.ID, strings.Join(one.Servers, ", "))
		}
		if one.Status != openstack.VolumeDeleting {
			if err := cloud.Delete(ctx, one.ID); err != nil {
				return nil, d.withSnapshots(ctx, cloud, one, err)
			}
			d.Logger.InfoContext(ctx, "a volume is deleted", "cluster", d.Name, "volume", one.ID, "name", one.Name)
		}
	}
	_, err = d.until(ctx, cloud, volume.ID, func(openstack.Volume) bool { return false })
	if status.Code(err) != codes.NotFound {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// withSnapshots is the error of a volume that Cinder does not delete. Mostly that is for its snapshots, which it does not name.
func (d *driver) withSnapshots(ctx context.Context, cloud Cloud, volume openstack.Volume, refused error) error {
	if kind := fault.KindOf(refused); kind != fault.Invalid && kind != fault.Conflict {
		return told(refused)
	}
	list, err := cloud.TaggedSnapshots(ctx, "", d.tag())
	if err != nil {
		return told(refused)
	}
	var names []string
	for _, one := range list {
		if one.Volume == volume.ID {
			names = append(names, fmt.Sprintf("%s (%s)", one.ID, one.Name))
		}
	}
	if len(names) == 0 {
		return told(refused)
	}
	return status.Errorf(codes.FailedPrecondition, "volume %s has snapshots still, and is deleted when these are: %s", volume.ID, strings.Join(names, ", "))
}

// ControllerPublishVolume attaches a volume to the server of a node.
func (d *driver) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if r.VolumeId == "" || r.NodeId == "" || r.VolumeCapability == nil {
		return nil, status.Error(codes.InvalidArgument, "say which volume, to which node, and what it is to be capable of")
	}
	if err := suits([]*csi.VolumeCapability{r.VolumeCapability}); err != nil {
		return nil, err
	}
	done, err := d.turns.take(r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	servers, err := d.Servers(ctx)
	if err != nil {
		return nil, told(err)
	}
	server, there := servers[r.NodeId]
	switch {
	case !there:
		return nil, status.Errorf(codes.NotFound, "cluster %s has no node %s", d.Name, r.NodeId)
	case server == "":
		return nil, status.Errorf(codes.FailedPrecondition, "node %s is a machine that is no server of the cloud, to which Cinder attaches nothing", r.NodeId)
	}
	cloud, err := d.cloud(ctx)
	if err != nil {
		return nil, err
	}
	volume, err := d.own(ctx, cloud, r.VolumeId)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(volume.Servers, server) {
		if len(volume.Servers) > 0 {
			return nil, status.Errorf(codes.FailedPrecondition, "volume %s is attached to %s: it is attached to %s when it is not any more", volume.ID, describe(servers, volume.Servers), r.NodeId)
		}
		err := cloud.Attach(ctx, volume.ID, server)
		if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.Invalid { // an earlier call may have been heard
			return nil, told(err)
		}
		if err != nil {
			now, failed := cloud.Volume(ctx, volume.ID)
			if failed == nil && now.Status == openstack.VolumeAvailable { // an attachment that only Nova has prevents one that both have
				failed = cloud.Detach(ctx, volume.ID, server)
			}
			if failed != nil || !slices.Contains(now.Servers, server) && now.Status != "attaching" && now.Status != "reserved" {
				return nil, told(err)
			}
		}
		d.Logger.InfoContext(ctx, "a volume is attached", "cluster", d.Name, "volume", volume.ID, "node", r.NodeId, "server", server)
	}
	_, err = d.until(ctx, cloud, volume.ID, func(now openstack.Volume) bool {
		return now.Status == openstack.VolumeInUse && slices.Contains(now.Servers, server)
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{}, nil
}

// describe names servers by their nodes.
func describe(servers map[string]string, ids []string) string {
	var names []string
	for _, id := range ids {
		name := "server " + id
		for node, server := range servers {
			if server == id {
				name = node
			}
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// ControllerUnpublishVolume detaches a volume from the server of a node. Where the cluster has no such node any more, it is detached from a server that is
// not of the cluster's nodes either: that node's former server.
func (d *driver) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if r.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "say which volume")
	}
	done, err := d.turns.take(r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	servers, err := d.Servers(ctx)
	if err != nil {
		return nil, told(err)
	}
	cloud, err := d.cloud(ctx)
	if err != nil {
		return nil, err
	}
	volume, err := d.own(ctx, cloud, r.VolumeId)
	if status.Code(err) == codes.NotFound {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	current := map[string]bool{}
	for _, server := range servers {
		current[server] = true
	}
	server, known := servers[r.NodeId]
	leaves := func(id string) bool { return id == server || r.NodeId == "" || !known && !current[id] }
	for _, id := range volume.Servers {
		if !leaves(id) {
			continue
		}
		err := cloud.Detach(ctx, volume.ID, id)
		if kind := fault.KindOf(err); err != nil && kind != fault.Conflict && kind != fault.Invalid { // it may be being detached
			return nil, told(err)
		}
		if err != nil {
			if now, failed := cloud.Volume(ctx, volume.ID); failed != nil || now.Status != "detaching" && slices.Contains(now.Servers, id) {
				return nil, told(err)
			}
		}
		d.Logger.InfoContext(ctx, "a volume is detached", "cluster", d.Name, "volume", volume.ID, "node", r.NodeId, "server", id)
	}
	_, err = d.until(ctx, cloud, volume.ID, func(now openstack.Volume) bool {
		return now.Status != "detaching" && !slices.ContainsFunc(now.Servers, leaves)
	})
	if err != nil && status.Code(err) != codes.NotFound {
		return nil, err
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// ControllerExpandVolume has a volume grow, also while a server has it.
func (d *driver) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if r.VolumeId == "" || r.CapacityRange == nil {
		return nil, status.Error(codes.InvalidArgument, "say which volume, and how large it is to be")
	}
	size, err := sizeOf(r.CapacityRange)
	if err != nil {
		return nil, err
	}
	cloud, done, err := d.begin(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	volume, err := d.own(ctx, cloud, r.VolumeId)
	if err != nil {
		return nil, err
	}
	if volume.GiB < size {
		if volume.Status == openstack.VolumeAvailable || volume.Status == openstack.VolumeInUse {
			if err := cloud.Grow(ctx, volume, size); err != nil {
				return nil, told(err)
			}
			d.Logger.InfoContext(ctx, "a volume grows", "cluster", d.Name, "volume", volume.ID, "gib", size)
		}
		if volume, err = d.until(ctx, cloud, volume.ID, func(now openstack.Volume) bool { return now.GiB >= size && now.Status != "extending" }); err != nil {
			return nil, err
		}
	}
	fileSystem := r.VolumeCapability.GetBlock() == nil // controllers without block devices do not send it
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(volume.GiB) * gib, NodeExpansionRequired: fileSystem}, nil
}

// told is an error in gRPC's form. An error that is no fault may pass, and the request may be done.
func told(err error) error {
	if err == nil {
		return nil
	}
	if _, already := status.FromError(err); already {
		return err
	}
	code := codes.Unavailable
	switch fault.KindOf(err) {
	case fault.Invalid:
		code = codes.InvalidArgument
	case fault.NotFound:
		code = codes.NotFound
	case fault.Forbidden, fault.Unauthorized:
		code = codes.PermissionDenied
	case fault.Conflict:
		code = codes.FailedPrecondition
	case fault.TooLarge, fault.TooMany:
		code = codes.ResourceExhausted
	}
	return status.Error(code, err.Error())
}
