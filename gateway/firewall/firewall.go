// Package firewall manages the nftables table of a gateway: from outside the cluster's networks it admits only published ports, SSH and replies to the
// node's own connections.
//
// The table is Burano's own, with one chain at the input hook: forwarded packets, and the tables of Calico and kube-proxy, are not affected. Every change
// is one nft transaction.
package firewall

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/burano/burano/gateway/nft"
)

// Table is the name of the table, of family inet.
const Table = "burano-gateway"

// Config has the admitted ranges.
type Config struct {
	Internal []netip.Prefix // the cluster's networks (pods, services, nodes): everything from there is let in
	AllowSSH []netip.Prefix // where SSH comes from; empty: anywhere
	Open     []uint16       // ports of the node itself, which are let in from anywhere, whatever is published
	Command  []string       // reads a ruleset from its standard input; nft -f -
}

// Firewall is the table of this node. Its methods are not for concurrent use.
type Firewall struct {
	config    Config
	published []uint16
	installed bool
}

// New does not change anything yet.
func New(c Config) (*Firewall, error) {
	if len(c.Internal) == 0 {
		return nil, errors.New("firewall: the cluster's networks must be said, else the node would cut itself off from its cluster")
	}
	if len(c.Command) == 0 {
		c.Command = []string{"nft", "-f", "-"}
	}
	c.Internal, c.AllowSSH = slices.Clone(c.Internal), slices.Clone(c.AllowSSH)
	return &Firewall{config: c}, nil
}

// Guard closes a node without a table: after the node has started, nothing is published before the routes are known. An existing table stays, and
// continues to serve.
func (f *Firewall) Guard(ctx context.Context) error {
	if f.run(ctx, fmt.Sprintf("list table inet %s\n", Table)) == nil {
		return nil
	}
	return f.Publish(ctx, nil)
}

// Publish lets in exactly these ports (in any order), from anywhere. The first call makes the whole table anew.
func (f *Firewall) Publish(ctx context.Context, ports []uint16) error {
	ports = slices.Compact(slices.Sorted(slices.Values(ports)))
	if f.installed {
		if slices.Equal(ports, f.published) {
			return nil
		}
		if f.run(ctx, f.update(ports)) == nil {
			f.published = ports
			return nil
		}
		// The table was removed, or the ruleset flushed: make it anew.
	}
	if err := f.run(ctx, f.Ruleset(ports)); err != nil {
		return fmt.Errorf("keep the nftables table %s: %w", Table, err)
	}
	f.installed, f.published = true, ports
	return nil
}

// Refresh makes the table anew should it have been removed. It does nothing before the first Publish.
func (f *Firewall) Refresh(ctx context.Context) error {
	if !f.installed {
		return nil
	}
	f.installed = false
	return f.Publish(ctx, f.published)
}

func (f *Firewall) run(ctx context.Context, ruleset string) error {
	_, err := nft.Run(ctx, f.config.Command, ruleset)
	return err
}

func (f *Firewall) update(ports []uint16) string {
	var b strings.Builder
	fmt.Fprintf(&b, "flush set inet %s published\n", Table)
	if len(ports) > 0 {
		fmt.Fprintf(&b, "add element inet %s published %s\n", Table, nft.Set(ports))
	}
	return b.String()
}

// Ruleset is the whole table. It replaces the one before in the same transaction, so that at no instant there is none.
func (f *Firewall) Ruleset(published []uint16) string {
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s\ndelete table inet %s\ntable inet %s {\n", Table, Table, Table)
	fmt.Fprintf(&b, "\tset published {\n\t\ttype inet_service\n")
	if len(published) > 0 {
		fmt.Fprintf(&b, "\t\telements = %s\n", nft.Set(published))
	}
	b.WriteString("\t}\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n")
	b.WriteString("\t\tct state established,related accept\n\t\tiifname \"lo\" accept\n\t\tmeta l4proto { icmp, ipv6-icmp } accept\n")
	// The answer to a node that requests an address of IPv6 is no reply: the request was a multicast.
	b.WriteString("\t\tip6 saddr fe80::/10 udp sport 547 udp dport 546 accept\n")
	for _, rule := range from(f.config.Internal) {
		fmt.Fprintf(&b, "\t\t%saccept\n", rule)
	}
	if len(f.config.AllowSSH) == 0 {
		b.WriteString("\t\ttcp dport 22 accept\n")
	}
	for _, rule := range from(f.config.AllowSSH) {
		fmt.Fprintf(&b, "\t\t%stcp dport 22 accept\n", rule)
	}
	if len(f.config.Open) > 0 {
		fmt.Fprintf(&b, "\t\ttcp dport %s accept\n", nft.Set(f.config.Open))
	}
	b.WriteString("\t\ttcp dport @published accept\n\t}\n}\n")
	return b.String()
}

// from gives the beginning of a rule for each address family that occurs.
func from(prefixes []netip.Prefix) (rules []string) {
	four, six := nft.Families(prefixes)
	if len(four) > 0 {
		rules = append(rules, "ip saddr "+nft.Set(four)+" ")
	}
	if len(six) > 0 {
		rules = append(rules, "ip6 saddr "+nft.Set(six)+" ")
	}
	return rules
}
