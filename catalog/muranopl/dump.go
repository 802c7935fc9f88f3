package muranopl

import "github.com/burano/burano/catalog/yaql"

// dump is the function dump(): objects as models, each in full where it is met first and as its id after that.
func dump(value any, kind string, ignoreUpcasts bool) (any, error) {
	if kind != "Serializable" && kind != "Inline" && kind != "Mixed" {
		return nil, raised("ValueError", "the serialization type is Serializable, Inline or Mixed, not %q", kind)
	}
	d := &dumper{kind: kind, ignoreUpcasts: ignoreUpcasts, written: map[*Object]bool{}}
	return d.value(value), nil
}

type dumper struct {
	kind          string
	ignoreUpcasts bool
	written       map[*Object]bool
}

func (d *dumper) value(value any) any {
	switch v := value.(type) {
	case *Object:
		return d.object(v, v.class)
	case view:
		if d.ignoreUpcasts {
			return d.object(v.object, v.object.class)
		}
		return d.object(v.object, v.class)
	case []any:
		list := make([]any, len(v))
		for n, item := range v {
			list[n] = d.value(item)
		}
		return list
	}
	dict, ok := asDict(value)
	if !ok {
		return value
	}
	entries := dict.Entries()
	for n := range entries {
		entries[n].Value = d.value(entries[n].Value)
	}
	return yaql.NewDict(entries...)
}

func (d *dumper) object(o *Object, class *Class) any {
	if o == nil {
		return nil
	}
	if d.written[o] {
		return o.id
	}
	d.written[o] = true
	properties := map[string]any{}
	for _, name := range class.PropertyNames() {
		if !class.Property(name)[0].Usage.kept() {
			continue
		}
		if value, ok := o.Get(name); ok {
			properties[name] = d.value(value)
		}
	}
	header := o.Header()
	for _, key := range []string{"classVersion", "package", "type", "id", "name"} {
		delete(header, key)
	}
	if header == nil {
		header = map[string]any{}
	}
	header["id"] = o.id
	if name := o.Name(); name != "" {
		header["name"] = name
	} else {
		header["name"] = nil
	}
	switch d.kind {
	case "Inline":
		header[class.Type()] = properties
		return header
	case "Mixed":
		header["type"] = TypeReference{class}
	default:
		header["type"] = class.Type()
	}
	properties["?"] = header
	return properties
}
