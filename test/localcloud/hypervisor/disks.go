package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Disk is a block device that a server has beside its own disk: a loop device of the machine over a file.
type Disk struct {
	Device   string // its name in the server, like vdb
	File     string // its content, raw
	Serial   string // names it below /dev/disk/by-id as a virtio disk is named, by its first 20 characters
	ReadOnly bool
}

// rootDevice is the disk that a server runs from. Without one among its disks it runs from an overlay over its image.
const rootDevice = "vda"

// rootDisk is the disk that a server runs from, if it is no overlay over an image.
func (s Server) rootDisk() (Disk, bool) {
	i := slices.IndexFunc(s.Disks, func(disk Disk) bool { return disk.Device == rootDevice })
	if i < 0 {
		return Disk{}, false
	}
	return s.Disks[i], true
}

// mountDisk mounts the disk that a server runs from, on a file system as large as the disk.
func mountDisk(ctx context.Context, root Disk, d disk) error {
	loop, err := openLoop(ctx, root)
	if err != nil {
		return err
	}
	// The remains of a crash in the journal go first. Only a file system that is not mounted may grow without the machine's own rights.
	const mended = 1 // e2fsck(8)
	if err := run(exec.CommandContext(ctx, "e2fsck", "-p", loop), mended); err != nil {
		return err
	}
	if err := run(exec.CommandContext(ctx, "resize2fs", "-f", loop)); err != nil {
		return err
	}
	if err := unix.Mount(loop, d.path("root"), "ext4", 0, ""); err != nil {
		return fmt.Errorf("mount the file system of its disk, an ext4: %w", err)
	}
	return nil
}

// WriteImage makes a disk of an image: an ext4 over the whole of a file that is there, with all that is in the image.
func (h *Hypervisor) WriteImage(ctx context.Context, imageID, file string) error {
	if err := checkID("an image", imageID); err != nil {
		return err
	}
	defer h.lock("image " + imageID)()
	if !h.HasImage(imageID) {
		return fmt.Errorf("there is no image %s", imageID)
	}
	return run(exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-d", h.imageFolder(imageID), file))
}

// run runs a command, whose last line has the reason of a failure; it may also end with one of these codes.
func run(command *exec.Cmd, fine ...int) error {
	output, err := command.CombinedOutput()
	if err != nil && !slices.Contains(fine, command.ProcessState.ExitCode()) {
		return fmt.Errorf("%s: %w: %s", filepath.Base(command.Path), err, lastLine(string(output)))
	}
	return nil
}

// SetDisks gives a server exactly these disks, at once when it runs and in any case when it is started again. Its present ones stay. A disk that is
// removed while the server has it mounted goes when it is unmounted.
func (h *Hypervisor) SetDisks(ctx context.Context, id string, disks []Disk) error {
	if err := checkID("a server", id); err != nil {
		return err
	}
	defer h.lock("server " + id)()
	server, err := h.load(id)
	if err != nil {
		return fmt.Errorf("set the disks of server %s: %w", id, err)
	}
	former := server.Disks
	server.Disks = disks
	if err := writeJSON(h.disk(id).path("server.json"), server); err != nil {
		return fmt.Errorf("set the disks of server %s: %w", id, err)
	}
	container, err := h.runc.state(ctx, prefix+id)
	if err == nil && container.alive() {
		gone := slices.DeleteFunc(slices.Clone(former), func(disk Disk) bool { return slices.Contains(disks, disk) })
		disks = slices.DeleteFunc(slices.Clone(disks), func(disk Disk) bool { return slices.Contains(former, disk) && hasDisk(container, disk) })
		err = errors.Join(unplug(ctx, container, gone), plug(ctx, container, disks))
	}
	if err != nil {
		return fmt.Errorf("set the disks of server %s: %w", id, err)
	}
	return nil
}

// hasDisk reports whether a running server has a disk already.
func hasDisk(container container, disk Disk) bool {
	_, err := os.Stat(filepath.Join(devices(container), disk.Device))
	return err == nil
}

// link is udev's name of a virtio disk by its serial number.
func (d Disk) link() string { return "virtio-" + d.Serial[:min(20, len(d.Serial))] }

// devices is the folder /dev of a server that runs, seen from here: whatever is in the server needs no programs for its disks.
func devices(container container) string { return fmt.Sprintf("/proc/%d/root/dev", container.PID) }

const byID = "disk/by-id"

// plug shows its disks to a server that runs.
func plug(ctx context.Context, container container, disks []Disk) error {
	if len(disks) > 0 {
		if err := showLoops(devices(container)); err != nil {
			return fmt.Errorf("show loop devices to the server: %w", err)
		}
	}
	for _, disk := range disks {
		loop, err := openLoop(ctx, disk)
		if err != nil {
			return err
		}
		var found unix.Stat_t
		if err := unix.Stat(loop, &found); err != nil {
			return fmt.Errorf("look at %s: %w", loop, err)
		}
		folder := devices(container)
		node, link := filepath.Join(folder, disk.Device), filepath.Join(folder, byID, disk.link())
		if err := errors.Join(remove(node), remove(link), os.MkdirAll(filepath.Dir(link), 0o755)); err != nil {
			return fmt.Errorf("show disk %s to the server: %w", disk.Device, err)
		}
		if err := errors.Join(unix.Mknod(node, unix.S_IFBLK|0o660, int(found.Rdev)), os.Symlink("../../"+disk.Device, link)); err != nil {
			return fmt.Errorf("show disk %s to the server: %w", disk.Device, err)
		}
	}
	return nil
}

// shownLoops is the number of loop devices that a server with disks sees. They are the machine's, of which all servers use free ones.
const shownLoops = 256

// showLoops gives a server's folder of devices the machine's loop devices: a kubelet holds on by them to the disks that pods have as devices.
func showLoops(folder string) error {
	control := filepath.Join(folder, "loop-control")
	if _, err := os.Stat(control); err == nil {
		return nil
	}
	for i := range shownLoops {
		node := filepath.Join(folder, fmt.Sprintf("loop%d", i))
		if err := unix.Mknod(node, unix.S_IFBLK|0o660, int(unix.Mkdev(7, uint32(i)))); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return unix.Mknod(control, unix.S_IFCHR|0o660, int(unix.Mkdev(10, 237)))
}

func unplug(ctx context.Context, container container, disks []Disk) error {
	for _, disk := range disks {
		folder := devices(container)
		if err := errors.Join(remove(filepath.Join(folder, disk.Device)), remove(filepath.Join(folder, byID, disk.link()))); err != nil {
			return fmt.Errorf("take disk %s from the server: %w", disk.Device, err)
		}
		if err := closeLoops(ctx, func(file string) bool { return file == disk.File }); err != nil {
			return err
		}
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// openLoop returns the loop device over a disk's file, which is made when there is none.
func openLoop(ctx context.Context, disk Disk) (string, error) {
	known, err := loops()
	if err != nil {
		return "", err
	}
	for device, file := range known {
		if file == disk.File {
			return device, nil
		}
	}
	arguments := []string{"--find", "--show", disk.File}
	if disk.ReadOnly {
		arguments = append([]string{"--read-only"}, arguments...)
	}
	return losetup(ctx, arguments...)
}

// CloseLoops frees the loop devices over files below a folder that a dead process has left.
func CloseLoops(ctx context.Context, folder string) error {
	return closeLoops(ctx, func(file string) bool { return strings.HasPrefix(file, folder+"/") })
}

// GrowLoop has the loop device over a file, if there is one, see the size that the file has now.
func GrowLoop(ctx context.Context, file string) error {
	known, err := loops()
	for device, over := range known {
		if over == file {
			_, failed := losetup(ctx, "--set-capacity", device)
			err = errors.Join(err, failed)
		}
	}
	return err
}

func closeLoops(ctx context.Context, over func(file string) bool) error {
	known, err := loops()
	for device, file := range known {
		if !over(file) {
			continue
		}
		above, failed := loopsOver(device, known)
		err = errors.Join(err, failed)
		for _, one := range append(above, device) {
			_, failed := losetup(ctx, "--detach", one)
			err = errors.Join(err, failed)
		}
	}
	return err
}

// loopsOver are the loop devices that a server has made over one, whatever it called that.
func loopsOver(device string, known map[string]string) (above []string, err error) {
	var below unix.Stat_t
	if err := unix.Stat(device, &below); err != nil {
		return nil, fmt.Errorf("look at %s: %w", device, err)
	}
	for other := range known {
		opened, failed := os.Open(other)
		if failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		if info, failed := unix.IoctlLoopGetStatus64(int(opened.Fd())); failed == nil && info.Rdevice == below.Rdev { // it fails for one that was freed meanwhile
			above = append(above, other)
		}
		err = errors.Join(err, opened.Close())
	}
	return above, err
}

// loops are the files below the machine's loop devices, by device.
func loops() (map[string]string, error) {
	entries, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, entry := range entries {
		file, err := os.ReadFile(entry)
		if err != nil {
			continue // freed meanwhile
		}
		device := strings.Split(entry, "/")[3]
		found["/dev/"+device] = strings.TrimSuffix(strings.TrimSuffix(string(file), "\n"), " (deleted)")
	}
	return found, nil
}

func losetup(ctx context.Context, arguments ...string) (string, error) {
	output, err := exec.CommandContext(ctx, "losetup", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("losetup %s: %w: %s", arguments[0], err, lastLine(string(output)))
	}
	return strings.TrimSpace(string(output)), nil
}
