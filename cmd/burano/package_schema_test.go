package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSchemasArePrintedOnTheCommandLine(t *testing.T) {
	const folder, class = "../../test/packages/io.burano.test.Scenario", "io.burano.test.Shelf"
	out, err := called(t, "", "package", "schema", folder, class)
	require.NoError(t, err)
	var schemas map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &schemas))
	require.Len(t, schemas, 2)
	require.Equal(t, map[string]any{
		"factor": map[string]any{"type": "integer", "minimum": 0.0, "exclusiveMinimum": true, "default": 2.0},
		"books":  map[string]any{"type": "array", "title": "Books", "items": map[string]any{"type": "muranoObject", "muranoType": "io.burano.test.Book"}},
	}, schemas[""]["properties"])
	require.Equal(t, map[string]any{"name": map[string]any{"type": []any{"string", "null"}, "default": "none"}}, schemas["versionOf"]["properties"])

	out, err = called(t, "", "package", "schema", folder, class, "--method", "versionOf")
	require.NoError(t, err)
	require.NotContains(t, out, "Books")
	_, err = called(t, "", "package", "schema", folder, class, "--method", "last")
	require.ErrorContains(t, err, "class io.burano.test.Shelf has no model builder last")
	_, err = called(t, "", "package", "schema", folder, "io.burano.test.Nothing")
	require.ErrorContains(t, err, "io.burano.test.Nothing")
	out, err = called(t, "", "package", "schema", folder, "io.murano.Environment")
	require.NoError(t, err)
	require.Contains(t, out, `"muranoType": "io.murano.CloudRegion"`)
}
