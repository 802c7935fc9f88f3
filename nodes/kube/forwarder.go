package kube

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/burano/burano/nodes/ssh"
	"github.com/burano/burano/nodes/systemd"
)

// ForwarderUnit is the unit through which a node reaches the Kubernetes API. Masters have none: each asks its own API server.
const ForwarderUnit = "api-forwarder"

// ForwarderAddress is where it listens on each node.
const ForwarderAddress = "127.0.0.1"

// Listen is an address of a node at which users reach the API through it. One that is Elsewhere is the node's only at times.
type Listen struct {
	Address   netip.Addr
	Elsewhere bool
}

const forwarderConfig = "/etc/burano/api-forwarder.cfg"

// Forwarder is the unit that passes a node's connections on to the API servers of masters. TLS passes through it, so certificates and rights are the
// client's own. open is where it listens for users. Another list of masters is a reload, which ends no connection.
//
// Of several masters, the forwarder asks only the ones with a ready API server. After three failed checks, or three failed connections, a master is out,
// and connections to it end. So a client whose master is suddenly gone learns of it within seconds. A single master is always asked, and all masters are
// asked when none is ready.
//
//   - timeout check 2s and fall 3: while etcd elects a leader no API server is ready, each answers only after 2 s, and connections outlast that;
//   - timeout connect 1s and redispatch on every retry: a master that is just gone costs a connection a second at most;
//   - hard-stop-after 30s: a worker that a reload replaced checks no master any more.
func Forwarder(masters []Node, open []Listen) systemd.Unit {
	binds := "  bind " + ForwarderAddress + fmt.Sprintf(":%d\n", APIServerPort)
	for _, one := range open {
		binds += "  bind " + netip.AddrPortFrom(one.Address, APIServerPort).String()
		if one.Elsewhere {
			binds += " transparent"
		}
		binds += "\n"
	}
	checks := ""
	if len(masters) > 1 {
		checks = `  option httpchk GET /readyz
  option allbackups
  timeout check 2s
  default-server check check-ssl verify none inter 1s fastinter 500ms downinter 500ms fall 3 rise 1 observe layer4 error-limit 3 on-error mark-down on-marked-down shutdown-sessions
`
	}
	var servers strings.Builder
	for _, master := range masters {
		fmt.Fprintf(&servers, "  server %s %s\n", master.Name, netip.AddrPortFrom(master.Address, APIServerPort))
	}
	if len(masters) > 1 {
		for _, master := range masters {
			fmt.Fprintf(&servers, "  server %s.unready %s no-check backup\n", master.Name, netip.AddrPortFrom(master.Address, APIServerPort))
		}
	}
	config := fmt.Sprintf(`# The way of this node to the Kubernetes API. Changes made here by hand do not last.

global
  user haproxy
  group haproxy
  log stdout format raw local0 notice
  maxconn 2000
  nbthread 1
  hard-stop-after 30s

listen api
%s  mode tcp
  log global
  balance roundrobin
  option redispatch 1
  option clitcpka
  option srvtcpka
  option dontlognull
  retries 3
  timeout connect 1s
  timeout client 1h
  timeout client-fin 30s
  timeout server 1h
  timeout server-fin 30s
  timeout queue 10s
%s%s`, binds, checks, servers.String())
	return systemd.Unit{
		Name:        ForwarderUnit,
		Description: "forwarder to the Kubernetes API",
		Command:     []string{"/usr/sbin/haproxy", "-Ws", "-f", forwarderConfig},
		Service:     []string{"Type=notify", "ExecReload=/usr/sbin/haproxy -c -q -f " + forwarderConfig, "ExecReload=/bin/kill -USR2 $MAINPID", "KillMode=mixed", "SuccessExitStatus=143"},
		Files:       []ssh.File{{Path: forwarderConfig, Content: []byte(config)}},
		Reloads:     true,
	}
}
