package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// busy is an application whose pods need more than half of a node of the group each.
const busy = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: busy}
spec:
  replicas: 3
  selector: {matchLabels: {app: busy}}
  template:
    metadata: {labels: {app: busy}}
    spec:
      nodeSelector: {burano.io/group: workers}
      tolerations: [{key: batch, operator: Exists}]
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent, resources: {requests: {cpu: "%dm"}}}]
`

// TestAGroupFollowsItsLoad has pods wait for room: the group grows from one node to three, and goes back to one when they are gone. It
// then has none, and one again.
func TestAGroupFollowsItsLoad(t *testing.T) {
	soakOnly(t, "`make soak` runs this: the decision has tests in orchestrator/upkeep, and TestAGroupOfMinionsGrowsAndShrinks scales a group")
	l := start(t)
	l.relaunch(t, watchful...)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	text, err := os.ReadFile("testdata/groups.yaml")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "groups.yaml")
	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "maximum: 2", "count: 1\n        minimum: 1\n        maximum: 3\n        scaleDownAfter: 5", 1)), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	l.deleteIfFailed(t, "groups")
	environment := environmentNamed(t, demo, "groups")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string), voting: 3}
	var processors int
	_, err = fmt.Sscan(s.cluster.kubectl(t, "", "get", "node", "workers-1", "-o", "jsonpath={.status.allocatable.cpu}"), &processors)
	require.NoError(t, err)
	manifest := fmt.Sprintf(busy, processors*600)
	s.cluster.kubectl(t, manifest, "apply", "-f", "-")
	s.finds(t, "no-delegation", "group-too-small")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "groups")
	began := time.Now()
	becomes := func(nodes ...string) {
		t.Helper()
		l.eventually(t, 4*time.Minute, fmt.Sprintf("the group has nodes %v", nodes), func() error {
			listed := strings.Fields(s.cluster.kubectl(t, "", "get", "nodes", "-l", "burano.io/group=workers", "-o", "jsonpath={.items[*].metadata.name}"))
			if slices.Sort(listed); !slices.Equal(listed, nodes) {
				return fmt.Errorf("it has %v", listed)
			}
			return s.idle(t)
		})
		t.Logf("%v after %.1f s", nodes, time.Since(began).Seconds())
		s.holds(t, append([]string{"murano-kube-2"}, nodes...), []string{"murano-gateway-1"})
	}
	becomes("workers-1", "workers-2", "workers-3")
	s.cluster.kubectl(t, "", "rollout", "status", "deployment/busy", "--timeout=60s")
	s.finds(t)
	t.Logf("its pods ran after %.1f s", time.Since(began).Seconds())
	shown := l.run(t, l.as("burano-demo"), "burano", "cluster", "show", "groups")
	require.Contains(t, shown, "Group workers grows from 1 to 3 nodes, because pods default/busy-")

	// A model's count is older than the group's.
	l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	s.holds(t, []string{"murano-kube-2", "workers-1", "workers-2", "workers-3"}, []string{"murano-gateway-1"})

	s.cluster.kubectl(t, "", "annotate", "node", "workers-1", "cluster-autoscaler.kubernetes.io/scale-down-disabled=true")
	s.cluster.kubectl(t, "", "scale", "deployment", "busy", "--replicas=0")
	began = time.Now()
	becomes("workers-1")

	s.cluster.kubectl(t, "", "annotate", "node", "workers-1", "cluster-autoscaler.kubernetes.io/scale-down-disabled-")
	l.run(t, l.as("burano-demo"), "burano", "action", "call", "groups", "scaling-cluster", "scale", "--arg", "group=workers", "--arg", "minimum=0", "--follow")
	began = time.Now()
	becomes()
	s.cluster.kubectl(t, "", "scale", "deployment", "busy", "--replicas=1")
	began = time.Now()
	becomes("workers-2") // the next node after workers-1, by the stored numbers
	s.cluster.kubectl(t, "", "rollout", "status", "deployment/busy", "--timeout=60s")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "groups")
	asBefore(t, demo, found)
}

// idle demands that no task runs in the environment.
func (s *scaling) idle(t *testing.T) error {
	t.Helper()
	for _, one := range s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment+"/deployments", nil)["deployments"].([]any) {
		if state := one.(map[string]any)["state"].(string); strings.HasPrefix(state, "running") {
			return fmt.Errorf("a deployment is %s", state)
		}
	}
	return nil
}
