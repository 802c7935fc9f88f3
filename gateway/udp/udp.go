// Package udp passes UDP on: an nftables table of the gateway's own leads each flow of a published port to a backend, and the kernel's connection tracking
// keeps it there.
//
// Every change replaces the whole table in one transaction, so that at no instant there is none. Flows that exist stay where they are, also while the
// daemon does not run. Only addresses, networks and numbers get into the rules: no text of others does.
package udp

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/burano/burano/gateway/nft"
	"github.com/burano/burano/gateway/route"
)

// TableName is the name of the table, of family inet.
const TableName = "burano-udp"

// Mark marks the tracked flows of a port: they have the mark Mark + port.
const Mark uint32 = 0xb0da0000

const markMask uint32 = 0xffff0000

// Seeds of the hashes, the same on all gateways: a client that changes the gateway keeps its backend.
const (
	seedTarget  = 0x6275
	seedBackend = 0x7261
)

// Port is a published port.
type Port struct {
	Number uint16
	route.Flow
}

// Config has the programs and files of a gateway.
type Config struct {
	Command  []string     // nft, and what comes before its arguments
	Tracking Tracking     // the kernel's connection tracking; nil: of this node
	Forward  []string     // files of the kernel that get "1" where a port is served; nil: of both families
	Logger   *slog.Logger // nil: none
}

// Table is the table of this node. Its methods are not for concurrent use, except Published.
type Table struct {
	config Config
	known  bool   // the table is that of rules
	rules  string // without counters; "" without ports
	ports  []Port
	// incomplete means that flows without a backend are left; again that the next refresh looks for some.
	incomplete, again bool
	changes           int
	shown             atomic.Pointer[[]Port] // of Published
}

// New changes nothing yet.
func New(c Config) *Table {
	if len(c.Command) == 0 {
		c.Command = []string{"nft"}
	}
	if c.Forward == nil {
		c.Forward = []string{"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"}
	}
	if c.Tracking == nil {
		c.Tracking = kernel{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Table{config: c}
}

// Apply serves exactly these ports; without any there is no table. With refresh it repairs changes of others, too. Flows to a backend that is not among the
// port's any more end, so that the next datagram of the client reaches another one; flows to a draining backend stay.
func (t *Table) Apply(ctx context.Context, ports []Port, refresh bool) error {
	ports = slices.SortedFunc(slices.Values(ports), func(a, b Port) int { return cmp.Compare(a.Number, b.Number) })
	rules := ""
	if len(ports) > 0 {
		rules = Ruleset(ports)
	}
	there := t.known && t.rules != ""
	if !t.known || refresh && rules != "" {
		// After a start there may be a table of the former process; with refresh somebody else may have removed it.
		there = t.run(ctx, fmt.Sprintf("list table inet %s\n", TableName)) == nil
	}
	// A draining backend that ends changes no rule.
	changed := !t.known || rules != t.rules || !reflect.DeepEqual(ports, t.ports)
	if !t.known && !there && rules == "" {
		t.known = true
		return nil
	}
	if rules != t.rules || !t.known || rules != "" && !there {
		if err := t.replace(ctx, ports, there); err != nil {
			t.known = false
			return err
		}
		t.changes++
	}
	former := t.ports
	t.known, t.rules, t.ports = true, rules, ports
	t.shown.Store(&ports)
	if !changed && !t.incomplete && !(refresh && t.again) {
		return nil
	}
	// A packet that the former rules led may be tracked only after this look: the next refresh looks once more.
	t.incomplete, t.again = true, changed
	ended, err := t.end(ports, former)
	if err != nil {
		return fmt.Errorf("end flows of UDP without a backend: %w", err)
	}
	t.incomplete = false
	if ended > 0 {
		t.config.Logger.Info("flows of UDP ended, as their backends did", "flows", ended)
	}
	return nil
}

// Changes counts the replacements of the table.
func (t *Table) Changes() int { return t.changes }

// replace puts the table for the ports in place of the present one, whose counters it takes over.
func (t *Table) replace(ctx context.Context, ports []Port, there bool) error {
	if len(ports) == 0 {
		if err := t.run(ctx, fmt.Sprintf("table inet %s\ndelete table inet %s\n", TableName, TableName)); err != nil {
			return fmt.Errorf("remove the nftables table %s: %w", TableName, err)
		}
		return nil
	}
	t.forward()
	var counted map[string]counter
	if there {
		var err error
		if counted, err = t.counters(ctx); err != nil {
			t.config.Logger.Warn("the counters of UDP ports begin anew", "error", err)
		}
	}
	if err := t.run(ctx, ruleset(ports, counted)); err != nil {
		return fmt.Errorf("keep the nftables table %s: %w", TableName, err)
	}
	return nil
}

// forward lets the node pass packets on.
func (t *Table) forward() {
	for _, file := range t.config.Forward {
		if has, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(has)) != "0" {
			continue // without IPv6 there is no such file
		}
		if err := os.WriteFile(file, []byte("1"), 0o644); err != nil {
			t.config.Logger.Error("the node does not pass packets on", "file", file, "error", err)
		}
	}
}

func (t *Table) run(ctx context.Context, ruleset string) error {
	_, err := t.nft(ctx, ruleset, "-f", "-")
	return err
}

func (t *Table) nft(ctx context.Context, input string, arguments ...string) ([]byte, error) {
	return nft.Run(ctx, slices.Concat(t.config.Command, arguments), input)
}

// Ruleset is the whole table. It replaces the one before in the same transaction.
func Ruleset(ports []Port) string { return ruleset(ports, nil) }

func ruleset(ports []Port, counted map[string]counter) string {
	w := writer{counted: counted}
	w.line("table inet %s", TableName)
	w.line("delete table inet %s", TableName)
	w.line("table inet %s {", TableName)
	for _, p := range ports {
		w.port(p)
	}
	var jumps, in, out []string
	for _, p := range ports {
		jumps = append(jumps, fmt.Sprintf("%d : jump port-%d", p.Number, p.Number))
		in = append(in, fmt.Sprintf("%d : %q", Mark+uint32(p.Number), fmt.Sprintf("in-%d", p.Number)))
		out = append(out, fmt.Sprintf("%d : %q", Mark+uint32(p.Number), fmt.Sprintf("out-%d", p.Number)))
	}
	w.line("chain arriving {")
	// Before the chains of others. What the node sends to itself is not for the gateway's ports.
	w.line("type nat hook prerouting priority dstnat - 10; policy accept;")
	w.line("iifname != \"lo\" fib daddr type local udp dport vmap { %s }", strings.Join(jumps, ", "))
	w.line("}")
	w.line("chain leaving {")
	w.line("type nat hook postrouting priority srcnat - 10; policy accept;")
	w.line("ct status dnat ct mark & %d == %d masquerade", markMask, Mark)
	w.line("}")
	w.line("chain passing {")
	w.line("type filter hook forward priority filter; policy accept;")
	w.line("ct direction original counter name ct mark map { %s }", strings.Join(in, ", "))
	w.line("ct direction reply counter name ct mark map { %s }", strings.Join(out, ", "))
	w.line("}")
	w.line("}")
	return w.String()
}

// writer writes rules.
type writer struct {
	strings.Builder
	counted map[string]counter
}

// line takes numbers, addresses and networks only.
func (w *writer) line(format string, arguments ...any) {
	fmt.Fprintf(w, format, arguments...)
	w.WriteByte('\n')
}

// port writes the chains of a port: one for what all its flows have in common, one for each of its targets.
func (w *writer) port(p Port) {
	for _, kind := range []string{"new", "in", "out", "denied"} {
		name := fmt.Sprintf("%s-%d", kind, p.Number)
		has := w.counted[name]
		w.line("counter %s { packets %d bytes %d; }", name, has.Packets, has.Bytes)
	}
	total := 0
	var shares []string
	for i, target := range p.Targets {
		if target.Weight == 0 {
			continue
		}
		w.line("chain target-%d-%d {", p.Number, i)
		w.backends(target, false)
		w.backends(target, true)
		w.line("}")
		shares = append(shares, fmt.Sprintf("%d-%d : goto target-%d-%d", total, total+target.Weight-1, p.Number, i))
		if target.Weight == 1 {
			shares[len(shares)-1] = fmt.Sprintf("%d : goto target-%d-%d", total, p.Number, i)
		}
		total += target.Weight
	}
	w.line("chain port-%d {", p.Number)
	if len(p.Sources) > 0 {
		w.sources(p)
	}
	w.line("counter name \"new-%d\" ct mark set %d", p.Number, Mark+uint32(p.Number))
	if total > 0 {
		for _, family := range []string{"ip", "ip6"} {
			w.line("jhash %s saddr . udp sport mod %d seed %d vmap { %s }", family, total, seedTarget, strings.Join(shares, ", "))
		}
	}
	// No backend: a dropped packet leaves no tracked flow, so that the next one of the client is looked at again.
	w.line("drop")
	w.line("}")
}

// backends spreads flows over the ready backends of a family. The rest of them is dropped.
func (w *writer) backends(target route.UDPTarget, six bool) {
	var list []string
	for _, b := range target.Backends {
		at, ok := addressOf(b)
		if !ok || !b.Ready || b.Port == 0 || at.Addr().Zone() != "" || at.Addr().Is6() != six {
			continue
		}
		list = append(list, fmt.Sprintf("%d : %s . %d", len(list), at.Addr(), at.Port()))
	}
	family := "ip"
	if six {
		family = "ip6"
	}
	key := family + " saddr . udp sport"
	if target.Sticky {
		key = family + " saddr"
	}
	if len(list) > 0 {
		w.line("meta l4proto udp dnat %s to jhash %s mod %d seed %d map { %s }", family, key, len(list), seedBackend, strings.Join(list, ", "))
	}
	if six {
		w.line("drop")
	}
}

// sources drops flows from elsewhere.
func (w *writer) sources(p Port) {
	four, six := nft.Families(p.Sources)
	for _, one := range []struct {
		family, protocol string
		networks         []netip.Prefix
	}{{"ip", "ipv4", four}, {"ip6", "ipv6", six}} {
		denied := fmt.Sprintf("counter name \"denied-%d\" drop", p.Number)
		if len(one.networks) == 0 {
			w.line("meta nfproto %s %s", one.protocol, denied)
			continue
		}
		w.line("%s saddr != %s %s", one.family, nft.Set(one.networks), denied)
	}
}

// addressOf is where a backend takes datagrams.
func addressOf(b route.Backend) (address netip.AddrPort, ok bool) {
	parsed, err := netip.ParseAddr(b.Address)
	return netip.AddrPortFrom(parsed.Unmap(), b.Port), err == nil
}
