package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/mount-utils"
)

func TestAShareIsMountedOnceAndBoundForEachPod(t *testing.T) {
	folder := t.TempDir()
	staged, first, second := filepath.Join(folder, "staged"), filepath.Join(folder, "first"), filepath.Join(folder, "second")
	mounter := mount.NewFakeMounter(nil)
	node := newManilaNode("n1", mounter)
	stage := func(export string) error {
		_, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "share", StagingTargetPath: staged, PublishContext: map[string]string{"export": export},
			VolumeCapability: &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{"nconnect=4"}}}}})
		return err
	}
	publish := func(target string, readonly bool) error {
		_, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "share", StagingTargetPath: staged, TargetPath: target, Readonly: readonly})
		return err
	}
	for _, export := range []string{"", "/shares/1", "-o:/x", "10.0.0.5:relative", "10.0.0.5:/a b", "//10.0.0.5/share"} {
		if err := stage(export); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", export, err)
		}
	}
	if err := publish(first, false); status.Code(err) != codes.FailedPrecondition {
		t.Fatal(err)
	}
	for range 2 {
		must("", stage("10.0.0.5:/shares/1"))(t)
		must("", publish(first, false))(t)
		must("", publish(second, true))(t)
	}
	list, err := mounter.List()
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if one := list[0]; one.Device != "10.0.0.5:/shares/1" || one.Type != "nfs" || one.Path != staged || len(one.Opts) != 1 || one.Opts[0] != "nconnect=4" {
		t.Errorf("it is mounted as %v", one)
	}
	stats, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "share", VolumePath: first})
	if err != nil || stats.Usage[0].Total == 0 {
		t.Error(stats, err)
	}
	for range 2 {
		for _, target := range []string{first, second} {
			if _, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "share", TargetPath: target}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "share", StagingTargetPath: staged}); err != nil {
			t.Fatal(err)
		}
	}
	if list, err = mounter.List(); err != nil || len(list) != 0 {
		t.Error(list, err)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Error(entries, err)
	}
	if _, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "share", VolumePath: first}); status.Code(err) != codes.NotFound {
		t.Error(err)
	}
}
