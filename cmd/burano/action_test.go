package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnActionIsFoundByTheNameOrIDOfItsObject(t *testing.T) {
	environment := environmentRow{Name: "demo", Services: []map[string]any{
		{"?": map[string]any{"id": "c1", "_actions": map[string]any{
			"c1_up":   map[string]any{"name": "up", "title": "Add a node", "enabled": true},
			"c1_down": map[string]any{"name": "down", "enabled": false}}}, "name": "cluster",
			"parts": []any{map[string]any{"?": map[string]any{"id": "p1", "name": "part", "_actions": map[string]any{"p1_up": map[string]any{"name": "up"}}}}}},
		{"?": map[string]any{"id": "c2", "_actions": map[string]any{"c2_up": map[string]any{"name": "up"}}}, "name": "twin"},
		{"?": map[string]any{"id": "c3", "_actions": map[string]any{"c3_up": map[string]any{"name": "up"}}}, "name": "twin"},
	}}
	require.Len(t, environment.actions(), 5)
	for object, id := range map[string]string{"cluster": "c1_up", "c1": "c1_up", "part": "p1_up", "c3": "c3_up"} {
		found, err := environment.action(object, "up")
		require.NoError(t, err)
		require.Equal(t, id, found.ID)
	}
	_, err := environment.action("twin", "up")
	require.ErrorContains(t, err, "several")
	_, err = environment.action("cluster", "sideways")
	require.ErrorContains(t, err, "down, up")
	_, err = environment.action("nobody", "up")
	require.ErrorContains(t, err, "burano action list demo")
}

func TestArgumentsAreJSONWhereTheyCan(t *testing.T) {
	arguments, err := actionArguments([]string{"count=2", "node=murano-kube-2", `text="2"`, "list=[1, 2]", "empty=", "equals=a=b", "version=1.2.3", "no=null"})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"count": json.Number("2"), "node": "murano-kube-2", "text": "2", "list": []any{json.Number("1"), json.Number("2")},
		"empty": "", "equals": "a=b", "version": "1.2.3", "no": nil}, arguments)
	for _, wrong := range [][]string{{"count"}, {"=2"}, {"a=1", "a=2"}} {
		_, err := actionArguments(wrong)
		require.Error(t, err)
	}
}
