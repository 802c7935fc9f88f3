package udp

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/burano/burano/gateway/traffic"
)

// Tracking is the kernel's table of tracked flows.
type Tracking interface {
	// List gives the flows of a family.
	List(family netlink.InetFamily) ([]*netlink.ConntrackFlow, error)
	// Delete removes the flows of a family that match.
	Delete(family netlink.InetFamily, match netlink.CustomConntrackFilter) (uint, error)
	// Addresses are of the node itself.
	Addresses() ([]netlink.Addr, error)
}

// kernel is the tracking of this node, or of the network namespace of a handle.
type kernel struct{ handle *netlink.Handle }

// TrackingOf is the tracking of another network namespace.
func TrackingOf(handle *netlink.Handle) Tracking { return kernel{handle} }

func (k kernel) in() *netlink.Handle {
	if k.handle == nil {
		return &netlink.Handle{}
	}
	return k.handle
}

func (k kernel) List(family netlink.InetFamily) ([]*netlink.ConntrackFlow, error) {
	return k.in().ConntrackTableList(netlink.ConntrackTable, family)
}

func (k kernel) Delete(family netlink.InetFamily, match netlink.CustomConntrackFilter) (uint, error) {
	return k.in().ConntrackDeleteFilters(netlink.ConntrackTable, family, match)
}

func (k kernel) Addresses() ([]netlink.Addr, error) {
	return k.in().AddrList(nil, netlink.FAMILY_ALL)
}

var families = []netlink.InetFamily{unix.AF_INET, unix.AF_INET6}

// tracked is a flow of a published port.
type tracked struct {
	port    uint16
	backend netip.AddrPort
}

// read reports the port and the backend of a flow that the table has led to one.
func read(flow *netlink.ConntrackFlow) (one tracked, ours bool) {
	if flow.Mark&markMask != Mark || flow.Forward.Protocol != unix.IPPROTO_UDP {
		return one, false
	}
	return tracked{port: uint16(flow.Mark), backend: endpoint(flow.Reverse.SrcIP, flow.Reverse.SrcPort)}, true
}

func endpoint(ip net.IP, port uint16) netip.AddrPort {
	address, _ := netip.AddrFromSlice(ip)
	return netip.AddrPortFrom(address.Unmap(), port)
}

// stale matches flows that are to end.
type stale struct {
	backends map[tracked]bool    // of the ports
	own      map[netip.Addr]bool // addresses of the node
	new      map[uint16]bool     // ports that are published for the first time
}

// MatchConntrackFlow reports whether a flow is to end: its backend is none of its port any more, or it began before its port was published and leads
// nowhere.
func (s stale) MatchConntrackFlow(flow *netlink.ConntrackFlow) bool {
	if one, ours := read(flow); ours {
		return !s.backends[one]
	}
	to := endpoint(flow.Forward.DstIP, flow.Forward.DstPort)
	return flow.Forward.Protocol == unix.IPPROTO_UDP && s.new[to.Port()] && s.own[to.Addr()] && endpoint(flow.Reverse.SrcIP, flow.Reverse.SrcPort) == to
}

// end removes flows without a backend.
func (t *Table) end(ports, former []Port) (ended uint, err error) {
	s := stale{backends: make(map[tracked]bool), own: make(map[netip.Addr]bool), new: make(map[uint16]bool)}
	for _, p := range ports {
		s.new[p.Number] = !slices.ContainsFunc(former, func(f Port) bool { return f.Number == p.Number })
		for _, target := range p.Targets {
			for _, b := range target.Backends {
				if at, ok := addressOf(b); ok && (b.Ready || b.Draining) {
					s.backends[tracked{p.Number, at}] = true
				}
			}
		}
	}
	addresses, err := t.config.Tracking.Addresses()
	if err != nil {
		return 0, fmt.Errorf("list the node's addresses: %w", err)
	}
	for _, one := range addresses {
		if address, ok := netip.AddrFromSlice(one.IP); ok {
			s.own[address.Unmap()] = true
		}
	}
	for _, family := range families {
		number, err := t.config.Tracking.Delete(family, s)
		if err != nil {
			return ended, err
		}
		ended += number
	}
	return ended, nil
}

// counter is one of the table's.
type counter struct {
	Name    string `json:"name"`
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// counters reads the counters of the present table, by their names.
func (t *Table) counters(ctx context.Context) (map[string]counter, error) {
	output, err := t.nft(ctx, "", "-j", "list", "counters", "table", "inet", TableName)
	if err != nil {
		return nil, err
	}
	var answer struct {
		List []struct {
			Counter *counter `json:"counter"`
		} `json:"nftables"`
	}
	if err := json.Unmarshal(output, &answer); err != nil {
		return nil, fmt.Errorf("read the counters of the table %s: %w", TableName, err)
	}
	found := make(map[string]counter, len(answer.List))
	for _, one := range answer.List {
		if one.Counter != nil {
			found[one.Counter.Name] = *one.Counter
		}
	}
	return found, nil
}

// patience is the limit of a question about counters.
const patience = 5 * time.Second

// Published is a port that is served, with its counters in HAProxy's terms: connections are flows, as the kernel tracks them.
type Published struct {
	Port
	Listener traffic.Listener
}

// Published lists the served ports. An error means that the counters are unknown.
func (t *Table) Published(ctx context.Context) (list []Published, err error) {
	ports := t.shown.Load()
	if ports == nil || len(*ports) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	counted, err := t.counters(ctx)
	open := make(map[tracked]int64)
	perPort := make(map[uint16]int64)
	for _, family := range families {
		flows, problem := t.config.Tracking.List(family)
		if err == nil && problem != nil {
			err = fmt.Errorf("list the tracked flows: %w", problem)
		}
		for _, flow := range flows {
			if one, ours := read(flow); ours {
				open[one]++
				perPort[one.port]++
			}
		}
	}
	for _, p := range *ports {
		of := func(kind string) counter { return counted[kind+"-"+strconv.Itoa(int(p.Number))] }
		l := traffic.Listener{Port: p.Number, Backends: []traffic.Server{}, Counters: traffic.Counters{
			Connections: perPort[p.Number], ConnectionsTotal: int64(of("new").Packets), BytesIn: int64(of("in").Bytes), BytesOut: int64(of("out").Bytes), Denied: int64(of("denied").Packets),
		}}
		for _, target := range p.Targets {
			for _, b := range target.Backends {
				if at, ok := addressOf(b); ok {
					// Nobody checks it: Kubernetes said how it is.
					server := traffic.Server{Address: at.String(), State: traffic.Draining, Counters: traffic.Counters{Connections: open[tracked{p.Number, at}]}}
					if b.Ready {
						server.State = traffic.Up
					}
					l.Backends = append(l.Backends, server)
				}
			}
		}
		list = append(list, Published{Port: p, Listener: l})
	}
	return list, err
}
