package hypervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// disk is the folder of a server:
//
//	server.json        its state
//	upper, work, root  its own layer, overlayfs's scratch, and the two over the image, mounted while it runs; or root is the disk it runs from
//	rescue/            the same three of the system that rescues it
//	volumes/           folders that must not lie on an overlay
//	drive/             its config drive
//	config.json, meminfo, console.log, runc.log
type disk struct{ folder string }

func (h *Hypervisor) disk(id string) disk { return disk{filepath.Join(h.serversFolder(), id)} }

func (d disk) path(parts ...string) string {
	return filepath.Join(append([]string{d.folder}, parts...)...)
}

// rescue is the disk of the system that rescues the server.
func (d disk) rescue() disk { return disk{d.path("rescue")} }

// make makes the folders of an overlay, two of which are the root of a file system.
func (d disk) make() error {
	for _, folder := range []string{"", "upper", "work", "root"} {
		if err := os.MkdirAll(d.path(folder), 0o700); err != nil {
			return err
		}
	}
	return errors.Join(os.Chmod(d.path("upper"), 0o755), os.Chmod(d.path("root"), 0o755))
}

// makeVolume makes a folder that does not lie on the overlay, with the image's content in it, unless it exists.
func (d disk) makeVolume(name, image string) error {
	if _, err := os.Stat(d.path("volumes", name)); err == nil {
		return nil
	}
	if _, err := os.Stat(image); errors.Is(err, os.ErrNotExist) {
		return os.MkdirAll(d.path("volumes", name), 0o700)
	}
	begun := d.path("volumes", "."+name)
	if err := errors.Join(os.RemoveAll(begun), os.MkdirAll(d.path("volumes"), 0o700)); err != nil {
		return err
	}
	if err := run(exec.Command("cp", "--archive", "--reflink=auto", image, begun)); err != nil {
		return err
	}
	return os.Rename(begun, d.path("volumes", name))
}

// Start makes a server and runs it, or runs again a stopped one, on the disk it has. It returns when the server's first
// process runs; how far the system inside has come is for the caller to find out. A running server is left as it is.
func (h *Hypervisor) Start(ctx context.Context, server Server) error {
	if err := errors.Join(checkID("a server", server.ID), checkID("a network namespace", server.NetNS)); err != nil {
		return err
	}
	defer h.lock("server " + server.ID)()
	state, err := h.State(ctx, server.ID)
	if err != nil || state == Running {
		return err
	}
	began := time.Now()
	before, err := h.load(server.ID)
	if err != nil && state == Stopped {
		return fmt.Errorf("start server %s: read what it was: %w", server.ID, err)
	}
	err = h.prepare(server, before, state)
	if err == nil && before.RescueImageID != server.RescueImageID {
		err = h.releaseImage(before.RescueImageID)
	}
	if err == nil {
		err = h.run(ctx, server)
	}
	if err != nil {
		// Nothing half started stays; a disk that was there stays.
		undo := context.WithoutCancel(ctx)
		if state == Absent {
			err = errors.Join(err, h.remove(undo, server.ID))
		} else {
			err = errors.Join(err, h.halt(undo, server.ID))
		}
		return fmt.Errorf("start server %s: %w", server.ID, err)
	}
	h.log.Info("server started", "server", server.ID, "hostname", server.Hostname, "seconds", time.Since(began).Seconds())
	return nil
}

// prepare writes the server's folder. From then on its images cannot be removed.
func (h *Hypervisor) prepare(server, before Server, state State) error {
	for _, image := range server.images() {
		defer h.lock("image " + image)()
	}
	if _, ownDisk := server.rootDisk(); !ownDisk && state == Absent && !h.HasImage(server.ImageID) {
		return fmt.Errorf("there is no image %s", server.ImageID)
	}
	if state == Stopped && before.ImageID != server.ImageID {
		return fmt.Errorf("its disk is made on image %s, not on %s", before.ImageID, server.ImageID)
	}
	d := h.disk(server.ID)
	if before.RescueImageID != server.RescueImageID {
		if server.RescueImageID != "" && !h.HasImage(server.RescueImageID) {
			return fmt.Errorf("there is no image %s", server.RescueImageID)
		}
		if err := os.RemoveAll(d.rescue().path()); err != nil {
			return err
		}
	}
	if err := d.make(); err != nil {
		return err
	}
	if server.RescueImageID != "" {
		if err := d.rescue().make(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(d.path("drive"), 0o700); err != nil {
		return err
	}
	for _, volume := range volumes() {
		if err := d.makeVolume(volume, filepath.Join(h.imageFolder(server.ImageID), "var/lib", volume)); err != nil {
			return fmt.Errorf("make its folder /var/lib/%s: %w", volume, err)
		}
	}
	if err := writeJSON(d.path("server.json"), server); err != nil {
		return err
	}
	if err := d.writeDrive(server.ConfigDrive); err != nil {
		return fmt.Errorf("write its config drive: %w", err)
	}
	if err := os.WriteFile(d.path("meminfo"), []byte(memoryInfo(server.MemoryMiB)), 0o644); err != nil {
		return err
	}
	capabilities, err := hostCapabilities()
	if err != nil {
		return err
	}
	return writeJSON(d.path("config.json"), h.specification(server, capabilities))
}

func (h *Hypervisor) run(ctx context.Context, server Server) error {
	d := h.disk(server.ID)
	// The remains of a crash.
	if err := h.halt(ctx, server.ID); err != nil {
		return err
	}
	var err error
	if root, ok := server.rootDisk(); ok {
		err = mountDisk(ctx, root, d)
	} else {
		err = mountOverlay(h.imageFolder(server.ImageID), d)
	}
	if err == nil && server.RescueImageID != "" {
		err = mountOverlay(h.imageFolder(server.RescueImageID), d.rescue())
	}
	if err != nil {
		return err
	}
	console, err := os.OpenFile(d.path("console.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer console.Close()
	if err := h.runc.start(ctx, prefix+server.ID, d.path(), console); err != nil {
		return err
	}
	container, err := h.runc.state(ctx, prefix+server.ID)
	if err != nil {
		return err
	}
	return plug(ctx, container, server.Disks)
}

// writeDrive replaces the config drive; nil leaves it.
func (d disk) writeDrive(files map[string][]byte) error {
	if files == nil {
		return nil
	}
	if err := os.RemoveAll(d.path("drive")); err != nil {
		return err
	}
	if err := os.Mkdir(d.path("drive"), 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(d.path("drive"))
	if err != nil {
		return err
	}
	defer root.Close()
	for name, content := range files {
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(name, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

const (
	// haltSignal is systemd's signal for "halt" (systemd(1): SIGRTMIN+3; glibc's SIGRTMIN is 34).
	haltSignal = syscall.Signal(34 + 3)
	// haltPatience is how long a server may take to end its services.
	haltPatience = 30 * time.Second
)

// Stop has the system inside shut down, and kills it when that takes too long. The disk stays. That it does not run, or is
// not there, is no error.
func (h *Hypervisor) Stop(ctx context.Context, id string) error {
	if err := checkID("a server", id); err != nil {
		return err
	}
	defer h.lock("server " + id)()
	container, err := h.runc.state(ctx, prefix+id)
	if err != nil {
		return fmt.Errorf("stop server %s: %w", id, err)
	}
	if container.alive() {
		if err := h.shutDown(ctx, id, container); err != nil {
			return fmt.Errorf("stop server %s: %w", id, err)
		}
	}
	if err := h.halt(ctx, id); err != nil {
		return fmt.Errorf("stop server %s: %w", id, err)
	}
	h.log.Info("server stopped", "server", id)
	return nil
}

// shutDown requests the end; a server that does not react is killed by the caller.
func (h *Hypervisor) shutDown(ctx context.Context, id string, container container) error {
	ended, err := watchProcess(container.PID)
	if err != nil {
		return err
	}
	defer ended.close()
	h.keepJournal(ctx, id)
	if _, err := h.runc.call(ctx, "kill", prefix+id, strconv.Itoa(int(haltSignal))); err != nil {
		return err
	}
	if err := ended.wait(ctx, haltPatience); errors.Is(err, errStillRuns) {
		h.log.Warn("server does not shut down, killing it", "server", id, "waited", haltPatience)
		return nil
	} else {
		return err
	}
}

// cgroup is the server's, below the hierarchies' roots.
func (h *Hypervisor) cgroup(id string) string { return filepath.Join(h.parent, id) }

// halt leaves nothing of a running server: no process, no mount, no loop device, no cgroup.
func (h *Hypervisor) halt(ctx context.Context, id string) error {
	if err := h.runc.delete(ctx, prefix+id, h.cgroup(id)); err != nil {
		return err
	}
	for _, d := range []disk{h.disk(id).rescue(), h.disk(id)} {
		if err := unmount(d.path("root")); err != nil {
			return err
		}
	}
	if server, err := h.load(id); err == nil {
		taken := func(file string) bool {
			return slices.ContainsFunc(server.Disks, func(disk Disk) bool { return disk.File == file })
		}
		if err := closeLoops(ctx, taken); err != nil {
			return err
		}
	}
	return removeCgroups(ctx, h.cgroup(id))
}

// Delete kills a server and removes its disk. That it is not there is no error.
func (h *Hypervisor) Delete(ctx context.Context, id string) error {
	if err := checkID("a server", id); err != nil {
		return err
	}
	defer h.lock("server " + id)()
	server, err := h.load(id)
	known := err == nil
	if err := h.remove(ctx, id); err != nil {
		return fmt.Errorf("delete server %s: %w", id, err)
	}
	if known {
		for _, image := range server.images() {
			if err := h.releaseImage(image); err != nil {
				return err
			}
		}
		h.log.Info("server deleted", "server", id)
	}
	return nil
}

func (h *Hypervisor) remove(ctx context.Context, id string) error {
	if err := h.halt(ctx, id); err != nil {
		return err
	}
	return os.RemoveAll(h.disk(id).path())
}

// ConsoleLog returns the last lines of a server's output: of its journal while it runs, after the stored ones of earlier runs; lines <= 0 is all.
func (h *Hypervisor) ConsoleLog(ctx context.Context, id string, lines int) (string, error) {
	if err := checkID("a server", id); err != nil {
		return "", err
	}
	kept, err := os.ReadFile(h.disk(id).path("console.log"))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("there is no server %s", id)
	} else if err != nil {
		return "", fmt.Errorf("read the console of server %s: %w", id, err)
	}
	container, err := h.runc.state(ctx, prefix+id)
	if err != nil {
		return "", fmt.Errorf("read the console of server %s: %w", id, err)
	}
	text := string(kept)
	if container.alive() {
		if journal, err := h.journal(ctx, id); err == nil {
			text += journal
		}
	}
	all := strings.SplitAfter(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	if lines > 0 && len(all) > lines {
		all = all[len(all)-lines:]
	}
	return strings.Join(all, ""), nil
}

func (h *Hypervisor) journal(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return h.runc.call(ctx, "exec", prefix+id, "journalctl", "--boot", "--no-pager", "--quiet")
}

// keepJournal saves the lines that ConsoleLog shows of a stopped server.
func (h *Hypervisor) keepJournal(ctx context.Context, id string) {
	journal, err := h.journal(ctx, id)
	if err != nil {
		h.log.Warn("the journal of a server could not be kept", "server", id, "error", err)
		return
	}
	file, err := os.OpenFile(h.disk(id).path("console.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		h.log.Warn("the journal of a server could not be kept", "server", id, "error", err)
		return
	}
	defer file.Close()
	if _, err := file.WriteString(journal); err != nil {
		h.log.Warn("the journal of a server could not be kept", "server", id, "error", err)
	}
}

func writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(content, '\n'), 0o600)
}
