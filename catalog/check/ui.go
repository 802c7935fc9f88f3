package check

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
)

// uiVersions are the versions of dynamic UI definitions; one without a version is of the last.
var uiVersions = []string{"2", "2.0", "2.1", "2.2", "2.3", "2.4"}

// fieldTypes are the types of form fields besides names of classes (murano-dashboard, dynamic_ui/fields.py).
var fieldTypes = []string{"string", "text", "boolean", "integer", "password", "choice", "clusterip", "databaselist", "image", "flavor", "keypair",
	"azone", "network", "securitygroup", "volume", "zone", "domain", "floatingip"}

// uiFile checks the dynamic UI definition.
func (c *checker) uiFile() {
	text := c.pkg.UI()
	if text == nil || c.pkg.HOT() {
		return
	}
	u := &uiChecker{checker: c, file: c.pkg.UIFile()}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		line := 1
		if said := yamlLine.FindStringSubmatch(err.Error()); said != nil {
			_, _ = fmt.Sscan(said[1], &line)
		}
		c.findings = append(c.findings, Finding{UI, u.file, line, 1, "this is no YAML: " + err.Error(), false})
		return
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		c.findings = append(c.findings, Finding{UI, u.file, 1, 1, "a UI definition is a map with Version, Application and Forms", false})
		return
	}
	u.definition(document.Content[0])
}

type uiChecker struct {
	*checker
	file  string
	nodes int
}

func (u *uiChecker) say(node *yaml.Node, format string, args ...any) {
	u.find(UI, u.file, node, format, args...)
}

func (u *uiChecker) definition(root *yaml.Node) {
	known := []string{"Version", "Application", "Templates", "Parameters", "ParametersSource", "Forms"}
	keys := map[string]*yaml.Node{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key := root.Content[i]
		if !slices.Contains(known, key.Value) {
			u.say(key, "there is no key %s; known are %s", key.Value, strings.Join(known, ", "))
		}
		keys[key.Value] = followed(root.Content[i+1])
	}
	if version := keys["Version"]; version != nil && !slices.Contains(uiVersions, version.Value) {
		u.say(version, "the version is %s; known are 2.0 to 2.4", version.Value)
	}
	switch application := keys["Application"]; {
	case application == nil:
		u.say(root, "there is no Application: it is the object model that the forms fill in")
	case application.Kind != yaml.MappingNode && application.Tag != "!yaql":
		u.say(application, "Application should be a map with '?' and the properties, or an expression")
	}
	for _, name := range []string{"Application", "Templates", "Parameters"} {
		if keys[name] != nil {
			u.expressions(keys[name])
		}
	}
	if forms := keys["Forms"]; forms != nil {
		u.forms(forms)
	}
}

func (u *uiChecker) forms(forms *yaml.Node) {
	if forms.Kind != yaml.SequenceNode {
		u.say(forms, "Forms should be a list of forms, each a map of its name")
		return
	}
	seen := map[string]bool{}
	for _, form := range forms.Content {
		form = followed(form)
		if form.Kind != yaml.MappingNode || len(form.Content) != 2 {
			u.say(form, "a form should be a map of one key, its name")
			continue
		}
		name, body := form.Content[0], followed(form.Content[1])
		if seen[name.Value] {
			u.say(name, "there is another form %s", name.Value)
		}
		seen[name.Value] = true
		if body.Kind != yaml.MappingNode {
			u.say(body, "form %s should be a map with fields", name.Value)
			continue
		}
		each(body, func(key string, value *yaml.Node) {
			switch value = followed(value); key {
			case "fields":
				u.fields(value)
			case "validators":
				u.validators(value)
			}
		})
	}
}

func (u *uiChecker) fields(fields *yaml.Node) {
	if fields.Kind != yaml.SequenceNode {
		u.say(fields, "fields should be a list")
		return
	}
	seen := map[string]bool{}
	for _, field := range fields.Content {
		if field = followed(field); field.Kind != yaml.MappingNode {
			u.say(field, "a field should be a map with name and type")
			continue
		}
		attributes := map[string]*yaml.Node{}
		each(field, func(key string, value *yaml.Node) { attributes[key] = followed(value) })
		switch name := attributes["name"]; {
		case name == nil || name.Value == "":
			u.say(field, "a field needs a name")
		case seen[name.Value]:
			u.say(name, "there is another field %s in this form", name.Value)
		default:
			seen[name.Value] = true
		}
		u.fieldType(field, attributes["type"])
		for _, key := range []string{"required", "hidden", "confirmInput"} {
			u.scalar(attributes[key], key, "!!bool", "true or false")
		}
		for _, key := range []string{"minLength", "maxLength", "minValue", "maxValue"} {
			u.scalar(attributes[key], key, "!!int", "a whole number")
		}
		if pattern := attributes["regexpValidator"]; pattern != nil && pattern.Kind != yaml.ScalarNode {
			u.say(pattern, "regexpValidator should be a regular expression")
		}
		if validators := attributes["validators"]; validators != nil {
			u.validators(validators)
		}
		if attributes["type"] != nil && attributes["type"].Value == "choice" && attributes["choices"] == nil {
			u.say(field, "a field of type choice needs choices")
		}
		u.expressions(field)
	}
}

func (u *uiChecker) fieldType(field, kind *yaml.Node) {
	switch {
	case kind == nil:
		u.say(field, "a field needs a type")
	case kind.Kind == yaml.SequenceNode:
		for _, one := range kind.Content {
			u.fieldType(field, followed(one))
		}
	case kind.Kind != yaml.ScalarNode || kind.Value == "":
		u.say(kind, "a type should be a name, or a list of names of classes")
	case !strings.Contains(kind.Value, ".") && !slices.Contains(fieldTypes, kind.Value):
		u.say(kind, "there is no type %s; there are %s, and full names of classes", kind.Value, strings.Join(fieldTypes, ", "))
	}
}

// scalar wants a value of a kind, or an expression.
func (u *uiChecker) scalar(node *yaml.Node, key, tag, wanted string) {
	if node == nil || node.Kind == yaml.ScalarNode && (node.Tag == tag || node.Tag == "!yaql" || strings.Contains(node.Value, "$")) {
		return
	}
	u.say(node, "%s should be %s", key, wanted)
}

func (u *uiChecker) validators(validators *yaml.Node) {
	if validators.Kind != yaml.SequenceNode {
		u.say(validators, "validators should be a list of maps with expr and message")
		return
	}
	for _, validator := range validators.Content {
		has := false
		each(validator, func(key string, _ *yaml.Node) { has = has || key == "expr" })
		if !has {
			u.say(validator, "a validator needs an expr")
		}
	}
}

// plainUI are texts that are never taken for expressions (murano-dashboard, dynamic_ui/yaql_expression.py).
var plainUI = regexp.MustCompile(`^[\s\pL\pN_.:]*$`)

// expressions looks at each scalar below the node: what is marked as an expression, or speaks of $, should be one.
func (u *uiChecker) expressions(node *yaml.Node) {
	if u.nodes++; u.nodes > maxNodes {
		return
	}
	node = followed(node)
	if node.Kind != yaml.ScalarNode {
		for _, child := range node.Content {
			u.expressions(child)
		}
		return
	}
	if plainUI.MatchString(node.Value) && node.Tag != "!yaql" {
		return
	}
	if _, err := yaql.Parse(node.Value); err != nil {
		switch {
		case node.Tag == "!yaql":
			u.say(node, "this is no expression: %v", err)
		case node.Style == 0 && variable.MatchString(node.Value):
			u.find(NoExpression, u.file, node, "this is no expression and so only a text: %v; put it in quotes when a text is meant", err)
		}
	}
}
