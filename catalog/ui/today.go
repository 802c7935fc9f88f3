package ui

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/burano/burano/internal/sensitive"
)

// Today are the answers that fit an object as it is now.
type Today struct {
	// Forms are evaluated with the answers.
	Forms []FormView
	Name  string
	// Kept are secrets that are set, and in no answer of Values.
	Kept []Question
	// Unknown are fields whose answers cannot be read from the object.
	Unknown []Question
	// Covered are the properties of the object whose values follow from the answers.
	Covered []string

	in      Input // with the secrets
	answers answers
	object  map[string]any
	made    any // the model of the answers, with the object's ids
	errors  []InputError
	hides   func(q Question, value any) bool
	align   aligning
}

// attempts is how many evaluations Today makes at most.
const attempts = 300

// Today finds the answers that fit an object. It begins with the recorded answers in in.Values, or with none. Fields whose answers the model has as they are
// get the object's values. For the others it tries the object's values, and the field's choices: an answer counts if the model that the forms make of it
// comes closer to the object. A definition that makes no model of any answers, or no model of the object's class, is an error.
func (d *Definition) Today(ctx context.Context, in Input, object map[string]any) (*Today, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("the definition takes longer than %v to evaluate", patience))
	defer cancel()
	places, complete := d.places()
	if !complete {
		return nil, errors.New("the templates are too many to follow")
	}
	header := headerOf(object)
	if in.Name, _ = header["name"].(string); !d.Named() {
		in.Name = ""
	}
	in.random = "host" + fmt.Sprint(time.Now().UnixNano())
	given := answers{}
	for form, fields := range in.Values {
		for field, value := range fields {
			if d.field(Question{form, field}) != nil { // a newer package may have others
				given.set(Question{form, field}, value)
			}
		}
	}
	r := &reader{ctx: ctx, definition: d, places: places, in: in, object: object, recorded: given, align: aligning{fresh: map[string]string{}}}
	r.plain()
	r.search()
	if r.best.err != nil {
		return nil, r.best.err
	}
	t := &Today{Forms: r.best.forms, Name: in.Name, in: r.best.in, answers: r.best.answers, object: object, made: r.best.made, errors: r.best.errors,
		hides: d.hiding(object), align: r.align}
	t.in.Values = t.answers
	if class := classOf(t.made); class != classOf(object) {
		return nil, fmt.Errorf("the forms make a %s and no %s", class, classOf(object))
	}
	t.answers.all(func(q Question, value any) {
		if t.hides(q, value) {
			t.Kept = append(t.Kept, q)
		}
	})
	t.judge(r)
	return t, nil
}

// Values are the answers without secrets.
func (t *Today) Values() map[string]map[string]any {
	shown := answers{}
	t.answers.all(func(q Question, value any) {
		if !t.hides(q, value) {
			shown.set(q, value)
		}
	})
	return shown
}

// judge finds the properties that follow from the answers, and the fields without a known answer: all their places differ, or they have none and no record.
func (t *Today) judge(r *reader) {
	off := map[string]bool{}
	for _, path := range r.best.off {
		off[path[0]] = true
	}
	model, _ := t.made.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(model)) {
		if name != "?" && !off[name] {
			t.Covered = append(t.Covered, name)
		}
	}
	for _, form := range t.Forms {
		for _, view := range form.Fields {
			q := Question{form.Name, view.Name}
			_, has := r.recorded[q.Form][q.Field]
			placed := slices.ContainsFunc(r.places, func(one target) bool { return slices.Contains(one.asked, q) })
			if !r.knows(q, false) && (placed || !has && !view.Hidden) {
				t.Unknown = append(t.Unknown, q)
			}
		}
	}
}

// knows reports whether the object has a value, at a place that uses a field, as the answer makes it; with set, one that is not empty.
func (r *reader) knows(q Question, set bool) bool {
	return slices.ContainsFunc(r.places, func(one target) bool {
		values := valuesAt(r.object, one.path)
		if set {
			values = slices.DeleteFunc(values, nothing)
		}
		return slices.Contains(one.asked, q) && (len(values) > 0 || !set) && r.differing(one) < max(1, len(values))
	})
}

// differing counts the values at a place that differ.
func (r *reader) differing(one target) int {
	found := map[string]bool{}
	for _, path := range r.best.off {
		if one.covers(path) {
			found[strings.Join(path[:len(one.path)], ".")] = true
		}
	}
	return len(found)
}

// reader looks for answers.
type reader struct {
	ctx        context.Context
	definition *Definition
	places     []target
	in         Input
	object     map[string]any
	recorded   answers
	align      aligning
	count      int
	best       attempt
}

// attempt is an evaluation.
type attempt struct {
	in      Input
	forms   []FormView
	errors  []InputError
	answers answers
	made    any
	off     [][]string // where it differs from the object
	present []any      // in the same places
	err     error
}

// make evaluates a definition, also of wrong answers.
func (d *Definition) make(ctx context.Context, in Input) (made attempt) {
	e := newEvaluation(ctx, d, in)
	for _, form := range d.Forms {
		e.form(form)
	}
	made = attempt{in: in, forms: e.forms, errors: e.errors, answers: e.answers}
	if made.err = ended(ctx); made.err == nil {
		var model map[string]any
		if model, made.err = e.application(); made.err == nil {
			made.made = model
		}
	}
	return made
}

func (r *reader) attempt(values answers) attempt {
	r.count++
	in := r.in
	in.Values = values
	made := r.definition.make(r.ctx, in)
	if made.err == nil {
		made.made = r.align.model(made.made, r.object)
		compare(made.made, r.object, nil, func(path []string, present any) {
			if len(path) > 0 {
				made.off, made.present = append(made.off, path), append(made.present, present)
			}
		})
	}
	return made
}

// better reports whether an attempt comes closer to the object than the best one.
func (r *reader) better(one attempt) bool {
	return one.err == nil && (r.best.err != nil || len(one.off) < len(r.best.off))
}

// plain gives fields whose answers the model has as they are the object's values, unless one of these is their answer already.
func (r *reader) plain() {
	r.best = r.attempt(r.recorded)
	found := map[Question][]any{}
	for _, one := range r.places {
		if one.plain {
			found[one.asked[0]] = append(found[one.asked[0]], valuesAt(r.object, one.path)...)
		}
	}
	values := r.best.answers.copied()
	for q, list := range found {
		field := r.definition.field(q)
		if field == nil || len(list) == 0 || slices.ContainsFunc(list, func(value any) bool { return equal(values.get(q), reference(value)) }) {
			continue
		}
		if value := reference(list[0]); field.takes(value) {
			values.set(q, value)
		}
	}
	r.guess(values)
	if one := r.attempt(values); r.better(one) {
		r.best = one
	}
}

// guess gives required fields without an answer some value of the object that they may have made: expressions may fail without one.
func (r *reader) guess(values answers) {
	for _, form := range r.best.forms {
		for _, view := range form.Fields {
			q := Question{form.Name, view.Name}
			if !view.Required || !nothing(values.get(q)) || view.Type == "integer" {
				continue
			}
			for _, one := range r.places {
				found := valuesAt(r.object, one.path)
				if at := slices.IndexFunc(found, func(value any) bool { return !nothing(value) }); at >= 0 && slices.Contains(one.asked, q) {
					if texts := textsOf(found[at]); len(texts) > 0 {
						values.set(q, texts[0])
						break
					}
				}
			}
		}
	}
}

// takes reports whether a value can be the answer to a field.
func (f *Field) takes(value any) bool {
	switch value.(type) {
	case map[string]any:
		return false
	case []any:
		return f.Type == "network" || f.Type == "databaselist"
	}
	return true
}

// reference is a value as an answer has it: the id of an object.
func reference(value any) any {
	if id := idOf(value); id != "" {
		return id
	}
	return value
}

// valuesAt are the values at a path with any items; at least one, which may be nil.
func valuesAt(value any, path []string) (list []any) {
	for i, step := range path {
		if step == anyItem {
			items, _ := value.([]any)
			for _, item := range items {
				list = append(list, valuesAt(item, path[i+1:])...)
			}
			return list
		}
		object, _ := value.(map[string]any)
		value = object[step]
	}
	return []any{value}
}

// search tries other answers where the best attempt differs from the object, until none comes closer.
func (r *reader) search() {
	for tried := map[string]bool{}; r.improve(tried); {
	}
}

// improve tries other answers until one comes closer; false if none does.
func (r *reader) improve(tried map[string]bool) bool {
	for i, path := range r.best.off {
		for _, q := range r.askedAt(path) {
			if _, is := r.recorded[q.Form][q.Field]; is && r.knows(q, true) {
				continue // some of its values are as it makes them, and others were changed otherwise
			}
			for _, answer := range append(r.candidates(q, r.around(q, path)), r.candidates(q, r.best.present[i])...) {
				key := fmt.Sprintf("%d %s %s %v", len(r.best.off), q.Form, q.Field, answer)
				if tried[key] || r.count >= attempts {
					continue
				}
				tried[key] = true
				values := r.best.answers.copied()
				values.set(q, answer)
				if one := r.attempt(values); r.better(one) {
					r.best = one
					return true
				}
			}
		}
	}
	return false
}

// around is the object's value at the place of an expression that uses a field, where that is above a path.
func (r *reader) around(q Question, path []string) any {
	for _, one := range r.places {
		if one.whole && len(one.path) < len(path) && slices.Contains(one.asked, q) && one.covers(path) {
			return valueAt(r.object, path[:len(one.path)])
		}
	}
	return nil
}

func valueAt(value any, path []string) any {
	for _, step := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			at, err := strconv.Atoi(step)
			if err != nil || at >= len(v) {
				return nil
			}
			value = v[at]
		default:
			return nil
		}
	}
	return value
}

func (r *reader) askedAt(path []string) (list []Question) {
	for _, one := range r.places {
		if one.covers(path) {
			list = append(list, one.asked...)
		}
	}
	return distinct(list)
}

// candidates are answers to a field that might make a value.
func (r *reader) candidates(q Question, present any) (list []any) {
	at := slices.IndexFunc(r.best.forms, func(form FormView) bool { return form.Name == q.Form })
	if at < 0 {
		return nil
	}
	fields := r.best.forms[at].Fields
	if at = slices.IndexFunc(fields, func(field FieldView) bool { return field.Name == q.Field }); at < 0 {
		return nil
	}
	now := r.best.answers.get(q)
	add := func(values ...any) {
		for _, value := range values {
			if !equal(now, value) {
				list = append(list, value)
			}
		}
	}
	view := fields[at]
	switch {
	case view.Type == "boolean":
		add(now != true)
	case view.Type == "choice":
		for _, choice := range view.Choices {
			add(choice.Value)
		}
	case view.Type == "integer":
		switch items := present.(type) {
		case []any:
			add(len(items))
		case nil:
			add(nil)
		default:
			add(reference(present))
		}
	default:
		add(textsOf(present)...)
		add("")
	}
	return list
}

// textsOf are the texts that an expression may make a value of.
func textsOf(value any) (list []any) {
	switch v := value.(type) {
	case map[string]any:
		if id := idOf(v); id != "" {
			return []any{id}
		}
		var pairs []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch v[key].(type) {
			case map[string]any, []any:
				return nil
			}
			pairs = append(pairs, key+"="+wordsOf(v[key]))
		}
		return []any{strings.Join(pairs, ", ")}
	case []any:
		var words []string
		for _, item := range v {
			switch item.(type) {
			case map[string]any, []any:
				return list
			}
			words = append(words, wordsOf(item))
			list = append(list, wordsOf(item))
		}
		return append(list, strings.Join(words, ", "), strings.Join(words, ","))
	case nil:
		return nil
	}
	return append([]any{wordsOf(value)}, partsOf(wordsOf(value))...)
}

// partsOf are the parts of a text with commas.
func partsOf(text string) (list []any) {
	if parts := strings.Split(text, ","); len(parts) > 1 {
		for _, part := range parts {
			list = append(list, strings.TrimSpace(part))
		}
	}
	return list
}

// sameMasked reports whether a given answer is the present one as it was shown, with marks in the place of its secrets.
func sameMasked(q Question, given, now any) bool {
	if equal(given, now) {
		return true
	}
	masked, _ := sensitive.Texts("", map[string]any{q.Field: now}, func(string) string { return sensitive.Mark }).(map[string]any)
	return equal(given, masked[q.Field])
}
