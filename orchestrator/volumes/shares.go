package volumes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/orchestrator/openstack"
)

// SharesDriver is the name of the CSI driver of shares.
const SharesDriver = "manila.burano.io"

// sharesService is the name of the shares' Controller service in gRPC (images/modules/storage/storage-controllers/manila.go). It is served over the
// connection of Cinder's volumes, whose service has the name in the specification.
const sharesService = "io.burano.manila.v1.Controller"

// ParameterNetwork is the parameter of a storage class of Manila with the share network of its shares, by name or id.
const ParameterNetwork = "shareNetwork"

// noteOfNode and a node's name are the metadata of a share with the address that has access. So a node's access is removed also when the node is no longer
// known.
const noteOfNode = "burano_node_"

// Shares is the cloud's part (see each call in openstack.SharedFileSystems). Its refusals are faults.
type Shares interface {
	Tagged(ctx context.Context, name string, metadata map[string]string) ([]openstack.Share, error)
	Share(ctx context.Context, id string) (openstack.Share, error)
	Create(ctx context.Context, wanted openstack.NewShare) (openstack.Share, error)
	Delete(ctx context.Context, id string) error
	Grow(ctx context.Context, id string, gib int) error
	Export(ctx context.Context, id string) (string, error)
	Allowed(ctx context.Context, id string) ([]openstack.Access, error)
	Allow(ctx context.Context, id, address string) error
	Deny(ctx context.Context, id, access string) error
	Note(ctx context.Context, id string, metadata map[string]string) error
	Forget(ctx context.Context, id, key string) error
	Why(ctx context.Context, id string) string
}

// sharing is the driver of a cluster's shares.
type sharing struct {
	csi.UnimplementedControllerServer
	Cluster
	turns *turns
}

// begin has one thing be done with a share at a time.
func (d *sharing) begin(ctx context.Context, share string) (shares Shares, done func(), err error) {
	return begin(ctx, d.turns, share, d.shares)
}

// serveShares registers the driver of a cluster's shares at a server.
func serveShares(at *grpc.Server, cluster Cluster) {
	description := csi.Controller_ServiceDesc
	description.ServiceName = sharesService
	at.RegisterService(&description, &sharing{Cluster: cluster, turns: newTurns("share")})
}

// suitsShare refuses capabilities that a share does not have.
func suitsShare(capabilities []*csi.VolumeCapability) error {
	if len(capabilities) == 0 {
		return status.Error(codes.InvalidArgument, "say what the share is to be capable of")
	}
	for _, one := range capabilities {
		if one.GetMount() == nil {
			return status.Error(codes.InvalidArgument, "a share of Manila is a file system, and a block device is asked for")
		}
	}
	return nil
}

func (d *sharing) shares(ctx context.Context) (Shares, error) {
	shares, err := d.Shares(ctx)
	return shares, told(err)
}

// own is a share of this cluster. Others are none of its business.
func (d *sharing) own(ctx context.Context, shares Shares, id string) (openstack.Share, error) {
	share, err := shares.Share(ctx, id)
	if err != nil {
		return share, told(err)
	}
	if share.Metadata[ClusterMetadata] != d.ID {
		return share, d.foreign("share", id)
	}
	return share, nil
}

// CreateVolume makes a share, or finds the one of an earlier call: its name identifies the claim.
func (d *sharing) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.Name == "" {
		return nil, status.Error(codes.InvalidArgument, "say what the share is called")
	}
	if err := suitsShare(r.VolumeCapabilities); err != nil {
		return nil, err
	}
	if r.VolumeContentSource != nil {
		return nil, status.Error(codes.InvalidArgument, "a share of Manila begins empty here")
	}
	size, err := sizeOf(r.CapacityRange)
	if err != nil {
		return nil, err
	}
	shares, done, err := d.begin(ctx, r.Name)
	if err != nil {
		return nil, err
	}
	defer done()
	there, err := shares.Tagged(ctx, r.Name, d.tag())
	if err != nil {
		return nil, told(err)
	}
	there = slices.DeleteFunc(there, func(share openstack.Share) bool { return strings.HasSuffix(share.Status, openstack.ShareDeleting) }) // also error_deleting
	var share openstack.Share
	if len(there) > 0 {
		share = there[0]
	} else {
		share, err = shares.Create(ctx, openstack.NewShare{Name: r.Name, Description: d.description(r.Parameters), Type: r.Parameters[ParameterType], Zone: r.Parameters[ParameterZone],
			Network: r.Parameters[ParameterNetwork], GiB: size, Metadata: d.metadata(r.Parameters)})
		if err != nil {
			return nil, told(err)
		}
		d.Logger.InfoContext(ctx, "a share is made", "cluster", d.Name, "share", share.ID, "name", r.Name, "gib", size)
	}
	share, err = d.until(ctx, shares, share.ID, func(now openstack.Share) bool { return now.Status == openstack.ShareAvailable })
	if share.Status == openstack.ShareError { // it was never used
		why := strings.TrimSuffix(shares.Why(ctx, share.ID), ".")
		if failed := shares.Delete(ctx, share.ID); failed != nil {
			return nil, told(failed)
		}
		if why != "" {
			why = ": " + why
		}
		return nil, status.Errorf(codes.Internal, "Manila could not make share %s (its status is error)%s. It is deleted, and another one is tried", share.ID, why)
	}
	if err != nil {
		return nil, err
	}
	if share.GiB < size {
		return nil, status.Errorf(codes.AlreadyExists, "share %s is called %s already, and has %d GiB and not %d", share.ID, r.Name, share.GiB, size)
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: share.ID, CapacityBytes: int64(share.GiB) * gib}}, nil
}

// until waits for a state of a share in Manila. A share in an error state is returned with an error.
func (d *sharing) until(ctx context.Context, shares Shares, id string, done func(openstack.Share) bool) (openstack.Share, error) {
	return until(ctx, func(ctx context.Context) (openstack.Share, error) { return shares.Share(ctx, id) }, func(now openstack.Share) error {
		switch {
		case done(now):
			return nil
		case strings.Contains(now.Status, openstack.ShareError): // also extending_error
			return fault.New(fault.Conflict, "share %s is in status %s: look at it in Manila, and have the cloud's operator reset it", id, now.Status)
		}
		return wait.Again(fmt.Errorf("share %s is in status %s", id, now.Status))
	})
}

// DeleteVolume deletes a share of the cluster to which none of its nodes has access, and shares of an interrupted call under the same name.
func (d *sharing) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "say which share")
	}
	shares, done, err := d.begin(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	share, err := d.own(ctx, shares, r.VolumeId)
	if status.Code(err) == codes.NotFound {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	nodes, err := d.Addresses(ctx)
	if err != nil {
		return nil, told(err)
	}
	for key := range share.Metadata {
		if node, ok := strings.CutPrefix(key, noteOfNode); ok && nodes[node] != "" {
			return nil, status.Errorf(codes.FailedPrecondition, "node %s has share %s still: it is deleted when no node has it", node, share.ID)
		}
	}
	twins, err := shares.Tagged(ctx, share.Name, d.tag())
	if err != nil {
		return nil, told(err)
	}
	others := slices.DeleteFunc(twins, func(other openstack.Share) bool { return other.ID == share.ID })
	for _, one := range append(others, share) { // the known one goes last
		if one.Status != openstack.ShareDeleting {
			if err := shares.Delete(ctx, one.ID); err != nil {
				return nil, told(err)
			}
			d.Logger.InfoContext(ctx, "a share is deleted", "cluster", d.Name, "share", one.ID, "name", one.Name)
		}
	}
	_, err = d.until(ctx, shares, share.ID, func(openstack.Share) bool { return false })
	if status.Code(err) != codes.NotFound {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

// ControllerPublishVolume gives a node access to a share, and returns the mount source in PublishContext (export).
func (d *sharing) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	if r.VolumeId == "" || r.NodeId == "" {
		return nil, status.Error(codes.InvalidArgument, "say which share, and to which node")
	}
	if err := suitsShare([]*csi.VolumeCapability{r.VolumeCapability}); err != nil {
		return nil, err
	}
	done, err := d.turns.take(r.VolumeId + " " + r.NodeId)
	if err != nil {
		return nil, err
	}
	defer done()
	nodes, err := d.Addresses(ctx)
	if err != nil {
		return nil, told(err)
	}
	address := nodes[r.NodeId]
	if address == "" {
		return nil, status.Errorf(codes.NotFound, "cluster %s has no node %s", d.Name, r.NodeId)
	}
	shares, err := d.shares(ctx)
	if err != nil {
		return nil, err
	}
	share, err := d.own(ctx, shares, r.VolumeId)
	if err != nil {
		return nil, err
	}
	if former := share.Metadata[noteOfNode+r.NodeId]; former != address {
		if former != "" { // of a server that had the node's name before
			if err := d.deny(ctx, shares, share, r.NodeId, former); err != nil {
				return nil, err
			}
		}
		if err := shares.Note(ctx, share.ID, map[string]string{noteOfNode + r.NodeId: address}); err != nil {
			return nil, told(err)
		}
	}
	if err := d.allow(ctx, shares, share.ID, r.NodeId, address); err != nil {
		return nil, err
	}
	var export string
	err = looks.Until(ctx, func(ctx context.Context) (err error) {
		if export, err = shares.Export(ctx, share.ID); err == nil && export == "" {
			return wait.Again(fmt.Errorf("Manila does not say yet where share %s is mounted from", share.ID))
		}
		return err
	})
	if err != nil {
		return nil, told(err)
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"export": export}}, nil
}

// allow gives an address access to a share, and waits until it has it. One that Manila could not give is taken back, and asked for again by the next call.
func (d *sharing) allow(ctx context.Context, shares Shares, id, node, address string) error {
	asked := false
	err := looks.Until(ctx, func(ctx context.Context) error {
		list, err := shares.Allowed(ctx, id)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(one openstack.Access) bool { return one.Address == address })
		switch {
		case i >= 0 && list[i].State == openstack.AccessActive:
			return nil
		case i >= 0 && list[i].State == openstack.AccessError:
			if err := shares.Deny(ctx, id, list[i].ID); err != nil {
				return err
			}
			return fault.New(fault.Conflict, "Manila could not give node %s (%s) access to share %s: look at it in Manila (openstack share access list %s)", node, address, id, id)
		case i < 0 && !asked:
			if err := shares.Allow(ctx, id, address); err != nil {
				return err
			}
			asked = true
			d.Logger.InfoContext(ctx, "a node has access to a share", "cluster", d.Name, "share", id, "node", node, "address", address)
		}
		return wait.Again(fmt.Errorf("node %s (%s) has no access to share %s yet", node, address, id))
	})
	return told(err)
}

// ControllerUnpublishVolume takes back the access of a node to a share, also of one that the cluster does not have any more; without a node that of all.
func (d *sharing) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if r.VolumeId == "" {
		return nil, status.Error(codes.InvalidArgument, "say which share")
	}
	shares, done, err := d.begin(ctx, r.VolumeId+" "+r.NodeId)
	if err != nil {
		return nil, err
	}
	defer done()
	share, err := d.own(ctx, shares, r.VolumeId)
	if status.Code(err) == codes.NotFound {
		return &csi.ControllerUnpublishVolumeResponse{}, nil
	}
	if err != nil {
		return nil, err
	}
	for key, address := range share.Metadata {
		node, ok := strings.CutPrefix(key, noteOfNode)
		if !ok || r.NodeId != "" && node != r.NodeId {
			continue
		}
		if err := d.deny(ctx, shares, share, node, address); err != nil {
			return nil, err
		}
		if err := shares.Forget(ctx, share.ID, key); err != nil {
			return nil, told(err)
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

// deny takes back the access of a node at an address, and waits until it has none; unless another node has it there.
func (d *sharing) deny(ctx context.Context, shares Shares, share openstack.Share, node, address string) error {
	for key, other := range share.Metadata {
		if strings.HasPrefix(key, noteOfNode) && key != noteOfNode+node && other == address {
			return nil
		}
	}
	asked := map[string]bool{}
	err := looks.Until(ctx, func(ctx context.Context) error {
		list, err := shares.Allowed(ctx, share.ID)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(one openstack.Access) bool { return one.Address != address })
		for _, one := range list {
			if asked[one.ID] {
				continue
			}
			if err := shares.Deny(ctx, share.ID, one.ID); err != nil {
				return err
			}
			asked[one.ID] = true
			d.Logger.InfoContext(ctx, "a node has access to a share no more", "cluster", d.Name, "share", share.ID, "node", node, "address", address)
		}
		if len(list) > 0 {
			return wait.Again(fmt.Errorf("node %s (%s) has access to share %s still", node, address, share.ID))
		}
		return nil
	})
	if fault.KindOf(err) == fault.NotFound { // it was deleted meanwhile
		return nil
	}
	return told(err)
}

// TakeBack removes the access of a cluster's nodes to a share that outlives them.
func TakeBack(ctx context.Context, shares Shares, share openstack.Share) error {
	list, err := shares.Allowed(ctx, share.ID)
	if err != nil {
		return err
	}
	for key, address := range share.Metadata {
		if !strings.HasPrefix(key, noteOfNode) {
			continue
		}
		for _, one := range list {
			if one.Address == address {
				if err := shares.Deny(ctx, share.ID, one.ID); err != nil {
					return err
				}
			}
		}
		if err := shares.Forget(ctx, share.ID, key); err != nil {
			return err
		}
	}
	return nil
}

// ControllerExpandVolume has a share grow, also while nodes have it mounted: they see it at once.
func (d *sharing) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	if r.VolumeId == "" || r.CapacityRange == nil {
		return nil, status.Error(codes.InvalidArgument, "say which share, and how large it is to be")
	}
	size, err := sizeOf(r.CapacityRange)
	if err != nil {
		return nil, err
	}
	shares, done, err := d.begin(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	share, err := d.own(ctx, shares, r.VolumeId)
	if err != nil {
		return nil, err
	}
	if share.GiB < size {
		if share.Status == openstack.ShareAvailable {
			if err := shares.Grow(ctx, share.ID, size); err != nil {
				return nil, told(err)
			}
			d.Logger.InfoContext(ctx, "a share grows", "cluster", d.Name, "share", share.ID, "gib", size)
		}
		if share, err = d.until(ctx, shares, share.ID, func(now openstack.Share) bool { return now.GiB >= size && now.Status == openstack.ShareAvailable }); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: int64(share.GiB) * gib}, nil
}
