package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/stretchr/testify/require"
)

// TestActionsOnNodesKeepWhatRuns labels and taints a node, replaces, reboots and locks it, alive and dead, while requests come through the
// gateway.
func TestActionsOnNodesKeepWhatRuns(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	s, environment, _ := l.scaled(t, demo, "nodeCount: 1", "nodeCount: 2")
	endpoint := endpointOf(t, environment)
	s.holds(t, []string{"murano-kube-2", "murano-kube-3"}, []string{"murano-gateway-1"})
	node := func(args ...string) {
		t.Helper()
		began := time.Now()
		args = append([]string{"node", args[0], "scaling"}, args[1:]...)
		output := l.run(t, l.as("burano-demo"), "burano", append(args, "--follow")...)
		t.Logf("%v: %.1f s\n%s", args, time.Since(began).Seconds(), output)
	}
	of := func(name, path string) string {
		t.Helper()
		return s.cluster.kubectl(t, "", "get", "node", name, "-o", "jsonpath={"+path+"}")
	}

	t.Run("labels and taints that are set through Burano stay with a node that is replaced", func(t *testing.T) {
		s.cluster.kubectl(t, "", "label", "node", "murano-kube-2", "theirs=yes")
		node("label", "murano-kube-2", "disk=fast", "room=b")
		node("taint", "murano-kube-2", "slow=yes:PreferNoSchedule")
		node("label", "murano-kube-2", "room-")
		require.Equal(t, "fast  yes", of("murano-kube-2", ".metadata.labels.disk} {.metadata.labels.room} {.metadata.labels.theirs"))
		require.Equal(t, "PreferNoSchedule", of("murano-kube-2", ".spec.taints[?(@.key=='slow')].effect"))
		require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "node", "list", "scaling"), "disk=fast  slow=yes:PreferNoSchedule")
		host := s.cluster.servers["murano-kube-2"]
		labels := demo.must(t, http.MethodGet, "/v1/ihosts/"+host+"/labels", nil)["labels"].([]any)
		require.Len(t, labels, 1)
		disk := labels[0].(map[string]any)
		require.Equal(t, []any{host, "disk=fast", "demo"}, []any{disk["host_uuid"], disk["label"], disk["created_by"]})
		made := demo.must(t, http.MethodPost, "/v1/labels/"+host, map[string]any{"rack": "7"})
		s.end(t, made["task_id"].(string))
		require.Equal(t, "7", of("murano-kube-2", ".metadata.labels.rack"))
		listed := l.run(t, l.as("burano-demo"), "burano", "node", "label", "list", "scaling", "murano-kube-2")
		require.Contains(t, listed, made["uuid"].(string), "the id of the answer is the id of the label")
		l.run(t, l.as("burano-demo"), "burano", "node", "label", "remove", "scaling", "murano-kube-2", "rack", "--follow")
		require.Empty(t, of("murano-kube-2", ".metadata.labels.rack"))
		node("replace", "murano-kube-2")
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3"}, []string{"murano-gateway-1"})
		now := demo.must(t, http.MethodGet, "/v1/ihosts/"+s.cluster.servers["murano-kube-2-r2"]+"/labels", nil)["labels"].([]any)
		require.Equal(t, disk["uuid"], now[0].(map[string]any)["uuid"], "a label is the node's, whatever its server")
		require.Equal(t, "fast ", of("murano-kube-2-r2", ".metadata.labels.disk} {.metadata.labels.theirs"), "what others have set is of the former node")
		require.Equal(t, "PreferNoSchedule", of("murano-kube-2-r2", ".spec.taints[?(@.key=='slow')].effect"))
		node("taint", "murano-kube-2-r2", "slow-")
	})

	t.Run("a reboot fails no request", func(t *testing.T) {
		bothReplicasAnswer(t, l, endpoint)
		before := s.began(t, "murano-kube-3")
		load := startLoad(t, endpoint)
		node("reboot", "murano-kube-3")
		load.end()
		t.Log(load)
		s.cluster.noneFailed(t, load.failed)
		require.NotEqual(t, before, s.began(t, "murano-kube-3"), "it was rebooted")
		require.Empty(t, of("murano-kube-3", ".spec.unschedulable"))
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3"}, []string{"murano-gateway-1"})
	})

	t.Run("the only master is not rebooted without force", func(t *testing.T) {
		result, _ := s.call(t, "scaling-cluster", "rebootNode", map[string]any{"node": "murano-kube-1"})
		require.Equal(t, true, result["isException"])
		require.Contains(t, fmt.Sprint(result["result"]), "it is the only master")
	})

	t.Run("a dead node is locked, left alone by a deployment, and comes back", func(t *testing.T) {
		nova := demo.nova(t)
		dead := s.cluster.servers["murano-kube-3"]
		require.NoError(t, servers.Stop(t.Context(), nova, dead).ExtractErr())
		l.eventually(t, time.Minute, "the server is off", func() error {
			server, err := servers.Get(t.Context(), nova, dead).Extract()
			if err == nil && server.Status != "SHUTOFF" {
				err = fmt.Errorf("it is %s", server.Status)
			}
			return err
		})
		off := time.Now()
		l.run(t, l.as("burano-demo"), "burano", "environment", "delegation", "set", "scaling")
		l.eventually(t, 100*time.Second, "the pods of a node that is off run elsewhere", func() error {
			if left := s.cluster.kubectl(t, "", "get", "pods", "-A", "--field-selector", "spec.nodeName=murano-kube-3", "-o", "name"); left != "" {
				return fmt.Errorf("it still has %s", left)
			}
			return nil
		})
		t.Logf("the pods of a node without volumes were away from it %.1f s after Nova had it off", time.Since(off).Seconds())
		s.finds(t, "server-stopped", "node-out-of-service")
		node("lock", "murano-kube-3")
		s.emptied(t, "murano-kube-3")
		require.Equal(t, "true NoExecute", of("murano-kube-3", ".spec.unschedulable} {.spec.taints[?(@.key=='burano.io/locked')].effect"))
		bothReplicasAnswer(t, l, endpoint)
		result, _ := s.call(t, "scaling-cluster", "setNode", map[string]any{"node": "murano-kube-2-r2", "locked": true})
		require.Contains(t, fmt.Sprint(result["result"]), "no other node of the cluster takes pods")

		began := time.Now()
		l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow")
		t.Logf("a deployment beside it took %.1f s", time.Since(began).Seconds())
		server, err := servers.Get(t.Context(), nova, dead).Extract()
		require.NoError(t, err)
		require.Equal(t, "SHUTOFF", server.Status, "a deployment starts no locked node")
		result, _ = s.call(t, "scaling-cluster", "repairNode", map[string]any{"node": "murano-kube-3"})
		require.Equal(t, true, result["isException"])
		require.Contains(t, fmt.Sprint(result["result"]), "is locked")
		status := demo.must(t, http.MethodGet, "/burano/v1/environments/"+s.environment+"/clusters/"+s.clusterID(t)+"/nodes/murano-kube-3", nil)
		require.Equal(t, "locked", status["state"])

		node("unlock", "murano-kube-3")
		l.eventually(t, 10*time.Second, "nothing keeps pods away from it", func() error { // Kubernetes looks every 5 s whether a node is reachable again
			if left := strings.TrimSpace(of("murano-kube-3", ".spec.unschedulable} {.spec.taints")); left != "" {
				return errors.New(left)
			}
			return nil
		})
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3"}, []string{"murano-gateway-1"})
	})

	t.Run("a node whose object was deleted is registered again by the next deployment", func(t *testing.T) {
		former := of("murano-kube-3", ".metadata.uid")
		s.cluster.kubectl(t, "", "delete", "node", "murano-kube-3")
		began := time.Now()
		output := l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow")
		t.Logf("it took %.1f s", time.Since(began).Seconds())
		require.Contains(t, output, "Kubernetes did not know it any more")
		require.NotEqual(t, former, of("murano-kube-3", ".metadata.uid"))
		require.Equal(t, "murano-kube-3", of("murano-kube-3", ".metadata.labels.kubernetes\\.io/hostname"))
		s.holds(t, []string{"murano-kube-2-r2", "murano-kube-3"}, []string{"murano-gateway-1"})
		require.NotContains(t, l.run(t, l.as("burano-demo"), "burano", "deploy", s.file, "--follow"), "Kubernetes did not know it any more", "once is enough")
	})

	t.Run("claims get directories of nodes, which go with their claims and hold their node", func(t *testing.T) {
		localVolumes(t, s, s.file)
	})

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}

// began is the start time of the first process of a node's system, which is unique among all processes of this machine.
func (s *scaling) began(t *testing.T, node string) string {
	t.Helper()
	output, err := s.cluster.on(node, "/bin/cat", "/proc/1/stat")
	require.NoError(t, err, output)
	return strings.Fields(output)[21]
}

// clusterID is the id of the cluster's object.
func (s *scaling) clusterID(t *testing.T) string {
	t.Helper()
	for _, one := range s.user.must(t, http.MethodGet, "/v1/environments/"+s.environment, nil)["services"].([]any) {
		if service := one.(map[string]any); service["name"] == "scaling-cluster" {
			return service["?"].(map[string]any)["id"].(string)
		}
	}
	require.Fail(t, "there is no cluster")
	return ""
}

// emptied demands that no pod is on a node.
func (s *scaling) emptied(t *testing.T, node string) {
	t.Helper()
	require.Empty(t, s.cluster.kubectl(t, "", "get", "pods", "-A", "--field-selector", "spec.nodeName="+node, "-o", "name"))
}
