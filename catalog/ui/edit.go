package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/sensitive"
)

// Edit is the result of other answers for an object.
type Edit struct {
	Forms []FormView
	// Errors are about the changed answers.
	Errors []InputError
	// Object is the object with the changes, and with the record of the answers; nil where there are errors.
	Object map[string]any
	// Changed are the paths of the changed values, such as instance.flavor.
	Changed []string
	// Conflicts are values that the answers would change, and that something else has changed since. They stay as they are.
	Conflicts []Conflict
}

// Conflict is a value that was changed otherwise.
type Conflict struct {
	Path    string `json:"path"`
	Present any    `json:"present"`
	Wanted  any    `json:"wanted"`
}

// Edit evaluates other answers and merges three models: the one of today's answers, the one of the new answers, and the object. Only differences between the
// first two are made. Answers that are left out, or are as today's were shown, stay; so do secrets without a new value.
func (d *Definition) Edit(ctx context.Context, today *Today, name string, values map[string]map[string]any) (Edit, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the definition takes longer than %v to evaluate", patience))
	defer cancel()
	in := today.in
	if d.Named() && name != "" {
		in.Name = name
	}
	changed, wrong := d.changed(today, values)
	in.Values = today.answers.copied()
	changed.all(answers(in.Values).set)
	one := d.make(ctx, in)
	edit := Edit{Forms: one.forms, Errors: wrong}
	for _, fault := range one.errors {
		_, touched := changed[fault.Form][fault.Field]
		if touched || fault.Field == "" && len(changed[fault.Form]) > 0 || !slices.Contains(today.errors, fault) {
			edit.Errors = append(edit.Errors, fault)
		}
	}
	if d.Named() && in.Name != today.Name && !applicationName.MatchString(in.Name) {
		edit.Errors = append(edit.Errors, InputError{Field: "name", Message: nameMessage})
	}
	if err := ended(ctx); err != nil || len(edit.Errors) > 0 {
		return edit, err
	}
	if one.err != nil {
		return edit, one.err
	}
	m := &merging{}
	made := today.align.model(one.made, today.object)
	merged, is := m.value(today.made, yaql.FromJSON(made), today.object, nil).(map[string]any)
	if !is {
		return edit, errors.New("Application: its value should be a map")
	}
	header := maps.Clone(headerOf(today.object))
	if in.Name != today.Name {
		header["name"] = in.Name
		m.change([]string{"?", "name"})
	}
	edit.Object, edit.Changed, edit.Conflicts = maps.Clone(merged), m.changes, m.conflicts
	edit.Object["?"] = header
	if len(edit.Changed) > 0 && in.Origin != "" {
		d.record(edit.Object, in.Origin, one.answers)
	}
	return edit, nil
}

// nameMessage is the error of an application's name.
const nameMessage = "Letters, digits, hyphens and underscores only"

// changed are the given answers that differ from today's.
func (d *Definition) changed(today *Today, values map[string]map[string]any) (answers, []InputError) {
	changed, wrong := answers{}, []InputError(nil)
	answers(values).all(func(q Question, value any) {
		switch {
		case d.field(q) == nil:
			wrong = append(wrong, InputError{Form: q.Form, Field: q.Field, Message: "There is no such field"})
		case slices.Contains(today.Kept, q) && nothing(value), sameMasked(q, value, today.answers.get(q)):
		default:
			changed.set(q, value)
		}
	})
	return changed, wrong
}

// merging changes a present value as a made one has changed.
type merging struct {
	changes   []string
	conflicts []Conflict
}

func (m *merging) change(path []string) { m.changes = append(m.changes, strings.Join(path, ".")) }

func (m *merging) conflict(path []string, present, wanted any) any {
	shown := func(value any) any {
		masked, _ := sensitive.Texts("", map[string]any{path[len(path)-1]: value}, func(string) string { return sensitive.Mark }).(map[string]any)
		return masked[path[len(path)-1]]
	}
	m.conflicts = append(m.conflicts, Conflict{Path: strings.Join(path, "."), Present: shown(present), Wanted: shown(wanted)})
	return present
}

func (m *merging) value(was, wanted, present any, path []string) any {
	if same(was, wanted) {
		return present
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		was, isMap := was.(map[string]any)
		held, isHeld := present.(map[string]any)
		if isMap && isHeld && classOf(was) == classOf(wanted) && classOf(wanted) == classOf(held) {
			return m.parts(was, wanted, held, path)
		}
	case []any:
		was, _ := was.([]any)
		held, _ := present.([]any)
		if slices.ContainsFunc(append(slices.Clone(was), wanted...), func(item any) bool { return idOf(item) != "" }) {
			return m.items(was, wanted, held, path)
		}
	case nil:
		if was, is := was.([]any); is && slices.ContainsFunc(was, func(item any) bool { return idOf(item) != "" }) {
			held, _ := present.([]any)
			return m.items(was, nil, held, path)
		}
	}
	switch {
	case agrees(was, present) && len(path) > 0:
		m.change(path)
		return wanted
	case agrees(wanted, present):
		return present
	}
	return m.conflict(append([]string{}, path...), present, wanted)
}

// parts merges objects and maps by their keys.
func (m *merging) parts(was, wanted, held map[string]any, path []string) any {
	merged := maps.Clone(held)
	keys := slices.Collect(maps.Keys(was))
	for key := range wanted {
		if _, both := was[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if key == "?" {
			continue
		}
		before := len(m.changes)
		value := m.value(was[key], wanted[key], held[key], below(path, key))
		if len(m.changes) == before {
			continue
		}
		if _, has := wanted[key]; has || value != nil {
			merged[key] = value
		} else {
			delete(merged, key)
		}
	}
	return merged
}

// items merges lists of objects: objects in the same places, and those that come or go at the end.
func (m *merging) items(was, wanted, held []any, path []string) any {
	merged := slices.Clone(held)
	for i := range min(len(was), len(wanted)) {
		at := below(path, strconv.Itoa(i))
		switch {
		case same(was[i], wanted[i]):
		case i >= len(held):
			m.conflict(at, nil, wanted[i])
		default:
			merged[i] = m.value(was[i], wanted[i], held[i], at)
		}
	}
	switch {
	case len(was) == len(wanted):
	case len(held) == len(wanted):
	case len(held) != len(was):
		m.conflict(path, len(held), len(wanted))
	case len(wanted) > len(was):
		m.change(path)
		merged = append(merged, wanted[len(was):]...)
	default:
		m.change(path)
		merged = merged[:len(wanted)]
	}
	return merged
}

// same reports whether two models that forms made are the same.
func same(a, b any) bool { return reflect.DeepEqual(comparableOf(a), comparableOf(b)) }

// comparableOf is a value with numbers of one type.
func comparableOf(value any) any {
	switch v := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, inner := range v {
			if key != "?" {
				made[key] = comparableOf(inner)
			} else {
				made[key] = classOf(v)
			}
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, inner := range v {
			made[i] = comparableOf(inner)
		}
		return made
	case nil, bool, string:
		return value
	}
	return wordsOf(value)
}
