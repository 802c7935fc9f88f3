package ui

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/catalog/yaql"
)

// headerOf is the header of an object; nil for another value.
func headerOf(value any) map[string]any {
	object, _ := value.(map[string]any)
	header, _ := object["?"].(map[string]any)
	return header
}

// idOf is the id of an object; "" for none.
func idOf(value any) string {
	id, _ := headerOf(value)["id"].(string)
	return id
}

// classOf is the class of an object, without version and package.
func classOf(value any) string {
	name, _ := headerOf(value)["type"].(string)
	name, _, _ = strings.Cut(name, "/")
	name, _, _ = strings.Cut(name, "@")
	return name
}

// aligning gives the objects of models that forms make the ids of the objects of another model in the same places. Objects that are not there get new ids,
// the same in each model.
type aligning struct {
	fresh map[string]string // by path
}

func (a aligning) model(made, present any) any {
	ids := map[string]string{}
	a.pair(made, present, "", ids)
	return renamed(made, ids)
}

func (a aligning) pair(made, present any, path string, ids map[string]string) {
	switch made := made.(type) {
	case map[string]any:
		held, _ := present.(map[string]any)
		if id := idOf(made); id != "" {
			other := idOf(held)
			if other == "" || classOf(held) != classOf(made) {
				if a.fresh[path] == "" {
					a.fresh[path] = uuid.NewString()
				}
				other = a.fresh[path]
			}
			ids[id] = other
		}
		for key, inner := range made {
			if key != "?" {
				a.pair(inner, held[key], path+"."+key, ids)
			}
		}
	case []any:
		held, _ := present.([]any)
		for i, inner := range made {
			var other any
			if i < len(held) {
				other = held[i]
			}
			a.pair(inner, other, path+"."+strconv.Itoa(i), ids)
		}
	}
}

// renamed is a copy of a model with other ids, also where they are references.
func renamed(value any, ids map[string]string) any {
	switch v := value.(type) {
	case string:
		if other, is := ids[v]; is {
			return other
		}
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, inner := range v {
			made[key] = renamed(inner, ids)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = renamed(inner, ids)
		}
		return made
	}
	return value
}

// differences are the paths of a model that forms make at which a present model has another value. Objects of the present model may have further
// properties.
func differences(made, present any) (paths [][]string) {
	compare(made, present, nil, func(path []string, _ any) { paths = append(paths, path) })
	return paths
}

// agrees reports whether there are no differences.
func agrees(made, present any) bool { return len(differences(made, present)) == 0 }

// compare visits the differences with the present values. A value with parts counts as often as it has parts.
func compare(made, present any, path []string, differs func(path []string, present any)) {
	if nothing(made) && nothing(present) {
		return
	}
	switch made := made.(type) {
	case map[string]any:
		held, is := present.(map[string]any)
		if !is || idOf(made) != "" && classOf(made) != classOf(held) {
			for range size(made) {
				differs(path, present)
			}
			return
		}
		keys := slices.Sorted(maps.Keys(made))
		if made["?"] == nil {
			for _, key := range slices.Sorted(maps.Keys(held)) {
				if _, has := made[key]; !has && !nothing(held[key]) {
					differs(below(path, key), held[key])
				}
			}
		}
		for _, key := range keys {
			if key != "?" {
				compare(made[key], held[key], below(path, key), differs)
			}
		}
	case []any:
		held, is := present.([]any)
		if !is && !nothing(present) {
			differs(path, present)
			return
		}
		for i := range max(len(made), len(held)) {
			switch at := below(path, strconv.Itoa(i)); {
			case i >= len(held):
				for range size(made[i]) {
					differs(path, present)
				}
			case i >= len(made):
				for range size(held[i]) {
					differs(path, present)
				}
			default:
				compare(made[i], held[i], at, differs)
			}
		}
	default:
		if id := idOf(present); id != "" {
			present = id
		}
		if !equal(made, present) {
			for range max(1, apart(made, present)) {
				differs(path, present)
			}
		}
	}
}

// apart counts the parts between commas in which two texts differ.
func apart(made, present any) (count int) {
	text, _ := made.(string)
	other, _ := present.(string)
	if !strings.Contains(text+other, ",") {
		return 1
	}
	one, two := strings.Split(text, ","), strings.Split(other, ",")
	for i := range max(len(one), len(two)) {
		if i >= len(one) || i >= len(two) || one[i] != two[i] {
			count++
		}
	}
	return count
}

// size is the number of values in a value.
func size(value any) int {
	count := 0
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if key != "?" {
				count += size(inner)
			}
		}
	case []any:
		for _, inner := range v {
			count += size(inner)
		}
	}
	return max(count, 1)
}

// equal compares values without parts. A text of a number is the number: contracts of classes convert.
func equal(a, b any) bool {
	if nothing(a) || nothing(b) {
		return nothing(a) && nothing(b)
	}
	switch a.(type) {
	case map[string]any, []any:
		return agrees(a, b)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	_, truth := a.(bool)
	_, other := b.(bool)
	if truth || other {
		return a == b
	}
	one, two := wordsOf(a), wordsOf(b)
	if one == two {
		return true
	}
	x, errX := strconv.ParseFloat(one, 64)
	y, errY := strconv.ParseFloat(two, 64)
	return errX == nil && errY == nil && x == y
}

// nothing reports whether a value is empty: models and classes write that in several ways.
func nothing(value any) bool {
	parts, is := value.(map[string]any)
	return empty(value) || is && len(parts) == 0
}

func wordsOf(value any) string {
	if number, is := value.(json.Number); is {
		return number.String()
	}
	return yaql.Text(value)
}
