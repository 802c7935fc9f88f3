package fabric

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// Guard is the filter of a port at the bridge.
//
// It is at the bridge, which the privileged server behind the port cannot reach. Answers to admitted packets pass, and admitted connections continue when
// the rules change: rules decide on new connections only.
type Guard struct {
	PortID  string
	Allowed []Source // as whom the server may speak; everything else it sends is dropped
	Ingress []Match  // the admitted packets; none when empty
	Egress  []Match
}

// Source is a MAC address with the IP addresses that may be used with it.
type Source struct {
	MAC       string
	Addresses []netip.Prefix
}

// Match matches packets that begin something.
type Match struct {
	IPv6     bool           // packets of IPv6 in place of IPv4
	Protocol uint8          // 0 for all
	Ports    [2]uint16      // first and last destination port; zeros for all
	ICMP     []uint8        // type, or type and code
	Remote   []netip.Prefix // where it comes from or goes to, of the same version of IP; anywhere when empty
}

// memory are the tables of admitted connections, by the port's index and the port's own side first, so that both directions of a connection have one key.
// They stay when the rules change.
//
// The kernel's own connection tracking is not used: for bridges it is an option that many kernels were built without.
const memory = `	set connectionsSIX {
		typeof TCP
		size 262144
		flags dynamic,timeout
	}
	set closingSIX {
		typeof TCP
		size 262144
		flags dynamic,timeout
	}
	set datagramsSIX {
		typeof UDP
		size 262144
		flags dynamic,timeout
	}
	set echoesSIX {
		typeof ECHO
		size 65536
		flags dynamic,timeout
	}
	set othersSIX {
		typeof OTHER
		size 65536
		flags dynamic,timeout
	}
	set fragmentsSIX {
		typeof PART
		size 65536
		flags dynamic,timeout
	}
`

// known admits packets of admitted connections. A SYN always begins a new one. The packet that an ICMP error quotes cannot be looked up, so these errors
// pass.
const known = `		LATER PART @fragmentsSIX return
		LATER drop
		tcp flags & (fin | rst) != 0 TCP @connectionsSIX update @closingSIX { TCP timeout 2m } delete @connectionsSIX { TCP }
		tcp flags & (syn | ack) != syn TCP @connectionsSIX update @connectionsSIX { TCP timeout 5d } goto CHAIN-passed
		tcp flags & (syn | ack) != syn TCP @closingSIX update @closingSIX { TCP timeout 2m } goto CHAIN-passed
		UDP @datagramsSIX update @datagramsSIX { UDP timeout 3m } goto CHAIN-passed
		ICMP type echo-reply ECHO @echoesSIX goto CHAIN-passed
		ICMP type { ERRORS } return
		PROTOCOL != { CONTROL, tcp, udp } OTHER @othersSIX update @othersSIX { OTHER timeout 10m } goto CHAIN-passed
`

// begun records connections that a rule admitted. A TCP connection that is not answered is dropped soon.
const begun = `		tcp flags & (syn | ack) != 0 update @connectionsSIX { TCP timeout 2m } delete @closingSIX { TCP }
		PROTOCOL udp update @datagramsSIX { UDP timeout 3m }
		ICMP type echo-request update @echoesSIX { ECHO timeout 30s }
		PROTOCOL != { CONTROL, tcp, udp } update @othersSIX { OTHER timeout 10m }
		goto CHAIN-passed
`

// passed remembers that the rest of a fragmented packet may follow its first part.
const passed = `		MORE update @fragmentsSIX { PART timeout 30s }
`

// Packets that pass independently of the rules, as in Neutron (ICMPV6_ALLOWED_INGRESS_TYPES and _EGRESS_TYPES of its constants): without neighbour
// discovery there is no IPv6, and without DHCPv6 no address.
const (
	alwaysSent     = "\t\ticmpv6 type { 130-133, 135, 136, 143 } return\n\t\tudp sport 546 udp dport 547 return\n"
	alwaysReceived = "\t\ticmpv6 type { 130, 134-136 } return\n\t\tudp sport 547 udp dport 546 return\n"
)

// direction is the view of a packet of one version of IP from a port: sent by the server behind it, or received.
type direction struct {
	chain, remote, name string // name matches the port's interface
	six                 bool
	fill                *strings.Replacer
}

func newDirection(six bool, suffix, chain, name, index, local, remote, localPort, remotePort string) direction {
	ip, icmp, control, protocol := "ip", "icmp", "icmp", "ip protocol"
	later, more, part, mistakes := "ip frag-off & 0x1fff != 0", "ip frag-off & 0x2000 != 0", "ip id", "destination-unreachable, time-exceeded, parameter-problem"
	if six {
		ip, icmp, control, protocol = "ip6", "icmpv6", "ipv6-icmp", "meta l4proto"
		later, more, part, mistakes = "frag frag-off != 0", "frag more-fragments 1", "frag id", "destination-unreachable, packet-too-big, time-exceeded, parameter-problem"
	}
	chain += suffix
	key := index + " . " + ip + " " + local + " . " + ip + " " + remote
	return direction{chain: chain, name: name, remote: ip + " " + remote, six: six, fill: strings.NewReplacer(
		"CHAIN", chain, "SIX", suffix, "ICMP", icmp, "CONTROL", control, "PROTOCOL", protocol, "LATER", later, "MORE", more, "ERRORS", mistakes,
		"TCP", key+" . tcp "+localPort+" . tcp "+remotePort,
		"UDP", key+" . udp "+localPort+" . udp "+remotePort,
		"ECHO", key+" . "+icmp+" id",
		"OTHER", key+" . "+protocol,
		"PART", key+" . "+protocol+" . "+part,
	)}
}

// write writes the chains of a direction. Each of the ports has the rules of its guard; first begins the chain.
func (d direction) write(b *strings.Builder, first string, ports []string, rules func(i int) []Match) {
	fmt.Fprintf(b, "\tchain %s-passed {\n%s\t}\n", d.chain, d.fill.Replace(passed))
	fmt.Fprintf(b, "\tchain %s-begun {\n%s\t}\n", d.chain, d.fill.Replace(begun))
	fmt.Fprintf(b, "\tchain %s {\n%s%s", d.chain, first, d.fill.Replace(known))
	for i, port := range ports {
		fmt.Fprintf(b, "\t\t%s %q goto {\n", d.name, port)
		for _, match := range rules(i) {
			if match.IPv6 == d.six {
				fmt.Fprintf(b, "\t\t\t%sgoto %s-begun\n", match.text(d.remote), d.chain)
			}
		}
		b.WriteString("\t\t\tdrop\n\t\t}\n")
	}
	b.WriteString("\t}\n")
}

func (m Match) text(remote string) string {
	icmp, protocol := "icmp", "ip protocol"
	if m.IPv6 {
		icmp, protocol = "icmpv6", "meta l4proto"
	}
	var b strings.Builder
	if len(m.Remote) > 0 {
		fmt.Fprintf(&b, "%s { %s } ", remote, join(m.Remote))
	}
	switch {
	case len(m.ICMP) > 0:
		fmt.Fprintf(&b, "%s type %d ", icmp, m.ICMP[0])
		if len(m.ICMP) > 1 {
			fmt.Fprintf(&b, "%s code %d ", icmp, m.ICMP[1])
		}
	case m.Protocol != 0:
		fmt.Fprintf(&b, "%s %d ", protocol, m.Protocol)
	}
	if m.Ports[0] != 0 {
		fmt.Fprintf(&b, "th dport %d-%d ", m.Ports[0], m.Ports[1])
	}
	return b.String()
}

// guardRules is the whole firewall of a network's bridge; loaded in one go, it replaces the former one without a gap and without losing admitted
// connections. It has rules of IPv6 only if a port has an address of it.
func guardRules(table string, name func(portID string) string, guards []Guard) string {
	guards = slices.SortedFunc(slices.Values(guards), func(a, b Guard) int { return cmp.Compare(a.PortID, b.PortID) })
	ports := make([]string, len(guards))
	quoted := make([]string, len(guards))
	dual := false
	for i, guard := range guards {
		ports[i] = name(guard.PortID)
		quoted[i] = fmt.Sprintf("%q", ports[i])
		dual = dual || slices.ContainsFunc(guard.Allowed, func(s Source) bool { return len(s.of(true)) > 0 })
	}
	var b strings.Builder
	fmt.Fprintf(&b, "add table bridge %s\nflush table bridge %s\ntable bridge %s {\n", table, table, table)
	write := func(six bool, suffix, firstSent, firstReceived string) {
		sent := newDirection(six, suffix, "sent", "iifname", "meta iif", "saddr", "daddr", "sport", "dport")
		received := newDirection(six, suffix, "received", "oifname", "meta oif", "daddr", "saddr", "dport", "sport")
		b.WriteString(sent.fill.Replace(memory))
		sent.write(&b, firstSent, ports, func(i int) []Match { return guards[i].Egress })
		received.write(&b, firstReceived, ports, func(i int) []Match { return guards[i].Ingress })
	}
	arp, rest := "\t\tether type arp return\n", "\t\tether type != ip drop\n"
	if dual {
		write(true, "6", alwaysSent, alwaysReceived)
		write(false, "", arp+"\t\tether type ip6 goto sent6\n"+rest, arp+"\t\tether type ip6 goto received6\n"+rest)
	} else {
		write(false, "", arp+rest, arp+rest)
	}
	// Before the bridge learns where a MAC address is.
	b.WriteString("\tchain speaker {\n\t\ttype filter hook prerouting priority filter; policy accept;\n")
	for i, guard := range guards {
		fmt.Fprintf(&b, "\t\tiifname %q jump {\n", ports[i])
		for _, source := range guard.Allowed {
			nobody := netip.PrefixFrom(netip.IPv4Unspecified(), 32) // a probe for a free address (RFC 5227) has no sender address
			addresses := source.of(false)
			fmt.Fprintf(&b, "\t\t\tether saddr %s arp saddr ether %s arp saddr ip { %s } return\n", source.MAC, source.MAC, join(append([]netip.Prefix{nobody}, addresses...)))
			if len(addresses) > 0 {
				fmt.Fprintf(&b, "\t\t\tether saddr %s ip saddr { %s } return\n", source.MAC, join(addresses))
			}
			if addresses := source.of(true); len(addresses) > 0 {
				writeSpeaker6(&b, source.MAC, addresses)
			}
		}
		b.WriteString("\t\t\tdrop\n\t\t}\n")
	}
	b.WriteString("\t}\n")
	// The host itself is a neighbour on the external network's bridge only: its packets are not forwarded.
	for _, hook := range []struct {
		name           string
		sent, received bool
	}{{"input", true, false}, {"forward", true, true}, {"output", false, true}} {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype filter hook %s priority filter; policy accept;\n", hook.name, hook.name)
		if hook.sent && len(ports) > 0 {
			fmt.Fprintf(&b, "\t\tiifname { %s } jump sent\n", strings.Join(quoted, ", "))
		}
		if hook.received && len(ports) > 0 {
			fmt.Fprintf(&b, "\t\toifname { %s } jump received\n", strings.Join(quoted, ", "))
		}
		b.WriteString("\t}\n")
	}
	b.WriteString("}\n")
	return b.String()
}

// writeSpeaker6 lets a MAC address send from these addresses of IPv6, from its own link-local one, for discovery of neighbours and routers, and from none
// in a probe for a free address (RFC 4862, 5.4). It may not announce other addresses, announce itself as a router, or give out addresses.
func writeSpeaker6(b *strings.Builder, mac string, addresses []netip.Prefix) {
	addresses = append([]netip.Prefix{netip.PrefixFrom(linkLocal(mac), 128)}, addresses...)
	targets := make([]string, len(addresses))
	for i, prefix := range addresses {
		first := prefix.Masked().Addr().As16()
		last := first
		for bit := prefix.Bits(); bit < 128; bit++ {
			last[bit/8] |= 0x80 >> (bit % 8)
		}
		if targets[i] = fmt.Sprintf("0x%x", first); last != first {
			targets[i] += fmt.Sprintf("-0x%x", last)
		}
	}
	fmt.Fprintf(b, "\t\t\tether saddr %s icmpv6 type nd-neighbor-advert @th,64,128 != { %s } drop\n", mac, strings.Join(targets, ", "))
	fmt.Fprintf(b, "\t\t\tether saddr %s icmpv6 type nd-router-advert drop\n", mac)
	fmt.Fprintf(b, "\t\t\tether saddr %s udp sport 547 udp dport 546 drop\n", mac)
	fmt.Fprintf(b, "\t\t\tether saddr %s ip6 saddr :: icmpv6 type { 131, 133, 135, 143 } return\n", mac)
	fmt.Fprintf(b, "\t\t\tether saddr %s ip6 saddr { %s } return\n", mac, join(addresses))
}

// linkLocal is the address that a kernel gives an interface with this MAC address by itself (RFC 4291, appendix A).
func linkLocal(mac string) netip.Addr {
	hardware, err := net.ParseMAC(mac)
	if err != nil || len(hardware) != 6 {
		return netip.IPv6Unspecified()
	}
	return EUI64(netip.MustParsePrefix("fe80::/64"), hardware)
}

// EUI64 is the address in a /64 that an interface gives itself from its MAC address.
func EUI64(prefix netip.Prefix, mac net.HardwareAddr) netip.Addr {
	bytes := prefix.Addr().As16()
	copy(bytes[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.AddrFrom16(bytes)
}

// of are the addresses of one version of IP.
func (s Source) of(six bool) (addresses []netip.Prefix) {
	for _, address := range s.Addresses {
		if address.Addr().Is6() == six {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// guardTable is the firewall's table beside a network's own bridge; beside the host's bridge it carries the fabric's prefix.
const guardTable = "burano"

func (f *Fabric) hostTable() string { return f.config.Prefix + "guards" }

// ApplyGuards makes the bridge of a network guard these ports and no others. The network must have been applied; the ports need not
// be plugged yet, and should not be before they are guarded.
func (f *Fabric) ApplyGuards(_ context.Context, n Network, guards []Guard) error {
	namespace := f.NetworkNamespace(n.ID)
	table, name := guardTable, plugName
	if n.External {
		namespace, table = "", f.hostTable()
		name = func(portID string) string { return f.config.Prefix + plugName(portID) }
	}
	defer f.lock("guards " + n.ID)()
	rules := guardRules(table, name, guards)
	if n.External && len(guards) == 0 {
		rules = noTable(table) // the host keeps nothing that it does not need
	}
	f.mutex.Lock()
	same := f.rulesets[n.ID] == rules
	f.mutex.Unlock()
	if same {
		return nil
	}
	if err := nft(namespace, rules); err != nil {
		return fmt.Errorf("guard the ports of network %s: %w", n.ID, err)
	}
	f.mutex.Lock()
	f.rulesets[n.ID] = rules
	f.mutex.Unlock()
	return nil
}

func noTable(table string) string {
	return fmt.Sprintf("add table bridge %s\ndelete table bridge %s\n", table, table)
}

// nft loads rules as one transaction in a namespace, the host's when it is empty.
func nft(namespace, rules string) error {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	start := command.Start
	if namespace != "" {
		// The child is born in the namespace of the thread that starts it.
		start = func() error { return asNamespace(namespace, command.Start) }
	}
	if err := start(); err != nil {
		return fmt.Errorf("start nft: %w", err)
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("load rules: %w: %s", err, bytes.TrimSpace(output.Bytes()))
	}
	return nil
}

// join lists prefixes for nft, which refuses overlapping ones.
func join(prefixes []netip.Prefix) string {
	sorted := slices.SortedFunc(slices.Values(prefixes), func(a, b netip.Prefix) int {
		return cmp.Or(cmp.Compare(a.Bits(), b.Bits()), a.Addr().Compare(b.Addr()))
	})
	var kept []netip.Prefix
	var texts []string
	for _, prefix := range sorted {
		if !slices.ContainsFunc(kept, prefix.Overlaps) {
			kept = append(kept, prefix)
			texts = append(texts, prefix.Masked().String())
		}
	}
	return strings.Join(texts, ", ")
}
