package client

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnActionIsFoundByTheNameOrIDOfItsObject(t *testing.T) {
	environment := Environment{Name: "demo", Services: []map[string]any{
		{"?": map[string]any{"id": "c1", "_actions": map[string]any{
			"c1_up":   map[string]any{"name": "up", "title": "Add a node", "enabled": true},
			"c1_down": map[string]any{"name": "down", "enabled": false}}}, "name": "cluster",
			"parts": []any{map[string]any{"?": map[string]any{"id": "p1", "name": "part", "_actions": map[string]any{"p1_up": map[string]any{"name": "up"}}}}}},
		{"?": map[string]any{"id": "c2", "_actions": map[string]any{"c2_up": map[string]any{"name": "up"}}}, "name": "twin"},
		{"?": map[string]any{"id": "c3", "_actions": map[string]any{"c3_up": map[string]any{"name": "up"}}}, "name": "twin"},
	}}
	require.Len(t, environment.Actions(), 5)
	for object, id := range map[string]string{"cluster": "c1_up", "c1": "c1_up", "part": "p1_up", "c3": "c3_up"} {
		found, err := environment.Action(object, "up")
		require.NoError(t, err)
		require.Equal(t, id, found.ID)
	}
	_, err := environment.Action("twin", "up")
	require.ErrorContains(t, err, "several")
	_, err = environment.Action("cluster", "sideways")
	require.ErrorContains(t, err, "down, up")
	_, err = environment.Action("nobody", "up")
	require.ErrorContains(t, err, "burano action list demo")
}
