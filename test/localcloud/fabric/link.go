package fabric

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// MAC is the hardware address of an IP address in a network, in the range Neutron uses. It is the same each time, so that a new holder of an address is
// not looked for at the former holder's MAC: neighbours keep their entries for half a minute.
func MAC(networkID string, address netip.Addr) net.HardwareAddr { return macOf(networkID, address) }

func macOf(network string, address netip.Addr) net.HardwareAddr {
	sum := sha256.Sum256([]byte(network + "/" + address.String()))
	return net.HardwareAddr{0xfa, 0x16, 0x3e, sum[0], sum[1], sum[2]}
}

// plug is one veth pair: its near end in a bridge, its far end in another namespace.
type plug struct {
	near   string // name in the bridge's namespace
	bridge string
	far    string // name in the other namespace
	mac    net.HardwareAddr
	mtu    int
}

// ensurePlug makes the pair, or repairs differences. near and far are connections to the two namespaces.
func ensurePlug(near, far *netlink.Handle, farNS netns.NsHandle, p plug) (netlink.Link, error) {
	bridge, err := near.LinkByName(p.bridge)
	if err != nil {
		return nil, fmt.Errorf("plug %s: bridge %s: %w", p.far, p.bridge, err)
	}
	nearLink, nearErr := near.LinkByName(p.near)
	farLink, farErr := far.LinkByName(p.far)
	// A veth's peer index shows whether these two are one pair, also across namespaces.
	whole := nearErr == nil && farErr == nil && nearLink.Attrs().ParentIndex == farLink.Attrs().Index && farLink.Attrs().ParentIndex == nearLink.Attrs().Index
	if !whole {
		if nearErr == nil {
			if err := deleteLink(near, nearLink); err != nil {
				return nil, err
			}
		}
		if farErr == nil {
			if err := deleteLink(far, farLink); err != nil {
				return nil, err
			}
		}
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.MTU = p.near, p.mtu
		veth := netlink.NewVeth(attributes)
		veth.PeerName, veth.PeerHardwareAddr, veth.PeerMTU, veth.PeerNamespace = p.far, p.mac, uint32(p.mtu), netlink.NsFd(farNS)
		if err := near.LinkAdd(veth); err != nil {
			return nil, fmt.Errorf("plug %s: %w", p.far, err)
		}
		if nearLink, err = near.LinkByName(p.near); err != nil {
			return nil, fmt.Errorf("plug %s: %w", p.far, err)
		}
		if farLink, err = far.LinkByName(p.far); err != nil {
			return nil, fmt.Errorf("plug %s: %w", p.far, err)
		}
	}
	if nearLink.Attrs().MasterIndex != bridge.Attrs().Index {
		if err := near.LinkSetMaster(nearLink, bridge); err != nil {
			return nil, fmt.Errorf("plug %s into bridge: %w", p.far, err)
		}
	}
	if err := configure(near, nearLink, nil, p.mtu); err != nil {
		return nil, err
	}
	return farLink, configure(far, farLink, p.mac, p.mtu)
}

func ensureBridge(h *netlink.Handle, name string, mac net.HardwareAddr, mtu int) (netlink.Link, error) {
	link, err := h.LinkByName(name)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		attributes := netlink.NewLinkAttrs()
		attributes.Name, attributes.HardwareAddr, attributes.MTU = name, mac, mtu
		off := false
		if err := h.LinkAdd(&netlink.Bridge{LinkAttrs: attributes, MulticastSnooping: &off}); err != nil {
			return nil, fmt.Errorf("make bridge %s: %w", name, err)
		}
		link, err = h.LinkByName(name)
	}
	if err != nil {
		return nil, fmt.Errorf("find bridge %s: %w", name, err)
	}
	if link.Type() != "bridge" {
		return nil, fmt.Errorf("%s is there already and is no bridge but %s", name, link.Type())
	}
	return link, configure(h, link, mac, mtu)
}

func configure(h *netlink.Handle, link netlink.Link, mac net.HardwareAddr, mtu int) error {
	attributes := link.Attrs()
	if mac != nil && !slices.Equal(attributes.HardwareAddr, mac) {
		if err := h.LinkSetHardwareAddr(link, mac); err != nil {
			return fmt.Errorf("give %s the address %s: %w", attributes.Name, mac, err)
		}
	}
	if attributes.MTU != mtu {
		if err := h.LinkSetMTU(link, mtu); err != nil {
			return fmt.Errorf("give %s the MTU %d: %w", attributes.Name, mtu, err)
		}
	}
	if attributes.Flags&net.FlagUp == 0 {
		if err := h.LinkSetUp(link); err != nil {
			return fmt.Errorf("set %s up: %w", attributes.Name, err)
		}
	}
	return nil
}

// deleteLink removes a link; that it went meanwhile is fine.
func deleteLink(h *netlink.Handle, link netlink.Link) error {
	if err := h.LinkDel(link); err != nil && !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.EINVAL) {
		return fmt.Errorf("delete interface %s: %w", link.Attrs().Name, err)
	}
	return nil
}

// setAddresses gives link exactly these addresses, beside the link-local one of IPv6 that it gives itself.
func setAddresses(h *netlink.Handle, link netlink.Link, wanted []netip.Prefix) error {
	have, err := Dump(func() ([]netlink.Addr, error) { return h.AddrList(link, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list addresses of %s: %w", link.Attrs().Name, err)
	}
	for _, address := range have {
		if prefix, ok := prefixOf(address.IPNet); ok && !slices.Contains(wanted, prefix) && !(prefix.Addr().Is6() && prefix.Addr().IsLinkLocalUnicast()) {
			if err := h.AddrDel(link, &address); err != nil && !errors.Is(err, syscall.EADDRNOTAVAIL) {
				return fmt.Errorf("take %s from %s: %w", prefix, link.Attrs().Name, err)
			}
		}
	}
	for _, prefix := range wanted {
		if slices.ContainsFunc(have, func(a netlink.Addr) bool { p, _ := prefixOf(a.IPNet); return p == prefix }) {
			continue
		}
		address := &netlink.Addr{IPNet: ipnetOf(prefix)}
		if prefix.Addr().Is6() {
			address.Flags = syscall.IFA_F_NODAD // Neutron gives an address to one port only, and nothing waits for the kernel to find that out
		}
		if err := h.AddrReplace(link, address); err != nil {
			return fmt.Errorf("give %s to %s: %w", prefix, link.Attrs().Name, err)
		}
	}
	return nil
}

// setNeighbours gives link exactly these permanent neighbours among the ones for which mine is true.
func setNeighbours(h *netlink.Handle, link netlink.Link, wanted map[netip.Addr]net.HardwareAddr, mine func(netlink.Neigh) bool) error {
	index := link.Attrs().Index
	have, err := Dump(func() ([]netlink.Neigh, error) { return h.NeighList(index, netlink.FAMILY_ALL) })
	if err != nil {
		return fmt.Errorf("list neighbours of %s: %w", link.Attrs().Name, err)
	}
	known := map[netip.Addr]bool{}
	for _, neighbour := range have {
		if neighbour.State&netlink.NUD_PERMANENT == 0 {
			continue
		}
		address, _ := netip.AddrFromSlice(neighbour.IP)
		address = address.Unmap()
		if mac, ok := wanted[address]; ok && slices.Equal(mac, neighbour.HardwareAddr) {
			known[address] = true
		} else if !ok && mine(neighbour) {
			if err := h.NeighDel(&neighbour); err != nil && !errors.Is(err, syscall.ENOENT) {
				return fmt.Errorf("forget neighbour %s of %s: %w", address, link.Attrs().Name, err)
			}
		}
	}
	for address, mac := range wanted {
		if known[address] {
			continue
		}
		family := netlink.FAMILY_V4
		if address.Is6() {
			family = netlink.FAMILY_V6
		}
		neighbour := &netlink.Neigh{LinkIndex: index, Family: family, State: netlink.NUD_PERMANENT, IP: address.AsSlice(), HardwareAddr: mac}
		if err := h.NeighSet(neighbour); err != nil {
			return fmt.Errorf("tell %s its neighbour %s: %w", link.Attrs().Name, address, err)
		}
	}
	return nil
}

// Dump lists things of the kernel, again when they changed while they were listed.
func Dump[T any](list func() ([]T, error)) (all []T, err error) {
	for range 10 {
		if all, err = list(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			return all, err
		}
	}
	return all, err
}
