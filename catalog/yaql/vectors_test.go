package yaql

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/not-yet-passing.txt anew")

// vector is one recorded evaluation of the reference implementation.
type vector struct {
	ID, Engine, Expr string
	Data, Result     json.RawMessage
	Raises           string
}

// The recorded evaluations lie beside the project's root; without them the test logs this and passes.
func TestExpressionsGiveWhatTheReferenceGives(t *testing.T) {
	vectors := readVectors(t)
	pending := pendingVectors(t)
	passed := 0
	var failing []string
	for _, v := range vectors {
		why := v.check(t)
		if why == "" {
			passed++
		} else {
			failing = append(failing, v.ID)
		}
		if *update {
			continue
		}
		if expected := slices.Contains(pending, v.ID); why != "" && !expected {
			t.Errorf("%s passes no more: %s over %s: %s", v.ID, v.Expr, v.Data, why)
		} else if why == "" && expected {
			t.Errorf("%s passes now: take it out of testdata/not-yet-passing.txt", v.ID)
		} else if why != "" {
			t.Logf("%s (%s) does not pass yet: %s over %s: %s", v.ID, v.Engine, v.Expr, v.Data, why)
		}
	}
	t.Logf("%d of %d vectors pass", passed, len(vectors))
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join("testdata", "not-yet-passing.txt"), []byte(strings.Join(append(failing, ""), "\n")), 0o644))
	}
}

// projectRoot is the folder of go.mod.
func projectRoot(t *testing.T) string {
	root, err := filepath.Abs(".")
	require.NoError(t, err)
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			return root
		}
		require.NotEqual(t, root, filepath.Dir(root), "there is no go.mod above this folder")
		root = filepath.Dir(root)
	}
}

func readVectors(t *testing.T) []vector {
	path := filepath.Join(filepath.Dir(projectRoot(t)), "shared", "vectors", "yaql.jsonl")
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the recorded evaluations are not there: %s", path)
	}
	require.NoError(t, err)
	defer file.Close()
	var vectors []vector
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var v vector
		require.NoError(t, json.Unmarshal(lines.Bytes(), &v))
		vectors = append(vectors, v)
	}
	require.NotEmpty(t, vectors)
	return vectors
}

func pendingVectors(t *testing.T) []string {
	text, err := os.ReadFile(filepath.Join("testdata", "not-yet-passing.txt"))
	if *update && errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	return strings.Fields(string(text))
}

// check returns the difference, "" for none.
func (v vector) check(t *testing.T) string {
	functions := Standard()
	if v.Engine != "standard" {
		functions = Legacy()
	}
	scope := NewScope(functions.Extend(v.functions()...), decode(t, v.Data), Limits{})
	grammar := Parse
	if v.Engine == "legacy" {
		grammar = ParseLegacy
	}
	expression, err := grammar(v.Expr)
	var got any
	if err == nil {
		got, err = expression.Evaluate(t.Context(), scope)
	}
	if v.Raises != "" {
		if name := errorName(err); name != v.Raises {
			return "raises " + name + ", wanted " + v.Raises
		}
		return ""
	}
	if err != nil {
		return err.Error()
	}
	wanted := decode(t, v.Result)
	if !same(wanted, got) {
		return "gives " + identity(got) + ", wanted " + identity(wanted)
	}
	return ""
}

// functions returns the functions that the recording defined for its tests.
func (v vector) functions() []*Function {
	takes := func(t Type) func(*Invocation) (any, error) {
		return func(i *Invocation) (any, error) { return i.Args[0], nil }
	}
	calling := func(name, expression string) []*Function {
		parsed, err := Parse(expression)
		if err != nil {
			panic(err)
		}
		return []*Function{function(name, "", func(i *Invocation) (any, error) { return parsed.Evaluate(i.Context(), i.Scope) })}
	}
	switch {
	case v.ID == "yaql-0386":
		return calling("foo", "1 + 2")
	case v.ID == "yaql-0387":
		return calling("foo", "[1, 2].select($ + 1)")
	case v.ID == "yaql-0388":
		return calling("bar", "[1, 2, 3].select($ * $)")
	case strings.HasPrefix(v.Expr, "func("):
		return []*Function{function("func", "", func(i *Invocation) (any, error) { return i.Args, nil },
			may("a", nil, int64(11)), may("b", nil, int64(22)), may("c", nil, int64(33)))}
	case v.Expr == "f(12)":
		return []*Function{function("f", "", takes(integer), need("a", integer))}
	case v.Expr == "f(12, 13)":
		return []*Function{function("f", "", func(i *Invocation) (any, error) { return add(i.Args[0].(int64), i.Args[1].(int64)) }, need("a", integer), need("b", integer))}
	case strings.HasPrefix(v.Expr, "foo("):
		return []*Function{function("foo", "", takes(isA[int64]), need("a", isA[int64]))} // Python's YAQL has two types for integers; this one takes no truth values
	}
	return nil
}

func errorName(err error) string {
	var syntax *SyntaxError
	var e *Error
	switch {
	case err == nil:
		return "nothing"
	case errors.As(err, &syntax) && syntax.Lexical:
		return "YaqlLexicalException"
	case errors.As(err, &syntax):
		return "YaqlGrammarException"
	case errors.As(err, &e):
		return e.Name
	}
	return err.Error()
}

// decode reads a value of the recording, in which maps with keys other than strings, dates and time spans are written as maps with
// one key that begins with "@".
func decode(t *testing.T, text json.RawMessage) any {
	if len(text) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	require.NoError(t, decoder.Decode(&value))
	return recorded(t, value)
}

func recorded(t *testing.T, value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		require.NoError(t, err)
		return f
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = recorded(t, item)
		}
		return list
	case map[string]any:
		if pairs, ok := v["@map"].([]any); ok {
			d := NewDict()
			for _, pair := range pairs {
				d.put(recorded(t, pair.([]any)[0]), recorded(t, pair.([]any)[1]))
			}
			return d
		}
		if microseconds, ok := v["@timespan_us"]; ok {
			return time.Duration(recorded(t, microseconds).(int64)) * time.Microsecond
		}
		if text, ok := v["@datetime"].(string); ok {
			date, err := time.Parse(time.RFC3339, text)
			require.NoError(t, err)
			return date
		}
		d := map[string]any{}
		for key, item := range v {
			d[key] = recorded(t, item)
		}
		return d
	}
	return value
}

// same compares a recorded value with the result: sets were recorded as lists without an order.
func same(wanted, got any) bool {
	switch g := enter(got).(type) {
	case *Set:
		w, ok := wanted.([]any)
		return ok && len(w) == g.Len() && !slices.ContainsFunc(w, func(m any) bool { return !g.Has(m) })
	case []any:
		w, ok := wanted.([]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for i := range g {
			if !same(w[i], g[i]) {
				return false
			}
		}
		return true
	case float64:
		w, ok := float(wanted)
		return ok && math.Abs(w-g) <= 1e-12*math.Abs(w)
	}
	return Equal(wanted, got)
}

// The reference's results for tuples (python-yaql 2.0, legacy.YaqlFactory).
func TestTuplesOfTheOldGrammarAreLists(t *testing.T) {
	two, three := []any{int64(1), int64(2)}, []any{int64(1), int64(2), int64(3)}
	for text, wanted := range map[string]any{
		"1 => 2": two, "1 => 2 => 3": three, "(1 => 2) => 3": []any{two, int64(3)}, "1 => (2 => 3)": []any{int64(1), []any{int64(2), int64(3)}},
		"1 or 2 => 3": []any{int64(1), int64(3)}, "f => 1 + 2": []any{"f", int64(3)}, "list(1 => 2)": []any{two}, "list(f => 2, 3)": []any{[]any{"f", int64(2)}, int64(3)}, "list(1 => 2 => 3)": []any{three},
		"[1 => 2, 2 => 3]": []any{two, []any{int64(2), int64(3)}}, "len(1 => 2 => 3)": int64(3), "(1 => 2).len()": int64(2), "dict(a => 1).a": int64(1), "{a => 1}.a": int64(1),
	} {
		expression, err := ParseLegacy(text)
		require.NoError(t, err, text)
		got, err := expression.Evaluate(t.Context(), NewScope(Legacy(), nil, Limits{}))
		require.NoError(t, err, text)
		require.True(t, same(wanted, got), "%s gives %v", text, got)
	}
	for _, text := range []string{"1 => 2", "(1 => 2)", "list(1 => 2 => 3)"} {
		_, err := Parse(text)
		require.Error(t, err, text)
	}
}
