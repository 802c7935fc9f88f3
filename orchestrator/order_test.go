package orchestrator

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheOrderOfNodesInAFileDecidesNothing(t *testing.T) {
	model := func(text string) (objects map[string]any) {
		require.NoError(t, json.Unmarshal([]byte(text), &objects))
		return objects
	}
	present := model(`{"services": [{"?": {"id": "c"}, "nodeCount": 2, "minionNodes": [{"?": {"id": "n1"}}, {"?": {"id": "n3"}}, {"?": {"id": "n2"}}],
		"masterCount": 1, "masterNodes": [{"?": {"id": "m2"}}], "minionGroups": [{"?": {"id": "g"}, "count": 1, "nodes": [{"?": {"id": "g1"}}, {"?": {"id": "g2"}}]}]}]}`)
	draft := model(`{"services": [{"?": {"id": "p"}, "nodes": ["x"], "count": 1}, {"?": {"id": "c"}, "nodeCount": 1, "minionNodes": [{"?": {"id": "n5"}}, {"?": {"id": "n4"}}, {"?": {"id": "n2"}}, {"?": {"id": "n3"}}, {"?": {"id": "n1"}}],
		"masterCount": 3, "masterNodes": [{"?": {"id": "m3"}}, {"?": {"id": "m2"}}], "minionGroups": [{"?": {"id": "g"}, "count": 1, "nodes": [{"?": {"id": "g2"}}, {"?": {"id": "g1"}}]}]}]}`)
	keepOrder(present, draft)
	require.Equal(t, model(`{"services": [{"?": {"id": "p"}, "nodes": ["x"], "count": 1}, {"?": {"id": "c"}, "nodeCount": 1, "minionNodes": [{"?": {"id": "n1"}}, {"?": {"id": "n3"}}, {"?": {"id": "n2"}}, {"?": {"id": "n5"}}, {"?": {"id": "n4"}}],
		"masterCount": 3, "masterNodes": [{"?": {"id": "m2"}}, {"?": {"id": "m3"}}], "minionGroups": [{"?": {"id": "g"}, "count": 1, "nodes": [{"?": {"id": "g1"}}, {"?": {"id": "g2"}}]}]}]}`), draft)
}
