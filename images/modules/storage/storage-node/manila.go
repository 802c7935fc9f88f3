package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
)

const (
	// manilaDriver is the driver of shares of Manila, to which the cloud gives the node access.
	manilaDriver = "manila.burano.io"
	// manilaNodeLabel is the label, with the value true, of nodes that can mount them.
	manilaNodeLabel = "manila.burano.io/node"
	// manilaExport is the export of the share in an answer that gives access.
	manilaExport = "export"
)

// exportForm is that of 10.0.0.5:/shares/share-1, or of a name or an address of IPv6 in brackets in place of the address.
var exportForm = regexp.MustCompile(`^([A-Za-z0-9][-A-Za-z0-9.]*|\[[0-9A-Fa-f:.]+\]):/\S*$`)

// manilaShares is the node's part of the driver. A server that does not answer has the kernel wait: so nothing here looks into a share but where it must, and one thing at a time
// is done with each.
type manilaShares struct {
	csi.UnimplementedNodeServer
	name    string
	mounter mount.Interface
	turns
}

func newManilaNode(name string, mounter mount.Interface) *manilaShares {
	return &manilaShares{name: name, mounter: mounter,
		turns: turns{refusal: "something is being done at %s already: where that stays so, the server of the share may not answer"}}
}

func (n *manilaShares) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: capabilities(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)}, nil
}

func (n *manilaShares) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: n.name, AccessibleTopology: &csi.Topology{Segments: map[string]string{manilaNodeLabel: "true"}}}, nil
}

// mounted reports whether a path is a mount point, without accessing the mounted file system.
func (n *manilaShares) mounted(path string) (bool, error) {
	list, err := n.mounter.List()
	if err != nil {
		return false, fmt.Errorf("look at what is mounted: %w", err)
	}
	for _, one := range list {
		if one.Path == path {
			return true, nil
		}
	}
	return false, nil
}

// NodeStageVolume mounts a share over NFS, once for all pods of the node.
func (n *manilaShares) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.StagingTargetPath); err != nil {
		return nil, err
	}
	asked, export := r.GetVolumeCapability().GetMount(), r.PublishContext[manilaExport]
	switch {
	case asked == nil:
		return nil, status.Error(codes.InvalidArgument, "a share of Manila is a file system, and no block device")
	case !exportForm.MatchString(export):
		return nil, status.Errorf(codes.InvalidArgument, "share %s is said to be mounted from %q, which is no export of NFS such as 10.0.0.5:/shares/1: shares of other protocols are not mounted here", r.VolumeId, export)
	}
	done, err := n.alone(r.StagingTargetPath)
	if err != nil {
		return nil, err
	}
	defer done()
	there, err := n.mounted(r.StagingTargetPath)
	if err != nil {
		return nil, err
	}
	if there {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	if err := os.MkdirAll(r.StagingTargetPath, 0o750); err != nil {
		return nil, fmt.Errorf("make the place of the share: %w", err)
	}
	if err := n.mounter.Mount(export, r.StagingTargetPath, "nfs", asked.MountFlags); err != nil {
		return nil, fmt.Errorf("mount share %s: %w", r.VolumeId, err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// unmount has nothing be mounted at a path, nor the path be there.
func (n *manilaShares) unmount(path string) error {
	done, err := n.alone(path)
	if err != nil {
		return err
	}
	defer done()
	there, err := n.mounted(path)
	if err != nil {
		return err
	}
	if there {
		if err := n.mounter.Unmount(path); err != nil {
			return fmt.Errorf("unmount %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the place of the share: %w", err)
	}
	return nil
}

// NodeUnstageVolume unmounts a share.
func (n *manilaShares) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.StagingTargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeUnstageVolumeResponse{}, n.unmount(r.StagingTargetPath)
}

// NodePublishVolume shows a pod its share.
func (n *manilaShares) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.TargetPath); err != nil {
		return nil, err
	}
	done, err := n.alone(r.TargetPath)
	if err != nil {
		return nil, err
	}
	defer done()
	there, err := n.mounted(r.StagingTargetPath)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, status.Errorf(codes.FailedPrecondition, "share %s is not mounted at %q", r.VolumeId, r.StagingTargetPath)
	}
	if there, err = n.mounted(r.TargetPath); err != nil {
		return nil, err
	}
	if there { // by an earlier call
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := os.MkdirAll(r.TargetPath, 0o750); err != nil {
		return nil, fmt.Errorf("make the place of the share: %w", err)
	}
	options := []string{"bind"}
	if r.Readonly {
		options = append(options, "ro")
	}
	if err := n.mounter.Mount(r.StagingTargetPath, r.TargetPath, "", options); err != nil {
		return nil, fmt.Errorf("bind %s at %s: %w", r.StagingTargetPath, r.TargetPath, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *manilaShares) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.TargetPath); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, n.unmount(r.TargetPath)
}

// NodeGetVolumeStats returns the use of a share.
func (n *manilaShares) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := publishArguments(r.VolumeId, r.VolumePath); err != nil {
		return nil, err
	}
	done, err := n.alone("full " + r.VolumePath) // so that a server which does not answer has one call wait
	if err != nil {
		return nil, err
	}
	defer done()
	there, err := n.mounted(r.VolumePath)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, status.Errorf(codes.NotFound, "share %s is not at %s", r.VolumeId, r.VolumePath)
	}
	usage, err := usageOf(r.VolumePath)
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: usage[:1]}, nil // a server of NFS may count no files
}
