package ui

import (
	"maps"
	"slices"
	"strings"

	"github.com/burano/burano/internal/sensitive"
)

// Question is a field of a form, by their names.
type Question struct {
	Form  string `json:"form"`
	Field string `json:"field"`
}

// answers are values by form and field, as Input has them.
type answers map[string]map[string]any

func (a answers) set(q Question, value any) {
	if a[q.Form] == nil {
		a[q.Form] = map[string]any{}
	}
	a[q.Form][q.Field] = value
}

func (a answers) get(q Question) any { return a[q.Form][q.Field] }

// all visits the answers in the order of their names.
func (a answers) all(visit func(q Question, value any)) {
	for _, form := range slices.Sorted(maps.Keys(a)) {
		for _, field := range slices.Sorted(maps.Keys(a[form])) {
			visit(Question{form, field}, a[form][field])
		}
	}
}

func (a answers) copied() answers {
	made := answers{}
	a.all(made.set)
	return made
}

// recordKey is the key in the header of an object of the answers that it was made with. The server keeps keys with this beginning.
const recordKey = "_form"

// Record is the record of an object that was made by forms: the full name of their package, and the answers without secrets.
type Record struct {
	Package string
	Values  map[string]map[string]any
}

// RecordOf reads the record of an object; false where it has none.
func RecordOf(object map[string]any) (Record, bool) {
	written, _ := headerOf(object)[recordKey].(map[string]any)
	name, is := written["package"].(string)
	record := Record{Package: name, Values: map[string]map[string]any{}}
	values, _ := written["values"].(map[string]any)
	for form, fields := range values {
		record.Values[form], _ = fields.(map[string]any)
	}
	return record, is && name != ""
}

// record writes the answers to the header of an object.
func (d *Definition) record(object map[string]any, origin string, given answers) {
	hides := d.hiding(object)
	kept := map[string]any{}
	given.all(func(q Question, value any) {
		if hides(q, value) {
			return
		}
		fields, _ := kept[q.Form].(map[string]any)
		if fields == nil {
			fields = map[string]any{}
			kept[q.Form] = fields
		}
		fields[q.Field] = value
	})
	header := object["?"].(map[string]any)
	header[recordKey] = map[string]any{"package": origin, "values": kept}
}

// hiding returns the rule for answers that are secrets: fields for passwords or with the name of a secret, fields whose answers go into properties with
// such a name, and answers that are part of a secret in the object.
func (d *Definition) hiding(object map[string]any) func(q Question, value any) bool {
	secrets := map[Question]bool{}
	for _, form := range d.Forms {
		for _, field := range form.Fields {
			secrets[Question{form.Name, field.Name}] = field.Type == "password" || sensitive.Name(field.Name)
		}
	}
	places, complete := d.places()
	if !complete {
		return func(Question, any) bool { return true }
	}
	for _, one := range places {
		if slices.ContainsFunc(one.path, sensitive.Name) {
			for _, q := range one.asked {
				secrets[q] = true
			}
		}
	}
	var texts []string
	sensitive.Texts("", without(object, "?"), func(text string) string {
		texts = append(texts, text)
		return text
	})
	return func(q Question, value any) bool {
		if secrets[q] {
			return !empty(value)
		}
		hidden := false
		sensitive.Texts(q.Field, map[string]any{q.Field: value}, func(text string) string { hidden = true; return text })
		text, _ := value.(string)
		return hidden || text != "" && slices.ContainsFunc(texts, func(secret string) bool {
			return secret == text || len(text) >= minPart && strings.Contains(secret, text) || len(secret) >= minPart && strings.Contains(text, secret)
		})
	}
}

// minPart is how long a part of a secret is at least that is one itself.
const minPart = 6

func without(object map[string]any, key string) map[string]any {
	rest := maps.Clone(object)
	delete(rest, key)
	return rest
}
