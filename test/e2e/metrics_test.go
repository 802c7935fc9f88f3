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

// scaler has a Deployment have from minimum to maximum pods, by the memory that each uses.
const scaler = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: %[1]s}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %[1]s}
  minReplicas: %[2]d
  maxReplicas: %[3]d
  metrics: [{type: Resource, resource: {name: memory, target: {type: AverageValue, averageValue: %[4]s}}}]
`

// measures has a HorizontalPodAutoscaler ask for a Deployment's usage, which changes nothing. The returned function checks that the autoscaler knows it, and
// that the usage of nodes and pods can be read.
func measures(t *testing.T, l *lab, c *cluster) (knows func(t *testing.T)) {
	deployment := c.kubectl(t, "", "get", "deployments", "-o", "jsonpath={.items[0].metadata.name}")
	c.kubectl(t, fmt.Sprintf(scaler, deployment, 2, 2, "1Gi"), "apply", "-f", "-")
	return func(t *testing.T) {
		l.eventually(t, time.Minute, "a HorizontalPodAutoscaler knows what its pods use", func() error {
			if used := c.kubectl(t, "", "get", "hpa", deployment, "-o", "jsonpath={.status.currentMetrics[0].resource.current.averageValue}"); used == "" || used == "0" {
				return fmt.Errorf("it says %s", c.kubectl(t, "", "get", "hpa", deployment, "-o", "jsonpath={.status.conditions}"))
			}
			return nil
		})
		require.Regexp(t, `(?m)^murano-kube-2 +\d+m +\d+% +\d+Mi`, c.kubectl(t, "", "top", "nodes"))
		require.Regexp(t, `(?m)^`+deployment+`\S* +\d+m +\d+Mi`, c.kubectl(t, "", "top", "pods"))
		c.kubectl(t, "", "delete", "hpa", deployment)
	}
}

const hungry = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: hungry}
spec:
  selector: {matchLabels: {app: hungry}}
  template:
    metadata: {labels: {app: hungry}}
    spec:
      containers: [{name: demo, image: "registry.local/demo:1", imagePullPolicy: IfNotPresent}]
`

// othersMetrics has the API server ask another server for metrics.
const othersMetrics = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: others, namespace: kube-system}
`

// TestPodsFollowWhatTheyUse has a HorizontalPodAutoscaler add a pod, and switches metrics off, and on where another server answers for
// them.
func TestPodsFollowWhatTheyUse(t *testing.T) {
	soakOnly(t, "`make soak` runs this: TestAnApplicationAnswersThroughAGateway looks whether metrics are there")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	text, err := os.ReadFile("testdata/groups.yaml")
	require.NoError(t, err)
	without, _, _ := strings.Cut(string(text), "    minionGroups:")
	file := filepath.Join(t.TempDir(), "groups.yaml")
	deploy := func(model string) string {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(model), 0o600))
		return l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy(without)
	l.deleteIfFailed(t, "groups")
	environment := environmentNamed(t, demo, "groups")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	s.find(t)
	s.cluster.kubectl(t, hungry+"---"+fmt.Sprintf(scaler, "hungry", 1, 2, "1Ki"), "apply", "-f", "-")
	began := time.Now()
	l.eventually(t, 3*time.Minute, "a second pod", func() error {
		if replicas := s.cluster.kubectl(t, "", "get", "deployment", "hungry", "-o", "jsonpath={.spec.replicas}"); replicas != "2" {
			return fmt.Errorf("there are %s", replicas)
		}
		return nil
	})
	t.Logf("scaled after %.1f s", time.Since(began).Seconds())
	runs := func() string {
		return strings.TrimSpace(s.in(t, "murano-kube-1", "systemctl is-active metrics-server || true"))
	}
	require.Equal(t, "active", runs())
	require.NotContains(t, deploy(without), "metrics-server", "the same again starts nothing")

	require.Contains(t, deploy(strings.Replace(without, "name: scaling-cluster", "name: scaling-cluster\n    enableMetrics: false", 1)), "metrics-server ended")
	require.Empty(t, s.cluster.kubectl(t, "", "get", "apiservice", "v1beta1.metrics.k8s.io", "--ignore-not-found"))
	require.Equal(t, "inactive", runs())

	s.cluster.kubectl(t, othersMetrics, "apply", "-f", "-")
	require.Contains(t, deploy(without), "has a metrics-server of its own")
	require.Equal(t, "others", s.cluster.kubectl(t, "", "get", "apiservice", "v1beta1.metrics.k8s.io", "-o", "jsonpath={.spec.service.name}"))
	require.Equal(t, "inactive", runs())

	s.cluster.kubectl(t, "", "delete", "apiservice", "v1beta1.metrics.k8s.io")
	deploy(without)
	require.Equal(t, "active", runs())
	require.Equal(t, "burano-metrics-server", s.cluster.kubectl(t, "", "get", "apiservice", "v1beta1.metrics.k8s.io", "-o", "jsonpath={.spec.service.name}"))
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "groups")
	asBefore(t, demo, found)
}
