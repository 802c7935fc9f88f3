package muranopl_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/yaql"
)

const partsClass = `
Namespaces: {=: org.other, sys: io.murano.system}
Name: Parts
Properties:
  name: {Contract: $.string()}
  parts: {Contract: [$.class(Parts)], Usage: InOut}
  kept: {Contract: $, Usage: Runtime}
Methods:
  hear:
    Arguments: [{object: {Contract: $.class(Parts).notNull()}}]
    Body:
      - trace(concat($.name, ' hears of ', $object.name))
  listens:
    Body:
      - sys:GC.subscribeDestruction($.parts[0], $, hear)
      - sys:GC.subscribeDestruction($.parts[1], $.parts[0], hear)
      - sys:GC.subscribeDestruction($.parts[1], $)
  makes:
    Body:
      - $.kept: new(Parts, $, name => runtime)
      - $.parts: $.parts + [new(Parts, $, name => kept)]
  churns:
    Arguments: [{times: {Contract: $.int()}}]
    Body:
      - Repeat: $times
        Do:
          - $.kept: new(Parts, name => $.name)
          - sys:GC.collect()
          - If: $.kept.name != $.name
            Then: [{Throw: Wrong}]
  .destroy:
    Body:
      - trace($.name)
`

// collectRun is an interpreter over the class Parts; done returns the traces of its code.
func collectRun(t *testing.T) (interpreter *muranopl.Interpreter, done func() []string) {
	t.Helper()
	source, _ := suiteSource(t, "destruction.yaml", "1.4")
	source = append(source, &testPackage{name: "org.other.Parts", version: "1.0.0", classes: map[string]string{"org.other.Parts": partsClass}})
	var mutex sync.Mutex
	var traced []string
	trace := &yaql.Function{Name: "trace", Kind: yaql.AsFunction, Doc: "collects", Params: []yaql.Param{{Name: "value"}}, Call: func(i *yaql.Invocation) (any, error) {
		mutex.Lock()
		defer mutex.Unlock()
		traced = append(traced, fmt.Sprint(i.Args[0]))
		return nil, nil
	}}
	return muranopl.NewInterpreter(muranopl.NewClasses(source), suiteNatives, muranopl.WithFunctions(trace)), func() []string {
		mutex.Lock()
		defer mutex.Unlock()
		all := traced
		traced = nil
		return all
	}
}

func partsModel(name string, parts ...string) string {
	return fmt.Sprintf(`{"?": {"type": "org.other.Parts", "id": %q}, "name": %q, "parts": [%s]}`, name, name, strings.Join(parts, ","))
}

func mustStart(t *testing.T, interpreter *muranopl.Interpreter, model map[string]any) *muranopl.Object {
	t.Helper()
	root, problems, err := interpreter.Load(t.Context(), model)
	require.Empty(t, problems)
	require.NoError(t, err)
	return root
}

func TestSubscriptionsAreKeptInTheModelAndWhatIsNoLongerInItIsDestroyed(t *testing.T) {
	interpreter, _ := collectRun(t)
	root := mustStart(t, interpreter, parse(t, partsModel("root", partsModel("a"), partsModel("b"), partsModel("c"))))
	_, err := interpreter.Invoke(t.Context(), root, "listens", nil)
	require.NoError(t, err)
	saved := muranopl.Save(root)
	parts := saved["parts"].([]any)
	require.Equal(t, map[string]any{"onDestruction": []any{map[string]any{"subscriber": "root", "handler": "hear"}}},
		parts[0].(map[string]any)["?"].(map[string]any)["dependencies"])
	require.Equal(t, map[string]any{"onDestruction": []any{map[string]any{"subscriber": "a", "handler": "hear"}, map[string]any{"subscriber": "root", "handler": nil}}},
		parts[1].(map[string]any)["?"].(map[string]any)["dependencies"])

	interpreter, done := collectRun(t)
	root = mustStart(t, interpreter, parse(t, partsModel("root", partsModel("c"))))
	_, problems, err := interpreter.LoadFormer(t.Context(), root, saved)
	require.NoError(t, err)
	require.Empty(t, problems)
	n, err := interpreter.Collect(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, []string{"root hears of a", "a hears of b", "b", "a"}, done())
	require.Len(t, root.Objects("parts"), 1, "what is there now stays as it is")
	require.NoError(t, interpreter.Finish(t.Context(), root))
	require.Empty(t, done())
}

func TestWithoutAModelEverythingFormerIsDestroyed(t *testing.T) {
	interpreter, done := collectRun(t)
	_, problems, err := interpreter.LoadFormer(t.Context(), nil, parse(t, partsModel("root", partsModel("a", partsModel("b")), partsModel("c"))))
	require.NoError(t, err)
	require.Empty(t, problems)
	_, err = interpreter.Collect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"b", "a", "c", "root"}, done())
}

func TestTheEndOfARunDestroysWhatTheModelDoesNotHold(t *testing.T) {
	interpreter, done := collectRun(t)
	root := mustStart(t, interpreter, parse(t, partsModel("root")))
	_, err := interpreter.Invoke(t.Context(), root, "makes", nil)
	require.NoError(t, err)
	_, err = interpreter.Collect(t.Context())
	require.NoError(t, err)
	require.Empty(t, done(), "a property leads to it")
	require.NoError(t, interpreter.Finish(t.Context(), root))
	require.Equal(t, []string{"runtime"}, done())
	require.NoError(t, interpreter.Finish(t.Context(), nil))
	require.Equal(t, []string{"kept", "root"}, done())
}

func TestADestroyedObjectOfAModelStaysDestroyed(t *testing.T) {
	interpreter, done := collectRun(t)
	model := parse(t, partsModel("root", `{"?": {"type": "org.other.Parts", "id": "a", "destroyed": true}, "name": "a", "parts": []}`))
	root := mustStart(t, interpreter, model)
	_, err := interpreter.Invoke(t.Context(), root.Objects("parts")[0], "makes", nil)
	require.ErrorContains(t, err, "already destroyed")
	require.Equal(t, true, muranopl.Save(root)["parts"].([]any)[0].(map[string]any)["?"].(map[string]any)["destroyed"])
	require.NoError(t, interpreter.Finish(t.Context(), nil))
	require.Equal(t, []string{"root"}, done())
}

func TestCollectionsWhileOthersRunTakeNothingThatIsInUse(t *testing.T) {
	interpreter, done := collectRun(t)
	var parts []string
	for n := range 4 {
		parts = append(parts, partsModel(fmt.Sprint("part", n)))
	}
	root := mustStart(t, interpreter, parse(t, partsModel("root", parts...)))
	const times = 25
	var all sync.WaitGroup
	for _, part := range root.Objects("parts") {
		all.Go(func() {
			_, err := interpreter.Invoke(t.Context(), part, "churns", map[string]any{"times": times})
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.NoError(t, interpreter.Finish(t.Context(), root))
	counts := map[string]int{}
	for _, name := range done() {
		counts[name]++
	}
	require.Equal(t, map[string]int{"part0": times, "part1": times, "part2": times, "part3": times}, counts, "each once")
}

func TestTheEndOfTheContextEndsACollection(t *testing.T) {
	interpreter, done := collectRun(t)
	_, _, err := interpreter.LoadFormer(t.Context(), nil, parse(t, partsModel("root", partsModel("a"))))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = interpreter.Collect(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, done())
}
