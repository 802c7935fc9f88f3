package orchestrator

import (
	"strconv"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// Paths walk an object model: an object by its keys, a list by the ids of its elements (?/id) or by their indexes.

// lookUp returns the value at path below value.
func lookUp(value any, path []string) (any, bool) {
	for _, name := range path {
		switch v := value.(type) {
		case map[string]any:
			element, ok := v[name]
			if !ok {
				return nil, false
			}
			value = element
		case []any:
			i := indexOf(v, name)
			if i < 0 {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// namesNoElement is true if a path ends early at a list that has no element of the name; Murano then returns nothing, and "not found" in all other cases.
func namesNoElement(value any, path []string) bool {
	for i, name := range path {
		if list, ok := value.([]any); ok && indexOf(list, name) < 0 {
			_, isNumber := number(name)
			return !isNumber && i == len(path)-1
		}
		var found bool
		if value, found = lookUp(value, path[i:i+1]); !found {
			return false
		}
	}
	return false
}

// indexOf returns the place of the element with that id, or of that number, or -1.
func indexOf(list []any, name string) int {
	for i, element := range list {
		if name != "" && idOf(element) == name {
			return i
		}
	}
	if i, ok := number(name); ok && i < len(list) {
		return i
	}
	return -1
}

// number reads an index: digits only.
func number(name string) (int, bool) {
	for _, r := range name {
		if r < '0' || r > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(name)
	return i, err == nil
}

// replaceAt puts replacement where path leads. Murano replaces an element of a list by its index only, never by its id, and
// answers Invalid otherwise; a key of an object may be new.
func replaceAt(objects map[string]any, path []string, replacement any) error {
	parent, found := lookUp(objects, path[:len(path)-1])
	last := path[len(path)-1]
	if found {
		switch p := parent.(type) {
		case map[string]any:
			p[last] = replacement
			return nil
		case []any:
			if i, ok := number(last); ok && i < len(p) {
				p[i] = replacement
				return nil
			}
			return fault.New(fault.Invalid, "An element of a list is replaced by its index (0 to %d), not by %q", len(p)-1, last)
		}
	}
	if !found {
		return fault.New(fault.NotFound, "The resource could not be found: there is nothing at %q whose %q could be replaced", join(path[:len(path)-1]), last)
	}
	return fault.New(fault.Invalid, "What is at %q has no %q that could be replaced", join(path[:len(path)-1]), last)
}

// removeAt removes the value at path.
func removeAt(objects map[string]any, path []string) error {
	parent, found := lookUp(objects, path[:len(path)-1])
	last := path[len(path)-1]
	if found {
		switch p := parent.(type) {
		case map[string]any:
			if _, ok := p[last]; ok {
				delete(p, last)
				return nil
			}
		case []any:
			if i := indexOf(p, last); i >= 0 {
				return replaceAt(objects, path[:len(path)-1], append(p[:i:i], p[i+1:]...))
			}
		}
	}
	return fault.New(fault.NotFound, "The resource could not be found: there is nothing at %q", join(path))
}

func join(path []string) string {
	text := ""
	for _, name := range path {
		text += "/" + name
	}
	return text
}

// idOf returns an object's ?/id, or "".
func idOf(value any) string {
	object, _ := value.(map[string]any)
	header, _ := object["?"].(map[string]any)
	id, _ := header["id"].(string)
	return id
}

// objectIDs returns the ids of value and of all objects nested in it, value's own first.
func objectIDs(value any) (ids []string) {
	store.EachObject(value, func(id string, _ map[string]any) {
		if id != "" {
			ids = append(ids, id)
		}
	})
	return ids
}
