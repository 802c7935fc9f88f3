package neutron

import (
	"context"
	"errors"
	"net/netip"
	"slices"

	"github.com/burano/burano/test/localcloud/fabric"
)

// This file turns security groups into rules of the data plane, as Neutron does
// (https://docs.openstack.org/neutron/latest/contributor/internals/openvswitch_firewall.html). Traffic needs a rule that allows it, replies always pass,
// and a sender may only use the port's own addresses and its allowed address pairs.

// protocols are the numbers of the protocols that a rule may name
// (https://www.iana.org/assignments/protocol-numbers).
var protocols = map[string]uint8{
	"ah": 51, "dccp": 33, "egp": 8, "esp": 50, "gre": 47, "icmp": 1, "icmpv6": 58, "igmp": 2, "ipip": 4, "ipv6-icmp": 58, "ospf": 89,
	"pgm": 113, "rsvp": 46, "sctp": 132, "tcp": 6, "udp": 17, "udplite": 136, "vrrp": 112,
}

// applyGuards updates the firewall of every network from the rows. Call it after changing rows, without the lock; the last caller reads the last state.
// Unchanged networks are skipped.
func (s *Service) applyGuards(ctx context.Context) error {
	s.guardLock.Lock()
	defer s.guardLock.Unlock()
	s.mutex.RLock()
	networks := s.networks.All()
	guards := s.wantedGuards()
	s.mutex.RUnlock()
	var problems error
	for _, network := range networks {
		problems = errors.Join(problems, s.fabric.ApplyGuards(ctx, network.fabric(), guards[network.ID]))
	}
	return problems
}

// wantedGuards are the guards of all plugged ports with port security, by network.
func (s *Service) wantedGuards() map[string][]fabric.Guard {
	groups := map[string]SecurityGroup{}
	for _, group := range s.securityGroups.All() {
		groups[group.ID] = group
	}
	ports := s.ports.All()
	members := map[string][]netip.Prefix{}
	for _, port := range ports {
		for _, id := range port.SecurityGroups {
			for _, source := range port.sources() {
				members[id] = append(members[id], source.Addresses...)
			}
		}
	}
	wanted := map[string][]fabric.Guard{}
	for _, port := range ports {
		if port.Device == "" || !port.PortSecurityEnabled {
			continue
		}
		guard := fabric.Guard{PortID: port.ID, Allowed: port.sources()}
		for _, id := range port.SecurityGroups {
			for _, rule := range groups[id].Rules {
				match, ok := rule.match(members)
				switch {
				case ok && rule.Direction == "ingress":
					guard.Ingress = append(guard.Ingress, match)
				case ok:
					guard.Egress = append(guard.Egress, match)
				}
			}
		}
		wanted[port.NetworkID] = append(wanted[port.NetworkID], guard)
	}
	return wanted
}

// sources are the addresses that the server behind the port may use, by MAC, the port's own first.
func (p Port) sources() []fabric.Source {
	sources := []fabric.Source{{MAC: p.MACAddress}}
	for _, fixed := range p.FixedIPs {
		address := netip.MustParseAddr(fixed.IPAddress)
		sources[0].Addresses = append(sources[0].Addresses, netip.PrefixFrom(address, address.BitLen()))
	}
	for _, pair := range p.AllowedAddressPairs {
		prefix, err := parsePair(pair.IPAddress)
		if err != nil {
			continue
		}
		at := slices.IndexFunc(sources, func(s fabric.Source) bool { return s.MAC == pair.MACAddress })
		if at < 0 {
			at = len(sources)
			sources = append(sources, fabric.Source{MAC: pair.MACAddress})
		}
		sources[at].Addresses = append(sources[at].Addresses, prefix)
	}
	return sources
}

// parsePair reads the address of an address pair, which may be a network.
func parsePair(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}

// match is the effect of a rule; false when it admits nothing here: the members of an empty group.
func (r SecurityGroupRule) match(members map[string][]netip.Prefix) (fabric.Match, bool) {
	match := fabric.Match{IPv6: r.EtherType == "IPv6", Protocol: r.number()}
	if match.IPv6 && match.Protocol == protocols["icmp"] { // which Neutron takes for ICMPv6
		match.Protocol = protocols["icmpv6"]
	}
	switch {
	case r.RemoteGroupID != "":
		for _, member := range members[string(r.RemoteGroupID)] {
			if member.Addr().Is6() == match.IPv6 {
				match.Remote = append(match.Remote, member)
			}
		}
		if len(match.Remote) == 0 {
			return match, false
		}
	case r.NormalizedCIDR != "":
		match.Remote = []netip.Prefix{netip.MustParsePrefix(string(r.NormalizedCIDR))}
	}
	switch {
	case r.PortRangeMin == nil:
	case match.Protocol == protocols["icmp"] || match.Protocol == protocols["icmpv6"]: // type and code
		match.ICMP = []uint8{uint8(*r.PortRangeMin)}
		if r.PortRangeMax != nil {
			match.ICMP = append(match.ICMP, uint8(*r.PortRangeMax))
		}
	case r.PortRangeMax != nil:
		match.Ports = [2]uint16{uint16(*r.PortRangeMin), uint16(*r.PortRangeMax)}
	}
	return match, true
}
