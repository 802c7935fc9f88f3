package hot

import (
	"reflect"
	"slices"
)

// Decide evaluates a condition: the name of one, a function, or a boolean. Conditions can use parameters only.
func (s Scope) Decide(condition any) (bool, error) {
	s = s.bounded()
	if err := s.step(1); err != nil {
		return false, err
	}
	if name, ok := condition.(string); ok {
		defined, known := s.Conditions[name]
		if !known {
			if is, ok := Boolean(name); ok {
				return is, nil
			}
			return false, wrong("there is no condition %s", name)
		}
		if slices.Contains(s.deciding, name) {
			return false, wrong("the condition %s depends on itself", name)
		}
		s.deciding = append(slices.Clone(s.deciding), name)
		return s.Decide(defined)
	}
	s.Reference, s.Attribute = nil, nil
	resolved, err := s.Resolve(condition)
	if err != nil {
		return false, err
	}
	if is, ok := Boolean(resolved); ok {
		return is, nil
	}
	return false, wrong("%s is neither true nor false", shown(resolved))
}

// Chosen returns a value with the branch of every "if" that its condition chooses; other functions stay as they are. An "if" without a branch is left out
// of its map or list. So branches that a condition excludes are never evaluated.
func (s Scope) Chosen(value any) (any, error) {
	made, _, err := s.bounded().chosen(value)
	return made, err
}

func (s Scope) chosen(value any) (made any, there bool, err error) {
	if name, argument, ok := Function(value); ok && name == "if" {
		branch, there, err := s.branch(argument)
		if err != nil || !there {
			return nil, false, err
		}
		return s.chosen(branch)
	}
	switch value := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(value))
		for key, element := range value {
			one, there, err := s.chosen(element)
			if err != nil {
				return nil, false, err
			}
			if there {
				made[key] = one
			}
		}
		return made, true, nil
	case []any:
		made := make([]any, 0, len(value))
		for _, element := range value {
			one, there, err := s.chosen(element)
			if err != nil {
				return nil, false, err
			}
			if there {
				made = append(made, one)
			}
		}
		return made, true, nil
	}
	return value, true, nil
}

// branch returns the branch of an "if" for its condition, if there is one.
func (s Scope) branch(argument any) (value any, there bool, err error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 && len(arguments) != 3 {
		return nil, false, wrong("if: [condition, value, other value] is wanted")
	}
	is, err := s.Decide(arguments[0])
	switch {
	case err != nil:
		return nil, false, err
	case is:
		return arguments[1], true, nil
	case len(arguments) == 3:
		return arguments[2], true, nil
	}
	return nil, false, nil
}

func choose(s Scope, argument any) (any, error) {
	value, _, err := s.branch(argument)
	if err != nil {
		return nil, err
	}
	return s.Resolve(value)
}

func equals(_ Scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[value, value] is wanted")
	}
	return reflect.DeepEqual(arguments[0], arguments[1]), nil
}

func not(s Scope, argument any) (any, error) {
	is, err := s.Decide(argument)
	return !is, err
}

func and(s Scope, argument any) (any, error) { return s.all(argument, true) }

func or(s Scope, argument any) (any, error) { return s.all(argument, false) }

// all is whether all conditions of a list have this truth; the other truth as soon as one has it.
func (s Scope) all(argument any, truth bool) (any, error) {
	for _, one := range List(argument) {
		is, err := s.Decide(one)
		if err != nil {
			return nil, err
		}
		if is != truth {
			return is, nil
		}
	}
	return truth, nil
}
