package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/catalog/ui"
	"github.com/burano/burano/internal/fault"
)

const hotManifest = "Format: Heat.HOT/1.0\nType: Application\nFullName: org.Hot\nVersion: 1.2.3\nDescription: what it is\n"

const template = `heat_template_version: 2016-10-14
parameters:
  flavor: {type: string, default: m1.small, constraints: [{allowed_values: [m1.small, "it's"], description: one of two}]}
  count_of_it: {type: number, description: how many, constraints: [{range: {min: 1}}, {range: {max: 9.5}}]}
  open: {type: boolean, default: true}
  word:
    type: string
    label: A word
    constraints: [{length: {min: 2, max: 20}}, {length: {min: 3}}, {allowed_pattern: "^[a-z]*$"}, {custom_constraint: nova.flavor}]
parameter_groups:
- {label: first, parameters: [word, nothing]}
resources:
  r: {type: OS::Heat::RandomString}
outputs:
  value: {value: {get_attr: [r, value]}}
`

func hot(t *testing.T, entries ...entry) *catalog.Package {
	t.Helper()
	p, err := read(zipOf(t, append([]entry{{name: "manifest.yaml", content: hotManifest}, {name: "template.yaml", content: template}}, entries...)...))
	require.NoError(t, err)
	return p
}

func formOf(t *testing.T, p *catalog.Package) []byte {
	t.Helper()
	text, err := p.UI()
	require.NoError(t, err)
	return text
}

func TestATemplateGetsAForm(t *testing.T) {
	var form map[string]any
	require.NoError(t, yaml.Unmarshal(formOf(t, hot(t)), &form))
	require.Equal(t, map[string]any{
		"?":                  map[string]any{"type": "org.Hot", "package": "org.Hot", "classVersion": "1.2.3"},
		"name":               "$.group0.name",
		"templateParameters": map[string]any{"word": "$.group1.word", "flavor": "$.group2.flavor", "count_of_it": "$.group2.count_of_it", "open": "$.group2.open"},
	}, form["Application"])
	forms := form["Forms"].([]any)
	fields := func(i int, group string) []any {
		return forms[i].(map[string]any)[group].(map[string]any)["fields"].([]any)
	}
	require.Equal(t, "what it is", fields(0, "group0")[0].(map[string]any)["description"])
	require.Equal(t, []any{map[string]any{"name": "word", "label": "A word", "type": "string", "required": true, "minLength": 3, "maxLength": 20,
		"validators": []any{map[string]any{"expr": map[string]any{"regexpValidator": "^[a-z]*$"}}}}}, fields(1, "group1"))
	require.Equal(t, []any{
		map[string]any{"name": "flavor", "label": "Flavor", "type": "string", "required": false, "initial": "m1.small",
			"validators": []any{map[string]any{"expr": `$ in list('m1.small', 'it\'s')`, "message": "one of two"}}},
		map[string]any{"name": "count_of_it", "label": "Count Of It", "type": "integer", "required": true, "description": "how many",
			"validators": []any{map[string]any{"expr": "$ >= 1"}, map[string]any{"expr": "$ <= 9.5"}}},
		map[string]any{"name": "open", "label": "Open", "type": "boolean", "required": false, "initial": true},
	}, fields(2, "group2"))
}

func TestSecretsOfATemplateAreTypedAsPasswords(t *testing.T) {
	const parameters = `
parameters:
  key: {type: string, hidden: true}
  pin: {type: number, hidden: true, default: 1234, constraints: [{range: {min: 1000}}, {allowed_values: [1234, 4321]}]}
  word: {type: string, hidden: yes, constraints: [{length: {min: 8}}, {allowed_pattern: "[a-z]+"}]}
  open: {type: boolean, hidden: true}
  clear: {type: string, hidden: false}
resources: {}
`
	p, err := read(zipOf(t, entry{name: "manifest.yaml", content: hotManifest}, entry{name: "template.yaml", content: parameters}))
	require.NoError(t, err)
	definition, problems := ui.Parse("ui.yaml", formOf(t, p))
	require.Empty(t, problems)
	types, validators := map[string]string{}, map[string][]string{}
	for _, field := range definition.Forms[1].Fields {
		types[field.Name] = field.Type
		if field.Type == "password" {
			require.Equal(t, false, field.Attributes["confirmInput"].Constant)
		}
		for _, v := range field.Validators {
			if v.Pattern != nil {
				validators[field.Name] = append(validators[field.Name], v.Pattern.Constant.(string))
			} else {
				validators[field.Name] = append(validators[field.Name], v.Expression.String())
			}
		}
	}
	require.Equal(t, map[string]string{"key": "password", "pin": "password", "word": "password", "open": "boolean", "clear": "string"}, types)
	require.Equal(t, map[string][]string{"key": {"^"}, "pin": {"int($) >= 1000", "int($) in list(1234, 4321)"}, "word": {"[a-z]+"}}, validators)

	_, err = read(zipOf(t, entry{name: "manifest.yaml", content: hotManifest},
		entry{name: "template.yaml", content: "resources: {}\nparameters:\n  a: {type: string, hidden: perhaps}\n"}))
	require.ErrorContains(t, err, "template.yaml:3:29: hidden of parameter 'a' should be true or false")
}

func TestATemplateGetsAClass(t *testing.T) {
	embedded, err := apps.Packages()
	require.NoError(t, err)
	p := hot(t, entry{name: "Resources/HotFiles/nested/one.yaml", content: "x"})
	class, err := muranopl.NewClasses(append(catalog.Shelf{p}, embedded...)).Class(t.Context(), "org.Hot", "")
	require.NoError(t, err)
	require.True(t, class.Is("io.murano.Application"))
	_, text, err := p.ClassFile("org.Hot")
	require.NoError(t, err)
	var read map[string]any
	require.NoError(t, yaml.Unmarshal(text, &read))
	require.Equal(t, map[string]any{"word": `$.string().check(len($) >= 2 and len($) <= 20).check(len($) >= 3).check(matches($, '^[a-z]*$'))`,
		"flavor": `$.string().check($ in list('m1.small', 'it\'s'))`, "count_of_it": "$.int().check($ >= 1).check($ <= 9.5)", "open": "$.bool()"},
		read["Properties"].(map[string]any)["templateParameters"].(map[string]any)["Contract"])
	require.Contains(t, string(text), `"nested/one.yaml": !yaql "$resources.string('HotFiles/nested/one.yaml')"`)
	resource, err := p.File("Resources/org.Hot")
	require.NoError(t, err)
	require.Equal(t, template, string(resource))

	_, text, err = hot(t, entry{name: "Resources/HotEnvironments/prod.yaml", content: "x"}).ClassFile("org.Hot")
	require.NoError(t, err)
	require.NotContains(t, string(text), "m1.small", "an environment of Heat sets the parameters")
}

func TestAWrongTemplateIsRefusedWithItsPlace(t *testing.T) {
	for text, says := range map[string]string{
		"[":                                 "template.yaml: yaml: line 1",
		"a text":                            "Not a HOT template",
		"parameters: {}":                    "template.yaml:1:1: Not a HOT template: it has no resources",
		"resources: {}\nparameters: [a]":    "template.yaml:2:13: parameters should be a map",
		"resources: {}\nparameters: {a: b}": "template.yaml:2:17: parameter 'a' should be a map with a type",
		"resources: {}\nparameters: {a: {label: b}}":                                               "parameter 'a' has no type",
		"resources: {}\nparameters: {a: {type: b}}":                                                "template.yaml:2:24: parameter 'a': Unsupported parameter type b",
		"resources: {}\nparameters: {a: {type: string, constraints: x}}":                           "should be a list of maps",
		"resources: {}\nparameters: {a: {type: string, constraints: [{range: {min: x}}]}}":         "min should be a number",
		"resources: {}\nparameters: {a: {type: string, constraints: [{length: {}}]}}":              "need min, max or both",
		"resources: {}\nparameters: {a: {type: string, constraints: [{allowed_values: 1}]}}":       "allowed_values should be a list",
		"resources: {}\nparameters: {a: {type: string, constraints: [{allowed_pattern: [1, 2]}]}}": "allowed_pattern should be a text",
		"resources: {}\nparameter_groups: 1":                                                       "parameter_groups should be a list",
	} {
		_, err := read(zipOf(t, entry{name: "manifest.yaml", content: hotManifest}, entry{name: "template.yaml", content: text}))
		require.ErrorContains(t, err, says, text)
		require.Equal(t, fault.Invalid, fault.KindOf(err), text)
	}
}
