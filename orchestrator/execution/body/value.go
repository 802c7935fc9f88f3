package body

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Values are nil, bool, int64, float64, string, *list, tuple, *dict, function, scriptValue, caught, *fileValue and uuidValue.
type (
	list  struct{ items []any }
	tuple []any
	// dict keeps the order in which its keys came.
	dict struct {
		keys   []any
		values map[any]any
	}
	function    func(r *run, line int, args []any, named map[string]any) (any, error)
	scriptValue struct {
		name, method string
		call         Script
	}
	// caught is an error that an except has bound to a name.
	caught struct{ err error }
)

func newDict() *dict { return &dict{values: map[any]any{}} }

// hashable is a value's form as the key of a dict; false for a value that cannot be one.
func hashable(key any) (any, bool) {
	switch k := key.(type) {
	case nil, string, int64:
		return k, true
	case bool:
		if k {
			return int64(1), true
		}
		return int64(0), true
	case float64:
		if k == math.Trunc(k) && math.Abs(k) < 1<<53 {
			return int64(k), true
		}
		return k, true
	case tuple:
		return repr(k), true
	}
	return nil, false
}

func (d *dict) get(key any) (any, bool) {
	k, ok := hashable(key)
	if !ok {
		return nil, false
	}
	value, found := d.values[k]
	return value, found
}

func (d *dict) set(key, value any) {
	k, _ := hashable(key)
	if _, found := d.values[k]; !found {
		d.keys = append(d.keys, key)
	}
	d.values[k] = value
}

func (d *dict) remove(key any) {
	k, _ := hashable(key)
	if _, found := d.values[k]; found {
		delete(d.values, k)
		d.keys = slices.DeleteFunc(d.keys, func(one any) bool { other, _ := hashable(one); return other == k })
	}
}

func fromGo(value any) any {
	switch v := value.(type) {
	case int:
		return int64(v)
	case []any:
		items := make([]any, len(v))
		for n, item := range v {
			items[n] = fromGo(item)
		}
		return &list{items}
	case []string:
		items := make([]any, len(v))
		for n, item := range v {
			items[n] = item
		}
		return &list{items}
	case map[string]any:
		d := newDict()
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			d.set(key, fromGo(v[key]))
		}
		return d
	case nil, bool, int64, float64, string:
		return v
	}
	return fmt.Sprint(value)
}

// Bounds on one value that is written, compared or sent; it may contain itself.
const (
	maxWeight       = 2 * maxText // bytes of texts, and one for each other value
	containerWeight = 256         // of a list or dict: it bounds nesting to a depth that the stack bears
)

// toGo is a body's value for Go: plain values, whose keys are texts.
func toGo(value any) (any, error) {
	left := maxWeight
	return plain(value, &left)
}

func plain(value any, left *int) (any, error) {
	if *left--; *left < 0 {
		return nil, &Error{Type: "MemoryError", Text: "the value is too large to be sent"}
	}
	switch v := value.(type) {
	case nil, bool, int64, float64:
		return v, nil
	case string:
		*left -= len(v)
		return v, nil
	case uuidValue:
		return string(v), nil
	case *list:
		return plainList(v.items, left)
	case tuple:
		return plainList(v, left)
	case *dict:
		*left -= containerWeight
		made := make(map[string]any, len(v.keys))
		for _, key := range v.keys {
			held, _ := v.get(key)
			one, err := plain(held, left)
			if err != nil {
				return nil, err
			}
			made[str(key)] = one
		}
		return made, nil
	}
	return nil, &Error{Type: "TypeError", Text: "the body gives a " + typeName(value) + ", which cannot be sent back"}
}

func plainList(items []any, left *int) (any, error) {
	*left -= containerWeight
	made := make([]any, len(items))
	for n, item := range items {
		one, err := plain(item, left)
		if err != nil {
			return nil, err
		}
		made[n] = one
	}
	return made, nil
}

func typeName(value any) string {
	switch value.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *list:
		return "list"
	case tuple:
		return "tuple"
	case *dict:
		return "dict"
	case caught:
		return "Exception"
	case *fileValue:
		return "file"
	case uuidValue:
		return "UUID"
	}
	return "function"
}

func truth(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case tuple:
		return len(v) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

// str is a value as print writes it.
func str(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case caught:
		return said(v.err)
	case uuidValue:
		return string(v)
	}
	return repr(value)
}

// repr is a value as Python's source has it, as far as it fits a text.
func repr(value any) string {
	w := &writer{}
	w.value(value)
	return w.String()
}

type writer struct {
	strings.Builder
	weight int // of lists and dicts
}

func (w *writer) value(value any) {
	if w.Len()+w.weight > maxWeight {
		return
	}
	switch v := value.(type) {
	case nil:
		w.WriteString("None")
	case bool:
		if v {
			w.WriteString("True")
		} else {
			w.WriteString("False")
		}
	case int64:
		w.WriteString(strconv.FormatInt(v, 10))
	case float64:
		w.WriteString(floatText(v))
	case string:
		w.WriteString(quoted(v))
	case *list:
		w.items("[", v.items, "]")
	case tuple:
		if len(v) == 1 {
			w.items("(", v, ",)")
		} else {
			w.items("(", v, ")")
		}
	case *dict:
		w.weight += containerWeight
		w.WriteString("{")
		for n, key := range v.keys {
			if n > 0 {
				w.WriteString(", ")
			}
			held, _ := v.get(key)
			w.value(key)
			w.WriteString(": ")
			w.value(held)
		}
		w.WriteString("}")
	case caught:
		w.WriteString("Exception(" + quoted(said(v.err)) + ")")
	default:
		w.WriteString("<function>")
	}
}

func (w *writer) items(open string, items []any, shut string) {
	w.weight += containerWeight
	w.WriteString(open)
	for n, item := range items {
		if n > 0 {
			w.WriteString(", ")
		}
		w.value(item)
	}
	w.WriteString(shut)
}

func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	case f == math.Trunc(f) && math.Abs(f) < 1e16:
		return strconv.FormatFloat(f, 'f', 1, 64)
	case math.Abs(f) < 1e16 && math.Abs(f) >= 1e-4:
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

func quoted(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte(quote)
	return b.String()
}

// numberOf is a number's value as int and as float; ok is false for other values. A bool is 0 or 1.
func numberOf(value any) (n int64, f float64, isFloat, ok bool) {
	switch v := value.(type) {
	case bool:
		if v {
			return 1, 1, false, true
		}
		return 0, 0, false, true
	case int64:
		return v, float64(v), false, true
	case float64:
		return 0, v, true, true
	}
	return 0, 0, false, false
}

func equal(a, b any) bool {
	left := maxItems
	return same(a, b, &left)
}

func same(a, b any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	an, af, aFloat, aOK := numberOf(a)
	bn, bf, bFloat, bOK := numberOf(b)
	if aOK || bOK {
		if aOK && bOK && !aFloat && !bFloat {
			return an == bn
		}
		return aOK && bOK && af == bf
	}
	each := func(x, y any) bool { return same(x, y, left) }
	switch x := a.(type) {
	case nil:
		return b == nil
	case string:
		y, ok := b.(string)
		return ok && x == y
	case *list:
		y, ok := b.(*list)
		return ok && slices.EqualFunc(x.items, y.items, each)
	case tuple:
		y, ok := b.(tuple)
		return ok && slices.EqualFunc(x, y, each)
	case *dict:
		y, ok := b.(*dict)
		if !ok || len(x.keys) != len(y.keys) {
			return false
		}
		for _, key := range x.keys {
			mine, _ := x.get(key)
			other, found := y.get(key)
			if !found || !each(mine, other) {
				return false
			}
		}
		return true
	}
	return false
}

// compare orders two values; ok is false when they have no order.
func compare(a, b any) (order int, ok bool) {
	left := maxItems
	return ordered(a, b, &left)
}

func ordered(a, b any, left *int) (order int, ok bool) {
	if *left--; *left < 0 {
		return 0, false
	}
	_, af, _, aOK := numberOf(a)
	_, bf, _, bOK := numberOf(b)
	if aOK && bOK {
		switch {
		case equal(a, b):
			return 0, true
		case af < bf:
			return -1, true
		}
		return 1, true
	}
	switch x := a.(type) {
	case string:
		if y, is := b.(string); is {
			return strings.Compare(x, y), true
		}
	case *list:
		if y, is := b.(*list); is {
			return orderedItems(x.items, y.items, left)
		}
	case tuple:
		if y, is := b.(tuple); is {
			return orderedItems(x, y, left)
		}
	}
	return 0, false
}

func orderedItems(a, b []any, left *int) (int, bool) {
	for n := range min(len(a), len(b)) {
		if !same(a[n], b[n], left) {
			return ordered(a[n], b[n], left)
		}
	}
	return len(a) - len(b), true
}
