package main

import (
	"bytes"
	"context"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
)

const cinderVolume = "0a1b2c3d-0000-4000-8000-0123456789ab"

// attached is a node whose device of a volume is a file: what formats, checks and enlarges is real, and what mounts is not.
func attached(t *testing.T, content []byte) (node *cinderNode, device string, stage func() error) {
	t.Helper()
	for _, program := range []string{"blkid", "mkfs.ext4", "e2fsck", "resize2fs", "dumpe2fs"} {
		if _, err := osexec.LookPath(program); err != nil {
			t.Skipf("it needs %s: %v", program, err)
		}
	}
	folder := t.TempDir()
	device = filepath.Join(folder, "vdb")
	if err := os.WriteFile(device, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(device, 8<<20); err != nil {
		t.Fatal(err)
	}
	node = newCinderNode("n1", mount.NewSafeFormatAndMount(mount.NewFakeMounter(nil), exec.New()))
	node.devices = filepath.Join(folder, "by-id")
	if err := os.Mkdir(node.devices, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../vdb", filepath.Join(node.devices, "virtio-0a1b2c3d-0000-4000-8")); err != nil {
		t.Fatal(err)
	}
	return node, device, func() error {
		_, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: filepath.Join(folder, "staged"), VolumeCapability: mounted("")})
		return err
	}
}

func mounted(fileSystem string) *csi.VolumeCapability {
	return &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fileSystem}}}
}

func superblock(t *testing.T, device string) string {
	t.Helper()
	output, err := osexec.Command("dumpe2fs", "-h", device).Output()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(output)) {
		if strings.HasPrefix(line, "Filesystem UUID") || strings.HasPrefix(line, "Block count") || strings.HasPrefix(line, "Block size") {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(lines, ", ")
}

func TestAnEmptyVolumeIsFormattedOnceAndFillsItsDevice(t *testing.T) {
	node, device, stage := attached(t, nil)
	must("", stage())(t)
	first := superblock(t, device)
	must("", stage())(t)
	if _, err := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: filepath.Join(filepath.Dir(device), "staged")}); err != nil {
		t.Fatal(err)
	}
	must("", stage())(t)
	if again := superblock(t, device); again != first {
		t.Fatalf("it was %s and is %s", first, again)
	}
	must("", node.mounter.Unmount(filepath.Join(filepath.Dir(device), "staged")))(t)
	must("", os.Truncate(device, 32<<20))(t)
	must("", stage())(t)
	uuid, _, _ := strings.Cut(first, ",")
	if larger := superblock(t, device); larger == first || !strings.HasPrefix(larger, uuid) {
		t.Fatalf("it was %s and is %s", first, larger)
	}
}

func TestWhatIsOnAVolumeIsNeverFormattedOver(t *testing.T) {
	table := make([]byte, 64<<10)
	copy(table[446:], []byte{0, 0, 2, 0, 0x83, 1, 1, 0, 1, 0, 0, 0, 0xff, 7, 0, 0})
	table[510], table[511] = 0x55, 0xaa
	other := filepath.Join(t.TempDir(), "other")
	if output, err := osexec.Command("mke2fs", "-q", "-t", "ext2", other, "4M").CombinedOutput(); err != nil {
		t.Skipf("it needs mke2fs: %v: %s", err, output)
	}
	for name, content := range map[string][]byte{"another file system": must(os.ReadFile(other))(t), "a partition table": table} {
		t.Run(name, func(t *testing.T) {
			_, device, stage := attached(t, content)
			expect(t, stage(), codes.FailedPrecondition, "has something else on it than ext4")
			now, err := os.ReadFile(device)
			if err != nil || !bytes.Equal(now[:len(content)], content) {
				t.Fatalf("it was changed, or: %v", err)
			}
		})
	}
}

func TestADeviceThatCannotBeReadIsLeftAlone(t *testing.T) {
	_, device, stage := attached(t, nil)
	must("", os.Truncate(device, 0))(t)
	if err := stage(); err == nil || !strings.Contains(err.Error(), "which is left as it is") {
		t.Fatalf("it says %v", err)
	}
}

func TestWhatAVolumeOfCinderCannotBeIsRefused(t *testing.T) {
	node := newCinderNode("n1", mount.NewSafeFormatAndMount(mount.NewFakeMounter(nil), exec.New()))
	node.devices = t.TempDir()
	block := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	for text, request := range map[string]*csi.NodeStageVolumeRequest{
		"is no id of a volume":   {VolumeId: "../../etc", StagingTargetPath: "/x", VolumeCapability: mounted("")},
		"and no block devices":   {VolumeId: cinderVolume, StagingTargetPath: "/x", VolumeCapability: block},
		"the file system xfs":    {VolumeId: cinderVolume, StagingTargetPath: "/x", VolumeCapability: mounted("xfs")},
		"at which absolute path": {VolumeId: cinderVolume, StagingTargetPath: "x", VolumeCapability: mounted("")},
	} {
		_, err := node.NodeStageVolume(t.Context(), request)
		expect(t, err, codes.InvalidArgument, text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: "/x", VolumeCapability: mounted("")})
	expect(t, err, codes.NotFound, "no device of volume "+cinderVolume)
	_, err = node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: filepath.Join(t.TempDir(), "none"), TargetPath: "/y", VolumeCapability: mounted("")})
	expect(t, err, codes.FailedPrecondition, "is not mounted")
	done := must(node.alone(cinderVolume))(t)
	_, err = node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: "/x"})
	expect(t, err, codes.Aborted, "already")
	done()
}
