package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/check"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
)

func embedded(t *testing.T) catalog.Shelf {
	t.Helper()
	packages, err := apps.Packages()
	require.NoError(t, err)
	return packages
}

// findings checks a package of one class, the document of which begins with the names below.
func findings(t *testing.T, class string, files map[string]string) []string {
	t.Helper()
	folder := fstest.MapFS{
		"manifest.yaml":      {Data: []byte("Format: '1.4'\nType: Library\nFullName: org.example.P\nName: P\nClasses:\n  org.example.Thing: Thing.yaml\n")},
		"Classes/Thing.yaml": {Data: []byte("Namespaces:\n  =: org.example\n  std: io.murano\nName: Thing\n" + class)},
	}
	for name, text := range files {
		folder[name] = &fstest.MapFile{Data: []byte(text)}
	}
	pkg, err := catalog.ReadFolder(folder)
	require.NoError(t, err)
	var all []string
	for _, finding := range check.Package(t.Context(), pkg, embedded(t), nil) {
		all = append(all, finding.String())
	}
	return all
}

func TestThePackagesOfTheHouseAreInOrder(t *testing.T) {
	folders, err := filepath.Glob("../apps/*/manifest.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, manifest := range folders {
		pkg, err := catalog.ReadFolder(os.DirFS(filepath.Dir(manifest)))
		require.NoError(t, err)
		require.Empty(t, check.Package(t.Context(), pkg, embedded(t), nil), manifest)
	}
}

func TestEachRuleFindsWhatItIsForAndSaysWhere(t *testing.T) {
	for _, c := range []struct {
		name, class string
		files       map[string]string
		wanted      []string
	}{
		{"an ancestor that is nowhere", "Extends: std:Nothing\n", nil,
			[]string{"Classes/Thing.yaml:5:10: unknown-class: class org.example.Thing (Classes/Thing.yaml:5:10) extends io.murano.Nothing: " +
				"class io.murano.Nothing is neither in package org.example.P nor in one that its manifest requires"}},
		{"an import that is nowhere", "Import: [std:Nothing]\n", nil,
			[]string{"Classes/Thing.yaml:5:9: unknown-class: class org.example.Thing (Classes/Thing.yaml:5:9) imports io.murano.Nothing: " +
				"class io.murano.Nothing is neither in package org.example.P nor in one that its manifest requires"}},
		{"a contract with a function that there is not", "Properties:\n  a:\n    Contract: $.strnig()\n", nil,
			[]string{"Classes/Thing.yaml:7:15: class: a contract has no function strnig(); it has string, int, bool, notNull, check, class, template, owned and notOwned"}},
		{"keys that are there twice", "Properties:\n  a:\n    Contract: $\n    Contract: $.int()\n  a:\n    Contract: $\n", nil,
			[]string{`Classes/Thing.yaml:9:3: class: the key "a" is there twice; the last one counts`}},
		{"a key of a property that is there twice", "Properties:\n  a:\n    Contract: $\n    Contract: $.int()\n", nil,
			[]string{`Classes/Thing.yaml:8:5: class: the key "Contract" is there twice; the last one counts`}},
		{"an unknown class in a contract", "Properties:\n  a:\n    Contract: $.class(std:Nothing)\n", nil,
			[]string{"Classes/Thing.yaml:7:23: unknown-class: class io.murano.Nothing is neither in package org.example.P nor in one that its manifest requires"}},
		{"an unknown class and an unknown prefix in a body", "Methods:\n  m:\n    Body:\n    - $x: new(Missing)\n    - Return: $x is no:Thing\n", nil,
			[]string{"Classes/Thing.yaml:8:15: unknown-class: class org.example.Missing is neither in package org.example.P nor in one that its manifest requires",
				`Classes/Thing.yaml:9:21: unknown-class: the prefix "no" of "no:Thing" is not among the Namespaces`}},
		{"an expression that is none", "Methods:\n  m:\n    Body:\n    - Return: $this.a + * 2\n", nil,
			[]string{`Classes/Thing.yaml:8:15: expression: this is no expression and so only a text: column 11: expected a value, found "*"; put it in quotes when a text is meant`}},
		{"instructions after the end", "Methods:\n  m:\n    Body:\n    - If: $a\n      Then:\n      - Return: 1\n      - $b: 2\n      Else:\n        Throw: x\n    - $c: 3\n", nil,
			[]string{"Classes/Thing.yaml:11:9: unreachable: nothing comes here: what stands before it leaves the block",
				"Classes/Thing.yaml:14:7: unreachable: nothing comes here: what stands before it leaves the block"}},
		{"instructions that are reached", "Methods:\n  m:\n    Body:\n    - If: $a\n      Then:\n      - Return: 1\n    - Try:\n      - Return: 1\n      Catch:\n      - As: e\n        Do: $b\n" +
			"    - While: $a\n      Do:\n      - Break:\n    - Match:\n        1:\n        - Return: 1\n      Value: $a\n    - Return: \"$not one\"\n", nil, nil},
		{"metadata that is none", "Meta: std:Object\nProperties:\n  a:\n    Meta: {io.murano.metadata.Title: {text: [1]}}\n    Contract: $\n" +
			"Methods:\n  m:\n    Meta: {io.murano.metadata.Title: {words: x}}\n    Arguments:\n    - b:\n        Contract: $\n        Meta: std:Nothing\n" +
			"  n:\n    Meta:\n    - io.murano.metadata.Title: {text: fine}\n    - io.murano.metadata.ModelBuilder\n", nil,
			[]string{"Classes/Thing.yaml:5:7: metadata: Only Meta classes can be attached",
				"Classes/Thing.yaml:8:11: metadata: text: io.murano.metadata.Title.text wants string().notNull(), found a list of 1",
				"Classes/Thing.yaml:12:11: metadata: text: io.murano.metadata.Title.text wants string().notNull(), found null: give a text",
				"Classes/Thing.yaml:16:15: unknown-class: class io.murano.Nothing is neither in package org.example.P nor in one that its manifest requires"}},
		{"metadata of the package that does not apply there", "", map[string]string{"manifest.yaml": "Format: '1.4'\nType: Library\nFullName: org.example.P\nName: P\n" +
			"Classes:\n  org.example.Thing: Thing.yaml\nMeta:\n- io.murano.metadata.ModelBuilder\n"},
			[]string{"manifest.yaml:8:1: metadata: Meta class io.murano.metadata.ModelBuilder is not applicable here"}},
		{"metadata of the package of an unknown class", "", map[string]string{"manifest.yaml": "Format: '1.4'\nType: Library\nFullName: org.example.P\nName: P\n" +
			"Classes:\n  org.example.Thing: Thing.yaml\nMeta: {org.example.Nothing: {}}\n"},
			[]string{"manifest.yaml:7:7: unknown-class: class org.example.Nothing is neither in package org.example.P nor in one that its manifest requires"}},
		{"metadata in order", "Meta: {io.murano.metadata.Title: {text: fine}}\n", map[string]string{"manifest.yaml": "Format: '1.4'\nType: Library\nFullName: org.example.P\n" +
			"Name: P\nClasses:\n  org.example.Thing: Thing.yaml\nMeta: {io.murano.metadata.Title: {text: fine}}\n"}, nil},
		{"calls of what nothing has", "Methods:\n  m:\n    Body:\n    - $a: list(1).slect($ + 1)\n    - $.m()\n    - $.find(std:Environment).require().reporter.report($this, leng($a))\n", nil,
			[]string{"Classes/Thing.yaml:8:19: unknown-function: there is no function slect(), and no class at hand has a method of that name",
				"Classes/Thing.yaml:10:64: unknown-function: there is no function leng(), and no class at hand has a method of that name"}},
		{"calls of deprecated methods", "Methods:\n  m:\n    Body:\n    - $.find(Thing).lockNode(node => a)\n    - $.find(Thing).setNode(node => a, locked => true)\n    - $.rotateKeys()\n  rotateKeys: {}\n", nil,
			[]string{"Classes/Thing.yaml:8:21: deprecated: lockNode() is deprecated, and a coming release does not have it: use setNode with locked true"}},
		{"files that nothing uses", "Methods:\n  m:\n    Body: $.m('run.sh')\n", map[string]string{
			"Resources/scripts/run.sh": "", "Resources/old.sh": "", "Classes/Old.yaml": "Name: Old"},
			[]string{"Classes/Old.yaml:1:1: unused-classfile: the manifest names no class of this file", "Resources/old.sh:1:1: unused-resource: no other file of the package names this one"}},
		{"a file that is no YAML", "Properties: {\n", nil, []string{"Classes/Thing.yaml:5:1: class: Classes/Thing.yaml is no YAML: yaml: line 5: did not find expected node content"}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.wanted, findings(t, c.class, c.files)) })
	}
}

func TestTheFormIsChecked(t *testing.T) {
	ui := func(text string) map[string]string { return map[string]string{"UI/ui.yaml": text} }
	const application = "Application: {'?': {type: org.example.Thing}}\n"
	for name, c := range map[string]struct {
		text   string
		wanted []string
	}{
		"in order": {"Version: 2.4\n" + application + "Templates: {a: {b: $.f.name}}\nForms:\n- f:\n    fields:\n    - {name: name, type: string, required: $a, maxLength: 5}\n" +
			"    - {name: app, type: [org.example.A, org.example.B]}\n    validators: [{expr: '$.f.name != x', message: no}]\n", nil},
		"no YAML":          {"Forms: [", []string{"UI/ui.yaml:1:1: ui: this is no YAML: yaml: line 1: did not find expected node content"}},
		"a list":           {"- a", []string{"UI/ui.yaml:1:1: ui: a UI definition is a map with Version, Application and Forms"}},
		"an odd version":   {"Version: 3\n" + application, []string{"UI/ui.yaml:1:10: ui: the version is 3; known are 2.0 to 2.4"}},
		"no application":   {"Version: 2\n", []string{"UI/ui.yaml:1:1: ui: there is no Application: it is the object model that the forms fill in"}},
		"an unknown key":   {application + "Form: []\n", []string{"UI/ui.yaml:2:1: ui: there is no key Form; known are Version, Application, Templates, Parameters, ParametersSource, Forms"}},
		"forms of a map":   {application + "Forms: {}\n", []string{"UI/ui.yaml:2:8: ui: Forms should be a list of forms, each a map of its name"}},
		"fields of a map":  {application + "Forms:\n- f:\n    fields: {}\n", []string{"UI/ui.yaml:4:13: ui: fields should be a list"}},
		"a field's name":   {application + "Forms:\n- f:\n    fields:\n    - type: string\n", []string{"UI/ui.yaml:5:7: ui: a field needs a name"}},
		"names twice":      {application + "Forms:\n- f: {fields: [{name: a, type: text}, {name: a, type: text}]}\n", []string{"UI/ui.yaml:3:46: ui: there is another field a in this form"}},
		"a choice of none": {application + "Forms:\n- f: {fields: [{name: a, type: choice}]}\n", []string{"UI/ui.yaml:3:16: ui: a field of type choice needs choices"}},
		"wrong attributes": {application + "Forms:\n- f:\n    fields:\n    - name: a\n      type: string\n      required: maybe\n      minLength: few\n      validators: [{message: m}]\n", []string{
			"UI/ui.yaml:7:17: ui: required should be true or false", "UI/ui.yaml:8:18: ui: minLength should be a whole number", "UI/ui.yaml:9:20: ui: a validator needs an expr"}},
		"no expression": {application + "Templates:\n  a: !yaql '$.'\n", []string{"UI/ui.yaml:3:6: ui: this is no expression: "}},
		"an alias bomb": {application + "a: &a [x, x]\n", []string{"UI/ui.yaml:2:1: ui: there is no key a; known are Version, Application, Templates, Parameters, ParametersSource, Forms"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := findings(t, "", ui(c.text))
			require.Len(t, got, len(c.wanted), "%v", got)
			for i, wanted := range c.wanted {
				require.Contains(t, got[i], wanted)
			}
		})
	}
	require.Contains(t, findings(t, "", ui(application+"Forms:\n- f: {fields: [{name: a, type: srting}]}\n"))[0], "UI/ui.yaml:3:32: ui: there is no type srting; there are string, text")
}

// everything breaks each rule once.
var everything = fstest.MapFS{
	"manifest.yaml": {Data: []byte("Format: '1.4'\nType: Library\nFullName: org.example.P\nRequire:\n  org.example.None: 1.0\n" +
		"Classes:\n  org.example.Bad: Bad.yaml\n  org.example.Lost: Lost.yaml\n  org.example.Thing: Thing.yaml\n")},
	"Classes/Thing.yaml": {Data: []byte("Namespaces: {=: org.example, std: io.murano}\nName: Thing\nMethods:\n  m:\n    Body:\n" +
		"    - $a: new(std:Nothing)\n    - $b: $a + * 2\n    - Return: 1\n    - $c: 1\nMeta: std:Object\n")},
	"Classes/Bad.yaml":   {Data: []byte("Name: org.example.Bad\nProperties:\n  a: {Contract: $.strnig()}\n")},
	"Classes/Other.yaml": {Data: []byte("Name: Other\n")},
	"Resources/a.sh":     {},
	"UI/ui.yaml":         {Data: []byte("Version: 3\nApplication: {a: b}\n")},
	"images.lst":         {Data: []byte("Images: a\n")},
}

// complete breaks the rules that nothing is found by where a package is not at hand.
var complete = fstest.MapFS{
	"manifest.yaml": {Data: []byte("Format: '1.4'\nType: Library\nFullName: org.example.P\nName: P\nClasses:\n  org.example.Thing: Thing.yaml\n")},
	"Classes/Thing.yaml": {Data: []byte("Namespaces: {=: org.example, std: io.murano, sys: io.murano.system}\nName: Thing\nMethods:\n  m:\n    Body:\n" +
		"    - $plan: new(sys:Resources).yaml('Set.template').bind(dict(a => 1))\n    - $b: $plan.get(Body).strp()\n    - $b.rotateKeys()\n")},
	"Resources/Set.template": {Data: []byte("FormatVersion: 2.0.0\nParameters: {a: $a, b: $b, c: '$c-{d}'}\nBody: return 1\n")},
}

// named breaks the rule that a chart is at hand.
var named = fstest.MapFS{"manifest.yaml": {Data: []byte("Format: Helm/1.0\nFullName: org.example.Pages\nChart: oci://registry.example.org/pages:1.0.0\n")}}

// Packages of kinds that are published. Murano 14.0 imports each, deploys their other classes, and finds no class of a name that its file does not declare, nor a
// base class of a package that is not required.
func TestPackagesThatMuranoTakesAreTakenWithAWarning(t *testing.T) {
	const good = "Namespaces: {=: org.a, std: io.murano}\nName: Good\nExtends: std:Application\n"
	folder := fstest.MapFS{
		"manifest.yaml":     {Data: []byte("Format: 1.3\nType: Application\nFullName: org.a\nName: A\nClasses:\n  org.a.App: App.yaml\n  org.a.Wanted: Wanted.yaml\n  org.a.Good: Good.yaml\n")},
		"Classes/App.yaml":  {Data: []byte(strings.Replace(good, "Good", "App.Sub", 1))},
		"Classes/Good.yaml": {Data: []byte(good)}, "Classes/Wanted.yaml": {Data: []byte(strings.Replace(good, "Good", "Other", 1))},
	}
	a, err := catalog.ReadFolder(folder)
	require.NoError(t, err)
	found := check.Package(t.Context(), a, embedded(t), nil)
	require.Len(t, found, 2)
	require.True(t, found[0].Warning)
	require.Equal(t, "Classes/App.yaml:1:1: class: the manifest says that class org.a.App is here, but only App.Sub is", found[0].String())
	require.True(t, found[1].Warning)
	require.Equal(t, "Classes/Wanted.yaml:1:1: class: the manifest says that class org.a.Wanted is here, but only org.a.Other is", found[1].String())
	classes := muranopl.NewClasses(append(embedded(t), a))
	_, err = classes.Class(t.Context(), "org.a.Good", "")
	require.NoError(t, err)
	_, err = classes.Class(t.Context(), "org.a.App", "")
	require.ErrorContains(t, err, "package org.a, Classes/App.yaml:1:1: the manifest says that class org.a.App is here, but only App.Sub is")
	require.Equal(t, fault.Invalid, fault.KindOf(err))

	c, err := catalog.ReadFolder(fstest.MapFS{"manifest.yaml": {Data: []byte("Format: 1.3\nType: Application\nFullName: org.c\nClasses:\n  org.c.App: App.yaml\n")},
		"Classes/App.yaml": {Data: []byte("Namespaces: {=: org.c, lib: org.a}\nName: App\nExtends: lib:Good\n")}})
	require.NoError(t, err)
	found = check.Package(t.Context(), c, append(embedded(t), a), nil)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Message, "class org.a.Good is neither in package org.c nor in one that its manifest requires: it is in package org.a, so add that to Require")
	require.False(t, found[0].Warning)
}

// stack breaks the rule that files are there.
var stack = fstest.MapFS{"manifest.yaml": {Data: []byte("Format: Heat.HOT/1.0\nType: Application\nFullName: org.example.Stack\n")},
	"template.yaml": {Data: []byte("heat_template_version: 2016-10-14\nresources:\n  a: {type: lost.yaml}\n")}}

func TestFilesThatATemplateNamesAreMissed(t *testing.T) {
	pkg, err := catalog.ReadFolder(fstest.MapFS{"manifest.yaml": stack["manifest.yaml"],
		"template.yaml": {Data: []byte("resources:\n  a: {type: sub/one.yaml}\n  b: {type: OS::Nova::Server, properties: {user_data: {get_file: http://example.org/x}}}\n" +
			"  c: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: ./two.yaml}}}\n")},
		"Resources/HotEnvironments/prod.yaml": {Data: []byte("resource_registry:\n  My::Thing: three.yaml\n  resources: {a: {My::Other: four.yaml, hooks: pre-create}}\n")},
		"Resources/HotFiles/sub/one.yaml":     {Data: []byte("resources: {a: {type: OS::Nova::Server, properties: {user_data: {get_file: init.sh}, personality: {a: {get_file: ../up.sh}}}}}\n")},
		"Resources/HotFiles/three.yaml":       {Data: []byte("resources: {a: {type: sub/one.yaml}}\n")},
		"Resources/HotFiles/init.sh":          {Data: []byte("where Heat asks for it")},
	})
	require.NoError(t, err)
	var found []string
	for _, finding := range check.Package(t.Context(), pkg, embedded(t), nil) {
		require.Equal(t, check.MissingFile, finding.Rule, "%s", finding)
		found = append(found, finding.String())
	}
	require.Equal(t, []string{
		`Resources/HotEnvironments/prod.yaml:3:30: missing-file: the template names the file "four.yaml", which is not in the package: put it into Resources/HotFiles/four.yaml`,
		`Resources/HotFiles/sub/one.yaml:1:114: missing-file: the template names the file "../up.sh", which is not in the package: put it into Resources/HotFiles/up.sh`,
		`template.yaml:3:66: missing-file: the template names "http://example.org/x", and templates can name files of the package only: put it into Resources/HotFiles and name it by its path there`,
		`template.yaml:4:72: missing-file: the template names the file "./two.yaml", which is not in the package: put it into Resources/HotFiles/two.yaml`,
	}, found)
}

func TestEachRuleFindsSomethingAndIsDocumented(t *testing.T) {
	found := map[check.Rule]string{}
	for _, folder := range []fstest.MapFS{everything, complete, named, stack} {
		pkg, err := catalog.ReadFolder(folder)
		require.NoError(t, err)
		for _, finding := range check.Package(t.Context(), pkg, embedded(t), nil) {
			require.Empty(t, found[finding.Rule], "%s", finding)
			found[finding.Rule] = fmt.Sprintf("%s:%d:%d", finding.File, finding.Line, finding.Column)
			if finding.Warning {
				found[finding.Rule] += " (warning)"
			}
		}
	}
	require.Equal(t, map[check.Rule]string{
		check.Manifest:       "manifest.yaml:8:3",
		check.Requirement:    "manifest.yaml:5:3 (warning)",
		check.UI:             "UI/ui.yaml:1:10",
		check.MissingFile:    "template.yaml:3:13",
		check.Images:         "images.lst:1:9 (warning)",
		check.Chart:          "manifest.yaml:3:8 (warning)",
		check.ClassFile:      "Classes/Bad.yaml:3:17",
		check.UnknownClass:   "Classes/Thing.yaml:6:15",
		check.Metadata:       "Classes/Thing.yaml:10:7",
		check.NoExpression:   "Classes/Thing.yaml:7:11",
		check.Unreachable:    "Classes/Thing.yaml:9:7 (warning)",
		check.UnusedResource: "Resources/a.sh:1:1 (warning)",
		check.UnusedFile:     "Classes/Other.yaml:1:1 (warning)",
		check.Plan:           "Classes/Thing.yaml:6:14 (warning)",
		check.Deprecated:     "Classes/Thing.yaml:8:10 (warning)",
		check.UnknownCall:    "Classes/Thing.yaml:7:27 (warning)",
	}, found)

	text, err := os.ReadFile("../../docs/authors.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "## Checking a package")
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []check.Rule
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)`( \\(warning\\))? \\|").FindAllStringSubmatch(section, -1) {
		rule := check.Rule(row[1])
		documented = append(documented, rule)
		require.Equal(t, strings.HasSuffix(found[rule], " (warning)"), row[2] != "", "whether %s is a warning", rule)
	}
	require.Equal(t, check.Rules(), documented)
	require.Len(t, found, len(documented))
}

func TestFindingsOfTheManifestHaveAPlace(t *testing.T) {
	const manifest = "Format: 1.4\nType: Library\nFullName: org.example.P\n"
	for rest, wanted := range map[string]string{
		"Classes: [":            "manifest.yaml:4:1: manifest: Unable to load due to",
		"Tags: {x: y}\n":        "manifest.yaml:4:7: manifest: Incorrect package format: Tags should be a list of texts",
		"Classes:\n  a.A:\n":    "manifest.yaml:5:3: manifest: Incorrect package format: Classes should be a map",
		"Require:\n  b: soon\n": "manifest.yaml:5:3: manifest: Incorrect package format: Require of 'b'",
		"Name: {a: b}\n":        "manifest.yaml:4:7: manifest: Incorrect package format: Name should be a text",
	} {
		_, err := catalog.ReadFolder(fstest.MapFS{"manifest.yaml": {Data: []byte(manifest + rest)}})
		require.Contains(t, check.Unreadable(err).String(), wanted)
	}
	_, err := catalog.ReadFolder(fstest.MapFS{"manifest.yaml": {Data: []byte("Format: Heat.HOT/1.0\nType: Application\nFullName: org.example.P\n")},
		"template.yaml": {Data: []byte("resources: {}\nparameters: {a: {type: b}}\n")}})
	require.Contains(t, check.Unreadable(err).String(), "template.yaml:2:24: manifest: ")

	pkg, err := catalog.ReadFolder(fstest.MapFS{"manifest.yaml": {Data: []byte(manifest + "Require:\n  org.example.None: '>=1'\nClasses:\n  a.A: A.yaml\n")}})
	require.NoError(t, err)
	var all []string
	for _, finding := range check.Package(t.Context(), pkg, embedded(t), nil) {
		all = append(all, finding.String())
	}
	require.Len(t, all, 2)
	require.Contains(t, all[0], "manifest.yaml:5:3: requirement: there is no package with the name org.example.None")
	require.Contains(t, all[1], "manifest.yaml:7:3: manifest: Package 'org.example.P' says that class 'a.A' is in 'Classes/A.yaml', but holds no such file")
}

func TestAliasesWithoutEndAreNotFollowedWithoutEnd(t *testing.T) {
	bomb := "Methods:\n  m:\n    Body:\n    - &a [$x + 1, $x + 1]\n"
	for letter := 'b'; letter < 'z'; letter++ {
		bomb += "    - &" + string(letter) + " [*" + string(letter-1) + ", *" + string(letter-1) + ", *" + string(letter-1) + "]\n"
	}
	findings(t, bomb, nil)
}
