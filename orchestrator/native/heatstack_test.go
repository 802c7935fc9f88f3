package native

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNumbersOfJSONAreEqualToThoseOfCode(t *testing.T) {
	require.Equal(t, map[string]any{"port": int64(80), "rate": 0.5, "list": []any{int64(1)}},
		whole(map[string]any{"port": 80.0, "rate": 0.5, "list": []any{1.0}}))
}

func TestGroupsInWhichNoServerIsAreLeftOut(t *testing.T) {
	var template map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"resources": {
		"servers": {}, "group-used": {}, "group-idle": {}, "network": {},
		"one-port": {"properties": {"security_groups": [{"get_resource": "group-used"}]}}
	}, "outputs": {}}`), &template))
	require.Equal(t, map[string]any{}, withoutIdleGroups(map[string]any{"resources": map[string]any{"servers": 1}})["resources"])
	require.Equal(t, []string{"group-used", "network", "one-port"}, slices.Sorted(maps.Keys(withoutIdleGroups(template)["resources"].(map[string]any))))
	require.Len(t, template["resources"], 5, "what was given stays")
}
