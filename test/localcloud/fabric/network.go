package fabric

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// bridge is the name of every network's bridge in its namespace.
const bridge = "br0"

// Network is one layer-2 network.
type Network struct {
	ID       string
	MTU      int
	External bool // the host's bridge: ports go there, and it is not made by ApplyNetwork
}

// Port is the plug of a server in a network.
type Port struct {
	ID       string
	Network  Network
	ServerID string
	Device   string // eth0…
	MAC      string
}

// NetworkNamespace is the name of the namespace in which a network's bridge is.
func (f *Fabric) NetworkNamespace(id string) string { return f.config.Prefix + "net-" + short(id) }

// ServerNamespace is the name of a server's namespace.
func (f *Fabric) ServerNamespace(id string) string { return f.config.Prefix + "srv-" + short(id) }

// ApplyNetwork makes a network's bridge.
func (f *Fabric) ApplyNetwork(ctx context.Context, n Network) error {
	if n.External {
		return f.ApplyExternal(ctx)
	}
	name := f.NetworkNamespace(n.ID)
	defer f.lock(name)()
	made, err := f.ensureNamespace(name)
	if err != nil {
		return err
	}
	if made {
		f.mutex.Lock()
		delete(f.rulesets, n.ID)
		f.mutex.Unlock()
		if err := setSysctls(name, map[string]string{"net/ipv6/conf/all/disable_ipv6": "1"}); err != nil {
			return err
		}
	}
	err = inNamespace(name, func(h *netlink.Handle, _ netns.NsHandle) error {
		_, err := ensureBridge(h, bridge, nil, n.MTU)
		return err
	})
	if err != nil {
		return fmt.Errorf("make network %s: %w", n.ID, err)
	}
	return nil
}

// DeleteNetwork removes a network's bridge and every plug in it.
func (f *Fabric) DeleteNetwork(_ context.Context, id string) error {
	f.mutex.Lock()
	delete(f.rulesets, id)
	f.mutex.Unlock()
	return f.deleteNamespace(f.NetworkNamespace(id))
}

// ApplyServer makes the namespace of a server and returns its name.
func (f *Fabric) ApplyServer(_ context.Context, id string) (string, error) {
	name := f.ServerNamespace(id)
	defer f.lock(name)()
	_, err := f.ensureNamespace(name)
	return name, err
}

// DeleteServer removes the namespace of a server with its plugs.
func (f *Fabric) DeleteServer(_ context.Context, id string) error {
	return f.deleteNamespace(f.ServerNamespace(id))
}

// Plug connects a server to a network; both must have been applied. The plug has its MAC address and is up; the server configures its addresses itself.
func (f *Fabric) Plug(_ context.Context, p Port) error {
	mac, err := net.ParseMAC(p.MAC)
	if err != nil {
		return fmt.Errorf("plug port %s: %w", p.ID, err)
	}
	server := f.ServerNamespace(p.ServerID)
	defer f.lock(server)()
	pair := plug{near: plugName(p.ID), bridge: bridge, far: p.Device, mac: mac, mtu: p.Network.MTU}
	err = inNamespace(server, func(far *netlink.Handle, ns netns.NsHandle) error {
		return f.inNetwork(p.Network, func(near *netlink.Handle) error {
			if p.Network.External {
				pair.near, pair.bridge = f.config.Prefix+pair.near, f.ExternalBridge()
			}
			_, err := ensurePlug(near, far, ns, pair)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("plug port %s into server %s: %w", p.ID, p.ServerID, err)
	}
	return nil
}

// Unplug removes the plug of a port; that it is not there is fine.
func (f *Fabric) Unplug(_ context.Context, network Network, portID string) error {
	if !network.External && !isNamespace(namespaces+"/"+f.NetworkNamespace(network.ID)) {
		return nil
	}
	err := f.inNetwork(network, func(h *netlink.Handle) error {
		name := plugName(portID)
		if network.External {
			name = f.config.Prefix + name
		}
		link, err := h.LinkByName(name)
		if err != nil {
			return nil // not there
		}
		return deleteLink(h, link)
	})
	if err != nil {
		return fmt.Errorf("unplug port %s: %w", portID, err)
	}
	return nil
}

// plugName is a port's interface at its network's bridge.
func plugName(portID string) string { return "p" + short(portID) }

// inNetwork gives work a connection to where the network's bridge is.
func (f *Fabric) inNetwork(n Network, work func(h *netlink.Handle) error) error {
	if n.External {
		h, err := netlink.NewHandle(syscall.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		defer h.Close()
		return work(h)
	}
	return inNamespace(f.NetworkNamespace(n.ID), func(h *netlink.Handle, _ netns.NsHandle) error { return work(h) })
}
