package muranopl_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
)

func TestActionsSayWhatTheyTakeInTheOrderOfWriting(t *testing.T) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	source := testSource{{name: "org.acts", version: "0.0.0", classes: map[string]string{"org.acts.Base": `
Namespaces: {=: org.acts, m: io.murano.metadata}
Name: Base
Methods:
  reset:
    Scope: Public
    Meta: [{m:Title: {text: Reset}}, {m:Confirm: {text: All data is lost}}]
  hidden: {}
`, "org.acts.App": `
Namespaces: {=: org.acts, m: io.murano.metadata, f: io.murano.metadata.forms}
Name: App
Extends: Base
Methods:
  reset:
    Scope: Public
  backup:
    Scope: Public
    Meta: [{m:Description: {text: Copies}}, {m:HelpText: {text: It takes a while}}]
    Arguments:
      - zone: {Contract: $.string(), Meta: {m:Title: {text: Zone}}}
      - count: {Contract: $.int().notNull().check($ > 0), Default: 3}
      - target: {Contract: $.class(Base).notNull()}
      - computed: {Contract: $.string().notNull(), Default: $.name}
      - any: {Contract: $}
      - rest: {Contract: $.string(), Usage: KwArgs}
  placed:
    Usage: Static
    Scope: Public
    Arguments:
      - b: {Contract: $.bool().notNull(), Meta: {f:Position: {index: 2}}}
      - a: {Contract: $.bool().notNull(), Meta: {f:Position: {index: 1}}}
`}}}
	class, err := muranopl.NewClasses(joined{source, catalogSource(packages)}).Class(t.Context(), "org.acts.App", "")
	require.NoError(t, err)
	actions := class.Actions(t.Context())
	byName := map[string]muranopl.Action{}
	for _, action := range actions {
		byName[action.Name] = action
	}
	require.NotContains(t, byName, "hidden")
	require.Equal(t, "All data is lost", byName["reset"].Confirm, "as its ancestor says")
	require.Equal(t, "Reset", byName["reset"].Title)
	require.Equal(t, "backup", byName["backup"].Title)
	require.Equal(t, "Copies", byName["backup"].Description)
	require.Equal(t, "It takes a while", byName["backup"].Help)
	require.Empty(t, byName["backup"].Confirm)
	require.True(t, byName["placed"].Static)
	written, err := json.Marshal(byName["backup"].Arguments)
	require.NoError(t, err)
	require.JSONEq(t, `{"$schema": "http://json-schema.org/draft-04/schema#", "type": "object", "additionalProperties": {"type": ["string", "null"]},
		"properties": {
			"zone": {"type": ["string", "null"], "title": "Zone", "formIndex": 0},
			"count": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "default": 3, "formIndex": 1},
			"target": {"type": "muranoObject", "muranoType": "org.acts.Base", "formIndex": 2},
			"computed": {"type": "string", "formIndex": 3},
			"any": {"formIndex": 4}},
		"required": ["target"]}`, string(written))
	placed := byName["placed"].Arguments["properties"].(map[string]any)
	require.Less(t, placed["a"].(map[string]any)["formIndex"], placed["b"].(map[string]any)["formIndex"])
}
