package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/door"
)

// hotReference is a file that a template names: by get_file, or as the type of a resource, which is a nested template then.
type hotReference struct {
	name         string // as written, which is how Heat asks for it
	template     bool
	line, column int
}

// isTemplateName reports whether Heat takes the type of a resource for a template.
func isTemplateName(kind string) bool {
	return strings.HasSuffix(kind, ".yaml") || strings.HasSuffix(kind, ".template") || strings.HasSuffix(kind, ".yml")
}

// referencesOf are the files that a template, or a part of it, names.
func referencesOf(node *yaml.Node) (found []hotReference) {
	node = resolve(node)
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		key, value := node.Content[i].Value, resolve(node.Content[i+1])
		one := hotReference{value.Value, key == "type", value.Line, value.Column}
		if value.Kind == yaml.ScalarNode && value.Value != "" && (key == "get_file" && len(node.Content) == 2 || key == "type" && isTemplateName(value.Value)) {
			found = append(found, one)
		}
	}
	for _, child := range node.Content {
		found = append(found, referencesOf(child)...)
	}
	return found
}

// registered are the templates that an environment of Heat gives types of resources.
func registered(node *yaml.Node) (found []hotReference) {
	node = resolve(node)
	for i := 0; i+1 < len(node.Content) && node.Kind == yaml.MappingNode; i += 2 {
		key, value := node.Content[i].Value, resolve(node.Content[i+1])
		switch {
		case value.Kind == yaml.MappingNode:
			found = append(found, registered(value)...)
		case value.Kind == yaml.ScalarNode && key != "hooks" && key != "restricted_actions" && isTemplateName(value.Value):
			found = append(found, hotReference{value.Value, true, value.Line, value.Column})
		}
	}
	return found
}

// placeOf returns the place of a file among Resources/HotFiles that another of them names ("" for the template of the package). Folders above the
// template's are in "parent". It returns "" for names without a place: addresses, and absolute paths.
func placeOf(in, name string) string {
	if strings.Contains(name, "://") || strings.HasPrefix(name, "/") {
		return ""
	}
	parts := strings.Split(path.Join(path.Dir(in), name), "/")
	for i := range parts {
		if parts[i] == ".." {
			parts[i] = "parent"
		}
	}
	return strings.Join(parts, "/")
}

// HotReference is a file that a Heat template of a package names.
type HotReference struct {
	In   string // the file with the name, within the package
	Name string // as written
	// Place is where the package has the file, or should have it, within Resources/HotFiles; "" where it can have none.
	Place        string
	Missing      bool
	Line, Column int
}

const (
	// maxNestedBytes is Heat's limit of a template.
	maxNestedBytes = 512 << 10
	// maxNestedValues and maxNested bound the work for nested templates of one package. Further ones, and larger ones, are sent, and name no files.
	maxNestedValues = 20_000
	maxNested       = 200
)

// all returns the files that the package's template names, the files that nested templates and environments name, and so on. Files that are no YAML name
// none. Packages for Murano have files at Heat's names for them, and not where the names lead to: these count, too, unless it is strict.
func (t *hotTemplate) all(files contents, strict bool) (found []HotReference) {
	type source struct {
		in, place  string
		references []hotReference
	}
	queue := []source{{templateFile, "", t.references}}
	environments := below(files, hotEnvironments)
	for _, name := range environments[:min(len(environments), maxNested)] {
		if root := rootOf(files, hotEnvironments+name); root != nil {
			if registry := entry(root, "resource_registry"); registry != nil {
				queue = append(queue, source{hotEnvironments + name, "", registered(registry)})
			}
		}
	}
	seen := map[string]bool{}
	for len(queue) > 0 {
		one := queue[0]
		queue = queue[1:]
		for _, reference := range one.references {
			place := placeOf(one.place, reference.name)
			if asWritten := path.Clean(reference.name); !strict && !there(files, place) && there(files, asWritten) {
				place = asWritten
			}
			found = append(found, HotReference{one.in, reference.name, place, !there(files, place), reference.line, reference.column})
			if !there(files, place) || !reference.template || seen[place] || len(seen) == maxNested {
				continue
			}
			seen[place] = true
			if root := rootOf(files, hotFiles+place); root != nil {
				queue = append(queue, source{hotFiles + place, place, referencesOf(root)})
			}
		}
	}
	return found
}

// there reports whether a file lies at a place within Resources/HotFiles.
func there(files contents, place string) bool {
	_, is := files.length(hotFiles + place)
	return is && place != ""
}

// rootOf is a YAML file's map, nil where it is none.
func rootOf(files contents, name string) *yaml.Node {
	text, err := files.read(name)
	if err != nil {
		return nil
	}
	var document yaml.Node
	bounds := door.Bounds{Bytes: maxNestedBytes, Values: maxNestedValues}
	if door.YAML(text, &document, bounds) != nil || len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil
	}
	return document.Content[0]
}

// files returns the files for Heat, by Heat's names for them: all of Resources/HotFiles by their places, and files with other names in templates, such as
// "./one.sh", by these names.
func (t *hotTemplate) files(files contents) map[string]string {
	sent := map[string]string{}
	for _, file := range below(files, hotFiles) {
		sent[file] = file
	}
	for _, reference := range t.all(files, false) {
		if _, has := sent[reference.Name]; !has && !reference.Missing {
			sent[reference.Name] = reference.Place
		}
	}
	return sent
}

// HidesParameter reports whether the package's Heat template keeps the values of a parameter from being shown.
func (p *Package) HidesParameter(name string) bool {
	return hotParameter{rule: p.rules[name]}.secret()
}

// HotReferences are the files that the package's Heat template, its environments and their nested templates name; nil for other packages.
func (p *Package) HotReferences() ([]HotReference, error) {
	if !p.manifest.hot {
		return nil, nil
	}
	text, err := p.files.read(templateFile)
	if err != nil {
		return nil, err
	}
	template, err := readTemplate(text)
	if err != nil {
		return nil, err
	}
	return template.all(p.files, false), nil
}

// GatherHotFiles adds the files that a package's Heat template names, and the files that these name, to the package's files. read returns a file by its
// path from the template's folder, or an error of fs.ErrNotExist. Missing files stay missing.
func GatherHotFiles(files map[string][]byte, read func(name string) ([]byte, error)) error {
	template, err := readTemplate(files[templateFile])
	if err != nil {
		return err
	}
	asked := map[string]bool{}
	for more := true; more; { // each round reads the files that the last round's files name
		more = false
		for _, reference := range template.all(unpacked(files), true) {
			if !reference.Missing || reference.Place == "" || asked[reference.Place] {
				continue
			}
			asked[reference.Place] = true
			content, err := read(pathOf(reference.Place))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s:%d:%d: read %s: %w", reference.In, reference.Line, reference.Column, quoteShort(reference.Name), err)
			}
			files[hotFiles+reference.Place], more = content, true
		}
	}
	contents := map[string][]byte{}
	for _, reference := range template.all(unpacked(files), false) {
		if reference.Missing {
			continue
		}
		content := files[hotFiles+reference.Place]
		if other, has := contents[reference.Name]; has && !bytes.Equal(other, content) {
			return incorrect("%s:%d:%d: %s is the name of another file in another template, and Heat has one file for a name: rename one of them",
				reference.In, reference.Line, reference.Column, quoteShort(reference.Name))
		}
		contents[reference.Name] = content
	}
	return nil
}

// pathOf is the path of a place, from the template's folder.
func pathOf(place string) string {
	parts := strings.Split(place, "/")
	for i := 0; i < len(parts) && parts[i] == "parent"; i++ {
		parts[i] = ".."
	}
	return path.Join(parts...)
}
