package hot

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/fault"
)

// Types returns the types of parameters.
func Types() []string { return []string{"string", "number", "json", "comma_delimited_list", "boolean"} }

// Rule is the part of a parameter's declaration that decides which values it takes.
type Rule struct {
	Type string `json:"type"`
	// Optional parameters have a default. Without a value they are left to the template.
	Optional bool `json:"optional,omitempty"`
	// Hidden keeps values out of errors.
	Hidden      bool             `json:"hidden,omitempty"`
	Constraints []map[string]any `json:"constraints,omitempty"`
}

// ParseRule reads a rule that String has written.
func ParseRule(text string) (Rule, error) {
	var r Rule
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return r, fmt.Errorf("the rule of a parameter: %w", err)
	}
	if !slices.Contains(Types(), r.Type) {
		return r, fmt.Errorf("the rule of a parameter has the type %q; known are %s", r.Type, strings.Join(Types(), ", "))
	}
	return r, nil
}

// String is the rule as JSON.
func (r Rule) String() string {
	text, err := json.Marshal(r)
	if err != nil {
		return "" // constraints are values of YAML
	}
	return string(text)
}

// Check finds constraints of a form that Heat refuses.
func (r Rule) Check() error {
	if _, err := json.Marshal(r); err != nil {
		return fmt.Errorf("a value of them is none of JSON: %w", err)
	}
	for _, constraint := range r.Constraints {
		for key, spec := range constraint {
			var err error
			switch key {
			case "allowed_values":
				if _, ok := spec.([]any); !ok {
					err = errors.New("allowed_values should be a list")
				}
			case "length", "range":
				_, _, err = Bounds(spec)
			case "modulo":
				if _, ok := spec.(map[string]any); !ok {
					err = errors.New("modulo should be a map with step and offset")
				}
			case "allowed_pattern":
				if _, ok := spec.(string); !ok {
					err = errors.New("allowed_pattern should be a text")
				}
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Bounds reads {min, max} of a constraint. A bound that is not there is nil, others are int64 or float64.
func Bounds(spec any) (low, high any, err error) {
	limits, ok := spec.(map[string]any)
	if !ok {
		return nil, nil, errors.New("length and range should be maps with min, max or both")
	}
	read := func(key string) any {
		if limits[key] == nil {
			return nil
		}
		number, is := numeric(limits[key])
		if !is {
			err = fmt.Errorf("%s should be a number", key)
		}
		return number
	}
	if low, high = read("min"), read("max"); err == nil && low == nil && high == nil {
		err = errors.New("length and range need min, max or both")
	}
	return low, high, err
}

// numeric is a number, or the number that a text holds: an int64 where it is whole, else a float64.
func numeric(value any) (number any, ok bool) {
	switch v := value.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return v, !math.IsInf(v, 0) && !math.IsNaN(v)
	case string:
		v = strings.TrimSpace(v)
		if whole, err := strconv.ParseInt(v, 10, 64); err == nil {
			return whole, true
		}
		fraction, err := strconv.ParseFloat(v, 64)
		return fraction, err == nil && !math.IsInf(fraction, 0) && !math.IsNaN(fraction)
	}
	return nil, false
}

// Value returns a value as it goes to Heat: texts of numbers and truths become numbers and truths, lists and maps stay as they are. Null leaves the
// parameter to the template, and so does an empty text that the parameter cannot have, where there is a default. Errors are faults of kind Invalid.
func (r Rule) Value(given any) (any, error) {
	if given == nil {
		return nil, nil
	}
	blank := given == "" && r.Optional
	if blank && (r.Type != "string" || r.Hidden) {
		return nil, nil
	}
	sent, err := r.typed(given)
	if err == nil {
		err = r.violated(sent)
	}
	switch {
	case err == nil:
		return sent, nil
	case blank:
		return nil, nil
	}
	return nil, err
}

// typed is a value of the parameter's type.
func (r Rule) typed(given any) (any, error) {
	_, isMap := given.(map[string]any)
	_, isList := given.([]any)
	switch r.Type {
	case "string":
		if isMap || isList {
			return nil, r.wrong("a text is wanted", given)
		}
		if float, is := given.(float64); is && float == math.Trunc(float) {
			return strconv.FormatFloat(float, 'f', 1, 64), nil // as Heat, which knows 1.0 from 1
		}
		return Converted("string", given)
	case "number":
		if truth, is := given.(bool); is {
			given = map[bool]int64{true: 1}[truth]
		}
		number, is := numeric(given)
		if !is {
			return nil, r.wrong("a number is wanted", given)
		}
		return number, nil
	case "boolean":
		truth, is := Boolean(given)
		if !is {
			return nil, r.wrong("true or false is wanted", given)
		}
		return truth, nil
	case "comma_delimited_list":
		if isMap {
			return nil, r.wrong("a list, or a text with commas, is wanted", given)
		}
		if !isList {
			return Text(given), nil
		}
	case "json":
		if text, is := given.(string); is && text != "" && !json.Valid([]byte(text)) {
			return nil, r.wrong("JSON is wanted", given)
		}
	}
	return given, nil
}

// violated reports the first constraint that a value breaks.
func (r Rule) violated(sent any) error {
	converted, err := Converted(r.Type, sent)
	if err != nil {
		return r.wrong(err.Error(), nil)
	}
	for _, constraint := range r.Constraints {
		problem := Violated(constraint, converted)
		if problem == "" {
			continue
		}
		if r.Hidden && Text(constraint["description"]) == "" {
			problem = "the value breaks the constraint " + Text(constraint)
		}
		return fault.New(fault.Invalid, "%s", problem)
	}
	return nil
}

func (r Rule) wrong(wanted string, given any) error {
	if r.Hidden || given == nil {
		return fault.New(fault.Invalid, "%s", wanted)
	}
	found := []rune(Text(given))
	if len(found) > 60 {
		found = append(found[:60], '…')
	}
	return fault.New(fault.Invalid, "%s, found %s", wanted, strconv.Quote(string(found)))
}

// Schema describes the values as a JSON schema does (draft 4).
func (r Rule) Schema() map[string]any {
	types := map[string][]any{"string": {"string"}, "number": {r.numberType()}, "boolean": {"boolean"}, "comma_delimited_list": {"string", "array"},
		"json": {"object", "array", "string"}}
	schema := map[string]any{"type": append(types[r.Type], "null")}
	single := r.Type == "string" || r.Type == "number"
	for _, constraint := range r.Constraints {
		if values, ok := constraint["allowed_values"].([]any); ok && single {
			schema["enum"] = values
		}
		if low, high, err := Bounds(constraint["range"]); err == nil && r.Type == "number" {
			if low != nil {
				schema["minimum"], schema["exclusiveMinimum"] = low, false // as Murano writes them
			}
			if high != nil {
				schema["maximum"], schema["exclusiveMaximum"] = high, false
			}
		}
		if pattern, ok := constraint["allowed_pattern"].(string); ok && r.Type == "string" {
			schema["pattern"] = "^(?:" + pattern + ")$"
		}
	}
	return schema
}

// numberType is integer, as Murano writes it for every number, unless a constraint has a fraction.
func (r Rule) numberType() string {
	for _, constraint := range r.Constraints {
		for _, value := range constraint {
			if hasFraction(value) {
				return "number"
			}
		}
	}
	return "integer"
}

func hasFraction(value any) bool {
	switch v := value.(type) {
	case float64:
		return v != math.Trunc(v)
	case []any:
		return slices.ContainsFunc(v, hasFraction)
	case map[string]any:
		for _, one := range v {
			if hasFraction(one) {
				return true
			}
		}
	}
	return false
}
