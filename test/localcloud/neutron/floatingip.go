package neutron

import (
	"context"
	"net/netip"
	"slices"
)

// FloatingIP is a floating address as the API shows it.
type FloatingIP struct {
	Common
	FloatingNetworkID string `json:"floating_network_id"`
	FloatingIPAddress string `json:"floating_ip_address"`
	PortID            OrNull `json:"port_id"`
	FixedIPAddress    OrNull `json:"fixed_ip_address"`
	RouterID          OrNull `json:"router_id"`
	Status            string `json:"status"` // ACTIVE when it leads somewhere, else DOWN
}

// FloatingIPRequest makes or changes a floating address. A port that is null or empty is none.
type FloatingIPRequest struct {
	Owner
	Description       *string       `json:"description"`
	FloatingNetworkID string        `json:"floating_network_id"`
	FloatingIPAddress string        `json:"floating_ip_address"`
	SubnetID          string        `json:"subnet_id"`
	PortID            Maybe[string] `json:"port_id"`
	FixedIPAddress    string        `json:"fixed_ip_address"`
}

// FloatingIPs lists a project's floating addresses.
func (s *Service) FloatingIPs(projectID string) (found []FloatingIP) {
	for _, floating := range s.floatingIPs.All() {
		if floating.belongs(projectID) {
			found = append(found, floating)
		}
	}
	return found
}

// GetFloatingIP returns a floating address of the project.
func (s *Service) GetFloatingIP(_ context.Context, projectID, id string) (FloatingIP, error) {
	floating, ok := s.floatingIPs.Get(id)
	if !ok || !floating.belongs(projectID) {
		return FloatingIP{}, notFound("FloatingIP", "Floating IP", id)
	}
	return floating, nil
}

// CreateFloatingIP takes an address of the external network for the project, and associates it when a port is named.
func (s *Service) CreateFloatingIP(ctx context.Context, projectID string, request FloatingIPRequest) (FloatingIP, error) {
	floating, err := s.createFloatingIP(ctx, projectID, request)
	if err != nil || floating.RouterID == "" {
		return floating, err
	}
	return floating, s.applyRouter(ctx, string(floating.RouterID))
}

func (s *Service) createFloatingIP(ctx context.Context, projectID string, request FloatingIPRequest) (FloatingIP, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if floating, ok := s.floatingIPs.Get(request.ID); ok && floating.belongs(projectID) {
		return floating, nil
	}
	network, err := s.GetNetwork(ctx, projectID, request.FloatingNetworkID)
	if err != nil {
		return FloatingIP{}, err
	}
	if !network.External {
		return FloatingIP{}, problem(400, "BadRequest", "Bad floatingip request: Network %s is not a valid external network.", network.ID)
	}
	if err := s.checkQuota(projectID, quotaFloating); err != nil {
		return FloatingIP{}, err
	}
	floating := FloatingIP{Common: s.common(request.ID, projectID, ""), FloatingNetworkID: network.ID, Status: "DOWN"}
	// The address is reserved by a port without a server, as in Neutron.
	port := Port{Common: s.common("", "", ""), NetworkID: network.ID, AdminStateUp: true, Status: "N/A", VNICType: "normal", DeviceID: floating.ID, DeviceOwner: ownerFloating, SecurityGroups: []string{}, AllowedAddressPairs: []AddressPair{}}
	var wanted *[]FixedIP
	if request.FloatingIPAddress != "" || request.SubnetID != "" {
		wanted = &[]FixedIP{{SubnetID: request.SubnetID, IPAddress: request.FloatingIPAddress}}
	} else if subnet, ok := s.subnetOf4(network); ok { // there are none of IPv6
		wanted = &[]FixedIP{{SubnetID: subnet.ID}}
	}
	if err := s.addressPort(&port, network, wanted, ""); err != nil {
		return FloatingIP{}, err
	}
	floating.FloatingIPAddress = port.FixedIPs[0].IPAddress
	if err := s.associate(ctx, &floating, projectID, request); err != nil {
		return FloatingIP{}, err
	}
	if err := s.ports.Put(port.ID, port); err != nil {
		return FloatingIP{}, err
	}
	s.changed(&floating.Common, nil, request.Description)
	return floating, s.floatingIPs.Put(floating.ID, floating)
}

// UpdateFloatingIP associates a floating address of the project with a port, or with none.
func (s *Service) UpdateFloatingIP(ctx context.Context, projectID, id string, request FloatingIPRequest) (FloatingIP, error) {
	s.mutex.Lock()
	floating, err := s.GetFloatingIP(ctx, projectID, id)
	before := string(floating.RouterID)
	if err == nil {
		err = s.associate(ctx, &floating, projectID, request)
	}
	if err == nil {
		s.changed(&floating.Common, nil, request.Description)
		err = s.floatingIPs.Put(id, floating)
	}
	s.mutex.Unlock()
	if err != nil {
		return FloatingIP{}, err
	}
	// First away from the one router, then to the other.
	for _, router := range slices.Compact([]string{before, string(floating.RouterID)}) {
		if router != "" {
			if err := s.applyRouter(ctx, router); err != nil {
				return FloatingIP{}, err
			}
		}
	}
	return floating, nil
}

// DeleteFloatingIP gives a floating address of the project back.
func (s *Service) DeleteFloatingIP(ctx context.Context, projectID, id string) error {
	s.mutex.Lock()
	floating, err := s.GetFloatingIP(ctx, projectID, id)
	if err == nil {
		err = s.forgetFloatingIP(id)
	}
	s.mutex.Unlock()
	if err != nil || floating.RouterID == "" {
		return err
	}
	return s.applyRouter(ctx, string(floating.RouterID))
}

func (s *Service) forgetFloatingIP(id string) error {
	for _, port := range s.ports.All() {
		if port.DeviceOwner == ownerFloating && port.DeviceID == id {
			if _, err := s.ports.Delete(port.ID); err != nil {
				return err
			}
		}
	}
	_, err := s.floatingIPs.Delete(id)
	return err
}

func (s *Service) associate(ctx context.Context, floating *FloatingIP, projectID string, request FloatingIPRequest) error {
	if !request.PortID.Given {
		if request.FixedIPAddress != "" && floating.PortID == "" {
			return problem(400, "BadRequest", "Bad floatingip request: fixed_ip_address cannot be specified without a port_id.")
		}
		return nil
	}
	if request.PortID.Value == "" {
		s.dissociate(floating)
		return nil
	}
	port, err := s.GetPort(ctx, projectID, request.PortID.Value)
	if err != nil {
		return err
	}
	first := slices.IndexFunc(port.FixedIPs, func(f FixedIP) bool { return netip.MustParseAddr(f.IPAddress).Is4() })
	if first < 0 {
		return problem(400, "BadRequest", "Bad floatingip request: Cannot add floating IP to port %s that has no fixed IPv4 addresses.", port.ID)
	}
	fixed := port.FixedIPs[first]
	if request.FixedIPAddress != "" {
		at := slices.IndexFunc(port.FixedIPs, func(f FixedIP) bool { return f.IPAddress == request.FixedIPAddress })
		if at < 0 {
			return problem(400, "BadRequest", "Bad floatingip request: Port %s does not have fixed ip %s.", port.ID, request.FixedIPAddress)
		}
		fixed = port.FixedIPs[at]
	}
	for _, other := range s.floatingIPs.All() {
		if other.ID != floating.ID && string(other.PortID) == port.ID && string(other.FixedIPAddress) == fixed.IPAddress {
			return conflict("FloatingIPPortAlreadyAssociated", "Cannot associate floating IP %s (%s) with port %s using fixed IP %s, as that fixed IP already has a floating IP on external network %s.", floating.FloatingIPAddress, floating.ID, port.ID, fixed.IPAddress, floating.FloatingNetworkID)
		}
	}
	router, ok := s.routerFor(fixed.SubnetID, floating.FloatingNetworkID)
	if !ok {
		return problem(404, "ExternalGatewayForFloatingIPNotFound", "External network %s is not reachable from subnet %s. Therefore, cannot associate Port %s with a Floating IP.", floating.FloatingNetworkID, fixed.SubnetID, port.ID)
	}
	floating.PortID, floating.FixedIPAddress, floating.RouterID, floating.Status = OrNull(port.ID), OrNull(fixed.IPAddress), OrNull(router), "ACTIVE"
	return nil
}

func (s *Service) dissociate(floating *FloatingIP) {
	floating.PortID, floating.FixedIPAddress, floating.RouterID, floating.Status = "", "", "", "DOWN"
}

func (f FloatingIP) addresses() (floating, fixed netip.Addr) {
	return netip.MustParseAddr(f.FloatingIPAddress), netip.MustParseAddr(string(f.FixedIPAddress))
}
