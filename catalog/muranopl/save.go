package muranopl

import (
	"maps"
)

// Save makes the model of objects again: what Load was given, with the values that methods wrote, defaults, and in each header the
// public methods as "_actions". An object stands as a map in the first property, of the one that owns it, that holds it, and as its
// id everywhere else.
func Save(root *Object) map[string]any {
	if root == nil {
		return nil
	}
	return saveObject(root, root.Owner(), map[*Object]bool{})
}

// saveObject writes an object where it stands. Objects that are written as maps are added to written.
func saveObject(o *Object, owner *Object, written map[*Object]bool) map[string]any {
	if written == nil {
		written = map[*Object]bool{}
	}
	written[o] = true
	model := map[string]any{"?": saveHeader(o)}
	for _, name := range o.class.PropertyNames() {
		p := o.class.Property(name)[0]
		if !p.Usage.kept() {
			continue
		}
		if value, ok := o.Get(name); ok {
			model[name] = saveValue(value, o, serializedAsCopy(p), written)
		}
	}
	return model
}

// serializedAsCopy tells that the metadata io.murano.metadata.engine.Serialize wants a property written in full, never as an id.
func serializedAsCopy(p *Property) bool {
	for _, meta := range p.Meta {
		if meta.Class == "io.murano.metadata.engine.Serialize" && meta.Properties["as"] == "copy" {
			return true
		}
	}
	return false
}

func saveValue(value any, in *Object, asCopy bool, written map[*Object]bool) any {
	switch v := value.(type) {
	case *Object:
		if v == nil {
			return nil
		}
		if (v.Owner() == in || asCopy) && !written[v] {
			return saveObject(v, in, written)
		}
		return v.id
	case []any:
		list := make([]any, len(v))
		for n, item := range v {
			list[n] = saveValue(item, in, asCopy, written)
		}
		return list
	case map[string]any:
		dict := make(map[string]any, len(v))
		for _, key := range sortedKeys(v) {
			dict[key] = saveValue(v[key], in, asCopy, written)
		}
		return dict
	}
	return value
}

// saveHeader writes the '?': what it held stays.
func saveHeader(o *Object) map[string]any {
	header := maps.Clone(o.Header())
	if header == nil {
		header = map[string]any{}
	}
	// The type names version and package by itself.
	delete(header, "classVersion")
	delete(header, "package")
	header["type"] = o.class.Type()
	header["id"] = o.id
	header["name"] = nil
	if name := o.Name(); name != "" {
		header["name"] = name
	}
	if _, has := header["metadata"]; !has {
		header["metadata"] = nil
	}
	actions := map[string]any{}
	for _, m := range o.class.PublicMethods() {
		actions[o.id+"_"+m.Name] = action(m)
	}
	delete(header, "_actions")
	if len(actions) > 0 {
		header["_actions"] = actions
	}
	return header
}

// action describes a public method for who may call it.
func action(m *Method) map[string]any {
	described := map[string]any{"name": m.Name, "title": m.Name, "enabled": true}
	for _, meta := range m.Meta {
		text := meta.Properties["text"]
		if text == nil {
			continue
		}
		switch meta.Class {
		case "io.murano.metadata.Title":
			described["title"] = text
		case "io.murano.metadata.Description":
			described["description"] = text
		case "io.murano.metadata.HelpText":
			described["helpText"] = text
		}
	}
	return described
}
