package fabric

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
)

// metadata is the address of the metadata service. Every router has it, so that it answers its own networks only, and sees each server's own address.
var metadata = netip.AddrFrom4([4]byte{169, 254, 169, 254})

// applyMetadata gives a router the metadata address.
func applyMetadata(h *netlink.Handle) error {
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	return h.AddrReplace(lo, &netlink.Addr{IPNet: ipnetOf(netip.PrefixFrom(metadata, 32))})
}

// ListenMetadata listens at port 80 of a router's metadata address. Close the listener before the router is deleted.
func (f *Fabric) ListenMetadata(routerID string) (listener net.Listener, err error) {
	err = asNamespace(f.RouterNamespace(routerID), func() error {
		listener, err = net.Listen("tcp4", net.JoinHostPort(metadata.String(), "80"))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen at the metadata address of router %s: %w", routerID, err)
	}
	return listener, nil
}
