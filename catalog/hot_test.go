package catalog_test

import (
	"encoding/json"
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
		map[string]any{"name": "count_of_it", "label": "Count Of It", "type": "string", "required": true, "description": "how many",
			"validators": []any{map[string]any{"expr": "float($) >= 1"}, map[string]any{"expr": "float($) <= 9.5"}}},
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

const manyParameters = `heat_template_version: 2016-10-14
parameters:
  size: {type: string, default: small, constraints: [{allowed_values: [small, large]}]}
  length: {type: number, default: 8, constraints: [{range: {min: 4, max: 40}}, {modulo: {step: 2, offset: 0}}]}
  ratio: {type: number, default: 0.5, constraints: [{range: {min: 0.1, max: 1}}]}
  release: {type: number, constraints: [{allowed_values: [2.4, "3"]}]}
  port: {type: string, default: 80}
  flag: {type: boolean, default: "off"}
  nothing: {type: number, default: 0}
  ports: {type: comma_delimited_list, default: "http,https", constraints: [{allowed_values: [http, https, ssh]}]}
  names: {type: comma_delimited_list, default: [alpha, beta], constraints: [{length: {min: 1, max: 3}}]}
  options: {type: json, default: {colour: red, depth: 3}}
  list: {type: json, default: [1, two]}
  pools: {type: string, default: []}
  day: {type: string, default: 2016-10-14, immutable: true, tags: [a]}
  word-length: {type: number, default: "12"}
  in: {type: string, default: "", constraints: [{custom_constraint: nova.flavor}]}
  key: {type: string, hidden: "true", default: geheim, constraints: [{length: {min: 5}, description: five signs}, {allowed_pattern: "[a-z]+"}]}
  needed: {type: string, default: null}
  odd:
    type: string
    label: "100% 'of' {0} $it\n\"übrig\" # : [x]"
    description: "$.no.expression + {a: b}"
    default: "it's {here} \\ $x \"y\""
    constraints: [{allowed_values: ["it's {here} \\ $x \"y\"", "a\nb", "ü", ""], description: "one of: {these} \"$\" 100%"}]
resources: {r: {type: OS::Heat::RandomString}}
`

func packageOf(t *testing.T, text string, more ...entry) *catalog.Package {
	t.Helper()
	p, err := read(zipOf(t, append([]entry{{name: "manifest.yaml", content: hotManifest}, {name: "template.yaml", content: text}}, more...)...))
	require.NoError(t, err)
	return p
}

// taken returns the value in the model for a value of a parameter.
func taken(t *testing.T, p *catalog.Package, name string, value any) (any, []muranopl.Problem) {
	t.Helper()
	embedded, err := apps.Packages()
	require.NoError(t, err)
	model := map[string]any{"?": map[string]any{"type": "org.Hot", "id": "one"}, "name": "one", "templateParameters": map[string]any{name: value}}
	object, problems := muranopl.Load(t.Context(), muranopl.NewClasses(append(catalog.Shelf{p}, embedded...)), model)
	if len(problems) > 0 {
		return nil, problems
	}
	parameters, _ := object.Get("templateParameters")
	sent := parameters.(map[string]any)[name]
	return sent, nil
}

func TestParametersAreTakenAsHeatTakesThem(t *testing.T) {
	p := packageOf(t, manyParameters)
	for _, c := range []struct {
		name        string
		given, sent any
	}{
		{"size", nil, nil}, {"size", "large", "large"}, {"size", "", nil},
		{"length", "10", int64(10)}, {"length", 10.0, int64(10)}, {"length", "", nil},
		{"ratio", 0.5, 0.5}, {"ratio", "0.25", 0.25}, {"ratio", int64(1), int64(1)},
		{"release", 2.4, 2.4}, {"release", "2.40", 2.4}, {"release", int64(3), int64(3)},
		{"port", int64(80), "80"}, {"port", true, "True"}, {"port", 1.5, "1.5"}, {"port", "", ""},
		{"flag", "YES", true}, {"flag", "f", false}, {"flag", int64(1), true}, {"flag", "n", false},
		{"nothing", int64(0), int64(0)},
		{"ports", "http,ssh", "http,ssh"}, {"ports", []any{"http"}, []any{"http"}},
		{"names", "alpha,beta,gamma", "alpha,beta,gamma"}, {"names", []any{int64(1)}, []any{int64(1)}},
		{"options", `{"a": 1}`, `{"a": 1}`}, {"options", map[string]any{"a": int64(1)}, map[string]any{"a": int64(1)}}, {"options", []any{"a"}, []any{"a"}},
		{"list", "[1]", "[1]"},
		{"word-length", int64(7), int64(7)}, {"in", "m1", "m1"},
		{"key", "abcde", "abcde"}, {"key", "", nil},
		{"odd", "a\nb", "a\nb"}, {"odd", "", ""},
	} {
		sent, problems := taken(t, p, c.name, c.given)
		require.Empty(t, problems, "%s: %v", c.name, c.given)
		require.Equal(t, c.sent, sent, "%s: %v", c.name, c.given)
	}
	for _, c := range []struct {
		name  string
		given any
		why   string
	}{
		{"size", "middle", `"middle" is not one of ["small","large"]`},
		{"length", int64(3), "3 is out of range (4 to 40)"}, {"length", int64(5), "5 is no multiple of 2"}, {"length", "many", `a number is wanted, found "many"`},
		{"release", 2.5, "is not one of"}, {"flag", "perhaps", "true or false is wanted"},
		{"ports", "http,gopher", `"gopher" is not one of`}, {"ports", map[string]any{}, "a list, or a text with commas, is wanted"},
		{"names", "a,b,c,d", "the length 4 is out of range (1 to 3)"},
		{"options", "{a: 1", "JSON is wanted"}, {"port", []any{"80"}, "a text is wanted"},
		{"key", "1234567", `the value breaks the constraint {"allowed_pattern":"[a-z]+"}`}, {"key", "abc", "five signs"},
		{"odd", "x", `one of: {these} "$" 100%`},
	} {
		_, problems := taken(t, p, c.name, c.given)
		require.Len(t, problems, 1, "%s: %v", c.name, c.given)
		require.Contains(t, problems[0].Error(), c.why)
		if c.name == "key" {
			require.NotContains(t, problems[0].Error(), c.given)
		}
	}
}

func TestTheFormOfManyParametersIsFilledIn(t *testing.T) {
	p := packageOf(t, manyParameters+"parameter_groups: [{label: one, parameters: [odd, size, odd]}, {parameters: [size]}]\n")
	definition, problems := ui.Parse("ui.yaml", formOf(t, p))
	for _, problem := range problems {
		require.True(t, problem.Warning, problem.Error())
	}
	p.Judge(definition)
	values := func(group1, group2 map[string]any) ui.Input {
		return ui.Input{Values: map[string]map[string]any{"group0": {"name": "one"}, "group1": group1, "group2": group2}}
	}
	result, err := definition.Evaluate(t.Context(), values(nil, map[string]any{"needed": "x", "release": 2.4}))
	require.NoError(t, err)
	require.Empty(t, result.Errors)
	require.Equal(t, map[string]any{"size": "small", "length": int64(8), "ratio": json.Number("0.5"), "release": json.Number("2.4"), "port": "80", "flag": false, "nothing": int64(0), "ports": "http,https",
		"names": "alpha,beta", "options": `{"colour":"red","depth":3}`, "list": `[1,"two"]`, "pools": "[]", "day": "2016-10-14", "word-length": int64(12), "in": "", "key": "",
		"needed": "x", "odd": "it's {here} \\ $x \"y\""}, result.Model["templateParameters"])
	require.Equal(t, "100% 'of' {0} $it\n\"übrig\" # : [x]", result.Forms[1].Fields[0].Label)

	result, err = definition.Evaluate(t.Context(), values(map[string]any{"odd": "x", "size": "huge"}, map[string]any{"release": "2.5", "ports": "gopher", "names": "a,b,c,d", "length": 4.5}))
	require.NoError(t, err)
	wrong := map[string]string{}
	for _, one := range result.Errors {
		wrong[one.Field] = one.Message
	}
	require.Equal(t, map[string]string{"odd": `one of: {these} "$" 100%`, "size": `"huge" is not one of ["small","large"]`, "release": `"2.5" is not one of [2.4,"3"]`,
		"ports": `"gopher" is not one of ["http","https","ssh"]`, "names": "the length 4 is out of range (1 to 3)", "length": "4.5 is no multiple of 2 with an offset of 0",
		"needed": "This field is required."}, wrong)
}

func TestANameThatStandsTwiceIsReadAndNotTakenIn(t *testing.T) {
	p := packageOf(t, "resources: {r: {type: OS::Heat::None}}\nparameters:\n  a: {type: string, default: x}\n  b: {type: string}\n  a: {type: number, default: 7}\n")
	err := p.CheckTemplate()
	require.ErrorContains(t, err, "template.yaml:5:3: parameters has 'a' twice, in line 3 too")
	require.Equal(t, fault.Invalid, fault.KindOf(err))
	require.ErrorContains(t, packageOf(t, "resources: {r: {type: OS::Heat::None}}\noutputs: {}\nresources: {}\n").CheckTemplate(), "template.yaml:3:1: the template has 'resources' twice, in line 1 too")
	sent, problems := taken(t, p, "a", "8")
	require.Empty(t, problems)
	require.Equal(t, int64(8), sent, "the last one counts")
}

func TestMergedKeysOfATemplateCount(t *testing.T) {
	p := packageOf(t, `
x: &common {type: number, default: 3}
parameters:
  <<: {merged: {<<: *common, default: 5}}
  own: {<<: [*common, {label: Own}]}
resources: {}
outputs:
  <<: {one: {value: 1}}
`)
	sent, problems := taken(t, p, "merged", "6")
	require.Empty(t, problems)
	require.Equal(t, int64(6), sent)
	require.Contains(t, string(formOf(t, p)), `"label": "Own"`)
	_, text, err := p.ClassFile("org.Hot")
	require.NoError(t, err)
	require.Contains(t, string(text), `"one": !yaql "$"`)
}
