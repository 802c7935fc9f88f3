package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAGroupOfMinionsGrowsAndShrinks deploys a cluster with a group of one node, scales it to two and back to one, and removes the group. Its pods and
// Services have other addresses and names than the other clusters'.
func TestAGroupOfMinionsGrowsAndShrinks(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	usual, err := os.ReadFile("testdata/groups.yaml")
	require.NoError(t, err)
	text := strings.Replace(string(usual), "name: scaling-cluster\n", "name: scaling-cluster"+addressed, 1)
	file := filepath.Join(t.TempDir(), "groups.yaml")
	deploy := func(model string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy(text)
	l.deleteIfFailed(t, "groups")
	environment := environmentNamed(t, demo, "groups")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	holds := func(minions ...string) {
		t.Helper()
		s.holds(t, append([]string{"murano-kube-2"}, minions...), []string{"murano-gateway-1"})
		for _, name := range minions {
			require.Equal(t, "workers fast yes NoSchedule", s.cluster.kubectl(t, "", "get", "node", name, "-o",
				`jsonpath={.metadata.labels.burano\.io/group} {.metadata.labels.disk} {.spec.taints[?(@.key=='batch')].value} {.spec.taints[?(@.key=='batch')].effect}`))
		}
		require.Equal(t, " ", s.cluster.kubectl(t, "", "get", "node", "murano-kube-2", "-o", `jsonpath={.metadata.labels.disk} {.spec.taints[?(@.key=='batch')].value}`))
	}
	uids := func() string {
		return s.cluster.kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.uid}")
	}
	holds("workers-1")
	t.Run("pods and Services have the addresses, the names and the MTU that were asked for", func(t *testing.T) {
		podsAreAddressed(t, l, s.cluster, "murano-kube-2", "workers-1")
	})
	t.Run("a cluster keeps the addresses and names that it was made with", func(t *testing.T) { staysAddressed(t, l, text) })
	former, nodes := maps.Clone(s.cluster.servers), uids()

	deploy(text)
	holds("workers-1")
	require.Equal(t, former, s.cluster.servers, "the same once more changes nothing")
	require.Equal(t, nodes, uids())

	s.act(t, "scaling-cluster", "scaleGroupUp", map[string]any{"group": "workers"})
	holds("workers-1", "workers-2")
	require.Equal(t, []string{"The maximum number of nodes has been reached"}, s.act(t, "scaling-cluster", "scaleGroupUp", map[string]any{"group": "workers"})["warning"])
	larger, nodes := maps.Clone(s.cluster.servers), uids()
	require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--dry-run"), "KubernetesMinion", "neither the group nor its nodes would change")
	deploy(text)
	holds("workers-1", "workers-2")
	require.Equal(t, larger, s.cluster.servers, "a model that says no count keeps what the action made")
	require.Equal(t, nodes, uids())

	// A node's own label overrides its group's, and a deployment restores the group's labels.
	l.run(t, l.as("burano-demo"), "burano", "node", "label", "groups", "workers-2", "room=b", "--follow")
	result, _ := s.call(t, "scaling-cluster", "labelNode", map[string]any{"node": "workers-2", "remove": []string{"disk"}})
	require.Contains(t, fmt.Sprint(result["result"]), "all nodes of group workers have it")
	taint := `jsonpath={.spec.unschedulable} {.spec.taints[?(@.key=='busy')].effect}`
	s.act(t, "scaling-cluster", "setNode", map[string]any{"node": "workers-2", "cordoned": true, "taints": []any{map[string]any{"key": "busy", "effect": "NoSchedule"}}})
	require.Equal(t, "true NoSchedule", s.cluster.kubectl(t, "", "get", "node", "workers-2", "-o", taint))
	s.act(t, "scaling-cluster", "taintNode", map[string]any{"node": "workers-2", "remove": []string{"busy"}})
	s.act(t, "scaling-cluster", "uncordonNode", map[string]any{"node": "workers-2"})
	require.Equal(t, " ", s.cluster.kubectl(t, "", "get", "node", "workers-2", "-o", taint), "a former name does the work of the new one")
	listed := l.run(t, l.as("burano-demo"), "burano", "action", "list", "groups")
	require.Contains(t, listed, "deprecated: use setNode")
	require.NotContains(t, listed, "scaleByLoad", "only the keeper calls it")
	s.cluster.kubectl(t, "", "label", "node", "workers-2", "disk-")
	deploy(strings.Replace(text, "labels: {disk: fast}", "labels: {disk: fast, tier: batch}", 1))
	holds("workers-1", "workers-2")
	require.Equal(t, "batch b", s.cluster.kubectl(t, "", "get", "node", "workers-2", "-o", "jsonpath={.metadata.labels.tier} {.metadata.labels.room}"))
	deploy(text)
	require.Equal(t, " b", s.cluster.kubectl(t, "", "get", "node", "workers-2", "-o", "jsonpath={.metadata.labels.tier} {.metadata.labels.room}"))

	s.act(t, "scaling-cluster", "scaleGroupDown", map[string]any{"group": "workers", "node": "workers-1"})
	holds("workers-2")
	require.Equal(t, larger["workers-2"], s.cluster.servers["workers-2"], "the one that was named has gone")
	l.run(t, l.as("burano-demo"), "burano", "cluster", "scale", "groups", "workers", "--count", "2", "--follow")
	holds("workers-1", "workers-2")
	s.act(t, "scaling-cluster", "setGroupCount", map[string]any{"group": "workers", "count": 1})
	holds("workers-2")
	result, _ = s.call(t, "scaling-cluster", "scale", map[string]any{"group": "others", "count": 1})
	require.Contains(t, fmt.Sprint(result["result"]), "others is no group of cluster scaling-cluster: there are workers")

	without, _, _ := strings.Cut(text, "    minionGroups:")
	deploy(without)
	holds()
	require.Equal(t, former["murano-kube-2"], s.cluster.servers["murano-kube-2"])

	group := func(args ...string) (string, error) {
		return l.try(l.as("burano-demo"), "burano", append(append([]string{"cluster", "group"}, args...), "--follow")...)
	}
	output, err := group("add", "groups", "workers", "--maximum", "2", "--flavor", "m1.nothing")
	require.Error(t, err)
	require.Contains(t, output, "m1.nothing")
	require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "groups"), "workers", "a group that could not be added is not there")
	output, err = group("add", "groups", "workers", "--maximum", "2", "--label", "disk=fast", "--taint", "batch=yes:NoSchedule")
	require.NoError(t, err, output)
	holds("workers-1")
	output, err = group("add", "groups", "workers")
	require.Error(t, err)
	require.Contains(t, output, "has a group workers")
	output, err = group("remove", "groups", "workers")
	require.NoError(t, err, output)
	holds()
	require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "groups"), "workers")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "groups")
	asBefore(t, demo, found)
}
