package hot

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Converted is a value as a parameter's type has it.
func Converted(kind string, value any) (any, error) {
	switch kind {
	case "string":
		return Text(value), nil
	case "number":
		number, err := strconv.ParseFloat(Text(value), 64)
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
		return nil, fmt.Errorf("the type %q is not one of string, number, json, comma_delimited_list and boolean", kind)
	}
	return value, nil
}

// Violated says what is wrong with a value under one constraint, or nothing. Constraints that ask the cloud (custom_constraint) are left to
// the cloud.
func Violated(constraint map[string]any, value any) string {
	problem := ""
	if allowed, ok := constraint["allowed_values"].([]any); ok {
		for _, one := range List(value) {
			if !slices.ContainsFunc(allowed, func(a any) bool { return Text(a) == Text(one) }) {
				problem = fmt.Sprintf("%q is not one of %s", Text(one), Text(allowed))
			}
		}
	}
	if pattern, ok := constraint["allowed_pattern"].(string); ok {
		compiled, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			problem = fmt.Sprintf("the pattern %q cannot be used: %v", pattern, err)
		} else if !compiled.MatchString(Text(value)) {
			problem = fmt.Sprintf("%q does not match %q", Text(value), pattern)
		}
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
			step, _ := rule["step"].(float64)
			offset, _ := rule["offset"].(float64)
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

func outside(bounds map[string]any, number float64) bool {
	low, hasLow := bounds["min"].(float64)
	high, hasHigh := bounds["max"].(float64)
	return hasLow && number < low || hasHigh && number > high
}
