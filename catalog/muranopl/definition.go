package muranopl

import (
	"strings"

	"github.com/burano/burano/catalog/yaql"
)

// definition is the description of an object in a map.
type definition struct {
	typeName
	id, name   string
	header     map[string]any // as written
	properties map[string]any
}

// parseDefinition reads the forms in which models write objects:
//
//	{"?": {"type": "a.B", "id": "1", …}, property: value, …}
//	{"a.B/1.0@pkg": {property: value, …}, "id": "1", "name": "x"}
//
// A map of neither form has properties only, of an object of class otherwise; then, and when it names no class, it returns false.
func parseDefinition(model map[string]any, otherwise string) (definition, bool) {
	switch header := model["?"].(type) {
	case map[string]any:
		d := definition{header: header, properties: without(model, "?")}
		text, has := header["type"].(string)
		if !has || text == "" {
			text, has = otherwise, false
			for _, key := range sortedKeys(header) {
				// The compact form inside of the header: {"?": {"a.B": null, "id": "1"}}.
				if strings.ContainsAny(key, "./@") && !strings.HasPrefix(key, "_") {
					text, has = key, true
				}
			}
		}
		d.typeName = parseTypeName(text)
		if version := header["classVersion"]; version != nil && d.version == "" {
			d.version = textOf(version)
		}
		if pkg, ok := header["package"].(string); ok && d.pkg == "" {
			d.pkg = pkg
		}
		d.id, d.name = textOf(header["id"]), textOf(header["name"])
		return d, has
	case string:
		return definition{typeName: parseTypeName(header), header: map[string]any{"type": header}, properties: without(model, "?")}, true
	}
	if _, has := model["?"]; !has {
		if key, ok := inlineType(model); ok {
			properties, _ := model[key].(map[string]any)
			d := definition{typeName: parseTypeName(key), header: without(model, key), properties: properties}
			d.id, d.name = textOf(model["id"]), textOf(model["name"])
			return d, true
		}
	}
	return definition{typeName: typeName{class: otherwise}, header: map[string]any{}, properties: without(model, "?")}, false
}

// modelOf makes a model from the form that code writes: classes may be references in it, and keys may be names with a prefix of the document's namespaces.
func (c *Class) modelOf(value any) any {
	if list, ok := value.([]any); ok {
		made := make([]any, len(list))
		for n, item := range list {
			made[n] = c.modelOf(item)
		}
		return made
	}
	if reference, ok := value.(TypeReference); ok {
		return reference.Class.Type()
	}
	dict, ok := value.(*yaql.Dict)
	if !ok {
		return plainValue(value)
	}
	entries := dict.Entries()
	for n, e := range entries {
		entries[n].Value = c.modelOf(e.Value)
		switch key := e.Key.(type) {
		case TypeReference:
			entries[n].Key = key.Class.Type()
		case string:
			_, holds := asDict(e.Value)
			if full, err := c.namespaces.resolve(key); err == nil && strings.Contains(key, ":") && (holds || e.Value == nil) {
				entries[n].Key = full
			}
		}
	}
	return plainValue(yaql.NewDict(entries...))
}

// inlineType finds the one key that names a class; beside it only keys of a header are allowed.
func inlineType(model map[string]any) (string, bool) {
	found := ""
	for key, value := range model {
		_, isMap := value.(map[string]any)
		switch {
		case strings.ContainsAny(key, "./@") && (isMap || value == nil) && found == "":
			found = key
		case key == "id" || key == "name" || key == "metadata" || strings.HasPrefix(key, "_"):
		default:
			return "", false
		}
	}
	return found, found != ""
}

func without(m map[string]any, key string) map[string]any {
	rest := make(map[string]any, len(m))
	for k, value := range m {
		if k != key {
			rest[k] = value
		}
	}
	return rest
}

// textOf returns a text or a number in the place of a text, else "".
func textOf(value any) string {
	switch value.(type) {
	case string, int64, float64:
		return yaql.Text(value)
	}
	return ""
}
