package fabric

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// namespaces is the folder in which ip(8) keeps named network namespaces, each a file with the namespace mounted on it.
const namespaces = "/run/netns"

// record has the fabric's changes outside its own objects; it is written before the change.
type record struct {
	Mounted bool // namespaces was made a mount
	Created bool // namespaces was made
}

func (f *Fabric) recordPath() string { return filepath.Join(f.config.StateDir, "fabric.json") }

// ensureNamespace makes the named network namespace, with its loopback up, and reports whether it was missing.
func (f *Fabric) ensureNamespace(name string) (made bool, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	path := filepath.Join(namespaces, name)
	if isNamespace(path) {
		return false, nil
	}
	if err := f.prepareFolder(); err != nil {
		return false, fmt.Errorf("make namespace %s: %w", name, err)
	}
	// A crash between the two steps leaves a file without a namespace on it.
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return false, fmt.Errorf("make namespace %s: %w", name, err)
	}
	if err := file.Close(); err != nil {
		return false, fmt.Errorf("make namespace %s: %w", name, err)
	}
	err = elsewhere(func() error { return unix.Unshare(unix.CLONE_NEWNET) }, func() error {
		return unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, "")
	})
	if err != nil {
		return false, errors.Join(fmt.Errorf("make namespace %s: %w", name, err), os.Remove(path))
	}
	return true, inNamespace(name, func(h *netlink.Handle, _ netns.NsHandle) error {
		lo, err := h.LinkByName("lo")
		if err != nil {
			return err
		}
		return h.LinkSetUp(lo)
	})
}

// deleteNamespace removes the links of a namespace and then the namespace. The links go first and one by one, because the
// kernel takes a namespace apart later, in its own time, and their other ends would stay visible until then.
func (f *Fabric) deleteNamespace(name string) error {
	defer f.lock(name)()
	path := filepath.Join(namespaces, name)
	if isNamespace(path) {
		err := inNamespace(name, func(h *netlink.Handle, _ netns.NsHandle) error {
			links, err := Dump(h.LinkList)
			if err != nil {
				return err
			}
			for _, link := range links {
				if kind := link.Type(); kind == "veth" || kind == "bridge" {
					err = errors.Join(err, deleteLink(h, link))
				}
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("delete namespace %s: %w", name, err)
		}
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("delete namespace %s: unmount: %w", name, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete namespace %s: %w", name, err)
	}
	return nil
}

// prepareFolder makes /run/netns a shared mount as ip(8) does. If another `ip netns add` did that later, the earlier namespaces would be mounted twice and
// could not be removed again.
func (f *Fabric) prepareFolder() error {
	done := record{}
	if _, err := os.Stat(namespaces); errors.Is(err, fs.ErrNotExist) {
		done.Created = true
	}
	mounted, err := isMount(namespaces)
	if err != nil {
		return err
	}
	if mounted && !done.Created {
		return nil
	}
	done.Mounted = true
	data, err := json.Marshal(done)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.config.StateDir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(f.recordPath(), data, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(namespaces, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(namespaces, namespaces, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", namespaces, err)
	}
	if err := unix.Mount("", namespaces, "none", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("share the mount %s: %w", namespaces, err)
	}
	return nil
}

// forgetMount undoes prepareFolder, unless namespaces of others are there now.
func (f *Fabric) forgetMount() error {
	data, err := os.ReadFile(f.recordPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read what was changed: %w", err)
	}
	var done record
	if err := json.Unmarshal(data, &done); err != nil {
		return fmt.Errorf("read %s: %w", f.recordPath(), err)
	}
	entries, err := os.ReadDir(namespaces)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("put %s back: %w", namespaces, err)
	}
	if len(entries) > 0 {
		return nil
	}
	if mounted, err := isMount(namespaces); err != nil {
		return err
	} else if mounted && done.Mounted {
		if err := unix.Unmount(namespaces, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", namespaces, err)
		}
	}
	if done.Created {
		// Namespaces that others made meanwhile stay.
		if err := os.Remove(namespaces); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return fmt.Errorf("remove %s: %w", namespaces, err)
		}
	}
	return os.Remove(f.recordPath())
}

func listNamespaces(prefix string) ([]string, error) {
	entries, err := os.ReadDir(namespaces)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// inNamespace gives work a netlink connection that lives in the named namespace; no thread stays there.
func inNamespace(name string, work func(h *netlink.Handle, ns netns.NsHandle) error) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", name, err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns, syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("enter namespace %s: %w", name, err)
	}
	defer h.Close()
	return work(h, ns)
}

// asNamespace runs work on a thread in the named namespace. Goroutines and processes that work starts belong there too.
func asNamespace(name string, work func() error) error {
	ns, err := netns.GetFromName(name)
	if err != nil {
		return fmt.Errorf("open namespace %s: %w", name, err)
	}
	defer ns.Close()
	return elsewhere(func() error { return netns.Set(ns) }, work)
}

// elsewhere moves a thread to another network namespace, runs work there and moves it back. A thread that cannot come back is
// given up: its goroutine ends while it is locked to it, and the runtime ends the thread.
func elsewhere(move, work func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		defer home.Close()
		if err := move(); err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		err = work()
		if back := netns.Set(home); back != nil {
			err = errors.Join(err, fmt.Errorf("leave namespace: %w", back))
		} else {
			runtime.UnlockOSThread()
		}
		result <- err
	}()
	return <-result
}

func isNamespace(path string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(path, &stat) == nil && stat.Type == unix.NSFS_MAGIC
}

// isMount asks the kernel: a bind mount has the device of its source, and the table of mounts also has hidden mounts below others.
func isMount(path string) (bool, error) {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, 0, &stat); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("look whether %s is a mount: %w", path, err)
	}
	return stat.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0, nil
}
