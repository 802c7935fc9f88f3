package charts

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/Masterminds/semver/v3"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/sensitive"
)

const (
	chartFile  = "Chart.yaml"
	valuesFile = "values.yaml"
	schemaFile = "values.schema.json"
)

// Bounds of a chart's default values and of its schema. They are Helm's own limits for a release, with room for comments, and several times the largest
// published schemas.
var (
	valuesBounds = door.Bounds{Bytes: maxFile, Written: 4 << 20}
	schemaBounds = door.Bounds{Bytes: maxFile, Depth: 200}
)

// Chart is a chart that was read and checked.
type Chart struct {
	Name, Version, AppVersion string
	Description               string
	Keywords                  []string
	Maintainer                string         // the first's name, "" for none
	Values                    map[string]any // the content of values.yaml, in JSON's types
	Schema                    *yaml.Node     // of values.schema.json, in its order; nil where there is none
	Icon                      []byte         // an image file of the chart, nil for none

	schema *jsonschema.Schema // nil where values cannot be checked here
}

// metadata is the content of Chart.yaml.
type metadata struct {
	APIVersion   string       `yaml:"apiVersion"`
	Name         string       `yaml:"name"`
	Version      string       `yaml:"version"`
	AppVersion   string       `yaml:"appVersion"`
	Type         string       `yaml:"type"`
	Description  string       `yaml:"description"`
	Icon         string       `yaml:"icon"`
	Keywords     []string     `yaml:"keywords"`
	Dependencies []dependency `yaml:"dependencies"`
	Maintainers  []struct {
		Name string `yaml:"name"`
	} `yaml:"maintainers"`
}

// dependency is a subchart. Its values for the chart are known when it is rendered.
type dependency struct {
	Name         string `yaml:"name"`
	ImportValues []any  `yaml:"import-values"`
}

// Read reads a chart (.tgz) and checks all properties that need no cluster: Chart.yaml, its values, their schema, the syntax of its templates, and that
// its dependencies are included. Errors name the file.
func Read(archive []byte) (*Chart, error) {
	files, err := unpack(archive)
	if err != nil {
		return nil, err
	}
	about, err := readMetadata(files)
	if err != nil {
		return nil, err
	}
	c := &Chart{Name: about.Name, Version: about.Version, AppVersion: about.AppVersion, Description: strings.TrimSpace(about.Description), Keywords: about.Keywords,
		Icon: icon(files, about.Icon), Values: map[string]any{}}
	if len(about.Maintainers) > 0 {
		c.Maintainer = about.Maintainers[0].Name
	}
	if err := door.YAML(files[valuesFile], &c.Values, valuesBounds); err != nil {
		return nil, fmt.Errorf("%s: it should be a map of values: %w", valuesFile, err)
	}
	if err := c.readSchema(files[schemaFile]); err != nil {
		return nil, fmt.Errorf("%s: %w", schemaFile, err)
	}
	for _, part := range about.Dependencies {
		if len(part.ImportValues) > 0 {
			c.schema = nil
		}
	}
	return c, checkTemplates(files)
}

func readMetadata(files map[string][]byte) (about metadata, err error) {
	text, there := files[chartFile]
	if !there {
		return about, fmt.Errorf("it has no %s", chartFile)
	}
	if err := door.YAML(text, &about, door.Bounds{}); err != nil {
		return about, fmt.Errorf("%s: %w", chartFile, err)
	}
	if required := files["requirements.yaml"]; about.APIVersion == "v1" && required != nil {
		if err := door.YAML(required, &about, door.Bounds{}); err != nil {
			return about, fmt.Errorf("requirements.yaml: %w", err)
		}
	}
	_, versionErr := semver.NewVersion(about.Version)
	switch {
	case about.APIVersion != "v1" && about.APIVersion != "v2":
		err = fmt.Errorf("apiVersion is %q, and should be v2 or v1", about.APIVersion)
	case about.Name == "":
		err = errors.New("it has no name")
	case about.Name != path.Base(about.Name) || about.Name == "." || about.Name == "..":
		err = fmt.Errorf("name is %q, which is no name of a chart", about.Name)
	case about.Version == "":
		err = errors.New("it has no version")
	case versionErr != nil:
		err = fmt.Errorf("version is %q, and should be one such as 1.2.3", about.Version)
	case about.Type == "library":
		err = errors.New("a chart of type library cannot be installed")
	}
	if err != nil {
		return about, fmt.Errorf("%s: %w", chartFile, err)
	}
	for _, part := range about.Dependencies {
		if !hasPart(files, part.Name) {
			return about, fmt.Errorf("%s: it depends on the chart %s, which is not in its folder charts: nothing is fetched, so run `helm dependency update` first", chartFile, part.Name)
		}
	}
	return about, nil
}

// hasPart reports whether a chart is in the folder charts, as a folder or as an archive.
func hasPart(files map[string][]byte, name string) bool {
	for file := range files {
		inside, is := strings.CutPrefix(file, "charts/")
		if is && (strings.HasPrefix(inside, name+"/") || strings.HasPrefix(inside, name+"-") && strings.HasSuffix(inside, ".tgz")) {
			return true
		}
	}
	return false
}

// checkTemplates checks the syntax of templates; which functions there are, Helm knows.
func checkTemplates(files map[string][]byte) error {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(name, "templates/") || !slices.Contains([]string{".yaml", ".yml", ".tpl", ".txt", ".json"}, path.Ext(name)) {
			continue
		}
		if line := tooDeep(string(files[name])); line > 0 {
			return fmt.Errorf("%s:%d: more than %d blocks are open, one in another", name, line, maxBlocks)
		}
		tree := parse.New(name)
		tree.Mode = parse.SkipFuncCheck
		if _, err := tree.Parse(string(files[name]), "", "", map[string]*parse.Tree{}); err != nil {
			return errors.New(strings.TrimPrefix(err.Error(), "template: "))
		}
	}
	return nil
}

// maxBlocks is how deep blocks of a template may be nested: the parser and Helm itself call themselves for each.
const maxBlocks = 1_000

// blockWord is the first word of an action that may open or close a block, with the word behind an else.
var blockWord = regexp.MustCompile(`\{\{-?\s*(if|range|with|block|define|end|else\s+(?:if|with))\b`)

// tooDeep returns the line of a template in which one block too many is open, 0 for none.
func tooDeep(text string) (line int) {
	var opened []int // blocks that each open block counts for, itself and its else-ifs
	depth := 0
	for at := 0; ; {
		found := blockWord.FindStringSubmatchIndex(text[at:])
		if found == nil {
			return 0
		}
		switch word := text[at+found[2] : at+found[3]]; {
		case word == "end":
			if last := len(opened) - 1; last >= 0 {
				depth -= opened[last]
				opened = opened[:last]
			}
		case strings.HasPrefix(word, "else"):
			if last := len(opened) - 1; last >= 0 {
				opened[last]++
				depth++
			}
		default:
			opened = append(opened, 1)
			depth++
		}
		at += found[1]
		if depth > maxBlocks {
			return 1 + strings.Count(text[:at], "\n")
		}
	}
}

// icon is the file that the chart names as its icon, or one that is called so. Helm itself wants an address there; nothing is fetched.
func icon(files map[string][]byte, named string) []byte {
	for _, name := range []string{path.Clean(strings.TrimPrefix(named, "file://")), "icon.png", "icon.jpg", "icon.jpeg", "icon.gif", "logo.png"} {
		if content := files[name]; len(content) > 0 {
			return content
		}
	}
	return nil
}

// nowhere is where schemas of others are loaded from.
type nowhere struct{}

var errElsewhere = errors.New("a schema of somewhere else is not fetched")

func (nowhere) Load(string) (any, error) { return nil, errElsewhere }

func (c *Chart) readSchema(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("it is no JSON: %w", err)
	}
	var node yaml.Node // JSON is YAML
	if err := door.YAML(text, &node, schemaBounds); err != nil {
		return err
	}
	if len(node.Content) == 0 || node.Content[0].Kind != yaml.MappingNode {
		return errors.New("it should be an object")
	}
	c.Schema = node.Content[0]
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	if err := compiler.AddResource(schemaFile, document); err != nil {
		return err
	}
	compiled, err := compiler.Compile(schemaFile)
	var elsewhere *jsonschema.LoadURLError
	if errors.As(err, &elsewhere) {
		return nil // Helm checks the values
	}
	c.schema = compiled
	return err
}

// CheckValues reports where values, together with the chart's own, violate its schema. The error contains no secret.
func (c *Chart) CheckValues(values map[string]any) error {
	if c.schema == nil {
		return nil
	}
	together := merged(c.Values, values, true)
	if err := door.Written(together, maxTogether, "the chart's values and those of the release together"); err != nil {
		return err
	}
	all, err := asJSON(together)
	if err != nil {
		return err
	}
	err = c.schema.Validate(all)
	var wrong *jsonschema.ValidationError
	if !errors.As(err, &wrong) {
		return err
	}
	printer := message.NewPrinter(language.English)
	var texts []string
	var collect func(*jsonschema.ValidationError)
	collect = func(one *jsonschema.ValidationError) {
		for _, cause := range one.Causes {
			collect(cause)
		}
		if len(one.Causes) > 0 {
			return
		}
		place, text := strings.Join(one.InstanceLocation, "."), one.ErrorKind.LocalizedString(printer)
		if sensitive.Path(place) {
			text = "it breaks the schema's rule " + strings.Join(one.ErrorKind.KeywordPath(), "/")
		}
		texts = append(texts, short(cmp.Or(place, "the values"))+": "+short(text))
	}
	collect(wrong)
	if more := len(texts) - mostProblems; more > 0 {
		texts = append(texts[:mostProblems], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(texts, "; "))
}

const (
	// mostProblems is the number of reported violations of a schema.
	mostProblems = 20
	// maxTogether is in bytes, of the values that are checked.
	maxTogether = 8 << 20
)

// short is a text that is cut to a bearable length.
func short(text string) string {
	const most = 300
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Over merges values over others. A null stays, since it lets Helm remove the chart's own value.
func Over(under, over map[string]any) map[string]any { return merged(under, over, false) }

// merged are values over others; with drop a null takes a value away, as Helm has it.
func merged(under, over map[string]any, drop bool) map[string]any {
	all := maps.Clone(under)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		below, areMaps := all[key].(map[string]any)
		switch {
		case value == nil && drop:
			delete(all, key)
		case isMap && (areMaps || drop):
			all[key] = merged(below, inner, drop)
		default:
			all[key] = value
		}
	}
	return all
}

// asJSON is a value with the types that JSON has.
func asJSON(value any) (any, error) {
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, err
	}
	var plain any
	return plain, door.YAML(text, &plain, door.Bounds{})
}
