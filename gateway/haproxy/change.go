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

// settled is the served state when no work is left: then one change needs no look at the others.
type settled struct {
	listeners map[string]listener
	pools     map[string][]string // by the name of a pool, the sections that its backends are in
	servers   int                 // of all listeners
}

// Change sends the connections of these routes and pools to their present backends. Its cost does not grow with the number of the others. changed is the
// number of changed servers. When done is false, call Apply: the last Apply left some work, more than backends have changed of one of these, the number of
// servers calls for another interval of checks, or HAProxy has restarted.
//
// Servers are in effect at once. The file follows within Config.WriteAfter; Apply and Close write it at once.
func (p *Proxy) Change(routes []route.Route, pools []route.Pool) (changed int, done bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.settled == nil {
		return 0, false
	}
	wanted, all := make(map[string]listener, len(routes)+len(pools)), p.settled.servers
	add := func(section, about string, backends []route.Backend) bool {
		l, known := p.settled.listeners[section]
		_, runs := p.seen[section]
		if !known || !runs || l.About != about {
			return false
		}
		had := l.Servers
		if already, twice := wanted[section]; twice {
			had = already.Servers
		}
		l.Servers = serversOf(backends, l.keepsClients())
		wanted[section] = l
		all += len(l.Servers) - len(had)
		return true
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
			if has := p.settled.listeners[section]; has.Rules.Affinity != affinityOf(pool) || !add(section, has.About, pool.Backends) {
				return 0, false
			}
		}
	}
	checks := checksOf(all)
	if worker := p.admin.worker(); worker == 0 || worker != p.by || checks != checksOf(p.settled.servers) {
		return 0, false
	}
	list := difference(p.seen, wanted)
	err := p.admin.apply(list, checks)
	p.changed(p.seen, list, err)
	if err != nil { // Apply finds out the running state, and reports it if it fails again
		p.settled = nil
		return 0, false
	}
	maps.Copy(p.settled.listeners, wanted)
	p.settled.servers = all
	p.file.follow(wanted, checks)
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
	if err := pending.Sync(); err != nil { // the slow part
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
	p.settled, p.closed = nil, true
	if p.removing != nil {
		p.removing.Stop()
	}
	p.unwatch()
	p.mutex.Unlock()
	return p.write()
}

// place is the place of a server.
type place struct{ section, name string }

// Servers that are out of service are tried to be removed so often, and so many at a time, which takes about a hundredth of a processor: connections to some
// may last for hours.
const (
	removeEvery  = time.Second
	removeAtOnce = 100
)

// removeLater has servers that are leaving removed, if there are any.
func (p *Proxy) removeLater() {
	if len(p.leaving) > 0 && p.removing == nil && !p.closed {
		p.removing = time.AfterFunc(removeEvery, p.remove)
	}
}

// remove removes some of the servers that have left, if no connection lasts, and comes again while there are others.
func (p *Proxy) remove() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.removing = nil
	if worker := p.admin.worker(); p.closed || p.seen == nil || worker == 0 || worker != p.by {
		return // they are looked for anew before anything else
	}
	tries := 0
	for one := range p.leaving { // which begins with another one each time
		if tries++; tries > removeAtOnce {
			break
		}
		gone, err := p.admin.remove(one.section, one.name)
		if err != nil {
			p.config.Logger.Warn("a server that is out of service stays until HAProxy is asked for all of them again", "error", err)
			delete(p.leaving, one)
		}
		if gone {
			delete(p.leaving, one)
			l := p.seen[one.section]
			l.Servers = without(l.Servers, one.name)
			p.seen[one.section] = l
		}
	}
	p.removeLater()
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
