package native

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTemplatesAreMergedKeyByKeyAndListsWithoutDoubles(t *testing.T) {
	for name, try := range map[string]struct{ one, other, made string }{
		"what the second has counts":        {`{"a": {"x": 1, "y": 2}}`, `{"a": {"y": 3}, "b": 4}`, `{"a": {"x": 1, "y": 3}, "b": 4}`},
		"lists are united":                  {`{"a": [1, {"x": 2}]}`, `{"a": [{"x": 2}, 3]}`, `{"a": [1, {"x": 2}, 3]}`},
		"another kind takes the place":      {`{"a": [1]}`, `{"a": {"x": 2}}`, `{"a": {"x": 2}}`},
		"the newer version counts":          {`{"heat_template_version": "2016-10-14"}`, `{"heat_template_version": "2013-05-23"}`, `{"heat_template_version": "2016-10-14"}`},
		"names of versions are after dates": {`{"heat_template_version": "2016-10-14"}`, `{"heat_template_version": "rocky"}`, `{"heat_template_version": "rocky"}`},
		"one alone says the version":        {`{}`, `{"heat_template_version": "2013-05-23"}`, `{"heat_template_version": "2013-05-23"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var one, other, made map[string]any
			require.NoError(t, json.Unmarshal([]byte(try.one), &one))
			require.NoError(t, json.Unmarshal([]byte(try.other), &other))
			require.NoError(t, json.Unmarshal([]byte(try.made), &made))
			require.Equal(t, made, mergeTemplates(one, other))
			unchanged, err := json.Marshal(one)
			require.NoError(t, err)
			require.JSONEq(t, try.one, string(unchanged))
		})
	}
	require.Equal(t, map[string]any{"port": int64(80), "rate": 0.5, "list": []any{int64(1)}},
		whole(map[string]any{"port": 80.0, "rate": 0.5, "list": []any{1.0}}), "numbers of JSON are equal to those of code")
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
