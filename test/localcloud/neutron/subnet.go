package neutron

import (
	"context"
	"net/netip"
	"slices"
)

// Subnet is a subnet as the API shows it. There are no announcements of IPv6: servers get IPv6 addresses from the config drive, like IPv4
// addresses.
type Subnet struct {
	Common
	NetworkID       string           `json:"network_id"`
	IPVersion       int              `json:"ip_version"`
	CIDR            string           `json:"cidr"`
	GatewayIP       OrNull           `json:"gateway_ip"`
	AllocationPools []AllocationPool `json:"allocation_pools"`
	DNSNameservers  []string         `json:"dns_nameservers"`
	HostRoutes      []HostRoute      `json:"host_routes"`
	ServiceTypes    []string         `json:"service_types"`
	EnableDHCP      bool             `json:"enable_dhcp"`
	IPv6AddressMode OrNull           `json:"ipv6_address_mode"`
	IPv6RAMode      OrNull           `json:"ipv6_ra_mode"`
	SubnetPoolID    OrNull           `json:"subnetpool_id"`
	SegmentID       OrNull           `json:"segment_id"`
}

// AllocationPool is a range of addresses that are given out, both ends included.
type AllocationPool struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

// HostRoute is a route that servers shall have.
type HostRoute struct {
	Destination string `json:"destination"`
	NextHop     string `json:"nexthop"`
}

// SubnetRequest makes or changes a subnet. The gateway is the first address when it is not given, none when it is null.
type SubnetRequest struct {
	Owner
	NetworkID       string           `json:"network_id"`
	Name            *string          `json:"name"`
	Description     *string          `json:"description"`
	IPVersion       int              `json:"ip_version"`
	CIDR            string           `json:"cidr"`
	GatewayIP       Maybe[string]    `json:"gateway_ip"`
	AllocationPools []AllocationPool `json:"allocation_pools"`
	DNSNameservers  *[]string        `json:"dns_nameservers"`
	HostRoutes      *[]HostRoute     `json:"host_routes"`
	ServiceTypes    *[]string        `json:"service_types"`
	EnableDHCP      *bool            `json:"enable_dhcp"`
	IPv6AddressMode *string          `json:"ipv6_address_mode"`
	IPv6RAMode      *string          `json:"ipv6_ra_mode"`
}

func (n Subnet) prefix() netip.Prefix { return netip.MustParsePrefix(n.CIDR) }

// automatic reports whether servers make their addresses themselves, from their MAC addresses.
func (n Subnet) automatic() bool {
	return n.IPv6AddressMode == "slaac" || n.IPv6AddressMode == "dhcpv6-stateless"
}

func (n Subnet) gateway() netip.Addr {
	gateway, _ := netip.ParseAddr(string(n.GatewayIP))
	return gateway
}

func (s *Service) subnetVisible(subnet Subnet, projectID string) bool {
	if subnet.belongs(projectID) {
		return true
	}
	network, ok := s.networks.Get(subnet.NetworkID)
	return ok && (network.Shared || network.External)
}

// Subnets lists the subnets that a project sees.
func (s *Service) Subnets(projectID string) (found []Subnet) {
	for _, subnet := range s.subnets.All() {
		if s.subnetVisible(subnet, projectID) {
			found = append(found, subnet)
		}
	}
	return found
}

// GetSubnet returns a subnet that the project sees.
func (s *Service) GetSubnet(_ context.Context, projectID, id string) (Subnet, error) {
	subnet, ok := s.subnets.Get(id)
	if !ok || !s.subnetVisible(subnet, projectID) {
		return Subnet{}, notFound("Subnet", "Subnet", id)
	}
	return subnet, nil
}

// CreateSubnet makes a subnet in a network of the project.
func (s *Service) CreateSubnet(ctx context.Context, projectID string, request SubnetRequest) (Subnet, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if subnet, ok := s.subnets.Get(request.ID); ok && subnet.belongs(projectID) {
		return subnet, nil
	}
	network, err := s.ownNetwork(ctx, projectID, request.NetworkID, "create_subnet")
	if err != nil {
		return Subnet{}, err
	}
	prefix, err := parseCIDR(request)
	if err != nil {
		return Subnet{}, err
	}
	for _, id := range network.Subnets {
		if other, ok := s.subnets.Get(id); ok && other.prefix().Overlaps(prefix) {
			return Subnet{}, invalid("Requested subnet with cidr: %s for network: %s overlaps with another subnet", prefix, network.ID)
		}
	}
	if err := s.checkQuota(projectID, quotaSubnet); err != nil {
		return Subnet{}, err
	}
	subnet := Subnet{Common: s.common(request.ID, projectID, ""), NetworkID: network.ID, IPVersion: 4, CIDR: prefix.String(), EnableDHCP: true}
	if prefix.Addr().Is6() {
		subnet.IPVersion = 6
	}
	if err := setModes(&subnet, request); err != nil {
		return Subnet{}, err
	}
	if !request.GatewayIP.Given {
		request.GatewayIP = Some(prefix.Addr().Next().String())
	}
	if err := s.changeSubnet(&subnet, request); err != nil {
		return Subnet{}, err
	}
	subnet.RevisionNumber = 0
	if err := s.subnets.Put(subnet.ID, subnet); err != nil {
		return Subnet{}, err
	}
	network.Subnets = append(network.Subnets, subnet.ID)
	return subnet, s.networks.Put(network.ID, network)
}

// UpdateSubnet changes a subnet of the project.
func (s *Service) UpdateSubnet(ctx context.Context, projectID, id string, request SubnetRequest) (Subnet, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	subnet, err := s.ownSubnet(ctx, projectID, id, "update_subnet")
	if err != nil {
		return Subnet{}, err
	}
	if request.CIDR != "" && request.CIDR != subnet.CIDR || request.NetworkID != "" && request.NetworkID != subnet.NetworkID {
		return Subnet{}, problem(400, "HTTPBadRequest", "Cannot update read-only attribute cidr or network_id")
	}
	for _, mode := range []*string{request.IPv6AddressMode, request.IPv6RAMode} {
		if mode != nil {
			return Subnet{}, problem(400, "HTTPBadRequest", "Cannot update read-only attribute ipv6_address_mode or ipv6_ra_mode")
		}
	}
	if gateway := subnet.gateway(); request.GatewayIP.Given && request.GatewayIP.Value != string(subnet.GatewayIP) {
		for _, port := range s.ports.All() {
			if port.DeviceOwner == ownerInterface && port.has(gateway) {
				return Subnet{}, conflict("GatewayIpInUse", "Current gateway ip %s already in use by port %s. Unable to update.", gateway, port.ID)
			}
		}
	}
	if err := s.changeSubnet(&subnet, request); err != nil {
		return Subnet{}, err
	}
	return subnet, s.subnets.Put(id, subnet)
}

// DeleteSubnet removes a subnet in which no port has an address.
func (s *Service) DeleteSubnet(ctx context.Context, projectID, id string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	subnet, err := s.ownSubnet(ctx, projectID, id, "delete_subnet")
	if err != nil {
		return err
	}
	network, _ := s.networks.Get(subnet.NetworkID)
	if network.External || slices.ContainsFunc(s.ports.All(), func(p Port) bool { return p.in(id) }) {
		return conflict("SubnetInUse", "Unable to complete operation on subnet %s: One or more ports have an IP allocation from this subnet.", id)
	}
	network.Subnets = slices.DeleteFunc(network.Subnets, func(other string) bool { return other == id })
	if err := s.networks.Put(network.ID, network); err != nil {
		return err
	}
	_, err = s.subnets.Delete(id)
	return err
}

func (s *Service) ownSubnet(ctx context.Context, projectID, id, rule string) (Subnet, error) {
	subnet, err := s.GetSubnet(ctx, projectID, id)
	if err == nil && !subnet.belongs(projectID) {
		return Subnet{}, disallowed(rule)
	}
	return subnet, err
}

func parseCIDR(request SubnetRequest) (netip.Prefix, error) {
	if request.IPVersion != 0 && request.IPVersion != 4 && request.IPVersion != 6 {
		return netip.Prefix{}, invalid("'%d' is not in [4, 6]", request.IPVersion)
	}
	if request.CIDR == "" {
		return netip.Prefix{}, problem(400, "BadRequest", "Bad subnets request: a subnetpool must be specified in the absence of a cidr.")
	}
	prefix, err := netip.ParsePrefix(request.CIDR)
	if err != nil {
		return netip.Prefix{}, invalid("cidr: '%s' is not a valid IP subnet", request.CIDR)
	}
	// Neutron takes 10.0.0.5/24 for 10.0.0.0/24.
	prefix = prefix.Masked()
	if six := request.IPVersion == 6; six != prefix.Addr().Is6() {
		return netip.Prefix{}, problem(400, "InvalidInput", "Invalid input for operation: cidr %s does not match the ip_version '%d'.", prefix, max(request.IPVersion, 4))
	}
	if prefix.Bits() == 0 || prefix.Bits() > prefix.Addr().BitLen()-2 {
		return netip.Prefix{}, invalid("cidr: '%s' is not a network with room for a gateway and a port", request.CIDR)
	}
	return prefix, nil
}

// setModes sets the mode of IPv6 addresses, and of routers' announcements (https://docs.openstack.org/neutron/latest/admin/config-ipv6.html).
func setModes(subnet *Subnet, request SubnetRequest) error {
	for _, mode := range []struct {
		name   string
		target *OrNull
		value  *string
	}{{"ipv6_address_mode", &subnet.IPv6AddressMode, request.IPv6AddressMode}, {"ipv6_ra_mode", &subnet.IPv6RAMode, request.IPv6RAMode}} {
		if mode.value == nil || *mode.value == "" {
			continue
		}
		if !slices.Contains([]string{"dhcpv6-stateful", "dhcpv6-stateless", "slaac"}, *mode.value) {
			return invalid("%s: '%s' is not in ['dhcpv6-stateful', 'dhcpv6-stateless', 'slaac']", mode.name, *mode.value)
		}
		if subnet.IPVersion != 6 {
			return problem(400, "InvalidInput", "Invalid input for operation: %s is not valid when ip_version is 4.", mode.name)
		}
		if request.EnableDHCP != nil && !*request.EnableDHCP {
			return problem(400, "InvalidInput", "Invalid input for operation: ipv6_ra_mode or ipv6_address_mode cannot be set when enable_dhcp is set to False.")
		}
		*mode.target = OrNull(*mode.value)
	}
	if announced, chosen := subnet.IPv6RAMode, subnet.IPv6AddressMode; announced != "" && chosen != "" && announced != chosen {
		return problem(400, "InvalidInput", "Invalid input for operation: ipv6_ra_mode set to '%s' with ipv6_address_mode set to '%s' is not valid. If both attributes are set, they must be the same value.", announced, chosen)
	}
	if subnet.automatic() && subnet.prefix().Bits() != 64 {
		return problem(400, "InvalidInput", "Invalid input for operation: Invalid CIDR %s for IPv6 address mode. OpenStack uses the EUI-64 address format, which requires the prefix to be /64.", subnet.CIDR)
	}
	return nil
}

func (s *Service) changeSubnet(subnet *Subnet, request SubnetRequest) error {
	prefix := subnet.prefix()
	gateway := subnet.gateway()
	if request.GatewayIP.Given {
		gateway = netip.Addr{}
		if text := request.GatewayIP.Value; text != "" {
			var err error
			if gateway, err = netip.ParseAddr(text); err != nil {
				return invalid("gateway_ip: '%s' is not a valid IP address", text)
			}
			if !usable(prefix, gateway) {
				return problem(400, "InvalidInput", "Invalid input for operation: Gateway is not valid on subnet.")
			}
		}
		subnet.GatewayIP = OrNull(request.GatewayIP.Value)
	}
	switch {
	case request.AllocationPools != nil:
		for i, pool := range request.AllocationPools {
			if err := checkPool(prefix, gateway, pool, request.AllocationPools[:i]); err != nil {
				return err
			}
		}
		subnet.AllocationPools = request.AllocationPools
	case subnet.AllocationPools == nil || request.GatewayIP.Given:
		subnet.AllocationPools = defaultPools(prefix, gateway)
	}
	if request.DNSNameservers != nil {
		for _, text := range *request.DNSNameservers {
			if _, err := netip.ParseAddr(text); err != nil {
				return invalid("dns_nameservers: '%s' is not a valid nameserver", text)
			}
		}
		subnet.DNSNameservers = *request.DNSNameservers
	}
	set(&subnet.HostRoutes, request.HostRoutes)
	set(&subnet.ServiceTypes, request.ServiceTypes)
	set(&subnet.EnableDHCP, request.EnableDHCP)
	subnet.DNSNameservers, subnet.HostRoutes, subnet.ServiceTypes = list(subnet.DNSNameservers), list(subnet.HostRoutes), list(subnet.ServiceTypes)
	s.changed(&subnet.Common, request.Name, request.Description)
	return nil
}

func checkPool(prefix netip.Prefix, gateway netip.Addr, pool AllocationPool, others []AllocationPool) error {
	start, errStart := netip.ParseAddr(pool.Start)
	end, errEnd := netip.ParseAddr(pool.End)
	if errStart != nil || errEnd != nil || start.Compare(end) > 0 {
		return problem(400, "InvalidAllocationPool", "The allocation pool %s-%s is not valid.", pool.Start, pool.End)
	}
	if !usable(prefix, start) || !usable(prefix, end) {
		return problem(400, "OutOfBoundsAllocationPool", "The allocation pool %s-%s spans beyond the subnet cidr %s.", start, end, prefix)
	}
	if gateway.IsValid() && start.Compare(gateway) <= 0 && gateway.Compare(end) <= 0 {
		return conflict("GatewayConflictWithAllocationPools", "Gateway ip %s conflicts with allocation pool %s-%s.", gateway, start, end)
	}
	for _, other := range others {
		if pool.Start == other.Start || netip.MustParseAddr(other.Start).Compare(end) <= 0 && start.Compare(netip.MustParseAddr(other.End)) <= 0 {
			return conflict("OverlappingAllocationPools", "Found overlapping allocation pools: %s-%s %s-%s for subnet %s.", other.Start, other.End, start, end, prefix)
		}
	}
	return nil
}
