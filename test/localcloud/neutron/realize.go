package neutron

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/burano/burano/test/localcloud/fabric"
)

// This file turns rows into the desired state of the data plane.

func (s *Service) plug(ctx context.Context, port Port) error {
	network, _ := s.networks.Get(port.NetworkID)
	return s.fabric.Plug(ctx, fabric.Port{ID: port.ID, Network: network.fabric(), ServerID: port.DeviceID, Device: port.Device, MAC: port.MACAddress})
}

// applyRouter updates the data plane of a router from its rows. Call it after changing rows; as it reads them under the router's lock, the last caller
// reads the last state.
func (s *Service) applyRouter(ctx context.Context, id string) error {
	value, _ := s.routerLocks.LoadOrStore(id, &sync.Mutex{})
	lock := value.(*sync.Mutex)
	lock.Lock()
	defer lock.Unlock()
	wanted, ok := s.wantedRouter(id)
	if !ok {
		return errors.Join(s.closeMetadata(id), s.fabric.DeleteRouter(ctx, id))
	}
	if err := s.fabric.ApplyRouter(ctx, wanted); err != nil {
		return err
	}
	return s.listenMetadata(id)
}

func (s *Service) wantedRouter(id string) (fabric.Router, bool) {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	router, ok := s.routers.Get(id)
	if !ok {
		return fabric.Router{}, false
	}
	wanted := fabric.Router{ID: id}
	if port, ok := s.gatewayPort(id); ok {
		leg := s.leg(port)
		wanted.Gateway = &leg
		info := router.ExternalGatewayInfo
		wanted.SNAT = info == nil || info.EnableSNAT == nil || *info.EnableSNAT
	}
	for _, port := range s.interfacePorts(id) {
		leg := s.leg(port)
		leg.Neighbours = map[netip.Addr]string{}
		for _, other := range s.ports.All() {
			if other.NetworkID != port.NetworkID || other.ID == port.ID || other.Device == "" {
				continue
			}
			for _, fixed := range other.FixedIPs {
				leg.Neighbours[netip.MustParseAddr(fixed.IPAddress)] = other.MACAddress
			}
		}
		wanted.Interfaces = append(wanted.Interfaces, leg)
	}
	for _, floating := range s.floatingIPs.All() {
		if string(floating.RouterID) == id {
			outside, inside := floating.addresses()
			wanted.FloatingIPs = append(wanted.FloatingIPs, fabric.FloatingIP{Floating: outside, Fixed: inside})
		}
	}
	return wanted, true
}

func (s *Service) leg(port Port) fabric.Leg {
	network, _ := s.networks.Get(port.NetworkID)
	leg := fabric.Leg{PortID: port.ID, Network: network.fabric(), MAC: port.MACAddress}
	for _, fixed := range port.FixedIPs {
		leg.Addresses = append(leg.Addresses, s.prefixOf(fixed))
	}
	return leg
}

// server is the record of a server here: its namespace.
type server struct{ ID string }

// Interface is a plugged port, as the server behind it must be configured.
type Interface struct {
	PortID, Device, MAC, NetworkID, NetworkName, SubnetID string // the subnet is that of the first address
	MTU                                                   int
	Addresses                                             []Fixed
	DNS                                                   []netip.Addr
}

// Fixed is an address of a port.
type Fixed struct {
	netip.Prefix            // with the length of the subnet's prefix
	Gateway      netip.Addr // the default route; invalid when there is none, or an earlier address has one
	Mode         string     // ipv6_address_mode of the subnet
}

// Address is one address of a server, as Nova shows it.
type Address struct {
	Network string // name
	IP      netip.Addr
	MAC     string
	Type    string // fixed or floating
}

// CreateServerNamespace makes the network namespace in which a server shall be started; again and again without harm.
func (s *Service) CreateServerNamespace(ctx context.Context, serverID string) (netns string, err error) {
	if err := s.servers.Put(serverID, server{ID: serverID}); err != nil {
		return "", err
	}
	return s.fabric.ApplyServer(ctx, serverID)
}

// DeleteServerNamespace removes a server's namespace, in which no process may run.
func (s *Service) DeleteServerNamespace(ctx context.Context, serverID string) error {
	if err := s.fabric.DeleteServer(ctx, serverID); err != nil {
		return err
	}
	_, err := s.servers.Delete(serverID)
	return err
}

// AttachPort plugs a port into a server's namespace, as the interface with this name, and returns the server's configuration of it. A port that is plugged
// there already stays as it is; one that belongs to another server is refused.
func (s *Service) AttachPort(ctx context.Context, portID, serverID, device string) (Interface, error) {
	port, err := s.bind(portID, serverID, device)
	if err != nil {
		return Interface{}, err
	}
	// Guarded before it is plugged, so that at no instant everything is open.
	if err := s.applyGuards(ctx); err != nil {
		return Interface{}, err
	}
	if err := s.plug(ctx, port); err != nil {
		return Interface{}, err
	}
	if err := s.applyRoutersOf(ctx, port.NetworkID); err != nil {
		return Interface{}, fmt.Errorf("tell the routers of port %s: %w", portID, err)
	}
	return s.describe(port), nil
}

func (s *Service) bind(portID, serverID, device string) (Port, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	port, ok := s.ports.Get(portID)
	if !ok {
		return Port{}, notFound("Port", "Port", portID)
	}
	if port.DeviceID != "" && port.DeviceID != serverID {
		return Port{}, conflict("PortInUse", "Unable to complete operation on port %s for network %s. Port already has an attached device %s.", portID, port.NetworkID, port.DeviceID)
	}
	port.DeviceID, port.DeviceOwner, port.Device, port.Status, port.VIFType = serverID, ownerServer, device, "ACTIVE", "bridge"
	s.changed(&port.Common, nil, nil)
	return port, s.ports.Put(portID, port)
}

func (s *Service) describe(port Port) Interface {
	network, _ := s.networks.Get(port.NetworkID)
	described := Interface{PortID: port.ID, Device: port.Device, MAC: port.MACAddress, NetworkID: network.ID, NetworkName: network.Name, MTU: network.MTU}
	told := map[int]bool{}
	for i, fixed := range port.FixedIPs {
		subnet, _ := s.subnets.Get(fixed.SubnetID)
		address := Fixed{Prefix: s.prefixOf(fixed), Mode: string(subnet.IPv6AddressMode)}
		if i == 0 {
			described.SubnetID = subnet.ID
		}
		if !told[subnet.IPVersion] {
			told[subnet.IPVersion] = true
			address.Gateway = subnet.gateway()
			for _, text := range subnet.DNSNameservers {
				described.DNS = append(described.DNS, netip.MustParseAddr(text))
			}
		}
		described.Addresses = append(described.Addresses, address)
	}
	return described
}

// DetachServer unplugs all ports of a server. Ports that Nova made are deleted, the others are free again.
func (s *Service) DetachServer(ctx context.Context, serverID string) error {
	for _, port := range s.ports.All() {
		if port.DeviceID != serverID || port.DeviceOwner != ownerServer && !port.DeleteWithServer {
			continue
		}
		if err := s.detach(ctx, port); err != nil {
			return err
		}
	}
	return s.applyGuards(ctx)
}

// DetachPort unplugs a port from its server, as DetachServer does; one that is gone or plugged nowhere is fine.
func (s *Service) DetachPort(ctx context.Context, portID, serverID string) error {
	port, ok := s.ports.Get(portID)
	if !ok || port.DeviceID != serverID {
		return nil
	}
	if err := s.detach(ctx, port); err != nil {
		return err
	}
	return s.applyGuards(ctx)
}

func (s *Service) detach(ctx context.Context, port Port) error {
	if port.DeleteWithServer {
		if err := s.removePort(ctx, port); err != nil {
			return fmt.Errorf("delete port %s of server %s: %w", port.ID, port.DeviceID, err)
		}
		return nil
	}
	network, _ := s.networks.Get(port.NetworkID)
	if err := s.fabric.Unplug(ctx, network.fabric(), port.ID); err != nil {
		return err
	}
	s.mutex.Lock()
	_, err := s.ports.Update(port.ID, func(p *Port) {
		p.DeviceID, p.DeviceOwner, p.Device, p.Status, p.VIFType = "", "", "", "DOWN", "unbound"
		s.changed(&p.Common, nil, nil)
	})
	s.mutex.Unlock()
	if err != nil {
		return fmt.Errorf("free port %s of server %s: %w", port.ID, port.DeviceID, err)
	}
	return s.applyRoutersOf(ctx, port.NetworkID)
}

// ServerAddresses lists the addresses of a server's ports, a floating one after the fixed one it leads to.
func (s *Service) ServerAddresses(serverID string) (addresses []Address) {
	floatingIPs := s.floatingIPs.All()
	for _, port := range s.ports.All() {
		if port.DeviceID != serverID {
			continue
		}
		network, _ := s.networks.Get(port.NetworkID)
		for _, fixed := range port.FixedIPs {
			addresses = append(addresses, Address{Network: network.Name, IP: netip.MustParseAddr(fixed.IPAddress), MAC: port.MACAddress, Type: "fixed"})
			for _, floating := range floatingIPs {
				if string(floating.PortID) == port.ID && string(floating.FixedIPAddress) == fixed.IPAddress {
					addresses = append(addresses, Address{Network: network.Name, IP: netip.MustParseAddr(floating.FloatingIPAddress), MAC: port.MACAddress, Type: "floating"})
				}
			}
		}
	}
	return addresses
}
