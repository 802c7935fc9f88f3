package check_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
	"github.com/burano/burano/catalog/check"
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
	for _, finding := range check.Package(t.Context(), pkg, embedded(t)) {
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
		require.Empty(t, check.Package(t.Context(), pkg, embedded(t)), manifest)
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
		{"files that nothing uses", "Methods:\n  m:\n    Body: $.f('run.sh')\n", map[string]string{
			"Resources/scripts/run.sh": "", "Resources/old.sh": "", "Classes/Old.yaml": "Name: Old"},
			[]string{"Classes/Old.yaml:1:1: unused-classfile: the manifest names no class of this file", "Resources/old.sh:1:1: unused-resource: no other file of the package names this one"}},
		{"a file that is no YAML", "Properties: {\n", nil, []string{"Classes/Thing.yaml:5:1: class: Classes/Thing.yaml is no YAML: yaml: line 5: did not find expected node content"}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.wanted, findings(t, c.class, c.files)) })
	}
}

func TestAliasesWithoutEndAreNotFollowedWithoutEnd(t *testing.T) {
	bomb := "Methods:\n  m:\n    Body:\n    - &a [$x + 1, $x + 1]\n"
	for letter := 'b'; letter < 'z'; letter++ {
		bomb += "    - &" + string(letter) + " [*" + string(letter-1) + ", *" + string(letter-1) + ", *" + string(letter-1) + "]\n"
	}
	findings(t, bomb, nil)
}
