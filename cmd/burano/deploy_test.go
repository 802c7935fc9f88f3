package main

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
	one := withStableIDs("e1", model())
	require.Equal(t, one, withStableIDs("e1", model()), "the same environment and file give the same ids")
	require.NotEqual(t, one, withStableIDs("e2", model()), "another environment gives others")

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
			_, err := readEnvironmentFile(path)
			require.ErrorContains(t, err, test.wanted)
			require.ErrorContains(t, err, path)
		})
	}
	file, err := readEnvironmentFile("../../test/environments/demo.yaml")
	require.NoError(t, err)
	require.Equal(t, "demo", file.Name)
	require.Len(t, file.Applications, 3)
}

func TestMessagesAreReadOutOfEveryShapeOfError(t *testing.T) {
	for body, wanted := range map[string]string{
		`{"message":"Environment with id f not found<br /><br />\n\n\n","code":"404 Not Found","title":"Not Found"}`:   "Environment with id f not found",
		`{"error":{"code":401,"title":"Unauthorized","message":"The request you have made requires authentication."}}`: "The request you have made requires authentication.",
		`{"explanation":"Bad","error":{"message":"","type":"X"}}`:                                                      "Bad",
		"404 Not Found\n\nThe resource could not be found.\n\n   ":                                                     "404 Not Found\n\nThe resource could not be found.",
		``: "the server gave no reason",
	} {
		require.Equal(t, wanted, message([]byte(body)))
	}
}

func TestAClusterIsFoundByItsNameOrBecauseItIsTheOnlyOne(t *testing.T) {
	service := func(kind, id, name string) map[string]any {
		return map[string]any{"?": map[string]any{"type": kind, "id": id}, "name": name}
	}
	environment := environmentRow{Name: "e", Services: []map[string]any{
		service(clusterClass+"/0.0.0@x", "1", "a"), service("other", "2", "b"), service(clusterClass, "3", "c"),
	}}
	id, err := environment.cluster("c")
	require.NoError(t, err)
	require.Equal(t, "3", id)
	id, err = environment.cluster("1")
	require.NoError(t, err)
	require.Equal(t, "1", id)
	_, err = environment.cluster("")
	require.ErrorContains(t, err, "a, c")
	_, err = environment.cluster("b")
	require.ErrorContains(t, err, `no cluster "b"`)
}
