package ui

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/burano/burano/catalog/yaql"
)

// isText and the others are the types that parameters of functions want.
func isText(value any) (any, bool) {
	_, ok := value.(string)
	return value, ok
}

func isTextOrNull(value any) (any, bool) {
	_, ok := value.(string)
	return value, ok || value == nil
}

func isInteger(value any) (any, bool) {
	_, ok := value.(int64)
	return value, ok
}

func isBooleanOrNull(value any) (any, bool) {
	_, ok := value.(bool)
	return value, ok || value == nil
}

// functions returns the functions of forms besides YAQL's own (murano-dashboard, dynamic_ui/yaql_functions.py).
func (e *evaluation) functions() []*yaql.Function {
	return []*yaql.Function{
		{Name: "generateHostname", Kind: yaql.AsBoth, Doc: "the pattern with the number for each #; a name that nothing else has for an empty pattern",
			Params: []yaql.Param{{Name: "pattern", Type: isTextOrNull}, {Name: "number", Type: isInteger}}, Call: e.generateHostname},
		{Name: "repeat", Kind: yaql.AsBoth, Doc: "a list of the template, evaluated that many times with $index from 1 on",
			Params: []yaql.Param{{Name: "template"}, {Name: "times", Type: isInteger}}, Call: e.repeat},
		{Name: "name", Kind: yaql.AsFunction, Doc: "the name of the application", Call: func(*yaql.Invocation) (any, error) {
			if e.in.Name == "" {
				return nil, nil
			}
			return e.in.Name, nil
		}},
		{Name: "ref", Kind: yaql.AsFunction, Doc: "the object that a template makes, and its id alone when it is asked for again",
			Params: []yaql.Param{{Name: "templateName", Type: isText}, {Name: "parameterName", Type: isTextOrNull, Optional: true},
				{Name: "idOnly", Type: isBooleanOrNull, Optional: true}}, Call: e.ref},
		{Name: "encryptData", Kind: yaql.AsFunction, Doc: "an error: there is no key manager",
			Params: []yaql.Param{{Name: "text"}}, Call: func(*yaql.Invocation) (any, error) {
				return nil, errors.New("encryptData() needs a key manager, and Burano uses none: give the value as it is, Burano seals secrets itself")
			}},
	}
}

func (e *evaluation) generateHostname(i *yaql.Invocation) (any, error) {
	pattern, _ := i.Args[0].(string)
	if pattern != "" {
		return strings.ReplaceAll(pattern, "#", yaql.Text(i.Args[1])), nil
	}
	e.hostnames++
	if e.in.random != "" {
		return e.in.random + strconv.FormatInt(int64(e.hostnames), 36), nil
	}
	var name strings.Builder
	for range 5 {
		name.WriteByte('a' + byte(rand.IntN(26)))
	}
	name.WriteString(strconv.FormatInt(time.Now().UnixMilli(), 36))
	name.WriteString(strconv.FormatInt(int64(e.hostnames), 36))
	return name.String(), nil
}

func (e *evaluation) repeat(i *yaql.Invocation) (any, error) {
	times := i.Args[1].(int64)
	if times > int64(limits.Items) {
		return nil, fmt.Errorf("repeat() makes at most %d items, not %d", limits.Items, times)
	}
	list := make([]any, 0, max(times, 0))
	for index := int64(1); index <= times; index++ {
		item, err := e.value(i.Args[0], i.Scope.With("index", index))
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

// ref stores the object of a template under a name, so that other places of the model can lead to the same object.
func (e *evaluation) ref(i *yaql.Invocation) (any, error) {
	template := i.Args[0].(string)
	name, _ := i.Args[1].(string)
	if name == "" {
		name = template
	}
	idOnly, said := i.Args[2].(bool)
	made, again := e.made[name]
	if !again {
		at := slices.IndexFunc(e.definition.Templates, func(entry Entry) bool { return entry.Name() == template })
		if at < 0 {
			return nil, fmt.Errorf("ref(): there is no template %s", template)
		}
		evaluated, err := e.value(raw(e.definition.Templates[at].Value), i.Scope)
		if err != nil {
			return nil, err
		}
		object, ok := evaluated.(*yaql.Dict)
		if !ok {
			return nil, fmt.Errorf("ref(): template %s should make a map", template)
		}
		header, ok := get(object, "?").(*yaql.Dict)
		if !ok {
			header = yaql.NewDict()
		}
		if id, _ := get(header, "id").(string); id == "" {
			header = header.With(yaql.Entry{Key: "id", Value: uuid.NewString()})
		}
		made = object.With(yaql.Entry{Key: "?", Value: header})
		e.made[name] = made
	}
	if idOnly || again && !said {
		return get(get(made, "?").(*yaql.Dict), "id"), nil
	}
	return made, nil
}

func get(dict *yaql.Dict, key string) any {
	value, _ := dict.Get(key)
	return value
}
