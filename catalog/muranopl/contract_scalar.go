package muranopl

import (
	"math"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/yaql"
)

// scalar is string(), int() or bool().
func (s *step) scalar(value any) (any, bool) {
	if value == nil {
		return nil, true
	}
	switch s.name {
	case "bool":
		return yaql.Truth(value), true
	case "int":
		n, ok := wholeNumber(value)
		return n, ok
	}
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return strconv.FormatInt(v, 10), true
	case bool: // of Python's making: its truth values are integers
		if v {
			return "True", true
		}
		return "False", true
	case *Object:
		return v.id, true
	case view:
		return v.object.id, true
	}
	return nil, false
}

// wholeNumber converts a value as Python's int() does.
func wholeNumber(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case float64:
		if math.IsNaN(v) || math.Abs(v) >= 1<<63 {
			return 0, false
		}
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
		return n, err == nil
	}
	return 0, false
}
