package openstack

import (
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/internal/door"
)

// Servers may also be made by stacks in a stack: by groups, and by resources whose type is a file. The properties of these servers are compared by the
// same rules.

// deepest is how far templates are followed into each other; Heat's own limit is 5 (max_nested_stack_depth).
const deepest = 5

// groups names by type of group the property with its members' definition.
var groups = map[string]string{"OS::Heat::ResourceGroup": "resource_def", "OS::Heat::AutoScalingGroup": "resource"}

// kind is the type of a resource, or its mapping in the environment: another type, or a file
// (https://docs.openstack.org/heat/zed/template_guide/environment.html).
func (d definition) kind(resource string) string {
	kind := text(d.resource(resource)["type"])
	for range deepest {
		next := d.mapped(resource, kind)
		if next == "" || next == kind {
			break
		}
		kind = next
	}
	return kind
}

// mapped is the mapping of a type: in one resource, or in all; a mapping may end in *.
func (d definition) mapped(resource, kind string) string {
	byResource, _ := d.registry["resources"].(map[string]any)
	own, _ := byResource[resource].(map[string]any)
	for _, mappings := range []map[string]any{own, d.registry} {
		if target, ok := mappings[kind].(string); ok {
			return target
		}
		for _, pattern := range slices.Sorted(maps.Keys(mappings)) {
			beginning, wild := strings.CutSuffix(pattern, "*")
			target, ok := mappings[pattern].(string)
			if rest, matches := strings.CutPrefix(kind, beginning); wild && ok && matches {
				return strings.TrimSuffix(target, "*") + rest
			}
		}
	}
	return ""
}

// extended is true if there may be types that are not Heat's own.
func (d definition) extended() bool {
	resources, _ := d.template["resources"].(map[string]any)
	return len(d.files) > 0 || len(d.registry) > 0 || slices.ContainsFunc(slices.Collect(maps.Keys(resources)), func(name string) bool {
		_, known := effects[text(d.resource(name)["type"])]
		return !known
	})
}

// inside is the definition of a resource's own stack; false when it makes none, or none that is known.
func (d definition) inside(resource string) (definition, bool) {
	kind := d.kind(resource)
	if made, ok := d.value(resource, groups[kind]).(map[string]any); ok {
		return definition{template: map[string]any{"resources": map[string]any{"members": made}}, files: d.files, registry: d.registry}, true
	}
	content, there := d.files[kind]
	if !there {
		return definition{}, false
	}
	within := definition{parameters: map[string]string{}, files: d.files, registry: d.registry}
	if door.YAML([]byte(content), &within.template, door.Bounds{}) != nil {
		return definition{}, false
	}
	for name := range d.properties(resource) {
		within.parameters[name] = text(d.value(resource, name))
	}
	return within, true
}

// changesInside lists the costly changes of servers in a resource's own stack, and the properties of such servers whose former values Heat does not
// return. When the resource gets another type, that stack goes as a whole.
func (d definition) changesInside(next definition, resource string, depth int) (changes []*ServerChange, concealed []string) {
	was, before := d.inside(resource)
	if !before || depth > deepest {
		return nil, nil
	}
	is, after := next.inside(resource)
	otherType := !after || text(d.resource(resource)["type"]) != text(next.resource(resource)["type"])
	if otherType {
		is = definition{}
	}
	resources, _ := was.template["resources"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		switch {
		case was.kind(name) != serverType:
			further, more := was.changesInside(is, name, depth+1)
			changes, concealed = append(changes, further...), append(concealed, more...)
		case otherType:
			changes = append(changes, &ServerChange{Server: name, Property: "type", From: text(d.resource(resource)["type"]), To: text(next.resource(resource)["type"])})
		case is.resource(name) == nil:
			// unwanted resources go
		default:
			differing, more := was.differences(is, name, false)
			for _, property := range was.spelledOtherwise(is, name) { // the values inside cannot be preserved
				_, had := was.properties(name)[property]
				if _, has := is.properties(name)[property]; had != has && !slices.Contains(differing, property) {
					differing = append(differing, property)
				}
			}
			for _, property := range differing {
				changes = append(changes, &ServerChange{Server: name, Property: property, From: was.shown(name, property, foundServer{}), To: is.shown(name, property, foundServer{})})
			}
			concealed = append(concealed, more...)
		}
	}
	return changes, concealed
}
