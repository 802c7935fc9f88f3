package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// publishDevice gives a pod its volume as a block device: the device itself is bound over a file, from which the kubelet gives it to containers, without
// the right to write for a pod that only reads.
func (n *cinderNode) publishDevice(ctx context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	device, err := n.device(ctx, r.VolumeId)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(r.TargetPath, os.O_CREATE, 0o600)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("make the place of the device: %w", err)
	}
	there, err := n.mounter.IsMountPoint(r.TargetPath)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", r.TargetPath, err)
	}
	if !there {
		if err := n.mounter.Mount(device, r.TargetPath, "", []string{"bind"}); err != nil {
			return nil, fmt.Errorf("bind %s at %s: %w", device, r.TargetPath, err)
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// isDevice reports whether a pod has a volume as a block device.
func isDevice(path string) (bool, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, status.Errorf(codes.NotFound, "no volume is at %s", path)
	}
	if err != nil {
		return false, err
	}
	return !info.IsDir(), nil
}

// sizeOfDevice is in bytes.
func sizeOfDevice(path string) (int64, error) {
	device, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer device.Close()
	size, err := device.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, fmt.Errorf("look how large %s is: %w", path, err)
	}
	return size, nil
}
