package hot

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// parsed reads YAML, as values that JSON has.
func parsed(t *testing.T, source string) (plain map[string]any) {
	t.Helper()
	var value map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(source), &value))
	data, err := json.Marshal(value)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &plain))
	return plain
}

func TestFunctionsGiveWhatHeatSays(t *testing.T) {
	known := Scope{
		Parameters: map[string]any{"ports": []any{80.0, 443.0}, "name": "web", "some": map[string]any{"deep": []any{"a", "b"}}},
		Conditions: map[string]any{"is_web": map[string]any{"equals": []any{map[string]any{"get_param": "name"}, "web"}}},
		Files:      map[string]string{"motd": "hello"},
		Reference:  func(resource string) (any, error) { return "id-of-" + resource, nil },
		Attribute: func(resource, name string) (any, error) {
			return map[string]any{"of": resource, "name": name}, nil
		},
	}
	for source, want := range map[string]any{
		"get_param: [some, deep, 1]":                                   "b",
		"get_param: [some, missing]":                                   nil,
		"get_resource: server":                                         "id-of-server",
		"get_attr: [server, addresses, of]":                            "server",
		"get_file: motd":                                               "hello",
		"str_replace: {template: '$ab $a', params: {$a: 1, $ab: [x]}}": `["x"] 1`,
		"list_join: [', ', [a, 1], [true]]":                            "a, 1, true",
		"str_split: [',', 'a,b', 1]":                                   "b",
		"list_concat: [[a], [b, a]]":                                   []any{"a", "b", "a"},
		"list_concat_unique: [[a], [b, a]]":                            []any{"a", "b"},
		"map_merge: [{a: x}, {a: y, b: z}]":                            map[string]any{"a": "y", "b": "z"},
		"map_replace: [{a: x}, {keys: {a: b}, values: {x: y}}]":        map[string]any{"b": "y"},
		"digest: [sha256, a]":                                          "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
		"contains: [b, [a, b]]":                                        true,
		"filter: [[a], [a, b]]":                                        []any{"b"},
		"make_url: {scheme: http, host: '::1', port: 80, path: /x, query: {q: '1'}}":                "http://[::1]:80/x?q=1",
		"if: [is_web, yes it is, {get_param: missing}]":                                             "yes it is",
		"if: [{not: is_web}, {get_param: missing}, no]":                                             "no",
		"if: [{and: [is_web, {or: [false, is_web]}]}, 'on', 'off']":                                 "on",
		"yaql: {expression: '$.data.ports.select($ + 1).sum()', data: {ports: {get_param: ports}}}": 525.0,
		"yaql: {expression: '$.data.where($.a > 1).b.first()', data: [{a: 1, b: x}, {a: 2, b: y}]}": "y",
		"repeat: {for_each: {$p: {get_param: ports}}, template: {port: $p, text: 'port $p'}}":       []any{map[string]any{"port": 80.0, "text": "port 80"}, map[string]any{"port": 443.0, "text": "port 443"}},
		"repeat: {for_each: {$a: [1, 2], $b: [x, y]}, template: $a-$b, permutations: false}":        []any{"1-x", "2-y"},
		"repeat: {for_each: {$a: [1, 2], $b: [x, y]}, template: $a-$b}":                             []any{"1-x", "1-y", "2-x", "2-y"},
	} {
		got, err := known.Resolve(parsed(t, source))
		require.NoError(t, err, source)
		require.Equal(t, want, got, source)
	}
	for _, source := range []string{"get_param: missing", "get_file: missing", "str_split: [',', 'a', 3]", "list_join: [',', a]", "digest: [rot13, a]",
		"str_replace_strict: {template: a, params: {b: c}}", "if: [unknown, a, b]", "if: [{equals: [{get_resource: server}, a]}, a, b]", "repeat: {template: a}",
		"yaql: {expression: '$.data.(', data: 1}", "yaql: {expression: $.data}", "yaql: {expression: '$.data.nothing()', data: 1}"} {
		_, err := known.Resolve(parsed(t, source))
		require.Error(t, err, source)
	}
}

func TestBranchesThatAConditionRulesOutAreNotThere(t *testing.T) {
	known := Scope{Parameters: map[string]any{"size": "large"}, Conditions: parsed(t, "{large: {equals: [{get_param: size}, large]}, circle: {not: circle}}")}
	got, err := known.Chosen(parsed(t, `
name: {if: [large, {get_resource: a}, {get_resource: b}]}
absent: {if: [{not: large}, x]}
list: [{if: [{not: large}, x]}, {if: [large, {if: [large, y, z]}]}]
`))
	require.NoError(t, err)
	require.Equal(t, parsed(t, "{name: {get_resource: a}, list: [y]}"), got)
	_, err = known.Decide("circle")
	require.ErrorContains(t, err, "the condition circle depends on itself")
}

func TestACircleIsNamedInTheOrderOfNeed(t *testing.T) {
	needs := Graph{"a": {"b": true}, "b": {"c": true}, "c": {}}
	require.Nil(t, needs.Circle())
	needs.Add("c", "a")
	require.Nil(t, needs.Circle(), "what nobody wrote down makes no circle")
	needs["c"]["a"] = true
	require.Equal(t, []string{"a", "b", "c"}, needs.Circle())
}
