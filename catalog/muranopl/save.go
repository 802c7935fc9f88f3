package muranopl

import (
	"slices"
	"strings"
)

// Save makes the model of objects again: the input of Load, with the values that methods wrote, defaults, and in each header the public methods as
// "_actions". An object is a map in the first property of its owner that holds it, or, when its owner does not hold it, at the first reference to it;
// everywhere else it is its id.
func Save(root *Object) map[string]any {
	if root == nil {
		return nil
	}
	return (&saver{described: true, actions: true}).save(root).(map[string]any)
}

// SaveCopy is Save for the ObjectsCopy of a model, from which a later run finds the objects to destroy: without actions and without the headers' keys
// beside Murano's own.
func SaveCopy(root *Object) map[string]any {
	if root == nil {
		return nil
	}
	return (&saver{}).save(root).(map[string]any)
}

// SaveResult writes a value, such as the result of an action, with its objects: objects without an owner, and the objects that they own, as maps, others
// as their ids. A value that is an object is always written as a map.
func SaveResult(value any) any {
	return (&saver{described: true, references: true}).save(plainValue(value))
}

// SaveReferences writes a value with the ids of the objects in it, such as the value of an attribute.
func SaveReferences(value any) any {
	switch v := plainValue(value).(type) {
	case *Object:
		return v.id
	case []any:
		list := make([]any, len(v))
		for n, item := range v {
			list[n] = SaveReferences(item)
		}
		return list
	case map[string]any:
		dict := make(map[string]any, len(v))
		for key, item := range v {
			dict[key] = SaveReferences(item)
		}
		return dict
	default:
		return v
	}
}

// ObjectIDs are the ids of all objects in a model, or in a part of one.
func ObjectIDs(model any) map[string]bool {
	ids := map[string]bool{}
	var collect func(value any)
	collect = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if header, ok := v["?"].(map[string]any); ok {
				if id, ok := header["id"].(string); ok {
					ids[id] = true
				}
			}
			for _, item := range v {
				collect(item)
			}
		case []any:
			for _, item := range v {
				collect(item)
			}
		}
	}
	collect(model)
	return ids
}

// saver writes objects as Murano does: owned objects at their first occurrence, and the remaining references after that.
type saver struct {
	described  bool   // headers keep the keys that begin with "_"
	actions    bool   // headers list the public methods
	references bool   // owned objects may stay ids although they are written nowhere
	kind       string // of dump(); "" elsewhere
	cast       view   // the object that dump() writes as one of another class

	written map[*Object]bool
	again   bool // the last pass met references that the next may put a map in place of
}

// reference is an object that may have to be written elsewhere.
type reference struct{ object *Object }

// placed is an object that is written at its place.
type placed struct {
	object *Object
	names  []string // of its properties, in their order
	model  map[string]any
}

func (s *saver) save(value any) any {
	s.written = map[*Object]bool{}
	var owner *Object
	if o, ok := value.(*Object); ok && o != nil {
		owner = o.Owner()
	}
	for s.again = true; s.again; {
		s.again = false
		value = s.value(value, owner)
	}
	return s.finished(value)
}

// value writes the value of a property of an object.
func (s *saver) value(value any, in *Object) any {
	switch v := value.(type) {
	case *Object:
		switch {
		case v == nil:
			return nil
		case v.Owner() != in || s.written[v]:
			s.again = true
			return reference{v}
		}
		return s.object(v)
	case reference:
		if s.written[v.object] || !s.placeable(v.object, in) {
			return v
		}
		return s.object(v.object)
	case *placed:
		for _, name := range v.names {
			v.model[name] = s.value(v.model[name], v.object)
		}
		return v
	case TypeReference:
		return v.Class.Type()
	case []any:
		list := make([]any, len(v))
		for n, item := range v {
			list[n] = s.value(item, in)
		}
		return list
	case map[string]any:
		dict := make(map[string]any, len(v))
		keys := sortedKeys(v)
		if len(keys) > 1 && keys[0] == "" { // a named value is written under its name: "" is the default among the others
			keys = append(keys[1:], "")
		}
		for _, key := range keys {
			dict[key] = s.value(v[key], in)
		}
		return dict
	}
	return value
}

// placeable reports whether a reference in an object may become a map.
func (s *saver) placeable(object, in *Object) bool {
	owner := object.Owner()
	if !s.references || owner == nil {
		return true
	}
	for ; in != nil && in != owner; in = in.Owner() {
	}
	return in == owner && s.written[owner]
}

// object writes an object at its place.
func (s *saver) object(o *Object) *placed {
	s.written[o] = true
	class := s.classOf(o)
	made := &placed{object: o, model: map[string]any{"?": s.header(o)}}
	for _, name := range class.PropertyNames() {
		p := class.Property(name)[0]
		if !p.Usage.kept() {
			continue
		}
		value, ok := o.Get(name)
		if !ok {
			continue
		}
		if held, is := value.(*Object); is && held != nil && s.references && serializedAsReference(p) {
			value = held.id
		}
		made.names = append(made.names, name)
		made.model[name] = s.value(value, o)
	}
	return made
}

func (s *saver) classOf(o *Object) *Class {
	if s.cast.object == o {
		return s.cast.class
	}
	return o.class
}

// serializedAsReference reports whether the metadata io.murano.metadata.engine.Serialize makes a property an id in results.
func serializedAsReference(p *Property) bool {
	return slices.ContainsFunc(p.Meta, func(meta Meta) bool {
		return meta.Class == "io.murano.metadata.engine.Serialize" && meta.Properties["as"] == "reference"
	})
}

// header writes the '?'.
func (s *saver) header(o *Object) map[string]any {
	given := o.Header()
	header := map[string]any{"type": s.classOf(o).Type(), "id": o.id, "name": nil, "metadata": given["metadata"]}
	if name := o.Name(); name != "" {
		header["name"] = name
	}
	if told := savedDependencies(o); len(told) > 0 && !s.references {
		header["dependencies"] = map[string]any{"onDestruction": told}
	}
	if o.Destroyed() {
		header["destroyed"] = true
	}
	for key, value := range given {
		if s.described && strings.HasPrefix(key, "_") {
			header[key] = value
		}
	}
	if s.actions {
		actions := map[string]any{}
		for _, m := range o.class.PublicMethods() {
			actions[o.id+"_"+m.Name] = action(m)
		}
		header["_actions"] = actions
	}
	return header
}

// savedDependencies returns the subscriptions to an object's destruction whose subscribers are saved, too.
func savedDependencies(o *Object) []any {
	var told []any
	for _, d := range o.subscriptions() {
		if d.subscriber.Destroyed() || o.interpreter != nil && o.interpreter.heap.isDoomed(d.subscriber) {
			continue
		}
		handler := any(nil)
		if d.handler != "" {
			handler = d.handler
		}
		told = append(told, map[string]any{"subscriber": d.subscriber.id, "handler": handler})
	}
	return told
}

// action describes a public method for its callers.
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
		case metaDeprecated:
			described["deprecated"] = text
		}
	}
	return described
}

// finished replaces the remaining references by ids, and placeholders by maps.
func (s *saver) finished(value any) any {
	switch v := value.(type) {
	case reference:
		return v.object.id
	case *placed:
		for _, name := range v.names {
			v.model[name] = s.finished(v.model[name])
		}
		if s.kind == dumpInline || s.kind == dumpMixed {
			return v.dumped(s.kind, s.classOf(v.object))
		}
		return v.model
	case []any:
		for n := range v {
			v[n] = s.finished(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = s.finished(v[key])
		}
	}
	return value
}
