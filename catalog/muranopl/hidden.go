package muranopl

import (
	"context"
	"maps"
	"slices"
)

// parametersProperty is the property of classes of Heat templates that has the parameters.
const parametersProperty = "templateParameters"

// Hidden returns a value of a model in which hide has replaced each value that the class of its object makes a secret: parameters that a Heat template
// hides. Changed parts are copied; without such values the value is returned as it is. Of an object whose class cannot be read, all parameters are hidden.
func (c *Classes) Hidden(ctx context.Context, value any, hide func(value any) any) any {
	shown, _ := c.hidden(ctx, value, hide)
	return shown
}

// MayHide reports whether a model has parameters that Hidden would look at.
func MayHide(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key == parametersProperty && inner != nil || key != "?" && MayHide(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, MayHide)
	}
	return false
}

func (c *Classes) hidden(ctx context.Context, value any, hide func(any) any) (shown any, changed bool) {
	switch v := value.(type) {
	case map[string]any:
		var copied map[string]any
		put := func(key string, value any) {
			if copied == nil {
				copied = maps.Clone(v)
			}
			copied[key] = value
		}
		for key, inner := range v {
			if key == "?" {
				continue
			}
			if parameters, is := inner.(map[string]any); is && key == parametersProperty {
				if inner, changed = c.withoutHidden(ctx, v, parameters, hide); changed {
					put(key, inner)
				}
			} else if inner, changed = c.hidden(ctx, inner, hide); changed {
				put(key, inner)
			}
		}
		if copied != nil {
			return copied, true
		}
	case []any:
		var copied []any
		for i, item := range v {
			if item, changed = c.hidden(ctx, item, hide); changed {
				if copied == nil {
					copied = append([]any{}, v...)
				}
				copied[i] = item
			}
		}
		if copied != nil {
			return copied, true
		}
	}
	return value, false
}

// withoutHidden is Hidden for the parameters of an object.
func (c *Classes) withoutHidden(ctx context.Context, object, parameters map[string]any, hide func(any) any) (shown map[string]any, changed bool) {
	isHidden := func(string) bool { return true }
	if d, is := parseDefinition(object, ""); !is {
		return parameters, false
	} else if class, err := c.named(ctx, d.typeName); err == nil {
		isHidden = class.hides
	}
	for name, value := range parameters {
		if !isHidden(name) {
			continue
		}
		if !changed {
			shown, changed = maps.Clone(parameters), true
		}
		shown[name] = hide(value)
	}
	return shown, changed
}

// hides reports whether the Heat template of the class, or of an ancestor, hides a parameter.
func (c *Class) hides(parameter string) bool {
	for _, ancestor := range c.lineage {
		if pkg, is := ancestor.Package.(interface{ HidesParameter(name string) bool }); is && pkg.HidesParameter(parameter) {
			return true
		}
	}
	return false
}
