package e2e

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/stretchr/testify/require"
)

// TestNodesWithoutFloatingAddressAreReachedByAJump deploys a cluster of which only the gateway has a floating address, and whose network cannot
// be reached from here: everything goes through the one SSH connection to the gateway. Then a direct route is opened, and closed again.
func TestNodesWithoutFloatingAddressAreReachedByAJump(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	// No other test on this machine uses the range, for the route below. Keepers, which open connections of their own, are
	// switched off.
	l.relaunch(t, "--networks", "10.77.0.0/16", "--keeper-interval", "0s")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	s := &scaling{lab: l, user: demo}
	l.deleteIfFailed(t, "scaling")
	text, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.Contains(line, "name: murano-kube-") {
			lines[i] = strings.Replace(line, "assignFloatingIp: true", "assignFloatingIp: false", 1)
		}
	}
	file := filepath.Join(t.TempDir(), "jump.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600))

	output := l.run(t, l.as("burano-demo"), "burano", "deploy", file)
	t.Logf("%s", output)
	s.environment = environmentNamed(t, demo, "scaling")["id"].(string)
	log, most := s.watched(t, lastDeployment(t, demo, "scaling"))
	for _, name := range []string{"murano-kube-1", "murano-kube-2"} {
		require.Contains(t, log, name+": reached through murano-gateway-1")
		require.Empty(t, banner(s.address(t, name, "fixed")), "%s cannot be reached from here", name)
	}
	require.Equal(t, 1, most, "all goes through one TCP connection")
	logins := map[string]int{"murano-gateway-1": 1, "murano-kube-1": 1, "murano-kube-2": 1}
	require.Equal(t, logins, s.logins(t), "each node was logged in to once")
	_, err = get("http://" + endpointOf(t, environmentNamed(t, demo, "scaling")) + "/")
	require.NoError(t, err)

	log, most = s.watched(t, s.begin(t, "scaling-cluster", "scaleNodesUp", map[string]any{}))
	require.Contains(t, log, "murano-kube-3: reached through murano-gateway-1")
	require.Equal(t, 1, most)
	require.Equal(t, map[string]int{"murano-gateway-1": 2, "murano-kube-1": 2, "murano-kube-2": 2, "murano-kube-3": 1}, s.logins(t))
	log, most = s.watched(t, s.begin(t, "web", "restartContainers", map[string]any{}))
	require.Contains(t, log, "reached through murano-gateway-1")
	require.Equal(t, 1, most)

	// A Burano inside of the cloud may reach the network itself.
	fixed := netip.PrefixFrom(netip.MustParseAddr(s.address(t, "murano-kube-1", "fixed")), 24).Masked().String()
	route := []string{"route", "add", fixed, "via", s.router(t)}
	output2, err := exec.Command("ip", route...).CombinedOutput()
	require.NoError(t, err, string(output2))
	closeDirectWay := func() {
		_ = exec.Command("ip", "route", "del", fixed).Run()
	}
	t.Cleanup(closeDirectWay)
	before := s.logins(t)
	require.Equal(t, "SSH-", banner(s.address(t, "murano-kube-1", "fixed")))
	log, _ = s.watched(t, s.beginDeploy(t))
	require.NotContains(t, log, "reached through")
	require.Equal(t, before["murano-kube-2"]+1, s.logins(t)["murano-kube-2"])
	closeDirectWay()
	log, most = s.watched(t, s.beginDeploy(t))
	require.Contains(t, log, "murano-kube-2: reached through murano-gateway-1")
	require.Equal(t, 1, most)

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// banner returns the first bytes of an sshd, or "". An accepted connection is not enough: a proxy may accept any.
func banner(address string) string {
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, "22"), time.Second)
	if err != nil {
		return ""
	}
	defer conn.Close()
	text := make([]byte, 4)
	if err := conn.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return ""
	}
	if _, err := io.ReadFull(conn, text); err != nil {
		return ""
	}
	return string(text)
}

// watched waits for the success of a deployment or action; it returns its log and the largest number of simultaneous TCP connections
// to the gateway's sshd.
func (s *scaling) watched(t *testing.T, task string) (log string, most int) {
	t.Helper()
	s.running(t, "murano-gateway-1")
	gateway := s.address(t, "murano-gateway-1", "floating")
	stop, done := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				done <- most
				return
			case <-tick.C:
			}
			output, _ := exec.Command("ss", "-Htn", "state", "established", "dst", gateway+":22").Output()
			most = max(most, strings.Count(string(output), "\n"))
		}
	}()
	lines := s.end(t, task)
	close(stop)
	most = <-done
	healed(t, lines)
	return strings.Join(lines["info"], "\n"), most
}

// address returns a server's address of this type, fixed or floating.
func (s *scaling) address(t *testing.T, name, kind string) string {
	t.Helper()
	s.find(t)
	server, err := servers.Get(t.Context(), s.user.nova(t), s.cluster.servers[name]).Extract()
	require.NoError(t, err)
	for _, network := range server.Addresses {
		for _, one := range network.([]any) {
			if address := one.(map[string]any); address["OS-EXT-IPS:type"] == kind {
				return address["addr"].(string)
			}
		}
	}
	require.FailNow(t, "no such address", "%s has no %s address: %v", name, kind, server.Addresses)
	return ""
}

// router returns the outer address of the environment's router.
func (s *scaling) router(t *testing.T) string {
	t.Helper()
	pages, err := routers.List(s.user.neutron(t), routers.ListOpts{Name: "scaling-network-router"}).AllPages(t.Context())
	require.NoError(t, err)
	all, err := routers.ExtractRouters(pages)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotEmpty(t, all[0].GatewayInfo.ExternalFixedIPs)
	return all[0].GatewayInfo.ExternalFixedIPs[0].IPAddress
}

// logins counts the logins to each server.
func (s *scaling) logins(t *testing.T) map[string]int {
	t.Helper()
	s.find(t)
	counts := map[string]int{}
	for name := range s.cluster.servers {
		text := s.in(t, name, "journalctl -u ssh --no-pager -o cat | grep -c 'Accepted publickey' || true")
		count, err := strconv.Atoi(strings.TrimSpace(text))
		require.NoError(t, err, fmt.Sprintf("%s: %s", name, text))
		counts[name] = count
	}
	return counts
}
