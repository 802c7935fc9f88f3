package main

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	v1 "k8s.io/api/core/v1"
)

// fileSystemParameter is the parameter of a class for the file system of its volumes, as in all CSI drivers.
const fileSystemParameter = "csi.storage.k8s.io/fstype"

// fileSystemOf is the file system of a class's volumes.
func fileSystemOf(parameters map[string]string) (string, error) {
	switch asked := parameters[fileSystemParameter]; asked {
	case "":
		return cinderFileSystem, nil
	case "ext4", "xfs":
		return asked, nil
	default:
		return "", fmt.Errorf("the class has the parameter %s with %s: volumes of Cinder have ext4 or xfs here", fileSystemParameter, asked)
	}
}

// SupportsBlock is controller.BlockProvisioner's, without which claims of block devices are refused.
func (cinderProvisioner) SupportsBlock(context.Context) bool { return true }

func isBlock(mode *v1.PersistentVolumeMode) bool {
	return mode != nil && *mode == v1.PersistentVolumeBlock
}

// capabilitiesOf returns the required capabilities of a volume, for each access mode of a claim.
func capabilitiesOf(claim v1.PersistentVolumeClaimSpec, fileSystem string, options []string) (all []*csi.VolumeCapability) {
	for _, mode := range claim.AccessModes {
		one := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER}}
		if mode == v1.ReadWriteOncePod {
			one.AccessMode.Mode = csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER
		}
		if isBlock(claim.VolumeMode) {
			one.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		} else {
			one.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fileSystem, MountFlags: options}}
		}
		all = append(all, one)
	}
	return all
}
