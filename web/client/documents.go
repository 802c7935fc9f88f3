package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/internal/door"
)

// Kinds of documents.
const (
	KindQuota       = "Quota"
	KindPackage     = "Package"
	KindTemplate    = "Template"
	KindEnvironment = "Environment"
)

// Document describes one desired object, as `burano apply` reads it: a document of a YAML file, with its kind. One without a kind is an environment.
// Exactly one of its parts is set. Omitted fields stay as they are.
type Document struct {
	Kind string
	// Name is that of an environment or template, the path or URL of a package, and the project of a quota ("" is the caller's own).
	Name string
	File string
	Line int

	Quota       *QuotaFile
	Package     *PackageFile
	Template    *TemplateFile
	Environment *EnvironmentFile

	root *yaml.Node
}

// QuotaFile describes the quotas of a project.
type QuotaFile struct {
	Kind    string           `yaml:"kind"`
	Project string           `yaml:"project"` // its id
	Limits  map[string]Limit `yaml:"limits"`
}

// Limit is a number, or -1 for none, which a file calls "unlimited".
type Limit int64

// UnmarshalYAML reads a limit.
func (l *Limit) UnmarshalYAML(node *yaml.Node) error {
	number, err := strconv.ParseInt(node.Value, 10, 64)
	if node.Value == "unlimited" {
		number, err = -1, nil
	}
	if err != nil || number < -1 {
		return fmt.Errorf("line %d: a limit is a number or unlimited, not %q", node.Line, node.Value)
	}
	*l = Limit(number)
	return nil
}

// PackageFile describes a package of the project.
type PackageFile struct {
	Kind       string   `yaml:"kind"`
	Path       string   `yaml:"path"` // a zip or a folder, seen from the file; or a URL
	Public     *bool    `yaml:"public"`
	Enabled    *bool    `yaml:"enabled"`
	Categories []string `yaml:"categories"`
	Tags       []string `yaml:"tags"` // in addition to its manifest's
}

// TemplateFile describes a template of the project.
type TemplateFile struct {
	Kind         string           `yaml:"kind"`
	Name         string           `yaml:"name"`
	Public       *bool            `yaml:"public"`
	Description  *string          `yaml:"description"`
	Applications []map[string]any `yaml:"applications"`
}

// ReadDocuments reads files, the files *.yaml and *.yml of folders, and "-", which is in.
func ReadDocuments(paths []string, in io.Reader) ([]Document, error) {
	var all []Document
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			files = nil
			for _, pattern := range []string{"*.yaml", "*.yml"} {
				found, err := filepath.Glob(filepath.Join(path, pattern))
				if err != nil {
					return nil, err
				}
				files = append(files, found...)
			}
			slices.Sort(files)
			if len(files) == 0 {
				return nil, fmt.Errorf("%s has no file *.yaml or *.yml", path)
			}
		}
		for _, file := range files {
			documents, err := readDocuments(file, in)
			if err != nil {
				return nil, err
			}
			all = append(all, documents...)
		}
	}
	known := map[[2]string]Document{}
	for _, one := range all {
		key := [2]string{one.Kind, one.Name}
		if other, twice := known[key]; twice {
			return nil, fmt.Errorf("%s and %s are both the %s %s", other.Place(""), one.Place(""), one.Kind, one.Name)
		}
		known[key] = one
	}
	return all, nil
}

func readDocuments(file string, in io.Reader) ([]Document, error) {
	folder := filepath.Dir(file)
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(in)
		file, folder = "standard input", ""
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	all, err := parseDocuments(file, folder, text)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: nothing is in it", file)
	}
	return all, err
}

// ownFile limits a file of the user's own. The server limits each model.
var ownFile = door.Bounds{Bytes: 64 << 20, Values: 2_000_000}

// parseDocuments reads the documents of a text. Paths in them are seen from the folder.
func parseDocuments(file, folder string, text []byte) ([]Document, error) {
	decoder, err := door.NewYAML(text, ownFile)
	if err != nil {
		return nil, placed(file, err)
	}
	var all []Document
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, placed(file, err)
		}
		root := node.Content[0]
		if root.Tag == "!!null" {
			continue
		}
		one := Document{Kind: KindEnvironment, File: file, Line: root.Line, root: root}
		if root.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("%s: a document is a mapping with a kind", one.Place(""))
		}
		if kind := child(root, "kind"); kind != nil {
			one.Kind = kind.Value
		}
		err = asJSON(root)
		if err == nil {
			err = one.decode(folder)
		}
		if err != nil {
			return nil, placed(file, err)
		}
		if one.Environment != nil {
			one.Environment.source = sourceOf(file, text)
		}
		if err := one.check(); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
}

func (d *Document) decode(folder string) error {
	switch d.Kind {
	case KindQuota:
		d.Quota = &QuotaFile{}
		err := strictly(d.root, d.Kind, d.Quota)
		d.Name = d.Quota.Project
		return err
	case KindPackage:
		d.Package = &PackageFile{}
		err := strictly(d.root, d.Kind, d.Package)
		if path := d.Package.Path; path != "" && !filepath.IsAbs(path) && !strings.Contains(path, "://") {
			d.Package.Path = filepath.Join(folder, path)
		}
		d.Name = d.Package.Path
		return err
	case KindTemplate:
		d.Template = &TemplateFile{}
		err := strictly(d.root, d.Kind, d.Template)
		d.Name = d.Template.Name
		return err
	case KindEnvironment:
		d.Environment = &EnvironmentFile{}
		err := strictly(d.root, d.Kind, d.Environment)
		d.Name = d.Environment.Name
		return err
	}
	return fmt.Errorf("line %d: %q is none of the kinds %s, %s, %s and %s", child(d.root, "kind").Line, d.Kind, KindEnvironment, KindPackage, KindTemplate, KindQuota)
}

// check refuses documents that cannot be meant.
func (d Document) check() error {
	var applications []map[string]any
	switch {
	case d.Package != nil:
		if d.Package.Path == "" {
			return fmt.Errorf("%s: the package has no `path:`", d.Place(""))
		}
		return nil
	case d.Quota != nil:
		if len(d.Quota.Limits) == 0 {
			return fmt.Errorf("%s: the quota has no `limits:`", d.Place(""))
		}
		return nil
	case d.Template != nil:
		applications = d.Template.Applications
	case d.Environment != nil:
		applications = d.Environment.Applications
	}
	if d.Name == "" {
		return fmt.Errorf("%s: no name: give the %s one with `name:`", d.Place(""), strings.ToLower(d.Kind))
	}
	if i := untyped(applications); i >= 0 {
		return fmt.Errorf("%s: applications[%d] does not say what it is: it needs \"?\": {type: …, id: …}", d.Place(fmt.Sprintf("applications[%d]", i)), i)
	}
	return nil
}

// step is one step of a path: a key or an index.
var step = regexp.MustCompile(`[^.\[\]]+`)

// Place is the file and line of a path such as applications[0].nodes[1].flavor, or of the last part of the path that the file has.
func (d Document) Place(path string) string {
	if d.root == nil { // it was not read from a file
		return d.Kind + " " + d.Name
	}
	node := d.root
	for _, key := range step.FindAllString(path, -1) {
		next := child(node, key)
		if next == nil {
			break
		}
		node = next
	}
	if node == nil {
		return d.File
	}
	return fmt.Sprintf("%s:%d", d.File, cmp.Or(node.Line, d.Line))
}

// child is the value of a key of a mapping, or of an index of a list; nil when there is none.
func child(node *yaml.Node, key string) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key {
				return node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(key); err == nil && i >= 0 && i < len(node.Content) {
			return node.Content[i]
		}
	}
	return nil
}

var lineOf = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// placed has the errors of a YAML decoder begin with file and line.
func placed(file string, err error) error {
	var several *yaml.TypeError
	texts := []string{err.Error()}
	if errors.As(err, &several) {
		texts = several.Errors
	}
	for i, text := range texts {
		at := lineOf.FindStringSubmatch(text)
		if at == nil {
			texts[i] = file + ": " + text
			continue
		}
		texts[i] = file + ":" + at[1] + ": " + at[2]
	}
	return errors.New(strings.Join(texts, "\n"))
}
