package neutron

import (
	"encoding/binary"
	"net/netip"
	"slices"
)

// This file is arithmetic on addresses and the choice of a free one.

func nth(address netip.Addr, n uint32) netip.Addr {
	bytes := address.As4()
	binary.BigEndian.PutUint32(bytes[:], binary.BigEndian.Uint32(bytes[:])+n)
	return netip.AddrFrom4(bytes)
}

// last is the last address of a network, which of IPv4 is its broadcast address.
func last(prefix netip.Prefix) netip.Addr {
	bytes := prefix.Masked().Addr().AsSlice()
	for bit := prefix.Bits(); bit < len(bytes)*8; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	address, _ := netip.AddrFromSlice(bytes)
	return address
}

// usable reports whether a port can have the address. The first one of an IPv6 network belongs to all its routers (RFC 4291, 2.6.1).
func usable(prefix netip.Prefix, address netip.Addr) bool {
	return prefix.Contains(address) && address != prefix.Masked().Addr() && (address.Is6() || address != last(prefix))
}

// defaultPools are all usable addresses but the gateway's.
func defaultPools(prefix netip.Prefix, gateway netip.Addr) []AllocationPool {
	first, end := prefix.Addr().Next(), last(prefix)
	if prefix.Addr().Is4() {
		end = end.Prev()
	}
	pools := []AllocationPool{}
	add := func(a, b netip.Addr) {
		if a.Compare(b) <= 0 {
			pools = append(pools, AllocationPool{Start: a.String(), End: b.String()})
		}
	}
	if !gateway.IsValid() || !usable(prefix, gateway) {
		add(first, end)
		return pools
	}
	add(first, gateway.Prev())
	add(gateway.Next(), end)
	return pools
}

// free chooses the lowest free address of the subnet's pools. The caller holds the lock.
func (s *Service) free(subnet Subnet, taken map[netip.Addr]bool) (netip.Addr, error) {
	used := s.used(subnet)
	for _, pool := range subnet.AllocationPools {
		end := netip.MustParseAddr(pool.End)
		for address := netip.MustParseAddr(pool.Start); address.Compare(end) <= 0; address = address.Next() {
			if !used[address] && !taken[address] {
				return address, nil
			}
		}
	}
	return netip.Addr{}, conflict("IpAddressGenerationFailure", "No more IP addresses available on network %s.", subnet.NetworkID)
}

func (s *Service) used(subnet Subnet) map[netip.Addr]bool {
	used := map[netip.Addr]bool{}
	for _, port := range s.ports.All() {
		for _, fixed := range port.FixedIPs {
			if fixed.SubnetID == subnet.ID {
				used[netip.MustParseAddr(fixed.IPAddress)] = true
			}
		}
	}
	return used
}

// fixedIPs decides on the addresses of a port. The caller holds the lock. had are its present ones, which it may keep.
func (s *Service) fixedIPs(network Network, wanted *[]FixedIP, had []FixedIP) ([]FixedIP, error) {
	if wanted == nil {
		if len(network.Subnets) == 0 {
			return []FixedIP{}, nil // a port without an address, as Neutron makes it in a network without subnets
		}
		ofEach := s.addressOfEach(network)
		wanted = &ofEach
	}
	chosen, taken := []FixedIP{}, map[netip.Addr]bool{}
	for _, want := range *wanted {
		fixed, err := s.fixedIP(network, want, had, taken)
		if err != nil {
			return nil, err
		}
		if fixed.IPAddress != "" {
			taken[netip.MustParseAddr(fixed.IPAddress)] = true
		}
		chosen = append(chosen, fixed)
	}
	return chosen, nil
}

// addressOfEach returns the default addresses of a port: an address of the first subnet of each version of IP that has one left, and one of each subnet
// whose addresses servers make themselves.
func (s *Service) addressOfEach(network Network) []FixedIP {
	wanted, done := []FixedIP{}, map[int]bool{}
	for _, id := range network.Subnets {
		subnet, ok := s.subnets.Get(id)
		if !ok || !subnet.automatic() && done[subnet.IPVersion] {
			continue
		}
		if _, err := s.free(subnet, nil); err != nil {
			continue
		}
		done[subnet.IPVersion] = done[subnet.IPVersion] || !subnet.automatic()
		wanted = append(wanted, FixedIP{SubnetID: id})
	}
	if len(wanted) == 0 {
		return []FixedIP{{}} // an empty one: no address
	}
	return wanted
}

func (s *Service) fixedIP(network Network, want FixedIP, had []FixedIP, taken map[netip.Addr]bool) (FixedIP, error) {
	var address netip.Addr
	if want.IPAddress != "" {
		var err error
		if address, err = netip.ParseAddr(want.IPAddress); err != nil {
			return FixedIP{}, invalid("'%s' is not a valid IP address", want.IPAddress)
		}
	}
	subnet, ok := s.chooseSubnet(network, want.SubnetID, address)
	if !ok && want.SubnetID != "" {
		return FixedIP{}, invalid("Failed to create port on network %s, because fixed_ips included invalid subnet %s", network.ID, want.SubnetID)
	}
	if !ok {
		return FixedIP{}, problem(400, "InvalidIpForNetwork", "IP address %s is not a valid IP for any of the subnets on the specified network.", want.IPAddress)
	}
	if !address.IsValid() {
		if subnet.automatic() {
			return FixedIP{SubnetID: subnet.ID}, nil // of the port's MAC address, which it may not have yet
		}
		for _, old := range had { // a port keeps its address in that subnet
			if old := old; old.SubnetID == subnet.ID && !taken[netip.MustParseAddr(old.IPAddress)] {
				return old, nil
			}
		}
		address, err := s.free(subnet, taken)
		return FixedIP{SubnetID: subnet.ID, IPAddress: address.String()}, err
	}
	if subnet.automatic() && string(subnet.GatewayIP) != address.String() && !slices.Contains(had, FixedIP{SubnetID: subnet.ID, IPAddress: address.String()}) {
		return FixedIP{}, problem(400, "AllocationOnAutoAddressSubnet", "IPv6 address %s can not be directly assigned to a port on subnet %s as the subnet is configured for automatic addresses", address, subnet.ID)
	}
	if !usable(subnet.prefix(), address) {
		return FixedIP{}, problem(400, "InvalidIpForSubnet", "IP address %s is not a valid IP for the specified subnet.", address)
	}
	fixed := FixedIP{SubnetID: subnet.ID, IPAddress: address.String()}
	own := false
	for _, old := range had {
		own = own || old == fixed
	}
	if taken[address] || !own && s.used(subnet)[address] {
		return FixedIP{}, conflict("IpAddressAlreadyAllocated", "IP address %s already allocated in subnet %s", address, subnet.ID)
	}
	return fixed, nil
}

// chooseSubnet finds the subnet by its id, or by the address, or takes the first one.
func (s *Service) chooseSubnet(network Network, id string, address netip.Addr) (Subnet, bool) {
	for _, candidate := range network.Subnets {
		subnet, ok := s.subnets.Get(candidate)
		if ok && (id == "" || id == candidate) && (id != "" || !address.IsValid() || subnet.prefix().Contains(address)) {
			return subnet, true
		}
	}
	return Subnet{}, false
}
