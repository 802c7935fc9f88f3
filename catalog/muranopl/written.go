package muranopl

import (
	"context"
	"strings"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
)

// Written reports a *door.Exceeded error when Save, SaveResult or SaveReferences would write more than limit bytes of a value, roughly. A text or a list
// in several places counts in each of them, because each of them is written; an object counts once. Its time is bounded by the limit, so call it before
// writing.
func Written(value any, limit int64, what string) error {
	w := &writing{left: limit, seen: map[*Object]bool{}}
	if w.value(value); w.left < 0 {
		return &door.Exceeded{What: what, Bound: door.Bytes(limit)}
	}
	return nil
}

// writing adds up the output of saver.
type writing struct {
	left int64
	seen map[*Object]bool
}

// idBytes is a reference to an object, in quotes.
const idBytes = 40

func (w *writing) value(value any) {
	if w.left -= slotBytes; w.left < 0 {
		return
	}
	switch v := value.(type) {
	case string:
		w.left -= int64(len(v))
	case []any:
		for _, item := range v {
			if w.value(item); w.left < 0 {
				return
			}
		}
	case map[string]any:
		for key, item := range v {
			w.left -= int64(len(key))
			if w.value(item); w.left < 0 {
				return
			}
		}
	case *yaql.Dict:
		for key, item := range v.All() {
			w.value(key)
			if w.value(item); w.left < 0 {
				return
			}
		}
	case *yaql.Set:
		for item := range v.All() {
			if w.value(item); w.left < 0 {
				return
			}
		}
	case view:
		w.object(v.object)
	case *Object:
		w.object(v)
	}
}

func (w *writing) object(o *Object) {
	if w.left -= idBytes; o == nil || w.seen[o] {
		return
	}
	w.seen[o] = true
	for key, value := range o.Header() {
		if key == "metadata" || strings.HasPrefix(key, "_") {
			w.value(value)
		}
	}
	for _, method := range o.class.PublicMethods() {
		w.value(o.id + method.Name)
		for _, meta := range method.Meta {
			w.value(meta.Properties["text"])
		}
	}
	for _, name := range o.class.PropertyNames() {
		if w.left < 0 {
			return
		}
		if value, ok := o.get(context.Background(), name); ok && o.class.Property(name)[0].Usage.kept() {
			w.left -= int64(len(name))
			w.value(value)
		}
	}
}
