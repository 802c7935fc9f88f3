package main

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// networkFiles returns the networkd file of each link with an address (name → content), and the name servers of all of them. Invalid parts are left out
// and reported in problems, so that one bad network does not make a server unreachable.
func networkFiles(n network) (files map[string]string, nameServers, problems []string) {
	files = map[string]string{}
	for position, link := range n.Links {
		if _, err := net.ParseMAC(link.MAC); err != nil {
			problems = append(problems, fmt.Sprintf("link %s: %v", link.ID, err))
			continue
		}
		var settings, sections []string
		local, announced := "no", "no"
		for _, subnet := range n.Networks {
			if subnet.Link != link.ID {
				continue
			}
			setting, section, err := subnetLines(subnet)
			if err != nil {
				problems = append(problems, fmt.Sprintf("network %s: %v", subnet.ID, err))
				continue
			}
			settings, sections = append(settings, setting...), append(sections, section...)
			if strings.HasPrefix(subnet.Type, "ipv6") {
				local = "ipv6" // from which neighbours are looked for
				if subnet.Address == "" {
					announced = "yes"
				}
			}
			nameServers = append(nameServers, dnsServers(subnet.Services)...)
		}
		if len(settings)+len(sections) == 0 {
			continue
		}
		var file strings.Builder
		fmt.Fprintf(&file, "# From the network data of the config drive.\n[Match]\nMACAddress=%s\n", link.MAC)
		if link.MTU > 0 {
			fmt.Fprintf(&file, "\n[Link]\nMTUBytes=%d\n", link.MTU)
		}
		fmt.Fprintf(&file, "\n[Network]\nLinkLocalAddressing=%s\nIPv6AcceptRA=%s\n", local, announced)
		for _, line := range append(unique(settings), sections...) {
			file.WriteString(line + "\n")
		}
		files[fmt.Sprintf("10-config-drive-%d.network", position)] = file.String()
	}
	nameServers = append(nameServers, dnsServers(n.Services)...)
	return files, unique(nameServers), problems
}

// subnetLines are the lines of one network for the section [Network] of its link, and its own sections. Nova's address of IPv6 is written down,
// independently of announcements, which not all clouds make.
func subnetLines(s subnet) (settings, sections []string, err error) {
	switch s.Type {
	case "ipv4", "ipv6":
	case "ipv4_dhcp":
		return []string{"DHCP=ipv4"}, nil, nil
	case "ipv6_dhcp", "ipv6_dhcpv6-stateful", "ipv6_dhcpv6-stateless", "ipv6_slaac":
		if s.Address == "" {
			return []string{"DHCP=ipv6"}, nil, nil
		}
	default:
		return nil, nil, fmt.Errorf("type %q is not known", s.Type)
	}
	prefix, err := parsePrefix(s.Address, s.Netmask)
	if err != nil {
		return nil, nil, err
	}
	sections = []string{"", "[Address]", "Address=" + prefix.String()}
	if s.Gateway != "" {
		sections = append(sections, "", "[Route]", "Gateway="+s.Gateway)
	}
	for _, route := range s.Routes {
		destination, err := parsePrefix(route.Network, route.Netmask)
		if err != nil {
			return nil, nil, fmt.Errorf("route: %w", err)
		}
		gateway, err := netip.ParseAddr(route.Gateway)
		if err != nil {
			return nil, nil, fmt.Errorf("route to %s: %w", destination, err)
		}
		if destination.Bits() == 0 && route.Gateway == s.Gateway {
			continue
		}
		sections = append(sections, "", "[Route]", "Gateway="+gateway.String())
		if destination.Bits() != 0 {
			sections = append(sections, "Destination="+destination.String())
		}
	}
	return nil, sections, nil
}

// parsePrefix joins address and netmask, the latter as four numbers, as IPv6 groups or as a length; the address may also
// carry its length itself.
func parsePrefix(address, netmask string) (netip.Prefix, error) {
	if strings.Contains(address, "/") {
		return netip.ParsePrefix(address)
	}
	parsed, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}, err
	}
	mask, err := netip.ParseAddr(netmask)
	if err != nil {
		return netip.ParsePrefix(address + "/" + netmask)
	}
	bits, size := net.IPMask(mask.AsSlice()).Size()
	if size != parsed.BitLen() {
		return netip.Prefix{}, fmt.Errorf("netmask %q does not fit address %s", netmask, address)
	}
	return netip.PrefixFrom(parsed, bits), nil
}

func dnsServers(services []service) []string {
	var servers []string
	for _, service := range services {
		if _, err := netip.ParseAddr(service.Address); service.Type == "dns" && err == nil {
			servers = append(servers, service.Address)
		}
	}
	return servers
}

// unique keeps the first of equal values.
func unique(values []string) []string {
	var kept []string
	for _, value := range values {
		if !slices.Contains(kept, value) {
			kept = append(kept, value)
		}
	}
	return kept
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
