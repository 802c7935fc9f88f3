package haproxy

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/gateway/route"
)

// settled is what is served when nothing is left to be done: then one change needs no look at the others.
type settled struct {
	listeners map[string]listener
	pools     map[string][]string // by the name of a pool, the sections that its backends are in
}

// Change has HAProxy send what comes for these routes and pools to the backends that they have now. What it costs does not grow with the number of
// the others. changed is how many servers were changed. Without done, Apply is to be called: the last Apply left something to be done, more than backends
// have changed of one of these, more servers are wanted than there are places, or HAProxy has started anew.
//
// Servers are in effect at once. The file follows within Config.WriteAfter; Apply and Close write it at once.
func (p *Proxy) Change(routes []route.Route, pools []route.Pool) (changed int, done bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.settled == nil {
		return 0, false
	}
	wanted := make(map[string]listener, len(routes)+len(pools))
	add := func(section, about string, backends []route.Backend) bool {
		l, known := p.settled.listeners[section]
		is, runs := p.seen[section]
		if !known || !runs || l.About != about {
			return false
		}
		l.Slots = place(is.Slots, endpointsOf(backends))
		wanted[section] = l
		return len(l.Slots) == len(is.Slots)
	}
	for _, r := range routes {
		if l := p.listener(r); !add(l.Section, l.About, r.Backends) {
			return 0, false
		}
	}
	for _, pool := range pools {
		sections, known := p.settled.pools[pool.Name()]
		if !known {
			return 0, false
		}
		for _, section := range sections {
			if !add(section, p.settled.listeners[section].About, pool.Backends) {
				return 0, false
			}
		}
	}
	if worker := p.admin.worker(); worker == 0 || worker != p.by {
		return 0, false
	}
	list := difference(p.seen, wanted)
	err := p.admin.apply(list)
	p.changed(p.seen, list, err)
	if err != nil { // Apply finds out what runs, and tells if it fails again
		p.settled = nil
		return 0, false
	}
	maps.Copy(p.settled.listeners, wanted)
	p.file.follow(wanted)
	if p.file.behind && p.writing == nil {
		p.writing = time.AfterFunc(p.config.WriteAfter, func() {
			if err := p.write(); err != nil {
				p.config.Logger.Error("cannot write the HAProxy configuration, trying again", "error", err)
			}
		})
	}
	return len(list), true
}

// write writes the file, if it is behind. Changes do not wait until it is on the disk.
func (p *Proxy) write() error {
	p.writer.Lock()
	defer p.writer.Unlock()
	p.mutex.Lock()
	if p.writing != nil {
		p.writing.Stop()
		p.writing = nil
	}
	if !p.file.behind {
		p.mutex.Unlock()
		return nil
	}
	content, writes := p.file.present.clone(), p.file.writes
	p.file.behind = false
	p.mutex.Unlock()

	err := p.put(content, writes)
	if err == nil {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.file.writes == writes {
		p.file.behind, p.settled = true, nil // Apply tries again
	}
	return fmt.Errorf("have the HAProxy configuration follow the changes at run time: %w", err)
}

// put puts a configuration into place, unless another one was put there since so many writes.
func (p *Proxy) put(content text, writes int) error {
	pending, err := renameio.NewPendingFile(p.config.ConfigFile,
		renameio.WithTempDir(filepath.Dir(p.config.ConfigFile)), renameio.WithPermissions(0o644), renameio.WithExistingPermissions())
	if err != nil {
		return err
	}
	defer func() { _ = pending.Cleanup() }() // does nothing when it is in place
	if _, err := pending.WriteString(content.String()); err != nil {
		return err
	}
	if err := pending.Sync(); err != nil { // which is what takes long
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.file.writes != writes {
		return nil
	}
	if err := pending.CloseAtomicallyReplace(); err != nil {
		return err
	}
	return p.file.keep()
}

// Close writes the file if it is behind. HAProxy goes on.
func (p *Proxy) Close() error {
	p.mutex.Lock()
	p.settled = nil
	p.unwatch()
	p.mutex.Unlock()
	return p.write()
}

// watch has Config.Ended called when the worker that was asked last ends. Should that not work, resyncs find out.
func (p *Proxy) watch() {
	p.unwatch()
	if p.config.Ended == nil {
		return
	}
	descriptor, err := unix.PidfdOpen(int(p.by), unix.PIDFD_NONBLOCK)
	if err != nil {
		p.config.Logger.Warn("the end of HAProxy's process is not noticed at once", "process", p.by, "error", err)
		return
	}
	process := os.NewFile(uintptr(descriptor), "process")
	p.watched = process
	go func() {
		raw, err := process.SyscallConn()
		if err == nil {
			err = raw.Read(func(descriptor uintptr) (ended bool) {
				n, _ := unix.Poll([]unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}}, 0)
				return n > 0
			})
		}
		if err == nil { // else it is not watched any more
			p.config.Ended()
		}
	}()
}

func (p *Proxy) unwatch() {
	if p.watched != nil {
		_ = p.watched.Close()
		p.watched = nil
	}
}
