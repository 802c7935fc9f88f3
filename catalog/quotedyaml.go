package catalog

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// quotedYAML writes maps, lists, texts, numbers, booleans, nulls and expressions as YAML in which every scalar is quoted, so that no text is taken for an
// expression. It equals, letter for letter, the output of PyYAML with default_style='"': clients of Murano get the same.
func quotedYAML(value any) string {
	var w yamlWriter
	w.node(value, 0, false)
	return strings.TrimPrefix(w.out.String(), "\n") + "\n"
}

// expression is a YAQL expression, which has the tag !yaql in YAML.
type expression string

// assignment is an item of a list: a map of one key, which is an expression.
type assignment struct {
	target string
	value  any
}

// foldAt is the column after which a long text goes on in the next line.
const foldAt = 80

type yamlWriter struct {
	out    strings.Builder
	column int
}

func (w *yamlWriter) write(text string) {
	w.out.WriteString(text)
	w.column += len(text)
}

func (w *yamlWriter) line(indent int) {
	w.out.WriteString("\n" + strings.Repeat(" ", indent))
	w.column = indent
}

// node writes a value. A map or a list begins in a new line, except behind the dash of a list.
func (w *yamlWriter) node(value any, indent int, behindDash bool) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			w.write("{}")
			return
		}
		for i, key := range slices.Sorted(maps.Keys(value)) {
			if i > 0 || !behindDash {
				w.line(indent)
			}
			w.quoted(key, indent, false)
			w.write(":")
			w.below(value[key], indent)
		}
	case assignment:
		w.write("!yaql ")
		w.quoted(value.target, indent, false)
		w.write(":")
		w.below(value.value, indent)
	case []any:
		if len(value) == 0 {
			w.write("[]")
			return
		}
		for i, item := range value {
			if i > 0 || !behindDash {
				w.line(indent)
			}
			w.write("- ")
			w.item(item, indent+2)
		}
	default:
		w.item(value, indent)
	}
}

// below writes the value of a key: lists begin under their key, maps two columns further.
func (w *yamlWriter) below(value any, indent int) {
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 {
			w.write(" ")
		}
		w.node(value, indent+2, false)
	case []any:
		if len(value) == 0 {
			w.write(" ")
		}
		w.node(value, indent, false)
	default:
		w.write(" ")
		w.item(value, indent+2)
	}
}

func (w *yamlWriter) item(value any, indent int) {
	switch value := value.(type) {
	case map[string]any, []any, assignment:
		w.node(value, indent, true)
	case string:
		w.quoted(value, indent, true)
	case expression:
		w.write("!yaql ")
		w.quoted(string(value), indent, true)
	default:
		w.write(map[string]string{"<nil>": "!!null ", "bool": "!!bool ", "float64": "!!float ",
			"int": "!!int ", "int64": "!!int ", "uint64": "!!int "}[fmt.Sprintf("%T", value)])
		w.quoted(scalar(value), indent, true) // dates of YAML become texts
	}
}

// escapes are the characters with an escape of one letter (YAML 1.1, section 5.6).
var escapes = map[rune]string{
	0: "0", 7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 27: "e", '"': `"`, '\\': `\`, 0x85: "N", 0xa0: "_", 0x2028: "L", 0x2029: "P",
}

// quoted writes a text in double quotes. A long one is folded at blanks, when it is not a key.
func (w *yamlWriter) quoted(text string, indent int, fold bool) {
	w.write(`"`)
	runes := []rune(text)
	start := 0
	for end := 0; end <= len(runes); end++ {
		var r rune
		ended := end == len(runes)
		if !ended {
			r = runes[end]
		}
		if ended || r < ' ' || r > '~' || r == '"' || r == '\\' {
			if start < end {
				w.write(string(runes[start:end]))
				start = end
			}
			if !ended {
				w.write(escaped(r))
				start = end + 1
			}
		}
		if fold && 0 < end && end < len(runes)-1 && (r == ' ' || start >= end) && w.column+end-start > foldAt {
			if start < end {
				w.write(string(runes[start:end]))
				start = end
			}
			w.write(`\`)
			w.line(indent)
			if runes[start] == ' ' {
				w.write(`\`)
			}
		}
	}
	w.write(`"`)
}

func escaped(r rune) string {
	if short, ok := escapes[r]; ok {
		return `\` + short
	}
	switch {
	case r <= 0xff:
		return fmt.Sprintf(`\x%02X`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04X`, r)
	}
	return fmt.Sprintf(`\U%08X`, r)
}

// literal writes a value in YAQL.
func literal(value any) string {
	if text, ok := value.(string); ok {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	}
	return scalar(value)
}

// scalar writes a value that is neither list nor map.
func scalar(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case float64:
		if value == math.Trunc(value) && math.Abs(value) < 1e16 {
			return strconv.FormatFloat(value, 'f', 1, 64)
		}
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	return fmt.Sprint(value)
}
