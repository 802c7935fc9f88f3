package muranopl_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
)

const corners = `
Namespaces: {=: org.corner}
Name: Corner
Import: Extender
Properties:
  table: {Contract: {}, Usage: Static}
  port: {Contract: $.int(), Default: 80}
  given: {Contract: $.int(), Default: 1}
Methods:
  implicit: {Body: {Return: $this.table.len() }}
  extended: {Body: {Return: 4.twice()}}
  explicitly:
    Body:
      Return: :Extender.twice(4)
  known: {Usage: Static, Body: {Return: 1}}
  callsKnown:
    Body:
      Return: :Extender.known()
  callsUnknown:
    Body:
      Return: :Extender.unknown()
  dumps:
    Body:
      - $part: new(Part)
      - $whole: new(Whole, copy => $part, reference => $part)
      - Return: dump($whole)
  dumpsAbove:
    Body:
      - $d: dump(cast(new(Above), Part), Inline, false)
      - Return: $d.items().where(not $[0] in [id, name, metadata]).select($[1].keys()).first()
---
Name: Extender
Methods:
  twice: {Usage: Extension, Arguments: [{n: {Contract: $.int()}}], Body: {Return: $n * 2}}
---
Name: Part
Properties:
  low: {Contract: $.string(), Default: low}
---
Name: Above
Extends: Part
Properties:
  high: {Contract: $.string(), Default: high}
---
Name: Whole
Properties:
  copy: {Contract: $.class(Part)}
  reference: {Contract: $.class(Part), Meta: {io.murano.metadata.engine.Serialize: {as: reference}}}
`

// TestCornersOfTheLanguage holds behaviour that was observed at Murano's own engine.
func TestCornersOfTheLanguage(t *testing.T) {
	configs := fstest.MapFS{"org.corner.Corner.json": {Data: []byte(`{"port": 8080, "given": 3}`)}}
	source := shop(t).with("org.corner.Corner", corners)
	source[len(source)-1].version = "0.1.0"
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source, muranopl.WithConfigs(configs)), nil)
	corner, problems, err := interpreter.Load(t.Context(), map[string]any{"?": map[string]any{"type": "org.corner.Corner"}, "given": 2})
	require.NoError(t, err)
	require.Empty(t, problems)
	call := func(method string) (any, error) { return interpreter.Call(t.Context(), corner, method, nil, nil) }

	for method, wanted := range map[string]any{"extended": int64(8), "explicitly": int64(8), "implicit": int64(0)} {
		found, err := call(method)
		require.NoError(t, err, method)
		require.Equal(t, wanted, found, method)
	}
	for method, name := range map[string]string{"callsKnown": "NoMatchingMethodException", "callsUnknown": "NoMethodRegisteredException"} {
		_, err := call(method)
		require.Error(t, err, method)
		require.Equal(t, []string{"yaql.language.exceptions." + name}, muranopl.AsException(err).Names, method)
	}
	port, _ := corner.Get("port")
	require.Equal(t, int64(8080), port, "a configuration goes before a default")
	given, _ := corner.Get("given")
	require.Equal(t, int64(2), given, "and the model before a configuration")

	value, err := call("dumps")
	require.NoError(t, err)
	whole := muranopl.SaveResult(value).(map[string]any)
	require.IsType(t, map[string]any{}, whole["copy"])
	require.Equal(t, whole["copy"].(map[string]any)["?"].(map[string]any)["id"], whole["reference"])
	require.Contains(t, whole["?"], "metadata")
	value, err = call("dumpsAbove")
	require.NoError(t, err)
	require.Equal(t, []any{"low"}, value)
}
