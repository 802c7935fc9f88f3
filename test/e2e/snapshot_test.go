package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAClusterIsBackFromItsWorstDay loses all servers behind Burano's back and restores the cluster from a snapshot. Then it loses the
// majority of etcd, with the master, and goes on with the remaining member. Snapshots are in the project's object store.
func TestAClusterIsBackFromItsWorstDay(t *testing.T) {
	l := start(t)
	demo := l.user(t, "burano-demo")
	found := inventory(t, demo)
	l.stop(t)
	l.launch(t, "--snapshot-container", "burano-snapshots")
	l.healthy(t)
	l.run(t, l.as("burano-demo"), "burano", "package", "import", "test/packages/io.burano.demo.Hello")
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	l.deleteIfFailed(t, "scaling")
	environment := environmentNamed(t, demo, "scaling")
	s := &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	where := endpointOf(t, environment)
	bothReplicasAnswer(t, l, where)
	keeps := func(name string) {
		s.cluster.kubectl(t, "", "create", "configmap", name, "--from-literal=text=of a year")
		s.cluster.kubectl(t, "", "create", "secret", "generic", name, "--from-literal=password=of a year")
	}
	back := func(name string) {
		t.Helper()
		require.Equal(t, "of a year", s.cluster.kubectl(t, "", "get", "configmap", name, "-o", "jsonpath={.data.text}"))
		require.Equal(t, "b2YgYSB5ZWFy", s.cluster.kubectl(t, "", "get", "secret", name, "-o", "jsonpath={.data.password}"))
		l.eventually(t, time.Minute, "the application answers", func() error { _, err := get("http://" + where); return err })
		bothReplicasAnswer(t, l, where)
		s.find(t)
		s.holds(t, []string{"murano-kube-2"}, []string{"murano-gateway-1"})
	}

	keeps("kept")
	// Only the network of pods still has the names of a former gateway or master.
	calico := func(command string) string {
		output, err := s.cluster.on("murano-kube-1", "/bin/bash", "-c", "set -ea; . /etc/calico/node.env; /opt/burano/bin/calicoctl "+command)
		require.NoError(t, err, output)
		return output
	}
	calico(`apply --allow-version-mismatch -f - <<<'{"apiVersion": "projectcalico.org/v3", "kind": "Node", "metadata": {"name": "former-gateway"}, "spec": {"bgp": {"ipv4Address": "10.20.0.250/24"}}}'`)
	began := time.Now()
	taken := l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "create", "scaling", "--reason", "before the worst day")
	t.Logf("%s(%.1f s)", taken, time.Since(began).Seconds())
	keeps("too-late")
	s.signIn(t)
	for _, name := range []string{"murano-kube-1", "murano-kube-2", "murano-gateway-1"} {
		s.deleteServer(t, name)
	}
	said, err := l.try(l.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "scaling")
	require.Error(t, err)
	require.Contains(t, said, "What Kubernetes was told since is lost")
	began = time.Now()
	log := l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "scaling", "--yes", "--follow")
	t.Logf("back from the snapshot in %.1f s:\n%s", time.Since(began).Seconds(), log)
	back("kept")
	require.NotContains(t, s.cluster.kubectl(t, "", "get", "configmaps", "-o", "name"), "too-late")
	require.NotContains(t, calico("get nodes --allow-version-mismatch"), "former-gateway")

	keeps("later")
	for _, name := range []string{"murano-kube-1", "murano-gateway-1"} {
		s.deleteServer(t, name)
	}
	began = time.Now()
	log = l.run(t, l.as("burano-demo"), "burano", "action", "call", "scaling", "scaling-cluster", "recoverQuorum", "--follow")
	t.Logf("a majority again in %.1f s:\n%s", time.Since(began).Seconds(), log)
	back("kept")
	back("later")
	require.Contains(t, l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "list", "scaling"), "best etcd member that was left, on murano-kube-2")

	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	list := l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "list")
	require.GreaterOrEqual(t, strings.Count(list, "scaling (deleted)"), 2, list) // there may be a scheduled one, too
	asBefore(t, demo, found)

	// The environment is made again, with keys of its own. `make soak` gives it the content of the former one here, too.
	var snapshots []struct{ ID, Reason, Container string }
	require.NoError(t, json.Unmarshal([]byte(l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "list", "-o", "json")), &snapshots))
	i := slices.IndexFunc(snapshots, func(one struct{ ID, Reason, Container string }) bool { return one.Reason == "before the worst day" })
	require.GreaterOrEqual(t, i, 0)
	for _, one := range snapshots {
		require.Contains(t, one.Container, "/burano-snapshots", one.Reason)
	}
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	environment = environmentNamed(t, demo, "scaling")
	s = &scaling{lab: l, user: demo, cluster: l.clusterOf(t, demo, environment), environment: environment["id"].(string)}
	where = endpointOf(t, environment)
	restore := func() {
		t.Helper()
		log := l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "restore", "scaling", "--snapshot", snapshots[i].ID, "--yes", "--follow")
		t.Logf("back in another environment:\n%s", log)
		back("kept")
	}
	if soaking() {
		restore()
	}

	// A cluster that a user has destroyed starts empty when it is put back. Snapshots of the former environment are there.
	nothing := filepath.Join(t.TempDir(), "nothing.yaml")
	require.NoError(t, os.WriteFile(nothing, []byte("name: scaling\napplications: []\n"), 0o600))
	l.run(t, l.as("burano-demo"), "burano", "deploy", nothing, "--allow-destroy", "scaling-cluster", "--follow")
	l.run(t, l.as("burano-demo"), "burano", "deploy", "test/e2e/testdata/scaling.yaml", "--follow")
	environment = environmentNamed(t, demo, "scaling")
	s.cluster, where = l.clusterOf(t, demo, environment), endpointOf(t, environment)
	bothReplicasAnswer(t, l, where)
	require.NotContains(t, s.cluster.kubectl(t, "", "get", "configmaps", "-o", "name"), "kept")
	restore()
	for _, one := range snapshots {
		l.run(t, l.as("burano-demo"), "burano", "cluster", "snapshot", "delete", one.ID)
	}
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "scaling")
	asBefore(t, demo, found)
}
