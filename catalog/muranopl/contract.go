package muranopl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/catalog/yaql"
)

// Contract checks and converts values. The zero Contract accepts everything.
type Contract struct {
	rule rule
}

// String is the contract as a person reads it: "string().notNull()".
func (c *Contract) String() string {
	if c == nil || c.rule == nil {
		return "anything"
	}
	return c.rule.text()
}

// Default is the default of a property or an argument; it may hold expressions.
type Default struct {
	value    template
	position Position
}

func (d *classDocument) defaultOf(node *yaml.Node) (*Default, error) {
	if node == nil {
		return nil, nil
	}
	value, err := d.template(node)
	if err != nil {
		return nil, err
	}
	return &Default{value, d.position(node)}, nil
}

// evaluate evaluates the default in the class that declares the property or the method.
func (d *Default) evaluate(ctx context.Context, class *Class, this *Object) (any, error) {
	return fill(ctx, d.value, class.scope(this, this))
}

// rule is a node of a contract.
type rule interface {
	// apply returns the converted value and reports faults to the application. false: there is no value.
	apply(a *application, value any) (any, bool)
	text() string
}

// anything is "$".
type anything struct{}

func (anything) text() string { return "anything" }

// unreadable is a contract that is wrong.
type unreadable struct{ err *DocumentError }

func (unreadable) text() string { return "what nobody can tell" }

// either is "$.int() or 5672", and "and": the second value applies where the first one is false, or true.
type either struct {
	first, second rule
	and           bool
}

func (e either) text() string {
	if e.and {
		return e.first.text() + " and " + e.second.text()
	}
	return e.first.text() + " or " + e.second.text()
}

// constant is a literal: the value must equal it.
type constant struct{ value any }

func (c constant) text() string { return show(c.value) }

// chain is "$.string().notNull()": functions one after the other.
type chain struct {
	source string
	steps  []step
}

func (c chain) text() string {
	if len(c.steps) == 1 && c.steps[0].name == "heatParameter" {
		return "a parameter of Heat of type " + c.steps[0].parameter.Type
	}
	return strings.TrimPrefix(strings.TrimPrefix(c.source, "$"), ".")
}

// step is one function of a chain.
type step struct {
	name  string
	class string // fully qualified, of class() and template()
	other string // the class to make when a map names none, "" for class
	spec  string
	// predicate and message are the arguments of check().
	predicate *yaql.Expression
	message   string
	exclude   []string // template()
	parameter hot.Rule // heatParameter()
}

// items is a contract of a list.
type items struct {
	rules    []rule // the last one holds for all that follow
	min, max int    // max < 0: none
}

func (i items) text() string {
	if len(i.rules) == 0 {
		return "a list"
	}
	return "a list of " + i.rules[len(i.rules)-1].text()
}

// entries is a contract of a map.
type entries struct {
	fixed []fixedEntry
	// key and value hold for all other keys; nil: other keys are dropped. A map contract without any entry takes every map.
	key, value rule
}

type fixedEntry struct {
	key   string
	value rule
}

func (e entries) text() string {
	if len(e.fixed) == 0 {
		return "a map"
	}
	keys := make([]string, len(e.fixed))
	for i, f := range e.fixed {
		keys[i] = f.key
	}
	return "a map with " + strings.Join(keys, ", ")
}

// contract reads a contract. A wrong one is a flaw of the class, and an exception when it is used.
func (d *classDocument) contract(node *yaml.Node) (*Contract, error) {
	if node == nil {
		return &Contract{anything{}}, nil
	}
	r, err := d.rule(node)
	var wrong *DocumentError
	if errors.As(err, &wrong) {
		r = unreadable{wrong}
		err = d.flaw(Flaw{DocumentError: *wrong})
	}
	if err != nil {
		return nil, err
	}
	return &Contract{r}, nil
}

func (d *classDocument) rule(node *yaml.Node) (rule, error) {
	node, err := d.follow(node)
	if err != nil {
		return nil, err
	}
	switch node.Kind {
	case yaml.SequenceNode:
		return d.itemsRule(node)
	case yaml.MappingNode:
		return d.entriesRule(node)
	}
	value, err := d.scalar(node)
	if err != nil {
		return nil, err
	}
	expression, ok := value.(*yaql.Expression)
	if !ok {
		return constant{value}, nil
	}
	r, err := d.chain(expression)
	if err != nil {
		return nil, d.wrong(node, "%v", err)
	}
	return r, nil
}

func (d *classDocument) itemsRule(node *yaml.Node) (rule, error) {
	i := items{max: -1}
	nodes := node.Content
	var bounds []int
	for len(nodes) > 0 && len(bounds) < 2 {
		last, err := d.follow(nodes[len(nodes)-1])
		if err != nil {
			return nil, err
		}
		n, ok := YAMLScalar(last.Value).(int64)
		if last.Kind != yaml.ScalarNode || !plainStyle(last) || !ok || n < 0 || n > 1<<30 {
			break
		}
		bounds = append([]int{int(n)}, bounds...)
		nodes = nodes[:len(nodes)-1]
	}
	if len(bounds) > 0 {
		i.min = bounds[0]
	}
	if len(bounds) == 2 {
		i.max = bounds[1]
	}
	for _, item := range nodes {
		r, err := d.rule(item)
		if err != nil {
			return nil, err
		}
		i.rules = append(i.rules, r)
	}
	return i, nil
}

func (d *classDocument) entriesRule(node *yaml.Node) (rule, error) {
	fields, err := d.document.fields(node)
	if err != nil {
		return nil, err
	}
	var e entries
	for _, f := range fields {
		key, err := d.template(f.key)
		if err != nil {
			return nil, err
		}
		value, err := d.rule(f.value)
		if err != nil {
			return nil, err
		}
		expression, ok := key.(*yaql.Expression)
		switch {
		case !ok:
			e.fixed = append(e.fixed, fixedEntry{yaql.Text(literal(key)), value})
		case e.key != nil:
			return nil, d.wrong(f.key, "a contract of a map has at most one expression among its keys")
		default:
			if e.key, err = d.chain(expression); err != nil {
				return nil, d.wrong(f.key, "%v", err)
			}
			e.value = value
		}
	}
	return e, nil
}

// chain reads "$.f().g()".
func (d *classDocument) chain(expression *yaql.Expression) (rule, error) {
	var steps []step
	node := expression.Root()
	for {
		switch n := node.(type) {
		case *yaql.Variable:
			if n.Name != "" {
				return nil, fmt.Errorf("a contract begins with $, not $%s", n.Name)
			}
			if len(steps) == 0 {
				return anything{}, nil
			}
			return chain{expression.String(), steps}, nil
		case *yaql.Literal: // a number with a sign, or the like
			return constant{n.Value}, nil
		case *yaql.Unary:
			value, err := expression.Evaluate(context.Background(), yaql.NewScope(yaql.Standard(), nil, yaql.Limits{}))
			if err != nil {
				return nil, fmt.Errorf("this is no contract: %w", err)
			}
			return constant{value}, nil
		case *yaql.Binary:
			if len(steps) == 0 && (n.Operator == "or" || n.Operator == "and") {
				first, err := d.chain(expression.Part(n.Left))
				if err != nil {
					return nil, err
				}
				second, err := d.chain(expression.Part(n.Right))
				return either{first, second, n.Operator == "and"}, err
			}
			call, ok := n.Right.(*yaql.Call)
			if n.Operator != "." || !ok {
				return nil, fmt.Errorf("%q is no contract: a contract is like $.string().notNull()", expression)
			}
			s, err := d.step(expression, call)
			if err != nil {
				return nil, err
			}
			steps = append([]step{s}, steps...)
			node = n.Left
		default:
			return nil, fmt.Errorf("%q is no contract: a contract is like $.string().notNull()", expression)
		}
	}
}

func (d *classDocument) step(expression *yaql.Expression, call *yaql.Call) (step, error) {
	s := step{name: call.Name}
	var positional []yaql.Node
	named := map[string]yaql.Node{}
	for _, arg := range call.Args {
		if mapping, ok := arg.(*yaql.Mapping); ok {
			if key, ok := mapping.Key.(*yaql.Keyword); ok {
				named[key.Name] = mapping.Value
				continue
			}
		}
		positional = append(positional, arg)
	}
	argument := func(n int, name string) yaql.Node {
		if n < len(positional) {
			return positional[n]
		}
		return named[name]
	}
	var err error
	switch call.Name {
	case "string", "int", "bool", "notNull", "owned", "notOwned":
		if len(call.Args) > 0 {
			err = fmt.Errorf("%s() takes nothing in a contract", call.Name)
		}
	case "check":
		predicate := argument(0, "predicate")
		if predicate == nil {
			return s, fmt.Errorf("check() needs a condition")
		}
		s.predicate = expression.Part(predicate)
		if message := argument(1, "msg"); message != nil {
			s.message, err = name(message)
		}
	case "class", "template":
		err = d.classStep(&s, argument)
	case "heatParameter":
		var rule string
		if node := argument(0, "rule"); node != nil {
			rule, err = name(node)
		}
		if err == nil {
			s.parameter, err = hot.ParseRule(rule)
		}
	default:
		err = fmt.Errorf("a contract has no function %s(); it has string, int, bool, notNull, check, class, template, owned and notOwned", call.Name)
	}
	return s, err
}

func (d *classDocument) classStep(s *step, argument func(int, string) yaql.Node) error {
	class := argument(0, "type")
	if class == nil {
		if class = argument(0, "name"); class == nil {
			return fmt.Errorf("%s() needs a class", s.name)
		}
	}
	var err error
	if s.class, err = d.className(class); err != nil {
		return err
	}
	s.other = s.class
	if other := argument(1, "defaultType"); other != nil {
		if literal, ok := other.(*yaql.Literal); !ok || literal.Value != nil {
			if s.other, err = d.className(other); err != nil {
				return err
			}
		}
	}
	if spec := argument(2, "versionSpec"); spec != nil {
		if s.spec, err = name(spec); err != nil {
			return err
		}
		if _, err = ParseSpec(s.spec); err != nil {
			return err
		}
	}
	if excluded, ok := argument(3, "excludeProperties").(*yaql.List); ok && s.name == "template" {
		for _, item := range excluded.Items {
			property, err := name(item)
			if err != nil {
				return err
			}
			s.exclude = append(s.exclude, property)
		}
	}
	return nil
}

// className resolves a class as an expression names it: Name, prefix:Name, :Name, 'fully.qualified.Name', fully.qualified.Name.
func (d *classDocument) className(node yaql.Node) (string, error) {
	written, err := name(node)
	if err != nil {
		return "", fmt.Errorf("a class is wanted: %w", err)
	}
	return d.namespaces.resolve(written)
}

// name makes a text of an expression that is a name.
func name(node yaql.Node) (string, error) {
	switch n := node.(type) {
	case *yaql.Keyword:
		return n.Name, nil
	case *yaql.Literal:
		if n.Value != nil {
			return yaql.Text(n.Value), nil
		}
	case *yaql.Unary:
		if n.Operator == ":" {
			inner, err := name(n.Operand)
			return ":" + inner, err
		}
	case *yaql.Binary:
		if n.Operator == ":" || n.Operator == "." {
			left, err := name(n.Left)
			if err != nil {
				return "", err
			}
			right, err := name(n.Right)
			return left + n.Operator + right, err
		}
	}
	return "", fmt.Errorf("this is no name")
}
