package muranopl

import "github.com/burano/burano/catalog/yaql"

// The forms in which dump() writes an object.
const (
	dumpSerializable = "Serializable" // as models have it
	dumpMixed        = "Mixed"        // with the class itself as the type
	dumpInline       = "Inline"       // {class: {properties}, id: …, name: …, metadata: …}
)

// maxDump is how many bytes dump() writes.
const maxDump = 16 << 20

// dump is the function dump(): objects as models. An object is a map in its owner where that is written as well, otherwise at its first occurrence, and
// its id everywhere else.
func dump(value any, kind string, ignoreUpcasts bool) (any, error) {
	if kind != dumpSerializable && kind != dumpInline && kind != dumpMixed {
		return nil, raised("ValueError", "Invalid Serialization Type: it is Serializable, Inline or Mixed, not %q", kind)
	}
	s := &saver{described: true, references: true, kind: kind}
	if v, ok := value.(view); ok && v.object != nil {
		if value = v.object; !ignoreUpcasts {
			s.cast = v
		}
	}
	if err := Written(value, maxDump, "what dump() writes"); err != nil {
		return nil, &yaql.Error{Name: yaql.TooMuchMemory, Message: err.Error(), Said: "Expression consumed too much memory"}
	}
	return s.save(plainValue(value)), nil
}

// dumped returns the result of dump() for a written object.
func (p *placed) dumped(kind string, class *Class) any {
	header := p.model["?"].(map[string]any)
	if kind == dumpMixed {
		header["type"] = TypeReference{class}
		return p.model
	}
	delete(p.model, "?")
	delete(header, "type")
	entries := []yaql.Entry{{Key: TypeReference{class}, Value: p.model}}
	for _, key := range sortedKeys(header) {
		entries = append(entries, yaql.Entry{Key: key, Value: header[key]})
	}
	return yaql.NewDict(entries...)
}
