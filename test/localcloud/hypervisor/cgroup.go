package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// removeCgroups removes a cgroup with all below it from every hierarchy there is: those of version 1 lie side by side, that
// of version 2 is the folder itself. A cgroup is busy until the kernel has buried the last process of it.
func removeCgroups(ctx context.Context, path string) error {
	hierarchies := []string{cgroupRoot}
	var version2 unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &version2); err == nil && version2.Type != unix.CGROUP2_SUPER_MAGIC {
		found, err := filepath.Glob(filepath.Join(cgroupRoot, "*"))
		if err != nil {
			return err
		}
		hierarchies = found
	}
	for _, hierarchy := range hierarchies {
		if err := removeCgroup(ctx, filepath.Join(hierarchy, path)); err != nil {
			return fmt.Errorf("remove the cgroup %s: %w", path, err)
		}
	}
	return nil
}

func removeCgroup(ctx context.Context, folder string) error {
	deadline := time.Now().Add(10 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := removeTree(folder)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-ticker.C:
		}
	}
}

// removeTree removes folders from the leaves up; the files in them are the kernel's and go with them.
func removeTree(folder string) error {
	var folders []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		} else if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(folders) {
		if err := unix.Rmdir(path); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}
