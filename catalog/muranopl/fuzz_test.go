package muranopl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/burano/burano/catalog/muranopl"
)

func splitWords(text string) []string { return strings.Fields(text) }

// Whatever is sent as a model, loading it gives either objects or problems.
func FuzzLoadNeverPanics(f *testing.F) {
	f.Add(environment(cluster, pod))
	f.Add(environment(`{"?": {"type": "org.example.Circle", "id": "x"}}`, `"x"`, `{"?": 1}`))
	f.Add(`{"?": {"type": "io.murano.Environment"}, "applications": {"org.example.Pod": {"cluster": "c"}, "id": 5}}`)
	f.Add(`{"?": "io.murano.Environment", "name": [], "applications": "env"}`)
	source := shop(f)
	f.Fuzz(func(t *testing.T, text string) {
		var model map[string]any
		if json.Unmarshal([]byte(text), &model) != nil {
			return
		}
		root, problems := muranopl.Load(t.Context(), muranopl.NewClasses(source), model)
		require.True(t, (root == nil) == (len(problems) > 0))
		for _, p := range problems {
			require.NotEmpty(t, p.Error())
		}
		if root != nil {
			_, err := json.Marshal(muranopl.Save(root))
			require.NoError(t, err)
		}
	})
}

func TestLoadNeverPanicsOnAnyValues(t *testing.T) {
	source := shop(t)
	types := rapid.SampledFrom([]string{"io.murano.Environment", "org.example.Pod", "org.example.Cluster", "org.example.Node",
		"org.example.Instance", "org.example.Everything", "org.example.Circle", "nothing", ""})
	ids := rapid.SampledFrom([]string{"a", "b", "c", ""})
	keys := rapid.SampledFrom([]string{"name", "applications", "cluster", "minionNodes", "instance", "nodeCount", "flavor", "node", "peer",
		"list", "any", "anyMap", "blueprint", "networks", "custom", "org.example.Node", "id"})
	var value *rapid.Generator[any]
	value = rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Just[any](nil), rapid.Map(rapid.Bool(), func(b bool) any { return b }), rapid.Map(rapid.Float64(), func(f float64) any { return f }),
			rapid.Map(ids, func(s string) any { return s }),
			rapid.Map(rapid.SliceOfN(value, 0, 3), func(l []any) any { return l }),
			rapid.Custom(func(t *rapid.T) any {
				model := rapid.MapOfN(keys, value, 0, 4).Draw(t, "properties")
				if rapid.Bool().Draw(t, "object") {
					model["?"] = map[string]any{"type": types.Draw(t, "type"), "id": ids.Draw(t, "id")}
				}
				return model
			}))
	})
	rapid.Check(t, func(rt *rapid.T) {
		model := map[string]any{"?": map[string]any{"type": "io.murano.Environment", "id": "env"}, "name": "x",
			"applications": rapid.SliceOfN(value, 0, 4).Draw(rt, "applications")}
		root, problems := muranopl.Load(t.Context(), muranopl.NewClasses(source), model)
		require.True(rt, (root == nil) == (len(problems) > 0))
	})
}

func TestSavingWhatWasLoadedAndLoadingItAgainIsTheSame(t *testing.T) {
	source := shop(t)
	words := rapid.StringMatching(`[a-z]{1,6}`)
	rapid.Check(t, func(rt *rapid.T) {
		var applications []string
		clusters := rapid.IntRange(1, 3).Draw(rt, "clusters")
		for c := range clusters {
			var nodes []string
			for n := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
				nodes = append(nodes, fmt.Sprintf(`{"?": {"type": "org.example.%s", "id": "n%d-%d"}, "instance": {"?": {"type": "org.example.Instance", "id": "i%d-%d", "_x": [1]}, "name": %q, "flavor": %q}}`,
					rapid.SampledFrom([]string{"Node", "GatewayNode"}).Draw(rt, "class"), c, n, c, n, words.Draw(rt, "name"), words.Draw(rt, "flavor")))
			}
			labels, _ := json.Marshal(rapid.MapOf(words, words).Draw(rt, "labels"))
			applications = append(applications, fmt.Sprintf(`{"?": {"type": "org.example.Cluster", "id": "c%d", "name": %q}, "name": %q, "nodeCount": %d, "minionNodes": [%s], "labels": %s}`,
				c, words.Draw(rt, "title"), words.Draw(rt, "name"), rapid.IntRange(1, 9).Draw(rt, "count"), strings.Join(nodes, ","), labels))
		}
		for p := range rapid.IntRange(0, 3).Draw(rt, "pods") {
			applications = append(applications, fmt.Sprintf(`{"?": {"type": "org.example.Pod", "id": "p%d"}, "name": "pod", "cluster": "c%d"}`, p, rapid.IntRange(0, clusters-1).Draw(rt, "cluster")))
		}
		text := environment(rapid.Permutation(applications).Draw(rt, "order")...)
		once := saved(rt, source, text)
		require.Equal(rt, once, saved(rt, source, once))
		var given, kept map[string]any
		require.NoError(rt, json.Unmarshal([]byte(text), &given))
		require.NoError(rt, json.Unmarshal([]byte(once), &kept))
		require.Equal(rt, given, withoutAdded(given, kept), "what was given is kept")
	})
}

func saved(t *rapid.T, source testSource, text string) string {
	var model map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &model))
	root, problems := muranopl.Load(t.Context(), muranopl.NewClasses(source), model)
	require.Empty(t, problems)
	written, err := json.Marshal(muranopl.Save(root))
	require.NoError(t, err)
	return string(written)
}

// withoutAdded removes from kept the additions to given: defaults, actions, versions in types.
func withoutAdded(given, kept any) any {
	switch g := given.(type) {
	case map[string]any:
		k, ok := kept.(map[string]any)
		if !ok {
			return kept
		}
		same := map[string]any{}
		for key := range g {
			if value, has := k[key]; has {
				same[key] = withoutAdded(g[key], value)
			}
		}
		return same
	case []any:
		k, ok := kept.([]any)
		if !ok || len(k) != len(g) {
			return kept
		}
		same := make([]any, len(g))
		for i := range g {
			same[i] = withoutAdded(g[i], k[i])
		}
		return same
	case string:
		if k, ok := kept.(string); ok && strings.HasPrefix(k, g+"/") {
			return g
		}
	}
	return kept
}

// Every method of a class ends: with a value, an exception, or the context.
func FuzzRunningMethodsEnds(f *testing.F) {
	const head = "Namespaces: {=: org.other, std: io.murano}\nName: Any\nProperties: {p: {Contract: $, Usage: Runtime}, l: {Contract: [$.int()], Usage: InOut}}\nMethods:\n  a:\n    Body:\n"
	for _, body := range []string{
		"      - $x: 1 + 1\n      - Return: {$x: [$x, $.p]}", "      - While: true = true\n        Do: $.p.a[b]: 1", "      - Try: $.a()\n        Catch: [{As: e, Do: {Return: $e.name}}]",
		"      - Parallel: [$.p: 1, $.l: [1], sleep(1)]\n        Limit: 2", "      - For: i\n        In: range(5)\n        Do: [If: $i > 2, Then: {Break: }]",
		"      - Match: {1: {Return: a}}\n        Value: $.l.len()\n        Default: {Throw: b, Message: c}", "      - Switch: {$ = null: {Continue: }}\n      - Repeat: 9\n        Do: {$.l: $.l + [1]}",
		"      - $o: new(Any, $, l => [1])\n      - Return: [dump($o), typeinfo($o).methods.name, $o.find(Any).bind({a => b})]", "      - $x: [1]\n      - Repeat: 99\n        Do: {$x: [$x, $x]}",
		"      - Return: super($, $.a())\n  .init: {Body: [$.l: 5]}\n  .destroy: {Body: [$.a()]}",
	} {
		f.Add(head + body)
	}
	f.Fuzz(func(t *testing.T, text string) {
		source := shop(t).with("org.other.Any", text)
		interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source), nil)
		class, err := interpreter.Classes().Class(t.Context(), "org.other.Any", "")
		if err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			object, problems, err := interpreter.Load(ctx, map[string]any{"?": map[string]any{"type": "org.other.Any"}})
			if err != nil || len(problems) > 0 {
				return
			}
			for _, m := range class.Methods {
				_, _ = interpreter.Invoke(ctx, object, m.Name, nil)
			}
			_, _ = interpreter.Collect(ctx)
			_ = interpreter.Finish(ctx, object)
			_, _ = json.Marshal(muranopl.Save(object))
		}()
		await(t, ended)
	})
}
