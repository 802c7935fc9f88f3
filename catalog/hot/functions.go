// Package hot evaluates HOT, the language of Heat's templates: its functions, its conditions, and the values of parameters
// (https://docs.openstack.org/heat/zed/template_guide/hot_spec.html). Whatever makes stacks shares it.
package hot

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/internal/fault"
)

// Scope is the context of functions, which are maps of one key that represent a value. Values have JSON's types.
type Scope struct {
	Parameters map[string]any
	Conditions map[string]any // as the template defines them
	Files      map[string]string
	// Reference evaluates get_resource, and Attribute get_attr; its name is "" for all attributes.
	Reference func(resource string) (any, error)
	Attribute func(resource, name string) (any, error)

	deciding []string // the conditions that are being decided
	room     *room
}

// function gets its argument as the template has it when it is lazy, and else with values in place of functions.
type function struct {
	call func(s Scope, argument any) (any, error)
	lazy bool
}

// foreign are functions that need a stack around this one.
var foreign = []string{"resource_facade"}

func functions() map[string]function {
	return map[string]function{
		"get_param": {call: getParam}, "get_resource": {call: getResource}, "get_attr": {call: getAttr}, "get_file": {call: getFile},
		"str_replace": {call: strReplace}, "str_replace_strict": {call: strReplaceStrict}, "str_replace_vstrict": {call: strReplaceVeryStrict},
		"list_join": {call: listJoin}, "str_split": {call: strSplit}, "list_concat": {call: listConcat}, "list_concat_unique": {call: listConcatUnique},
		"map_merge": {call: mapMerge}, "map_replace": {call: mapReplace}, "digest": {call: digest}, "contains": {call: contains},
		"filter": {call: filter}, "make_url": {call: makeURL}, "repeat": {call: repeat, lazy: true}, "yaql": {call: query},
		"if": {call: choose, lazy: true}, "equals": {call: equals}, "not": {call: not, lazy: true}, "and": {call: and, lazy: true}, "or": {call: or, lazy: true},
	}
}

// Function reports whether a value is a function, and which: one of Functions, or an unknown one.
func Function(value any) (name string, argument any, ok bool) {
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

// Functions returns the names of the known functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions())) }

// Walk visits a value and all values in it, until one visit fails.
func Walk(value any, visit func(any) error) error {
	if err := visit(value); err != nil {
		return err
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if err := Walk(value[key], visit); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range value {
			if err := Walk(element, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// Mentioned are the names that a value gives to these functions.
func Mentioned(value any, by ...string) map[string]bool {
	found := map[string]bool{}
	_ = Walk(value, func(value any) error {
		if name, argument, ok := Function(value); ok && slices.Contains(by, name) {
			found[Text(first(argument))] = true
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

// Resolve puts values in place of functions.
func (s Scope) Resolve(value any) (any, error) {
	s = s.bounded()
	if name, argument, ok := Function(value); ok {
		called, known := functions()[name]
		if !known {
			return nil, fmt.Errorf("the function %q is not known", name)
		}
		if !called.lazy {
			var err error
			if argument, err = s.Resolve(argument); err != nil {
				return nil, err
			}
		}
		if err := s.step(1); err != nil {
			return nil, err
		}
		result, err := called.call(s, argument)
		if err == nil {
			err = s.made(result)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return result, nil
	}
	switch value := value.(type) {
	case map[string]any:
		resolved := make(map[string]any, len(value))
		for key, element := range value {
			one, err := s.Resolve(element)
			if err != nil {
				return nil, err
			}
			resolved[key] = one
		}
		return resolved, nil
	case []any:
		resolved := make([]any, len(value))
		for i, element := range value {
			one, err := s.Resolve(element)
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

func getParam(s Scope, argument any) (any, error) {
	path := List(argument)
	if len(path) == 0 {
		return nil, wrong("the name of a parameter is missing")
	}
	value, ok := s.Parameters[Text(path[0])]
	if !ok {
		return nil, wrong("the parameter %s was not provided", Text(path[0]))
	}
	return descend(value, path[1:]), nil
}

func getResource(s Scope, argument any) (any, error) {
	if s.Reference == nil {
		return nil, wrong("resources are not known here")
	}
	return s.Reference(Text(argument))
}

func getAttr(s Scope, argument any) (any, error) {
	path := List(argument)
	if len(path) == 0 {
		return nil, wrong("the name of a resource is missing")
	}
	if s.Attribute == nil {
		return nil, wrong("resources are not known here")
	}
	attribute := "" // all
	if len(path) > 1 {
		attribute = Text(path[1])
	}
	value, err := s.Attribute(Text(path[0]), attribute)
	if err != nil || len(path) < 3 {
		return value, err
	}
	return descend(value, path[2:]), nil
}

func getFile(s Scope, argument any) (any, error) {
	content, ok := s.Files[Text(argument)]
	if !ok {
		return nil, wrong("there is no file %s", Text(argument))
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

// replacing charges the growth of a text by a replacement.
func (s Scope) replacing(text, old, other string) error {
	if err := s.step(1 + len(text)>>10); err != nil {
		return err
	}
	return s.take(int64(strings.Count(text, old)) * int64(len(other)))
}

// strReplace replaces the longest keys first, and looks at nothing twice.
func strReplace(s Scope, argument any) (any, error) {
	template, params, keys, err := replacing(argument)
	if err != nil {
		return nil, err
	}
	var pairs []string
	for _, key := range keys {
		if key == "" {
			continue
		}
		value, err := s.text(params[key])
		if err == nil {
			err = s.replacing(template, key, value)
		}
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, key, value)
	}
	return strings.NewReplacer(pairs...).Replace(template), nil
}

func strReplaceStrict(s Scope, argument any) (any, error) {
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

func strReplaceVeryStrict(s Scope, argument any) (any, error) {
	_, params, keys, err := replacing(argument)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if params[key] == nil || params[key] == "" {
			return nil, wrong("%q has no value", key)
		}
	}
	return strReplaceStrict(s, argument)
}

func listJoin(s Scope, argument any) (any, error) {
	arguments, ok := argument.([]any)
	if !ok || len(arguments) < 2 {
		return nil, wrong("[delimiter, list, …] is wanted")
	}
	delimiter, err := s.text(arguments[0])
	if err != nil {
		return nil, err
	}
	var parts []string
	for _, argument := range arguments[1:] {
		list, ok := argument.([]any)
		if !ok && argument != nil {
			return nil, wrong("%s is no list", shown(argument))
		}
		for _, element := range list {
			part, err := s.text(element)
			if err == nil {
				err = s.take(int64(len(delimiter)))
			}
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, delimiter), nil
}

func strSplit(s Scope, argument any) (any, error) {
	arguments, ok := argument.([]any)
	if !ok || len(arguments) < 2 {
		return nil, wrong("[delimiter, text, index] is wanted")
	}
	delimiter, err := s.text(arguments[0])
	if err != nil {
		return nil, err
	}
	text, err := s.text(arguments[1])
	if err == nil {
		err = s.take(32 * int64(strings.Count(text, delimiter)))
	}
	if err != nil {
		return nil, err
	}
	var parts []any
	for part := range strings.SplitSeq(text, delimiter) {
		parts = append(parts, part)
	}
	if len(arguments) == 2 {
		return parts, nil
	}
	index, err := strconv.Atoi(shown(arguments[2]))
	if err != nil || index < 0 || index >= len(parts) {
		return nil, wrong("there are %d parts, and no index %s", len(parts), shown(arguments[2]))
	}
	return parts[index], nil
}

func listConcat(s Scope, argument any) (any, error) {
	result := []any{}
	for _, one := range List(argument) {
		list, ok := one.([]any)
		if !ok && one != nil {
			return nil, wrong("%s is no list", shown(one))
		}
		if err := s.take(16 * int64(len(list))); err != nil {
			return nil, err
		}
		result = append(result, list...)
	}
	return result, nil
}

func listConcatUnique(s Scope, argument any) (any, error) {
	all, err := listConcat(s, argument)
	if err != nil {
		return nil, err
	}
	unique := []any{}
	for _, one := range all.([]any) {
		if err := s.step(len(unique)); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(unique, func(other any) bool { return reflect.DeepEqual(one, other) }) {
			unique = append(unique, one)
		}
	}
	return unique, nil
}

func mapMerge(s Scope, argument any) (any, error) {
	result := map[string]any{}
	for _, one := range List(argument) {
		object, ok := one.(map[string]any)
		if !ok && one != nil {
			return nil, wrong("%s is no map", shown(one))
		}
		if err := s.step(len(object)); err != nil {
			return nil, err
		}
		maps.Copy(result, object)
	}
	return result, nil
}

func mapReplace(_ Scope, argument any) (any, error) {
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
			key = Text(other)
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

func digest(s Scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[algorithm, text] is wanted")
	}
	text, err := s.text(arguments[1])
	if err != nil {
		return nil, err
	}
	content := []byte(text)
	switch shown(arguments[0]) {
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
	return nil, wrong("the algorithm %s is not known: there are md5, sha1, sha256 and sha512", shown(arguments[0]))
}

func contains(s Scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[value, sequence] is wanted")
	}
	if in, ok := arguments[1].(string); ok {
		part, err := s.text(arguments[0])
		return strings.Contains(in, part), err
	}
	list, _ := arguments[1].([]any)
	if err := s.step(len(list)); err != nil {
		return nil, err
	}
	return slices.ContainsFunc(list, func(one any) bool { return reflect.DeepEqual(one, arguments[0]) }), nil
}

func filter(s Scope, argument any) (any, error) {
	arguments, _ := argument.([]any)
	if len(arguments) != 2 {
		return nil, wrong("[values, list] is wanted")
	}
	values, _ := arguments[0].([]any)
	list, _ := arguments[1].([]any)
	left := []any{}
	for _, one := range list {
		if err := s.step(len(values)); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(values, func(other any) bool { return reflect.DeepEqual(one, other) }) {
			left = append(left, one)
		}
	}
	return left, nil
}

func makeURL(s Scope, argument any) (any, error) {
	parts, ok := argument.(map[string]any)
	if !ok {
		return nil, wrong("a map is wanted")
	}
	if err := s.made(parts); err != nil {
		return nil, err
	}
	made := url.URL{Scheme: Text(parts["scheme"]), Host: Text(parts["host"]), Path: Text(parts["path"]), Fragment: Text(parts["fragment"])}
	if strings.Contains(made.Host, ":") && !strings.HasPrefix(made.Host, "[") {
		made.Host = "[" + made.Host + "]"
	}
	if port := Text(parts["port"]); port != "" {
		made.Host += ":" + port
	}
	switch name, password := Text(parts["username"]), Text(parts["password"]); {
	case password != "":
		made.User = url.UserPassword(name, password)
	case name != "":
		made.User = url.User(name)
	}
	query := url.Values{}
	asked, _ := parts["query"].(map[string]any)
	for key, value := range asked {
		query.Set(key, Text(value))
	}
	made.RawQuery = query.Encode()
	return made.String(), nil
}

// repeat makes a list of a template: one element for each combination of the values, the last name's changing the fastest.
func repeat(s Scope, argument any) (any, error) {
	object, _ := argument.(map[string]any)
	template, has := object["template"]
	each, isMap := object["for_each"].(map[string]any)
	if !has || !isMap || len(each) == 0 {
		return nil, wrong(`a map with "template" and "for_each", a map, is wanted`)
	}
	together := false
	if value, given := object["permutations"]; given {
		resolved, err := s.Resolve(value)
		if err != nil {
			return nil, err
		}
		all, ok := Boolean(resolved)
		if !ok {
			return nil, wrong("permutations is true or false")
		}
		together = !all
	}
	names := slices.Sorted(maps.Keys(each))
	values := map[string][]any{}
	for _, name := range names {
		resolved, err := s.Resolve(each[name])
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
			return nil, wrong("%s is to be repeated for %s, which is no list", name, shown(resolved))
		}
	}
	if err := s.rounds(values, together); err != nil {
		return nil, err
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
		one, err := s.substituted(template, round)
		if err == nil {
			one, err = s.Resolve(one)
		}
		if err != nil {
			return nil, err
		}
		result = append(result, one)
	}
	return result, nil
}

// rounds takes the room of a repetition before it is made.
func (s Scope) rounds(values map[string][]any, together bool) error {
	count := int64(1)
	for _, list := range values {
		if count *= int64(len(list)); together {
			count = int64(len(list))
		}
		if count > maxSteps {
			break
		}
	}
	if err := s.take(count * int64(len(values)) * ofValue); err != nil {
		return err
	}
	return s.step(int(count))
}

// ofValue is about how many bytes a value takes that a round of a repetition has for a name.
const ofValue = 256

// substituted is a template with values in place of names: a text that is a name becomes its value.
func (s Scope) substituted(template any, values map[string]any) (any, error) {
	if err := s.step(1); err != nil {
		return nil, err
	}
	switch v := template.(type) {
	case string:
		if value, ok := values[v]; ok {
			return value, nil
		}
		for _, name := range slices.SortedFunc(maps.Keys(values), func(a, b string) int { return len(b) - len(a) }) {
			if !strings.Contains(v, name) {
				continue
			}
			value, err := s.text(values[name])
			if err == nil {
				err = s.replacing(v, name, value)
			}
			if err != nil {
				return nil, err
			}
			v = strings.ReplaceAll(v, name, value)
		}
		return v, s.take(int64(len(v)))
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, item := range v {
			named, err := s.substituted(key, values)
			if err != nil {
				return nil, err
			}
			name, err := s.text(named)
			if err != nil {
				return nil, err
			}
			if made[name], err = s.substituted(item, values); err != nil {
				return nil, err
			}
		}
		return made, nil
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			var err error
			if made[i], err = s.substituted(item, values); err != nil {
				return nil, err
			}
		}
		return made, nil
	}
	return template, nil
}
