package catalog

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/catalog/muranopl"
)

const (
	templateFile    = "template.yaml"
	hotFiles        = "Resources/HotFiles/"
	hotEnvironments = "Resources/HotEnvironments/"
)

// hotTemplate has the parts of a Heat template from which class and form are made.
type hotTemplate struct {
	parameters []hotParameter // in the template's order
	groups     [][]string     // names of parameters
	outputs    []string
	references []hotReference
	twice      []hotTwice
}

type hotParameter struct {
	name        string
	label       string
	description any // a text; nil where there is none
	initial     any // the default
	rule        hot.Rule
}

// hotTwice is a duplicate name in a section.
type hotTwice struct {
	section string
	first   *yaml.Node
	again   *yaml.Node
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
	t := &hotTemplate{references: referencesOf(root)}
	if err := t.eachEntry(root, "parameters", t.readParameter); err != nil {
		return nil, err
	}
	if err := t.eachEntry(root, "outputs", func(name, _ *yaml.Node) error {
		t.outputs = append(t.outputs, name.Value)
		return nil
	}); err != nil {
		return nil, err
	}
	t.note("the template", root)
	for _, section := range []string{"resources", "conditions"} {
		t.note(section, entry(root, section))
	}
	return t, t.readGroups(entry(root, "parameter_groups"))
}

// pairs returns the keys and values of a map, with those that "<<" merges in after its own. Of a duplicate key the last value counts, as for Heat; its
// first place and the further one are in again.
func pairs(node *yaml.Node) (all, again [][2]*yaml.Node) {
	var merged [][2]*yaml.Node
	places := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolve(node.Content[i+1])
		if key.Tag == "!!merge" {
			sources := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				sources = value.Content
			}
			for _, source := range sources {
				if source = resolve(source); source.Kind == yaml.MappingNode {
					more, _ := pairs(source)
					merged = append(merged, more...)
				}
			}
			continue
		}
		if before, twice := places[key.Value]; twice {
			again = append(again, [2]*yaml.Node{all[before][0], key})
			all[before] = [2]*yaml.Node{key, value}
			continue
		}
		places[key.Value] = len(all)
		all = append(all, [2]*yaml.Node{key, value})
	}
	for _, one := range merged {
		if _, there := places[one[0].Value]; !there {
			places[one[0].Value] = len(all)
			all = append(all, one)
		}
	}
	return all, again
}

// entry returns the value of a key of a map, nil where there is none or it is null.
func entry(node *yaml.Node, key string) *yaml.Node {
	if node = resolve(node); node.Kind == yaml.MappingNode {
		all, _ := pairs(node)
		for _, one := range all {
			if one[0].Value == key && !isNull(one[1]) {
				return one[1]
			}
		}
	}
	return nil
}

// note keeps the names of a section that are there twice.
func (t *hotTemplate) note(section string, node *yaml.Node) {
	if node != nil && node.Kind == yaml.MappingNode {
		_, again := pairs(node)
		for _, one := range again {
			t.twice = append(t.twice, hotTwice{section, one[0], one[1]})
		}
	}
}

func (t *hotTemplate) eachEntry(root *yaml.Node, section string, of func(key, value *yaml.Node) error) error {
	node := entry(root, section)
	if node == nil {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return at(node, "%s should be a map", section)
	}
	t.note(section, node)
	all, _ := pairs(node)
	for _, one := range all {
		if err := of(one[0], one[1]); err != nil {
			return err
		}
	}
	return nil
}

// doubt is an error about a name that is there twice. Heat takes the last one, so packages of former versions are read, but none is taken in.
func (t *hotTemplate) doubt() error {
	for _, one := range t.twice {
		return at(one.again, "%s has %s twice, in line %d too: Heat would take the last one and leave out the first; take one of them out",
			one.section, quoteShort(one.again.Value), one.first.Line)
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
	rule := &parameter.rule
	rule.Type = kind.Value
	if !slices.Contains(hot.Types(), rule.Type) {
		return at(kind, "parameter %s: Unsupported parameter type %s", quoteShort(name.Value), short(rule.Type))
	}
	if label := entry(node, "label"); label != nil {
		parameter.label = label.Value
	}
	if description := entry(node, "description"); description != nil {
		parameter.description = description.Value
	}
	if hidden := entry(node, "hidden"); hidden != nil {
		var is bool
		if rule.Hidden, is = hot.Boolean(hidden.Value); !is {
			return at(hidden, "hidden of parameter %s should be true or false", quoteShort(name.Value))
		}
	}
	if initial := entry(node, "default"); initial != nil { // null is none, for Heat
		var err error
		if parameter.initial, err = muranopl.YAMLValue(templateFile, initial); err != nil {
			return at(initial, "the default of parameter %s: %v", quoteShort(name.Value), err)
		}
		rule.Optional = true
	}
	return parameter.readConstraints(entry(node, "constraints"), t)
}

func (p hotParameter) readConstraints(node *yaml.Node, of *hotTemplate) error {
	if node != nil {
		value, err := muranopl.YAMLValue(templateFile, node)
		list, isList := value.([]any)
		if err == nil && !isList {
			err = fmt.Errorf("found %s", short(hot.Text(value)))
		}
		for _, one := range list {
			constraint, isMap := one.(map[string]any)
			if !isMap {
				err = fmt.Errorf("found %s among them", short(hot.Text(one)))
				break
			}
			p.rule.Constraints = append(p.rule.Constraints, constraint)
		}
		if err != nil {
			return at(node, "the constraints of parameter %s should be a list of maps: %v", quoteShort(p.name), err)
		}
		if err := p.rule.Check(); err != nil {
			return at(node, "the constraints of parameter %s: %v", quoteShort(p.name), err)
		}
	}
	of.parameters = append(of.parameters, p)
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

// rules returns the rules of the parameters, by name.
func (t *hotTemplate) rules() map[string]hot.Rule {
	rules := make(map[string]hot.Rule, len(t.parameters))
	for _, parameter := range t.parameters {
		rules[parameter.name] = parameter.rule
	}
	return rules
}
