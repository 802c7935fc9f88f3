package fabric

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
)

// Guard is what the bridge lets through between a port and the rest of its network.
//
// It is kept where the bridge is, which the privileged server behind the port cannot reach. What a port was let to send is
// answered, and what was let in goes on, whatever the rules become: they decide on new connections only.
type Guard struct {
	PortID  string
	Allowed []Source // as whom the server may speak; everything else it sends is dropped
	Ingress []Match  // what may come in; nothing when empty
	Egress  []Match
}

// Source is a MAC address with the IP addresses that may be used with it.
type Source struct {
	MAC       string
	Addresses []netip.Prefix
}

// Match matches IPv4 packets that begin something.
type Match struct {
	Protocol uint8          // 0 for all
	Ports    [2]uint16      // first and last destination port; zeros for all
	ICMP     []uint8        // type, or type and code
	Remote   []netip.Prefix // where it comes from or goes to; anywhere when empty
}

// memory are the tables of what is going on, by the port's index and the port's own side first, so that both directions of a
// connection have one key. They stay when the rules change.
//
// The kernel's own connection tracking is not used: for bridges it is an option that many kernels were built without.
const memory = `	set connections {
		typeof meta iif . ip saddr . ip daddr . tcp sport . tcp dport
		size 262144
		flags dynamic,timeout
	}
	set closing {
		typeof meta iif . ip saddr . ip daddr . tcp sport . tcp dport
		size 262144
		flags dynamic,timeout
	}
	set datagrams {
		typeof meta iif . ip saddr . ip daddr . udp sport . udp dport
		size 262144
		flags dynamic,timeout
	}
	set echoes {
		typeof meta iif . ip saddr . ip daddr . icmp id
		size 65536
		flags dynamic,timeout
	}
	set others {
		typeof meta iif . ip saddr . ip daddr . ip protocol
		size 65536
		flags dynamic,timeout
	}
	set fragments {
		typeof meta iif . ip saddr . ip daddr . ip protocol . ip id
		size 65536
		flags dynamic,timeout
	}
`

// known lets pass what belongs to something that was let pass before. A SYN always begins something new. What quotes a packet in an
// ICMP error cannot be looked up, so those errors pass.
const known = `		ether type arp return
		ether type != ip drop
		ip frag-off & 0x1fff != 0 FRAGMENT @fragments return
		ip frag-off & 0x1fff != 0 drop
		tcp flags & (fin | rst) != 0 TCP @connections update @closing { TCP timeout 2m } delete @connections { TCP }
		tcp flags & (syn | ack) != syn TCP @connections update @connections { TCP timeout 5d } goto CHAIN-passed
		tcp flags & (syn | ack) != syn TCP @closing update @closing { TCP timeout 2m } goto CHAIN-passed
		UDP @datagrams update @datagrams { UDP timeout 3m } goto CHAIN-passed
		icmp type echo-reply ECHO @echoes goto CHAIN-passed
		icmp type { destination-unreachable, time-exceeded, parameter-problem } return
		ip protocol != { icmp, tcp, udp } OTHER @others update @others { OTHER timeout 10m } goto CHAIN-passed
`

// begun remembers what a rule let pass. A TCP connection that is not answered is forgotten soon.
const begun = `		tcp flags & (syn | ack) != 0 update @connections { TCP timeout 2m } delete @closing { TCP }
		ip protocol udp update @datagrams { UDP timeout 3m }
		icmp type echo-request update @echoes { ECHO timeout 30s }
		ip protocol != { icmp, tcp, udp } update @others { OTHER timeout 10m }
		goto CHAIN-passed
`

// passed remembers that the rest of a fragmented packet may follow its first part.
const passed = `		ip frag-off & 0x2000 != 0 update @fragments { FRAGMENT timeout 30s }
`

// direction is the view of a packet from a port: sent by the server behind it, or received.
type direction struct {
	chain, remote, name string // name matches the port's interface
	fill                *strings.Replacer
}

func newDirection(chain, name, index, local, remote, localPort, remotePort string) direction {
	key := index + " . ip " + local + " . ip " + remote
	return direction{chain: chain, name: name, remote: "ip " + remote, fill: strings.NewReplacer(
		"CHAIN", chain,
		"TCP", key+" . tcp "+localPort+" . tcp "+remotePort,
		"UDP", key+" . udp "+localPort+" . udp "+remotePort,
		"ECHO", key+" . icmp id",
		"OTHER", key+" . ip protocol",
		"FRAGMENT", key+" . ip protocol . ip id",
	)}
}

func (d direction) write(b *strings.Builder, ports []string, rules func(i int) []Match) {
	fmt.Fprintf(b, "\tchain %s-passed {\n%s\t}\n", d.chain, d.fill.Replace(passed))
	fmt.Fprintf(b, "\tchain %s-begun {\n%s\t}\n", d.chain, d.fill.Replace(begun))
	fmt.Fprintf(b, "\tchain %s {\n%s", d.chain, d.fill.Replace(known))
	for i, port := range ports {
		fmt.Fprintf(b, "\t\t%s %q goto {\n", d.name, port)
		for _, match := range rules(i) {
			fmt.Fprintf(b, "\t\t\t%sgoto %s-begun\n", match.text(d.remote), d.chain)
		}
		b.WriteString("\t\t\tdrop\n\t\t}\n")
	}
	b.WriteString("\t}\n")
}

func (m Match) text(remote string) string {
	var b strings.Builder
	if len(m.Remote) > 0 {
		fmt.Fprintf(&b, "%s { %s } ", remote, join(m.Remote))
	}
	switch {
	case len(m.ICMP) > 0:
		fmt.Fprintf(&b, "icmp type %d ", m.ICMP[0])
		if len(m.ICMP) > 1 {
			fmt.Fprintf(&b, "icmp code %d ", m.ICMP[1])
		}
	case m.Protocol != 0:
		fmt.Fprintf(&b, "ip protocol %d ", m.Protocol)
	}
	if m.Ports[0] != 0 {
		fmt.Fprintf(&b, "th dport %d-%d ", m.Ports[0], m.Ports[1])
	}
	return b.String()
}

// guardRules is the whole firewall of a network's bridge; loaded in one go, it takes the place of the one before without a gap
// and without forgetting what goes on.
func guardRules(table string, name func(portID string) string, guards []Guard) string {
	guards = slices.SortedFunc(slices.Values(guards), func(a, b Guard) int { return cmp.Compare(a.PortID, b.PortID) })
	ports := make([]string, len(guards))
	quoted := make([]string, len(guards))
	for i, guard := range guards {
		ports[i] = name(guard.PortID)
		quoted[i] = fmt.Sprintf("%q", ports[i])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "add table bridge %s\nflush table bridge %s\ntable bridge %s {\n%s", table, table, table, memory)
	sent := newDirection("sent", "iifname", "meta iif", "saddr", "daddr", "sport", "dport")
	received := newDirection("received", "oifname", "meta oif", "daddr", "saddr", "dport", "sport")
	sent.write(&b, ports, func(i int) []Match { return guards[i].Egress })
	received.write(&b, ports, func(i int) []Match { return guards[i].Ingress })
	// Before the bridge learns where a MAC address is.
	b.WriteString("\tchain speaker {\n\t\ttype filter hook prerouting priority filter; policy accept;\n")
	for i, guard := range guards {
		fmt.Fprintf(&b, "\t\tiifname %q jump {\n", ports[i])
		for _, source := range guard.Allowed {
			nobody := netip.PrefixFrom(netip.IPv4Unspecified(), 32) // who asks whether an address is free (RFC 5227) speaks as nobody
			fmt.Fprintf(&b, "\t\t\tether saddr %s arp saddr ether %s arp saddr ip { %s } return\n", source.MAC, source.MAC, join(append([]netip.Prefix{nobody}, source.Addresses...)))
			if len(source.Addresses) > 0 {
				fmt.Fprintf(&b, "\t\t\tether saddr %s ip saddr { %s } return\n", source.MAC, join(source.Addresses))
			}
		}
		b.WriteString("\t\t\tdrop\n\t\t}\n")
	}
	b.WriteString("\t}\n")
	// The host itself is a neighbour on the external network's bridge only: what it sends and gets is not forwarded.
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

// join lists prefixes for nft, which refuses those that overlap.
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
