package hypervisor

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// overlayMagic is OVERLAYFS_SUPER_MAGIC of linux/magic.h.
const overlayMagic = 0x794c7630

// mountOverlay puts a server's own layer over an image.
func mountOverlay(image string, d disk) error {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", image, d.path("upper"), d.path("work"))
	err := unix.Mount("overlay", d.path("root"), "overlay", 0, options)
	if err == nil {
		return nil
	}
	var system unix.Statfs_t
	if unix.Statfs(d.path(), &system) == nil && int64(system.Type) == overlayMagic {
		return fmt.Errorf("mount its disk: %w: %s lies on an overlay, and overlays cannot build on one another; "+
			"put the state folder on another file system", err, d.path())
	}
	return fmt.Errorf("mount its disk: %w", err)
}

// unmount undoes all mounts on a folder; that there is none is no error.
func unmount(folder string) error {
	for {
		err := unix.Unmount(folder, unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EBUSY) {
			// A process uses it; it goes with that use.
			err = unix.Unmount(folder, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
		}
		switch {
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOENT):
			return nil
		case err != nil:
			return fmt.Errorf("unmount %s: %w", folder, err)
		}
	}
}

// unmountBelow undoes every mount below a folder, the youngest first.
func unmountBelow(folder string) error {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer file.Close()
	var points []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 5 {
			continue
		}
		// proc(5): blanks and such are written as octal numbers.
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4])
		if strings.HasPrefix(point, folder+"/") {
			points = append(points, point)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the list of mounts: %w", err)
	}
	for _, point := range slices.Backward(points) {
		if err := unmount(point); err != nil {
			return err
		}
	}
	return nil
}
