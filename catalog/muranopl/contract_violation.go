package muranopl

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/sensitive"
)

// violated reports a fault.
func (a *application) violated(format string, args ...any) (any, bool) {
	message := fmt.Sprintf(format, args...)
	return a.broken(message, message)
}

// broken reports a fault, in Burano's words and in Murano's.
func (a *application) broken(wanted, violation string) (any, bool) {
	a.failed++
	violation = a.place() + violation
	if a.loader.violation == "" {
		a.loader.violation = violation
	}
	a.loader.reportAs(Problem{a.path, a.label, wanted, ContractViolation, violation})
	return nil, false
}

// place writes where the contract is applied as Murano's messages do: "[a.B.property[key][0]] ", "[a.B::method(argument[key])] ".
func (a *application) place() string {
	rest := strings.TrimPrefix(a.path, a.base)
	var steps strings.Builder
	for rest != "" {
		end := strings.IndexAny(rest[1:], ".[") + 1
		if rest[0] == '[' && rest[1] == '"' {
			end = strings.Index(rest, `"]`) + 2
		}
		if end <= 0 {
			end = len(rest)
		}
		step := rest[:end]
		rest = rest[end:]
		if name, ok := strings.CutPrefix(step, "."); ok {
			step = "[" + name + "]"
		} else if key, err := strconv.Unquote(strings.Trim(step, "[]")); err == nil {
			step = "[" + key + "]"
		}
		steps.WriteString(step)
	}
	if subject, ok := strings.CutSuffix(a.subject, ")"); ok {
		return "[" + subject + steps.String() + ")] "
	}
	return "[" + a.subject + steps.String() + "] "
}

// wants reports a value that does not match a rule.
func (a *application) wants(r rule, value any) (any, bool) {
	return a.broken(fmt.Sprintf("wants %s, found %s%s", r.text(), a.found(value), a.advice(value)), a.violation(r, value))
}

// violation describes in Murano's words a value that does not match a rule.
func (a *application) violation(r rule, value any) string {
	written := yaql.Text(value)
	switch v := value.(type) {
	case string:
		if written = "'" + v + "'"; sensitive.Path(a.path) {
			written = a.found(value)
		}
	case *Object:
		written = "MuranoObject(" + v.class.Type() + ")"
	}
	switch r := r.(type) {
	case constant:
		return fmt.Sprintf("Value %s is not equal to %s", written, scalarText(r.value))
	case entries:
		return fmt.Sprintf("Value %s is not of a dictionary type", written)
	}
	switch {
	case value == nil:
		return "null value violates notNull() contract"
	case a.function == "check":
		return fmt.Sprintf("Value %s doesn't match predicate", written)
	case a.function == "class":
		return fmt.Sprintf("Value %s cannot be represented as class %s", written, classText(r))
	}
	return fmt.Sprintf("Value %s violates %s() contract", written, a.function)
}

// scalarText writes a literal of a contract as Murano does.
func scalarText(value any) string {
	if text, ok := value.(string); ok {
		return "'" + text + "'"
	}
	return pythonText(value)
}

// classText is the class that a contract asks for.
func classText(r rule) string {
	if c, ok := r.(chain); ok {
		for n := range c.steps {
			if c.steps[n].name == "class" {
				return c.steps[n].class
			}
		}
	}
	return r.text()
}

func (a *application) advice(value any) string {
	if value != nil {
		return ""
	}
	name := a.path[strings.LastIndexByte(a.path, '.')+1:]
	if name == "" || strings.HasSuffix(name, "]") {
		return ": give a value"
	}
	if strings.ContainsRune("aeiou", rune(name[0])) {
		return ": give an " + name
	}
	return ": give a " + name
}

// found describes the value, unless its name is that of a secret.
func (a *application) found(value any) string {
	if text, ok := value.(string); ok && sensitive.Path(a.path) {
		return fmt.Sprintf("a text of %d characters", len([]rune(text)))
	}
	return show(value)
}

// show writes a value for a message, in a bearable length.
func show(value any) string {
	switch v := value.(type) {
	case *Object:
		return "an object of class " + v.class.Name
	case view:
		return show(v.object)
	case TypeReference:
		return "the class " + v.Class.Name
	case *yaql.Dict:
		if made, ok := plainValue(v).(map[string]any); ok {
			return show(made)
		}
		return "a map"
	case map[string]any:
		if len(v) > 0 {
			return fmt.Sprintf("a map with %s", strings.Join(sortedKeys(v), ", "))
		}
	case []any:
		if len(v) > 0 {
			return fmt.Sprintf("a list of %d", len(v))
		}
	}
	written, err := json.Marshal(value)
	if err != nil {
		return yaql.TypeName(value)
	}
	const most = 60
	if runes := []rune(string(written)); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(written)
}
