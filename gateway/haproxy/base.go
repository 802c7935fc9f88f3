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

// portsName is the name of the section with additional defaults for the frontends of ports.
const portsName = "burano-ports"

// base is the configuration without any listener. The reasons for its values:
//
//   - timeout connect 500ms and redispatch on every retry: a client notices a dead pod as half a second at most;
//   - checks every 500 ms, two failures and it is out, one success and it is in again; with many servers they are less often (see checksOf), but for
//     the second one after a failure;
//   - client and server may be silent for an hour: the gateways carry any TCP protocol, database sessions too. Keep-alives find dead peers
//     within a minute;
//   - one listener, and one client, may not have all connections (see share). The rule is in defaults: HAProxy compares each rule that refers to a table
//     with all others that do, which cost it a third of the time to read 5,000 ports;
//   - hard-stop-after: a worker replaced by a reload stays until its last connection ends, for an hour at most, and for mworker-max-reloads
//     further reloads: each costs memory;
//   - expose-fd listeners: the next worker takes the listening sockets over, so that a reload loses no connection;
//   - idle-close-on-response, in frontends for HTTP: a replaced worker answers the next request of a persistent connection, and marks the answer as
//     the last. Without it, idle connections end with the reload, and a request that is in flight with them;
//   - no strict-limits: HAProxy counts a file for each checked server, open or not. Where a machine allows fewer files than that sum, it would
//     refuse every further listener; so it takes all that it gets;
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

// checkLeast and checkMost limit the pause between two checks of a server. With so many servers that it would be longer, none is checked: Kubernetes
// removes the pods of a lost node after 40 seconds by itself, and HAProxy holds a file descriptor for each check.
const (
	checkLeast = 500 * time.Millisecond
	checkMost  = 16 * time.Second
)

// checks is how often each server is checked. A server that fails is noticed by requests, too: they go to another one.
type checks time.Duration

// checksOf returns the interval for a number of servers. Running servers keep theirs until a reload. With each doubling the new ones are checked half as
// often, so that all together have at most a few times as many checks as after it.
func checksOf(servers int) checks {
	every := checkLeast
	for time.Duration(servers)*time.Second > mostChecks*every && every <= checkMost {
		every *= 2
	}
	return checks(every)
}

// enabled reports whether servers are checked at all.
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
