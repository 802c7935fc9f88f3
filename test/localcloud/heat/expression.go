package heat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// This file is HOT's functions: maps of one key that stand for a value.

// foreign are functions of HOT that are not here; what else is a map of one key is just that.
var foreign = []string{
	"conditions", "contains", "digest", "equals", "filter", "if", "make_url", "map_replace", "not", "and", "or", "repeat", "resource_facade",
	"str_replace_strict", "str_replace_vstrict", "yaql", "list_concat_unique",
}

// scope is what functions can ask.
type scope struct {
	parameters map[string]any
	files      map[string]string
	reference  func(resource string) (any, error)
	attribute  func(resource, name string) (any, error)
}

type function func(s scope, argument any) (any, error)

func functions() map[string]function {
	return map[string]function{
		"get_param": getParam, "get_resource": getResource, "get_attr": getAttr, "get_file": getFile, "str_replace": strReplace,
		"list_join": listJoin, "str_split": strSplit, "list_concat": listConcat, "map_merge": mapMerge,
	}
}

func functionName(value any) (string, any, bool) {
	object, ok := value.(map[string]any)
	if !ok || len(object) != 1 {
		return "", nil, false
	}
	for key, argument := range object {
		return key, argument, true
	}
	return "", nil, false
}

// checkFunctions finds functions that are not known here, or whose arguments have the wrong form.
func checkFunctions(value any, place string) error {
	known := functions()
	return walk(value, func(value any) error {
		name, argument, ok := functionName(value)
		if !ok {
			return nil
		}
		if slices.Contains(foreign, name) || strings.HasPrefix(name, "Fn::") || name == "Ref" {
			return invalidTemplate("%s: the function \"%s\" is not supported by the local cloud's Heat; it knows %s", place, name, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
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
			if arguments := listOf(argument); len(arguments) == 0 {
				return notValid("%s: Function \"get_param\" must have arguments", place)
			} else if _, ok := arguments[0].(string); !ok {
				return notValid("%s: The argument to \"get_param\" must be the name of a parameter", place)
			}
		}
		return nil
	})
}

func walk(value any, visit func(any) error) error {
	if err := visit(value); err != nil {
		return err
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := walk(value[key], visit); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := walk(element, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// references are the names that a value mentions.
type references struct{ resources, parameters map[string]bool }

func referencesOf(value any) references {
	found := references{map[string]bool{}, map[string]bool{}}
	_ = walk(value, func(value any) error {
		name, argument, ok := functionName(value)
		if !ok {
			return nil
		}
		first, _ := argument.(string)
		if arguments, ok := argument.([]any); ok && len(arguments) > 0 {
			first, _ = arguments[0].(string)
		}
		switch name {
		case "get_resource", "get_attr":
			found.resources[first] = true
		case "get_param":
			found.parameters[first] = true
		}
		return nil
	})
	return found
}

// resolve puts values in place of functions.
func resolve(value any, s scope) (any, error) {
	if name, argument, ok := functionName(value); ok {
		if call, known := functions()[name]; known {
			argument, err := resolve(argument, s)
			if err != nil {
				return nil, err
			}
			result, err := call(s, argument)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			return result, nil
		}
	}
	switch value := value.(type) {
	case map[string]any:
		resolved := make(map[string]any, len(value))
		for key, element := range value {
			one, err := resolve(element, s)
			if err != nil {
				return nil, err
			}
			resolved[key] = one
		}
		return resolved, nil
	case []any:
		resolved := make([]any, len(value))
		for i, element := range value {
			one, err := resolve(element, s)
			if err != nil {
				return nil, err
			}
			resolved[i] = one
		}
		return resolved, nil
	}
	return value, nil
}

func getParam(s scope, argument any) (any, error) {
	path := listOf(argument)
	if len(path) == 0 {
		return nil, notValid("the name of a parameter is missing")
	}
	name := text(path[0])
	value, ok := s.parameters[name]
	if !ok {
		return nil, invalid("UserParameterMissing", "The Parameter (%s) was not provided.", name)
	}
	return descend(value, path[1:]), nil
}

func getResource(s scope, argument any) (any, error) { return s.reference(text(argument)) }

func getAttr(s scope, argument any) (any, error) {
	path := listOf(argument)
	if len(path) < 2 {
		return nil, notValid("resource and attribute are wanted")
	}
	value, err := s.attribute(text(path[0]), text(path[1]))
	if err != nil {
		return nil, err
	}
	return descend(value, path[2:]), nil
}

func getFile(s scope, argument any) (any, error) {
	content, ok := s.files[text(argument)]
	if !ok {
		return nil, notValid("No content found in the \"files\" section for get_file path: %s", text(argument))
	}
	return content, nil
}

// strReplace replaces the longest keys first and looks at nothing twice.
func strReplace(_ scope, argument any) (any, error) {
	object, _ := argument.(map[string]any)
	template, ok := object["template"].(string)
	params, isMap := object["params"].(map[string]any)
	if !ok || !isMap {
		return nil, notValid("\"str_replace\" wants a map with \"template\", a string, and \"params\", a map")
	}
	keys := slices.SortedFunc(maps.Keys(params), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, key := range keys {
		if key != "" {
			pairs = append(pairs, key, text(params[key]))
		}
	}
	return strings.NewReplacer(pairs...).Replace(template), nil
}

func listJoin(_ scope, argument any) (any, error) {
	arguments, ok := argument.([]any)
	if !ok || len(arguments) < 2 {
		return nil, notValid("\"list_join\" wants [delimiter, list, …]")
	}
	delimiter, ok := arguments[0].(string)
	if !ok {
		return nil, notValid("\"list_join\" wants a string as delimiter")
	}
	var parts []string
	for _, argument := range arguments[1:] {
		list, ok := argument.([]any)
		if !ok && argument != nil {
			return nil, notValid("\"list_join\" must operate on a list")
		}
		for _, element := range list {
			parts = append(parts, text(element))
		}
	}
	return strings.Join(parts, delimiter), nil
}

func strSplit(_ scope, argument any) (any, error) {
	arguments, ok := argument.([]any)
	if !ok || len(arguments) < 2 {
		return nil, notValid("\"str_split\" wants [delimiter, string, index]")
	}
	var parts []any
	for part := range strings.SplitSeq(text(arguments[1]), text(arguments[0])) {
		parts = append(parts, part)
	}
	if len(arguments) == 2 {
		return parts, nil
	}
	index, err := strconv.Atoi(text(arguments[2]))
	if err != nil || index < 0 || index >= len(parts) {
		return nil, notValid("\"str_split\" has %d parts, and no index %v", len(parts), arguments[2])
	}
	return parts[index], nil
}

func listConcat(_ scope, argument any) (any, error) {
	result := []any{}
	for _, one := range listOf(argument) {
		list, ok := one.([]any)
		if !ok && one != nil {
			return nil, notValid("\"list_concat\" wants lists")
		}
		result = append(result, list...)
	}
	return result, nil
}

func mapMerge(_ scope, argument any) (any, error) {
	result := map[string]any{}
	for _, one := range listOf(argument) {
		object, ok := one.(map[string]any)
		if !ok && one != nil {
			return nil, notValid("\"map_merge\" wants maps")
		}
		maps.Copy(result, object)
	}
	return result, nil
}

// descend follows a path into maps and lists; what is not there is null, as in Heat.
func descend(value any, path []any) any {
	for _, step := range path {
		switch current := value.(type) {
		case map[string]any:
			value = current[text(step)]
		case []any:
			index, err := strconv.Atoi(text(step))
			if err != nil || index < 0 || index >= len(current) {
				return nil
			}
			value = current[index]
		default:
			return nil
		}
	}
	return value
}

// text is a value within a string: maps and lists as JSON, null as nothing.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case float64:
		return strconv.FormatFloat(value, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(value)
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(data)
}
