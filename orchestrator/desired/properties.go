package desired

import (
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
)

// properties reads an object of a loaded model (*muranopl.Object) or of a stored one (a map of JSON's values). A value of another type than the property's
// counts as missing, and is noted.
type properties struct {
	get   func(name string) any
	wrong *[]error
}

// propertiesOf returns false for a value that is no object.
func propertiesOf(object any, wrong *[]error) (properties, bool) {
	switch object := object.(type) {
	case *muranopl.Object:
		return properties{func(name string) any { value, _ := object.Get(name); return value }, wrong}, object != nil
	case map[string]any:
		return properties{func(name string) any { return object[name] }, wrong}, true
	}
	return properties{func(string) any { return nil }, wrong}, false
}

// as returns a property's value and true; false where it has none of this type.
func as[T any](p properties, name string) (value T, given bool) {
	any := p.get(name)
	if any == nil {
		return value, false
	}
	value, given = any.(T)
	if !given {
		*p.wrong = append(*p.wrong, fmt.Errorf("%s is %v (%T), which is none of its values", name, any, any))
	}
	return value, given
}

func (p properties) text(name string) string {
	value, _ := as[string](p, name)
	return value
}

func (p properties) flag(name string, otherwise bool) bool {
	if value, given := as[bool](p, name); given {
		return value
	}
	return otherwise
}

// choice is nil where the model leaves the choice.
func (p properties) choice(name string) *bool {
	if value, given := as[bool](p, name); given {
		return &value
	}
	return nil
}

func (p properties) number(name string, otherwise int) int {
	if value := p.optional(name); value != nil {
		return *value
	}
	return otherwise
}

// optional is nil for null.
func (p properties) optional(name string) *int {
	var number int
	switch value := p.get(name).(type) {
	case nil:
		return nil
	case int64:
		number = int(value)
	case float64:
		number = int(value)
	default:
		*p.wrong = append(*p.wrong, fmt.Errorf("%s is %v (%T), which is no number", name, value, value))
		return nil
	}
	return &number
}

func (p properties) list(name string) []any {
	value, _ := as[[]any](p, name)
	return value
}

func (p properties) texts(name string) (texts []string) {
	for _, entry := range p.list(name) {
		if text, ok := entry.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// pairs is never nil.
func (p properties) pairs(name string) map[string]string {
	pairs := map[string]string{}
	given, _ := as[map[string]any](p, name)
	for key, value := range given {
		pairs[key], _ = value.(string)
	}
	return pairs
}

// object returns false where the property has no object.
func (p properties) object(name string) (properties, bool) { return propertiesOf(p.get(name), p.wrong) }

// objects are the objects, or the maps, of a list.
func (p properties) objects(name string) (list []properties) {
	for _, entry := range p.list(name) {
		if one, is := propertiesOf(entry, p.wrong); is {
			list = append(list, one)
		}
	}
	return list
}
