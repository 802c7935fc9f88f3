package heat

import (
	"errors"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/fault"
)

// This file is Heat's part of HOT's functions, which package hot evaluates.

// conditional are the functions that came with conditions.
var conditional = []string{"if", "equals", "not", "and", "or"}

// withConditions is the first version of templates that may have conditions.
const withConditions = "2016-10-14"

// checkFunctions finds functions that are not known here, or whose arguments have the wrong form.
func (t *Template) checkFunctions(value any, place string) error {
	return hot.Walk(value, func(value any) error {
		name, argument, ok := hot.Function(value)
		if !ok {
			return nil
		}
		if !slices.Contains(hot.Functions(), name) {
			return invalidTemplate("%s: the function \"%s\" is not supported by the local cloud's Heat; it knows %s", place, name, strings.Join(hot.Functions(), ", "))
		}
		if slices.Contains(conditional, name) && !t.since(withConditions) {
			return invalidTemplate("%s: the function \"%s\" is not there before the template version %s", place, name, withConditions)
		}
		switch name {
		case "get_resource", "get_file":
			if _, ok := argument.(string); !ok {
				return notValid("%s: The argument to \"%s\" must be a string", place, name)
			}
		case "get_attr":
			arguments, ok := argument.([]any)
			if !ok || len(arguments) < 2 {
				return notValid("%s: Arguments to \"get_attr\" must be of the form [resource_name, attribute, (path), ...]", place)
			}
			if _, ok := arguments[0].(string); !ok {
				return notValid("%s: Arguments to \"get_attr\" must begin with the name of a resource", place)
			}
		case "get_param":
			if arguments := hot.List(argument); len(arguments) == 0 {
				return notValid("%s: Function \"get_param\" must have arguments", place)
			} else if _, ok := arguments[0].(string); !ok {
				return notValid("%s: The argument to \"get_param\" must be the name of a parameter", place)
			}
		}
		return nil
	})
}

// since reports whether the template's version is this one or a later one.
func (t *Template) since(version string) bool {
	return slices.Index(versions, t.Version) >= slices.Index(versions, version)
}

// resolve puts values in place of functions.
func resolve(value any, s hot.Scope) (any, error) {
	value, err := s.Resolve(value)
	return value, inHeat(err)
}

// inHeat is an error as Heat has it.
func inHeat(err error) error {
	var known *Error
	if err == nil || errors.As(err, &known) || fault.KindOf(err) != fault.Invalid {
		return err
	}
	return notValid("%v", err)
}
