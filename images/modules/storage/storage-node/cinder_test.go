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

// attached is a node whose device of a volume is a file: formatting, checking and growing are real, and mounting is not.
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
	node = newCinderNode("n1", "", mount.NewSafeFormatAndMount(mount.NewFakeMounter(nil), exec.New()))
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
	node := newCinderNode("n1", "", mount.NewSafeFormatAndMount(mount.NewFakeMounter(nil), exec.New()))
	node.devices = t.TempDir()
	for text, request := range map[string]*csi.NodeStageVolumeRequest{
		"is no id of a volume":            {VolumeId: "../../etc", StagingTargetPath: "/x", VolumeCapability: mounted("")},
		"a file system or a block device": {VolumeId: cinderVolume, StagingTargetPath: "/x", VolumeCapability: &csi.VolumeCapability{}},
		"the file system btrfs":           {VolumeId: cinderVolume, StagingTargetPath: "/x", VolumeCapability: mounted("btrfs")},
		"at which absolute path":          {VolumeId: cinderVolume, StagingTargetPath: "x", VolumeCapability: mounted("")},
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

func TestAVolumeIsABlockDeviceAndStaysEmpty(t *testing.T) {
	node, device, _ := attached(t, nil)
	block := &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	folder := filepath.Dir(device)
	staged, target := filepath.Join(folder, "staged"), filepath.Join(folder, "pod")
	stage := &csi.NodeStageVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: staged, VolumeCapability: block}
	must(node.NodeStageVolume(t.Context(), stage))(t)
	publish := &csi.NodePublishVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: staged, TargetPath: target, VolumeCapability: block}
	for range 2 { // again is fine
		must(node.NodePublishVolume(t.Context(), publish))(t)
	}
	points := must(node.mounter.List())(t)
	if len(points) != 1 || points[0].Device != device || points[0].Path != target {
		t.Fatalf("mounted is %v", points)
	}
	if content := must(os.ReadFile(device))(t); !bytes.Equal(content, make([]byte, len(content))) {
		t.Fatal("something was written to it")
	}
	size := must(os.Stat(device))(t).Size()
	must("", os.WriteFile(target, make([]byte, size), 0o600))(t) // a placeholder, since nothing is bound here
	stats := must(node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: cinderVolume, VolumePath: target}))(t)
	if len(stats.Usage) != 1 || stats.Usage[0].Total != size {
		t.Fatalf("it says %v", stats.Usage)
	}
	must(node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: cinderVolume, VolumePath: target, VolumeCapability: block}))(t)
	publish.Readonly = true
	must(node.NodePublishVolume(t.Context(), publish))(t)
	must(node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: cinderVolume, TargetPath: target}))(t)
	if _, err := os.Stat(target); !os.IsNotExist(err) {
		t.Fatalf("its place is left: %v", err)
	}
	must(node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: cinderVolume, StagingTargetPath: staged}))(t)
	_, err := node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: cinderVolume, VolumePath: target})
	expect(t, err, codes.NotFound, "no volume is at")
}

// A kernel that has xfs mounts it, has it grow while it is mounted, and mounts a copy of it beside it.
func TestAVolumeWithXFSGrowsWhileItIsMounted(t *testing.T) {
	_, device, _ := attached(t, nil)
	for _, program := range []string{"mkfs.xfs", "xfs_growfs", "losetup"} {
		if _, err := osexec.LookPath(program); err != nil {
			t.Skipf("it needs %s: %v", program, err)
		}
	}
	if kernel, err := os.ReadFile("/proc/filesystems"); err != nil || !bytes.Contains(kernel, []byte("\txfs\n")) || os.Getuid() != 0 {
		t.Skipf("nobody mounts xfs here: %v", err)
	}
	const small, large = 512 << 20, 1 << 30
	folder := filepath.Dir(device)
	show := func(name, file string) (loop string) {
		t.Helper()
		output, err := osexec.Command("losetup", "--find", "--show", file).CombinedOutput()
		if err != nil {
			t.Skipf("this machine has no loop devices: %v: %s", err, output)
		}
		loop = strings.TrimSpace(string(output))
		t.Cleanup(func() { _ = osexec.Command("losetup", "--detach", loop).Run() })
		link := filepath.Join(folder, "by-id", "virtio-"+name[:20])
		_ = os.Remove(link)
		must("", os.Symlink(loop, link))(t)
		return loop
	}
	must("", os.Truncate(device, small))(t)
	loop := show(cinderVolume, device)
	node := newCinderNode("n1", "", mount.NewSafeFormatAndMount(mount.New(""), exec.New()))
	node.devices = filepath.Join(folder, "by-id")
	stage := func(volume, place string) {
		t.Helper()
		must(node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: volume, StagingTargetPath: place, VolumeCapability: mounted("xfs")}))(t)
		t.Cleanup(func() { _ = osexec.Command("umount", place).Run() })
	}
	place := filepath.Join(folder, "staged")
	stage(cinderVolume, place)
	must("", os.WriteFile(filepath.Join(place, "file"), []byte("kept"), 0o600))(t)
	size := func(place string) int64 {
		t.Helper()
		stats := must(node.NodeGetVolumeStats(t.Context(), &csi.NodeGetVolumeStatsRequest{VolumeId: cinderVolume, VolumePath: place}))(t)
		return stats.Usage[0].Total
	}
	if now := size(place); now > small {
		t.Fatalf("it has %d bytes", now)
	}
	must("", os.Truncate(device, large))(t)
	if output, err := osexec.Command("losetup", "--set-capacity", loop).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	must(node.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: cinderVolume, VolumePath: place}))(t)
	if now := size(place); now < large*9/10 {
		t.Fatalf("it has %d bytes", now)
	}
	must("", osexec.Command("sync", "-f", place).Run())(t)
	const other = "1b1b2c3d-0000-4000-8000-0123456789ab"
	copied := filepath.Join(folder, "vdc")
	must("", osexec.Command("cp", "--sparse=always", device, copied).Run())(t)
	show(other, copied)
	beside := filepath.Join(folder, "beside")
	stage(other, beside)
	if content := must(os.ReadFile(filepath.Join(beside, "file")))(t); string(content) != "kept" {
		t.Fatalf("it has %q", content)
	}
}

func TestANodeSaysInWhichZoneItIs(t *testing.T) {
	where := func(zone string) map[string]string {
		t.Helper()
		return must(newCinderNode("n1", zone, nil).NodeGetInfo(t.Context(), nil))(t).AccessibleTopology.Segments
	}
	if found := where("az1"); found[cinderNodeLabel] != "true" || found[cinderZoneLabel] != "az1" {
		t.Fatalf("it says %v", found)
	}
	if found := where(""); len(found) != 1 {
		t.Fatalf("it says %v", found)
	}
}

func TestTheBusOfAServersDisksLimitsItsVolumes(t *testing.T) {
	blocks := t.TempDir()
	disk := func(name, place string) {
		t.Helper()
		real := filepath.Join(blocks, "devices", place, name)
		if err := os.MkdirAll(real, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(blocks, name)); err != nil {
			t.Fatal(err)
		}
	}
	none := filepath.Join(blocks, "container")
	limit := func(want int64) {
		t.Helper()
		if got := volumeLimit(blocks, none); got != want {
			t.Fatalf("it is %d, and not %d", got, want)
		}
	}
	disk("vda", "pci0000:00/0000:00:04.0/virtio1/block")
	limit(cinderLimit)
	disk("sda", "pci0000:00/0000:00:1f.2/ata1/host0/target0:0:0/0:0:0:0/block") // a config drive by SATA
	limit(cinderLimit)
	disk("sdb", "pci0000:00/0000:00:05.0/virtio2/host2/target2:0:0/2:0:0:0/block")
	limit(scsiLimit)
	if err := os.WriteFile(none, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	limit(cinderLimit)
}
