package muranopl

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Draft is a model that was loaded together with its mistakes.
type Draft struct {
	Root     *Object   // nil where there are Problems
	Unknown  []Problem // keys that embedded classes do not know
	Problems []Problem

	loader *loader
	model  map[string]any
}

// LoadStrictly is Load, and lists besides the keys of the model that its embedded classes do not know. Load drops them, as Murano does. Objects of other packages'
// classes, and the root, may have any keys.
func LoadStrictly(ctx context.Context, classes *Classes, model map[string]any) Draft {
	root, l, problems := load(ctx, classes, model)
	return Draft{Root: root, Unknown: l.unknown, Problems: problems, loader: l, model: model}
}

// Model is the draft with the values that its classes make of it: converted values, and defaults. Values with mistakes, and unknown keys, are as the draft has them.
// Properties that code sets too (Usage: InOut) have no defaults. A draft whose classes make more than limit bytes of it is returned as it is.
func (d Draft) Model(limit int64) map[string]any {
	w := &writing{left: limit, seen: map[*Object]bool{}}
	d.Each(func(object *Object) { w.object(object) })
	if w.left < 0 {
		return d.model
	}
	completed, is := d.loader.complete(plain(d.model), "").(map[string]any)
	if !is {
		return d.model
	}
	return completed
}

// Each visits the objects of the draft that could be made, in no certain order.
func (d Draft) Each(visit func(*Object)) {
	for _, known := range d.loader.objects {
		if known.object != nil && known.passed {
			visit(known.object)
		}
	}
}

// complete gives the objects in a value, which stands at a path of the model, the values that were made of their properties.
func (l *loader) complete(value any, path string) any {
	switch v := value.(type) {
	case []any:
		made := make([]any, len(v))
		for n, item := range v {
			made[n] = l.complete(item, fmt.Sprintf("%s[%d]", path, n))
		}
		return made
	case map[string]any:
		made := map[string]any{}
		for key, item := range v {
			if made[key] = item; key != "?" {
				made[key] = l.complete(item, join(path, key))
			}
		}
		d, has := parseDefinition(v, "")
		known := l.objects[d.id]
		if !has || d.id == "" || known == nil || known.object == nil || !known.passed || l.spots[d.id].path != path {
			return made
		}
		for _, name := range known.object.class.PropertyNames() {
			item, initialised := known.object.Get(name)
			usage := known.object.class.Property(name)[0].Usage
			_, written := v[name]
			if !initialised || !usage.kept() || usage == InOut && !written {
				continue
			}
			holds := false
			eachObject(item, func(*Object) { holds = true })
			if holds && written {
				continue // each of the objects is completed where it is
			}
			made[name] = SaveReferences(item)
		}
		return made
	}
	return value
}

// UnknownKeys are the keys of the last prepared model that its embedded classes do not know, as LoadStrictly lists them.
func UnknownKeys(i *Interpreter) []Problem { return i.unknown }

// unknownKeys notes which keys at a path are none of these names.
func (l *loader) unknownKeys(given map[string]any, names []string, path, label string) {
	for _, key := range sortedKeys(given) {
		if slices.Contains(names, key) || len(l.unknown) >= maxProblems {
			continue
		}
		wanted := "is not known, and has no effect"
		if near := nearest(key, names); near != "" {
			wanted += ": did you mean " + near + "?"
		} else {
			wanted += ": leave it out"
		}
		problem := Problem{Path: join(path, key), Class: label, Wanted: fmt.Sprintf("%s %s", key, wanted)}
		if !slices.Contains(l.unknown, problem) {
			l.unknown = append(l.unknown, problem)
		}
	}
}

// nearest is the name that a key was probably meant to be; "" when none is like it.
func nearest(key string, names []string) string {
	best, least := "", max(1, len(key)/3)+1
	for _, name := range names {
		if distance := edits(strings.ToLower(key), strings.ToLower(name)); distance < least {
			best, least = name, distance
		}
	}
	return best
}

// edits is the Levenshtein distance of two texts: how many bytes are put in, left out or changed.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
