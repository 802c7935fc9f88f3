package heat

import (
	"context"
	"maps"
	"slices"

	"github.com/burano/burano/catalog/hot"
)

// previewUpdate returns the effect of an update on each resource, without applying it: as far as it can be known without the objects that the update
// makes.
func (s *Service) previewUpdate(ctx context.Context, stack Stack, r stackRequest, patch bool) (map[string]any, error) {
	target, template, err := r.over(stack.Target, patch)
	if err != nil {
		return nil, err
	}
	stack.Target = target
	if err := s.check(ctx, stack, template); err != nil {
		return nil, err
	}
	template, values, err := stack.decided(template)
	if err != nil {
		return nil, err
	}
	known := s.scope(ctx, func() Stack { return stack }, values, target.Files)
	guess := known
	guess.Reference = func(name string) (any, error) {
		value, _ := known.Reference(name) // nothing for a resource that does not exist yet
		return value, nil
	}
	guess.Attribute = func(name, attribute string) (any, error) {
		value, _ := known.Attribute(name, attribute)
		return value, nil
	}
	changes := map[string]any{}
	for _, effect := range []string{"unchanged", "updated", "replaced", "added", "deleted"} {
		changes[effect] = []any{}
	}
	note := func(effect, name, kind string) {
		changes[effect] = append(changes[effect].([]any), map[string]any{"resource_name": name, "resource_type": kind, "stack_name": stack.Name})
	}
	for _, name := range slices.Sorted(maps.Keys(template.Resources)) {
		effect, err := s.effectOf(stack.Resources[name], template.Resources[name], guess)
		if err != nil {
			return nil, err
		}
		note(effect, name, template.Resources[name].Type)
	}
	for _, name := range slices.Sorted(maps.Keys(stack.Resources)) {
		if _, stays := template.Resources[name]; !stays {
			note("deleted", name, stack.Resources[name].Type)
		}
	}
	return changes, nil
}

// effectOf is the effect on one resource; current is nil when it does not exist.
func (s *Service) effectOf(current *Resource, definition Definition, scope hot.Scope) (string, error) {
	if current == nil {
		return "added", nil
	}
	kind := s.types[definition.Type]
	resolved, err := resolve(definition.Properties, scope)
	if err != nil {
		return "", err
	}
	properties, err := kind.typed(resolved.(map[string]any))
	if err != nil {
		return "", err
	}
	differing := changed(current.Properties, properties)
	switch {
	case current.Type != definition.Type, current.Status == failed && (current.Action == actionCreate || current.Action == actionCheck):
		return "replaced", nil
	case len(differing) == 0:
		return "unchanged", nil
	case kind.inPlace(differing, properties):
		return "updated", nil
	}
	return "replaced", nil
}
