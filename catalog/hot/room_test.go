package hot

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatFunctionsMakeIsBoundedBeforeItIsMade(t *testing.T) {
	megabyte, list := strings.Repeat("x", 1<<20), []any{}
	for range 10_000 {
		list = append(list, "y")
	}
	conditions := map[string]any{"c40": true}
	for i := range 40 {
		next := fmt.Sprintf("c%d", i+1)
		conditions[fmt.Sprintf("c%d", i)] = map[string]any{"and": []any{next, next}}
	}
	known := Scope{Parameters: map[string]any{"text": megabyte, "many": strings.Repeat("$a", 500_000), "list": list, "texts": []any{megabyte, megabyte}}, Conditions: conditions}
	repeat := "{get_param: text}"
	for range 10 {
		repeat = "{repeat: {for_each: {$a: {get_param: list}}, template: " + repeat + "}}"
	}
	for _, source := range []string{
		"repeat: {for_each: {$a: {get_param: list}, $b: {get_param: list}, $c: {get_param: list}}, template: $a}",
		"repeat: {for_each: {$a: {get_param: list}, $b: {get_param: list}}, template: $a}",
		"repeat: {for_each: {$a: {get_param: list}}, template: {get_param: text}}",
		"{wrapped: " + repeat + "}",
		"repeat: {for_each: {y: {get_param: texts}}, template: '" + strings.Repeat("y ", 10_000) + "'}",
		"str_replace: {template: {get_param: many}, params: {$a: {get_param: text}}}",
		"list_join: [{get_param: text}, {get_param: list}]",
		"list_concat: [" + strings.TrimSuffix(strings.Repeat("{get_param: list}, ", 1000), ", ") + "]",
		"list_concat_unique: [{str_split: ['', {get_param: text}]}, {str_split: ['$', {get_param: many}]}]",
		"filter: [{get_param: list}, {get_param: list}]",
		"digest: [md5, [" + strings.TrimSuffix(strings.Repeat("{get_param: text}, ", 100), ", ") + "]]",
		"if: [c0, a, b]",
	} {
		_, err := known.Resolve(parsed(t, source))
		require.Error(t, err, source[:min(len(source), 100)])
		require.Regexp(t, "what it makes has more than 64 MiB|it takes more than 2000000 steps", err.Error())
	}
	_, err := known.Resolve(parsed(t, "repeat: {for_each: {$a: {get_param: list}}, template: {name: $a, port: 'port $a'}}"))
	require.NoError(t, err)
}

func TestAListIsComparedWithAllowedValuesInBounds(t *testing.T) {
	list := make([]any, 10_000)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	require.Contains(t, Violated(map[string]any{"allowed_values": list}, list), "a list of 10000 values is too long to be compared")
	require.Empty(t, Violated(map[string]any{"allowed_values": list[:100]}, list[:100]))
}
