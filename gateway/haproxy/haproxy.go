// Package haproxy makes a running HAProxy serve routes: servers come, drain and go at run time through the admin socket within milliseconds; only a
// listener that appears or goes needs a new configuration, which is checked first and then loaded by a seamless reload.
//
// The truth is the state of the running process and its configuration file: a restart of Burano or of HAProxy loses nothing. With thousands of servers it
// is not queried at each change, but when another process answers, when a change failed, and now and then (see [Proxy.EndDead]). The file follows every
// change at run time: at once, or where servers alone have changed within a second (see [Proxy.Change]).
package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/traffic"
)

// Config has HAProxy's paths. The zero value fits a gateway node with Debian's package.
type Config struct {
	ConfigFile     string                      // configuration file, ours alone; /etc/haproxy/haproxy.cfg
	Socket         string                      // admin socket that HAProxy opens; /run/haproxy-admin.sock
	Binary         string                      // /usr/sbin/haproxy
	User, Group    string                      // whom the workers run as; haproxy
	Bind           netip.Addr                  // address of the listeners; 0.0.0.0
	Bind6          netip.Addr                  // their address of IPv6, for example ::; none when it is not valid
	Balance        string                      // leastconn (if empty) or roundrobin
	MaxConnections int                         // of one worker; 8000
	Reload         func(context.Context) error // makes HAProxy take the file over, or start; systemctl reload-or-restart haproxy
	ReloadTimeout  time.Duration               // how long a reload may take until the new worker answers; 10 s
	ReloadGap      time.Duration               // from the begin of a reload to that of the next, so that changes gather; 1 s
	RetryAfter     time.Duration               // how long a layout that failed is left alone; 30 s
	DeadAfter      time.Duration               // how long a server is down until EndDead; more than a busy node is silent: 10 s
	WriteAfter     time.Duration               // how long the file may be behind servers that Change has changed, so that changes gather; 1 s
	Ended          func()                      // is called when the worker that was asked last has ended, from another goroutine; may be nil
	Logger         *slog.Logger
}

func (c Config) withDefaults() Config {
	c.ConfigFile = cmp.Or(c.ConfigFile, "/etc/haproxy/haproxy.cfg")
	c.Socket = cmp.Or(c.Socket, traffic.Socket)
	c.Binary = cmp.Or(c.Binary, "/usr/sbin/haproxy")
	c.User = cmp.Or(c.User, "haproxy")
	c.Group = cmp.Or(c.Group, "haproxy")
	c.Bind = cmp.Or(c.Bind, netip.IPv4Unspecified())
	c.Balance = cmp.Or(c.Balance, "leastconn")
	c.MaxConnections = cmp.Or(c.MaxConnections, 8000)
	c.ReloadTimeout = cmp.Or(c.ReloadTimeout, 10*time.Second)
	c.ReloadGap = cmp.Or(c.ReloadGap, time.Second)
	c.DeadAfter = cmp.Or(c.DeadAfter, 10*time.Second)
	c.RetryAfter = cmp.Or(c.RetryAfter, 30*time.Second)
	c.WriteAfter = cmp.Or(c.WriteAfter, time.Second)
	if c.Reload == nil {
		c.Reload = reloadUnit
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// reloadUnit has systemd reload the service, or start it when it does not run.
func reloadUnit(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, "systemctl", "reload-or-restart", "haproxy.service").CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl reload-or-restart haproxy: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// Proxy is the HAProxy of a gateway. Its methods may be called concurrently; changes are made one after the other.
type Proxy struct {
	config   Config
	mutex    sync.Mutex
	file     *file
	admin    *admin
	plain    string // the sum of no rules
	failed   failure
	next     time.Time         // before, no reload is begun
	late     time.Time         // until when HAProxy may follow a reload that was asked for more than once, with the file of then
	bad      map[string]string // certificates that HAProxy does not take, and why, as logged
	unusable map[string]string // authorities and certificates for backends, and why, as logged
	// The worker's last report, with later changes; nil: unknown.
	seen map[string]listener
	by   int64 // that worker
	// Its servers that are removed after their last connection, and the wake-up for that.
	leaving  map[place]bool
	removing *time.Timer
	looked   time.Time // when it was asked for all

	settled *settled    // nil while anything is left to be done
	writer  sync.Mutex  // held while the file is written that is behind, and taken before mutex
	writing *time.Timer // begins that; nil: none does
	watched *os.File    // the process that answered last
	closed  bool
}

// failure is a layout that HAProxy did not take. It is left alone for a while, so that a bad listener does not keep changes of
// the others waiting for reloads that fail.
type failure struct {
	wanted map[string]listener
	err    error
	until  time.Time
}

// Outcome is the result of a change.
type Outcome struct {
	Serving  []uint16         // wanted ports that HAProxy listens on now, ascending
	Refused  map[uint16]error // wanted ports that it does not listen on, and why; worth another try later
	Changed  int              // servers changed at run time
	Reloaded bool
	Waiting  bool          // a reload is due in a moment, or may still come
	Due      time.Duration // until that reload can be begun; 0: at once, or unknown
}

// Open takes over the configuration file, writing a first one when there is none of ours. HAProxy need not run yet.
func Open(ctx context.Context, c Config) (*Proxy, error) {
	c = c.withDefaults()
	if c.Balance != "leastconn" && c.Balance != "roundrobin" {
		// The static algorithms do not take changes of weight at run time (HAProxy's configuration guide, "balance").
		return nil, fmt.Errorf("open HAProxy: the balance algorithm must be leastconn or roundrobin, not %q", c.Balance)
	}
	f, err := openFile(ctx, c)
	if err != nil {
		return nil, err
	}
	a, err := openAdmin(ctx, c.Socket)
	if err != nil {
		return nil, err
	}
	return &Proxy{config: c, file: f, admin: a, plain: rules{}.sum()}, nil
}

// Apply makes HAProxy serve exactly these routes and this web, whose gateway ports differ from each other. Changes of servers are in effect before a
// reload is begun, and when the reload fails too. After an error the state differs from the desired one, and Apply should be called again; the outcome has
// the served state nevertheless.
func (p *Proxy) Apply(ctx context.Context, routes []route.Route, web Web) (Outcome, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	outcome := Outcome{Refused: make(map[uint16]error)}
	p.settled = nil

	asked := ports(routes, web)
	web.HTTP = web.Expand()
	web = p.secure(ctx, web, outcome.Refused)
	running, runningErr := p.running()
	wanted, pools := p.plan(ctx, routes, web, running, outcome.Refused)
	list, all := difference(running, wanted), servers(wanted)
	changeErr := p.admin.apply(list, checksOf(all))
	running = p.changed(running, list, changeErr)
	outcome.Changed = len(list)

	pages, pagesErr := p.file.web.write(ctx, web, wanted)
	p.tell(pages.bad)
	layoutErr := p.install(ctx, wanted, running, runningErr != nil, changeErr != nil, &outcome)
	if outcome.Reloaded {
		changeErr = nil // that worker has read all servers
	}
	if now, err := p.running(); err == nil {
		running = now
	}
	if late := difference(running, wanted); changeErr == nil && len(late) > 0 { // of a worker that had read an older file
		changeErr = p.admin.apply(late, checksOf(all))
		running = p.changed(running, late, changeErr)
	}
	if pagesErr == nil {
		pagesErr = p.follow(ctx, pages, running, wanted, &outcome)
	}
	for _, port := range asked {
		if _, serves := running[traffic.Section(port)]; serves && outcome.Refused[port] == nil {
			outcome.Serving = append(outcome.Serving, port)
		} else if outcome.Refused[port] == nil && !outcome.Waiting {
			outcome.Refused[port] = cmp.Or(layoutErr, errors.New("HAProxy does not listen on it yet"))
		}
	}
	slices.Sort(outcome.Serving)
	outcome.Serving = slices.Compact(outcome.Serving)
	outcome.Waiting = outcome.Waiting || time.Now().Before(p.late)
	err := errors.Join(changeErr, layoutErr, pagesErr)
	if err == nil && !outcome.Waiting {
		err = p.forget(web)
	}
	if err == nil && !outcome.Waiting && len(outcome.Refused) == 0 {
		p.settled = &settled{listeners: maps.Clone(wanted), pools: pools, servers: all} // wanted equals the file
	}
	return outcome, err
}

// difference lists the changes at run time from the running to the wanted state.
func difference(running, wanted map[string]listener) (list []change) {
	for section, want := range wanted {
		if is, runs := running[section]; runs {
			list = append(list, changes(is.Servers, want)...)
		}
	}
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Compare(a.Section, b.Section) })
	return list
}

// running returns the served state of the worker that answers.
func (p *Proxy) running() (map[string]listener, error) {
	if worker := p.admin.worker(); p.seen == nil || worker == 0 || worker != p.by {
		if _, err := p.look(); err != nil {
			return nil, err
		}
	}
	return p.seen, nil
}

// changed returns the running state after changes. When one of them failed, it is queried anew next time.
func (p *Proxy) changed(running map[string]listener, list []change, err error) map[string]listener {
	if err != nil {
		p.seen = nil
		return running
	}
	for _, c := range list {
		l := running[c.Section]
		l.Servers = changed(l.Servers, c)
		running[c.Section] = l
		if one := (place{c.Section, c.Server.Name}); c.Server.State == leaving {
			p.leaving[one] = true
		} else {
			delete(p.leaving, one)
		}
	}
	p.removeLater()
	return running
}

// ports returns the ports on which HAProxy must listen.
func ports(routes []route.Route, web Web) (list []uint16) {
	for _, r := range routes {
		list = append(list, r.GatewayPort)
	}
	for _, l := range web.Listeners {
		list = append(list, l.Port)
	}
	return list
}

// EndDead ends the connections to servers that have not answered for a while, which TCP would keep. HAProxy's "on-marked-down shutdown-sessions" is not
// used: it also ends the connections of a server that is removed while its pod goes on, and after the first failed checks. At this time HAProxy is queried
// for all of its servers, less often the more there are.
func (p *Proxy) EndDead() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if time.Since(p.looked) < time.Duration(servers(p.seen))*lookPause {
		return nil
	}
	down, err := p.look()
	if err != nil {
		return err
	}
	var problems []error
	for _, one := range down {
		if one.since >= p.config.DeadAfter {
			problems = append(problems, p.admin.end(one.server))
		}
	}
	return errors.Join(problems...)
}

// lookPause is, for each server, how long it takes from one look at all of them until the next: a hundred times as long as the look.
const lookPause = time.Millisecond

// look queries the worker that answers for its served state.
func (p *Proxy) look() (down []outage, err error) {
	p.seen = nil
	found, err := p.admin.look()
	if err != nil {
		return nil, err
	}
	p.seen, p.by, p.looked = found.listeners, found.worker, time.Now()
	p.leaving = make(map[place]bool)
	for section, l := range p.seen {
		for _, s := range l.Servers {
			if s.State == leaving {
				p.leaving[place{section, s.Name}] = true
			}
		}
	}
	p.removeLater()
	p.watch()
	return found.down, nil
}

// plan returns the wanted listeners and pools, and for each pool, by its name, the sections with its backends. It refuses a port of a new listener that
// another process on this node holds.
func (p *Proxy) plan(
	ctx context.Context, routes []route.Route, web Web, running map[string]listener, refused map[uint16]error,
) (wanted map[string]listener, sections map[string][]string) {
	wanted, sections = make(map[string]listener, len(routes)), make(map[string][]string, len(web.Pools))
	add := func(l listener, backends []route.Backend) {
		if _, runs := running[l.Section]; !runs && l.Port != 0 {
			if err := p.available(ctx, l.Port); err != nil {
				refused[l.Port] = err
				return
			}
		}
		l.Servers = serversOf(backends, l.keepsClients())
		wanted[l.Section] = l
	}
	for _, r := range routes {
		add(p.listener(r), r.Backends)
	}
	for _, one := range web.Listeners {
		add(portListener(one, web.Sites, p.file.web), nil)
	}
	pools := make(map[string]route.Pool, len(web.Pools))
	for _, pool := range web.Pools {
		l, name := poolListener(pool), pool.Name()
		pools[name] = pool
		sections[name] = append(sections[name], l.Section)
		add(l, pool.Backends)
	}
	for _, t := range targetsOf(web.Sites) {
		switch pool, there := pools[t.pool]; {
		case there:
			l := t.listener(p.file.web)
			l.keepClients(pool)
			sections[t.pool] = append(sections[t.pool], l.Section)
			add(l, pool.Backends)
		case t.pool == "":
			add(t.listener(p.file.web), nil)
		}
	}
	return wanted, sections
}

// listener is the form of a route in HAProxy, without its servers.
func (p *Proxy) listener(r route.Route) listener {
	demanded, sum := rulesOf(r), p.plain
	if !demanded.none() {
		sum = demanded.sum()
	}
	return listener{Section: traffic.Section(r.GatewayPort), Port: r.GatewayPort, About: about(r, sum), Rules: demanded}
}

// available reports whether HAProxy will be able to listen on a port. A check of the configuration does not find that out, and one occupied port would
// make the whole reload fail.
func (p *Proxy) available(ctx context.Context, port uint16) error {
	var config net.ListenConfig
	for _, address := range []netip.Addr{p.config.Bind, p.config.Bind6} {
		if !address.IsValid() {
			continue
		}
		network := "tcp4"
		if address.Is6() {
			network = "tcp6" // which leaves IPv4 alone
		}
		l, err := config.Listen(ctx, network, netip.AddrPortFrom(address, port).String())
		if err != nil {
			return fmt.Errorf("another program on this gateway holds port %d: %w", port, err)
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// install writes the file and, when the listeners differ from the running ones, or servers could not be changed at run time, lets HAProxy load it.
func (p *Proxy) install(ctx context.Context, wanted, running map[string]listener, down, unchanged bool, outcome *Outcome) error {
	if p.failed.err != nil && time.Now().Before(p.failed.until) && sameLayout(p.failed.wanted, wanted) {
		p.keepInStep(ctx, wanted, running)
		return p.failed.err
	}
	same := !down && !unchanged && sameLayout(wanted, running)
	if err := p.file.write(ctx, wanted); err != nil {
		p.remember(wanted, err)
		return err
	}
	if same && p.file.proven() {
		p.failed = failure{}
		return p.file.keep()
	}
	if wait := time.Until(p.next); wait > 0 && !down {
		outcome.Waiting, outcome.Due = true, wait
		return nil
	}
	if err := p.reload(ctx, wanted); err != nil {
		restored := p.file.restore()
		p.remember(wanted, err)
		p.keepInStep(ctx, wanted, running)
		return errors.Join(fmt.Errorf("%w; the configuration before stays", err), restored)
	}
	outcome.Reloaded = true
	p.failed = failure{}
	return p.file.keep()
}

func (p *Proxy) remember(wanted map[string]listener, err error) {
	p.failed = failure{wanted: wanted, err: err, until: time.Now().Add(p.config.RetryAfter)}
}

// keepInStep writes the servers of running listeners, while the listeners themselves must stay as they are: should HAProxy restart now, it starts with the
// present servers.
func (p *Proxy) keepInStep(ctx context.Context, wanted, running map[string]listener) {
	written := maps.Clone(p.file.is)
	for section, was := range p.file.is {
		want, stays := wanted[section]
		if _, runs := running[section]; !stays || !runs {
			continue
		}
		was.Servers, was.Filters, was.Secure = want.Servers, want.Filters, want.Secure
		written[section] = was
	}
	if err := p.file.write(ctx, written); err != nil {
		p.config.Logger.Warn("the HAProxy configuration does not follow the changes at run time", "error", err)
		return
	}
	if err := p.file.keep(); err != nil {
		p.config.Logger.Warn("the HAProxy configuration does not follow the changes at run time", "error", err)
	}
}

// reloadRepeat is after which time a reload without effect is asked for again: it is a signal to HAProxy's master, which is deaf for an instant
// while it executes itself anew.
const reloadRepeat = time.Second

// readOne is how long HAProxy may take, on a slow machine, to read one listener or server: it is asked again, and given up, so much later.
const readOne = time.Millisecond

// reload has HAProxy take the file over and waits until another worker than before answers, with the listeners wanted.
func (p *Proxy) reload(ctx context.Context, wanted map[string]listener) error {
	start, more := time.Now(), time.Duration(max(size(wanted), size(p.seen)))*readOne // the worker before has to hand over, too
	patience := p.config.ReloadTimeout + more
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	before := p.admin.worker()
	ask := time.NewTimer(0)
	defer ask.Stop()
	look := time.NewTimer(0)
	defer look.Stop()
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("reload HAProxy: no worker with the new listeners answered on %s within %s; HAProxy's own log says why (journalctl -u haproxy)", p.config.Socket, patience)
		case <-ask.C:
			if err := p.config.Reload(ctx); err != nil {
				return fmt.Errorf("reload HAProxy: %w", err)
			}
			asked++
			ask.Reset(reloadRepeat + more)
			look.Reset(0)
		case <-look.C:
			if asked == 0 {
				continue
			}
			looked := time.Now()
			again := true
			if now := p.admin.worker(); now != 0 && now != before {
				_, err := p.look()
				again = err != nil || p.by == before || !sameLayout(p.seen, wanted)
			}
			if again {
				look.Reset(max(2*time.Millisecond, 3*time.Since(looked))) // a look at thousands of servers must not take the processor from HAProxy
				continue
			}
			done := time.Now()
			took := done.Sub(start)
			p.next = start.Add(max(p.config.ReloadGap, took+min(took/4, p.config.ReloadGap/2))) // some of it is left for other things
			if asked > 1 {
				p.late = done.Add(patience)
			}
			p.config.Logger.Info("HAProxy took over a new configuration", "duration", time.Since(start).Round(time.Millisecond))
			return nil
		}
	}
}

// size is how much of a configuration listeners and their servers are.
func size(all map[string]listener) int { return len(all) + servers(all) }

// sameLayout compares the parts that cannot change without a reload: the set of listeners.
func sameLayout(a, b map[string]listener) bool {
	return maps.EqualFunc(a, b, func(a, b listener) bool { return true })
}
