package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestADraftThatCameToNothingKeepsTheActionsOfWhatWasThere(t *testing.T) {
	object := func(id, class string, actions any, inner ...any) map[string]any {
		header := map[string]any{"id": id, "type": class}
		if actions != nil {
			header["_actions"] = actions
		}
		return map[string]any{"?": header, "parts": append([]any{}, inner...)}
	}
	offers := map[string]any{"a_go": map[string]any{"name": "go", "enabled": true}}
	former := map[string]any{"?": map[string]any{"id": "e", "type": "io.murano.Environment"}, "services": []any{
		object("a", "org.A/1.0.0@org.A", offers, object("b", "org.B/1.0.0@org.B", map[string]any{"b_go": 1})), object("c", "org.C", map[string]any{"c_go": 1}), "text"}}
	draft := map[string]any{"services": []any{object("a", "org.A", nil, object("b", "org.B", nil)), object("c", "org.Other", nil), object("new", "org.A", nil), "text", 1}}
	unchanged := map[string]any{"services": []any{object("a", "org.A", nil, object("b", "org.B", nil)), object("c", "org.Other", nil), object("new", "org.A", nil), "text", 1}}
	require.Equal(t, map[string]any{"services": []any{object("a", "org.A", offers, object("b", "org.B", map[string]any{"b_go": 1})), object("c", "org.Other", nil), object("new", "org.A", nil), "text", 1}},
		withActions(draft, former))
	require.Equal(t, unchanged, draft, "the task's model stays as it is")
	require.Equal(t, draft, withActions(draft, nil))
}
