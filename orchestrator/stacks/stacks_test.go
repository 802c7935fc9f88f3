package stacks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/task"
)

func TestNumbersOfJSONAreEqualToThoseOfCode(t *testing.T) {
	require.Equal(t, map[string]any{"port": int64(80), "rate": 0.5, "list": []any{int64(1)}},
		whole(map[string]any{"port": 80.0, "rate": 0.5, "list": []any{1.0}}))
	require.Equal(t, []any{int64(4), 0.5}, whole([]any{json.Number("4"), json.Number("0.5")}))
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

// keeping is a task, of a deletion, that keeps templates.
type keeping struct {
	task.Runtime
	kept []string
}

func (k *keeping) Model() *muranopl.Object { return nil }

func (k *keeping) SetSecret(_ context.Context, _ string, value []byte) error {
	k.kept = append(k.kept, string(value))
	return nil
}

func TestWhatIsTakenOutOfTheEnvironmentsStackIsKeptAtOnceAndWhatComesInBeforeItIsMade(t *testing.T) {
	runtime := &keeping{}
	stacks := &Templates{runtime: runtime}
	class := heatStackClass{stacks: stacks, own: &OwnStacks{First: &OwnStack{runtime: runtime}}}
	own := &Stack{isOwn: true, known: true}
	replace := func(prefix, template string) {
		t.Helper()
		with := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(template), &with))
		_, err := class.replaceInTemplate(t.Context(), own, muranopl.Call{Args: map[string]any{"prefix": []any{prefix}, "template": with}})
		require.NoError(t, err)
	}
	replace("a-", `{"resources": {"a-server": {"type": "x"}}, "outputs": {"a-address": {"value": "y"}}}`)
	replace("b-", `{"resources": {"b-server": {"type": "x"}}}`)
	replace("b-", `{"resources": {"b-server": {"type": "z"}}}`)
	require.Empty(t, runtime.kept)
	template, err := stacks.KeptTemplate(t.Context(), own)
	require.NoError(t, err)
	require.Contains(t, template["resources"], "b-server")
	require.Len(t, runtime.kept, 1)
	require.Contains(t, runtime.kept[0], `"b-server":{"type":"z"}`)
	replace("a-", `{"resources": {"a-server": {"type": "x"}}}`)
	require.Len(t, runtime.kept, 2)
	require.NotContains(t, runtime.kept[1], "a-address")
	replace("b-", `{"resources": {"b-port": {"type": "x"}}}`)
	require.Len(t, runtime.kept, 3)
	require.NotContains(t, runtime.kept[2], "b-server")
	replace("a-", `{}`)
	require.Len(t, runtime.kept, 4)
	require.NotContains(t, runtime.kept[3], "a-server")
	replace("a-", `{}`)
	require.Len(t, runtime.kept, 4, "it is out already")
}

func TestParametersThatAreNullAreLeftToTheTemplate(t *testing.T) {
	stack := &Stack{}
	_, err := setParameters(t.Context(), stack, muranopl.Call{Args: map[string]any{"parameters": map[string]any{"size": nil, "length": int64(9), "name": "", "on": false}}})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"length": int64(9), "name": "", "on": false}, stack.content.Parameters)
}
