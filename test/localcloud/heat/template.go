package heat

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/hot"
)

// maxTemplate is Heat's limit of a template, in bytes.
const maxTemplate = 512 << 10

// versions are the template versions Heat knows; each date has the name of its release beside it from 2016 on.
var versions = []string{
	"2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08", "2016-10-14", "newton", "2017-02-24", "ocata", "2017-09-01", "pike",
	"2018-03-02", "queens", "2018-08-31", "rocky", "2021-04-16", "wallaby",
}

// Template is a HOT template, checked as far as it can be without parameters.
type Template struct {
	Version, Description string
	Parameters           map[string]Parameter
	Conditions           map[string]any
	Resources            map[string]Definition
	Outputs              map[string]Output
	Raw                  map[string]any // as sent
}

// Definition is one resource of a template.
type Definition struct {
	Type           string
	Properties     map[string]any
	Metadata       any
	DependsOn      []string
	DeletionPolicy string // Delete or Retain
	Condition      any    // under which it is there; nil for always
}

// Output is one output of a template.
type Output struct {
	Description string
	Value       any
	Condition   any // without which the value is null; nil for always
}

// ParseTemplate reads a template that was sent as text (YAML or JSON) or as a JSON object.
func ParseTemplate(source any) (*Template, error) {
	var raw map[string]any
	switch source := source.(type) {
	case string:
		value, err := parseYAML(source)
		if err != nil {
			return nil, invalid("TemplateFormatError", "Template format error: %v", err)
		}
		object, ok := value.(map[string]any)
		if !ok {
			return nil, invalid("TemplateFormatError", "The template is not a JSON object or YAML mapping.")
		}
		raw = object
	case map[string]any:
		raw = source
	default:
		return nil, invalid("TemplateFormatError", "The template is not a JSON object or YAML mapping.")
	}
	return parseTemplate(raw)
}

func parseTemplate(raw map[string]any) (*Template, error) {
	version, ok := raw["heat_template_version"]
	if !ok {
		return nil, invalid("InvalidTemplateVersion", "Template format version not found.")
	}
	if !slices.Contains(versions, fmt.Sprint(version)) {
		return nil, invalid("InvalidTemplateVersion", "The template version is invalid: \"heat_template_version: %v\". \"heat_template_version\" should be one of: %s", version, strings.Join(versions, ", "))
	}
	t := &Template{Version: fmt.Sprint(version), Raw: raw, Parameters: map[string]Parameter{}, Resources: map[string]Definition{}, Outputs: map[string]Output{}}
	t.Description, _ = raw["description"].(string)
	for _, section := range slices.Sorted(maps.Keys(raw)) {
		var err error
		switch section {
		case "heat_template_version", "description", "parameter_groups":
		case "parameters":
			err = eachEntry(section, raw[section], t.addParameter)
		case "conditions":
			err = t.addConditions(raw[section])
		case "resources":
			err = eachEntry(section, raw[section], t.addResource)
		case "outputs":
			err = eachEntry(section, raw[section], t.addOutput)
		default:
			err = invalid("InvalidTemplateSection", "The template section is invalid: %s", section)
		}
		if err != nil {
			return nil, err
		}
	}
	return t, t.checkReferences()
}

func eachEntry(section string, value any, add func(name string, body map[string]any) error) error {
	if value == nil {
		return nil
	}
	entries, ok := value.(map[string]any)
	if !ok {
		return invalidTemplate("\"%s\" must contain a map of %s. Found a [%T] instead", section, section, value)
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		body, ok := entries[name].(map[string]any)
		if !ok {
			return invalidTemplate("\"%s\" must contain a map of %s maps. Found a [%T] instead for %s", section, strings.TrimSuffix(section, "s"), entries[name], name)
		}
		if err := add(name, body); err != nil {
			return err
		}
	}
	return nil
}

func (t *Template) addResource(name string, body map[string]any) error {
	definition := Definition{DeletionPolicy: "Delete", Properties: map[string]any{}}
	for key, value := range body {
		switch key {
		case "type":
			text, ok := value.(string)
			if !ok || text == "" {
				return invalid("StackValidationFailed", "resources.%s: Resource type must be a string", name)
			}
			definition.Type = text
		case "properties":
			if value == nil {
				continue
			}
			properties, ok := value.(map[string]any)
			if !ok {
				return notValid("resources.%s: properties must be a map", name)
			}
			definition.Properties = properties
		case "metadata":
			definition.Metadata = value
		case "depends_on":
			for _, one := range hot.List(value) {
				text, ok := one.(string)
				if !ok {
					return notValid("resources.%s: depends_on must be a name or a list of names", name)
				}
				definition.DependsOn = append(definition.DependsOn, text)
			}
		case "deletion_policy":
			switch strings.ToLower(fmt.Sprint(value)) {
			case "delete":
			case "retain":
				definition.DeletionPolicy = "Retain"
			default:
				return notValid("resources.%s: Invalid deletion policy \"%v\"", name, value)
			}
		case "condition":
			if err := t.checkCondition(value, "resources."+name); err != nil {
				return err
			}
			definition.Condition = value
		case "update_policy", "external_id":
			return notValid("resources.%s: \"%s\" is not supported by the local cloud's Heat", name, key)
		default:
			return notValid("resources.%s: \"%s\" is not a valid keyword inside a resource definition", name, key)
		}
	}
	if definition.Type == "" {
		return notValid("Each resource must contain a type key: resources.%s", name)
	}
	for _, value := range []any{definition.Properties, definition.Metadata} {
		if err := t.checkFunctions(value, "resources."+name); err != nil {
			return err
		}
	}
	t.Resources[name] = definition
	return nil
}

func (t *Template) addOutput(name string, body map[string]any) error {
	if _, ok := body["value"]; !ok {
		return notValid("Each output must contain a value key: outputs.%s", name)
	}
	for key := range body {
		if key != "value" && key != "description" && key != "condition" {
			return notValid("outputs.%s: \"%s\" is not a valid keyword inside an output definition", name, key)
		}
	}
	if err := t.checkFunctions(body["value"], "outputs."+name); err != nil {
		return err
	}
	if err := t.checkCondition(body["condition"], "outputs."+name); err != nil {
		return err
	}
	description, _ := body["description"].(string)
	t.Outputs[name] = Output{Description: description, Value: body["value"], Condition: body["condition"]}
	return nil
}

func (t *Template) addConditions(value any) error {
	if !t.since(withConditions) {
		return invalid("InvalidTemplateSection", "The template section is invalid: conditions")
	}
	conditions, ok := value.(map[string]any)
	if !ok && value != nil {
		return invalidTemplate("The conditions of a template are a map. Found a [%T] instead", value)
	}
	t.Conditions = conditions
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		if err := t.checkCondition(conditions[name], "conditions."+name); err != nil {
			return err
		}
	}
	return nil
}

// checkCondition finds invalid conditions.
func (t *Template) checkCondition(value any, place string) error {
	if value == nil {
		return nil
	}
	if !t.since(withConditions) {
		return notValid("%s: \"condition\" is not there before the template version %s", place, withConditions)
	}
	if resources := hot.Mentioned(value, "get_resource", "get_attr"); len(resources) > 0 {
		return notValid("%s: a condition knows parameters only, and no resources", place)
	}
	return t.checkFunctions(value, place)
}

// decided is the template after the values of its parameters: without the resources whose condition does not hold, and with the chosen branches of
// conditions.
func (t *Template) decided(values map[string]any, files map[string]string) (*Template, error) {
	scope := hot.Scope{Parameters: values, Conditions: t.Conditions, Files: files}
	for _, name := range slices.Sorted(maps.Keys(t.Conditions)) {
		if _, err := scope.Decide(name); err != nil {
			return nil, notValid("conditions.%s: %v", name, err)
		}
	}
	made := *t
	made.Resources, made.Outputs = map[string]Definition{}, map[string]Output{}
	for name, definition := range t.Resources {
		is, err := scope.Decide(orTrue(definition.Condition))
		if err != nil {
			return nil, notValid("resources.%s: %v", name, err)
		}
		if !is {
			continue
		}
		properties, err := scope.Chosen(definition.Properties)
		if err == nil {
			definition.Metadata, err = scope.Chosen(definition.Metadata)
		}
		if err != nil {
			return nil, notValid("resources.%s: %v", name, err)
		}
		var ok bool
		if definition.Properties, ok = properties.(map[string]any); !ok {
			return nil, notValid("resources.%s: properties must be a map", name)
		}
		// One may depend on another that a condition rules out.
		definition.DependsOn = slices.DeleteFunc(slices.Clone(definition.DependsOn), func(other string) bool {
			is, err := scope.Decide(orTrue(t.Resources[other].Condition))
			return err == nil && !is
		})
		made.Resources[name] = definition
	}
	for name, output := range t.Outputs {
		is, err := scope.Decide(orTrue(output.Condition))
		if err == nil && is {
			output.Value, err = scope.Chosen(output.Value)
		}
		if err != nil {
			return nil, notValid("outputs.%s: %v", name, err)
		}
		if !is {
			output.Value = nil
		}
		made.Outputs[name] = output
	}
	if err := made.checkReferences(); err != nil {
		return nil, err
	}
	if circle := made.explicit().Circle(); circle != nil {
		return nil, invalid("CircularDependencyException", "Circular Dependency Found: %s", strings.Join(circle, ", "))
	}
	return &made, nil
}

// orTrue is a condition, or, without one, an always true one.
func orTrue(condition any) any {
	if condition == nil {
		return true
	}
	return condition
}

// checkReferences finds references to missing resources.
func (t *Template) checkReferences() error {
	check := func(value any, place string) error {
		for name := range hot.Mentioned(value, "get_resource", "get_attr") {
			if _, ok := t.Resources[name]; !ok {
				return invalid("InvalidTemplateReference", "The specified reference \"%s\" (in %s) is incorrect.", name, place)
			}
		}
		for name := range hot.Mentioned(value, "get_param") {
			if _, ok := t.Parameters[name]; !ok && !isPseudo(name) {
				return invalid("InvalidTemplateParameter", "The Parameter (%s) was not defined in template. (in %s)", name, place)
			}
		}
		return nil
	}
	for name, definition := range t.Resources {
		if err := check(map[string]any{"Properties": definition.Properties, "Metadata": definition.Metadata}, name+".Properties"); err != nil {
			return err
		}
		for _, other := range definition.DependsOn {
			if _, ok := t.Resources[other]; !ok {
				return invalid("InvalidTemplateReference", "The specified reference \"%s\" (in %s) is incorrect.", other, name)
			}
		}
	}
	for name, output := range t.Outputs {
		if err := check(output.Value, "outputs."+name); err != nil {
			return err
		}
	}
	return check(t.Conditions, "conditions")
}

// explicit returns the references of each resource: these must be ready first.
func (t *Template) explicit() hot.Graph {
	g := hot.Graph{}
	for name, definition := range t.Resources {
		g[name] = map[string]bool{}
		for other := range hot.Mentioned(map[string]any{"p": definition.Properties, "m": definition.Metadata}, "get_resource", "get_attr") {
			g[name][other] = true
		}
		for _, other := range definition.DependsOn {
			g[name][other] = true
		}
	}
	return g
}

// parseYAML reads YAML as Heat does: dates stay text, and keys are text.
func parseYAML(source string) (any, error) {
	if len(source) > maxTemplate {
		return nil, fmt.Errorf("%d bytes are more than the limit of %d", len(source), maxTemplate)
	}
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(source), &node); err != nil {
		return nil, err
	}
	if node.Kind == 0 {
		return nil, nil
	}
	keepDates(&node)
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, err
	}
	budget := 1 << 20
	return plain(value, &budget)
}

func keepDates(node *yaml.Node) {
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}
	for _, child := range node.Content {
		keepDates(child)
	}
}

// plain converts YAML's types to JSON's; budget limits the number of values.
func plain(value any, budget *int) (any, error) {
	if *budget--; *budget < 0 {
		return nil, fmt.Errorf("there are too many values")
	}
	switch value := value.(type) {
	case map[string]any:
		for key, element := range value {
			changed, err := plain(element, budget)
			if err != nil {
				return nil, err
			}
			value[key] = changed
		}
		return value, nil
	case map[any]any:
		changed := map[string]any{}
		for key, element := range value {
			one, err := plain(element, budget)
			if err != nil {
				return nil, err
			}
			changed[fmt.Sprint(key)] = one
		}
		return changed, nil
	case []any:
		for i, element := range value {
			changed, err := plain(element, budget)
			if err != nil {
				return nil, err
			}
			value[i] = changed
		}
		return value, nil
	case int:
		return float64(value), nil
	case int64:
		return float64(value), nil
	case uint64:
		return float64(value), nil
	case float64:
		if math.IsInf(value, 0) || math.IsNaN(value) {
			return nil, fmt.Errorf("%v is no number a template can hold", value)
		}
		return value, nil
	case nil, string, bool:
		return value, nil
	}
	return fmt.Sprint(value), nil
}
