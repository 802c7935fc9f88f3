package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClassSaysWhatItsActionsTake(t *testing.T) {
	s := newServer(t)
	answer := s.call("demo", "", "GET", "/burano/v1/classes/org.golden.Hello/actions", nil, 200)
	actions := map[string]any{}
	for _, action := range field(answer, "actions").([]any) {
		actions[field(action, "name").(string)] = action
	}
	require.NotContains(t, actions, "deploy", "it is no action")
	shout := actions["shout"]
	require.Equal(t, false, field(shout, "static"))
	require.Nil(t, field(shout, "confirm"))
	require.Equal(t, map[string]any{"type": "string", "default": "!", "formIndex": 0.0}, field(shout, "arguments", "properties", "suffix"))
	require.Equal(t, map[string]any{}, field(actions["boom"], "arguments", "properties"))

	s.call("demo", "", "GET", "/burano/v1/classes/org.golden.Hello/actions?classVersion=7", nil, 404)
	s.call("demo", "", "GET", "/burano/v1/classes/org.golden.Hello/actions?packageName=nothing", nil, 404)
	s.call("demo", "", "GET", "/burano/v1/classes/org.golden.Nothing/actions", nil, 404)
}
