package direct

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/fault"
)

// This file is the functions of HOT (https://docs.openstack.org/heat/zed/template_guide/hot_spec.html#intrinsic-functions): maps of one key
// that stand for a value.

// scope is what functions can ask.
type scope struct {
	parameters map[string]any
	conditions map[string]any // as the template defines them
	files      map[string]string
	reference  func(resource string) (any, error)
	attribute  func(resource, name string) (any, error)
	deciding   []string // the conditions that are being decided
}

// function gets its argument as the template has it when it is lazy, and else with values in place of functions.
type function struct {
	call func(s scope, argument any) (any, error)
	lazy bool
}

// foreign are functions that need an engine of their own, or a stack around this one.
var foreign = []string{"yaql", "resource_facade"}

func functions() map[string]function {
	return map[string]function{
		"get_param": {call: getParam}, "get_resource": {call: getResource}, "get_attr": {call: getAttr}, "get_file": {call: getFile},
		"str_replace": {call: strReplace}, "str_replace_strict": {call: strReplaceStrict}, "str_replace_vstrict": {call: strReplaceVeryStrict},
		"list_join": {call: listJoin}, "str_split": {call: strSplit}, "list_concat": {call: listConcat}, "list_concat_unique": {call: listConcatUnique},
		"map_merge": {call: mapMerge}, "map_replace": {call: mapReplace}, "digest": {call: digest}, "contains": {call: contains},
		"filter": {call: filter}, "make_url": {call: makeURL}, "repeat": {call: repeat, lazy: true},
		"if": {call: choose, lazy: true}, "equals": {call: equals}, "not": {call: not, lazy: true}, "and": {call: and, lazy: true}, "or": {call: or, lazy: true},
	}
}

// functionIn tells whether a value is a function, and which.
func functionIn(value any) (name string, argument any, ok bool) {
	object, isMap := value.(map[string]any)
	if !isMap || len(object) != 1 {
		return "", nil, false
	}
	for key, argument := range object {
		_, known := functions()[key]
		return key, argument, known || slices.Contains(foreign, key) || strings.HasPrefix(key, "Fn::") || key == "Ref"
	}
	return "", nil, false
}

// checkFunctions finds functions that are not known here.
func checkFunctions(value any, place string) error {
	return walk(value, func(value any) error {
		name, _, ok := functionIn(value)
		if _, known := functions()[name]; ok && !known {
			return fault.New(fault.Invalid, "%s: the function %q works only with Heat, and this stack is made without it (burano serve --orchestration)", place, name)
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

// mentioned are the names that a value gives to these functions.
func mentioned(value any, by ...string) map[string]bool {
	found := map[string]bool{}
	_ = walk(value, func(value any) error {
		if name, argument, ok := functionIn(value); ok && slices.Contains(by, name) {
			found[text(first(argument))] = true
		}
		return nil
	})
	return found
}

func first(argument any) any {
	if list, ok := argument.([]any); ok {
		if len(list) == 0 {
			return nil
		}
		return list[0]
	}
	return argument
}

// resolve puts values in place of functions.
func (s scope) resolve(value any) (any, error) {
	if name, argument, ok := functionIn(value); ok {
		called, known := functions()[name]
		if !known {
			return nil, fmt.Errorf("the function %q is not known", name)
		}
		if !called.lazy {
			var err error
			if argument, err = s.resolve(argument); err != nil {
				return nil, err
			}
		}
		result, err := called.call(s, argument)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return result, nil
	}
	switch value := value.(type) {
	case map[string]any:
		resolved := make(map[string]any, len(value))
		for key, element := range value {
			one, err := s.resolve(element)
			if err != nil {
				return nil, err
			}
			resolved[key] = one
		}
		return resolved, nil
	case []any:
		resolved := make([]any, len(value))
		for i, element := range value {
			one, err := s.resolve(element)
			if err != nil {
				return nil, err
			}
			resolved[i] = one
		}
		return resolved, nil
	}
	return value, nil
}

func wrong(format string, args ...any) error { return fault.New(fault.Invalid, format, args...) }

func getParam(s scope, argument any) (any, error) {
	path := listOf(argument)
	if len(path) == 0 {
		return nil, wrong("the name of a parameter is missing")
	}
	value, ok := s.parameters[text(path[0])]
	if !ok {
		return nil, wrong("the parameter %s was not provided", text(path[0]))
	}
	return descend(value, path[1:]), nil
}

func getResource(s scope, argument any) (any, error) { return s.reference(text(argument)) }

func getAttr(s scope, argument any) (any, error) {
	path := listOf(argument)
	if len(path) == 0 {
		return nil, wrong("the name of a resource is missing")
	}
	attribute := "" // all
	if len(path) > 1 {
		attribute = text(path[1])
	}
	value, err := s.attribute(text(path[0]), attribute)
	if err != nil || len(path) < 3 {
		return value, err
	}
	return descend(value, path[2:]), nil
}

func getFile(s scope, argument any) (any, error) {
	content, ok := s.files[text(argument)]
	if !ok {
		return nil, wrong("there is no file %s", text(argument))
	}
	return content, nil
}

// replacing reads the arguments of str_replace and its kin.
func replacing(argument any) (template string, params map[string]any, keys []string, err error) {
	object, _ := argument.(map[string]any)
	template, isText := object["template"].(string)
	params, isMap := object["params"].(map[string]any)
	if !isText || !isMap {
		return "", nil, nil, wrong(`a map with "template", a text, and "params", a map, is wanted`)
	}
	keys = slices.SortedFunc(maps.Keys(params), func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return template, params, keys, nil
}

// strReplace replaces the longest keys first, and looks at nothing twice.
func strReplace(_ scope, argument any) (any, error) {
	template, params, keys, err := replacing(argument)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, key := range keys {
		if key != "" {
			pairs = append(pairs, key, text(params[key]))
		}
	}
	return strings.NewReplacer(pairs...).Replace(template), nil
}

func strReplaceStrict(s scope, argument any) (any, error) {
	template, _, keys, err := replacing(argument)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if !strings.Contains(template, key) {
			return nil, wrong("the template has no %q", key)
		}
	}
	return strReplace(s, argument)
}

func strReplaceVeryStrict(s scope, argument any) (any, error) {
	_, params, keys, err := replacing(argument)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if text(params[key]) == "" {
			return nil, wrong("%q has no value", key)
		}
	}
	return strReplaceStrict(s, argument)
}

func listJoin(_ scope, argument any) (any, error) {
	arguments, ok := argument.([]any)
	if !ok || len(arguments) < 2 {
		return nil, wrong("[delimiter, list, …] is wanted")
	}
	var parts []string
	for _, argument := range arguments[1:] {
		list, ok := argument.([]any)
		if !ok && argument != nil {
			return nil, wrong("%s is no list", text(argument))
		}
		for _, element := range list {
			parts = append(parts, text(element))
		}
	}
	return strings.Join(parts, text(arguments[0])), nil
}

func strSplit(_ scope, argument any) (any, error) {
	arguments, ok := argument.([]any)
	if !ok || len(arguments) < 2 {
		return nil, wrong("[delimiter, text, index] is wanted")
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
		return nil, wrong("there are %d parts, and no index %s", len(parts), text(arguments[2]))
	}
	return parts[index], nil
}

func listConcat(_ scope, argument any) (any, error) {
	result := []any{}
	for _, one := range listOf(argument) {
		list, ok := one.([]any)
		if !ok && one != nil {
			return nil, wrong("%s is no list", text(one))
		}
		result = append(result, list...)
	}
	return result, nil
}

func listConcatUnique(s scope, argument any) (any, error) {
	all, err := listConcat(s, argument)
	if err != nil {
		return nil, err
	}
	unique := []any{}
	for _, one := range all.([]any) {
		if !slices.ContainsFunc(unique, func(other any) bool { return reflect.DeepEqual(one, other) }) {
			unique = append(unique, one)
		}
	}
	return unique, nil
}

func mapMerge(_ scope, argument any) (any, error) {
	result := map[string]any{}
	for _, one := range listOf(argument) {
		object, ok := one.(map[string]any)
		if !ok && one != nil {
			return nil, wrong("%s is no map", text(one))
		}
		maps.Copy(result, object)
	}
	return result, nil
}

func mapReplace(_ scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[map, {keys: …, values: …}] is wanted")
	}
	object, isMap := arguments[0].(map[string]any)
	changes, isChange := arguments[1].(map[string]any)
	if !isMap || !isChange {
		return nil, wrong("[map, {keys: …, values: …}] is wanted")
	}
	keys, _ := changes["keys"].(map[string]any)
	values, _ := changes["values"].(map[string]any)
	result := map[string]any{}
	for key, value := range object {
		if other, ok := keys[key]; ok {
			key = text(other)
		}
		if name, ok := value.(string); ok {
			if other, ok := values[name]; ok {
				value = other
			}
		}
		result[key] = value
	}
	return result, nil
}

func digest(_ scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[algorithm, text] is wanted")
	}
	content := []byte(text(arguments[1]))
	switch text(arguments[0]) {
	case "md5":
		sum := md5.Sum(content)
		return hex.EncodeToString(sum[:]), nil
	case "sha1":
		sum := sha1.Sum(content)
		return hex.EncodeToString(sum[:]), nil
	case "sha256":
		sum := sha256.Sum256(content)
		return hex.EncodeToString(sum[:]), nil
	case "sha512":
		sum := sha512.Sum512(content)
		return hex.EncodeToString(sum[:]), nil
	}
	return nil, wrong("the algorithm %s is not known: there are md5, sha1, sha256 and sha512", text(arguments[0]))
}

func contains(_ scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[value, sequence] is wanted")
	}
	if in, ok := arguments[1].(string); ok {
		return strings.Contains(in, text(arguments[0])), nil
	}
	list, _ := arguments[1].([]any)
	return slices.ContainsFunc(list, func(one any) bool { return reflect.DeepEqual(one, arguments[0]) }), nil
}

func filter(_ scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[values, list] is wanted")
	}
	values, _ := arguments[0].([]any)
	list, _ := arguments[1].([]any)
	left := []any{}
	for _, one := range list {
		if !slices.ContainsFunc(values, func(other any) bool { return reflect.DeepEqual(one, other) }) {
			left = append(left, one)
		}
	}
	return left, nil
}

func makeURL(_ scope, argument any) (any, error) {
	parts, ok := argument.(map[string]any)
	if !ok {
		return nil, wrong("a map is wanted")
	}
	made := url.URL{Scheme: text(parts["scheme"]), Host: text(parts["host"]), Path: text(parts["path"]), Fragment: text(parts["fragment"])}
	if strings.Contains(made.Host, ":") && !strings.HasPrefix(made.Host, "[") {
		made.Host = "[" + made.Host + "]"
	}
	if port := text(parts["port"]); port != "" {
		made.Host += ":" + port
	}
	switch name, password := text(parts["username"]), text(parts["password"]); {
	case password != "":
		made.User = url.UserPassword(name, password)
	case name != "":
		made.User = url.User(name)
	}
	query := url.Values{}
	asked, _ := parts["query"].(map[string]any)
	for key, value := range asked {
		query.Set(key, text(value))
	}
	made.RawQuery = query.Encode()
	return made.String(), nil
}

// repeat makes a list of a template: one element for each combination of the values, the last name's changing the fastest.
func repeat(s scope, argument any) (any, error) {
	object, _ := argument.(map[string]any)
	template, has := object["template"]
	each, isMap := object["for_each"].(map[string]any)
	if !has || !isMap || len(each) == 0 {
		return nil, wrong(`a map with "template" and "for_each", a map, is wanted`)
	}
	together := false
	if value, given := object["permutations"]; given {
		resolved, err := s.resolve(value)
		if err != nil {
			return nil, err
		}
		all, ok := boolean(resolved)
		if !ok {
			return nil, wrong("permutations is true or false")
		}
		together = !all
	}
	names := slices.Sorted(maps.Keys(each))
	values := map[string][]any{}
	for _, name := range names {
		resolved, err := s.resolve(each[name])
		if err != nil {
			return nil, err
		}
		switch resolved := resolved.(type) {
		case []any:
			values[name] = resolved
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(resolved)) {
				values[name] = append(values[name], key)
			}
		case nil:
		default:
			return nil, wrong("%s is to be repeated for %s, which is no list", name, text(resolved))
		}
	}
	rounds := []map[string]any{{}}
	if together {
		rounds = nil
		for i := range values[names[0]] {
			round := map[string]any{}
			for _, name := range names {
				if len(values[name]) != len(values[names[0]]) {
					return nil, wrong("without permutations all lists have one length")
				}
				round[name] = values[name][i]
			}
			rounds = append(rounds, round)
		}
	} else {
		for _, name := range names {
			var longer []map[string]any
			for _, round := range rounds {
				for _, value := range values[name] {
					next := maps.Clone(round)
					next[name] = value
					longer = append(longer, next)
				}
			}
			rounds = longer
		}
	}
	result := []any{}
	for _, round := range rounds {
		one, err := s.resolve(substituted(template, round))
		if err != nil {
			return nil, err
		}
		result = append(result, one)
	}
	return result, nil
}

// substituted is a template with values in place of names: a text that is a name becomes its value.
func substituted(template any, values map[string]any) any {
	switch v := template.(type) {
	case string:
		if value, ok := values[v]; ok {
			return value
		}
		for _, name := range slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) }) {
			v = strings.ReplaceAll(v, name, text(values[name]))
		}
		return v
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, item := range v {
			made[text(substituted(key, values))] = substituted(item, values)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = substituted(item, values)
		}
		return made
	}
	return template
}

// decide is a condition's truth: a name of one, a function, or a truth.
func (s scope) decide(condition any) (bool, error) {
	if name, ok := condition.(string); ok {
		defined, known := s.conditions[name]
		if !known {
			if is, ok := boolean(name); ok {
				return is, nil
			}
			return false, wrong("there is no condition %s", name)
		}
		if slices.Contains(s.deciding, name) {
			return false, wrong("the condition %s depends on itself", name)
		}
		s.deciding = append(slices.Clone(s.deciding), name)
		return s.decide(defined)
	}
	resolved, err := s.resolve(condition)
	if err != nil {
		return false, err
	}
	if is, ok := boolean(resolved); ok {
		return is, nil
	}
	return false, wrong("%s is neither true nor false", text(resolved))
}

func choose(s scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 && len(arguments) != 3 {
		return nil, wrong("[condition, value, other value] is wanted")
	}
	is, err := s.decide(arguments[0])
	switch {
	case err != nil:
		return nil, err
	case is:
		return s.resolve(arguments[1])
	case len(arguments) == 3:
		return s.resolve(arguments[2])
	}
	return nil, nil
}

func equals(_ scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[value, value] is wanted")
	}
	return reflect.DeepEqual(arguments[0], arguments[1]), nil
}

func not(s scope, argument any) (any, error) {
	is, err := s.decide(argument)
	return !is, err
}

func and(s scope, argument any) (any, error) { return s.all(argument, true) }

func or(s scope, argument any) (any, error) { return s.all(argument, false) }

// all is whether all conditions of a list have this truth; the other truth as soon as one has it.
func (s scope) all(argument any, truth bool) (any, error) {
	for _, one := range listOf(argument) {
		is, err := s.decide(one)
		if err != nil {
			return nil, err
		}
		if is != truth {
			return is, nil
		}
	}
	return truth, nil
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

func listOf(value any) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return value
	}
	return []any{value}
}

// text is a value within a text: maps and lists as JSON, null as nothing.
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
