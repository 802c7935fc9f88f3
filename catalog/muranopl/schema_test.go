package muranopl_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

// joined asks one catalog after the other.
type joined []muranopl.Source

func (j joined) PackageForClass(ctx context.Context, class, spec string) (pkg muranopl.Package, err error) {
	for _, source := range j {
		if pkg, err = source.PackageForClass(ctx, class, spec); err == nil {
			return pkg, nil
		}
	}
	return nil, err
}

func (j joined) PackageByName(ctx context.Context, name, spec string) (pkg muranopl.Package, err error) {
	for _, source := range j {
		if pkg, err = source.PackageByName(ctx, name, spec); err == nil {
			return pkg, nil
		}
	}
	return nil, err
}

// recorded is the catalog that Murano's answers were recorded with: org.golden.Hello and org.golden.Lib over our core library.
func recorded(t *testing.T) *muranopl.Classes {
	packages, err := apps.Packages()
	require.NoError(t, err)
	text, err := os.ReadFile("testdata/golden/Hello.yaml")
	require.NoError(t, err)
	hello := &testPackage{name: "org.golden.Hello", version: "0.0.0", classes: map[string]string{"org.golden.Hello": string(text)}}
	lib := &testPackage{name: "org.golden.Lib", version: "0.0.0", classes: map[string]string{"org.golden.Lib": `
Namespaces: {=: org.golden}
Name: Lib
Methods:
  twice: {Usage: Static, Scope: Public, Arguments: [{x: {Contract: $.int().notNull()}}], Body: [{Return: $x * 2}]}
`}}
	return muranopl.NewClasses(joined{testSource{hello, lib}, catalogSource(packages)})
}

// exchange is a recorded request to Murano's API with its answer.
type exchange struct {
	Name         string          `json:"name"`
	Path         string          `json:"path"`
	Status       int             `json:"status"`
	RequestBody  json.RawMessage `json:"request_body"`
	ResponseBody json.RawMessage `json:"response_body"`
}

func exchanges(t *testing.T, prefix string) []exchange {
	file, err := os.Open("../../test/golden/murano-api.jsonl")
	require.NoError(t, err)
	defer file.Close()
	var found []exchange
	for decoder := json.NewDecoder(file); decoder.More(); {
		var e exchange
		require.NoError(t, decoder.Decode(&e))
		if strings.HasPrefix(e.Name, prefix) {
			found = append(found, e)
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestTheRecordedSchemasAgree(t *testing.T) {
	for _, e := range exchanges(t, "schema-") {
		if slices.Contains([]string{"schema-core-instance", "schema-core-network", "schema-hot"}, e.Name) {
			continue // they come with their classes
		}
		t.Run(e.Name, func(t *testing.T) {
			at, err := url.Parse(e.Path)
			require.NoError(t, err)
			name, methods, _ := strings.Cut(strings.TrimPrefix(at.Path, "/v1/schemas/"), "/")
			// Murano passes over classVersion.
			class, err := recorded(t).ClassOf(t.Context(), at.Query().Get("packageName"), name, "")
			if e.Status == http.StatusNotFound {
				require.Equal(t, fault.NotFound, fault.KindOf(err))
				return
			}
			require.NoError(t, err)
			written, err := json.Marshal(class.Schemas(t.Context(), strings.FieldsFunc(methods, func(r rune) bool { return r == ',' })...))
			require.NoError(t, err)
			require.JSONEq(t, string(e.ResponseBody), string(written))
		})
	}
}

func TestTheRecordedStaticActionsAgree(t *testing.T) {
	for _, e := range exchanges(t, "static-action") {
		if slices.Contains([]string{"static-action-badjson", "static-action-missing-method-name", "static-action-missing-class-name"}, e.Name) {
			continue // no call comes of these requests
		}
		t.Run(e.Name, func(t *testing.T) {
			var call struct {
				Class      string         `json:"className"`
				Method     string         `json:"methodName"`
				Package    string         `json:"packageName"`
				Version    string         `json:"classVersion"`
				Parameters map[string]any `json:"parameters"`
			}
			require.NoError(t, json.Unmarshal(e.RequestBody, &call))
			classes := recorded(t)
			if call.Version == "" {
				call.Version = "=0"
			}
			class, err := classes.ClassOf(t.Context(), call.Package, call.Class, call.Version)
			if err != nil {
				kind := map[int]fault.Kind{http.StatusNotFound: fault.NotFound, http.StatusBadRequest: fault.Invalid}[e.Status]
				require.Equal(t, kind, fault.KindOf(err), "%v", err)
				return
			}
			result, err := muranopl.NewInterpreter(classes, nil).InvokeStaticAction(t.Context(), class, call.Method, call.Parameters)
			if e.Status == http.StatusOK {
				require.NoError(t, err)
				written, err := json.Marshal(result)
				require.NoError(t, err)
				require.JSONEq(t, string(e.ResponseBody), string(written))
				return
			}
			require.Error(t, err)
			require.Equal(t, map[int]fault.Kind{http.StatusNotFound: fault.NotFound, http.StatusBadRequest: fault.Invalid}[e.Status], fault.KindOf(err))
			quoted, err := json.Marshal(strings.TrimPrefix(err.Error(), "[Exception]: "))
			require.NoError(t, err)
			require.Contains(t, string(e.ResponseBody), strings.Trim(string(quoted), `"`))
		})
	}
}

func TestASchemaSaysWhatContractsAndMetadataSay(t *testing.T) {
	packages, err := apps.Packages()
	require.NoError(t, err)
	source := testSource{{name: "org.forms", version: "0.0.0", classes: map[string]string{"org.forms.Base": `
Namespaces: {=: org.forms, m: io.murano.metadata, f: io.murano.metadata.forms}
Name: Base
Meta:
- f:Section: {name: net, title: Network, index: 5}
- f:Section: {name: free}
- f:Section: {name: first, title: Old, index: 9}
Properties:
  place: {Contract: $.string(), Meta: [{f:Position: {index: 1, section: net}}, {m:HelpText: {text: where}}]}
  any: {Contract: $}
  dict: {Contract: {}}
  list: {Contract: [$.int(), $.string().notNull(), 1, 4]}
  map: {Contract: {$.string(): $.bool(), a: $.int().notNull()}}
  model:
    Contract: $.template(Base, excludeProperties => [x])
`, "org.forms.Form": `
Namespaces: {=: org.forms, m: io.murano.metadata, f: io.murano.metadata.forms}
Name: Form
Extends: Base
Meta:
- f:Section: {name: first, title: First, index: 1}
Properties:
  own: {Contract: $.class(Base).notOwned(), Meta: {f:Position: {index: 1}}}
  hidden: {Contract: $.bool().notNull(), Default: true, Meta: {f:Hidden: {visible: false}}}
  range:
    Contract: $.int().check($ > -1 and 5 >= $)
  kind:
    Contract: $.string().check($ in list(null, a, 'b c'))
  word:
    Contract: $.string().check($.matches('^[a-z]+$'))
    Usage: InOut
  out: {Contract: $, Usage: Out}
Methods:
  build:
    Usage: Static
    Scope: Public
    Meta: [{m:ModelBuilder: {enabled: true}}, {m:Title: {text: Build}}]
    Arguments: [{size: {Contract: $.int().notNull(), Default: 3, Meta: {m:Description: {text: how big}}}}]
  other: {Usage: Static, Scope: Public, Meta: {m:ModelBuilder: {enabled: false}}}
`}}}
	class, err := muranopl.NewClasses(joined{source, catalogSource(packages)}).Class(t.Context(), "org.forms.Form", "")
	require.NoError(t, err)
	written, err := json.Marshal(class.Schemas(t.Context()))
	require.NoError(t, err)
	const frame = `"$schema":"http://json-schema.org/draft-04/schema#","type":"object","additionalProperties":false`
	require.JSONEq(t, `{"": {`+frame+`,
		"formSections": {"first": {"title": "First", "index": 0}, "net": {"title": "Network", "index": 1}, "free": {"title": null}},
		"properties": {
			"place": {"type": ["string", "null"], "helpText": "where", "formSection": "net", "formIndex": 5},
			"any": {}, "dict": {"type": "object", "properties": {}, "additionalProperties": false},
			"list": {"type": "array", "items": [{"type": ["integer", "null"]}, {"type": "string"}], "additionalItems": {"type": "string"}},
			"map": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": ["boolean", "null"]}},
			"model": {"type": ["muranoObject", "null"], "muranoType": "org.forms.Base", "owned": true, "excludedProperties": ["x"]},
			"own": {"type": ["muranoObject", "null"], "muranoType": "org.forms.Base", "owned": false, "formSection": null, "formIndex": 6},
			"hidden": {"type": "boolean", "default": true, "visible": false},
			"range": {"type": ["integer", "null"], "minimum": -1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false},
			"kind": {"type": ["string", "null"], "enum": [null, "a", "b c"]},
			"word": {"type": ["string", "null"], "pattern": "^[a-z]+$"}}},
		"build": {`+frame+`, "formSections": {}, "title": "Build",
			"properties": {"size": {"type": "integer", "default": 3, "description": "how big"}}}}`, string(written))
	require.Len(t, class.Schemas(t.Context(), "build", "other"), 1)
}
