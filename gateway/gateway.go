// Package gateway is the daemon of a gateway node: it watches the routes in etcd, lets HAProxy serve them and the firewall admit them.
//
// A port is closed in the firewall first, and opened there last, when HAProxy really listens. Without etcd everything stays as it is; when the daemon
// ends, HAProxy and the firewall continue.
package gateway

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/burano/burano/gateway/firewall"
	"github.com/burano/burano/gateway/follow"
	"github.com/burano/burano/gateway/haproxy"
	"github.com/burano/burano/gateway/loop"
	"github.com/burano/burano/gateway/route"
	"github.com/burano/burano/gateway/seal"
	"github.com/burano/burano/gateway/traffic"
	"github.com/burano/burano/gateway/udp"
)

// Config has the source of routes and the servers for them.
type Config struct {
	Etcd *clientv3.Client
	// Name is that of this node; without it there are no certificates.
	Name string
	// SealKey is the file with the key that certificates for this gateway are sealed to, which is made when there is none.
	SealKey  string
	HAProxy  haproxy.Config
	Internal []netip.Prefix // the cluster's networks (pods, services, nodes), which the firewall lets in
	AllowSSH []netip.Prefix // where SSH may come from; empty: anywhere
	Open     []uint16       // ports of the node itself that the firewall lets in from everywhere
	Firewall Firewall       // nil: the nftables table of this node
	UDP      udp.Config     // the table for UDP
	Metrics  netip.AddrPort // where its metrics are; invalid: nowhere
	// StatusSocket is the socket for its status (see AskStatus); "": none.
	StatusSocket string
	Coalesce     time.Duration // how long changes are gathered before they are applied; 5 ms
	Resync       time.Duration // interval of the comparison of everything with the desired state, changed or not; 10 s
	Logger       *slog.Logger
}

// Firewall admits ports from outside.
type Firewall interface {
	// Guard admits nothing where nothing was ever decided, and leaves everything else as it is.
	Guard(ctx context.Context) error
	// Publish admits exactly these ports.
	Publish(ctx context.Context, ports []uint16) error
	// Refresh repairs changes of others.
	Refresh(ctx context.Context) error
}

// Run serves until the context ends, which is its only reason to return nil. It fails at once only when the firewall cannot be closed, when
// HAProxy's configuration file cannot be opened, or when the configuration makes no sense.
func Run(ctx context.Context, c Config) error {
	c.Coalesce = cmp.Or(c.Coalesce, 5*time.Millisecond)
	c.Resync = cmp.Or(c.Resync, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.HAProxy.Logger == nil {
		c.HAProxy.Logger = c.Logger
	}
	if c.Firewall == nil {
		table, err := firewall.New(firewall.Config{Internal: c.Internal, AllowSSH: c.AllowSSH, Open: c.Open})
		if err != nil {
			return fmt.Errorf("gateway: %w", err)
		}
		c.Firewall = table
	}
	// Before etcd is asked, which may take its time.
	if err := c.Firewall.Guard(ctx); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g := &gateway{config: c, refused: make(map[uint16]string)}
	changed := make(chan struct{}, 1)
	g.wake = loop.Waker(changed)
	c.HAProxy.Ended = g.again
	var err error
	if g.proxy, err = haproxy.Open(ctx, c.HAProxy); err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	if c.Name != "" {
		if g.key, err = seal.Load(c.SealKey); err != nil {
			c.Logger.Error("there are no certificates until the daemon starts again", "error", err)
			g.config.Name = ""
		}
	}
	wait := g.watch(ctx)
	g.known = newKnowledge(cmp.Or(c.HAProxy.Socket, traffic.Socket), g.routes.Answers)
	passing := g.passUDP(ctx)
	told := g.known.serve(ctx, c)
	g.loop(ctx, changed)
	wait()
	passing()
	told()
	if err := g.proxy.Close(); err != nil {
		c.Logger.Error("a start of HAProxy without this daemon would be with servers of before", "error", err)
	}
	c.Logger.Info("the gateway daemon ends; HAProxy goes on serving")
	return nil
}

type gateway struct {
	config  Config
	proxy   *haproxy.Proxy
	key     seal.Key
	routes  *follow.Folder[route.Route]
	web     *follow.Folder[route.Part]
	sealed  *follow.Folder[certificate]
	known   *knowledge
	wake    func()            // lets the loop apply changes
	all     atomic.Bool       // it is to apply everything
	done    bool              // everything that was known is applied
	open    []uint16          // ports that the firewall admits, as far as we know
	started bool              // something was applied
	refused map[uint16]string // the logged reasons of ports that cannot be served
	trouble string            // the last logged failure
}

// watch follows the routes in etcd until the context ends, and has changes applied; wait returns when it is over.
func (g *gateway) watch(ctx context.Context) (wait func()) {
	g.routes = follow.New(g.config.Etcd, route.RoutesPrefix, route.Decode, g.wake, g.config.Logger)
	g.web = follow.New(g.config.Etcd, route.HTTPPrefix, route.DecodePart, g.wake, g.config.Logger)
	g.sealed = follow.New(g.config.Etcd, route.CertificatesPrefix+g.config.Name+"/", g.unseal, g.wake, g.config.Logger)
	var all sync.WaitGroup
	for _, run := range []func(context.Context){g.routes.Run, g.web.Run, g.sealed.Run} {
		all.Go(func() { run(ctx) })
	}
	return all.Wait
}

// again has the loop apply everything.
func (g *gateway) again() {
	g.all.Store(true)
	g.wake()
}

// loop applies the state of etcd: the changes, where that is enough, or everything.
func (g *gateway) loop(ctx context.Context, changed <-chan struct{}) {
	loop.Run(ctx, loop.Config{Changed: changed, Coalesce: g.config.Coalesce, Resync: g.config.Resync}, func(ctx context.Context, resync bool) bool {
		at := route.Applied{Routes: g.routes.Revision(), HTTP: g.web.Revision(), Certificates: g.sealed.Revision()}
		all := g.all.Swap(false) || resync || !g.done
		if g.changed() && !all {
			g.known.reached(at)
			return true
		}
		g.done = false
		routes, known := g.routes.Values()
		web, webKnown := g.wanted()
		if !known || !webKnown {
			return true // nothing was read from etcd yet: the present state stays
		}
		if resync || !g.started {
			g.tellKey(ctx)
		}
		// A stopping daemon finishes a begun change: a reload that is not waited for may leave HAProxy with former servers.
		complete, err := g.apply(context.WithoutCancel(ctx), routes, web, at, resync)
		if ctx.Err() == nil {
			g.report(err)
		}
		g.done = complete
		return complete
	})
}

// changed applies changes in etcd that concern backends alone, as most do. done is false when everything has to be compared.
func (g *gateway) changed() (done bool) {
	start := time.Now()
	routes, moreRoutes := g.routes.Changed()
	parts, moreParts := g.web.Changed()
	certificates, moreCertificates := g.sealed.Changed()
	var pools []route.Pool
	for _, part := range parts {
		if part.Pool != nil {
			pools = append(pools, *part.Pool)
		}
	}
	switch {
	case moreRoutes || moreParts || moreCertificates || len(certificates) > 0 || len(pools) < len(parts):
		return false
	case len(routes)+len(pools) == 0:
		return true
	}
	servers, done := g.proxy.Change(routes, pools)
	if done && servers > 0 {
		g.known.noteServers(servers)
		g.config.Logger.Info("applied", "servers", servers, "duration", time.Since(start).Round(100*time.Microsecond))
	}
	return done
}

// apply applies routes of some revisions of etcd to firewall and HAProxy. It is complete when nothing has to be tried again.
func (g *gateway) apply(ctx context.Context, routes []route.Route, web haproxy.Web, at route.Applied, refresh bool) (complete bool, err error) {
	winners, _ := route.Contest(routes)
	wanted := make(map[uint16]bool, len(winners)+len(web.Listeners))
	for _, r := range winners {
		wanted[r.GatewayPort] = true
	}
	// A route has its port to itself; while the publisher gives one to the other, etcd may have both for an instant.
	web.Listeners = slices.DeleteFunc(slices.Clone(web.Listeners), func(l route.Listener) bool { return wanted[l.Port] })
	for _, l := range web.Listeners {
		wanted[l.Port] = true
	}
	if refresh {
		if err := g.config.Firewall.Refresh(ctx); err != nil {
			return false, err
		}
	}
	if g.started {
		staying := slices.DeleteFunc(slices.Clone(g.open), func(port uint16) bool { return !wanted[port] })
		if err := g.admit(ctx, staying); err != nil {
			return false, err
		}
	}
	var dead error
	if refresh {
		dead = g.proxy.EndDead()
	}
	start := time.Now()
	outcome, err := g.proxy.Apply(ctx, winners, web)
	g.known.note(winners, web.Listeners, outcome, err)
	if err := g.admit(ctx, outcome.Serving); err != nil {
		return false, err
	}
	if err == nil && len(outcome.Refused) == 0 && !outcome.Waiting {
		g.known.reached(at)
	}
	g.logRefused(outcome.Refused)
	switch {
	case !g.started && err == nil:
		g.started = true
		g.config.Logger.Info("serving", "routes", len(winners), "sites", len(web.Sites), "ports", outcome.Serving)
	case outcome.Changed > 0 || outcome.Reloaded:
		g.config.Logger.Info("applied", "routes", len(winners), "servers", outcome.Changed, "reloaded", outcome.Reloaded,
			"duration", time.Since(start).Round(100*time.Microsecond))
	}
	if dead != nil && err == nil {
		g.config.Logger.Warn("connections to servers that are down stay", "error", dead)
	}
	if outcome.Due > 0 {
		time.AfterFunc(outcome.Due, g.again)
		outcome.Waiting = false
	}
	return err == nil && len(outcome.Refused) == 0 && !outcome.Waiting, err
}

func (g *gateway) admit(ctx context.Context, ports []uint16) error {
	if err := g.config.Firewall.Publish(ctx, ports); err != nil {
		return err
	}
	g.open = ports
	return nil
}

// logRefused logs refusals once, and their end once. One reload that fails refuses thousands of ports: a reason is one line.
func (g *gateway) logRefused(refused map[uint16]error) {
	why := map[string][]uint16{}
	for _, port := range slices.Sorted(maps.Keys(refused)) {
		if reason := refused[port].Error(); g.refused[port] != reason {
			g.refused[port] = reason
			why[reason] = append(why[reason], port)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		g.config.Logger.Error("ports are not served, trying again", "ports", why[reason], "error", reason)
	}
	var again []uint16
	for _, port := range slices.Sorted(maps.Keys(g.refused)) {
		if refused[port] == nil {
			delete(g.refused, port)
			again = append(again, port)
		}
	}
	if len(again) > 0 {
		g.config.Logger.Info("ports are no longer refused", "ports", again)
	}
}

// report logs changes between going well and failing.
func (g *gateway) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == g.trouble {
		return
	}
	g.trouble = text
	if err != nil {
		g.config.Logger.Error("cannot apply the routes fully, trying again", "error", err)
		return
	}
	g.config.Logger.Info("the routes are applied again")
}
