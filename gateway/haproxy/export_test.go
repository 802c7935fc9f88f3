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

// FromNothing says where what is served after a history of changes differs from a plan from nothing for these routes and this web: in the memory of p, in
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
	empty := make(map[string]listener) // the ports are HAProxy's already
	for section := range p.settled.listeners {
		empty[section] = listener{}
	}
	wanted, pools := p.plan(ctx, routes, web, empty, nil, map[uint16]error{})
	running, _, err := p.admin.listeners()
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
	same("the sections of pools", p.settled.pools, pools)
	written := readText(string(content)).listeners()
	sections := slices.Sorted(maps.Keys(wanted))
	for name, there := range map[string]map[string]listener{"remembered": p.settled.listeners, "seen": p.seen, "running": running, "written": written, "in the file": p.file.is} {
		same("sections "+name, slices.Sorted(maps.Keys(there)), sections)
	}
	var all []listener
	for _, section := range sections {
		l := p.settled.listeners[section]
		same(section+" is about", l.About, wanted[section].About)
		same(section+" is written about", written[section].About, l.About)
		same("endpoints of "+section, busy(l.Slots), busy(wanted[section].Slots))
		for name, there := range map[string]map[string]listener{"seen": p.seen, "running": running, "written": written, "in the file": p.file.is} {
			same(section+" "+name, there[section].Slots, l.Slots)
		}
		one := wanted[section]
		one.Slots = l.Slots
		all = append(all, one)
	}
	every, checked := checkEvery(places(p.settled.listeners))
	fresh, err := p.file.render(every, all)
	if err != nil {
		return err
	}
	for _, l := range all {
		fresh.place(l, checked)
	}
	same("the file", string(content), fresh.String())
	return errors.Join(problems...)
}

// busy are the endpoints that have a slot.
func busy(slots []slot) map[endpoint]bool {
	found := make(map[endpoint]bool)
	for _, s := range slots {
		if s.State != free {
			found[endpoint{s.Address, s.State}] = true
		}
	}
	return found
}

// Worker is the process that answers.
func (p *Proxy) Worker() (int64, error) {
	worker := p.admin.worker()
	if worker == 0 {
		return 0, errors.New("no worker answers")
	}
	return worker, nil
}
