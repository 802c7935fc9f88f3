package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Router is everything a router shall be.
type Router struct {
	ID          string
	Gateway     *Leg // in the external network
	SNAT        bool // packets to the outside from addresses without a floating one get the gateway's
	Interfaces  []Leg
	FloatingIPs []FloatingIP
}

// Leg is one end of a router in a network.
type Leg struct {
	PortID    string
	Network   Network
	MAC       string
	Addresses []netip.Prefix // the first of IPv4 is the one traffic is translated to
	// Neighbours are the ports of the network, address → MAC. The router does not ask for them, so that the first packet waits for
	// nothing and a server that takes another one's address is found at once.
	Neighbours map[netip.Addr]string
}

// FloatingIP maps an external address to an internal one.
type FloatingIP struct{ Floating, Fixed netip.Addr }

// RouterNamespace is the name of a router's namespace.
func (f *Fabric) RouterNamespace(id string) string { return f.config.Prefix + "rtr-" + short(id) }

func (l Leg) name(kind string) string { return kind + short(l.PortID) }

// The legs' names in the router, as Neutron's: qr is a leg into a network, qg the one outside.
const inside, outside = "qr-", "qg-"

// ApplyRouter applies the state r to a router. Its networks must have been applied.
func (f *Fabric) ApplyRouter(_ context.Context, r Router) error {
	name := f.RouterNamespace(r.ID)
	defer f.lock(name)()
	made, err := f.ensureNamespace(name)
	if err != nil {
		return err
	}
	f.mutex.Lock()
	last, known := f.rulesets[r.ID]
	f.mutex.Unlock()
	if made || !known {
		err := setSysctls(name, map[string]string{
			"net/ipv4/ip_forward":             "1",
			"net/ipv4/conf/all/rp_filter":     "0",
			"net/ipv4/conf/default/rp_filter": "0",
			"net/ipv6/conf/all/forwarding":    "1",
			"net/ipv6/conf/all/disable_ipv6":  "0",
		})
		if err != nil {
			return fmt.Errorf("make router %s: %w", r.ID, err)
		}
	}
	err = inNamespace(name, func(h *netlink.Handle, ns netns.NsHandle) error {
		if err := f.removeOtherLegs(h, r); err != nil {
			return err
		}
		if err := applyMetadata(h); err != nil {
			return err
		}
		for _, leg := range r.Interfaces {
			if err := f.applyLeg(h, ns, leg, inside); err != nil {
				return err
			}
		}
		if r.Gateway == nil {
			return nil
		}
		return f.applyGateway(h, ns, r)
	})
	if err != nil {
		return fmt.Errorf("make router %s: %w", r.ID, err)
	}
	rules := ruleset(r)
	if !made && known && last == rules {
		return nil
	}
	if err := nft(name, rules); err != nil {
		return fmt.Errorf("make router %s: %w", r.ID, err)
	}
	f.mutex.Lock()
	f.rulesets[r.ID] = rules
	f.mutex.Unlock()
	return nil
}

// DeleteRouter removes a router with its legs.
func (f *Fabric) DeleteRouter(_ context.Context, id string) error {
	f.mutex.Lock()
	delete(f.rulesets, id)
	f.mutex.Unlock()
	name := f.RouterNamespace(id)
	if isNamespace(filepath.Join(namespaces, name)) {
		err := inNamespace(name, func(h *netlink.Handle, _ netns.NsHandle) error {
			links, err := Dump(h.LinkList)
			if err != nil {
				return err
			}
			for _, link := range links {
				if strings.HasPrefix(link.Attrs().Name, outside) {
					err = errors.Join(err, f.setHostNeighbours(link.Attrs().HardwareAddr, nil, nil))
				}
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("delete router %s: %w", id, err)
		}
	}
	return f.deleteNamespace(name)
}

func (f *Fabric) removeOtherLegs(h *netlink.Handle, r Router) error {
	wanted := map[string]bool{}
	for _, leg := range r.Interfaces {
		wanted[leg.name(inside)] = true
	}
	if r.Gateway != nil {
		wanted[r.Gateway.name(outside)] = true
	}
	links, err := Dump(h.LinkList)
	if err != nil {
		return err
	}
	for _, link := range links {
		name := link.Attrs().Name
		if wanted[name] || !strings.HasPrefix(name, inside) && !strings.HasPrefix(name, outside) {
			continue
		}
		if strings.HasPrefix(name, outside) {
			err = errors.Join(err, f.setHostNeighbours(link.Attrs().HardwareAddr, nil, nil))
		}
		err = errors.Join(err, deleteLink(h, link))
	}
	return err
}

func (f *Fabric) applyLeg(h *netlink.Handle, ns netns.NsHandle, leg Leg, kind string) error {
	mac, err := net.ParseMAC(leg.MAC)
	if err != nil {
		return err
	}
	pair := plug{near: "r" + short(leg.PortID), bridge: bridge, far: leg.name(kind), mac: mac, mtu: leg.Network.MTU}
	if leg.Network.External {
		pair.near, pair.bridge = f.config.Prefix+"g"+short(leg.PortID), f.ExternalBridge()
	}
	return f.inNetwork(leg.Network, func(near *netlink.Handle) error {
		link, err := ensurePlug(near, h, ns, pair)
		if err != nil {
			return err
		}
		if err := setAddresses(h, link, leg.Addresses); err != nil {
			return err
		}
		neighbours := map[netip.Addr]net.HardwareAddr{}
		for address, text := range leg.Neighbours {
			mac, err := net.ParseMAC(text)
			if err != nil {
				return err
			}
			neighbours[address] = mac
		}
		return setNeighbours(h, link, neighbours, func(netlink.Neigh) bool { return true })
	})
}

func (f *Fabric) applyGateway(h *netlink.Handle, ns netns.NsHandle, r Router) error {
	leg := *r.Gateway
	leg.Addresses = slices.Clone(leg.Addresses)
	for _, floating := range r.FloatingIPs {
		leg.Addresses = append(leg.Addresses, netip.PrefixFrom(floating.Floating, 32))
	}
	host := f.HostAddress()
	leg.Neighbours = map[netip.Addr]string{host: macOf("external", host).String()}
	if six := f.HostAddress6(); six.IsValid() {
		leg.Neighbours[six] = macOf("external", host).String()
	}
	maps.Copy(leg.Neighbours, r.Gateway.Neighbours)
	if err := f.applyLeg(h, ns, leg, outside); err != nil {
		return err
	}
	link, err := h.LinkByName(leg.name(outside))
	if err != nil {
		return err
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: host.AsSlice(), Dst: ipnetOf(netip.PrefixFrom(netip.IPv4Unspecified(), 0))}
	if err := h.RouteReplace(route); err != nil {
		return fmt.Errorf("default route: %w", err)
	}
	routes := map[netip.Prefix]netip.Addr{}
	for _, address := range r.Gateway.Addresses {
		if !address.Addr().Is6() || !f.HostAddress6().IsValid() {
			continue
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: f.HostAddress6().AsSlice(), Dst: ipnetOf(netip.PrefixFrom(netip.IPv6Unspecified(), 0))}
		if err := h.RouteReplace(route); err != nil {
			return fmt.Errorf("default route of IPv6: %w", err)
		}
		for _, leg := range r.Interfaces {
			for _, inside := range leg.Addresses {
				if inside.Addr().Is6() {
					routes[inside.Masked()] = address.Addr()
				}
			}
		}
	}
	mac, err := net.ParseMAC(leg.MAC)
	if err != nil {
		return err
	}
	own := map[netip.Addr]net.HardwareAddr{}
	for _, address := range leg.Addresses {
		own[address.Addr()] = mac
	}
	return f.setHostNeighbours(mac, own, routes)
}

// setHostNeighbours sets the host's entries for external addresses behind this MAC. A floating address moves between routers, and the host would look for
// it at the old one for half a minute. The map routes has the networks of IPv6 behind it, by the address of their router; an existing route of the host
// stays.
func (f *Fabric) setHostNeighbours(mac net.HardwareAddr, addresses map[netip.Addr]net.HardwareAddr, routes map[netip.Prefix]netip.Addr) error {
	defer f.lock(f.ExternalBridge())()
	h, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(f.ExternalBridge())
	if err != nil {
		return fmt.Errorf("find bridge %s: %w", f.ExternalBridge(), err)
	}
	mine := func(n netlink.Neigh) bool { return slices.Equal(n.HardwareAddr, mac) }
	if err := f.setHostRoutes(h, link, routes, mine); err != nil {
		return err
	}
	return setNeighbours(h, link, addresses, mine)
}

// setHostRoutes gives the host exactly these routes through the neighbours that are mine, as setNeighbours has noted them before. A new
// router has none yet, and nothing to take away.
func (f *Fabric) setHostRoutes(h *netlink.Handle, link netlink.Link, wanted map[netip.Prefix]netip.Addr, mine func(netlink.Neigh) bool) error {
	if !f.config.External6.IsValid() {
		return nil
	}
	neighbours, err := Dump(func() ([]netlink.Neigh, error) { return h.NeighList(link.Attrs().Index, netlink.FAMILY_V6) })
	if err != nil {
		return fmt.Errorf("list neighbours of %s: %w", link.Attrs().Name, err)
	}
	have, err := Dump(func() ([]netlink.Route, error) { return h.RouteList(link, netlink.FAMILY_V6) })
	if err != nil {
		return fmt.Errorf("list routes of %s: %w", link.Attrs().Name, err)
	}
	taken := map[netip.Prefix]bool{}
	for _, route := range have {
		prefix, ok := prefixOf(route.Dst)
		if !ok || route.Gw == nil {
			continue
		}
		through, _ := netip.AddrFromSlice(route.Gw)
		if own := slices.ContainsFunc(neighbours, func(n netlink.Neigh) bool { return mine(n) && n.IP.Equal(route.Gw) }); !own || wanted[prefix] == through {
			taken[prefix] = true
			continue
		}
		if err := h.RouteDel(&route); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("take the route to %s from %s: %w", prefix, link.Attrs().Name, err)
		}
	}
	for prefix, through := range wanted {
		if taken[prefix] {
			continue
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Gw: through.AsSlice(), Dst: ipnetOf(prefix)}
		if err := h.RouteAdd(route); err != nil && !errors.Is(err, syscall.EEXIST) {
			return fmt.Errorf("route to %s through %s: %w", prefix, through, err)
		}
	}
	return nil
}

// ruleset is the whole NAT of a router; loaded in one go, it takes the place of the one before without a gap.
func ruleset(r Router) string {
	var b strings.Builder
	b.WriteString("add table ip burano\ndelete table ip burano\ntable ip burano {\n")
	var router netip.Addr
	if r.Gateway != nil {
		router = first4(r.Gateway.Addresses)
	}
	if !router.IsValid() {
		b.WriteString("}\n")
		return b.String()
	}
	floating := slices.SortedFunc(slices.Values(r.FloatingIPs), func(a, b FloatingIP) int { return a.Floating.Compare(b.Floating) })
	inward, outward := make([]string, 0, len(floating)), make([]string, 0, len(floating))
	seen := map[netip.Addr]bool{}
	for _, f := range floating {
		inward = append(inward, fmt.Sprintf("%s : %s", f.Floating, f.Fixed))
		if !seen[f.Fixed] { // a map has one value for a key
			outward = append(outward, fmt.Sprintf("%s : %s", f.Fixed, f.Floating))
		}
		seen[f.Fixed] = true
	}
	writeMap := func(name string, elements []string) {
		fmt.Fprintf(&b, "\tmap %s {\n\t\ttype ipv4_addr : ipv4_addr\n", name)
		if len(elements) > 0 {
			fmt.Fprintf(&b, "\t\telements = { %s }\n", strings.Join(elements, ", "))
		}
		b.WriteString("\t}\n")
	}
	writeMap("floating", inward)
	writeMap("fixed", outward)
	b.WriteString("\tchain prerouting {\n\t\ttype nat hook prerouting priority dstnat; policy accept;\n\t\tdnat to ip daddr map @floating\n\t}\n")
	b.WriteString("\tchain postrouting {\n\t\ttype nat hook postrouting priority srcnat; policy accept;\n")
	translate := func(match string) {
		fmt.Fprintf(&b, "\t\t%ssnat to ip saddr map @fixed\n", match)
		if r.SNAT {
			fmt.Fprintf(&b, "\t\t%ssnat to %s\n", match, router)
		}
	}
	translate(fmt.Sprintf("oifname %q ", r.Gateway.name(outside)))
	// A server that calls another one's floating address: the answer must come back through the router, or it has the wrong sender.
	var networks []string
	for _, leg := range r.Interfaces {
		for _, address := range leg.Addresses {
			if address.Addr().Is4() {
				networks = append(networks, address.Masked().String())
			}
		}
	}
	if slices.Sort(networks); len(networks) > 0 {
		translate(fmt.Sprintf("ct status dnat ip saddr { %s } ", strings.Join(slices.Compact(networks), ", ")))
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

func first4(addresses []netip.Prefix) netip.Addr {
	for _, address := range addresses {
		if address.Addr().Is4() {
			return address.Addr()
		}
	}
	return netip.Addr{}
}

func setSysctls(namespace string, values map[string]string) error {
	return asNamespace(namespace, func() error {
		for key, value := range values {
			err := os.WriteFile("/proc/sys/"+key, []byte(value), 0)
			if errors.Is(err, os.ErrNotExist) && strings.HasPrefix(key, "net/ipv6/") {
				continue // a kernel without IPv6
			}
			if err != nil {
				return fmt.Errorf("set %s: %w", key, err)
			}
		}
		return nil
	})
}
