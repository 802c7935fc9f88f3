package ui

import (
	"slices"
	"strconv"

	"github.com/burano/burano/catalog/yaql"
)

// anyItem stands in a path for each item of a list.
const anyItem = "*"

// target is a place of the object model that answers decide.
type target struct {
	path  []string
	asked []Question
	plain bool // its value is the answer
	whole bool // everything below it is decided here, too
}

// covers reports whether a path is at this place.
func (p target) covers(path []string) bool {
	if len(path) < len(p.path) || len(path) > len(p.path) && !p.whole {
		return false
	}
	for i, step := range p.path {
		if _, err := strconv.Atoi(path[i]); step != path[i] && (step != anyItem || err != nil) {
			return false
		}
	}
	return true
}

// places are the places of the model, by the templates that make them; false for a definition with too many.
func (d *Definition) places() ([]target, bool) {
	t := tracing{definition: d, known: map[string][]Question{}}
	t.value(d.Application, nil, 0)
	return t.found, t.steps <= maxValues
}

type tracing struct {
	definition *Definition
	found      []target
	known      map[string][]Question // the fields that templates use
	steps      int
}

// more counts a step, and reports whether there may be further ones.
func (t *tracing) more(depth int) bool {
	t.steps++
	return t.steps <= maxValues && depth <= maxNested
}

// named is the value that expressions know by a name; nil for none.
func (d *Definition) named(name string) *Value {
	for _, list := range [][]Entry{d.Parameters, d.Templates} {
		if at := slices.IndexFunc(list, func(entry Entry) bool { return entry.Name() == name }); at >= 0 {
			return list[at].Value
		}
	}
	return nil
}

func (t *tracing) value(value *Value, path []string, depth int) {
	if !t.more(depth) {
		return
	}
	switch value.Kind {
	case Map:
		for _, entry := range value.Entries {
			if entry.Key.Kind == Expression {
				t.add(target{path: path, asked: t.asked(value, depth), whole: true})
				return
			}
		}
		for _, entry := range value.Entries {
			t.value(entry.Value, below(path, entry.Name()), depth+1)
		}
	case List:
		for i, item := range value.Items {
			t.value(item, below(path, strconv.Itoa(i)), depth+1)
		}
	case Expression:
		t.node(value.Expression.Root(), path, depth+1)
	}
}

// below is a path with one more step, which shares no memory with others.
func below(path []string, step string) []string { return append(path[:len(path):len(path)], step) }

func (t *tracing) add(found target) {
	if len(found.asked) > 0 {
		t.found = append(t.found, found)
	}
}

func (t *tracing) node(node yaql.Node, path []string, depth int) {
	switch n := node.(type) {
	case *yaql.Variable:
		if template := t.definition.named(n.Name); template != nil {
			t.value(template, path, depth)
		}
		return
	case *yaql.Call:
		if t.call(n.Name, n.Args, path, depth) {
			return
		}
	case *yaql.Binary:
		if q, is := chain(n); is {
			t.add(target{path: path, asked: []Question{q}, plain: true})
			return
		}
		if form, is := formIn(n); is {
			for _, q := range t.definition.questions(form) {
				t.add(target{path: below(path, q.Field), asked: []Question{q}, plain: true})
			}
			return
		}
		if method, is := n.Right.(*yaql.Call); is && n.Operator == "." && t.call(method.Name, append([]yaql.Node{n.Left}, method.Args...), path, depth) {
			return
		}
	}
	t.add(target{path: path, asked: t.askedIn(node, depth), whole: true})
}

// call follows the functions that make objects of templates.
func (t *tracing) call(name string, args []yaql.Node, path []string, depth int) bool {
	switch {
	case name == "repeat" && len(args) == 2:
		t.add(target{path: path, asked: t.askedIn(args[1], depth)})
		t.node(args[0], below(path, anyItem), depth)
		return true
	case name == "ref" && len(args) > 0:
		template := t.definition.named(wordOf(args[0]))
		if template != nil {
			t.value(template, path, depth)
		}
		return template != nil
	}
	return false
}

// wordOf is a bare word or a quoted text; "" for others.
func wordOf(node yaql.Node) string {
	switch n := node.(type) {
	case *yaql.Keyword:
		return n.Name
	case *yaql.Literal:
		text, _ := n.Value.(string)
		return text
	}
	return ""
}

// chain reads $.form.field and $forms.form.field.
func chain(n *yaql.Binary) (Question, bool) {
	form, isForm := formIn(n.Left)
	field, isField := n.Right.(*yaql.Keyword)
	if !isForm || !isField || n.Operator != "." && n.Operator != "?." {
		return Question{}, false
	}
	return Question{form, field.Name}, true
}

// formIn reads $.form and $forms.form.
func formIn(node yaql.Node) (string, bool) {
	binary, is := node.(*yaql.Binary)
	if !is || binary.Operator != "." && binary.Operator != "?." {
		return "", false
	}
	variable, isVariable := binary.Left.(*yaql.Variable)
	name, isName := binary.Right.(*yaql.Keyword)
	if !isVariable || !isName || variable.Name != "" && variable.Name != "forms" {
		return "", false
	}
	return name.Name, true
}

// asked are the fields that a value uses, also through templates.
func (t *tracing) asked(value *Value, depth int) (list []Question) {
	if !t.more(depth) {
		return nil
	}
	if value.Kind == Expression {
		return t.askedIn(value.Expression.Root(), depth+1)
	}
	for _, item := range value.Items {
		list = append(list, t.asked(item, depth+1)...)
	}
	for _, entry := range value.Entries {
		list = append(append(list, t.asked(entry.Key, depth+1)...), t.asked(entry.Value, depth+1)...)
	}
	return distinct(list)
}

func (t *tracing) askedIn(node yaql.Node, depth int) (list []Question) {
	chained := map[yaql.Node]bool{} // a form whose one field is used
	yaql.Inspect(node, func(node yaql.Node) {
		switch n := node.(type) {
		case *yaql.Binary:
			if q, is := chain(n); is {
				chained[n.Left] = true
				if t.definition.field(q) != nil {
					list = append(list, q)
				}
			} else if form, is := formIn(n); is && !chained[n] {
				list = append(list, t.definition.questions(form)...)
			}
		case *yaql.Variable:
			list = append(list, t.template(n.Name, depth)...)
		case *yaql.Call:
			if n.Name == "ref" && len(n.Args) > 0 {
				list = append(list, t.template(wordOf(n.Args[0]), depth)...)
			}
		}
	})
	return distinct(list)
}

// template are the fields that a template uses; a template that leads to itself has none there.
func (t *tracing) template(name string, depth int) []Question {
	list, known := t.known[name]
	if value := t.definition.named(name); !known && value != nil {
		t.known[name] = nil
		list = t.asked(value, depth+1)
		t.known[name] = list
	}
	return list
}

// distinct are the questions each once, in the order of the first ones.
func distinct(list []Question) (once []Question) {
	seen := map[Question]bool{}
	for _, q := range list {
		if !seen[q] {
			once = append(once, q)
		}
		seen[q] = true
	}
	return once
}

// field is the field of a question; nil for none.
func (d *Definition) field(q Question) *Field {
	for _, form := range d.Forms {
		for _, field := range form.Fields {
			if form.Name == q.Form && field.Name == q.Field {
				return field
			}
		}
	}
	return nil
}

// questions are the fields of a form.
func (d *Definition) questions(form string) (list []Question) {
	for _, one := range d.Forms {
		for _, field := range one.Fields {
			if one.Name == form {
				list = append(list, Question{form, field.Name})
			}
		}
	}
	return list
}
