package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAFreshClusterIsUp deploys clusters from nothing, and tests each at the very moment when its deployment has ended: every gateway, the
// cluster's DNS and the API server's address on every minion. No request is repeated. A soak deploys fifty, of two sizes.
func TestAFreshClusterIsUp(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	type size struct{ minions, gateways int }
	count, sizes := 4, []size{{1, 1}}
	if soaking() {
		count, sizes = 50, []size{{1, 1}, {6, 3}}
	}
	for i := range count {
		one := sizes[i%len(sizes)]
		t.Run(fmt.Sprintf("%d with %d minions and %d gateways", i+1, one.minions, one.gateways), func(t *testing.T) {
			freshClusterIsUp(t, l, demo, one.minions, one.gateways)
		})
	}
}

func freshClusterIsUp(t *testing.T, l *lab, u *user, minions, gateways int) {
	const name = "fresh"
	file := filepath.Join(t.TempDir(), name+".yaml")
	require.NoError(t, os.WriteFile(file, []byte(freshEnvironment(name, minions, gateways)), 0o600))
	l.deleteIfFailed(t, name)
	began := time.Now()
	output := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	took := time.Since(began)

	environment := environmentNamed(t, u, name)
	asked, gateway := map[string]bool{}, ""
	for _, service := range environment["services"].([]any) {
		endpoints, _ := service.(map[string]any)["applicationEndpoints"].([]any)
		for _, one := range endpoints {
			endpoint := one.(map[string]any)
			if address := fmt.Sprintf("%v:%v", endpoint["address"], endpoint["port"]); endpoint["scope"] == "public" && !asked[address] {
				asked[address], gateway = true, endpoint["address"].(string)
				_, err := get("http://" + address)
				require.NoErrorf(t, err, "through gateway %s, which has just come up:\n%s", address, output)
			}
		}
	}
	require.Len(t, asked, gateways)
	require.Contains(t, output, "Deployment finished")
	require.NotContains(t, output, "does not answer yet")

	c := l.clusterOf(t, u, environment)
	for server := range c.servers {
		if strings.HasPrefix(server, "fresh-minion") {
			answersInside(t, c, server)
		}
	}
	podsOfAllNodesRun(t, l, c, minions, gateway)
	t.Logf("up after %.1f s", took.Seconds())
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", name), "is deleted")
}

// freshEnvironment is a file for burano deploy.
func freshEnvironment(name string, minions, gateways int) string {
	node := func(class, server string) string {
		return fmt.Sprintf("      - ?: {type: com.mirantis.docker.kubernetes.Kubernetes%sNode}\n        instance: {?: {type: io.murano.resources.LinuxMuranoInstance}, "+
			"name: %s, flavor: m1.medium, image: burano-node, assignFloatingIp: true}\n", class, server)
	}
	var list, doors strings.Builder
	for i := range minions {
		list.WriteString(node("Minion", fmt.Sprintf("fresh-minion-%d", i+1)))
	}
	for i := range gateways {
		doors.WriteString(node("Gateway", fmt.Sprintf("fresh-gateway-%d", i+1)))
	}
	return fmt.Sprintf(`name: %s
applications:
  - ?: {type: com.mirantis.docker.kubernetes.KubernetesCluster, id: cluster}
    name: fresh-cluster
    masterNode:
      ?: {type: com.mirantis.docker.kubernetes.KubernetesMasterNode}
      instance: {?: {type: io.murano.resources.LinuxMuranoInstance}, name: fresh-master, flavor: m1.medium, image: burano-node, assignFloatingIp: true}
    nodeCount: %d
    minionNodes:
%s    gatewayCount: %d
    gatewayNodes:
%s  - ?: {type: com.mirantis.docker.kubernetes.KubernetesPod, id: pod}
    name: front
    kubernetesCluster: cluster
    replicas: 2
  - ?: {type: io.burano.demo.Hello}
    name: hello
    host: pod
`, name, minions, list.String(), gateways, doors.String())
}

// answersInside repeats on a minion, once, two requests of its pods: to the address of the API server, and for a name.
func answersInside(t *testing.T, c *cluster, minion string) {
	t.Helper()
	question := `\x00\x36\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01`
	output, err := c.on(minion, "timeout", "5", "bash", "-euc", `
exec 4<>/dev/tcp/10.96.0.1/443
exec 3<>/dev/tcp/10.96.0.10/53
printf '`+question+`' >&3
head -c 10 <&3 | od -An -tx1`)
	require.NoErrorf(t, err, "on %s: %s", minion, output)
	answer := strings.Fields(output)
	require.Lenf(t, answer, 10, "on %s: %s", minion, output)
	require.Equalf(t, "0", answer[5][1:], "the code of the answer to %s, which is %s", minion, output)
	require.Equalf(t, "01", answer[9], "the number of addresses in the answer to %s, which is %s", minion, output)
}

// podsOfAllNodesRun runs a pod on each minion, whose ConfigMap is made a moment after it, and sends requests to them through
// a gateway.
func podsOfAllNodesRun(t *testing.T, l *lab, c *cluster, minions int, gateway string) {
	t.Helper()
	c.kubectl(t, `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: everywhere}
spec:
  selector: {matchLabels: {app: everywhere}}
  template:
    metadata: {labels: {app: everywhere}}
    spec:
      containers:
      - {name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent, volumeMounts: [{name: late, mountPath: /late}]}
      volumes: [{name: late, configMap: {name: late}}]
---
apiVersion: v1
kind: Service
metadata: {name: everywhere}
spec: {type: LoadBalancer, selector: {app: everywhere}, ports: [{port: 8124, targetPort: 8080}]}
`, "apply", "-f", "-")
	l.eventually(t, 30*time.Second, "each minion has its pod", func() error {
		if found := strings.Fields(c.kubectl(t, "", "get", "pods", "-l", "app=everywhere", "-o", "jsonpath={.items[*].spec.nodeName}")); len(found) != minions {
			return fmt.Errorf("pods are on %v", found)
		}
		return nil
	})
	c.kubectl(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: late}, data: {a: b}}", "apply", "-f", "-")
	began := time.Now()
	l.eventually(t, time.Minute, "each of these pods is ready", func() error {
		if ready := c.kubectl(t, "", "get", "daemonset", "everywhere", "-o", "jsonpath={.status.numberReady}"); ready != fmt.Sprint(minions) {
			return fmt.Errorf("%s are", ready)
		}
		return nil
	})
	t.Logf("pods were ready %.1f s after their ConfigMap", time.Since(began).Seconds())
	l.eventually(t, 10*time.Second, "they answer", func() error {
		_, err := get("http://" + gateway + ":8124")
		return err
	})
}
