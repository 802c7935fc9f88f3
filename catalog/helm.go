package catalog

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/charts"
	"github.com/burano/burano/internal/door"
	"github.com/burano/burano/internal/sensitive"
)

const (
	formatHelm = "Helm/1.0"

	// helmRelease is the base class of charts' classes, and the package that has it.
	helmRelease  = "io.burano.HelmRelease"
	helmReleases = ">=1.0.0, <2.0.0" // the versions that fit

	// chartLock records the origin of a package's chart; the archive lies beside it.
	chartLock = charts.Resources + "/chart.lock"

	clusterClass = "com.mirantis.docker.kubernetes.KubernetesCluster"
)

// chartOrigin is where a chart was fetched from.
type chartOrigin struct {
	From   string `yaml:"from"`
	Digest string `yaml:"digest"` // of the archive
	File   string `yaml:"file"`   // in Resources
}

// readChart reads the chart's entry in the manifest: a place in Resources, or a reference.
func (m *manifest) readChart(r *manifestReader) {
	m.chart = "chart"
	node := r.value("Chart")
	if node == nil {
		return
	}
	reference := charts.Reference{}
	switch {
	case node.Kind == yaml.ScalarNode && !strings.Contains(node.Value, "://"):
		m.chart = node.Value
		return
	case node.Kind == yaml.ScalarNode:
		reference.OCI = node.Value
	case node.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, value := node.Content[i], resolve(node.Content[i+1])
			of, known := map[string]*string{"repository": &reference.Repository, "name": &reference.Name, "version": &reference.Version}[key.Value]
			if !known || value.Kind != yaml.ScalarNode {
				r.at = key
				r.fail(incorrect("Chart should be a place in Resources, an address oci://…, or a map of the texts repository, name and version"))
				return
			}
			*of = value.Value
		}
	default:
		r.fail(incorrect("Chart should be a place in Resources, an address oci://…, or a map of the texts repository, name and version"))
		return
	}
	if err := reference.Check(); err != nil {
		r.fail(incorrect("Chart: %w", err))
	}
	m.reference = &reference
}

// takeChart reads the chart of a package of the format Helm/1.0 with this manifest, and makes class and form of it. One that is only named makes a form without fields
// for its values, until Fetched puts it into the package.
func (p *Package) takeChart(ctx context.Context, text []byte) error {
	m := &p.manifest
	if m.reference != nil {
		locked, err := p.optional(chartLock)
		if err != nil {
			return err
		}
		var lock chartOrigin
		if err := door.YAML(locked, &lock, door.Bounds{Bytes: maxManifest}); err != nil {
			return incorrect("%s: %w", chartLock, err)
		}
		if lock.From == m.reference.String() {
			p.origin, m.chart = lock, lock.File
		} else if locked != nil {
			return incorrect("%s is of the chart %s, and the manifest names %s: take the file out of the package, and the chart is fetched anew", chartLock, lock.From, m.reference)
		} else {
			m.chart = ""
		}
	}
	p.madeClass, p.madeForm = m.helmClass(), (&helmForm{title: m.name}).write(m)
	if m.chart == "" {
		return nil
	}
	archive, err := charts.Archive(p, m.chart)
	if err == nil && p.origin.Digest != "" && charts.Digest(archive) != p.origin.Digest {
		err = fmt.Errorf("%s is not what %s says", p.origin.File, chartLock)
	}
	if err != nil {
		return incorrect("the chart: %w", err)
	}
	read, err := p.work.read(ctx, chartInput{Manifest: text, Archive: archive})
	if err != nil {
		return incorrect("the chart in %s: %w", path.Join(charts.Resources, m.chart), err)
	}
	m.describe(read)
	p.madeClass, p.madeForm, p.chartIcon = m.helmClass(), read.Form, read.Icon
	return nil
}

// describe fills missing fields of the manifest from the chart.
func (m *manifest) describe(chart chartRead) {
	if m.values["Name"] == nil {
		m.name = chart.Name
	}
	if m.values["Description"] == nil && chart.Description != "" {
		m.description = chart.Description
	}
	if m.values["Author"] == nil {
		m.author = chart.Maintainer
	}
	if m.values["Tags"] == nil {
		m.tags = chart.Keywords
	}
	if version, err := semver.NewVersion(chart.Version); m.values["Version"] == nil && err == nil {
		m.version = version
	}
}

// ChartReference names the chart of a package that does not have it; nil for others.
func (p *Package) ChartReference() *charts.Reference {
	if p.origin.From != "" {
		return nil
	}
	return p.manifest.reference
}

// ChartOrigin returns the address from which the package's chart was fetched, and its digest; "" for charts that came with the package.
func (p *Package) ChartOrigin() (from, digest string) { return p.origin.From, p.origin.Digest }

// Helm reports whether the package holds a Helm chart and no MuranoPL.
func (p *Package) Helm() bool { return p.manifest.helm }

// fetched returns the package with the chart that it names.
func (p *Package) fetched(ctx context.Context, archive []byte) (*Package, error) {
	reference := p.ChartReference()
	manifest, err := p.files.read(manifestFile)
	if err != nil {
		return nil, err
	}
	chart, err := p.work.read(ctx, chartInput{Manifest: manifest, Archive: archive})
	if err != nil {
		return nil, incorrect("the chart %s: %w", reference, err)
	}
	lock := chartOrigin{From: reference.String(), Digest: charts.Digest(archive), File: chart.Name + "-" + chart.Version + ".tgz"}
	text, err := yaml.Marshal(lock)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range p.FileNames() {
		if files[name], err = p.files.read(name); err != nil {
			return nil, err
		}
	}
	files[chartLock], files[charts.Resources+"/"+lock.File] = text, archive
	return readPackage(ctx, unpacked(files), p.work)
}

// helmClass makes the MuranoPL class of a chart.
func (m *manifest) helmClass() string {
	return quotedYAML(map[string]any{
		"Name":    m.fullName,
		"Extends": helmRelease,
		"Properties": map[string]any{
			"chart": map[string]any{"Contract": expression("$.string().notNull()"), "Default": m.chart},
		},
	})
}

// helmForm makes the form of a chart, of the schema of its values.
type helmForm struct {
	title string
	chart *charts.Chart // nil where it is not there
	texts []helmValue   // fields in YAML
}

// helmValue is the contribution of a field to the values.
type helmValue struct {
	pointer string // where (RFC 6901)
	key     string
	value   string // an expression; null or an empty text for none
	own     string // an expression: the chart's own value
}

// helmPart is the schema of a value.
type helmPart struct {
	key      string
	path     []string
	schema   *yaml.Node
	own      any // the chart's own value
	has      bool
	required bool
}

// deepest is the level down to which objects have fields of their own; deeper values are written in YAML.
const deepest = 4

// maxFields is how many values have fields of their own. A chart with more gets one field for all, as a chart without a schema does.
const maxFields = 2_000

// releaseForm is the name of the first form.
const releaseForm = "release"

func (f *helmForm) write(m *manifest) string {
	const namePattern = `^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$`
	name := strings.Trim(noName.ReplaceAllString(strings.ToLower(f.title), "-"), "-")
	if f.chart != nil {
		name = f.chart.Name
	}
	text := func(name, label, description string, more map[string]any) map[string]any {
		field := map[string]any{"name": name, "type": "string", "label": label, "description": description}
		maps.Copy(field, more)
		return field
	}
	forms := []any{map[string]any{releaseForm: map[string]any{"fields": []any{
		text("title", "", m.description, map[string]any{"required": false, "hidden": true}),
		text("name", "Name", "Of the release: no other one in its namespace has it", map[string]any{"initial": name, "regexpValidator": namePattern}),
		text("kubernetesCluster", "Kubernetes cluster", "Where it is installed", map[string]any{"type": clusterClass}),
		text("namespace", "Namespace", "It is made when it is not there, and stays when the release goes",
			map[string]any{"initial": "default", "regexpValidator": `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`}),
		text("timeout", "Patience", "Seconds that hooks, and then what is to become ready, may take each", map[string]any{"type": "integer", "initial": 300, "minValue": 10, "maxValue": 3600}),
	}}}}
	values := expression("dict()")
	if f.chart != nil && f.chart.Schema != nil && f.fits() {
		parts := f.parts(helmPart{schema: f.chart.Schema, own: f.chart.Values, has: true, required: true})
		var plain []helmPart
		var given []helmValue
		used := map[string]bool{releaseForm: true}
		for _, part := range parts {
			if len(f.parts(part)) == 0 {
				plain = append(plain, part)
				continue
			}
			form := unique(used, part.key)
			fields := helmFields{form: form, names: map[string]bool{}}
			given = append(given, f.object(&fields, part))
			forms = append(forms, map[string]any{form: map[string]any{"fields": fields.list}})
		}
		fields := helmFields{form: unique(used, "values"), names: map[string]bool{}}
		for _, part := range plain {
			given = append(given, f.leaf(&fields, part)...)
		}
		f.further(&fields, "Further values")
		forms = slices.Insert(forms, 1, any(map[string]any{fields.form: map[string]any{"fields": fields.list}}))
		values = expression(mapOf(given))
	} else {
		fields := helmFields{form: "values", names: map[string]bool{}}
		f.further(&fields, "Values")
		forms = append(forms, map[string]any{fields.form: map[string]any{"fields": fields.list}})
	}
	texts := make([]helmValue, len(f.texts))
	for i, one := range f.texts {
		texts[i] = helmValue{key: one.pointer, value: one.value, own: "null"}
	}
	of := func(field string) any { return expression("$." + releaseForm + "." + field) }
	application := map[string]any{
		"?":    map[string]any{"type": m.fullName, "package": m.fullName, "classVersion": m.version.String()},
		"name": of("name"), "kubernetesCluster": of("kubernetesCluster"), "namespace": of("namespace"), "timeout": of("timeout"),
		"values": values, "texts": expression(mapOf(texts)),
	}
	return quotedYAML(map[string]any{"Version": 2, "Application": application, "Forms": forms})
}

// further adds the field for values that have no field of their own.
func (f *helmForm) further(fields *helmFields, label string) {
	f.texts = append(f.texts, helmValue{pointer: "", value: fields.add("furtherValues", map[string]any{
		"type": "text", "label": label, "required": false, "description": "In YAML, as the chart's values.yaml has them: those that are to be others than there",
	})})
}

// mapOf returns an expression for a map of the given values that differ from the chart's own.
func mapOf(given []helmValue) string {
	if len(given) == 0 {
		return "dict()"
	}
	items := make([]string, len(given))
	for i, one := range given {
		items[i] = fmt.Sprintf("list(%s, %s, %s)", literal(one.key), one.value, one.own)
	}
	return "list(" + strings.Join(items, ", ") + ").where($[1] != null and $[1] != '' and $[1] != $[2]).toDict($[0], $[1])"
}

// helmFields are the fields of a form.
type helmFields struct {
	form  string
	names map[string]bool
	list  []any
}

// add adds a field, and returns the expression for its input.
func (f *helmFields) add(name string, field map[string]any) string {
	name = unique(f.names, name)
	field["name"] = name
	f.list = append(f.list, field)
	return "$." + f.form + "." + name
}

var noName = regexp.MustCompile(`[^A-Za-z0-9]+`)

// unique makes a name for expressions that was not used before.
func unique(used map[string]bool, name string) string {
	name = strings.Trim(noName.ReplaceAllString(name, "_"), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "value_" + name
	}
	for number, base := 2, name; used[name]; number++ {
		name = fmt.Sprintf("%s_%d", base, number)
	}
	used[name] = true
	return name
}

// parts are the properties of an object; none where the value is no object with properties, or lies too deep.
func (f *helmForm) parts(of helmPart) (parts []helmPart) {
	properties := entry(of.schema, "properties")
	if kindOf(of.schema) != "object" || properties == nil || properties.Kind != yaml.MappingNode || len(of.path) >= deepest || len(properties.Content)/2 > maxFields {
		return nil
	}
	required := textsOf(entry(of.schema, "required"))
	has, _ := of.own.(map[string]any)
	for i := 0; i+1 < len(properties.Content); i += 2 {
		key := properties.Content[i].Value
		own, there := has[key]
		parts = append(parts, helmPart{key: key, path: append(slices.Clone(of.path), key), schema: f.followed(properties.Content[i+1]), own: own, has: there,
			required: of.required && slices.Contains(required, key)})
	}
	return parts
}

// fits reports whether the form has room for a field for each value, references followed.
func (f *helmForm) fits() bool {
	left := maxFields
	var count func(helmPart) bool
	count = func(of helmPart) bool {
		parts := f.parts(of)
		left -= len(parts)
		return left >= 0 && !slices.ContainsFunc(parts, func(part helmPart) bool { return !count(part) })
	}
	return count(helmPart{schema: f.chart.Schema})
}

// followed resolves a reference within the schema.
func (f *helmForm) followed(node *yaml.Node) *yaml.Node {
	for range deepest * deepest {
		reference := entry(node, "$ref")
		if reference == nil {
			return node
		}
		pointer, is := strings.CutPrefix(reference.Value, "#/")
		if !is {
			return node
		}
		at := f.chart.Schema
		for part := range strings.SplitSeq(pointer, "/") {
			if at = entry(at, strings.NewReplacer("~1", "/", "~0", "~").Replace(part)); at == nil {
				return node
			}
		}
		node = at
	}
	return node
}

// kindOf returns the type in the schema: of several the one besides null, "" if there is not exactly one.
func kindOf(schema *yaml.Node) string {
	if node := entry(schema, "type"); node != nil {
		kinds := slices.DeleteFunc(textsOf(node), func(kind string) bool { return kind == "null" })
		if len(kinds) == 1 {
			return kinds[0]
		}
		return ""
	}
	if entry(schema, "properties") != nil {
		return "object"
	}
	return ""
}

func textsOf(node *yaml.Node) (texts []string) {
	switch {
	case node == nil:
	case node.Kind == yaml.ScalarNode:
		texts = []string{node.Value}
	case node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			texts = append(texts, resolve(item).Value)
		}
	}
	return texts
}

// object returns the contribution of the fields of an object.
func (f *helmForm) object(fields *helmFields, of helmPart) helmValue {
	var given []helmValue
	for _, part := range f.parts(of) {
		if len(f.parts(part)) > 0 {
			given = append(given, f.object(fields, part))
		} else {
			given = append(given, f.leaf(fields, part)...)
		}
	}
	return helmValue{key: of.key, value: mapOf(given), own: "dict()"}
}

// leaf adds the field of a value, and returns its contribution; nothing for a value that is written in YAML.
func (f *helmForm) leaf(fields *helmFields, part helmPart) []helmValue {
	initial := part.own
	if !part.has {
		if node := entry(part.schema, "default"); node != nil {
			_ = node.Decode(&initial) // invalid values of YAML were refused before
		}
	}
	written, isText := initial.(string)
	field := map[string]any{"label": label(part), "required": part.required && (initial == nil || isText && written == "")}
	if description := entry(part.schema, "description"); description != nil {
		field["description"] = description.Value
	} else if title := entry(part.schema, "title"); title != nil {
		field["description"] = title.Value
	}
	kind := kindOf(part.schema)
	if choices := entry(part.schema, "enum"); choices != nil && choices.Kind == yaml.SequenceNode {
		return f.choice(fields, part, field, choices, initial, kind)
	}
	number := func(key string) any {
		var limit int64
		if node := entry(part.schema, key); node != nil && node.Decode(&limit) == nil {
			return limit
		}
		return nil
	}
	limits := func(names map[string]any) {
		for name, value := range names {
			if value != nil {
				field[name] = value
			}
		}
	}
	own := "null"
	if part.has {
		own = literalOf(part.own)
	}
	give := func(value string) []helmValue { return []helmValue{{key: part.key, value: value, own: own}} }
	name := strings.Join(part.path[min(1, len(part.path)-1):], "_")
	switch kind {
	case "boolean":
		field["type"], field["initial"], field["required"] = "boolean", initial == true, false
		if !part.has {
			own = literalOf(initial == true)
		}
		return give(fields.add(name, field))
	case "integer":
		field["type"] = "integer"
		limits(map[string]any{"initial": initial, "minValue": number("minimum"), "maxValue": number("maximum")})
		return give(fields.add(name, field))
	case "number":
		field["type"] = "string"
		limits(map[string]any{"initial": initial, "regexpValidator": `^-?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$`})
		return give(converted(fields.add(name, field), "float"))
	case "string":
		return give(fields.add(name, f.textField(field, part, written, limits, number)))
	}
	field["type"], field["required"] = "text", false
	field["description"] = strings.TrimSpace(fmt.Sprint(cmpText(field["description"]), " In YAML"))
	pointer := ""
	for _, key := range part.path {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
	}
	f.texts = append(f.texts, helmValue{pointer: pointer, value: fields.add(name, field)})
	return nil
}

func cmpText(value any) string {
	text, _ := value.(string)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// textField is the field of a text. A secret is typed as a password, and the chart's own value is not shown.
func (f *helmForm) textField(field map[string]any, part helmPart, initial string, limits func(map[string]any), number func(string) any) map[string]any {
	limits(map[string]any{"minLength": number("minLength"), "maxLength": number("maxLength")})
	if pattern := entry(part.schema, "pattern"); pattern != nil {
		if _, err := door.Pattern(pattern.Value); err == nil { // Helm checks patterns that only others understand
			field["regexpValidator"] = pattern.Value
		}
	}
	format, secret := entry(part.schema, "format"), entry(part.schema, "writeOnly")
	if sensitive.Name(part.key) || format != nil && format.Value == "password" || secret != nil && secret.Value == "true" {
		field["type"], field["confirmInput"] = "password", false
		if field["regexpValidator"] == nil { // without any, a password is held to be a new one and should be a strong one
			field["regexpValidator"] = "^"
		}
		return field
	}
	field["type"] = "string"
	if strings.Contains(initial, "\n") {
		field["type"] = "text"
	}
	if initial != "" {
		field["initial"] = initial
	}
	return field
}

// choice is the field of a value that is one of several.
func (f *helmForm) choice(fields *helmFields, part helmPart, field map[string]any, choices *yaml.Node, initial any, kind string) []helmValue {
	field["type"] = "choice"
	var list []any
	for _, item := range choices.Content {
		if value := resolve(item); value.Kind == yaml.ScalarNode && !isNull(value) {
			list = append(list, []any{value.Value, value.Value})
		}
	}
	if required, _ := field["required"].(bool); !required {
		list = slices.Insert(list, 0, any([]any{"", "-"}))
	}
	field["choices"] = list
	if initial != nil {
		field["initial"] = scalar(initial)
	}
	own, name := "null", strings.Join(part.path[min(1, len(part.path)-1):], "_")
	if part.has {
		own = literalOf(part.own)
	}
	value := fields.add(name, field)
	switch kind {
	case "integer":
		value = converted(value, "int")
	case "number":
		value = converted(value, "float")
	}
	return []helmValue{{key: part.key, value: value, own: own}}
}

// converted is an expression for a number that is filled in as a text; null for an empty one.
func converted(value, function string) string {
	return fmt.Sprintf("list(%s).where($ != null and $ != '').select(%s($)).first(null)", value, function)
}

// literalOf writes a value that a field can have; others are null.
func literalOf(value any) string {
	switch value := value.(type) {
	case string:
		return literal(strings.TrimSpace(value)) // as forms read texts
	case bool, int, int64, uint64, float64:
		return literal(value)
	}
	return "null"
}

// label is the title of a value, preceded by the titles of the enclosing objects below the form's.
func label(part helmPart) string {
	if title := entry(part.schema, "title"); title != nil {
		return title.Value
	}
	words := part.path[min(1, len(part.path)-1):]
	labels := make([]string, len(words))
	for i, word := range words {
		labels[i] = spoken(word)
	}
	return strings.Join(labels, ": ")
}

// spoken writes a key as a person does: replicaCount is Replica count.
func spoken(key string) string {
	var text strings.Builder
	runes := []rune(key)
	for i, r := range runes {
		switch {
		case i == 0:
			text.WriteRune(unicode.ToUpper(r))
		case r == '_' || r == '-':
			text.WriteRune(' ')
		case unicode.IsUpper(r) && unicode.IsLower(runes[i-1]):
			text.WriteRune(' ')
			if i+1 < len(runes) && unicode.IsUpper(runes[i+1]) {
				text.WriteRune(r)
			} else {
				text.WriteRune(unicode.ToLower(r))
			}
		default:
			text.WriteRune(r)
		}
	}
	return text.String()
}
