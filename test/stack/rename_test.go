package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/native"
)

func TestAnotherNameOfANodeReplacesIt(t *testing.T) {
	w := newWorld(t)
	w.there = w.push(t, environment(t, demo))
	renamed := environment(t, demo)
	minion := clusterOf(renamed)["minionNodes"].([]any)[0].(map[string]any)["instance"].(map[string]any)
	require.Equal(t, "murano-kube-2", minion["name"])
	minion["name"] = "worker"

	natives, rehearse := native.Rehearsal(w, w.config)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source(t)), natives)
	root, start, problems := interpreter.Prepare(t.Context(), renamed)
	require.Empty(t, problems)
	require.NoError(t, start(t.Context()))
	foreseen, err := rehearse(t.Context(), interpreter, root)
	require.NoError(t, err)
	require.Equal(t, []string{"cluster demo-cluster: 1 node is replaced (a new one joins before the former one goes): murano-kube-2, then called worker-r2"}, foreseen.Effects)

	require.ErrorContains(t, w.deploy(t, renamed), "tells no address", "this Heat tells nothing of servers")
	require.Empty(t, w.asked, "the server that is there keeps its name until another one takes its place")
	minion["name"] = "murano-gateway-1"
	require.ErrorContains(t, w.fail(t, renamed), "two servers are called murano-gateway-1")
}
