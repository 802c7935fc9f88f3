package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/sensitive"
)

// An object of a file is matched with an object of the environment's present model before ids are given. So it keeps its id, and with it its servers,
// claims and certificates, wherever it is in the file. The rules, each for objects of the same class that the former ones have left:
//
//  1. the same id, anywhere;
//  2. the same name below the same parent and property; an object without a name has the names of the objects in it, as a node its instance's;
//  3. the same name anywhere, if only one object on each side has it: it has moved;
//  4. the same content below the same parent and property;
//  5. the only object of its class below the same parent and property;
//  6. the order of a list, for objects that have no name of their own, or the same one: nothing else distinguishes them.
//
// Rule 6 leaves out objects with an id in the file. An id that is a UUID is used as it is, so only rule 1 applies to its object. The model does not store
// the words of a file's ids, so a word alone does not make another object: it may belong to an existing object.

// modelObject is an object of a model or of a file, with the objects in it.
type modelObject struct {
	header, value map[string]any
	class         string // without version and package
	under         string // the property that it is in, and keys of maps, without positions
	id            string // as written; "" for none
	path          string // by positions
	inner         []*modelObject
	match         *modelObject // the same object on the other side
}

// readObjects returns the objects of applications as a tree, whose root has no value.
func readObjects(applications []any) *modelObject {
	root := &modelObject{}
	for i, application := range applications {
		root.read(application, "", fmt.Sprintf("/%d", i))
	}
	return root
}

func (o *modelObject) read(value any, under, path string) {
	switch value := value.(type) {
	case map[string]any:
		if header, is := value["?"].(map[string]any); is {
			id, _ := header["id"].(string)
			one := &modelObject{header: header, value: value, class: ClassOfType(classOf(value)).Name, under: under, id: id, path: path}
			o.inner = append(o.inner, one)
			o, under = one, ""
		}
		for _, key := range slices.Sorted(maps.Keys(value)) {
			if key != "?" {
				o.read(value[key], under+"/"+key, path+"/"+key)
			}
		}
	case []any:
		for i, inner := range value {
			o.read(inner, under, fmt.Sprintf("%s/%d", path, i))
		}
	}
}

// all lists the objects in o at every depth, each before its content.
func (o *modelObject) all() (list []*modelObject) {
	for _, one := range o.inner {
		list = append(append(list, one), one.all()...)
	}
	return list
}

func (o *modelObject) ownName() string {
	name, _ := o.value["name"].(string)
	return name
}

func (o *modelObject) place() string { return o.class + " in " + o.under }

// These give the text that an object has on both sides; "" where the rule does not apply to it.

func (o *modelObject) byName() string {
	names := []string{o.ownName()}
	if names[0] == "" {
		for _, one := range o.inner {
			names = append(names, one.ownName())
		}
	}
	if text := strings.Join(names, " "); strings.TrimSpace(text) != "" {
		return o.class + " " + text
	}
	return ""
}

func (o *modelObject) byNameInPlace() string {
	if name := o.byName(); name != "" {
		return o.place() + " " + name
	}
	return ""
}

// byContent leaves out values of the present model that the server hides: they are other texts in the file.
func (o *modelObject) byContent(hidden map[string]bool) string {
	text, err := json.Marshal(content(o.value, "", hidden))
	if err != nil { // not JSON, so the server will refuse it
		return ""
	}
	return o.place() + " " + string(text)
}

func (o *modelObject) byOrder() string { return o.place() + " " + o.ownName() }

// content is a value without headers, and without the values at hidden places. A place is a class and the keys below it.
func content(value any, place string, hidden map[string]bool) any {
	switch value := value.(type) {
	case map[string]any:
		place = placeOf(value, place)
		rest := map[string]any{}
		for key, inner := range value {
			if key != "?" && !hidden[place+"/"+key] {
				rest[key] = content(inner, place+"/"+key, hidden)
			}
		}
		return rest
	case []any:
		rest := make([]any, len(value))
		for i, inner := range value {
			rest[i] = content(inner, place, hidden)
		}
		return rest
	}
	return value
}

func placeOf(value map[string]any, place string) string {
	if class := ClassOfType(classOf(value)).Name; class != "" {
		return class
	}
	return place
}

// hiddenPlaces adds the places in a value that have the mark of a secret.
func hiddenPlaces(value any, place string, hidden map[string]bool) {
	switch value := value.(type) {
	case map[string]any:
		place = placeOf(value, place)
		for key, inner := range value {
			hiddenPlaces(inner, place+"/"+key, hidden)
		}
	case []any:
		for _, inner := range value {
			hiddenPlaces(inner, place, hidden)
		}
	case string:
		if value == sensitive.Mark {
			hidden[place] = true
		}
	}
}

// matchObjects sets the match of each object of a file that the present model has. known gives the id that an id of the file has in the model.
func matchObjects(file, present *modelObject, known func(id string) string) {
	byID := map[string]*modelObject{}
	for _, one := range present.all() {
		byID[one.id] = one
	}
	for _, one := range file.all() {
		if had := byID[known(one.id)]; one.id != "" && had != nil && had.class == one.class {
			matchAll([]*modelObject{one}, []*modelObject{had}, 1, func(*modelObject) string { return "id" })
		}
	}
	without := func(excluded func(id string) bool, rule func(*modelObject) string) func(*modelObject) string {
		left := map[*modelObject]bool{}
		for _, one := range file.all() {
			left[one] = excluded(one.id)
		}
		return func(o *modelObject) string {
			if left[o] {
				return ""
			}
			return rule(o)
		}
	}
	isUUID := func(id string) bool { return uuid.Validate(id) == nil }
	matchBelow(file, present, 1, without(isUUID, (*modelObject).byNameInPlace))
	matchAll(file.all(), present.all(), 1, without(isUUID, (*modelObject).byName))
	const several = math.MaxInt
	written := func(id string) bool { return id != "" }
	hidden := map[string]bool{}
	for _, one := range present.inner {
		hiddenPlaces(one.value, "", hidden)
	}
	matchBelow(file, present, several, without(isUUID, func(o *modelObject) string { return o.byContent(hidden) }))
	matchBelow(file, present, 1, without(isUUID, (*modelObject).place))
	matchBelow(file, present, several, without(written, (*modelObject).byOrder))
}

// matchBelow matches by a rule the objects that are directly in the same parent, from the root down.
func matchBelow(wanted, had *modelObject, most int, rule func(*modelObject) string) {
	matchAll(wanted.inner, had.inner, most, rule)
	for _, one := range wanted.inner {
		if one.match != nil {
			matchBelow(one, one.match, most, rule)
		}
	}
}

// matchAll matches in their order the objects of two lists that have the same text by a rule and no match yet, where at most so many on each side
// have it.
func matchAll(wanted, had []*modelObject, most int, rule func(*modelObject) string) {
	former := unmatched(had, rule)
	for text, list := range unmatched(wanted, rule) {
		if len(list) > most || len(former[text]) > most {
			continue
		}
		for i := range min(len(list), len(former[text])) {
			list[i].match, former[text][i].match = former[text][i], list[i]
		}
	}
}

// unmatched are the objects without a match by their text; objects without a text are left out.
func unmatched(list []*modelObject, rule func(*modelObject) string) map[string][]*modelObject {
	by := map[string][]*modelObject{}
	for _, one := range list {
		if one.match != nil {
			continue
		}
		if text := rule(one); text != "" {
			by[text] = append(by[text], one)
		}
	}
	return by
}
