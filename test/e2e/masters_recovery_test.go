package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestThreeMastersComeBack repeats the cases of one master with three, which alone run etcd. Authorities and keys are rotated; all servers are lost
// and come back from a snapshot. Two masters are lost and the cluster goes on with the third one; a master is replaced without room for another one.
// There are five for a while, and they stay until the first one, which was lost, is back. It is a part of `make soak`.
func TestThreeMastersComeBack(t *testing.T) {
	soakOnly(t, "it is a part of make soak")
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.deleteIfFailed(t, "masters")
	text, err := os.ReadFile(filepath.Join(l.root, "test/e2e/testdata/masters.yaml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "masters.yaml")
	deploy := func(counts string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(text), "    nodeCount: 1", counts+"    nodeCount: 1", 1)), 0o600))
		l.run(t, l.as("burano-demo"), "burano", "deploy", file, "--follow")
	}
	deploy("    masterCount: 3\n    etcdNodes: masters\n")
	environment := environmentNamed(t, demo, "masters")
	s := &scaling{lab: l, user: demo, environment: environment["id"].(string), further: []string{"murano-kube-1-m2", "murano-kube-1-m3"}, voting: 3}
	holds := func() {
		t.Helper()
		s.cluster = l.clusterOf(t, demo, environment)
		s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
		require.NoError(t, s.allMembersAnswer())
		where := endpointOf(t, environmentNamed(t, demo, "masters"))
		l.eventually(t, time.Minute, "the application answers", func() error { _, err := get("http://" + where); return err })
	}
	kept := func() {
		t.Helper()
		require.Equal(t, "b2YgYSB5ZWFy", s.cluster.kubectl(t, "", "get", "secret", "kept", "-o", "jsonpath={.data.password}"))
	}
	lose := func(names ...string) {
		t.Helper()
		s.find(t)
		for _, name := range names {
			s.deleteServer(t, name)
		}
	}
	holds()
	rotated(t, l, demo, environment)
	holds()

	s.cluster.kubectl(t, "", "create", "secret", "generic", "kept", "--from-literal=password=of a year")
	l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "create", "masters", "--reason", "before the worst day")
	s.cluster.kubectl(t, "", "create", "configmap", "too-late")
	lose("murano-kube-1", "murano-kube-1-m2", "murano-kube-1-m3", "murano-kube-2", "murano-gateway-1")
	began := time.Now()
	l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "masters", "--yes", "--follow")
	t.Logf("back from the snapshot in %.1f s", time.Since(began).Seconds())
	holds()
	kept()
	require.NotContains(t, s.cluster.kubectl(t, "", "get", "configmaps", "-o", "name"), "too-late")

	s.cluster.kubectl(t, "", "create", "configmap", "later")
	lose("murano-kube-1", "murano-kube-1-m3")
	began = time.Now()
	l.run(t, l.as("burano-demo"), "burano", "action", "call", "masters", "scaling-cluster", "recoverQuorum", "--follow")
	t.Logf("a majority again in %.1f s", time.Since(began).Seconds())
	holds()
	kept()
	s.cluster.kubectl(t, "", "get", "configmap", "later")

	deploy("    surge: 0\n    etcdNodes: masters\n")
	s.act(t, "scaling-cluster", "replaceNode", map[string]any{"node": "murano-kube-1"})
	s.master = "murano-kube-1-r2"
	holds()
	kept()

	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 5})
	s.further, s.voting = []string{"murano-kube-1-m2", "murano-kube-1-m3", "murano-kube-1-m4", "murano-kube-1-m5"}, 5
	holds()
	lose(s.master)
	result, _ := s.call(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 1})
	require.Equal(t, true, result["isException"], "the others stay while the first one is gone")
	require.Contains(t, result["result"].(map[string]any)["message"], "Nova does not know "+s.master+" any more, which is to stay")
	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 5})
	holds()
	s.act(t, "scaling-cluster", "scale", map[string]any{"group": "masters", "count": 1})
	s.further, s.voting = nil, 0 // from three masters on, etcd runs on masters alone
	holds()
	kept()
	s.cluster.kubectl(t, "", "get", "configmap", "later")
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "masters")
	asBefore(t, demo, found)
}
