package catalog_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog"
)

const nesting = `resources:
  a: {type: nested/one.yaml}
  b: {type: OS::Nova::Server, properties: {user_data: {get_file: ./init.sh}}}
  c: {type: OS::Heat::ResourceGroup, properties: {resource_def: {type: ../common/two.yaml, properties: {x: {get_file: lost.txt}}}}}
`

// folder reads files by their paths from the template's folder.
func folder(files map[string]string) func(string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		if text, there := files[name]; there {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	}
}

func TestFilesThatATemplateNamesArePackedAndSentByTheNamesThatHeatAsksFor(t *testing.T) {
	disk := map[string]string{
		"init.sh": "init", "nested/one.yaml": "resources: {s: {type: OS::Nova::Server, properties: {user_data: {get_file: run.sh}}}}", "nested/run.sh": "run",
		"../common/two.yaml": "resources: {s: {type: OS::Heat::Value, properties: {value: {get_file: ../common/deep.txt}}}}", "../common/deep.txt": "deep",
		"registered.yaml": "resources: {s: {type: OS::Heat::None}}",
	}
	files := map[string][]byte{"manifest.yaml": []byte(hotManifest), "template.yaml": []byte(nesting),
		"Resources/HotEnvironments/prod.yaml": []byte("resource_registry: {My::Type: registered.yaml}")}
	require.NoError(t, catalog.GatherHotFiles(files, folder(disk)))
	require.Equal(t, []string{"Resources/HotEnvironments/prod.yaml", "Resources/HotFiles/init.sh", "Resources/HotFiles/nested/one.yaml", "Resources/HotFiles/nested/run.sh",
		"Resources/HotFiles/parent/common/deep.txt", "Resources/HotFiles/parent/common/two.yaml", "Resources/HotFiles/registered.yaml", "manifest.yaml", "template.yaml"},
		slices.Sorted(maps.Keys(files)))

	p, err := catalog.ReadFiles(files)
	require.NoError(t, err)
	_, class, err := p.ClassFile("org.Hot")
	require.NoError(t, err)
	for name, place := range map[string]string{"nested/one.yaml": "nested/one.yaml", "./init.sh": "init.sh", "run.sh": "nested/run.sh", "../common/two.yaml": "parent/common/two.yaml",
		"../common/deep.txt": "parent/common/deep.txt", "registered.yaml": "registered.yaml"} {
		require.Contains(t, string(class), `"`+name+`": !yaql "$resources.string('HotFiles/`+place+`')"`)
	}
	references, err := p.HotReferences()
	require.NoError(t, err)
	var missing []string
	for _, one := range references {
		if one.Missing {
			missing = append(missing, one.Name)
		}
	}
	require.Equal(t, []string{"lost.txt"}, missing)
}

func TestOneNameForTwoFilesIsRefused(t *testing.T) {
	files := map[string][]byte{"template.yaml": []byte("resources: {a: {type: nested/one.yaml}, b: {type: T, properties: {x: {get_file: run.sh}}}}")}
	err := catalog.GatherHotFiles(files, folder(map[string]string{"run.sh": "one", "nested/run.sh": "other", "nested/one.yaml": "resources: {a: {type: T, properties: {x: {get_file: run.sh}}}}"}))
	require.ErrorContains(t, err, "'run.sh' is the name of another file in another template, and Heat has one file for a name")
}

func TestNestedTemplatesAreFollowedWithinBounds(t *testing.T) {
	files := map[string][]byte{"manifest.yaml": []byte(hotManifest), "template.yaml": []byte("resources: {a: {type: 0.yaml}}")}
	for i := range 500 {
		files[fmt.Sprintf("Resources/HotFiles/%d.yaml", i)] = fmt.Appendf(nil, "resources: {a: {type: %d.yaml}}", i+1)
	}
	p, err := catalog.ReadFiles(files)
	require.NoError(t, err)
	references, err := p.HotReferences()
	require.NoError(t, err)
	require.Len(t, references, 201)

	files["Resources/HotFiles/0.yaml"] = []byte("resources: {a: {type: 1.yaml}, b: [" + strings.Repeat("x,", 30_000) + "]}")
	p, err = catalog.ReadFiles(files)
	require.NoError(t, err)
	references, err = p.HotReferences()
	require.NoError(t, err)
	require.Len(t, references, 1)
}
