package muranopl

import (
	"maps"
	"slices"
	"unsafe"

	"github.com/burano/burano/catalog/yaql"
)

// weigher adds up the bytes of everything that values lead to, each once.
type weigher struct {
	bytes  int64
	looked int64 // values that it has looked at
	seen   map[any]struct{}
	next   []*Object
}

func newWeigher() *weigher { return &weigher{seen: map[any]struct{}{}} }

// Sizes of values in memory, with the overhead of Go's maps and interfaces.
const (
	slotBytes  = 16 // an interface
	boxBytes   = 16 // its target: a number, the head of a text or of a list
	entryBytes = 112
	mapBytes   = 64
	// sharedText is from which length on it is looked whether a text was counted before.
	sharedText = 64
)

// first reports whether the pointer is new.
func (w *weigher) first(pointer any) bool {
	if _, known := w.seen[pointer]; known {
		return false
	}
	w.seen[pointer] = struct{}{}
	return true
}

func (w *weigher) value(value any) {
	w.looked++
	switch v := value.(type) {
	case nil, bool:
	case string:
		w.bytes += boxBytes
		if len(v) < sharedText || w.first(unsafe.StringData(v)) {
			w.bytes += int64(len(v))
		}
	case []any:
		if cap(v) == 0 || !w.first(unsafe.SliceData(v)) {
			return
		}
		w.bytes += boxBytes + slotBytes*int64(cap(v))
		for _, item := range v {
			w.value(item)
		}
	case map[string]any:
		w.bytes += mapBytes + entryBytes*int64(len(v))
		for key, item := range v {
			w.bytes += int64(len(key))
			w.value(item)
		}
	case *yaql.Dict:
		if !w.first(v) {
			return
		}
		w.bytes += mapBytes + entryBytes*int64(v.Len())
		for key, item := range v.All() {
			w.value(key)
			w.value(item)
		}
	case *yaql.Set:
		if !w.first(v) {
			return
		}
		w.bytes += mapBytes + entryBytes*int64(v.Len())
		for item := range v.All() {
			w.value(item)
		}
	case *Object:
		if v != nil && w.first(v) {
			w.next = append(w.next, v)
		}
	case view:
		w.value(v.object)
	default:
		w.bytes += boxBytes
	}
}

// objects goes on from the objects that were found.
func (w *weigher) objects() {
	for len(w.next) > 0 {
		o := w.next[len(w.next)-1]
		w.next = w.next[:len(w.next)-1]
		w.bytes += objectBytes
		o.mutex.RLock()
		owner, header := o.owner, o.header
		values := slices.Collect(maps.Values(o.values))
		for _, properties := range o.private {
			values = slices.AppendSeq(values, maps.Values(properties))
		}
		o.mutex.RUnlock()
		w.value(owner)
		w.value(header)
		w.bytes += entryBytes * int64(len(values))
		for _, value := range values {
			w.value(value)
		}
		for e := o.exception; e != nil; e = e.Cause {
			w.value(e.Extra)
		}
	}
}

// interpreter adds up the values that an interpreter's code holds at present, while it runs.
func (w *weigher) interpreter(i *Interpreter) {
	h := &i.heap
	h.mutex.Lock()
	objects := slices.Collect(maps.Keys(h.roots))
	objects = append(objects, h.objects...)
	strands := h.running()
	h.mutex.Unlock()
	for _, o := range objects {
		w.value(o)
	}
	for _, s := range strands {
		if w.first(s.frame) {
			s.frame.variables().Values(w.value)
		}
		s.mutex.Lock()
		pinned := slices.Clone(s.pinned)
		s.mutex.Unlock()
		for _, value := range pinned {
			w.value(value)
		}
		if s.exception != nil {
			w.value(s.exception.Extra)
		}
	}
	i.classes.statics(w.value)
	i.mocks.values(w.value)
	w.objects()
}

// weight is the size of a value in bytes.
func weight(value any) int {
	w := newWeigher()
	w.value(value)
	return int(w.bytes) // an object that is in it is accounted for by itself
}
