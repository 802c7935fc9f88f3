package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/mount-utils"
)

// TestAShareIsMountedFromAServer needs root, a kernel with NFS, mount.nfs, and a server: BURANO_NFS_EXPORT is the export, such as 10.0.0.5:/shares/1, and
// BURANO_NFS_OPTIONS its options, separated by commas.
func TestAShareIsMountedFromAServer(t *testing.T) {
	export := os.Getenv("BURANO_NFS_EXPORT")
	if export == "" {
		t.Skip("BURANO_NFS_EXPORT names no export of a server")
	}
	var options []string
	if text := os.Getenv("BURANO_NFS_OPTIONS"); text != "" {
		options = strings.Split(text, ",")
	}
	mounter := mount.New("")
	capability := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: options}}}
	// Two nodes are two places here: each mounts the share for itself, and shows it to a pod.
	pods := map[string]string{}
	for _, name := range []string{"n1", "n2"} {
		folder := t.TempDir()
		node := newManilaNode(name, mounter)
		staged, pod := filepath.Join(folder, "staged"), filepath.Join(folder, "pod")
		t.Cleanup(func() {
			if _, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "share", TargetPath: pod}); err != nil {
				t.Error(err)
			}
			if _, err := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "share", StagingTargetPath: staged}); err != nil {
				t.Error(err)
			}
			if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
				t.Error(entries, err)
			}
		})
		_, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "share", StagingTargetPath: staged, VolumeCapability: capability,
			PublishContext: map[string]string{"export": export}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "share", StagingTargetPath: staged, TargetPath: pod, Readonly: name == "n2"}); err != nil {
			t.Fatal(err)
		}
		stats, err := node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: "share", VolumePath: pod})
		if err != nil || stats.Usage[0].Total == 0 {
			t.Error(stats, err)
		}
		pods[name] = pod
	}
	list, err := mounter.List()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, one := range list {
		kinds[one.Path] = one.Type
	}
	for name, pod := range pods {
		if kinds[pod] != "nfs4" {
			t.Errorf("the pod of %s has a file system of the type %q", name, kinds[pod])
		}
	}
	if err := os.WriteFile(filepath.Join(pods["n1"], "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(pods["n2"], "file")); err != nil || string(text) != "kept" {
		t.Errorf("%q, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(pods["n2"], "other"), nil, 0o600); err == nil {
		t.Error("a pod that is to read alone writes")
	}
	if err := os.Remove(filepath.Join(pods["n1"], "file")); err != nil {
		t.Error(err)
	}
}
