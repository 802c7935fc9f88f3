package hot

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/burano/burano/internal/door"
)

// Converted is a value as a parameter's type has it.
func Converted(kind string, value any) (any, error) {
	switch kind {
	case "string":
		if text := boolText(value); text != nil {
			return text, nil
		}
		return Text(value), nil
	case "number":
		number, err := strconv.ParseFloat(strings.TrimSpace(Text(value)), 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return nil, fmt.Errorf("%q is no number", Text(value))
		}
		return number, nil
	case "boolean":
		is, ok := Boolean(value)
		if !ok {
			return nil, fmt.Errorf("%q is neither true nor false", Text(value))
		}
		return is, nil
	case "comma_delimited_list":
		if _, is := value.([]any); !is {
			parts := []any{}
			if all := Text(value); all != "" {
				for part := range strings.SplitSeq(all, ",") {
					parts = append(parts, strings.TrimSpace(part))
				}
			}
			return parts, nil
		}
	case "json":
		if source, is := value.(string); is {
			made := any(map[string]any{})
			if source != "" {
				if err := json.Unmarshal([]byte(source), &made); err != nil {
					return nil, fmt.Errorf("it is no JSON: %w", err)
				}
			}
			return made, nil
		}
	default:
		return nil, fmt.Errorf("the type %q is not one of %s", kind, strings.Join(Types(), ", "))
	}
	return value, nil
}

// boolText is a truth in a parameter of type string, which Heat writes as Python does; nil for other values.
func boolText(value any) any {
	if truth, is := value.(bool); is {
		return map[bool]string{true: "True", false: "False"}[truth]
	}
	return nil
}

// Violated describes how a converted value breaks one constraint, or is "". Constraints that ask the cloud (custom_constraint) are left to the cloud.
func Violated(constraint map[string]any, value any) string {
	problem := ""
	if allowed, ok := constraint["allowed_values"].([]any); ok {
		given := List(value)
		if len(given)*len(allowed) > maxSteps {
			return fmt.Sprintf("a list of %d values is too long to be compared with %d allowed ones", len(given), len(allowed))
		}
		for _, one := range given {
			if !slices.ContainsFunc(allowed, func(a any) bool { return equalAs(one, a) }) {
				problem = fmt.Sprintf("%q is not one of %s", shown(one), shown(allowed))
			}
		}
	}
	if pattern, ok := constraint["allowed_pattern"].(string); ok && !matches(pattern, Text(value)) {
		problem = fmt.Sprintf("%q does not match %q", shown(value), pattern)
	}
	if bounds, ok := constraint["length"].(map[string]any); ok {
		size := utf8.RuneCountInString(Text(value))
		switch value := value.(type) {
		case []any:
			size = len(value)
		case map[string]any:
			size = len(value)
		}
		if outside(bounds, float64(size)) {
			problem = fmt.Sprintf("the length %d is out of range (%s to %s)", size, Text(bounds["min"]), Text(bounds["max"]))
		}
	}
	if number, is := value.(float64); is {
		if bounds, ok := constraint["range"].(map[string]any); ok && outside(bounds, number) {
			problem = fmt.Sprintf("%s is out of range (%s to %s)", Text(value), Text(bounds["min"]), Text(bounds["max"]))
		}
		if rule, ok := constraint["modulo"].(map[string]any); ok {
			step, offset := float(rule["step"]), float(rule["offset"])
			if step != 0 && math.Mod(number-offset, step) != 0 {
				problem = fmt.Sprintf("%s is no multiple of %s with an offset of %s", Text(value), Text(step), Text(offset))
			}
		}
	}
	if description := Text(constraint["description"]); problem != "" && description != "" {
		return description
	}
	return problem
}

// equalAs compares an allowed value with a value, as the value's type has it: 2.40 and "2.4" are the number 2.4.
func equalAs(value, allowed any) bool {
	switch value := value.(type) {
	case float64:
		number, is := numeric(allowed)
		return is && float(number) == value
	case bool:
		truth, is := Boolean(allowed)
		return is && truth == value
	}
	return Text(value) == Text(allowed) || boolText(allowed) == value
}

// matches reports whether the first match of a pattern from a text's beginning ends at its end, which is how Heat asks. A pattern that cannot be
// used here, such as one with a look-ahead, is left to Heat.
func matches(pattern, text string) bool {
	compiled, err := door.Pattern(`\A(?:` + pattern + `)`)
	if err == nil {
		err = compiled.Fits(text)
	}
	if err != nil {
		return true
	}
	found := compiled.FindStringIndex(text)
	return found != nil && found[1] == len(text)
}

func outside(bounds map[string]any, number float64) bool {
	low, high, err := Bounds(bounds)
	return err == nil && (low != nil && number < float(low) || high != nil && number > float(high))
}

func float(value any) float64 {
	switch value, _ := numeric(value); number := value.(type) {
	case int64:
		return float64(number)
	case float64:
		return number
	}
	return 0
}
