package client

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// expecting is a client of a server that knows the classes C, with nodes, and P, of whose properties only some are of objects.
func expecting(t *testing.T) *Client {
	object := `{"type": ["muranoObject", "null"], "muranoType": "C"}`
	return following(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/schemas/C":
			fmt.Fprint(w, `{"": {"type": "object", "properties": {"name": {"type": "string"}, "nodes": {"type": "array", "items": {"muranoType": "N"}}}}}`)
		case "/v1/schemas/P":
			fmt.Fprint(w, `{"": {"type": "object", "properties": {"on": `+object+`, "list": {"type": "array", "items": `+object+`}, "name": {"type": "string"},
				"certificate": {"type": "string"}, "any": {}, "byName": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": `+object+`},
				"pair": {"type": "array", "items": [{"type": "string"}, `+object+`], "additionalItems": `+object+`}}}}`)
		default:
			http.NotFound(w, r)
		}
	})
}

func TestReadableIDsBecomeStableOnes(t *testing.T) {
	model := func() []map[string]any {
		return []map[string]any{
			{"?": map[string]any{"type": "C", "id": "cluster"}, "name": "cluster", "nodes": []any{map[string]any{"?": map[string]any{"type": "N"}}}},
			{"?": map[string]any{"type": "P", "id": "pod"}, "name": "pod", "on": "cluster", "list": []any{"cluster", "other"},
				"certificate": "cluster", "any": map[string]any{"a": []any{"cluster"}}, "byName": map[string]any{"a": "cluster", "b": "cluster"},
				"pair": []any{"cluster", "cluster", "cluster"}, "none": "cluster"},
			{"?": map[string]any{"type": "Q", "id": "0fc7ac48-3d4b-4f0e-8f2f-2f1f3f4f5f6f"}},
			{"?": map[string]any{"type": "Unknown", "id": "last"}, "name": "cluster", "of": map[string]any{"a": "cluster"}, "in": map[string]any{"name": "cluster"}},
		}
	}
	c := expecting(t)
	stable := func(environment string) []any {
		list, err := c.Files().StableIDs(t.Context(), environment, model())
		require.NoError(t, err)
		return list
	}
	one := stable("e1")
	require.Equal(t, one, stable("e1"), "the same environment and file give the same ids")
	require.NotEqual(t, one, stable("e2"), "another environment gives others")
	file := model()
	for _, environment := range []string{"new demo", "e1"} { // a preview before it is made, and the deployment
		list, err := c.Files().StableIDs(t.Context(), environment, file)
		require.NoError(t, err)
		require.Equal(t, environment == "e1", reflect.DeepEqual(one, list), environment)
	}
	require.Equal(t, model(), file, "what was read stays as it is")

	header := func(object any) map[string]any { return object.(map[string]any)["?"].(map[string]any) }
	cluster, pod, unknown := one[0].(map[string]any), one[1].(map[string]any), one[3].(map[string]any)
	id := header(cluster)["id"]
	require.Regexp(t, "^[0-9a-f]{32}$", id)
	require.Equal(t, "cluster", cluster["name"], "a name is not a reference")
	require.Regexp(t, "^[0-9a-f]{32}$", header(cluster["nodes"].([]any)[0])["id"], "an object without an id gets one")
	require.Equal(t, "0fc7ac48-3d4b-4f0e-8f2f-2f1f3f4f5f6f", header(one[2])["id"], "an id that is one already stays")
	delete(pod, "?")
	require.Equal(t, map[string]any{"name": "pod", "on": id, "list": []any{id, "other"}, "certificate": "cluster", "any": map[string]any{"a": []any{"cluster"}},
		"byName": map[string]any{"a": "cluster", "b": id}, "pair": []any{"cluster", id, id}, "none": "cluster"}, pod, "a reference is where the class expects an object")
	delete(unknown, "?")
	require.Equal(t, map[string]any{"name": "cluster", "of": map[string]any{"a": id}, "in": map[string]any{"name": "cluster"}}, unknown,
		"what the class expects is not known")
}

func TestAnEnvironmentFileSaysWhatIsWrongWithIt(t *testing.T) {
	for name, test := range map[string]struct{ text, wanted string }{
		"no name":         {"applications: []", "no name"},
		"an unknown key":  {"name: a\napps: []", "apps"},
		"no type":         {"name: a\napplications: [{name: x}]", "applications[0]"},
		"no YAML":         {"name: [", "yaml"},
		"an empty header": {"name: a\napplications: [{\"?\": {}}]", "applications[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "environment.yaml")
			require.NoError(t, os.WriteFile(path, []byte(test.text), 0o600))
			_, err := ReadEnvironmentFile(path)
			require.ErrorContains(t, err, test.wanted)
			require.ErrorContains(t, err, path)
		})
	}
	file, err := ReadEnvironmentFile("../../test/environments/demo.yaml")
	require.NoError(t, err)
	require.Equal(t, "demo", file.Name)
	require.Len(t, file.Applications, 3)
}
