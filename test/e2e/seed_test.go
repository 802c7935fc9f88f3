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

// TestThePackagesOfMurano brings a cluster up by a class of a package's own, in an order of its own, and calls all methods of the classes of the cluster and its
// nodes that Murano documented.
func TestThePackagesOfMurano(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.test.Seed")
	file := filepath.Join(t.TempDir(), "seed.yaml")
	cluster := strings.NewReplacer("com.mirantis.docker.kubernetes.KubernetesCluster", "io.burano.test.seed.Cluster", "name: fresh\n", "name: seed\n").Replace(freshEnvironment("fresh", 2, 1))
	cluster, _, _ = strings.Cut(cluster, "  - ?: {type: com.mirantis.docker.kubernetes.KubernetesPod")
	application := "  - ?: {type: io.burano.test.seed.Application, id: own}\n    cluster: cluster\n"
	deploy := func(t *testing.T, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	act := func(t *testing.T, object map[string]any, action string) string {
		t.Helper()
		return l.run(t, l.as("burano-demo"), "burano", "action", "call", "seed", object["?"].(map[string]any)["id"].(string), action, "--follow")
	}
	l.deleteIfFailed(t, "seed")
	began := time.Now()
	deploy(t, cluster+application)
	t.Logf("the cluster is up in the order of its class, with its objects, after %.1f s", time.Since(began).Seconds())

	environment := environmentNamed(t, demo, "seed")
	c := l.clusterOf(t, demo, environment)
	parts := map[string]map[string]any{}
	for _, one := range environment["services"].([]any) {
		service := one.(map[string]any)
		parts[service["?"].(map[string]any)["type"].(string)[:len("io.burano.test.seed.A")]] = service
	}
	own, made := parts["io.burano.test.seed.C"], parts["io.burano.test.seed.A"]
	seen := own["seen"].(map[string]any)
	for when, available := range map[string]bool{"before": false, "withoutApi": false, "after": true} {
		require.Equal(t, available, seen[when], when)
	}
	require.Equal(t, seen["ip"], seen["nodeIps"].([]any)[0])
	require.Len(t, seen["nodeIps"], 4)
	require.NotEqual(t, seen["ip"], seen["floatingIp"])
	require.Len(t, strings.Fields(c.kubectl(t, "", "get", "nodes", "-o", "name")), 2)
	output, err := c.on("fresh-master", "env", "-i", "HOME=/root", "PATH=/usr/local/bin:/usr/bin:/bin", "kubectl", "get", "nodes", "-o", "name")
	require.NoError(t, err, output)
	require.Len(t, strings.Fields(output), 2, "kubectl works for root of a master without settings: %s", output)
	output, err = c.on("fresh-master", "env", "-i", "HOME=/root", "PATH=/usr/local/bin:/usr/bin:/bin", "helm", "list", "--all-namespaces", "--output", "json")
	require.NoError(t, err, output)
	require.Equal(t, "[]", strings.TrimSpace(output), "helm reaches the cluster without settings")
	for problem, text := range map[string]string{"empty": "definition is empty", "kind": "takes Pod of apiVersion v1", "name": "metadata.name of the definition is missing", "refused": "spec.containers"} {
		require.Contains(t, made["problems"].(map[string]any)[problem], text)
	}
	where := ""
	for _, one := range made["endpoints"].([]any) {
		if endpoint := one.(map[string]any); endpoint["scope"] == "public" {
			where = fmt.Sprintf("http://%v:%v", endpoint["address"], endpoint["port"])
		}
	}
	require.Len(t, made["endpoints"], 3, "two inside of the cluster, and one of the gateway")
	l.eventually(t, time.Minute, "the controller's pod answers through the gateway", func() error { _, err := get(where); return err })
	listed := ""
	for _, one := range own["serviceEndpoints"].([]any) {
		if endpoint := one.(map[string]any); endpoint["scope"] == "public" && endpoint["applicationName"] == "Web" {
			listed = fmt.Sprintf("http://%v:%v", endpoint["address"], endpoint["port"])
		}
	}
	require.Equal(t, where, listed, "the cluster lists the published Service")
	require.Len(t, strings.Fields(c.kubectl(t, "", "get", "services", "-l", "burano.io/service-of", "-o", "name")), 2, "a Service for each port")
	c.kubectl(t, "", "wait", "--for=condition=Ready", "pod/single", "--timeout=60s")
	require.Equal(t, "two", c.kubectl(t, "", "get", "pod", "single", "-o", "jsonpath={.spec.containers[0].env[0].value}"), "a pod that cannot be changed is made anew")

	t.Run("a controller is scaled and containers are restarted", func(t *testing.T) {
		output := act(t, made, "change")
		for _, text := range []string{"has no ReplicationController none in namespace default; it has web", "labels are empty", "runs no pod none"} {
			require.Contains(t, output, text)
		}
		require.Equal(t, "2", c.kubectl(t, "", "get", "rc", "web", "-o", "jsonpath={.spec.replicas}"))
		require.Equal(t, "2", c.kubectl(t, "", "get", "pod", "single", "-o", "jsonpath={.status.containerStatuses[0].restartCount}"), "once by the cluster, and once by its node")
	})
	t.Run("a minion leaves and comes back by its methods", func(t *testing.T) {
		output := act(t, own, "exchangeMinion")
		require.Regexp(t, `(?s)without"?: 1`, output)
		require.Regexp(t, `(?s)nodeCount"?: 2`, output)
		require.Contains(t, output, "at least 1 gateway must remain")
		c.kubectl(t, "", "wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
		require.Len(t, strings.Fields(c.kubectl(t, "", "get", "nodes", "-o", "name")), 2)
		require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "seed"), "does not")
	})
	t.Run("what was made is deleted by the methods and comes back with a deployment", func(t *testing.T) {
		act(t, made, "clear")
		for _, kind := range []string{"rc", "services", "pods"} {
			require.NotContains(t, c.kubectl(t, "", "get", kind, "-l", "burano.io/owner", "-o", "name"), "/web", kind)
		}
		deploy(t, cluster+application)
		l.eventually(t, time.Minute, "the controller's pod answers again", func() error { _, err := get(where); return err })
	})
	t.Run("objects go with the object that has made them", func(t *testing.T) {
		deploy(t, cluster)
		for _, kind := range []string{"rc", "services", "pods"} {
			require.Empty(t, strings.TrimSpace(c.kubectl(t, "", "get", kind, "-l", "burano.io/owner", "-o", "name")), kind)
		}
	})
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "seed")
	asBefore(t, demo, found)
}
