package muranopl

import (
	"crypto/rand"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/yaql"
)

// engineFunctions returns the functions that Murano's engine adds.
func engineFunctions(c *Class) []*yaql.Function {
	functions := []*yaql.Function{
		{Name: "base64encode", Kind: yaql.AsBoth, Doc: "the text in Base64", Params: []yaql.Param{{Name: "value", Type: aText}},
			Call: func(i *yaql.Invocation) (any, error) {
				return base64.StdEncoding.EncodeToString([]byte(i.Args[0].(string))), nil
			}},
		{Name: "base64decode", Kind: yaql.AsBoth, Doc: "the text that is written in Base64", Params: []yaql.Param{{Name: "value", Type: aText}},
			Call: func(i *yaql.Invocation) (any, error) {
				text, err := base64.StdEncoding.DecodeString(i.Args[0].(string))
				if err != nil {
					return nil, raised("binascii.Error", "%v", err)
				}
				return string(text), nil
			}},
		{Name: "pselect", Kind: yaql.AsMethod, Doc: "the values of an expression for all items, evaluated at the same time",
			Params: []yaql.Param{{Name: "collection", Type: func(value any) (any, bool) { items, ok := iterate(value); return items, ok }}, {Name: "composer", Lazy: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				items := i.Args[0].([]any)
				return mapAbreast(i.Context(), items, min(max(len(items), 2), maxAbreast), i.Args[1].(*yaql.Lambda))
			}},
		{Name: "bind", Kind: yaql.AsMethod, Doc: `the value with texts such as "$name" and "${a}-${b}" replaced`,
			Params: []yaql.Param{{Name: "obj"}, {Name: "mappings", Type: aMap}},
			Call:   func(i *yaql.Invocation) (any, error) { return bindTemplate(i.Args[0], i.Args[1].(*yaql.Dict)) }},
		{Name: "randomName", Kind: yaql.AsFunction, Doc: "a name that nothing else has; it begins with a letter, as names of stacks must",
			Call: func(*yaql.Invocation) (any, error) { return "n" + strings.ToLower(rand.Text())[:14], nil }},
		{Name: "decryptData", Kind: yaql.AsFunction, Doc: "an error: there is no key manager", Params: []yaql.Param{{Name: "value"}},
			Call: func(*yaql.Invocation) (any, error) {
				return nil, raised("castellan.common.exception.AuthTypeInvalidError", // as Murano without a key manager
					"decryptData() needs a key manager, and Burano uses none: take the value as it is, Burano seals secrets itself")
			}},
		{Name: "patch", Kind: yaql.AsMethod, Doc: "the value changed by a JSON patch (RFC 6902)",
			Params: []yaql.Param{{Name: "obj"}, {Name: "patch"}},
			Call:   func(i *yaql.Invocation) (any, error) { return patchValue(i.Args[0], i.Args[1]) }},
		{Name: "logger", Kind: yaql.AsFunction, Doc: "an object of class io.murano.system.Logger", Params: []yaql.Param{{Name: "loggerName", Type: aText}},
			Call: func(i *yaql.Invocation) (any, error) {
				class, err := c.classes.Class(i.Context(), "io.murano.system.Logger", "")
				if err != nil {
					return nil, noClass(err)
				}
				return c.instantiate(i.Context(), map[string]any{"?": map[string]any{"type": class.Type()}, "name": i.Args[0]}, nil)
			}},
	}
	if c.oldSyntax() {
		functions = append(functions, oldFunctions()...)
		for _, f := range append(objectFunctions(c), reflectionFunctions(c)...) {
			if slices.Contains([]string{"id", "cast", "super", "psuper", "type"}, f.Name) {
				method := *f
				method.Kind = yaql.AsMethod
				functions = append(functions, &method)
			}
		}
	}
	if c.Package.FullName() == "io.murano" {
		functions = append(functions, configFunctions()...)
	}
	return functions
}

// oldFunctions returns the functions of formats up to 1.1.
func oldFunctions() []*yaql.Function {
	number := func(value any) (any, bool) { n, ok := value.(int64); return n, ok }
	return []*yaql.Function{
		{Name: "substr", Kind: yaql.AsBoth, Doc: "a part of a text", Params: []yaql.Param{{Name: "string", Type: aText}, {Name: "start", Type: number},
			{Name: "length", Type: number, Optional: true, Default: int64(-1)}},
			Call: func(i *yaql.Invocation) (any, error) {
				runes := []rune(i.Args[0].(string))
				size := int64(len(runes))
				from, length := i.Args[1].(int64), i.Args[2].(int64)
				if from < 0 {
					from += size
				}
				from = min(max(from, 0), size)
				to := size
				if length >= 0 {
					to = min(size-from, length) + from
				}
				return string(runes[from:to]), nil
			}},
		{Name: "firstOrDefault", Kind: yaql.AsBoth, Doc: "the first item, or another value when there is none",
			Params: []yaql.Param{{Name: "collection", Type: func(value any) (any, bool) { items, ok := iterate(value); return items, ok }}, {Name: "default", Optional: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				if items := i.Args[0].([]any); len(items) > 0 {
					return items[0], nil
				}
				return i.Args[1], nil
			}},
	}
}

// configFunctions are config() of Murano's core library, which reads the settings of Murano's engine. Burano has none of these: the answer is
// null, as for one that is not set.
func configFunctions() []*yaql.Function {
	unset := func(*yaql.Invocation) (any, error) { return nil, nil }
	return []*yaql.Function{
		{Name: "config", Kind: yaql.AsFunction, Doc: "a setting of the operator's", Params: []yaql.Param{{Name: "group", Type: aText}, {Name: "name", Type: aText}}, Call: unset},
		{Name: "config", Kind: yaql.AsFunction, Doc: "a setting of the operator's that is in no group", Params: []yaql.Param{{Name: "name", Type: aText}}, Call: unset},
	}
}

var bindMacro = regexp.MustCompile(`\{(\w+)\}`)

// bindTemplate is bind(): texts that begin with $ are replaced.
func bindTemplate(value any, mappings *yaql.Dict) (any, error) {
	switch v := value.(type) {
	case string:
		if !strings.HasPrefix(v, "$") {
			return v, nil
		}
		if bindMacro.MatchString(v) {
			return bindMacro.ReplaceAllStringFunc(v[1:], func(found string) string {
				mapped, _ := mappings.Get(bindMacro.FindStringSubmatch(found)[1])
				return pythonText(mapped)
			}), nil
		}
		mapped, ok := mappings.Get(v[1:])
		if !ok {
			return nil, raised("KeyError", "bind() has no value for %q", v[1:])
		}
		if mapped == nil {
			return v, nil
		}
		return mapped, nil
	case []any:
		made := make([]any, len(v))
		for n, item := range v {
			var err error
			if made[n], err = bindTemplate(item, mappings); err != nil {
				return nil, err
			}
		}
		return made, nil
	}
	dict, ok := asDict(value)
	if !ok {
		return value, nil
	}
	entries := dict.Entries()
	for n := range entries {
		var err error
		if entries[n].Key, err = bindTemplate(entries[n].Key, mappings); err != nil {
			return nil, err
		}
		if entries[n].Value, err = bindTemplate(entries[n].Value, mappings); err != nil {
			return nil, err
		}
	}
	return yaql.NewDict(entries...), nil
}

// pythonText converts a value as Python's str() does: agents' plans compare with "True".
func pythonText(value any) string {
	switch v := value.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	}
	return yaql.Text(value)
}

// patchValue applies the operations of a JSON patch.
func patchValue(document, patch any) (any, error) {
	operations, ok := plainValue(patch).([]any)
	if !ok {
		return nil, raised("ValueError", "a JSON patch is a list of operations")
	}
	document = plainValue(document)
	for _, item := range operations {
		operation, ok := item.(map[string]any)
		if !ok {
			return nil, raised("ValueError", "an operation of a JSON patch is a map")
		}
		var err error
		if document, err = applyPatch(document, operation); err != nil {
			return nil, err
		}
	}
	return document, nil
}

func applyPatch(document any, operation map[string]any) (any, error) {
	path, err := pointer(operation, "path")
	if err != nil {
		return nil, err
	}
	value := operation["value"]
	switch name := operation["op"]; name {
	case "add", "replace", "remove":
		return editAt(document, path, name.(string), value)
	case "test":
		found, err := at(document, path)
		if err == nil && !yaql.Equal(found, value) {
			err = raised("jsonpatch.JsonPatchTestFailed", "%s is %s and not %s", operation["path"], show(found), show(value))
		}
		return document, err
	case "copy", "move":
		from, err := pointer(operation, "from")
		if err != nil {
			return nil, err
		}
		if value, err = at(document, from); err != nil {
			return nil, err
		}
		if name == "move" {
			if document, err = editAt(document, from, "remove", nil); err != nil {
				return nil, err
			}
		}
		return editAt(document, path, "add", value)
	}
	return nil, raised("jsonpatch.InvalidJsonPatch", "a JSON patch has no operation %s", show(operation["op"]))
}

// pointer reads a JSON pointer (RFC 6901).
func pointer(operation map[string]any, key string) ([]string, error) {
	text, ok := operation[key].(string)
	if !ok || text != "" && text[0] != '/' {
		return nil, raised("jsonpointer.JsonPointerException", "%s of an operation is a JSON pointer such as /a/0, not %s", key, show(operation[key]))
	}
	if text == "" {
		return nil, nil
	}
	steps := strings.Split(text[1:], "/")
	for n, step := range steps {
		steps[n] = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
	}
	return steps, nil
}

func at(document any, path []string) (any, error) {
	for _, step := range path {
		switch v := document.(type) {
		case map[string]any:
			value, ok := v[step]
			if !ok {
				return nil, missing(step)
			}
			document = value
		case []any:
			n, ok := wholeNumber(step)
			if !ok || n < 0 || n >= int64(len(v)) {
				return nil, missing(step)
			}
			document = v[n]
		default:
			return nil, missing(step)
		}
	}
	return document, nil
}

func missing(step string) error {
	return raised("jsonpatch.JsonPatchConflict", "there is nothing at %q", step)
}

// editAt is the document with the place of the path changed.
func editAt(document any, path []string, operation string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	step, rest := path[0], path[1:]
	switch v := document.(type) {
	case map[string]any:
		present, has := v[step]
		if !has && (len(rest) > 0 || operation != "add") {
			return nil, missing(step)
		}
		changed := without(v, step)
		if len(rest) == 0 && operation == "remove" {
			return changed, nil
		}
		var err error
		changed[step], err = editAt(present, rest, operation, value)
		return changed, err
	case []any:
		n, ok := wholeNumber(step)
		if step == "-" && operation == "add" && len(rest) == 0 {
			n, ok = int64(len(v)), true
		}
		inserts := operation == "add" && len(rest) == 0
		if !ok || n < 0 || n > int64(len(v)) || n == int64(len(v)) && !inserts {
			return nil, missing(step)
		}
		changed := slices.Clone(v)
		switch {
		case inserts:
			return slices.Insert(changed, int(n), value), nil
		case len(rest) == 0 && operation == "remove":
			return slices.Delete(changed, int(n), int(n)+1), nil
		}
		var err error
		changed[n], err = editAt(v[n], rest, operation, value)
		return changed, err
	}
	return nil, missing(step)
}
