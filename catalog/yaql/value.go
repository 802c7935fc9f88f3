package yaql

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"
)

// Seq is a lazy sequence. It can be gone through more than once.
type Seq = iter.Seq2[any, error]

// Entry is a key and its value.
type Entry struct{ Key, Value any }

// Pair is "key => value" as a value: an argument of functions with pairs.
type Pair struct{ Key, Value any }

// enter makes of data, as JSON or YAML decoders or Go code give it, a value of the language; only the outermost level is looked at.
func enter(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return &Dict{source: v}
	case int:
		return int64(v)
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case float32:
		return float64(v)
	case []string:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = item
		}
		return list
	}
	return value
}

// Plain converts a value as encoding/json would read its JSON, but with int64: maps with string keys only become map[string]any, sets become lists. Values
// of other types stay as they are.
func Plain(value any) any {
	switch v := enter(value).(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Plain(item)
		}
		return list
	case *Set:
		return Plain(v.Members())
	case *Dict:
		plain := make(map[string]any, v.Len())
		textual := true
		for _, e := range v.all() {
			key, ok := e.Key.(string)
			textual = textual && ok
			plain[key] = Plain(e.Value)
		}
		if textual {
			return plain
		}
		entries := v.Entries()
		for i := range entries {
			entries[i].Value = Plain(entries[i].Value)
		}
		return NewDict(entries...)
	default:
		return v
	}
}

// Truth is Python's truth value of a value.
func Truth(value any) bool {
	switch v := enter(value).(type) {
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
	case []any:
		return len(v) > 0
	case *Dict:
		return v.Len() > 0
	case *Set:
		return v.Len() > 0
	case time.Duration:
		return v != 0
	}
	return true
}

// compare orders two values of one kind; false when they have no order.
func compare(a, b any) (int, bool) {
	a, b = enter(a), enter(b)
	switch {
	case a == nil && b == nil:
		return 0, true
	case a == nil:
		return -1, true
	case b == nil:
		return 1, true
	}
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		return cmp.Compare(x, y), ok
	case time.Time:
		y, ok := b.(time.Time)
		return x.Compare(y), ok
	case time.Duration:
		y, ok := b.(time.Duration)
		return cmp.Compare(x, y), ok
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), true
		}
	}
	x, xok := float(a)
	y, yok := float(b)
	return cmp.Compare(x, y), xok && yok
}

// float is a number as float64.
func float(value any) (float64, bool) {
	switch v := value.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// Text is the function str().
func Text(value any) string {
	switch v := enter(value).(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatText(v)
	case time.Time:
		if v.Nanosecond() == 0 {
			return v.Format("2006-01-02 15:04:05-07:00")
		}
		return v.Format("2006-01-02 15:04:05.000000-07:00")
	case time.Duration:
		return spanText(v)
	case []any, *Dict, *Set:
		return inPython(v)
	default:
		return fmt.Sprint(v)
	}
}

// inPython is a value as Python's repr() writes it. One that is too large to be written is its type.
func inPython(value any) string {
	if large(value) {
		return "<a " + TypeName(value) + " that is too large>"
	}
	var b strings.Builder
	writeText(&b, value)
	return b.String()
}

// typeInPython is Python's name of the type of a value.
func typeInPython(value any) string {
	switch enter(value).(type) {
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
	case []any:
		return "tuple"
	case *Dict:
		return "FrozenDict"
	case *Set:
		return "frozenset"
	case time.Time:
		return "datetime.datetime"
	case time.Duration:
		return "datetime.timedelta"
	}
	return "object"
}

// classInPython is Python's notation for the type of a value.
func classInPython(value any) string {
	name := typeInPython(value)
	if name == "FrozenDict" {
		name = "yaql.language.utils." + name
	}
	return "<class '" + name + "'>"
}

// writeText writes a value inside of another as Python would: lists are tuples there, and sets frozen.
func writeText(b *strings.Builder, value any) {
	list := func(items []any) {
		for i, item := range items {
			if i > 0 {
				b.WriteString(", ")
			}
			writeText(b, item)
		}
	}
	switch v := enter(value).(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case string:
		b.WriteString("'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(v) + "'")
	case []any:
		b.WriteString("(")
		list(v)
		if len(v) == 1 {
			b.WriteString(",")
		}
		b.WriteString(")")
	case *Set:
		b.WriteString("frozenset(")
		if len(v.members) > 0 {
			b.WriteString("{")
			list(v.members)
			b.WriteString("}")
		}
		b.WriteString(")")
	case *Dict:
		b.WriteString("{")
		for i, e := range v.all() {
			if i > 0 {
				b.WriteString(", ")
			}
			writeText(b, e.Key)
			b.WriteString(": ")
			writeText(b, e.Value)
		}
		b.WriteString("}")
	default:
		b.WriteString(Text(v))
	}
}

// floatText writes a float as Python does: always with a point or an exponent.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}
