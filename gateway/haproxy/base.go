package haproxy

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
)

// defaultsName is the name of our defaults section; by it a configuration file is recognised as ours.
const defaultsName = "burano"

// portsName is the name of the section with what the frontends of ports have beside that.
const portsName = "burano-ports"

// base is the configuration without any listener. Why its values are what they are:
//
//   - timeout connect 500ms and redispatch on every retry: a pod that died is noticed by the client as half a second at most;
//   - checks every 500 ms, two failures and it is out, one success and it is in again; with many servers they are less often (see checksOf), but for
//     the second one after a failure;
//   - client and server may be silent for an hour: the gateways carry any TCP protocol, database sessions too. Keep-alives find dead peers
//     within a minute;
//   - one listener, and one client, may not have all connections (see share). The rule is in defaults: HAProxy compares each rule that refers to a table
//     with all others that do, which cost it a third of the time to read 5,000 ports;
//   - hard-stop-after: a worker replaced by a reload stays until its last connection ends, for an hour at most, and for mworker-max-reloads
//     further reloads: each costs memory;
//   - expose-fd listeners: the next worker takes the listening sockets over, so that a reload loses no connection;
//   - idle-close-on-response, in frontends for HTTP: a replaced worker answers the next request of a kept connection, and says in the answer that it is
//     the last. Without it, connections that just have no request end with the reload, and a request that is on its way with them;
//   - no strict-limits: HAProxy counts a file for each server that is checked, open or not. Where a machine allows fewer files than that sum, it would
//     refuse every further listener; so it takes what it gets;
//   - log from notice up: servers that come and go, not every connection.
func base(c Config) []byte {
	return fmt.Appendf(nil, `# _version=1
# Written by burano gateway from the routes in etcd. Changes made here by hand do not last.

global
  user %s
  group %s
  log stdout format raw local0 notice
  maxconn %d
  mworker-max-reloads 50
  hard-stop-after 1h
  stats socket %s mode 600 level admin expose-fd listeners
  stats timeout 30s
  no strict-limits

defaults %s
  mode tcp
  log global
  maxconn %d
  balance %s
  option redispatch 1
  option clitcpka
  clitcpka-idle 30s
  clitcpka-intvl 10s
  clitcpka-cnt 3
  option srvtcpka
  srvtcpka-idle 30s
  srvtcpka-intvl 10s
  srvtcpka-cnt 3
  option dontlognull
  retries 3
  timeout connect 500ms
  timeout client 1h
  timeout client-fin 30s
  timeout server 1h
  timeout server-fin 30s
  timeout queue 10s
  default-server%s

defaults %s from %s
  tcp-request connection track-sc0 src table %s
  tcp-request connection reject if { sc0_conn_cur gt %d }
`, c.User, c.Group, c.MaxConnections, c.Socket, defaultsName, share(c.MaxConnections), c.Balance, checksOf(0).words(),
		portsName, defaultsName, sectionClients, share(c.MaxConnections))
}

// mostChecks is how many servers a gateway checks in a second, at most: 1,000 cost about a tenth of a processor.
const mostChecks = 1000

// checkLeast and checkMost are how long after a check of a server the next one comes. Where there are so many servers that it would be longer, none is
// checked: Kubernetes takes the pods of a node that is gone out after 40 seconds by itself, and HAProxy keeps a file descriptor for each check.
const (
	checkLeast = 500 * time.Millisecond
	checkMost  = 16 * time.Second
)

// checks is how often each server is checked. A server that fails is noticed by requests, too: they go to another one.
type checks time.Duration

// checksOf is how often where there are so many servers. Those that run keep to what they came with, until a reload: with each doubling the newcomers are
// checked half as often, so that all together have at most a few times as many checks as after it.
func checksOf(servers int) checks {
	every := checkLeast
	for time.Duration(servers)*time.Second > mostChecks*every && every <= checkMost {
		every *= 2
	}
	return checks(every)
}

// enabled says whether servers are checked at all.
func (c checks) enabled() bool { return time.Duration(c) <= checkMost }

// words are for the servers of a whole configuration.
func (c checks) words() string {
	return fmt.Sprintf(" inter %dms fastinter 500ms fall 2 rise 1", time.Duration(c).Milliseconds())
}

// word is for each of them.
func (c checks) word() string {
	if c.enabled() {
		return " check"
	}
	return ""
}

// ofNew is for one that comes at run time.
func (c checks) ofNew() string {
	if c.enabled() {
		return c.word() + c.words()
	}
	return ""
}

// writeAtomically replaces a file by content in one rename.
func writeAtomically(path string, content []byte, mode fs.FileMode) error {
	return renameio.WriteFile(path, content, mode, renameio.WithTempDir(filepath.Dir(path)))
}
