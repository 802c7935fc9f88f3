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

// addressed are lines of a cluster whose pods and Services have unusual addresses and names.
const addressed = `
    podRange: 172.20.0.0/18
    serviceRange: 172.21.4.0/22
    clusterDomain: k8s.example.org
    podMtu: 1300
    podEncapsulation: crossSubnet
`

// onNode is a pod on a node that tolerates all its taints.
const onNode = `
apiVersion: v1
kind: Pod
metadata: {name: on-%[1]s, labels: {app: placed}}
spec:
  nodeName: %[1]s
  containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
---
`

// inPod runs a command on a node in the network of a pod, with the pod's resolver.
func (c *cluster) inPod(node, command string) (string, error) {
	out, err := c.on(node, "/bin/bash", "-c", `set -e; pid=$(pidof -s demo); cat "/proc/$pid/root/etc/resolv.conf" >/run/names-of-pod
exec nsenter --net --target "$pid" unshare --mount bash -c 'mount --bind /run/names-of-pod /etc/resolv.conf && `+command+`'`)
	return strings.TrimSpace(out), err
}

// podsAreAddressed checks from pods on two nodes that the pods, Services, names and packets follow the lines of addressed.
func podsAreAddressed(t *testing.T, l *lab, c *cluster, nodes ...string) {
	manifests := "apiVersion: v1\nkind: Service\nmetadata: {name: placed}\nspec: {selector: {app: placed}, ports: [{port: 80, targetPort: 8080}]}\n---\n"
	for _, node := range nodes {
		manifests += fmt.Sprintf(onNode, node)
	}
	c.kubectl(t, manifests, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod", "-l", "app=placed", "--timeout=60s")
	require.Regexp(t, `^172\.21\.[4-7]\.`, c.kubectl(t, "", "get", "service", "placed", "-o", "jsonpath={.spec.clusterIP}"))
	require.Equal(t, "172.21.4.1", c.kubectl(t, "", "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}"))
	for i, node := range nodes {
		other := nodes[(i+1)%len(nodes)]
		address := c.kubectl(t, "", "get", "pod", "on-"+other, "-o", "jsonpath={.status.podIP}")
		require.Regexp(t, `^172\.20\.([0-9]|[1-5][0-9]|6[0-3])\.`, address)
		inPod := func(command string) (string, error) { return c.inPod(node, command) }
		out, err := inPod("ip link show eth0")
		require.NoError(t, err, out)
		require.Contains(t, out, " mtu 1300 ")
		out, err = inPod("curl --silent --show-error --max-time 5 http://" + address + ":8080/")
		require.NoError(t, err, out)
		require.Contains(t, out, "on-"+other, "a pod of the other node")
		l.eventually(t, 60*time.Second, "a Service answers by its name in the cluster's domain", func() error {
			for _, name := range []string{"placed", "placed.default.svc.k8s.example.org"} {
				if out, err := inPod("curl --silent --show-error --max-time 5 http://" + name + "/"); err != nil || !strings.Contains(out, "Hello from on-") {
					return fmt.Errorf("%s says %q: %v", name, out, err)
				}
			}
			return nil
		})
		ways, err := c.on(node, "ip", "route", "show", "proto", "80")
		require.NoError(t, err, ways)
		require.NotContains(t, ways, "vxlan", "all nodes stand in one subnet: no packet is wrapped")
		require.Regexp(t, `172\.20\.\S+ via \S+ dev \S+`, ways)
	}
	c.kubectl(t, "", "delete", "service/placed", "pod/on-"+nodes[0], "pod/on-"+nodes[1], "--now")
}

// staysAddressed asks for other addresses of a cluster with the lines of addressed, which preview and deployment refuse.
func staysAddressed(t *testing.T, l *lab, model string) {
	file := filepath.Join(t.TempDir(), "other.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer("172.21.4.0/22", "172.21.8.0/22", "k8s.example.org", "cluster.local").Replace(model)), 0o600))
	for _, flag := range []string{"--dry-run", "--follow"} {
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, flag)
		require.Error(t, err, output)
		require.Contains(t, output, "serviceRange cannot be changed: cluster scaling-cluster was made with 172.21.4.0/22, and its Services have their addresses from it")
		require.Contains(t, output, "clusterDomain cannot be changed: cluster scaling-cluster was made with k8s.example.org")
	}
}

// routed demands that each node exchanges routes with all others by BGP, and reaches the pods of the other minions by plain routes.
func routed(t *testing.T, l *lab, c *cluster, minions []string, others ...string) {
	t.Helper()
	all := append(minions, others...)
	for _, node := range all {
		l.eventually(t, 60*time.Second, node+" has routes from all others", func() error {
			sessions, err := c.on(node, "birdc", "-s", "/run/calico/bird.ctl", "show", "protocols")
			if err != nil {
				return fmt.Errorf("%w: %s", err, sessions)
			}
			found, up := 0, 0
			for line := range strings.Lines(sessions) {
				if strings.HasPrefix(line, "Mesh_") {
					found++
					up += strings.Count(line, "Established")
				}
			}
			if found != len(all)-1 || up != found {
				return fmt.Errorf("%d of %d nodes: %s", up, len(all)-1, sessions)
			}
			routes, err := c.on(node, "ip", "-4", "route", "show", "type", "unicast", "proto", "bird")
			if err != nil {
				return fmt.Errorf("%w: %s", err, routes)
			}
			through := map[string]bool{}
			for line := range strings.Lines(routes) {
				words := strings.Fields(line)
				if len(words) < 5 || !strings.HasPrefix(words[0], "10.244.") || words[1] != "via" || words[4] != "eth0" {
					return fmt.Errorf("a route that is none to pods: %s", routes)
				}
				through[words[2]] = true
			}
			for _, minion := range minions {
				address := c.kubectl(t, "", "get", "node", minion, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
				if minion != node && !through[address] {
					return fmt.Errorf("no route to pods of %s: %s", minion, routes)
				}
			}
			return nil
		})
		links, err := c.on(node, "ip", "-o", "link", "show")
		require.NoError(t, err, links)
		require.NotRegexp(t, `vxlan|tunl0`, links, "nothing is wrapped")
	}
}

// TestPodsAreRoutedByBGP has a cluster whose packets are not encapsulated: pods and gateways reach pods by routes that the nodes announce to each other,
// policies hold, and nodes come and go.
func TestPodsAreRoutedByBGP(t *testing.T) {
	soakOnly(t, "`make soak` runs this: TestAGroupOfMinionsGrowsAndShrinks has packets that are not wrapped, by routes of Calico's own")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	usual, err := os.ReadFile("testdata/scaling.yaml")
	require.NoError(t, err)
	router := startSpeaker(t, 64601)
	peers := "    bgpPeers: [{address: " + outside("1") + ", as: 64601}]\n"
	text := strings.NewReplacer("nodeCount: 1", "nodeCount: 2", "name: scaling-cluster\n", "name: scaling-cluster\n    podEncapsulation: none\n"+peers).Replace(string(usual))
	file := filepath.Join(t.TempDir(), "routed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	where := endpointOf(t, environment)
	bothReplicasAnswer(t, l, where)
	routed(t, l, s.cluster, []string{"murano-kube-2", "murano-kube-3"}, "murano-kube-1", "murano-gateway-1")
	podsReachEachOther(t, l, s.cluster, "web")
	l.eventually(t, 60*time.Second, "a router outside is told where pods are", func() error { return router.knows(4, 2) })
	networkPolicies(t, l, s.cluster, where)
	link, err := s.cluster.on("murano-kube-2", "/bin/bash", "-c", "nsenter --net --target $(pidof -s demo) cat /sys/class/net/eth0/mtu; cat /sys/class/net/eth0/mtu")
	require.NoError(t, err, link)
	mtus := strings.Fields(link)
	require.Len(t, mtus, 2)
	require.Equal(t, mtus[1], mtus[0], "pods send packets as large as their node's")

	load := startLoad(t, where)
	s.act(t, "scaling-cluster", "scaleNodesUp", map[string]any{})
	s.holds(t, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, []string{"murano-gateway-1"})
	s.cluster.kubectl(t, fmt.Sprintf(onNode, "murano-kube-4"), "apply", "-f", "-") // a node that never had a pod has no addresses to announce
	routed(t, l, s.cluster, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, "murano-kube-1", "murano-gateway-1")
	for _, node := range []string{"murano-kube-2", "murano-gateway-1"} {
		output, err := s.cluster.on(node, "systemctl", "restart", "calico-bird")
		require.NoError(t, err, output)
		routed(t, l, s.cluster, []string{"murano-kube-2", "murano-kube-3", "murano-kube-4"}, "murano-kube-1", "murano-gateway-1")
	}
	load.end()
	t.Log(load)
	s.cluster.noneFailed(t, load.failed)

	s.act(t, "scaling-cluster", "scaleNodesDown", map[string]any{"node": "murano-kube-3"})
	s.holds(t, []string{"murano-kube-2", "murano-kube-4"}, []string{"murano-gateway-1"})
	routed(t, l, s.cluster, []string{"murano-kube-2", "murano-kube-4"}, "murano-kube-1", "murano-gateway-1")
	bothReplicasAnswer(t, l, where)

	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(text, peers, "", 1)), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.eventually(t, 60*time.Second, "the router is told nothing any more", func() error { return router.knows(0, 0) })

	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer("podEncapsulation: none", "podEncapsulation: always", peers, "").Replace(text)), 0o600))
	output, err := l.try(l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Error(t, err)
	require.Contains(t, output, "podEncapsulation cannot be changed: cluster scaling-cluster was made with none")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}
