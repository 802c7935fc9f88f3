package muranopl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

func TestADraftWithMistakesHasTheValuesThatItsClassesMakeOfIt(t *testing.T) {
	model := parse(t, environment(`{"?": {"type": "org.example.Cluster", "id": "c1"}, "name": "kube", "nodeCount": 0, "nodeCounts": 3, "minionNodes": [
		{"?": {"type": "org.example.Node", "id": "n0"}, "instance": {"?": {"type": "org.example.Instance", "id": "i0"}, "name": "a", "flavor": 7, "networks": {"useEnvironment": false}}}]}`,
		pod, `{"?": {"type": "org.example.Pod", "id": "p1"}, "name": "again"}`, `{"?": {"type": "org.example.Counted", "id": "x1"}}`))
	catalog := shop(t).with("org.example.Counted", "Name: org.example.Counted\nExtends: io.murano.Application\nProperties:\n"+
		"  count: {Contract: $.int(), Usage: InOut, Default: 3}\n  size: {Contract: $.int(), Default: 3}\n")
	draft := muranopl.LoadStrictly(t.Context(), muranopl.NewClasses(catalog), model)
	require.Nil(t, draft.Root)
	require.Len(t, draft.Unknown, 1)
	require.Len(t, draft.Problems, 2, "nodeCount, and an id that is taken")
	made := draft.Model(1 << 20)["applications"].([]any)
	cluster := made[0].(map[string]any)
	require.Equal(t, int64(0), cluster["nodeCount"], "a mistake stands as it is written")
	require.Equal(t, int64(3), cluster["nodeCounts"], "and so does an unknown key")
	require.Equal(t, true, cluster["debug"], "a default")
	require.NotContains(t, cluster, "maxCount", "a default that needs a value with a mistake")
	instance := cluster["minionNodes"].([]any)[0].(map[string]any)["instance"].(map[string]any)
	require.Equal(t, "7", instance["flavor"], "a converted value")
	require.Equal(t, map[string]any{"useEnvironment": false, "custom": []any{}}, instance["networks"], "a default within a value")
	require.Equal(t, map[string]any{"?": map[string]any{"type": "org.example.Pod", "id": "p1"}, "name": "web", "cluster": "c1", "replicas": int64(1)}, made[1])
	require.Equal(t, map[string]any{"?": map[string]any{"type": "org.example.Pod", "id": "p1"}, "name": "again"}, made[2], "it is not the object of this id")
	require.Equal(t, map[string]any{"?": map[string]any{"type": "org.example.Counted", "id": "x1"}, "size": int64(3)}, made[3], "code may have set count since")
	require.Equal(t, model, draft.Model(100), "its classes make too much of it")
}
