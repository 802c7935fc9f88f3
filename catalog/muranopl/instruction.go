package muranopl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
)

// instruction is one step of a method's body. Instructions do not change.
type instruction interface {
	position() Position
	// text is how stack traces show the instruction.
	text() string
	run(ctx context.Context, s *strand) (outcome, error)
}

// block is a list of instructions.
type block []instruction

// outcome is how an instruction ended.
type outcome struct {
	kind  ending
	value any // that is returned
}

type ending uint8

const (
	goesOn ending = iota
	returns
	breaks
	continues
)

// place is the place of an instruction.
type place struct{ where Position }

func (p place) position() Position { return p.where }

// macro is a place of an instruction that is a map with certain keys.
type macro struct{ place }

func (macro) text() string { return "block construct" }

type evaluation struct {
	place
	value template
}

func (e evaluation) text() string { return templateText(e.value) }

type assignment struct {
	place
	target *yaql.Expression
	value  template
}

func (a assignment) text() string { return a.target.String() + ": " + templateText(a.value) }

// templateText writes a template for stack traces.
func templateText(t template) string {
	switch v := t.(type) {
	case *yaql.Expression:
		return v.String()
	case listTemplate, mapTemplate:
		return "…"
	}
	return show(t)
}

type returning struct {
	macro
	value template
}

type branching struct {
	macro
	condition       template
	then, otherwise block
}

type whileLoop struct {
	macro
	condition template
	body      block
}

type forLoop struct {
	macro
	variable   string
	collection template
	body       block
}

type repeatLoop struct {
	macro
	times template
	body  block
}

type leaving struct { // Break and Continue
	macro
	how ending
}

type matching struct {
	macro
	value     template
	cases     []caseOf
	otherwise block
}

type switching struct {
	macro
	cases     []caseOf
	otherwise block
}

type caseOf struct {
	when template
	body block
}

type doing struct {
	macro
	body block
}

type parallel struct {
	macro
	body  block
	limit template // nil: none
}

type trying struct {
	macro
	body, otherwise, finally block
	catches                  []catch
}

type catch struct {
	with []string // resolved names; nil: every exception
	as   string
	body block
}

type throwing struct {
	macro
	names                 template
	message, extra, cause template // nil: none
}

func (t throwing) text() string {
	names, ok := t.names.(listTemplate)
	if !ok {
		names = listTemplate{t.names}
	}
	written := make([]string, len(names))
	for n, name := range names {
		if written[n], ok = name.(string); ok {
			written[n] = "'" + written[n] + "'"
		} else {
			written[n] = "YAQL(" + templateText(name) + ")"
		}
	}
	text := "Throw [" + strings.Join(written, ", ") + "]"
	switch message := t.message.(type) {
	case nil:
		return text
	case string:
		return text + ": " + message
	}
	return text + ": " + templateText(t.message)
}

type rethrowing struct{ macro }

func (rethrowing) text() string { return "Rethrow" }

// block reads a list of instructions or a single one.
func (d *classDocument) block(node *yaml.Node) (block, error) {
	if node == nil {
		return nil, nil
	}
	node, err := d.follow(node)
	if err != nil || isNull(node) {
		return nil, err
	}
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	made := make(block, 0, len(nodes))
	for _, item := range nodes {
		one, err := d.instruction(item)
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	return made, nil
}

func (d *classDocument) instruction(node *yaml.Node) (instruction, error) {
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	at := place{d.position(node)}
	switch node.Kind {
	case yaml.ScalarNode:
		value, err := d.scalar(node)
		if err != nil {
			return nil, err
		}
		if _, ok := value.(*yaql.Expression); !ok {
			return nil, d.wrong(node, "%q is no instruction: an expression, an assignment or a block such as If or Return stands here", node.Value)
		}
		return evaluation{at, value}, nil
	case yaml.SequenceNode:
		return nil, d.wrong(node, "a list is no instruction; Do: runs a list of instructions")
	}
	fields, err := d.document.fields(node)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]*yaml.Node, len(fields))
	for _, f := range fields {
		key, err := d.template(f.key)
		if err != nil {
			return nil, err
		}
		switch k := key.(type) {
		case string:
			keys[k] = f.value
		case *yaql.Expression:
			if len(fields) > 1 {
				return nil, d.wrong(f.key, "an assignment stands alone: put what follows into an item of its own")
			}
			value, err := d.template(f.value)
			return assignment{at, k, value}, err
		default:
			return nil, d.wrong(f.key, "%q begins no instruction", f.key.Value)
		}
	}
	return d.macro(node, macro{at}, keys)
}

// macroKeys are the keys of each block: the first names it, keys with a question mark are optional.
var macroKeys = map[string][]string{
	"Return": nil, "If": {"Then", "Else?"}, "While": {"Do"}, "For": {"In", "Do"}, "Repeat": {"Do"}, "Break": nil, "Continue": nil,
	"Match": {"Value", "Default?"}, "Switch": {"Default?"}, "Do": nil, "Parallel": {"Limit?"},
	"Try": {"Catch?", "Else?", "Finally?"}, "Throw": {"Message?", "Extra?", "Cause?"}, "Rethrow": nil,
}

// macroName returns the kind of block of a map.
func macroName(keys map[string]*yaml.Node) (string, error) {
	var names []string
	for _, name := range sortedKeys(macroKeys) {
		if _, has := keys[name]; has {
			names = append(names, name)
		}
	}
	// "Do" is a key of loops as well.
	if len(names) > 1 {
		names = slices.DeleteFunc(names, func(n string) bool { return n == "Do" })
	}
	if len(names) != 1 {
		return "", fmt.Errorf("a map with %s is no instruction", strings.Join(sortedKeys(keys), ", "))
	}
	rest := without(toAny(keys), names[0])
	for _, key := range macroKeys[names[0]] {
		name, optional := strings.CutSuffix(key, "?")
		if _, has := rest[name]; !has && !optional {
			return "", fmt.Errorf("%s needs %s", names[0], name)
		}
		delete(rest, name)
	}
	if len(rest) > 0 {
		return "", fmt.Errorf("%s has no %s", names[0], strings.Join(sortedKeys(rest), ", "))
	}
	return names[0], nil
}

func toAny(keys map[string]*yaml.Node) map[string]any {
	made := make(map[string]any, len(keys))
	for key, value := range keys {
		made[key] = value
	}
	return made
}

func (d *classDocument) macro(node *yaml.Node, at macro, keys map[string]*yaml.Node) (instruction, error) {
	name, err := macroName(keys)
	if err != nil {
		return nil, d.wrong(node, "%v", err)
	}
	r := &macroReader{d: d, keys: keys}
	made := r.read(name, at)
	if r.err != nil {
		return nil, r.err
	}
	return made, nil
}

// macroReader reads the parts of a block and keeps the first error.
type macroReader struct {
	d    *classDocument
	keys map[string]*yaml.Node
	err  error
}

func (r *macroReader) block(key string) block {
	body, err := r.d.block(r.keys[key])
	r.keep(err)
	return body
}

func (r *macroReader) value(key string) template {
	node := r.keys[key]
	if node == nil {
		return nil
	}
	value, err := r.d.template(node)
	r.keep(err)
	return value
}

func (r *macroReader) keep(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *macroReader) read(name string, at macro) instruction {
	switch name {
	case "Return":
		return returning{at, r.value("Return")}
	case "If":
		return branching{at, r.value("If"), r.block("Then"), r.block("Else")}
	case "While":
		condition := r.value("While")
		if _, ok := condition.(*yaql.Expression); !ok && r.err == nil {
			r.keep(r.d.wrong(r.keys["While"], "the condition of While is an expression"))
		}
		return whileLoop{at, condition, r.block("Do")}
	case "For":
		node := r.keys["For"]
		if node.Kind != yaml.ScalarNode || !simpleKey(node.Value) {
			r.keep(r.d.wrong(node, "For takes the name of a variable, without $"))
		}
		return forLoop{at, node.Value, r.value("In"), r.block("Do")}
	case "Repeat":
		return repeatLoop{at, r.value("Repeat"), r.block("Do")}
	case "Break", "Continue":
		if !isNull(r.keys[name]) {
			r.keep(r.d.wrong(r.keys[name], "%s takes no value", name))
		}
		if name == "Break" {
			return leaving{at, breaks}
		}
		return leaving{at, continues}
	case "Match":
		return matching{at, r.value("Value"), r.cases("Match"), r.block("Default")}
	case "Switch":
		return switching{at, r.cases("Switch"), r.block("Default")}
	case "Do":
		return doing{at, r.block("Do")}
	case "Parallel":
		return parallel{at, r.block("Parallel"), r.value("Limit")}
	case "Try":
		return trying{at, r.block("Try"), r.block("Else"), r.block("Finally"), r.catches()}
	case "Throw":
		return throwing{at, asNames(r.value("Throw")), r.value("Message"), r.value("Extra"), r.value("Cause")}
	}
	return rethrowing{at}
}

// asNames makes texts of the expressions that are names with a prefix, such as py:ValueError: of an exception there need be no class.
func asNames(t template) template {
	switch v := t.(type) {
	case *yaql.Expression:
		if written, err := name(v.Root()); err == nil {
			return written
		}
	case listTemplate:
		names := make(listTemplate, len(v))
		for n, item := range v {
			names[n] = asNames(item)
		}
		return names
	}
	return t
}

func (r *macroReader) cases(key string) []caseOf {
	node := r.keys[key]
	if isNull(node) {
		return nil
	}
	fields, err := r.d.document.fields(node)
	r.keep(err)
	var cases []caseOf
	for _, f := range fields {
		when, err := r.d.template(f.key)
		r.keep(err)
		body, err := r.d.block(f.value)
		r.keep(err)
		cases = append(cases, caseOf{when, body})
	}
	return cases
}

func (r *macroReader) catches() []catch {
	node := r.keys["Catch"]
	if node == nil || isNull(node) {
		return nil
	}
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	var all []catch
	for _, item := range nodes {
		fields, err := r.d.document.fields(item)
		r.keep(err)
		var one catch
		for _, f := range fields {
			switch f.key.Value {
			case "With":
				names, err := r.d.names(f.value)
				r.keep(err)
				for _, name := range names {
					full, err := r.d.namespaces.resolve(name)
					if err != nil {
						r.keep(r.d.wrong(f.value, "%v", err))
					}
					one.with = append(one.with, full)
				}
			case "As":
				one.as = f.value.Value
			case "Do":
				one.body, err = r.d.block(f.value)
				r.keep(err)
			default:
				r.keep(r.d.wrong(f.key, "a Catch has no %q; it has With, As and Do", f.key.Value))
			}
		}
		all = append(all, one)
	}
	return all
}
