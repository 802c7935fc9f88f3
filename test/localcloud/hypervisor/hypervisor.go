// Package hypervisor runs the local cloud's servers: each is a system container with systemd as its first process, its own processes, mounts, network,
// host name and cgroups, and a disk that survives a stop.
//
// A server's disk is an overlay over the unpacked image. All of it lies below one folder, and the machine's names for it (containers, cgroups) are derived
// from the server, so that everything can be found and removed again after a crash. Servers are privileged: they share the machine's kernel, and a
// container does not stop an attacker.
package hypervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Config of a Hypervisor. StateDir holds images and disks and must lie on a file system that overlayfs can build on (not on
// an overlay itself). CgroupParent is by default /burano-localcloud.
type Config struct {
	StateDir     string
	CgroupParent string
	Logger       *slog.Logger
}

// Server is the desired state of a server. NetNS is the name of its network namespace (below /run/netns), made and removed by the caller, with the
// interfaces in it. ConfigDrive has the files of its config drive ("openstack/latest/meta_data.json"); nil leaves the present one. VCPUs weighs its share
// of the machine and limits nothing.
type Server struct {
	ID, Hostname, ImageID, NetNS string
	RescueImageID                string // it runs from a fresh disk of this image, with its own below /mnt; "" for its own
	MemoryMiB, VCPUs             int
	Disks                        []Disk
	ConfigDrive                  map[string][]byte `json:"-"`
}

// images are the images of its disks, in the order of their locks.
func (s Server) images() []string {
	images := slices.Compact(slices.Sorted(slices.Values([]string{s.ImageID, s.RescueImageID})))
	return slices.DeleteFunc(images, func(image string) bool { return image == "" })
}

// State of a server.
type State string

const (
	Running State = "running"
	Stopped State = "stopped"
	Absent  State = "absent"
)

// prefix marks the local cloud's containers of the machine.
const prefix = "blc-"

// Hypervisor runs servers. Its methods may be called at the same time; calls for one server or image wait for one another.
type Hypervisor struct {
	folder string
	parent string
	log    *slog.Logger
	runc   runc

	mutex sync.Mutex
	locks map[string]*sync.Mutex
}

// New makes the folders it needs and changes nothing else on the machine.
func New(config Config) (*Hypervisor, error) {
	folder, err := filepath.Abs(config.StateDir)
	if err != nil {
		return nil, err
	}
	// The kernel takes the overlay's folders as one text with these marks between them.
	if config.StateDir == "" || strings.ContainsAny(folder, ":,\\") {
		return nil, fmt.Errorf("the hypervisor's state folder %q must be named, and without colon, comma and backslash", folder)
	}
	program, err := exec.LookPath("runc")
	if err != nil {
		return nil, fmt.Errorf("servers of the local cloud need runc (Debian package runc): %w", err)
	}
	if config.CgroupParent == "" {
		config.CgroupParent = "/burano-localcloud"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Hypervisor{
		folder: folder,
		parent: filepath.Join("/", config.CgroupParent),
		log:    config.Logger,
		runc:   runc{program: program, root: filepath.Join(folder, "runc")},
		locks:  map[string]*sync.Mutex{},
	}
	if h.parent == "/" {
		return nil, errors.New("the hypervisor's cgroup parent cannot be the root of all cgroups")
	}
	for _, sub := range []string{h.imagesFolder(), h.serversFolder(), h.runc.root} {
		if err := os.MkdirAll(sub, 0o700); err != nil {
			return nil, fmt.Errorf("make the hypervisor's folders: %w", err)
		}
	}
	return h, nil
}

func (h *Hypervisor) imagesFolder() string  { return filepath.Join(h.folder, "images") }
func (h *Hypervisor) serversFolder() string { return filepath.Join(h.folder, "servers") }

// lock gives the function that unlocks.
func (h *Hypervisor) lock(what string) func() {
	h.mutex.Lock()
	lock, ok := h.locks[what]
	if !ok {
		lock = &sync.Mutex{}
		h.locks[what] = lock
	}
	h.mutex.Unlock()
	lock.Lock()
	return lock.Unlock
}

var identifier = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// checkID refuses identifiers that as names of folders would lead out of them.
func checkID(what, id string) error {
	if !identifier.MatchString(id) {
		return fmt.Errorf("%q cannot be the id of %s: letters, digits, dots, dashes and underscores can", id, what)
	}
	return nil
}

// State of a server; a server that was stopped or has crashed is Stopped as long as its disk is there.
func (h *Hypervisor) State(ctx context.Context, id string) (State, error) {
	if err := checkID("a server", id); err != nil {
		return "", err
	}
	if _, err := os.Stat(h.disk(id).path()); errors.Is(err, os.ErrNotExist) {
		return Absent, nil
	} else if err != nil {
		return "", fmt.Errorf("look for server %s: %w", id, err)
	}
	container, err := h.runc.state(ctx, prefix+id)
	if err != nil {
		return "", fmt.Errorf("ask for the state of server %s: %w", id, err)
	}
	if container.alive() {
		return Running, nil
	}
	return Stopped, nil
}

// DeleteAll removes all servers and images and the folders of the hypervisor, also a dead process's.
func (h *Hypervisor) DeleteAll(ctx context.Context) error {
	servers, err := h.serverIDs()
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, id := range servers {
		group.Go(func() error { return h.Delete(ctx, id) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	// Containers whose folder is gone, and mounts of which nothing is known any more.
	containers, err := h.runc.list(ctx)
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	for _, container := range containers {
		if err := h.runc.delete(ctx, container, h.cgroup(strings.TrimPrefix(container, prefix))); err != nil {
			return fmt.Errorf("remove container %s: %w", container, err)
		}
	}
	if err := unmountBelow(h.folder); err != nil {
		return err
	}
	if err := removeCgroups(ctx, h.parent); err != nil {
		return err
	}
	for _, sub := range []string{h.serversFolder(), h.imagesFolder(), h.runc.root} {
		if err := os.RemoveAll(sub); err != nil {
			return fmt.Errorf("remove the hypervisor's folders: %w", err)
		}
	}
	// The folder itself goes only when no other files are there.
	_ = os.Remove(h.folder)
	return nil
}

func (h *Hypervisor) serverIDs() ([]string, error) {
	entries, err := os.ReadDir(h.serversFolder())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list servers: %w", err)
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() && identifier.MatchString(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	return ids, nil
}

// load reads the state of a server at its last start.
func (h *Hypervisor) load(id string) (Server, error) {
	content, err := os.ReadFile(h.disk(id).path("server.json"))
	if err != nil {
		return Server{}, err
	}
	var server Server
	return server, json.Unmarshal(content, &server)
}
