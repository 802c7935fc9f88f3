package ui

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/door"
)

// latest is the second number of the last version, that of a definition that names none.
const latest = 4

var (
	version = regexp.MustCompile(`^([0-9]+)(\.([0-9]+))?(\.[0-9]+)?$`)
	// source matches ParametersSource: a method, or a class and its method.
	source = regexp.MustCompile(`^([\pL_][\pL\pN_]*\.)*[\pL_][\pL\pN_]*$`)
)

// Parse reads a definition. All that is wrong is returned with its place, in order; where something is that is not only a warning, there
// is no definition.
func Parse(file string, text []byte) (*Definition, []*Problem) {
	p := &parser{file: file}
	definition := p.document(text)
	slices.SortStableFunc(p.problems, func(a, b *Problem) int { return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column)) })
	if slices.ContainsFunc(p.problems, func(problem *Problem) bool { return !problem.Warning }) {
		return nil, p.problems
	}
	return definition, p.problems
}

type parser struct {
	file     string
	problems []*Problem
	nodes    int  // read so far
	depth    int  // of the present node
	endless  bool // too many nodes, or too deep
}

func (p *parser) say(at Place, warning bool, format string, args ...any) {
	p.problems = append(p.problems, &Problem{Place: at, File: p.file, Message: fmt.Sprintf(format, args...), Warning: warning})
}

func (p *parser) wrong(at Place, format string, args ...any) { p.say(at, false, format, args...) }

func (p *parser) warn(at Place, format string, args ...any) { p.say(at, true, format, args...) }

// yamlLine matches the line in an error of the YAML decoder.
var yamlLine = regexp.MustCompile(`\bline ([0-9]+):`)

// documentBounds leave the rest to the parser, whose errors have places.
var documentBounds = door.Bounds{Depth: 10 * maxDepth, Values: 10 * maxNodes}

func (p *parser) document(text []byte) *Definition {
	var document yaml.Node
	if err := door.YAML(text, &document, documentBounds); err != nil {
		at := Place{1, 1}
		if said := yamlLine.FindStringSubmatch(err.Error()); said != nil {
			at.Line, _ = strconv.Atoi(said[1])
		}
		if strings.HasPrefix(err.Error(), "yaml: ") {
			p.wrong(at, "this is no YAML: %v", err)
		} else {
			p.wrong(at, endless, maxNodes, maxDepth)
		}
		return nil
	}
	if len(document.Content) == 0 || document.Content[0].Kind != yaml.MappingNode {
		p.wrong(Place{1, 1}, "a UI definition is a map with Version, Application and Forms")
		return nil
	}
	root := p.value(document.Content[0])
	if p.endless {
		return nil
	}
	return p.definition(root)
}

func (p *parser) definition(root *Value) *Definition {
	d := &Definition{File: p.file, Minor: latest}
	known := []string{"Version", "Application", "Templates", "Parameters", "ParametersSource", "Forms"}
	for _, entry := range root.Entries {
		value := entry.Value
		switch entry.Name() {
		case "Version":
			d.Minor = p.version(value)
		case "Application":
			d.Application = value
			if value.Kind != Map && value.Kind != Expression {
				p.wrong(value.Place, "Application should be a map with '?' and the properties, or an expression")
			}
		case "Templates":
			d.Templates = p.named(value, "Templates")
		case "Parameters":
			d.Parameters = p.named(value, "Parameters")
		case "ParametersSource":
			var is bool
			if d.ParametersSource, is = value.Text(); !is || !source.MatchString(d.ParametersSource) {
				p.wrong(value.Place, "ParametersSource should be the name of a method, or of a class and its method: org.example.Application.parameters")
			}
		case "Forms":
			p.forms(d, value)
		default:
			p.warn(entry.Key.Place, "there is no key %s; known are %s", entry.Name(), strings.Join(known, ", "))
		}
	}
	if d.Application == nil {
		p.wrong(root.Place, "there is no Application: it is the object model that the forms fill in")
	}
	return d
}

// version reads the second number of a version: numbers such as 2.2 are versions as well.
func (p *parser) version(value *Value) int {
	if value.isNull() {
		return latest
	}
	text := yaql.Text(value.Constant)
	if parts := version.FindStringSubmatch(text); value.Kind == Constant && parts != nil && parts[1] == "2" {
		if minor, err := strconv.Atoi(cmp.Or(parts[3], "0")); err == nil && minor <= latest {
			return minor
		}
	}
	if value.Kind != Constant {
		text = "no number"
	}
	p.wrong(value.Place, "the version is %s; known are 2.0 to 2.%d", text, latest)
	return latest
}

// named reads a section of values that have names.
func (p *parser) named(value *Value, section string) []Entry {
	if value.Kind != Map && !value.isNull() {
		p.wrong(value.Place, "%s should be a map of names and values", section)
	}
	return value.Entries
}

func (p *parser) forms(d *Definition, forms *Value) {
	if forms.isNull() {
		return
	}
	if forms.Kind != List {
		p.wrong(forms.Place, "Forms should be a list of forms, each a map of its name")
		return
	}
	seen := map[string]int{} // where the form is
	for _, item := range forms.Items {
		if item.Kind != Map || len(item.Entries) == 0 {
			p.wrong(item.Place, "a form should be a map of one key, its name")
			continue
		}
		if len(item.Entries) > 1 {
			p.warn(item.Entries[1].Key.Place, "a form should be a map of one key, its name; the first one counts")
		}
		name := item.Entries[0].Name()
		form := p.form(name, item.Entries[0])
		if form == nil {
			continue
		}
		if before, twice := seen[name]; twice {
			p.warn(item.Entries[0].Key.Place, "there is another form %s; the values of the last one count, and the other one is left out", name)
			d.Forms[before] = form
			continue
		}
		seen[name] = len(d.Forms)
		d.Forms = append(d.Forms, form)
	}
	p.order(d)
}

// order warns of expressions over the values of forms that are filled in later. Murano's dashboard cannot show such a form; here they are null.
func (p *parser) order(d *Definition) {
	for i, form := range d.Forms {
		later := map[string]bool{}
		for _, other := range d.Forms[i+1:] {
			later[other.Name] = true
		}
		for _, field := range form.Fields {
			for name, value := range field.Attributes {
				for _, other := range formsOf(value) {
					if later[other] {
						p.warn(value.Place, "%s of field %s asks for form %s, which comes later: it has no value yet", name, field.Name, other)
					}
				}
			}
		}
		for _, validator := range form.Validators {
			for _, other := range mentioned(validator.Expression) {
				if later[other] {
					p.warn(validator.Place, "a validator of form %s asks for form %s, which comes later: it has no value yet", form.Name, other)
				}
			}
		}
	}
}

// formsOf are the forms that expressions of a value ask for.
func formsOf(value *Value) (names []string) {
	names = mentioned(value.Expression)
	for _, item := range value.Items {
		names = append(names, formsOf(item)...)
	}
	for _, entry := range value.Entries {
		names = append(names, formsOf(entry.Value)...)
	}
	return names
}

// mentioned returns the forms that an expression uses, in $.form and $forms.form.
func mentioned(expression *yaql.Expression) (names []string) {
	if expression == nil {
		return nil
	}
	yaql.Inspect(expression.Root(), func(node yaql.Node) {
		binary, is := node.(*yaql.Binary)
		if !is || binary.Operator != "." && binary.Operator != "?." {
			return
		}
		variable, isVariable := binary.Left.(*yaql.Variable)
		name, isName := binary.Right.(*yaql.Keyword)
		if isVariable && isName && (variable.Name == "" || variable.Name == "forms") {
			names = append(names, name.Name)
		}
	})
	return names
}

func (p *parser) form(name string, entry Entry) *Form {
	form := &Form{Place: entry.Key.Place, Name: name}
	body := entry.Value
	if body.Kind != Map {
		p.wrong(body.Place, "form %s should be a map with fields", name)
		return nil
	}
	if body.Get("fields") == nil {
		p.wrong(entry.Key.Place, "form %s has no fields", name)
	}
	for _, part := range body.Entries {
		switch part.Name() {
		case "fields":
			form.Fields = p.fields(part.Value)
		case "validators":
			form.Validators = p.validators(part.Value)
		case "region":
			form.Region = part.Value
		case "topics":
			form.Topics = p.topics(part.Value)
		default:
			p.warn(part.Key.Place, "a form has no %s; known are fields, validators, region, topics", part.Name())
		}
	}
	for name := range form.Topics {
		if !slices.ContainsFunc(form.Fields, func(field *Field) bool { return field.Name == name }) {
			p.warn(body.Get("topics").Place, "the topics of form %s name a field %s, which it does not have", form.Name, name)
		}
	}
	return form
}

// topics reads a map from headings to lists of fields.
func (p *parser) topics(written *Value) map[string]string {
	topics := map[string]string{}
	for _, topic := range written.Entries {
		for _, item := range topic.Value.Items {
			name, isText := item.Text()
			if !isText {
				p.wrong(item.Place, "a topic is a list of names of fields")
				continue
			}
			topics[name] = topic.Name()
		}
	}
	if written.Kind != Map || len(written.Entries) == 0 {
		p.wrong(written.Place, "topics should be a map from headings to lists of fields")
	}
	return topics
}

func (p *parser) validators(list *Value) []*Validator {
	if list.Kind != List {
		p.wrong(list.Place, "validators should be a list of maps with expr and message")
		return nil
	}
	var all []*Validator
	for _, item := range list.Items {
		expr := item.Get("expr")
		if item.Kind != Map || expr == nil {
			p.wrong(item.Place, "a validator needs an expr")
			continue
		}
		validator := &Validator{Place: item.Place}
		for _, part := range item.Entries {
			switch part.Name() {
			case "expr":
				p.condition(validator, expr)
			case "message":
				validator.Message = part.Value
				p.is(part.Value, "message", text)
			default:
				p.warn(part.Key.Place, "a validator has no %s; known are expr, message", part.Name())
			}
		}
		all = append(all, validator)
	}
	return all
}

// condition reads a condition: an expression, in quotes too, or a map with a regular expression.
func (p *parser) condition(validator *Validator, expr *Value) {
	switch {
	case expr.Kind == Expression:
		validator.Expression = expr.Expression
	case expr.Kind == Map:
		if len(expr.Entries) != 1 || camelCase(expr.Entries[0].Name()) != "regexpValidator" {
			p.wrong(expr.Place, "expr should be an expression or a map with regexpValidator")
			return
		}
		validator.Pattern = expr.Entries[0].Value
		p.is(validator.Pattern, "regexpValidator", pattern)
	default:
		written, is := expr.Text()
		if !is {
			p.wrong(expr.Place, "expr should be an expression or a map with regexpValidator")
			return
		}
		var err error
		if validator.Expression, err = yaql.Parse(written); err != nil {
			p.wrong(expr.Place, "this is no expression: %v", err)
		}
	}
}
