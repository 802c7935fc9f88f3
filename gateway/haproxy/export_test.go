package haproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/burano/burano/gateway/route"
)

// FromNothing reports where the state after a history of changes differs from a plan from nothing for these routes and this web: in the memory of p, in
// the running HAProxy, or in its file, which is written for that.
func (p *Proxy) FromNothing(ctx context.Context, routes []route.Route, web Web) error {
	if err := p.write(); err != nil {
		return err
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.settled == nil {
		return errors.New("something is left to be done")
	}
	web.HTTP = web.Expand()
	empty := make(map[string]listener) // the ports are HAProxy's already
	for section := range p.settled.listeners {
		empty[section] = listener{}
	}
	wanted, pools := p.plan(ctx, routes, web, empty, map[uint16]error{})
	running, err := p.admin.look()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(p.config.ConfigFile)
	if err != nil {
		return err
	}
	good, err := os.ReadFile(p.file.lastGood())
	if err != nil {
		return err
	}
	var problems []error
	same := func(what string, is, should any) {
		if !reflect.DeepEqual(is, should) {
			problems = append(problems, fmt.Errorf("%s: %v, and not %v", what, is, should))
		}
	}
	same("the last good file", string(good), string(content))
	for _, sections := range []map[string][]string{p.settled.pools, pools} {
		for _, list := range sections {
			slices.Sort(list)
		}
	}
	same("the sections of pools", p.settled.pools, pools)
	same("the number of servers", p.settled.servers, servers(wanted))
	written := readText(string(content)).listeners()
	sections := slices.Sorted(maps.Keys(wanted))
	for name, there := range map[string]map[string]listener{"remembered": p.settled.listeners, "seen": p.seen, "running": running.listeners, "written": written, "in the file": p.file.is} {
		same("sections "+name, slices.Sorted(maps.Keys(there)), sections)
	}
	checks := checksOf(servers(wanted))
	var all []listener
	for _, section := range sections {
		l := p.settled.listeners[section]
		same(section+" is about", l.About, wanted[section].About)
		same(section+" is written about", written[section].About, l.About)
		for name, there := range map[string]map[string]listener{
			"remembered": p.settled.listeners, "seen": p.seen, "running": running.listeners, "written": written, "in the file": p.file.is,
		} {
			same(section+" "+name, inService(there[section].Servers), inService(wanted[section].Servers))
		}
		for _, s := range p.seen[section].Servers {
			if p.leaving[place{section, s.Name}] != (s.State == leaving) {
				problems = append(problems, fmt.Errorf("%s: server %s is leaving or not", section, s.Name))
			}
		}
		all = append(all, wanted[section])
	}
	fresh, err := p.file.render(checks, all)
	if err != nil {
		return err
	}
	for _, l := range all {
		fresh.place(l, checks)
	}
	fresh.separateSessions()
	if err := p.file.loadMirrors(&fresh); err != nil {
		return err
	}
	same("the file", string(content), fresh.String())
	return errors.Join(problems...)
}

// inService are the servers that are not about to be removed.
func inService(all []server) (list []server) {
	for _, s := range all {
		if s.State != leaving {
			list = append(list, s)
		}
	}
	return list
}

// Present returns the number of servers of the running HAProxy, including servers that are about to be removed.
func (p *Proxy) Present() (int, error) {
	found, err := p.admin.look()
	return servers(found.listeners), err
}

// Tell gives the running HAProxy a command.
func (p *Proxy) Tell(command string) error { return p.admin.commands(command) }

// Worker is the process that answers.
func (p *Proxy) Worker() (int64, error) {
	worker := p.admin.worker()
	if worker == 0 {
		return 0, errors.New("no worker answers")
	}
	return worker, nil
}
