package images

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const filesFile = "files"

// oneTime gives all files below a folder one time, so that the same content gives the same list, wherever and whenever it is made.
func oneTime(root string) error {
	epoch := []unix.Timespec{unix.NsecToTimespec(time.Unix(0, 0).UnixNano()), unix.NsecToTimespec(time.Unix(0, 0).UnixNano())}
	return filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, epoch, unix.AT_SYMLINK_NOFOLLOW)
	})
}

// listFiles writes a line for each file below a folder, in the order of their names: mode, owner, SHA-256 (or "-") and path, and the target of a
// symbolic link.
func listFiles(root, to string) error {
	list, err := os.Create(to)
	if err != nil {
		return err
	}
	lines := bufio.NewWriter(list)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		sum, target := "-", ""
		switch {
		case info.Mode().IsRegular():
			sum, _, err = checksum(path)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err = os.Readlink(path)
			target = " -> " + target
		}
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		_, err = fmt.Fprintf(lines, "%s %d:%d %s %s%s\n", info.Mode(), owner.Uid, owner.Gid, sum, filepath.Join("/", name), target)
		return err
	})
	return errors.Join(err, lines.Flush(), list.Close())
}
