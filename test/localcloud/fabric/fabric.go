// Package fabric is the local cloud's data plane: networks, routers, floating addresses and the plugs of servers, made of the kernel's own bridges, veth
// pairs, network namespaces and NAT.
//
// The objects are:
//
//   - a network is a bridge in a namespace of its own, so that networks of different projects may have the same addresses;
//   - a router is a namespace with one veth leg into each of its networks and one into the external network;
//   - the external network is a bridge of the host, on which the host has the first address;
//   - a floating address is a /32 on its router's external leg, with NAT in both directions;
//   - a server is a namespace that the caller boots; its ports are veth legs with fixed MAC addresses;
//   - a security group is rules of the bridge that a port is plugged into.
//
// Everything is declared and made idempotent: applying an object again makes missing parts and changes nothing else, so that a process that was killed
// just applies everything again. Everything carries one prefix in its name, by which DeleteAll finds it, also without other records.
package fabric

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sync/errgroup"
)

// Prefix begins the name of everything the fabric makes on the machine.
const Prefix = "blc-"

// Config has the fabric's addresses and folders.
type Config struct {
	// StateDir has the record of changes outside the fabric's own objects.
	StateDir string
	// Prefix begins the names of all namespaces and of the host's interfaces; at most 6 letters, Prefix when empty. Two fabrics on
	// one machine need different ones.
	Prefix string
	// External is the external network; the host takes its first address.
	External netip.Prefix
	// External6 is its network of IPv6, of which the host takes the first address too; none when it is not valid. To networks of IPv6 behind
	// routers the host has routes: there is no NAT between versions of IPv6, and no floating IP.
	External6 netip.Prefix
	Logger    *slog.Logger
}

// Fabric makes and removes the data plane. It is safe for concurrent use.
type Fabric struct {
	config Config
	locks  sync.Map // name of a namespace or bridge → *sync.Mutex

	mutex    sync.Mutex
	rulesets map[string]string // id of a router or network → the rules this process gave it last
}

// New checks the configuration; it touches nothing.
func New(config Config) (*Fabric, error) {
	if config.Prefix == "" {
		config.Prefix = Prefix
	}
	if len(config.Prefix) > 6 {
		return nil, fmt.Errorf("prefix %q is longer than 6 letters: interface names end at 15", config.Prefix)
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if !config.External.Addr().Is4() || config.External != config.External.Masked() || config.External.Bits() > 28 {
		return nil, fmt.Errorf("external network %s: wanted is an IPv4 network of /28 or larger, for example 10.88.0.0/24", config.External)
	}
	if six := config.External6; six.IsValid() && (!six.Addr().Is6() || six != six.Masked() || six.Bits() > 64) {
		return nil, fmt.Errorf("external network %s: wanted is an IPv6 network of /64 or larger, for example fd00:88::/64", six)
	}
	return &Fabric{config: config, rulesets: map[string]string{}}, nil
}

// HostAddress is the host's own address on the external network: its first one.
func (f *Fabric) HostAddress() netip.Addr { return f.config.External.Addr().Next() }

// HostAddress6 is the host's own address of IPv6 on the external network; not valid when that has none.
func (f *Fabric) HostAddress6() netip.Addr {
	if !f.config.External6.IsValid() {
		return netip.Addr{}
	}
	return f.config.External6.Addr().Next()
}

// ExternalBridge is the name of the host's bridge.
func (f *Fabric) ExternalBridge() string { return f.config.Prefix + "ext" }

// ApplyExternal makes the external network. It refuses a network that something else on this host already uses.
func (f *Fabric) ApplyExternal(_ context.Context) error {
	name := f.ExternalBridge()
	defer f.lock(name)()
	host, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("make external network: %w", err)
	}
	defer host.Close()
	if err := f.checkOverlap(host); err != nil {
		return err
	}
	// With an address of its own the bridge does not take its ports', which would change with them and leave routers with a
	// neighbour that is not there any more.
	address := f.HostAddress()
	bridge, err := ensureBridge(host, name, macOf("external", address), 1500)
	if err != nil {
		return fmt.Errorf("make external network: %w", err)
	}
	addresses := []netip.Prefix{netip.PrefixFrom(address, f.config.External.Bits())}
	if f.config.External6.IsValid() {
		if err := os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/disable_ipv6", []byte("0"), 0); err != nil {
			return fmt.Errorf("make external network %s: this kernel has no IPv6: %w", f.config.External6, err)
		}
		addresses = append(addresses, netip.PrefixFrom(f.HostAddress6(), f.config.External6.Bits()))
	}
	if err := setAddresses(host, bridge, addresses); err != nil {
		return fmt.Errorf("make external network: %w", err)
	}
	return nil
}

func (f *Fabric) checkOverlap(host *netlink.Handle) error {
	own := -1
	if link, err := host.LinkByName(f.ExternalBridge()); err == nil {
		own = link.Attrs().Index
	}
	links := map[int]string{}
	all, err := Dump(host.LinkList)
	if err != nil {
		return fmt.Errorf("list the host's interfaces: %w", err)
	}
	for _, link := range all {
		links[link.Attrs().Index] = link.Attrs().Name
	}
	refuse := func(external netip.Prefix, what string, index int) error {
		return fmt.Errorf("external network %s overlaps with %s of interface %s on this host: choose another network for the local cloud", external, what, links[index])
	}
	routes, err := Dump(func() ([]netlink.Route, error) { return host.RouteList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list the host's routes: %w", err)
	}
	for _, route := range routes {
		if prefix, ok := prefixOf(route.Dst); ok && prefix.Bits() > 0 && route.LinkIndex != own {
			if external, overlaps := f.overlapping(prefix); overlaps {
				return refuse(external, "the route to "+prefix.String(), route.LinkIndex)
			}
		}
	}
	addresses, err := Dump(func() ([]netlink.Addr, error) { return host.AddrList(nil, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list the host's addresses: %w", err)
	}
	for _, address := range addresses {
		if prefix, ok := prefixOf(address.IPNet); ok && address.LinkIndex != own {
			if external, overlaps := f.overlapping(prefix); overlaps {
				return refuse(external, "the address "+prefix.String(), address.LinkIndex)
			}
		}
	}
	return nil
}

// overlapping finds the external network that a network shares addresses with.
func (f *Fabric) overlapping(prefix netip.Prefix) (external netip.Prefix, overlaps bool) {
	for _, external := range []netip.Prefix{f.config.External, f.config.External6} {
		if external.IsValid() && prefix.Overlaps(external) {
			return external, true
		}
	}
	return netip.Prefix{}, false
}

// DeleteAll removes everything that carries the fabric's prefix, also objects of other processes, and undoes the recorded changes beside. It ends no
// process: stop servers before.
func (f *Fabric) DeleteAll(_ context.Context) error {
	names, err := listNamespaces(f.config.Prefix)
	if err != nil {
		return err
	}
	var group errgroup.Group
	for _, name := range names {
		group.Go(func() error { return f.deleteNamespace(name) })
	}
	problem := group.Wait()
	f.mutex.Lock()
	clear(f.rulesets)
	f.mutex.Unlock()

	host, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return errors.Join(problem, fmt.Errorf("delete the host's interfaces: %w", err))
	}
	defer host.Close()
	links, err := Dump(host.LinkList)
	if err != nil {
		return errors.Join(problem, fmt.Errorf("list the host's interfaces: %w", err))
	}
	for _, link := range links {
		if strings.HasPrefix(link.Attrs().Name, f.config.Prefix) {
			problem = errors.Join(problem, deleteLink(host, link))
		}
	}
	return errors.Join(problem, nft("", noTable(f.hostTable())), f.forgetMount())
}

// lock takes the mutex of one thing and returns how to give it back.
func (f *Fabric) lock(name string) (unlock func()) {
	value, _ := f.locks.LoadOrStore(name, &sync.Mutex{})
	mutex := value.(*sync.Mutex)
	mutex.Lock()
	return mutex.Unlock
}

// short is the part of an id that goes into names: 8 hex digits.
func short(id string) string {
	id = strings.ReplaceAll(id, "-", "")
	return id[:min(8, len(id))]
}

func prefixOf(ipnet *net.IPNet) (netip.Prefix, bool) {
	if ipnet == nil {
		return netip.Prefix{}, false
	}
	address, ok := netip.AddrFromSlice(ipnet.IP)
	if !ok {
		return netip.Prefix{}, false
	}
	bits, _ := ipnet.Mask.Size()
	return netip.PrefixFrom(address.Unmap(), bits), true
}

func ipnetOf(prefix netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
}
