package ui_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/ui"
)

const whole = `Version: 2.3
Application:
  ?: {type: org.example.App}
  name: $.first.name
  count: 3
  quoted: "$.first.name"
  on: yes
Templates:
  node: {flavor: $.first.flavor}
Parameters:
  sizes: [1, 2.5, ~]
ParametersSource: org.example.App.parameters
Forms:
- first:
    fields:
    - &name
      name: name
      type: string
      max_length: 10
      regexpValidator: '/^[a-z]+$/i'
      validators:
      - {expr: len($) > 2, message: too short}
      - {expr: {regexpValidator: '^a'}}
    - name: flavor
      type: flavor
      required: $.first.name != x
      initial: 2020-01-01
      requirements: {min_vcpus: 1}
    - {<<: *name, name: other}
    validators:
    - {expr: "$.first.name != root", message: not root}
    region: $region
    topics:
      Servers: [flavor]
- second:
    fields:
    - {name: app, type: [org.example.A, org.example.B]}
    - {name: host, type: org.example.Host}
    - {name: c, type: choice, choices: {a: A}}
    - {name: d, type: choice, choices: [[a, A], [b, B]]}
`

func TestADefinitionIsRead(t *testing.T) {
	d, problems := ui.Parse("UI/ui.yaml", []byte(whole))
	require.Empty(t, problems)
	require.Equal(t, 3, d.Minor)
	require.Equal(t, "org.example.App.parameters", d.ParametersSource)

	require.Equal(t, ui.Expression, d.Application.Get("name").Kind)
	require.Equal(t, "$.first.name", d.Application.Get("name").Expression.String())
	require.Equal(t, ui.Place{Line: 4, Column: 9}, d.Application.Get("name").Place)
	require.Equal(t, int64(3), d.Application.Get("count").Constant)
	require.Equal(t, "$.first.name", d.Application.Get("quoted").Constant, "a text in quotes is no expression")
	require.Equal(t, true, d.Application.Get("true").Constant, "YAML 1.1")
	require.Equal(t, "org.example.App", d.Application.Get("?").Get("type").Constant)
	require.Equal(t, "node", d.Templates[0].Name())
	require.Equal(t, "$.first.flavor", d.Templates[0].Value.Get("flavor").Expression.String())
	sizes := d.Parameters[0].Value.Items
	require.Equal(t, []any{int64(1), 2.5, nil}, []any{sizes[0].Constant, sizes[1].Constant, sizes[2].Constant})

	require.Len(t, d.Forms, 2)
	first := d.Forms[0]
	require.Equal(t, "first", first.Name)
	require.Equal(t, "$region", first.Region.Expression.String())
	require.Equal(t, map[string]string{"flavor": "Servers"}, first.Topics)
	require.Equal(t, "$.first.name != root", first.Validators[0].Expression.String(), "quotes do not matter here")
	require.Equal(t, "not root", first.Validators[0].Message.Constant)

	require.Len(t, first.Fields, 3)
	name := first.Fields[0]
	require.Equal(t, "string", name.Type)
	require.Equal(t, int64(10), name.Attributes["maxLength"].Constant)
	require.Len(t, name.Validators, 3)
	require.Equal(t, "/^[a-z]+$/i", name.Validators[0].Pattern.Constant)
	require.Equal(t, "len($) > 2", name.Validators[1].Expression.String())
	require.Nil(t, name.Validators[1].Pattern)
	require.Equal(t, "^a", name.Validators[2].Pattern.Constant)
	flavor := first.Fields[1]
	require.Equal(t, ui.Expression, flavor.Attributes["required"].Kind)
	require.Equal(t, "2020-01-01", flavor.Attributes["initial"].Constant, "a date is no difference of numbers")
	require.Equal(t, "other", first.Fields[2].Name, "own keys count more than merged ones")
	require.Equal(t, "string", first.Fields[2].Type)

	second := d.Forms[1].Fields
	require.Equal(t, []string{"org.example.A", "org.example.B"}, second[0].Classes)
	require.Equal(t, []string{"org.example.Host"}, second[1].Classes)
	require.Empty(t, second[1].Type)
}

func TestTopicsAreListsOfFields(t *testing.T) {
	for topics, said := range map[string]string{
		"{Network: [a, b]}": "name a field b, which it does not have",
		"{}":                "a map from headings to lists of fields",
		"[a]":               "a map from headings to lists of fields",
		"{Network: [[a]]}":  "a topic is a list of names of fields",
	} {
		_, problems := ui.Parse("u", []byte("Application: {a: b}\nForms:\n- form:\n    fields:\n    - {name: a, type: string}\n    topics: "+topics))
		require.NotEmpty(t, problems, topics)
		require.Contains(t, problems[0].Error(), said, topics)
	}
}

func TestVersions(t *testing.T) {
	for text, minor := range map[string]int{"": 4, "Version: ~": 4, "Version: 2": 0, "Version: 2.0": 0, "Version: '2.2'": 2, "Version: 2.4": 4, "Version: 2.1.7": 1} {
		d, problems := ui.Parse("u", []byte("Application: {a: b}\n"+text))
		require.Empty(t, problems, text)
		require.Equal(t, minor, d.Minor, text)
	}
	for text, said := range map[string]string{"1": "1", "3.0": "3.0", "2.5": "2.5", "'2.x'": "2.x", "[2]": "no number", "'2.40'": "2.40"} {
		_, problems := ui.Parse("u", []byte("Application: {a: b}\nVersion: "+text))
		require.Len(t, problems, 1, text)
		require.Contains(t, problems[0].Error(), "u:2:10: the version is "+said, text)
	}
}

func TestPatternsAreTakenOutOfTheirSlashes(t *testing.T) {
	for text, wanted := range map[string][2]string{
		`^\w+$`: {`^\w+$`, ""}, "/^a/b$/IM": {"^a/b$", "im"}, "//": {"", ""}, "/a": {"/a", ""}, "/a\nb/s": {"a\nb", "s"},
	} {
		pattern, flags := ui.SplitPattern(text)
		require.Equal(t, wanted, [2]string{pattern, flags}, text)
	}
}

func TestWhatIsWrongIsSaidWithItsPlace(t *testing.T) {
	field := func(attributes string) string {
		return "Application: {a: b}\nForms:\n- f:\n    fields:\n    - {name: a, " + attributes + "}\n"
	}
	for name, c := range map[string]struct {
		text   string
		wanted []string // a warning begins with "~"
	}{
		"nothing":                       {"", []string{"1:1: a UI definition is a map"}},
		"an empty section":              {"Application: {a: b}\nForms:\nTemplates:\n", nil},
		"an application of a text":      {"Application: a\n", []string{"1:14: Application should be a map with '?' and the properties, or an expression"}},
		"an application of expression":  {"Application: $app\n", nil},
		"templates of a list":           {"Application: {a: b}\nTemplates: [a]\n", []string{"2:12: Templates should be a map of names and values"}},
		"parameters of a text":          {"Application: {a: b}\nParameters: a\n", []string{"2:13: Parameters should be a map of names and values"}},
		"a source that is none":         {"Application: {a: b}\nParametersSource: a b\n", []string{"2:19: ParametersSource should be the name of a method"}},
		"a source that is a map":        {"Application: {a: b}\nParametersSource: {}\n", []string{"2:19: ParametersSource should be the name of a method"}},
		"an unknown section":            {"Application: {a: b}\nForm: 1\n", []string{"~2:1: there is no key Form; known are Version, Application"}},
		"a section twice":               {"Application: {a: b}\nForms:\nForms:\n", []string{"~3:1: the key Forms is there twice; the last one counts"}},
		"a form of two keys":            {"Application: {a: b}\nForms:\n- f: {fields: []}\n  g: {}\n", []string{"~4:3: a form should be a map of one key, its name; the first one counts"}},
		"a form twice":                  {"Application: {a: b}\nForms:\n- f: {fields: []}\n- f: {fields: []}\n", []string{"~4:3: there is another form f; the values of the last one count"}},
		"a form of nothing":             {"Application: {a: b}\nForms:\n- {}\n", []string{"3:3: a form should be a map of one key, its name"}},
		"a field twice":                 {field("type: string}\n    - {name: a, type: integer"), []string{"~6:14: there is another field a in this form; the last one counts"}},
		"a form that comes later":       {field("type: string, initial: $.g.b, required: $forms.f.x, hidden: $.f.a}\n    validators: [{expr: $.g.b = 1}]\n- g:\n    fields:\n    - {name: b, type: string"), []string{"~5:40: initial of field a asks for form g, which comes later: it has no value yet", "~6:18: a validator of form f asks for form g"}},
		"a form of a list":              {"Application: {a: b}\nForms:\n- f: []\n", []string{"3:6: form f should be a map with fields"}},
		"a form without fields":         {"Application: {a: b}\nForms:\n- f: {}\n", []string{"3:3: form f has no fields"}},
		"an unknown part of a form":     {"Application: {a: b}\nForms:\n- f: {fields: [], feilds: []}\n", []string{"~3:19: a form has no feilds; known are fields, validators, region"}},
		"a field of a text":             {"Application: {a: b}\nForms:\n- f: {fields: [a]}\n", []string{"3:16: a field should be a map with name and type"}},
		"a field without type":          {field("label: b"), []string{"5:7: a field needs a type"}},
		"a type of a map":               {field("type: {}"), []string{"5:23: a type should be a name"}},
		"no classes":                    {field("type: []"), []string{"5:23: a type should be a name"}},
		"a type among classes":          {field("type: [a.B, string]"), []string{"5:29: there is no type string"}},
		"an unknown attribute":          {field("type: string, lable: b"), []string{"~5:31: a field has no lable; known are name, type, label, "}},
		"an attribute of another type":  {field("type: string, imageType: linux"), []string{"~5:31: imageType says nothing in a field of type string"}},
		"other words for attributes":    {field("type: string, min_length: 1, help_text: b"), nil},
		"attributes of a wrong shape":   {field("type: string, label: [], hidden: 1, maxValue: 1.5, errorMessages: x, widgetAttrs: [], regexpValidator: 3"), []string{"5:38: label should be a text", "5:50: hidden should be true or false", "5:63: maxValue should be a whole number", "5:83: errorMessages should be a map", "5:99: widgetAttrs should be a map", "5:120: regexpValidator should be a regular expression"}},
		"attributes that are evaluated": {field("type: string, label: $a + 1, hidden: not $b, maxValue: 2 * 3, regexpValidator: $p, errorMessages: $m"), nil},
		"messages and media":            {field("type: string, errorMessages: {invalid: []}, widgetMedia: {jss: a}"), []string{"5:56: errorMessages.invalid should be a text", "~5:75: widgetMedia has no jss; known are js, css"}},
		"choices of texts":              {field("type: choice, choices: [a, [b, c]]"), []string{"5:41: a choice should be a list of a value and a label"}},
		"choices of a number":           {field("type: choice, choices: 3"), []string{"5:40: choices should be a list of pairs or a map"}},
		"choices from an expression":    {field("type: choice, choices: $sizes.keys()"), nil},
		"validators of a map":           {field("type: string, validators: {}"), []string{"5:43: validators should be a list of maps with expr and message"}},
		"a validator without expr":      {field("type: string, validators: [{message: a}]"), []string{"5:44: a validator needs an expr"}},
		"a validator with more":         {field("type: string, validators: [{expr: $ > 1, mesage: a}]"), []string{"~5:58: a validator has no mesage; known are expr, message"}},
		"a validator that is no YAQL":   {field("type: string, validators: [{expr: '$ >'}]"), []string{"5:51: this is no expression: "}},
		"a validator of a number":       {field("type: string, validators: [{expr: 3}]"), []string{"5:51: expr should be an expression or a map with regexpValidator"}},
		"a validator of another map":    {field("type: string, validators: [{expr: {regexp: a}}]"), []string{"5:51: expr should be an expression or a map with regexpValidator"}},
		"a text that looks like YAQL":   {field("type: string, label: $.a + * b"), []string{"~5:38: this is no expression and so only a text: "}},
		"a sum of money":                {field("type: string, label: for $5 a month!"), nil},
		"a tag that forces":             {"Application: {a: !yaql '$.'}\n", []string{"1:18: this is no expression: "}},
		"a merge of a text":             {"Application: {<<: a}\n", []string{"1:19: what is merged with << should be a map or a list of maps"}},
		"a map as a key":                {"Application: {? {a: b} : c}\n", []string{"1:17: a key should be a text"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := ui.Parse("UI/u.yaml", []byte(c.text))
			require.Len(t, problems, len(c.wanted), "%v", problems)
			usable := true
			for i, wanted := range c.wanted {
				wanted, warning := strings.CutPrefix(wanted, "~")
				require.Contains(t, problems[i].Error(), "UI/u.yaml:"+wanted)
				require.Equal(t, warning, problems[i].Warning, problems[i])
				usable = usable && warning
			}
			require.Equal(t, usable, d != nil)
		})
	}
}

func TestDefinitionsWithoutEndAreRefused(t *testing.T) {
	var bomb strings.Builder
	bomb.WriteString("Application: {a: b}\nTemplates:\n  a: &a [x, x]\n")
	for letter := 'b'; letter < 'z'; letter++ {
		bomb.WriteString("  " + string(letter) + ": &" + string(letter) + " [" + strings.Repeat("*"+string(letter-1)+", ", 9) + "]\n")
	}
	for name, text := range map[string]string{
		"aliases":                 bomb.String(),
		"one that repeats itself": "Application: &a [" + strings.Repeat("*a, ", 1000) + "]\n",
	} {
		t.Run(name, func(t *testing.T) {
			d, problems := ui.Parse("u", []byte(text))
			require.Nil(t, d)
			require.Len(t, problems, 1)
			require.Contains(t, problems[0].Message, "the definition has more than 100000 values, aliases written out")
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte("Application: &a {<<: *a, b: !yaql $.}\nForms: [{f: {fields: [{name: a, type: [b.C], choices: {a: [1]}}]}}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, problems := ui.Parse("u", text)
		require.True(t, d != nil || len(problems) > 0)
		for _, problem := range problems {
			require.Positive(t, problem.Line)
			require.Positive(t, problem.Column)
		}
	})
}
