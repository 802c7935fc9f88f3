package heat

import (
	"maps"
	"slices"

	"github.com/burano/burano/catalog/hot"
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

// isPseudo reports whether Heat sets the parameter itself.
func isPseudo(name string) bool {
	return slices.Contains([]string{"OS::stack_id", "OS::stack_name", "OS::project_id"}, name)
}

func (t *Template) addParameter(name string, body map[string]any) error {
	p := Parameter{Type: hot.Text(body["type"]), Label: hot.Text(body["label"]), Description: hot.Text(body["description"])}
	p.Default = body["default"]
	p.HasDefault = p.Default != nil // null is none
	p.Hidden, _ = body["hidden"].(bool)
	p.Immutable, _ = body["immutable"].(bool)
	if !slices.Contains(hot.Types(), p.Type) {
		return invalid("InvalidSchemaError", "Invalid type (%s) of parameter %s: it is one of string, number, json, comma_delimited_list, boolean", p.Type, name)
	}
	for key := range body {
		if !slices.Contains([]string{"type", "label", "description", "default", "hidden", "immutable", "constraints", "tags"}, key) {
			return invalid("InvalidSchemaError", "Invalid key '%s' for parameter %s", key, name)
		}
	}
	for _, one := range hot.List(body["constraints"]) {
		constraint, ok := one.(map[string]any)
		if !ok {
			return invalid("InvalidSchemaError", "Invalid parameter constraints for parameter %s, expected a list of maps", name)
		}
		p.Constraints = append(p.Constraints, constraint)
	}
	if p.HasDefault {
		if _, err := p.value(name, p.Default); err != nil {
			return invalid("InvalidSchemaError", "Invalid default %s (%v)", hot.Text(p.Default), err)
		}
	}
	t.Parameters[name] = p
	return nil
}

// parametersOf gives every parameter of the template its value: the given one, or its default.
func (t *Template) parametersOf(given map[string]any) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := t.Parameters[name]; !ok {
			return nil, invalid("UnknownUserParameter", "The Parameter (%s) was not defined in template.", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Parameters)) {
		parameter := t.Parameters[name]
		value := given[name]
		if value == nil { // as if it had not been given
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

// value converts a given value to the parameter's type and checks the constraints.
func (p Parameter) value(name string, given any) (any, error) {
	value, err := hot.Converted(p.Type, given)
	if err != nil {
		return nil, notValid("Parameter '%s' is invalid: %v", name, err)
	}
	for _, constraint := range p.Constraints {
		if problem := hot.Violated(constraint, value); problem != "" {
			return nil, notValid("Parameter '%s' is invalid: %s", name, problem)
		}
	}
	return value, nil
}
