package apps_test

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog"
	"github.com/burano/burano/catalog/apps"
)

func embedded(t *testing.T) []*catalog.Package {
	t.Helper()
	packages, err := apps.Packages()
	require.NoError(t, err)
	return packages
}

// withDemo adds the demonstration package, which is uploaded and not embedded.
func withDemo(t *testing.T) []*catalog.Package {
	t.Helper()
	demo, err := catalog.ReadFolder(os.DirFS(filepath.Join("..", "..", "test", "packages", "io.burano.demo.Hello")))
	require.NoError(t, err)
	return append(embedded(t), demo)
}

func TestEachFolderIsAPackageOfItsName(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	var folders, names []string
	for _, entry := range entries {
		if entry.IsDir() && entry.Name() != "testdata" {
			folders = append(folders, entry.Name())
		}
	}
	for _, p := range embedded(t) {
		require.True(t, p.Embedded())
		names = append(names, p.FullName())
	}
	require.Equal(t, folders, names)
}

func TestEveryClassOfAManifestIsInItsFileAndEveryFileIsNamed(t *testing.T) {
	for _, p := range withDemo(t) {
		used := map[string]bool{}
		for _, class := range p.ClassNames() {
			file, text, err := p.ClassFile(class)
			require.NoError(t, err)
			used[file] = true
			var document struct {
				Namespaces map[string]string `yaml:"Namespaces"`
				Name       string            `yaml:"Name"`
			}
			require.NoError(t, yaml.Unmarshal(text, &document), file)
			require.Equal(t, class, document.Namespaces["="]+"."+document.Name, file)
		}
		for _, name := range p.FileNames() {
			if strings.HasPrefix(name, "Classes/") {
				require.True(t, used[name], "%s: no class is said to be in %s", p.FullName(), name)
			}
		}
	}
}

func TestEveryRequiredPackageIsThere(t *testing.T) {
	packages := withDemo(t)
	var names []string
	for _, p := range packages {
		names = append(names, p.FullName())
	}
	for _, p := range packages {
		for required := range p.Requires() {
			require.Contains(t, names, required, p.FullName())
		}
	}
}

func TestEveryApplicationHasAFormAndALogo(t *testing.T) {
	for _, p := range withDemo(t) {
		logo, err := p.Logo()
		require.NoError(t, err, p.FullName())
		_, err = png.Decode(bytes.NewReader(logo))
		require.NoError(t, err, p.FullName())
		form, err := p.UI()
		require.NoError(t, err, p.FullName())
		if p.Type() != "Application" {
			require.Nil(t, form, p.FullName())
			continue
		}
		var ui struct {
			Version     string                              `yaml:"Version"`
			Application map[string]any                      `yaml:"Application"`
			Templates   map[string]any                      `yaml:"Templates"`
			Forms       []map[string]struct{ Fields []any } `yaml:"Forms"`
		}
		require.NoError(t, yaml.Unmarshal(form, &ui), p.FullName())
		require.NotEmpty(t, ui.Version)
		require.NotEmpty(t, ui.Forms)
		header := ui.Application["?"].(map[string]any)
		require.Contains(t, p.ClassNames(), header["type"])
		checkFormReferences(t, p.FullName(), form, ui.Forms)
	}
}

// checkFormReferences finds a field that the model takes from a form which does not have it.
func checkFormReferences(t *testing.T, name string, text []byte, forms []map[string]struct{ Fields []any }) {
	t.Helper()
	known := map[string]bool{}
	for _, form := range forms {
		require.Len(t, form, 1, name)
		for formName, body := range form {
			require.NotEmpty(t, body.Fields, name)
			for _, field := range body.Fields {
				known[formName+"."+field.(map[string]any)["name"].(string)] = true
			}
		}
	}
	for word := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return strings.ContainsRune(" \n,()", r) }) {
		if reference, ok := strings.CutPrefix(word, "$."); ok && strings.Contains(reference, ".") { // not an item's own method
			require.True(t, known[reference], "%s: there is no field %s", name, reference)
		}
	}
}

func TestTheDemonstrationEnvironmentNamesOnlyClassesThatAreThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "test", "environments", "demo.yaml"))
	require.NoError(t, err)
	var environment struct {
		Name         string           `yaml:"name"`
		Applications []map[string]any `yaml:"applications"`
	}
	require.NoError(t, yaml.Unmarshal(text, &environment))
	require.Equal(t, "demo", environment.Name)
	require.Len(t, environment.Applications, 3)
	var classes []string
	for _, p := range withDemo(t) {
		classes = append(classes, p.ClassNames()...)
	}
	ids, values := map[string]bool{}, []string{}
	var walk func(value any)
	walk = func(value any) {
		switch value := value.(type) {
		case map[string]any:
			for key, item := range value {
				if key == "?" {
					header := item.(map[string]any)
					require.True(t, slices.Contains(classes, header["type"].(string)), header["type"])
					if id, ok := header["id"].(string); ok {
						ids[id] = true
					}
					continue
				}
				walk(item)
			}
		case []any:
			for _, item := range value {
				walk(item)
			}
		case string:
			values = append(values, value)
		}
	}
	for _, application := range environment.Applications {
		walk(application)
	}
	require.Equal(t, map[string]bool{"cluster": true, "pod": true, "hello": true}, ids)
	var references []string
	for _, value := range values {
		if ids[value] {
			references = append(references, value)
		}
	}
	slices.Sort(references)
	require.Equal(t, []string{"cluster", "pod"}, references)
}

// known are the categories of a new installation.
var known = []string{"Web", "Databases", "Message Queue", "Application Servers", "Microsoft Services", "Load Balancers", "Big Data", "Key-Value Storage", "SAP"}

func TestEachApplicationHasACategory(t *testing.T) {
	for _, p := range embedded(t) {
		if p.Type() != "Application" {
			continue
		}
		require.NotEmpty(t, p.Categories(), p.FullName())
		require.Subset(t, known, p.Categories(), p.FullName())
	}
}
