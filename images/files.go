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
	err = eachFile(root, func(path string, found entry) error {
		target := found.target
		if target != "" {
			target = " -> " + target
		}
		_, err := fmt.Fprintf(lines, "%s %s %s %s%s\n", found.mode, found.owner, found.sum, path, target)
		return err
	})
	return errors.Join(err, lines.Flush(), list.Close())
}

// entry is what two files must have in common to be the same: its sum is "-" where it is no regular file, and its target "" where it is no symbolic link.
type entry struct {
	mode               fs.FileMode
	owner, sum, target string
}

// eachFile calls visit for each file and folder below a folder, which is "/", in the order of their names.
func eachFile(root string, visit func(path string, found entry) error) error {
	return filepath.WalkDir(root, func(path string, item fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := item.Info()
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		found := entry{mode: info.Mode(), owner: fmt.Sprintf("%d:%d", owner.Uid, owner.Gid), sum: "-"}
		switch {
		case info.Mode().IsRegular():
			found.sum, _, err = checksum(path)
		case info.Mode()&fs.ModeSymlink != 0:
			found.target, err = os.Readlink(path)
		}
		if err != nil {
			return err
		}
		return visit(filepath.Join("/", name), found)
	})
}
