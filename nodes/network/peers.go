package network

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strings"

	"github.com/burano/burano/nodes/ssh"
)

// Peer is a router with which every node of a cluster whose packets are not wrapped exchanges routes by BGP.
type Peer struct {
	Address netip.Addr // of IPv4
	AS      uint32
}

//go:embed scripts/calico-peers.sh
var calicoPeersScript string

// Configure is part of Driver: the routers outside.
func (c Calico) Configure() (ssh.Script, bool) {
	var lines strings.Builder
	for _, peer := range c.Peers {
		fmt.Fprintf(&lines, "%s %d\n", peer.Address, peer.AS)
	}
	return ssh.Script{Name: "bgp peers", Body: calicoPeersScript, Env: map[string]string{"PEERS": lines.String(), "ENVIRONMENT": daemonEnv}}, c.routed()
}

// Configure is part of Driver: there is nothing.
func (f Flannel) Configure() (ssh.Script, bool) { return ssh.Script{}, false }
