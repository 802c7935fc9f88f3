package client

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadableIDsBecomeStableOnes(t *testing.T) {
	model := func() []map[string]any {
		return []map[string]any{
			{"?": map[string]any{"type": "C", "id": "cluster"}, "name": "cluster", "nodes": []any{map[string]any{"?": map[string]any{"type": "N"}}}},
			{"?": map[string]any{"type": "P", "id": "pod"}, "name": "pod", "on": "cluster", "list": []any{"cluster", "other"}},
			{"?": map[string]any{"type": "Q", "id": "0fc7ac48-3d4b-4f0e-8f2f-2f1f3f4f5f6f"}},
		}
	}
	one := StableIDs("e1", model())
	require.Equal(t, one, StableIDs("e1", model()), "the same environment and file give the same ids")
	require.NotEqual(t, one, StableIDs("e2", model()), "another environment gives others")

	header := func(object any) map[string]any { return object.(map[string]any)["?"].(map[string]any) }
	cluster, pod := one[0].(map[string]any), one[1].(map[string]any)
	id := header(cluster)["id"]
	require.Regexp(t, "^[0-9a-f]{32}$", id)
	require.Equal(t, id, pod["on"], "a reference follows")
	require.Equal(t, []any{id, "other"}, pod["list"])
	require.Equal(t, "cluster", cluster["name"], "a name is not a reference")
	require.Regexp(t, "^[0-9a-f]{32}$", header(cluster["nodes"].([]any)[0])["id"], "an object without an id gets one")
	require.Equal(t, "0fc7ac48-3d4b-4f0e-8f2f-2f1f3f4f5f6f", header(one[2])["id"], "an id that is one already stays")
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
