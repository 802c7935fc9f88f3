package openstack

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Servers may also be made by stacks in a stack: by groups, and by resources whose type is a file. What a definition gives those servers is
// compared by the same rules.

// deepest is how far templates are followed into each other; Heat's own limit is 5 (max_nested_stack_depth).
const deepest = 5

// groups names by type of group the property that says what it makes.
var groups = map[string]string{"OS::Heat::ResourceGroup": "resource_def", "OS::Heat::AutoScalingGroup": "resource"}

// inside is what a resource makes in a stack of its own; false when it makes none, or none that is known.
func (d definition) inside(resource string) (definition, bool) {
	kind := text(d.resource(resource)["type"])
	if made, ok := d.value(resource, groups[kind]).(map[string]any); ok {
		return definition{template: map[string]any{"resources": map[string]any{"members": made}}, files: d.files}, true
	}
	content, there := d.files[kind]
	if !there {
		return definition{}, false
	}
	within := definition{parameters: map[string]string{}, files: d.files}
	if yaml.Unmarshal([]byte(content), &within.template) != nil {
		return definition{}, false
	}
	for name := range d.properties(resource) {
		within.parameters[name] = text(d.value(resource, name))
	}
	return within, true
}

// changesInside lists the changes of servers that a resource makes in a stack of its own, which cannot be done in place.
func (d definition) changesInside(next definition, resource string, depth int) (changes []*ServerChange) {
	was, before := d.inside(resource)
	is, after := next.inside(resource)
	if !before || !after || depth == deepest {
		return nil
	}
	resources, _ := was.template["resources"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		if is.resource(name) == nil {
			continue // what is not wanted any more goes
		}
		if text(was.resource(name)["type"]) != serverType {
			changes = append(changes, was.changesInside(is, name, depth+1)...)
			continue
		}
		for _, property := range was.differences(is, name, false) {
			changes = append(changes, &ServerChange{Server: name, Property: property, From: was.shown(name, property, foundServer{}), To: is.shown(name, property, foundServer{})})
		}
	}
	return changes
}
