package heat

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Parameter is one parameter of a template.
type Parameter struct {
	Type        string // string, number, json, comma_delimited_list, boolean
	Label       string
	Description string
	Default     any
	HasDefault  bool
	Hidden      bool
	Immutable   bool
	Constraints []map[string]any
}

// isPseudo says whether Heat gives the parameter itself.
func isPseudo(name string) bool {
	return slices.Contains([]string{"OS::stack_id", "OS::stack_name", "OS::project_id"}, name)
}

func (t *Template) addParameter(name string, body map[string]any) error {
	p := Parameter{Type: text(body["type"]), Label: text(body["label"]), Description: text(body["description"])}
	p.Default, p.HasDefault = body["default"]
	p.Hidden, _ = body["hidden"].(bool)
	p.Immutable, _ = body["immutable"].(bool)
	if !slices.Contains([]string{"string", "number", "json", "comma_delimited_list", "boolean"}, p.Type) {
		return invalid("InvalidSchemaError", "Invalid type (%s) of parameter %s: it is one of string, number, json, comma_delimited_list, boolean", p.Type, name)
	}
	for key := range body {
		if !slices.Contains([]string{"type", "label", "description", "default", "hidden", "immutable", "constraints", "tags"}, key) {
			return invalid("InvalidSchemaError", "Invalid key '%s' for parameter %s", key, name)
		}
	}
	for _, one := range listOf(body["constraints"]) {
		constraint, ok := one.(map[string]any)
		if !ok {
			return invalid("InvalidSchemaError", "Invalid parameter constraints for parameter %s, expected a list of maps", name)
		}
		p.Constraints = append(p.Constraints, constraint)
	}
	if p.HasDefault {
		if _, err := p.value(name, p.Default); err != nil {
			return invalid("InvalidSchemaError", "Invalid default %s (%v)", text(p.Default), err)
		}
	}
	t.Parameters[name] = p
	return nil
}

// parametersOf gives every parameter of the template its value: what was given, or its default.
func (t *Template) parametersOf(given map[string]any) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := t.Parameters[name]; !ok {
			return nil, invalid("UnknownUserParameter", "The Parameter (%s) was not defined in template.", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		parameter := t.Parameters[name]
		value, ok := given[name]
		if !ok {
			if !parameter.HasDefault {
				return nil, invalid("UserParameterMissing", "The Parameter (%s) was not provided.", name)
			}
			value = parameter.Default
		}
		converted, err := parameter.value(name, value)
		if err != nil {
			return nil, err
		}
		values[name] = converted
	}
	return values, nil
}

// value converts what was given to the parameter's type and checks the constraints.
func (p Parameter) value(name string, given any) (any, error) {
	wrong := func(format string, args ...any) error {
		return notValid("Parameter '%s' is invalid: %s", name, fmt.Sprintf(format, args...))
	}
	var value any
	switch p.Type {
	case "string":
		value = text(given)
	case "number":
		number, err := strconv.ParseFloat(text(given), 64)
		if err != nil || math.IsInf(number, 0) || math.IsNaN(number) {
			return nil, wrong("could not convert %s to a number", text(given))
		}
		value = number
	case "boolean":
		truth, ok := boolean(given)
		if !ok {
			return nil, wrong("Value '%s' is not a boolean", text(given))
		}
		value = truth
	case "comma_delimited_list":
		switch given := given.(type) {
		case []any:
			value = given
		default:
			parts := []any{}
			if all := text(given); all != "" {
				for part := range strings.SplitSeq(all, ",") {
					parts = append(parts, strings.TrimSpace(part))
				}
			}
			value = parts
		}
	case "json":
		value = given
		if source, ok := given.(string); ok {
			value = map[string]any{}
			if source != "" {
				if err := json.Unmarshal([]byte(source), &value); err != nil {
					return nil, wrong("Value must be valid JSON: %v", err)
				}
			}
		}
	}
	for _, constraint := range p.Constraints {
		if problem := violated(constraint, value); problem != "" {
			if description := text(constraint["description"]); description != "" {
				problem = description
			}
			return nil, notValid("Parameter '%s' is invalid: %s", name, problem)
		}
	}
	return value, nil
}

// violated says what is wrong with a value under one constraint, or nothing. Custom constraints are left to those who know.
func violated(constraint map[string]any, value any) string {
	if allowed, ok := constraint["allowed_values"].([]any); ok {
		for _, one := range listOf(value) {
			if !slices.ContainsFunc(allowed, func(a any) bool { return text(a) == text(one) }) {
				return fmt.Sprintf("%q is not an allowed value %s", text(one), text(allowed))
			}
		}
	}
	if pattern, ok := constraint["allowed_pattern"].(string); ok {
		compiled, err := regexp.Compile("^(?:" + pattern + ")$")
		if err != nil {
			return fmt.Sprintf("the pattern %q cannot be used: %v", pattern, err)
		}
		if !compiled.MatchString(text(value)) {
			return fmt.Sprintf("%q does not match pattern %q", text(value), pattern)
		}
	}
	if bounds, ok := constraint["length"].(map[string]any); ok {
		size := utf8.RuneCountInString(text(value))
		switch value := value.(type) {
		case []any:
			size = len(value)
		case map[string]any:
			size = len(value)
		}
		if outside(bounds, float64(size)) {
			return fmt.Sprintf("length (%d) is out of range (min: %s, max: %s)", size, text(bounds["min"]), text(bounds["max"]))
		}
	}
	if bounds, ok := constraint["range"].(map[string]any); ok {
		if number, ok := value.(float64); ok && outside(bounds, number) {
			return fmt.Sprintf("%s is out of range (min: %s, max: %s)", text(value), text(bounds["min"]), text(bounds["max"]))
		}
	}
	if rule, ok := constraint["modulo"].(map[string]any); ok {
		step, _ := rule["step"].(float64)
		offset, _ := rule["offset"].(float64)
		if number, ok := value.(float64); ok && step != 0 && math.Mod(number-offset, step) != 0 {
			return fmt.Sprintf("%s is not a multiple of %s with an offset of %s", text(value), text(step), text(offset))
		}
	}
	return ""
}

func outside(bounds map[string]any, number float64) bool {
	low, hasLow := bounds["min"].(float64)
	high, hasHigh := bounds["max"].(float64)
	return hasLow && number < low || hasHigh && number > high
}

// boolean reads a truth the way Heat does.
func boolean(value any) (truth, ok bool) {
	switch strings.ToLower(text(value)) {
	case "true", "t", "on", "y", "yes", "1":
		return true, true
	case "false", "f", "off", "n", "no", "0":
		return false, true
	}
	return false, false
}
