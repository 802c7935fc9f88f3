package catalog

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const (
	templateFile    = "template.yaml"
	hotFiles        = "Resources/HotFiles/"
	hotEnvironments = "Resources/HotEnvironments/"
)

// hotTemplate is what of a Heat template class and form are made of.
type hotTemplate struct {
	parameters []hotParameter // in the template's order
	groups     [][]string     // names of parameters
	outputs    []string
}

type hotParameter struct {
	name        string
	kind        string // string, number, boolean, json or comma_delimited_list
	label       string
	description any // a text; nil where there is none
	hasDefault  bool
	initial     any
	hidden      bool // a secret
	constraints []map[string]any
}

// at names a place in the template.
func at(node *yaml.Node, format string, args ...any) error {
	return &Placed{File: templateFile, Line: node.Line, Column: node.Column,
		Err: incorrect("%s:%d:%d: %s", templateFile, node.Line, node.Column, fmt.Sprintf(format, args...))}
}

// readTemplate reads a Heat Orchestration Template (Heat's "HOT specification").
func readTemplate(text []byte) (*hotTemplate, error) {
	var document yaml.Node
	if err := unmarshalYAML(text, &document); err != nil {
		return nil, placed(templateFile, incorrect("%s: %w", templateFile, err), err)
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		return nil, incorrect("%s: Not a HOT template: it should be a map with heat_template_version and resources", templateFile)
	}
	root := document.Content[0]
	if entry(root, "resources") == nil {
		return nil, at(root, "Not a HOT template: it has no resources")
	}
	t := &hotTemplate{}
	if err := eachEntry(root, "parameters", t.readParameter); err != nil {
		return nil, err
	}
	if err := eachEntry(root, "outputs", func(name, _ *yaml.Node) error {
		t.outputs = append(t.outputs, name.Value)
		return nil
	}); err != nil {
		return nil, err
	}
	return t, t.readGroups(entry(root, "parameter_groups"))
}

// entry returns the value of a key of a map, nil where there is none or it is null.
func entry(node *yaml.Node, key string) *yaml.Node {
	if node = resolve(node); node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key && !isNull(node.Content[i+1]) {
				return resolve(node.Content[i+1])
			}
		}
	}
	return nil
}

func eachEntry(root *yaml.Node, section string, of func(key, value *yaml.Node) error) error {
	node := entry(root, section)
	if node == nil {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return at(node, "%s should be a map", section)
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if err := of(node.Content[i], resolve(node.Content[i+1])); err != nil {
			return err
		}
	}
	return nil
}

func (t *hotTemplate) readParameter(name, node *yaml.Node) error {
	parameter := hotParameter{name: name.Value}
	if node.Kind != yaml.MappingNode {
		return at(node, "parameter %s should be a map with a type", quoteShort(name.Value))
	}
	kind := entry(node, "type")
	if kind == nil {
		return at(node, "parameter %s has no type", quoteShort(name.Value))
	}
	parameter.kind = kind.Value
	if !slices.Contains([]string{"string", "number", "boolean", "json", "comma_delimited_list"}, parameter.kind) {
		return at(kind, "parameter %s: Unsupported parameter type %s", quoteShort(name.Value), short(parameter.kind))
	}
	if label := entry(node, "label"); label != nil {
		parameter.label = label.Value
	}
	if description := entry(node, "description"); description != nil {
		parameter.description = description.Value
	}
	if hidden := entry(node, "hidden"); hidden != nil {
		if err := hidden.Decode(&parameter.hidden); err != nil {
			return at(hidden, "hidden of parameter %s should be true or false", quoteShort(name.Value))
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == "default" {
			parameter.hasDefault = true
			if err := node.Content[i+1].Decode(&parameter.initial); err != nil {
				return at(node.Content[i+1], "the default of parameter %s: %v", quoteShort(name.Value), err)
			}
		}
	}
	if constraints := entry(node, "constraints"); constraints != nil {
		if err := constraints.Decode(&parameter.constraints); err != nil {
			return at(constraints, "the constraints of parameter %s should be a list of maps: %v", quoteShort(name.Value), err)
		}
		for _, constraint := range parameter.constraints {
			if _, err := condition("$", constraint); err != nil {
				return at(constraints, "the constraints of parameter %s: %v", quoteShort(name.Value), err)
			}
		}
	}
	t.parameters = append(t.parameters, parameter)
	return nil
}

func (t *hotTemplate) readGroups(groups *yaml.Node) error {
	if groups == nil {
		return nil
	}
	var list []struct {
		Parameters []string `yaml:"parameters"`
	}
	if err := groups.Decode(&list); err != nil {
		return at(groups, "parameter_groups should be a list of maps with a list of parameters: %v", err)
	}
	for _, group := range list {
		t.groups = append(t.groups, group.Parameters)
	}
	return nil
}

// bounds reads {min, max} of a constraint; a bound that is not there is nil.
func bounds(spec any) (low, high any, err error) {
	limits, ok := spec.(map[string]any)
	if !ok {
		return nil, nil, errors.New("length and range should be maps with min, max or both")
	}
	for _, key := range []string{"min", "max"} {
		switch limits[key].(type) {
		case nil, int, int64, float64:
		default:
			return nil, nil, fmt.Errorf("%s should be a number", key)
		}
	}
	if limits["min"] == nil && limits["max"] == nil {
		return nil, nil, errors.New("length and range need min, max or both")
	}
	return limits["min"], limits["max"], nil
}

// between is the expression that a value is within bounds.
func between(value string, spec any) (string, error) {
	low, high, err := bounds(spec)
	switch {
	case err != nil:
		return "", err
	case high == nil:
		return fmt.Sprintf("%s >= %s", value, literal(low)), nil
	case low == nil:
		return fmt.Sprintf("%s <= %s", value, literal(high)), nil
	}
	return fmt.Sprintf("%s >= %s and %s <= %s", value, literal(low), value, literal(high)), nil
}

// literal writes a value in YAQL.
func literal(value any) string {
	if text, ok := value.(string); ok {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	}
	return scalar(value)
}

// condition is the constraint as an expression on a value, such as $; "" for one that only Heat can check.
func condition(value string, constraint map[string]any) (string, error) {
	switch {
	case constraint["allowed_values"] != nil:
		values, ok := constraint["allowed_values"].([]any)
		if !ok {
			return "", errors.New("allowed_values should be a list")
		}
		list := make([]string, 0, len(values))
		for _, value := range values {
			list = append(list, literal(value))
		}
		return value + " in list(" + strings.Join(list, ", ") + ")", nil
	case constraint["length"] != nil:
		return between("len("+value+")", constraint["length"])
	case constraint["range"] != nil:
		return between(value, constraint["range"])
	case constraint["allowed_pattern"] != nil:
		pattern, ok := constraint["allowed_pattern"].(string)
		if !ok {
			return "", errors.New("allowed_pattern should be a text")
		}
		return "matches(" + value + ", " + literal(pattern) + ")", nil
	}
	return "", nil
}

// form makes the dynamic UI of the template, as Murano does: a form with the application's name, one for each group of parameters,
// and one for the rest.
func (t *hotTemplate) form(m *manifest) string {
	name := map[string]any{"name": "name", "type": "string", "label": "Application Name", "required": true,
		"description": "Enter a desired name for the application. Just A-Z, a-z, 0-9, and dash are allowed"}
	title := map[string]any{"name": "title", "type": "string", "required": false, "hidden": true, "description": m.description}
	forms := []any{map[string]any{"group0": map[string]any{"fields": []any{title, name}}}}
	application := map[string]any{
		"?":    map[string]any{"type": m.fullName, "package": m.fullName, "classVersion": m.version.String()},
		"name": expression("$.group0.name"),
	}
	values := map[string]any{}
	for _, group := range t.inGroups() {
		key := fmt.Sprintf("group%d", len(forms))
		fields := make([]any, 0, len(group))
		for _, parameter := range group {
			fields = append(fields, parameter.field())
			values[parameter.name] = expression("$." + key + "." + parameter.name)
		}
		forms = append(forms, map[string]any{key: map[string]any{"fields": fields}})
	}
	if len(forms) > 1 {
		application["templateParameters"] = values
	}
	return quotedYAML(map[string]any{"Version": 2, "Application": application, "Forms": forms})
}

// inGroups are the parameters of each group, and then those that are in none.
func (t *hotTemplate) inGroups() [][]hotParameter {
	used := map[string]bool{}
	var groups [][]hotParameter
	for _, names := range t.groups {
		var group []hotParameter
		for _, name := range names {
			if i := slices.IndexFunc(t.parameters, func(p hotParameter) bool { return p.name == name }); i >= 0 {
				group, used[name] = append(group, t.parameters[i]), true
			}
		}
		groups = append(groups, group)
	}
	var rest []hotParameter
	for _, parameter := range t.parameters {
		if !used[parameter.name] {
			rest = append(rest, parameter)
		}
	}
	if len(rest) > 0 {
		groups = append(groups, rest)
	}
	return groups
}

// field is the field of the form for the parameter. Murano shows secrets in clear; here they are typed as passwords.
func (p hotParameter) field() map[string]any {
	kinds := map[string]string{"number": "integer", "boolean": "boolean"}
	field := map[string]any{"name": p.name, "label": p.label, "type": "string", "required": !p.hasDefault}
	if kind, ok := kinds[p.kind]; ok {
		field["type"] = kind
	}
	secret := p.hidden && p.kind != "boolean"
	value := "$"
	if secret {
		field["type"], field["confirmInput"] = "password", false
		if p.kind == "number" {
			value = "int($)" // what is typed as a password is a text
		}
	}
	if p.label == "" {
		field["label"] = titled(p.name)
	}
	if p.description != nil {
		field["description"] = p.description
	}
	if p.hasDefault {
		field["initial"] = p.initial
	}
	var validators []any
	for _, constraint := range p.constraints {
		if constraint["length"] != nil {
			narrow(field, constraint["length"])
			continue
		}
		text, _ := condition(value, constraint)
		if text == "" {
			continue
		}
		validator := map[string]any{"expr": expression(text)}
		if pattern := constraint["allowed_pattern"]; pattern != nil {
			validator["expr"] = map[string]any{"regexpValidator": pattern}
		}
		if message := constraint["description"]; message != nil {
			validator["message"] = message
		}
		validators = append(validators, validator)
	}
	if secret && validators == nil { // without any, a password is held to be a new one and should be a strong one
		validators = []any{map[string]any{"expr": map[string]any{"regexpValidator": "^"}}}
	}
	if validators != nil {
		field["validators"] = validators
	}
	return field
}

// narrow sets minLength and maxLength, the narrowest of several.
func narrow(field map[string]any, spec any) {
	low, high, _ := bounds(spec)
	if low != nil {
		now, there := field["minLength"].(int)
		if field["minLength"] = whole(low); there {
			field["minLength"] = max(now, whole(low))
		}
	}
	if high != nil {
		now, there := field["maxLength"].(int)
		if field["maxLength"] = whole(high); there {
			field["maxLength"] = min(now, whole(high))
		}
	}
}

func whole(number any) int {
	switch number := number.(type) {
	case int:
		return number
	case int64:
		return int(number)
	case float64:
		return int(math.Max(math.MinInt32, math.Min(math.MaxInt32, number)))
	}
	return 0
}

// titled writes a parameter's name as Python's title() does, with blanks for underscores.
func titled(name string) string {
	var text strings.Builder
	inWord := false
	for _, r := range name {
		if inWord {
			text.WriteRune(unicode.ToLower(r))
		} else {
			text.WriteRune(unicode.ToUpper(r))
		}
		inWord = unicode.IsLetter(r)
	}
	return strings.ReplaceAll(text.String(), "_", " ")
}

// class makes the MuranoPL class of the template: an application whose deploy pushes the template as a stack of its own and whose
// destroy deletes it. Where the package has environments of Heat, these set parameters, and contracts do not.
func (t *hotTemplate) class(m *manifest, files contents) string {
	parameters := map[string]any{}
	if len(below(files, hotEnvironments)) == 0 {
		for _, parameter := range t.parameters {
			parameters[parameter.name] = expression(parameter.contract())
		}
	}
	outputs, sent := map[string]any{}, map[string]any{}
	for _, output := range t.outputs {
		outputs[output] = expression("$.string()")
	}
	for _, file := range below(files, hotFiles) {
		sent[file] = expression("$resources.string(" + literal(path.Join("HotFiles", file)) + ")")
	}
	set := func(target, value string) any { return assignment{target, expression(value)} }
	report := func(text string) any { return expression("$reporter.report($this, " + literal(text) + ")") }
	environment := set("$environment", "$.find('io.murano.Environment').require()")
	stack := set("$stack", "new('io.murano.system.HeatStack', $environment, name => $.getAttr(generatedHeatStackName))")
	return quotedYAML(map[string]any{
		"Name":    m.fullName,
		"Extends": "io.murano.Application",
		"Properties": map[string]any{
			"name":                   map[string]any{"Contract": expression("$.string().notNull()"), "Usage": "In"},
			"generatedHeatStackName": map[string]any{"Contract": expression("$.string()"), "Usage": "Out"},
			"hotEnvironment":         map[string]any{"Contract": expression("$.string()"), "Usage": "In"},
			"templateParameters":     map[string]any{"Contract": parameters, "Default": map[string]any{}, "Usage": "In"},
			"templateOutputs":        map[string]any{"Contract": outputs, "Default": map[string]any{}, "Usage": "Out"},
		},
		"Methods": map[string]any{
			"deploy": map[string]any{"Body": []any{
				environment,
				set("$reporter", "new('io.murano.system.StatusReporter', environment => $environment)"),
				map[string]any{"If": expression("$.getAttr(generatedHeatStackName) = null"),
					"Then": []any{expression("$.setAttr(generatedHeatStackName, '{0}_{1}'.format(randomName(), id($environment)))")}},
				stack,
				report("Application deployment has started"),
				set("$resources", "new('io.murano.system.Resources')"),
				expression("$stack.setTemplate($resources.yaml(" + literal(m.fullName) + "))"),
				expression("$stack.setParameters($.templateParameters)"),
				assignment{"$files", sent},
				expression("$stack.setFiles($files)"),
				map[string]any{"If": expression("bool($.hotEnvironment)"),
					"Then": []any{expression("$stack.setHotEnvironment($resources.string('HotEnvironments/' + $.hotEnvironment))")}},
				report("Stack creation has started"),
				map[string]any{
					"Try": []any{expression("$stack.push()")},
					"Catch": []any{map[string]any{"As": "e",
						"Do": []any{expression("$reporter.report_error($this, $e.message)"), map[string]any{"Rethrow": nil}}}},
					"Else": []any{set("$.templateOutputs", "$stack.output()"), report("Stack was successfully created"),
						report("Application deployment has finished")},
				},
			}},
			"destroy": map[string]any{"Body": []any{map[string]any{"If": expression("$.getAttr(generatedHeatStackName) != null"),
				"Then": []any{environment, stack, expression("$stack.delete()")}}}},
		},
	})
}

func (p hotParameter) contract() string {
	contract := map[string]string{"number": "$.int()", "boolean": "$.bool()"}[p.kind]
	if contract == "" {
		contract = "$.string()"
	}
	for _, constraint := range p.constraints {
		if text, _ := condition("$", constraint); text != "" {
			contract += ".check(" + text + ")"
		}
	}
	return contract
}

// below lists the files of a folder by their paths in it, sorted.
func below(files contents, folder string) []string {
	var names []string
	for _, file := range slices.Sorted(slices.Values(files.names())) {
		if name, ok := strings.CutPrefix(file, folder); ok {
			names = append(names, name)
		}
	}
	return names
}

// scalar writes a value that is neither list nor map.
func scalar(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1e16 {
			return strconv.FormatFloat(value, 'f', 1, 64)
		}
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
