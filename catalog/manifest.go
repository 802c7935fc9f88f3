package catalog

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/fault"
)

// manifest is the content of manifest.yaml, with Murano's defaults filled in.
type manifest struct {
	format       string // as known: "MuranoPL/1.3", "Heat.HOT/1.0"
	hot          bool
	helm         bool
	chart        string            // in Resources, of a package with a Helm chart; "" as long as it is only named
	reference    *charts.Reference // of a chart that is not the author's; nil for others
	language     string            // version of MuranoPL
	kind         string
	fullName     string
	name         string
	version      *semver.Version
	description  string
	author       string
	tags         []string
	categories   []string
	supplier     map[string]any
	ui           string
	logo         string
	supplierLogo string
	classes      []string // in the manifest's order
	classFiles   map[string]string
	requires     map[string]string
	meta         any
	values       map[string]*yaml.Node // by key, for places
}

const manifestFile = "manifest.yaml"

// Murano's columns limit these (characters).
const (
	maxName     = 80
	maxFullName = 128
	maxAuthor   = 80
	maxSpec     = 200 // bytes, ours
)

var (
	// Murano's own pattern is ^[\w\.]+$ with Python's \w, which admits letters and digits of any script.
	fullNamePattern = regexp.MustCompile(`^[\p{L}\p{N}_.]+$`)
	bareFormat      = regexp.MustCompile(`^\d+(\.\d+)*$`)
	muranoPLFormats = []string{"1.0", "1.1", "1.2", "1.3", "1.4"}
)

// incorrect begins as Murano's message about a wrong manifest does.
func incorrect(format string, args ...any) error {
	return fault.New(fault.Invalid, "Incorrect package format: "+format, args...)
}

// parseManifest reads manifest.yaml. Every error is a fault of kind Invalid and names the key.
func parseManifest(text []byte) (manifest, error) {
	var m manifest
	var document yaml.Node
	if err := unmarshalYAML(text, &document); err != nil {
		return m, placed(manifestFile, fault.New(fault.Invalid, "Unable to load due to 'manifest.yaml: %w'", err), err)
	}
	if len(document.Content) == 0 {
		return m, incorrect("manifest.yaml is empty")
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return m, incorrect("manifest.yaml should be a map of keys such as FullName and Type")
	}
	r := manifestReader{values: map[string]*yaml.Node{}, at: root}
	for i := 0; i+1 < len(root.Content); i += 2 {
		r.values[root.Content[i].Value] = resolve(root.Content[i+1])
	}
	m.readFormat(&r)
	m.readNames(&r)
	m.readTexts(&r)
	m.readFiles(&r)
	m.requires = r.stringMap("Require")
	if _, said := m.requires[helmRelease]; m.helm && !said {
		m.requires[helmRelease] = helmReleases
	}
	if node := r.value("Meta"); node != nil {
		if err := node.Decode(&m.meta); err != nil {
			r.fail(incorrect("Meta: %w", err))
		}
	}
	m.values = r.values
	return m, r.err
}

func (m *manifest) readFormat(r *manifestReader) {
	written := r.text("Format")
	m.format = written
	switch {
	case written == "":
		m.format = "MuranoPL/1.0"
	case bareFormat.MatchString(written):
		m.format = "MuranoPL/" + written
	}
	language, isMuranoPL := strings.CutPrefix(m.format, "MuranoPL/")
	switch {
	case isMuranoPL && slices.Contains(muranoPLFormats, language):
		m.language = language
	case m.format == "Heat.HOT/1.0":
		m.hot, m.language = true, "1.0"
	case m.format == formatHelm:
		m.helm, m.language = true, "1.0"
		m.readChart(r)
	default:
		r.fail(incorrect("Unsupported format %s", short(m.format)))
	}
}

func (m *manifest) readNames(r *manifestReader) {
	m.fullName = r.text("FullName")
	switch {
	case m.fullName == "":
		r.fail(incorrect("FullName is not specified"))
	case !fullNamePattern.MatchString(m.fullName) || strings.HasPrefix(m.fullName, ".") || strings.HasSuffix(m.fullName, ".") || strings.Contains(m.fullName, ".."):
		r.fail(incorrect("Invalid FullName %s", short(m.fullName)))
	}
	m.kind = r.text("Type")
	if m.helm && m.kind == "" {
		m.kind = typeApplication
	}
	if m.kind != typeApplication && m.kind != typeLibrary {
		r.fail(incorrect("Invalid package Type %s", short(cmp.Or(m.kind, "None"))))
	}
	m.name = r.text("Name")
	if m.name == "" {
		m.name = m.fullName
	}
	written := r.text("Version")
	if written == "" {
		written = "0.0.0"
	}
	version, err := semver.NewVersion(written)
	if err != nil {
		r.fail(incorrect("Version %s is no version such as 1.2.3", quoteShort(written)))
		version = semver.New(0, 0, 0, "", "")
	}
	m.version = version
}

func (m *manifest) readTexts(r *manifestReader) {
	m.description = r.text("Description")
	if m.description == "" {
		m.description = "The description is not provided" // Murano's text for this case
	}
	m.author = r.text("Author")
	m.tags = r.list("Tags")
	read := r.err
	m.categories = r.list("Categories")
	r.err = read // Murano has no such key: a package may have it for something else
	m.supplier = map[string]any{}
	if node := r.value("Supplier"); node != nil {
		if node.Kind != yaml.MappingNode || node.Decode(&m.supplier) != nil {
			r.fail(incorrect("Supplier should be a map with Name, Logo, Summary, Description and CompanyUrl"))
		}
		m.supplier = jsonable(m.supplier).(map[string]any)
	}
}

func (m *manifest) readFiles(r *manifestReader) {
	m.ui, m.logo, m.supplierLogo = uiFile, logoFile, supplierLogoFile
	if name := r.text("UI"); name != "" {
		m.ui = name
	}
	if name := r.text("Logo"); name != "" {
		m.logo = name
	}
	if name, ok := m.supplier["Logo"].(string); ok && name != "" {
		m.supplierLogo = name
	}
	if m.hot || m.helm {
		m.classes = []string{m.fullName}
		return
	}
	m.classFiles = map[string]string{}
	node := r.value("Classes")
	if node == nil {
		return
	}
	if node.Kind != yaml.MappingNode {
		r.fail(incorrect("Classes should be a map from class names to files"))
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		class, file := resolve(node.Content[i]), resolve(node.Content[i+1])
		r.at = node.Content[i]
		if class.Kind != yaml.ScalarNode || class.Value == "" || file.Kind != yaml.ScalarNode || isNull(file) {
			r.fail(incorrect("Classes should be a map from class names to files (line %d)", node.Content[i].Line))
			return
		}
		if utf8.RuneCountInString(class.Value) > maxFullName {
			r.fail(incorrect("class name %s is longer than %d characters", quoteShort(class.Value), maxFullName))
			return
		}
		if _, twice := m.classFiles[class.Value]; twice {
			r.fail(incorrect("Classes names %s twice", quoteShort(class.Value)))
			return
		}
		m.classes = append(m.classes, class.Value)
		m.classFiles[class.Value] = file.Value
	}
}

// CheckLengths refuses texts of the manifest that the catalog does not keep for their length: Murano's columns do not hold them.
func (m *manifest) CheckLengths() error {
	for _, text := range []struct {
		what, value string
		limit       int
	}{{"name", m.name, maxName}, {"FullName", m.fullName, maxFullName}, {"Author", m.author, maxAuthor}} {
		if utf8.RuneCountInString(text.value) > text.limit {
			return fault.New(fault.Invalid, "Package %s should be %d characters maximum", text.what, text.limit)
		}
	}
	return nil
}

// manifestReader takes values out of the manifest and keeps the first error.
type manifestReader struct {
	values map[string]*yaml.Node
	at     *yaml.Node // the present node
	err    error
}

func (r *manifestReader) fail(err error) {
	if r.err == nil {
		r.err = &Placed{File: manifestFile, Line: r.at.Line, Column: r.at.Column, Err: err}
	}
}

// value returns the value of a key, nil without one; later faults have its place.
func (r *manifestReader) value(key string) *yaml.Node {
	node := r.values[key]
	if node == nil || isNull(node) {
		return nil
	}
	r.at = node
	return node
}

// text returns a scalar as it is written (a Format of 1.3 is a number in YAML, and "1.3" here).
func (r *manifestReader) text(key string) string {
	node := r.value(key)
	if node == nil {
		return ""
	}
	if node.Kind != yaml.ScalarNode {
		r.fail(incorrect("%s should be a text", key))
		return ""
	}
	return node.Value
}

func (r *manifestReader) list(key string) []string {
	node := r.value(key)
	if node == nil {
		return nil
	}
	items := node.Content
	switch node.Kind {
	case yaml.SequenceNode:
	case yaml.ScalarNode: // one that was forgotten to be made a list; Murano takes it too
		items = []*yaml.Node{node}
	default:
		r.fail(incorrect("%s should be a list of texts", key))
		return nil
	}
	var list []string
	for _, item := range items {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || isNull(item) {
			r.fail(incorrect("%s should be a list of texts", key))
			return nil
		}
		if !slices.Contains(list, item.Value) {
			list = append(list, item.Value)
		}
	}
	return list
}

func (r *manifestReader) stringMap(key string) map[string]string {
	values := map[string]string{}
	node := r.value(key)
	if node == nil {
		return values
	}
	if node.Kind != yaml.MappingNode {
		r.fail(incorrect("%s should be a map from package names to version specs", key))
		return values
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, spec := resolve(node.Content[i]), resolve(node.Content[i+1])
		r.at = node.Content[i]
		if name.Kind != yaml.ScalarNode || spec.Kind != yaml.ScalarNode {
			r.fail(incorrect("%s should be a map from package names to version specs", key))
			return values
		}
		written := spec.Value
		if isNull(spec) {
			written = ""
		}
		if len(written) > maxSpec {
			r.fail(incorrect("%s of %s: the version spec %s is longer than %d bytes", key, quoteShort(name.Value), quoteShort(written), maxSpec))
		} else if _, err := muranopl.ParseSpec(written); err != nil {
			r.fail(incorrect("%s of %s: %s", key, quoteShort(name.Value), err))
		}
		values[name.Value] = written
	}
	return values
}

func resolve(node *yaml.Node) *yaml.Node {
	// An alias points to an anchored node, which is never itself an alias.
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.Tag == "!!null" }

// jsonable turns maps with other keys than strings into maps with strings, so that JSON can carry them.
func jsonable(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[key] = jsonable(item)
		}
		return out
	case map[any]any:
		out := make(map[string]any, len(value))
		for key, item := range value {
			out[textOf(key)] = jsonable(item)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, item := range value {
			out[i] = jsonable(item)
		}
		return out
	case nil, string, bool, int, int64:
		return value
	default:
		return textOf(value)
	}
}

// quoteShort quotes a user's text for a message, shortened.
func quoteShort(text string) string { return "'" + short(text) + "'" }

// short is a user's text without unprintable characters, shortened.
func short(text string) string {
	const most = 80
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most]) + "…"
	}
	return strings.Map(printable, text)
}

func printable(r rune) rune {
	if strconv.IsPrint(r) {
		return r
	}
	return '?'
}

func textOf(value any) string { return fmt.Sprint(value) }

// Placed is an error at a place in a file of a package.
type Placed struct {
	File         string
	Line, Column int // from 1
	Err          error
}

func (p *Placed) Error() string { return p.Err.Error() }

func (p *Placed) Unwrap() error { return p.Err }

// yamlLine matches the line in an error of the YAML decoder, and of its bounds.
var yamlLine = regexp.MustCompile(`\bline ([0-9]+):`)

// placed gives an error about YAML the place that its text names.
func placed(file string, err error, about error) error {
	p := &Placed{File: file, Line: 1, Column: 1, Err: err}
	if said := yamlLine.FindStringSubmatch(about.Error()); said != nil {
		p.Line, _ = strconv.Atoi(said[1])
	}
	return p
}

// unmarshalYAML reads a document into its nodes, and refuses one that would exceed the bounds when it is visited.
func unmarshalYAML(text []byte, document *yaml.Node) error {
	return door.YAML(text, document, door.Bounds{})
}
