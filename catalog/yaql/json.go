package yaql

import (
	"encoding/json"
	"math"
	"strings"
	"time"
)

// JSON converts a value for encoding/json: dates, spans and other types without a form in JSON become texts, keys become texts, sets become lists, and
// floats keep a fraction, also of zero: 1.0.
func JSON(value any) any {
	switch v := value.(type) {
	case nil, bool, int, int64, string, json.Number:
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return Text(v)
		}
		text, _ := json.Marshal(v)
		if !strings.ContainsAny(string(text), ".e") {
			text = append(text, ".0"...)
		}
		return json.Number(text)
	case []any:
		list := make([]any, len(v))
		for n := range v {
			list[n] = JSON(v[n])
		}
		return list
	case map[string]any:
		dict := make(map[string]any, len(v))
		for key := range v {
			dict[key] = JSON(v[key])
		}
		return dict
	case *Dict:
		dict := make(map[string]any, v.Len())
		for _, e := range v.Entries() {
			dict[Text(e.Key)] = JSON(e.Value)
		}
		return dict
	case *Set:
		return JSON(v.Members())
	case time.Time:
		return v.Format(time.RFC3339Nano)
	default:
		return Text(v)
	}
	return value
}

// FromJSON makes of a value that encoding/json read with UseNumber one of the language: whole numbers and others apart.
func FromJSON(value any) any {
	switch v := value.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // out of range is infinite
		return f
	case []any:
		for n := range v {
			v[n] = FromJSON(v[n])
		}
	case map[string]any:
		for key := range v {
			v[key] = FromJSON(v[key])
		}
	}
	return value
}
