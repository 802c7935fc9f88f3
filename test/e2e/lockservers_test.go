package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLockedMastersAndGatewaysServeNothing locks masters and gateways of a cluster, while ConfigMaps are written and the
// application is used. The last of each is refused. Locked nodes stay so through a deployment and a replacement, and serve again when they are unlocked.
func TestLockedMastersAndGatewaysServeNothing(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "masters")
	text, err := os.ReadFile("testdata/masters.yaml")
	require.NoError(t, err)
	gateway := `      - "?": {type: com.mirantis.docker.kubernetes.KubernetesGatewayNode}
        instance: {"?": {type: io.murano.resources.LinuxMuranoInstance}, name: murano-gateway-2, flavor: m1.medium, image: burano-node, assignFloatingIp: true}

`
	model := strings.Replace(string(text), "    gatewayCount: 1\n", `    masterCount: 3
    gatewayCount: 2
`, 1)
	model = strings.Replace(model, "\n\n  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod", "\n"+gateway+"  - \"?\": {type: com.mirantis.docker.kubernetes.KubernetesPod", 1)
	file := filepath.Join(t.TempDir(), "masters.yaml")
	require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
	deploy := func() { l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow") }
	deploy()
	environment := environmentNamed(t, demo, "masters")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	masters, gateways := []string{"murano-kube-1", "murano-kube-1-m2", "murano-kube-1-m3"}, []string{"murano-gateway-1", "murano-gateway-2"}
	s.further = masters[1:]
	s.holds(t, []string{"murano-kube-2"}, gateways)
	_, port, err := net.SplitHostPort(endpointOf(t, environment))
	require.NoError(t, err)

	node := func(args ...string) {
		t.Helper()
		began := time.Now()
		args = append([]string{"node", args[0], "masters"}, args[1:]...)
		l.run(t, l.as("burano-demo"), "burano", append(args, "--follow")...)
		t.Logf("%v: %.1f s", args, time.Since(began).Seconds())
	}
	refused := func(name, reason string) {
		t.Helper()
		result, _ := s.call(t, "scaling-cluster", "setNode", map[string]any{"node": name, "locked": true})
		require.Equal(t, true, result["isException"])
		require.Contains(t, fmt.Sprint(result["result"]), reason)
	}
	// state is that of a unit, and whether it starts with the node.
	state := func(name, unit string) string {
		t.Helper()
		return strings.Join(strings.Fields(s.in(t, name, "systemctl is-active "+unit+" || true; systemctl is-enabled "+unit+" || true")), " ")
	}

	other, locked := gateways[0], gateways[1]
	s.cluster.kubectl(t, "", "create", "service", "loadbalancer", "balanced", "--tcp=8200:80")
	addresses := func(want ...string) {
		t.Helper()
		l.eventually(t, 20*time.Second, "the Service has the addresses of the gateways that serve", func() error {
			has := strings.Fields(s.cluster.kubectl(t, "", "get", "service", "balanced", "-o", "jsonpath={.status.loadBalancer.ingress[*].ip}"))
			slices.Sort(has)
			slices.Sort(want)
			if !slices.Equal(has, want) {
				return fmt.Errorf("it has %v, and not %v", has, want)
			}
			return nil
		})
	}
	floating := s.floating(t, gateways...)
	addresses(floating[other], floating[locked])
	untouched := startLoadOf(t, net.JoinHostPort(floating[other], port), loadRate/2)
	node("lock", locked)
	untouched.end()
	t.Logf("through the other gateway: %s", untouched)
	s.cluster.noneFailed(t, untouched.failed)
	for _, unit := range []string{"haproxy", "burano-gateway"} {
		require.Equal(t, "inactive disabled", state(locked, unit), unit)
	}
	addresses(floating[other])
	refused(other, "it is the only gateway")
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "node", "list", "masters"), "locked")

	w := s.write(t)
	w.more(t, 20)
	node("lock", masters[0]) // the one that all actions go through
	w.more(t, 20)
	require.Equal(t, "inactive disabled", state(masters[0], "kube-apiserver"))
	require.Equal(t, "active enabled", state(masters[0], "etcd"))
	s.cluster.kubectl(t, "", "get", "nodes")
	node("lock", masters[1])
	w.more(t, 20)
	refused(masters[2], "no other master is in service")
	deploy()
	require.Equal(t, "inactive disabled", state(masters[0], "kube-apiserver"), "a deployment leaves it locked")
	require.Equal(t, "inactive disabled", state(locked, "haproxy"))
	node("unlock", masters[0])
	node("unlock", masters[1])
	require.NoError(t, s.allMembersAnswer())
	w.more(t, 20)
	w.end()
	t.Logf("%d ConfigMaps were written, %d of them in a second try, the slowest within %s", len(w.acknowledged), w.again, w.slowest.Round(time.Millisecond))
	require.Empty(t, w.failed)

	node("replace", locked)
	gateways = []string{locked + "-r2", other}
	s.holds(t, []string{"murano-kube-2"}, gateways)
	require.Equal(t, "inactive disabled", state(gateways[0], "burano-gateway"), "another server of the node is locked, too")
	node("unlock", gateways[0])
	require.Equal(t, "active enabled", state(gateways[0], "haproxy"))
	addresses(floating[other], floating[locked]) // the floating address moved to the new server
	s.holds(t, []string{"murano-kube-2"}, gateways)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "masters")
	asBefore(t, demo, found)
}
