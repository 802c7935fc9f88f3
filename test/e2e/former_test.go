package e2e

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// formerVariable is the program of a former version; `make test-former` builds it.
const formerVariable = "BURANO_FORMER"

// TestAClusterOfTheFormerVersionGoesOn deploys a cluster and an application with a volume with a former version's server and client. Today's server then takes
// over that version's database, and today's client deploys the same file, with and without edits: no server and no claim is replaced. The cluster grows, shrinks
// and is deleted by today's version.
func TestAClusterOfTheFormerVersionGoesOn(t *testing.T) {
	former := os.Getenv(formerVariable)
	if former == "" {
		t.Skip(formerVariable + " is the program of a former version: `make test-former` builds it")
	}
	l := startWith(t, func(*lab) string { return former })
	found := inventory(t, l.user(t, "burano-demo"))
	e := newEdits(t, l)
	byFormer := exec.Command(former, "deploy", e.file, "--follow")
	byFormer.Env = append(os.Environ(), l.as("burano-demo")...)
	output, err := byFormer.CombinedOutput()
	require.NoError(t, err, string(output))
	e.deployed(t)
	e.mark(t)

	l.stop(t)
	l.serves = l.program("burano")
	l.launch(t)
	l.healthy(t)
	e.newActions(t)
	require.Contains(t, e.preview(t), "nothing would be added, changed or removed")
	e.deploy(t)
	e.keeps(t)
	e.reorder(t)
	require.Empty(t, e.removed(t), "another order removes nothing")
	e.deploy(t)
	e.keeps(t)
	e.edit(t, "    name: store\n", "    name: shop\n")
	e.pod = "shop"
	e.deploy(t)
	e.keeps(t)

	environment := environmentNamed(t, e.demo, "edits")
	s := &scaling{lab: l, user: e.demo, cluster: e.cluster, environment: environment["id"].(string)}
	s.act(t, "edits-cluster", "scaleNodesUp", map[string]any{"count": 1})
	require.Len(t, l.clusterOf(t, e.demo, environment).servers, len(e.servers)+1)
	s.act(t, "edits-cluster", "scaleNodesDown", map[string]any{"count": 1})
	e.keeps(t)
	l.run(t, l.as("burano-demo"), "burano", "environment", "delete", "--yes", "edits")
	asBefore(t, e.demo, found)
}

// newActions calls actions that the former version does not have, on its cluster as it is: its stored model does not list them.
func (e *edits) newActions(t *testing.T) {
	burano := func(args ...string) {
		t.Helper()
		e.lab.run(t, e.lab.as("burano-demo"), "burano", args...)
	}
	environment := environmentNamed(t, e.demo, "edits")
	burano("cluster", "scale", "edits", "minions", "--count", "2", "--follow")
	require.Len(t, e.lab.clusterOf(t, e.demo, environment).servers, len(e.servers)+1)
	burano("cluster", "scale", "edits", "minions", "--count", "1", "--follow")
	burano("node", "label", "edits", "murano-kube-2", "disk=fast", "--follow")
	require.Equal(t, "fast", e.cluster.kubectl(t, "", "get", "node", "murano-kube-2", "-o", "jsonpath={.metadata.labels.disk}"))
	burano("node", "label", "edits", "murano-kube-2", "disk-", "--follow")
	burano("cluster", "rotate", "keys", "edits", "--yes", "--follow")
	e.keeps(t)
}
