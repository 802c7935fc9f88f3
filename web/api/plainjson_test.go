package api

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/orchestrator"
)

func TestModelsAreWrittenAsTheJSONPackageWritesThem(t *testing.T) {
	many := map[string]any{}
	for _, key := range "zyxwvutsrqponmlkjihgfedcba" {
		many[string(key)] = int64(key)
	}
	for name, value := range map[string]any{
		"nothing":                nil,
		"an empty map":           map[string]any{},
		"a map that is none":     map[string]any(nil),
		"an empty list":          []any{},
		"a list that is none":    []any(nil),
		"numbers":                []any{int64(0), int64(-7), int64(math.MaxInt64), 1.0, 0.1, 1e21, -1e-9, json.Number("123456789012345678901234567890"), 5},
		"truth":                  []any{true, false},
		"plain texts":            []any{"", "a", "a b/c'd", "~"},
		"texts that are escaped": []any{`"`, `\`, "<b>&", "\n\t\x00\x1f\x7f", "é", "\u2028\u2029", "\xff", "😀"},
		"keys in order":          many,
		"keys that are escaped":  map[string]any{`"`: 1.5, "é": nil, "<": true, "": "x"},
		"a model": map[string]any{"?": map[string]any{"id": "1", "type": "a.B"}, "list": []any{map[string]any{"b": int64(1), "a": []any{}}, nil, "x"},
			"texts": []string{"a"}, "other": map[string]int{"b": 1, "a": 2}},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := json.Marshal(value)
			require.NoError(t, err)
			got, err := appendJSON([]byte("before"), value, math.MaxInt)
			require.NoError(t, err)
			require.Equal(t, "before"+string(want), string(got))
		})
	}
	for name, value := range map[string]any{"a number that is none": math.NaN(), "in a list": []any{math.Inf(1)}, "in a map": map[string]any{"a": math.NaN()}} {
		t.Run(name, func(t *testing.T) {
			_, err := appendJSON(nil, value, math.MaxInt)
			require.Error(t, err)
		})
	}
}

func TestAModelThatIsLongerThanItMayBeIsNotWritten(t *testing.T) {
	text := strings.Repeat("x", 1000)
	for name, value := range map[string]any{
		"a text": text, "a key": map[string]any{text: nil}, "a text in many places": []any{text[:300], []any{text[:300], map[string]any{"a": text[:300], "b": text[:300]}}},
		"many elements": make([]any, 1000), "many keys": map[string]any{"a": make([]any, 500), "b": make([]any, 501)}, "what has no known length": []string{"a"},
		"itself": func() any { list := make([]any, 1); list[0] = list; return list }(),
	} {
		t.Run(name, func(t *testing.T) {
			written, err := appendJSON(nil, value, 999)
			require.ErrorIs(t, err, errLong)
			require.Nil(t, written)
		})
	}
	written, err := appendJSON(nil, []any{text, 1.5, 7, json.Number("8"), map[string]any{"a": true}}, 2000)
	require.NoError(t, err)
	require.Len(t, written, 1000+2+len(`,1.5,7,8,{"a":true}`)+2)
}

func TestApplicationsAreWrittenWithTheStatusOfTheirEnvironment(t *testing.T) {
	list := []any{map[string]any{"?": map[string]any{"type": "a.B", "id": "1", "status": "the model's"}, "z": int64(1), "!": nil}, map[string]any{"?": map[string]any{"id": "2"}}}
	for _, applications := range []orchestrator.Applications{{List: list, Status: "ready"}, {Status: "ready"}, {List: []any{}}} {
		want, err := json.Marshal(applications)
		require.NoError(t, err)
		got, err := appendJSON(nil, applications, math.MaxInt)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	require.Equal(t, "the model's", list[0].(map[string]any)["?"].(map[string]any)["status"], "the model is not changed")
}

func FuzzModelsAreWrittenAsTheJSONPackageWritesThem(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x<é",null,true,{"":{}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			return
		}
		want, err := json.Marshal(value)
		require.NoError(t, err)
		got, err := appendJSON(nil, value, math.MaxInt)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	})
}
