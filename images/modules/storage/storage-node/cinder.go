package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
)

const (
	// cinderDriver is the driver of volumes that are Cinder's, which the cloud attaches to the server that the node is.
	cinderDriver = "cinder.burano.io"
	// cinderNodeLabel is the label, with the value true, of nodes that such volumes can be attached to, and cinderZoneLabel that of their zone.
	cinderNodeLabel = "cinder.burano.io/node"
	cinderZoneLabel = "cinder.burano.io/zone"
	// cinderLimit is how many of them a node may have by virtio-blk: a server of QEMU has 32 places for devices, of which its own disks, interfaces and controllers
	// take some. scsiLimit is how many it may have by virtio-scsi, where all disks are at one controller, which has 255 of them.
	cinderLimit, scsiLimit = 20, 100
	// blocksFolder has the block devices of a machine, and containerMark is there in containers, which see the machine's.
	blocksFolder, containerMark = "/sys/block", "/run/systemd/container"
	// The file systems of volumes: ext4 is the default.
	ext4 = "ext4"
	xfs  = "xfs"
	// devicesByID has the disks by their own ids.
	devicesByID = "/dev/disk/by-id"
	// devicePatience is how long an attached device may take to be there, and deviceEvery how often it is looked for.
	devicePatience = 30 * time.Second
	deviceEvery    = 100 * time.Millisecond
)

// cinderName is the id of a volume.
var cinderName = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// byVirtioSCSI is in the path of a disk at such a controller.
var byVirtioSCSI = regexp.MustCompile(`/virtio\d+/host\d+/`)

// cinderNode is the node's part of the driver.
type cinderNode struct {
	csi.UnimplementedNodeServer
	name, zone string // zone is "" where it is not known
	devices    string
	limit      int64 // of volumes
	mounter    *mount.SafeFormatAndMount
	turns
}

func newCinderNode(name, zone string, mounter *mount.SafeFormatAndMount) *cinderNode {
	return &cinderNode{name: name, zone: zone, devices: devicesByID, limit: volumeLimit(blocksFolder, containerMark), mounter: mounter, turns: turns{refusal: "something is being done with volume %s already"}}
}

// volumeLimit reads from the bus of a server's own disks how many volumes it may have: Nova attaches all disks of a server to the same one.
func volumeLimit(blocks, container string) int64 {
	if _, err := os.Stat(container); err == nil {
		return cinderLimit
	}
	disks, _ := filepath.Glob(filepath.Join(blocks, "sd*"))
	for _, disk := range disks {
		if place, err := filepath.EvalSymlinks(disk); err == nil && byVirtioSCSI.MatchString(place) {
			return scsiLimit
		}
	}
	return cinderLimit
}

func (n *cinderNode) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{Capabilities: capabilities(csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER)}, nil
}

func (n *cinderNode) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	where := map[string]string{cinderNodeLabel: "true"}
	if n.zone != "" {
		where[cinderZoneLabel] = n.zone
	}
	return &csi.NodeGetInfoResponse{NodeId: n.name, MaxVolumesPerNode: n.limit, AccessibleTopology: &csi.Topology{Segments: where}}, nil
}

// device returns the device of an attached volume: /dev/vdb. The serial number of a disk is the first 20 characters of its volume's id, over virtio or
// SCSI.
func (n *cinderNode) device(ctx context.Context, volume string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, devicePatience)
	defer cancel()
	for {
		for _, name := range []string{"virtio-" + volume[:20], "scsi-0QEMU_QEMU_HARDDISK_" + volume[:20], "scsi-0QEMU_QEMU_HARDDISK_" + volume} {
			found, err := filepath.EvalSymlinks(filepath.Join(n.devices, name))
			if err == nil {
				return found, nil
			}
			if !errors.Is(err, os.ErrNotExist) {
				return "", fmt.Errorf("look for the device of volume %s: %w", volume, err)
			}
		}
		select {
		case <-ctx.Done():
			return "", status.Errorf(codes.NotFound, "no device of volume %s is on this node (in %s), though the cloud says that it is attached: look at the server's kernel log, and whether its image has udev",
				volume, n.devices)
		case <-time.After(deviceEvery):
		}
	}
}

// stageArguments checks a call's volume and its place on the node.
func stageArguments(volume, path string) error {
	if !cinderName.MatchString(volume) {
		return status.Errorf(codes.InvalidArgument, "%q is no id of a volume", volume)
	}
	return publishArguments(volume, path)
}

// NodeStageVolume mounts a volume. It is formatted where nothing is on it, and never else. One that is used as a block device stays as it is.
func (n *cinderNode) NodeStageVolume(ctx context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := stageArguments(r.VolumeId, r.StagingTargetPath); err != nil {
		return nil, err
	}
	if err := suits(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	done, err := n.alone(r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	device, err := n.device(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	if r.VolumeCapability.GetBlock() != nil {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	if err := os.MkdirAll(r.StagingTargetPath, 0o750); err != nil {
		return nil, fmt.Errorf("make the place of the volume: %w", err)
	}
	there, err := n.mounter.IsMountPoint(r.StagingTargetPath)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", r.StagingTargetPath, err)
	}
	if there {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	kind := cmp.Or(r.VolumeCapability.GetMount().FsType, ext4)
	if err := n.usable(device, r.VolumeId, kind); err != nil {
		return nil, err
	}
	options := slices.Clone(r.VolumeCapability.GetMount().MountFlags)
	if kind == xfs {
		options = append(options, "nouuid") // a copy of a volume has its UUID, and may be mounted on the same node
	}
	if err := n.mounter.FormatAndMount(device, r.StagingTargetPath, kind, options); err != nil {
		return nil, fmt.Errorf("mount volume %s: %w", r.VolumeId, err)
	}
	if err := n.growStaged(device, r.StagingTargetPath, kind, options); err != nil {
		return nil, fmt.Errorf("have the file system of volume %s fill it: %w", r.VolumeId, err)
	}
	return &csi.NodeStageVolumeResponse{}, nil
}

// suits refuses capabilities that a volume cannot have on a node.
func suits(capability *csi.VolumeCapability) error {
	asked := capability.GetMount()
	switch {
	case capability.GetBlock() != nil:
	case asked == nil:
		return status.Error(codes.InvalidArgument, "say whether the volume is to be a file system or a block device")
	case asked.FsType != "" && asked.FsType != ext4 && asked.FsType != xfs:
		return status.Errorf(codes.InvalidArgument, "the file system %s is asked for, and volumes of Cinder have %s or %s here", asked.FsType, ext4, xfs)
	}
	return nil
}

// usable makes sure that a device has this kind of file system, or nothing. The probe treats a device that cannot be read as an empty one.
func (n *cinderNode) usable(device, volume, kind string) error {
	opened, err := os.Open(device)
	if err != nil {
		return fmt.Errorf("open the device of volume %s: %w", volume, err)
	}
	defer opened.Close()
	if _, err := opened.ReadAt(make([]byte, 64<<10), 0); err != nil {
		return fmt.Errorf("read the device of volume %s, which is left as it is: %w", volume, err)
	}
	found, err := n.mounter.GetDiskFormat(device)
	if err != nil {
		return fmt.Errorf("find out what is on the device of volume %s, which is left as it is: %w", volume, err)
	}
	if found != "" && found != kind {
		return status.Errorf(codes.FailedPrecondition, "volume %s has something else on it than %s (%s), and is left as it is: nothing is ever formatted that is not empty", volume, kind, found)
	}
	return nil
}

// growStaged has the file system at a place where no pod has it yet be as large as its device. The kernel lets one grow while it is mounted, unless it is an ext4 and the
// kernel that of a machine of which the node is only a container.
func (n *cinderNode) growStaged(device, place, kind string, options []string) error {
	err := n.grow(device, place)
	if err == nil || kind != ext4 {
		return err
	}
	if failed := n.mounter.Unmount(place); failed != nil {
		return errors.Join(err, failed)
	}
	const mended = 1 // e2fsck(8)
	if output, failed := n.mounter.Exec.Command("e2fsck", "-f", "-p", device).CombinedOutput(); failed != nil {
		var exit interface{ ExitStatus() int }
		if !errors.As(failed, &exit) || exit.ExitStatus() > mended {
			return errors.Join(err, fmt.Errorf("e2fsck: %w: %s", failed, output))
		}
	}
	if output, failed := n.mounter.Exec.Command("resize2fs", device).CombinedOutput(); failed != nil {
		return errors.Join(err, fmt.Errorf("resize2fs: %w: %s", failed, output))
	}
	return n.mounter.Mount(device, place, kind, options)
}

func (n *cinderNode) grow(device, place string) error {
	resizer := mount.NewResizeFs(n.mounter.Exec)
	larger, err := resizer.NeedResize(device, place)
	if err != nil || !larger {
		return err
	}
	_, err = resizer.Resize(device, place)
	return err
}

// NodeUnstageVolume unmounts a volume.
func (n *cinderNode) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.StagingTargetPath); err != nil {
		return nil, err
	}
	done, err := n.alone(r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := mount.CleanupMountPoint(r.StagingTargetPath, n.mounter, true); err != nil {
		return nil, fmt.Errorf("unmount %s: %w", r.StagingTargetPath, err)
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// NodePublishVolume shows a pod its volume.
func (n *cinderNode) NodePublishVolume(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if err := publishArguments(r.VolumeId, r.TargetPath); err != nil {
		return nil, err
	}
	if err := suits(r.GetVolumeCapability()); err != nil {
		return nil, err
	}
	if r.VolumeCapability.GetBlock() != nil {
		return n.publishDevice(ctx, r)
	}
	there, err := n.mounter.IsMountPoint(r.StagingTargetPath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("look at %s: %w", r.StagingTargetPath, err)
	}
	if !there {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is not mounted at %q", r.VolumeId, r.StagingTargetPath)
	}
	options := []string{"bind"}
	if r.Readonly {
		options = append(options, "ro")
	}
	if err := bindOnce(n.mounter, r.StagingTargetPath, r.TargetPath, options); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (n *cinderNode) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	return unpublish(n.mounter, r)
}

// NodeExpandVolume has the file system of a volume that has grown be as large as it, while pods use it.
func (n *cinderNode) NodeExpandVolume(ctx context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if err := stageArguments(r.VolumeId, r.VolumePath); err != nil {
		return nil, err
	}
	done, err := n.alone(r.VolumeId)
	if err != nil {
		return nil, err
	}
	defer done()
	block, err := isDevice(r.VolumePath)
	if err != nil {
		return nil, err
	}
	if block { // it has the cloud's size
		return &csi.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, nil
	}
	device, err := n.device(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	if err := n.grow(device, r.VolumePath); err != nil {
		if strings.Contains(err.Error(), "Permission denied") {
			return nil, status.Errorf(codes.FailedPrecondition, "the kernel lets no file system grow while this node has it mounted: it grows when the next pod of the claim starts (%v)", err)
		}
		return nil, err
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: r.GetCapacityRange().GetRequiredBytes()}, nil
}

// NodeGetVolumeStats returns the use of a volume.
func (n *cinderNode) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if err := publishArguments(r.VolumeId, r.VolumePath); err != nil {
		return nil, err
	}
	there, err := n.mounter.IsMountPoint(r.VolumePath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if !there {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s", r.VolumeId, r.VolumePath)
	}
	if block, err := isDevice(r.VolumePath); err != nil || block {
		size, failed := sizeOfDevice(r.VolumePath)
		if err := errors.Join(err, failed); err != nil {
			return nil, err
		}
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: size}}}, nil
	}
	usage, err := usageOf(r.VolumePath)
	return &csi.NodeGetVolumeStatsResponse{Usage: usage}, err
}
