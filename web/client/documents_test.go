package client

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDocumentsAreReadFromFilesFoldersAndStandardInput(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	write("a.yaml", "# nothing\n---\nkind: Package\npath: app\n---\nkind: Package\npath: https://example.org/app.zip\n---\nkind: Quota\nlimits: {environments: 3, packages: unlimited}\n")
	write("b.yml", "kind: Template\nname: small\npublic: false\n")
	write("c.txt", "no document")
	all, err := ReadDocuments([]string{folder, "-"}, strings.NewReader("name: demo\napplications:\n- '?': {type: a.B}\n  inner:\n    list: [1,\n      2]\n"))
	require.NoError(t, err)
	require.Len(t, all, 5)
	require.Equal(t, filepath.Join(folder, "app"), all[0].Package.Path, "seen from the file")
	require.Nil(t, all[0].Package.Public)
	require.Equal(t, "https://example.org/app.zip", all[1].Name)
	require.Equal(t, map[string]Limit{"environments": 3, "packages": -1}, all[2].Quota.Limits)
	require.False(t, *all[3].Template.Public)
	environment := all[4]
	require.Equal(t, []string{KindEnvironment, "demo"}, []string{environment.Kind, environment.Name})
	for path, place := range map[string]string{"": "standard input:1", "applications[0]": "standard input:3", "applications[0].inner.list[1]": "standard input:6",
		"applications[0].inner.nothing.of": "standard input:5", "applications[7]": "standard input:3"} {
		require.Equal(t, place, environment.Place(path), path)
	}

	for content, says := range map[string]string{
		"":                         "in.yaml: nothing is in it",
		"[a]":                      "in.yaml:1: a document is a mapping with a kind",
		"name: [\n":                "in.yaml:",
		"name: a\n---\nkind: Node": `in.yaml:3: "Node" is none of the kinds Environment, Package, Template and Quota`,
		"name: a\nnmae: b\nother: c\napplications: 7\n": "in.yaml:2: a document of the kind Environment has no field \"nmae\"\n" + filepath.Join(folder, "in.yaml") +
			":3: a document of the kind Environment has no field \"other\"\n" + filepath.Join(folder, "in.yaml") + ":4: cannot unmarshal",
		"kind: Quota\nlimits:\n  packages: -7\n":    `in.yaml:3: a limit is a number or unlimited, not "-7"`,
		"kind: Quota":                               "in.yaml:1: the quota has no `limits:`",
		"---\n\nkind: Package\n":                    "in.yaml:3: the package has no `path:`",
		"kind: Template\npublic: true":              "in.yaml:1: no name: give the template one",
		"name: a\napplications:\n- {}\n- {name: b}": "in.yaml:3: applications[0] does not say what it is",
		"name: a\n---\nname: a":                     "in.yaml:1 and " + filepath.Join(folder, "in.yaml") + ":3 are both the Environment a",
	} {
		_, err := ReadDocuments([]string{write("in.yaml", content)}, nil)
		require.ErrorContains(t, err, says, content)
	}
	_, err = ReadEnvironmentFile(write("template.yaml", "kind: Template\nname: a\n"))
	require.ErrorContains(t, err, "it describes a Template and no environment")
}
