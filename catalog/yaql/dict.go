package yaql

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// few is up to how many entries a map is looked through from end to end; larger ones have an index.
const few = 8

// Dict is a map that keeps the order of its entries and takes any value as key. It does not change.
type Dict struct {
	entries []Entry
	index   map[any]int // by key; nil while the entries are few

	// source is data that has come in as it is, instead of entries; these are made, in the order of keys, when they are wanted.
	source map[string]any
	made   atomic.Pointer[[]Entry]
}

// NewDict makes a map; of entries with equal keys the last gives the value and the first the place.
func NewDict(entries ...Entry) *Dict {
	d := &Dict{entries: make([]Entry, 0, len(entries))}
	for _, e := range entries {
		d.put(e.Key, e.Value)
	}
	return d
}

// put adds to a map that is not shared yet.
func (d *Dict) put(key, value any) {
	if i, ok := d.place(key); ok {
		d.entries[i].Value = value
		return
	}
	d.entries = append(d.entries, Entry{key, value})
	switch {
	case d.index != nil:
		d.index[keyOf(key)] = len(d.entries) - 1
	case len(d.entries) > few:
		d.index = make(map[any]int, max(cap(d.entries), 2*few))
		for i, e := range d.entries {
			d.index[keyOf(e.Key)] = i
		}
	}
}

func (d *Dict) place(key any) (int, bool) {
	if d.index != nil {
		i, ok := d.index[keyOf(key)]
		return i, ok
	}
	if text, ok := key.(string); ok {
		for i := range d.entries {
			if other, ok := d.entries[i].Key.(string); ok && other == text {
				return i, true
			}
		}
		return 0, false
	}
	for i := range d.entries {
		if Equal(d.entries[i].Key, key) {
			return i, true
		}
	}
	return 0, false
}

// all are the entries in order, not to be written.
func (d *Dict) all() []Entry {
	if d.source == nil {
		return d.entries
	}
	if made := d.made.Load(); made != nil {
		return *made
	}
	made := make([]Entry, 0, len(d.source))
	for _, key := range slices.Sorted(maps.Keys(d.source)) {
		made = append(made, Entry{key, d.source[key]})
	}
	d.made.Store(&made)
	return made
}

// Len is the number of entries.
func (d *Dict) Len() int {
	if d.source != nil {
		return len(d.source)
	}
	return len(d.entries)
}

// Get returns the value of a key.
func (d *Dict) Get(key any) (any, bool) {
	if d.source != nil {
		text, ok := key.(string)
		if !ok {
			return nil, false
		}
		value, ok := d.source[text]
		return value, ok
	}
	if i, ok := d.place(key); ok {
		return d.entries[i].Value, true
	}
	return nil, false
}

// Entries are the entries in order.
func (d *Dict) Entries() []Entry { return slices.Clone(d.all()) }

// All visits the entries in order, without a copy of them.
func (d *Dict) All() iter.Seq2[any, any] {
	return func(yield func(any, any) bool) {
		for _, e := range d.all() {
			if !yield(e.Key, e.Value) {
				return
			}
		}
	}
}

// With makes a map with more entries.
func (d *Dict) With(entries ...Entry) *Dict {
	return NewDict(append(d.Entries(), entries...)...)
}

// Without makes a map that lacks the keys.
func (d *Dict) Without(keys ...any) *Dict {
	gone := NewSet(keys...)
	return NewDict(slices.DeleteFunc(d.Entries(), func(e Entry) bool { return gone.Has(e.Key) })...)
}

// Set is a set that keeps the order in which its members came. It does not change.
type Set struct {
	members []any
	index   map[any]struct{} // by key
}

// NewSet makes a set.
func NewSet(members ...any) *Set {
	s := &Set{index: make(map[any]struct{}, len(members))}
	for _, m := range members {
		s.put(m)
	}
	return s
}

// put adds to a set that is not shared yet; it reports whether the member is new.
func (s *Set) put(member any) bool {
	key := keyOf(member)
	if _, has := s.index[key]; has {
		return false
	}
	s.index[key] = struct{}{}
	s.members = append(s.members, member)
	return true
}

// Len is the number of members.
func (s *Set) Len() int { return len(s.members) }

// Has reports whether the value is a member.
func (s *Set) Has(value any) bool {
	_, has := s.index[keyOf(value)]
	return has
}

// All visits the members in order, without a copy of them.
func (s *Set) All() iter.Seq[any] { return slices.Values(s.members) }

// Members are the members in order.
func (s *Set) Members() []any { return slices.Clone(s.members) }

func (s *Set) contains(other *Set) bool {
	return !slices.ContainsFunc(other.members, func(m any) bool { return !s.Has(m) })
}

// composite is the key of a value that Go's maps do not take, or would take wrongly.
type composite string

// keyOf is the same for equal values only, and fit as the key of a Go map.
func keyOf(value any) any {
	switch v := value.(type) {
	case nil, int64, string, time.Duration:
		return v
	case bool:
		return ofBool(v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return int64(v)
		}
		return composite(identity(v))
	case int:
		return int64(v)
	}
	return composite(identity(value))
}

// identity is a text that is the same for equal values only.
func identity(value any) string {
	var b strings.Builder
	if large(value) { // such a value is equal to itself only
		if items := parts(value); len(items) > 0 {
			return fmt.Sprintf("l%p.%d", &items[0], len(items))
		}
		return fmt.Sprintf("p%p", value)
	}
	writeIdentity(&b, value)
	return b.String()
}

func writeIdentity(b *strings.Builder, value any) {
	switch v := enter(value).(type) {
	case nil:
		b.WriteString("n")
	case bool:
		fmt.Fprintf(b, "i%d", ofBool(v))
	case int64:
		fmt.Fprintf(b, "i%d", v)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			fmt.Fprintf(b, "i%d", int64(v))
		} else {
			fmt.Fprintf(b, "f%x", math.Float64bits(v))
		}
	case string:
		fmt.Fprintf(b, "s%d:%s", len(v), v)
	case []any:
		b.WriteString("[")
		for _, item := range v {
			writeIdentity(b, item)
			b.WriteString(",")
		}
		b.WriteString("]")
	case *Dict:
		writeSorted(b, "{", v.all(), func(b *strings.Builder, e Entry) {
			writeIdentity(b, e.Key)
			b.WriteString("=")
			writeIdentity(b, e.Value)
		})
	case *Set:
		writeSorted(b, "<", v.members, writeIdentity)
	case time.Time:
		fmt.Fprintf(b, "t%d", v.UnixNano())
	case time.Duration:
		fmt.Fprintf(b, "d%d", v)
	default:
		fmt.Fprintf(b, "p%p", v)
	}
}

func writeSorted[T any](b *strings.Builder, opening string, items []T, write func(*strings.Builder, T)) {
	parts := make([]string, len(items))
	for i, item := range items {
		var part strings.Builder
		write(&part, item)
		parts[i] = part.String()
	}
	slices.Sort(parts)
	b.WriteString(opening)
	b.WriteString(strings.Join(parts, ","))
	b.WriteString("|")
}

// ofBool is 1 for true: Python's truth values are numbers.
func ofBool(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// Equal is the operator "=".
func Equal(a, b any) bool {
	a, b = enter(a), enter(b)
	if truth, ok := a.(bool); ok {
		a = ofBool(truth)
	}
	if truth, ok := b.(bool); ok {
		b = ofBool(truth)
	}
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case int64:
		if y, ok := b.(int64); ok {
			return x == y
		}
		if _, ok := b.(float64); !ok {
			return false
		}
	case []any:
		y, ok := b.([]any)
		if !ok || len(x) != len(y) {
			return false
		}
		if !slices.ContainsFunc(x, isComposite) {
			return slices.EqualFunc(x, y, Equal)
		}
	}
	return identity(a) == identity(b)
}

func isComposite(value any) bool {
	switch value.(type) {
	case []any, *Dict, *Set, map[string]any:
		return true
	}
	return false
}
