package client

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/web/client"
)

func TestChangedValuesAreShownByTheirDifferencesAndNames(t *testing.T) {
	names := map[string]string{"id1": "kube-2", "id2": "kube-3", "id3": "kube-4", "v1": "DockerPersistentVolume", "v2": "DockerHostVolume"}
	class := func(name string, standard any) any { return map[string]any{"name": name, "default": standard} }
	for title, test := range map[string]struct {
		before, after any
		lines         []string
	}{
		"a number":                    {1.0, 2.0, []string{"p: 1 → 2"}},
		"another object":              {"id1", "id2", []string{"p: kube-2 → kube-3"}},
		"a map with an object more":   {map[string]any{"/usr": "v2"}, map[string]any{"/usr": "v2", "/data": "v1"}, []string{"p./data: null → DockerPersistentVolume"}},
		"a map whose key is renamed":  {map[string]any{"/log": "v1"}, map[string]any{"/var/log": "v1"}, []string{"p./log: DockerPersistentVolume → null", "p./var/log: null → DockerPersistentVolume"}},
		"a longer list of objects":    {[]any{"id1", "id2"}, []any{"id3", "id1", "id2"}, []string{"p: + kube-4"}},
		"a shorter list of objects":   {[]any{"id1", "id2"}, []any{"id2"}, []string{"p: - kube-2"}},
		"another order":               {[]any{"id1", "id2"}, []any{"id2", "id1"}, []string{"p: the same in another order"}},
		"an id that is used twice":    {[]any{"id1", "id2"}, []any{"id1", "id1"}, []string{`p: ["kube-2","kube-3"] → ["kube-2","kube-2"]`}},
		"a list of texts":             {[]any{"-c"}, []any{"-ec", "x"}, []string{`p: ["-c"] → ["-ec","x"]`}},
		"maps with names":             {[]any{class("a", true)}, []any{class("b", nil), class("a", nil)}, []string{"p[a].default: true → null", `p[b]: null → {"default":null,"name":"b"}`}},
		"nothing":                     {nil, map[string]any{}, []string{"p: null → {}"}},
		"a secret":                    {"*** SANITIZED ***", "*** SANITIZED ***", []string{"p: (secret, changed)"}},
		"a secret in a map":           {map[string]any{"a": "*** SANITIZED ***"}, map[string]any{"a": "*** SANITIZED ***"}, []string{"p: (secret, changed)"}},
		"a value that is a new thing": {nil, map[string]any{"node": "id1"}, []string{`p: null → {"node":"kube-2"}`}},
	} {
		require.Equal(t, test.lines, changedLines(client.Value{Name: "p", Before: test.before, After: test.after}, names), title)
	}
	require.Equal(t, []string{"flavor: 1 → 2 [node by node]"}, changedLines(client.Value{Name: "flavor", Before: 1.0, After: 2.0, Effect: "nodeByNode"}, names))
}
