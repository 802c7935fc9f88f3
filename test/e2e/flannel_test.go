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

// TestFlannelConnectsThePodsToo repeats TestAnApplicationAnswersThroughAGateway, in short, with Flannel in the place of Calico
// and one minion more, so that the replicas run on different nodes.
func TestFlannelConnectsThePodsToo(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")

	own, mirror := startRegistry(t, "team", "not-for-everybody"), startRegistry(t, "", "")
	proxy := startForwarder(t, mirror)
	registries := fmt.Sprintf("dockerRegistry: %s\n    dockerRegistryUser: team\n    dockerRegistryPassword: not-for-everybody\n    dockerMirror: http://%s\n"+
		"    httpProxy: http://%s\n    noProxy: %s\n", own.address, mirrorName, proxy.address, outside("1"))
	file := flannelEnvironment(t, true, registries)
	output := l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	require.Contains(t, output, "Deployment finished")
	t.Logf("what the user saw:\n%s", output)
	l.deleteIfFailed(t, "flannel")
	environment := environmentNamed(t, demo, "flannel")
	require.Equal(t, "ready", environment["status"])
	where := endpointOf(t, environment)
	bothReplicasAnswer(t, l, where)

	cluster := l.clusterOf(t, demo, environment)
	t.Run("pods reach Services, pods of their own and of other nodes, and the nodes", func(t *testing.T) { podsReachEachOther(t, l, cluster, "demo") })
	t.Run("a Service made with kubectl alone is reachable through the gateway", func(t *testing.T) { serviceByKubectl(t, l, cluster, where) })
	t.Run("a server reaches the cloud's metadata, a pod on it does not", func(t *testing.T) { metadataIsForServers(t, cluster) })
	t.Run("each etcd certificate opens its own prefix and no other", func(t *testing.T) { etcdPermissions(t, cluster, etcdFlannel) })
	t.Run("images come from registries of one's own, and from a mirror through a proxy", func(t *testing.T) { imagesComeFromRegistries(t, l, cluster, own, mirror, proxy) })
	t.Run("the network of a living cluster cannot be changed", func(t *testing.T) {
		output, err := l.try(l.as("burano-demo"), "burano", "deploy", flannelEnvironment(t, false, "dockerMirror: nowhere\n"), "--follow")
		require.Error(t, err, output)
		require.Contains(t, output, `dockerMirror has "nowhere": give the URL of a mirror`)
		require.Contains(t, output, "useFlannel cannot be changed: cluster demo-cluster was made with flannel")
		_, err = get("http://" + where + "/")
		require.NoError(t, err)
	})

	t.Run("a node that leaves is forgotten at once", func(t *testing.T) {
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow") // the refused model was saved
		l.run(t, l.as("burano-demo"), "burano", "action", "call", "flannel", "demo-cluster", "scaleNodesDown", "--follow")
		leases, err := cluster.on("murano-gateway-1", etcdctl("flannel", "get", "--prefix", "/coreos.com/network/subnets/", "--keys-only")...)
		require.NoError(t, err, leases)
		require.Equal(t, 3, strings.Count(leases, "/subnets/"), leases)
		routes, err := cluster.on("murano-gateway-1", "ip", "route", "show", "dev", "flannel.1")
		require.NoError(t, err, routes)
		require.Len(t, strings.Split(strings.TrimSpace(routes), "\n"), 2, routes)
		bothReplicasAnswer(t, l, where)
	})

	output = l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "flannel")
	require.Contains(t, output, "is deleted")
	asBefore(t, demo, found)
}

// flannelEnvironment writes the demonstration's environment again under the name flannel, with two minions and these lines of the
// cluster.
func flannelEnvironment(t *testing.T, useFlannel bool, lines string) string {
	t.Helper()
	text, err := os.ReadFile("../environments/demo.yaml")
	require.NoError(t, err)
	changed := string(text)
	for old, with := range map[string]string{
		"\nname: demo\n":       "\nname: flannel\n",
		"name: demo-cluster\n": fmt.Sprintf("name: demo-cluster\n    useFlannel: %t\n    %s", useFlannel, lines),
		"nodeCount: 1\n":       "nodeCount: 2\n",
	} {
		require.Equal(t, 1, strings.Count(changed, old), old)
		changed = strings.Replace(changed, old, with, 1)
	}
	file := filepath.Join(t.TempDir(), "flannel.yaml")
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	return file
}

// podsReachEachOther calls from inside of each replica the application's Service, until both replicas have answered: one of
// them calls itself, the other one is across nodes. It also calls the API server, which is outside of the pods' network.
func podsReachEachOther(t *testing.T, l *lab, c *cluster, application string) {
	service := c.kubectl(t, "", "get", "service", application+"-hello", "-o", "jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
	where := func() []string {
		return strings.Fields(c.kubectl(t, "", "get", "pods", "-o", "jsonpath={.items[*].spec.nodeName}"))
	}
	places := where()
	if len(places) == 2 && places[0] == places[1] {
		// Both pods were scheduled before the other node was ready: one has to move.
		c.kubectl(t, "", "cordon", places[0])
		pod := c.kubectl(t, "", "get", "pods", "-o", "jsonpath={.items[0].metadata.name}")
		c.kubectl(t, "", "delete", "pod", pod, "--timeout=60s")
		c.kubectl(t, "", "rollout", "status", "deployment/"+application, "--timeout=60s")
		c.kubectl(t, "", "uncordon", places[0])
		places = where()
	}
	require.ElementsMatch(t, []string{"murano-kube-2", "murano-kube-3"}, places, "the replicas run on different nodes")
	for _, node := range places {
		inPod := func(arguments string) (string, error) {
			return c.on(node, "/bin/bash", "-c", "nsenter --net --target $(pidof -s demo) curl --silent --show-error --max-time 10 "+arguments)
		}
		replicas := map[string]bool{}
		l.eventually(t, 20*time.Second, "both replicas answer a pod of "+node, func() error {
			answer, err := inPod("http://" + service + "/")
			if err != nil {
				return fmt.Errorf("%w: %s", err, answer)
			}
			replicas[strings.SplitN(answer, "\n", 2)[0]] = true
			if len(replicas) < 2 {
				return fmt.Errorf("only %v answered", replicas)
			}
			return nil
		})
		answer, err := inPod("--insecure --output /dev/null --write-out %{http_code} https://10.96.0.1/version")
		require.NoError(t, err, answer)
		require.Equal(t, "401", answer, "the API server answers, and wants to know who asks")
	}
}
