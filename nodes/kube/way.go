package kube

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/burano/burano/nodes/pki"
	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// Minions without a route to the outside reach registries through masters. Each master runs a proxy for clients that show a certificate. Programs of a
// minion ask its forwarder, which has that certificate, and which takes another master where one does not answer.
const (
	// WayUnit is the unit of a master's proxy.
	WayUnit = "registries-way"
	// WayPort is where it listens, on the master's address.
	WayPort = 6444

	wayPair       = "registries-way"        // of its server
	wayClientPair = "registries-way-client" // of minions
	wayUser       = "burano:registries-way"
	wayURL        = "http://127.0.0.1:6444"
	wayClientFile = keys + "registries-way.pem"
)

func wayName(cluster string) string { return "registries." + clusterDomain(cluster) }

// WayOrders are the certificates of a master's proxy.
func (c Cluster) WayOrders() map[string]pki.Order {
	return map[string]pki.Order{wayPair: {Authority: c.Authorities.Kubernetes, Request: pki.Request{CommonName: wayName(c.Name), DNS: []string{wayName(c.Name)}, Usage: pki.Server}}}
}

// Way is the unit of a master's proxy, which is a part of Burano's program. path and digest are the program's.
func (c Cluster) Way(node Node, pairs map[string]pki.Pair, program, digest string) systemd.Unit {
	hosts := append(append([]string(nil), c.Proxy.masters...), c.Registries.hosts()...)
	files := append(pairFiles(wayPair, pairs[wayPair]), c.authorityFile())
	return systemd.Unit{
		Name:        WayUnit,
		Description: "Burano: minions reach registries through this master",
		Command: []string{program, "forward", "--listen", netip.AddrPortFrom(node.Address, WayPort).String(), "--cert", keys + wayPair + ".crt", "--key", keys + wayPair + ".key",
			"--client-ca", TrustedFile, "--client", wayUser, "--hosts", strings.Join(hosts, ",")},
		Files:  files,
		Binary: digest,
	}
}

// wayListen is the part of a minion's forwarder that leads to the masters' proxies.
func (c Cluster) wayListen(masters []Node) string {
	var text strings.Builder
	fmt.Fprintf(&text, `
listen registries
  bind 127.0.0.1:%d
  mode tcp
  log global
  balance roundrobin
  option redispatch 1
  option clitcpka
  option srvtcpka
  option dontlognull
  retries 3
  timeout connect 5s
  timeout client 1h
  timeout client-fin 30s
  timeout server 1h
  timeout server-fin 30s
  default-server check inter 2s fall 2 rise 1 ssl verify required ca-file %s crt %s verifyhost %s
`, WayPort, TrustedFile, wayClientFile, wayName(c.Name))
	for _, master := range masters {
		fmt.Fprintf(&text, "  server %s %s\n", master.Name, netip.AddrPortFrom(master.Address, WayPort))
	}
	return text.String()
}

// MinionForwarder is Forwarder of a minion. It also leads to the masters' proxies where they are the route to registries.
func (c Cluster) MinionForwarder(masters []Node, pairs map[string]pki.Pair) systemd.Unit {
	unit := Forwarder(masters, nil)
	if !c.Proxy.ThroughMasters() {
		return unit
	}
	unit.Files[0].Content = append(unit.Files[0].Content, c.wayListen(masters)...)
	pair := pairs[wayClientPair]
	unit.Files = append(unit.Files, c.authorityFile(), ssh.File{Path: wayClientFile, Content: append(append([]byte(nil), pair.Certificate...), pair.Key...), Mode: 0o600})
	return unit
}
