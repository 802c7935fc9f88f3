package api

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThingsUnderALabelAreTheProjects(t *testing.T) {
	s := newServer(t)
	path := "/burano/v1/applied/" + callers["{token:demo}"].ProjectID + "/web.1"
	require.Empty(t, field(s.call("demo", "", "GET", path, nil, 200), "things"))
	thing := func(kind, id, name string) map[string]any {
		return map[string]any{"kind": kind, "id": id, "name": name}
	}
	all := []any{thing("Environment", "a", "one"), thing("Package", "b", "two")}
	s.call("demo", "", "PUT", path, map[string]any{"things": append(all, all[0])}, 200)
	require.Equal(t, all, field(s.call("demo", "", "GET", path, nil, 200), "things"))
	s.call("demo", "", "PUT", path, map[string]any{"things": all[1:]}, 200)
	require.Equal(t, all[1:], field(s.call("demo", "", "GET", path, nil, 200), "things"))
	require.Empty(t, field(s.call("demo", "", "GET", path+".2", nil, 200), "things"), "each label has its own")
	s.call("other", "", "GET", path, nil, 403)
	s.call("admin", "", "PUT", path, map[string]any{"things": []any{}}, 403)
	for _, wrong := range []map[string]any{{}, {"things": []any{thing("Node", "a", "b")}}, {"things": []any{thing("Package", "", "b")}}} {
		s.call("demo", "", "PUT", path, wrong, 400)
	}
	s.call("demo", "", "GET", path+"%20", nil, 400)
	s.call("demo", "", "PUT", path, map[string]any{"things": []any{}}, 200)
	require.Empty(t, field(s.call("demo", "", "GET", path, nil, 200), "things"))
}
