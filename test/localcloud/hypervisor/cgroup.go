package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// removeCgroups removes a cgroup with all below it from every hierarchy: the ones of version 1 lie side by side, the one of version 2 is the folder
// itself. Remaining processes in it are killed. A cgroup is busy until the kernel has reaped the last.
func removeCgroups(ctx context.Context, path string) error {
	for _, folder := range cgroupFolders(path) {
		if err := removeCgroup(ctx, folder); err != nil {
			return fmt.Errorf("remove the cgroup %s: %w", path, err)
		}
	}
	return nil
}

// killCgroups kills the processes of a cgroup and of all below it.
func killCgroups(path string) error {
	for _, folder := range cgroupFolders(path) {
		if err := killMembers(folder); err != nil {
			return err
		}
	}
	return nil
}

// cgroupFolders are the places of a cgroup in the hierarchies.
func cgroupFolders(path string) []string {
	var version2 unix.Statfs_t
	if err := unix.Statfs(cgroupRoot, &version2); err == nil && version2.Type == unix.CGROUP2_SUPER_MAGIC {
		return []string{filepath.Join(cgroupRoot, path)}
	}
	hierarchies, _ := filepath.Glob(filepath.Join(cgroupRoot, "*")) // the pattern is a good one
	for i := range hierarchies {
		hierarchies[i] = filepath.Join(hierarchies[i], path)
	}
	return hierarchies
}

func removeCgroup(ctx context.Context, folder string) error {
	deadline := time.Now().Add(10 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := errors.Join(killMembers(folder), removeTree(folder))
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

// killMembers kills the processes of one hierarchy's cgroup and of the cgroups below it.
func killMembers(folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) || err == nil && !entry.IsDir() {
			return nil
		} else if err != nil {
			return err
		}
		members, err := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENODEV) {
			return err
		}
		for _, member := range strings.Fields(string(members)) {
			pid, err := strconv.Atoi(member)
			if err != nil || pid < 2 { // 0 is a process of another namespace
				continue
			}
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d of cgroup %s: %w", pid, path, err)
			}
		}
		return thaw(path)
	})
}

// thaw lets the processes of a cgroup run again, so that they can end: in version 1 a frozen process outlives even SIGKILL
// (https://docs.kernel.org/admin-guide/cgroup-v1/freezer-subsystem.html). A container engine in a server freezes its containers for
// moments, and may be killed in one of them.
func thaw(folder string) error {
	state, err := os.OpenFile(filepath.Join(folder, "freezer.state"), os.O_WRONLY, 0)
	if errors.Is(err, os.ErrNotExist) { // another hierarchy's, version 2's, or gone
		return nil
	}
	if err == nil {
		_, err = state.WriteString("THAWED")
		err = errors.Join(err, state.Close())
	}
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("thaw cgroup %s: %w", folder, err)
	}
	return nil
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
