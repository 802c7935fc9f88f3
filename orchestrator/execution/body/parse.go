package body

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The statements.
type (
	statement any

	expressionStatement struct {
		line  int
		value expression
	}
	assignment struct {
		line    int
		targets []expression
		value   expression
	}
	augmented struct {
		line     int
		target   expression
		operator string
		value    expression
	}
	returnStatement struct {
		line  int
		value expression // nil for None
	}
	raiseStatement struct {
		line  int
		value expression // nil: what is being handled, again
	}
	leave       struct{ kind outcome } // pass, break, continue
	ifStatement struct {
		line      int
		condition expression
		then, not []statement
	}
	whileStatement struct {
		line      int
		condition expression
		do        []statement
	}
	forStatement struct {
		line   int
		target expression
		in     expression
		do     []statement
	}
	tryStatement struct {
		line          int
		do            []statement
		handlers      []handler
		not, finally_ []statement
	}
	withStatement struct {
		line  int
		value expression
		as    string
		do    []statement
	}
	handler struct {
		types []string // none: every error
		as    string
		do    []statement
	}
)

// The expressions.
type (
	expression any

	literal struct{ value any }
	name    struct {
		line int
		name string
	}
	attribute struct {
		line int
		of   expression
		name string
	}
	index struct {
		line int
		of   expression
		at   expression
	}
	slice struct {
		line     int
		of       expression
		from, to expression // nil: open
	}
	call struct {
		line     int
		function expression
		args     []expression
		named    []namedArgument
	}
	namedArgument struct {
		name  string // "" for **value
		value expression
	}
	spread struct{ value expression } // *value as an argument
	unary  struct {
		line     int
		operator string
		value    expression
	}
	binary struct {
		line        int
		operator    string
		left, right expression
	}
	comparison struct {
		line      int
		first     expression
		operators []string
		others    []expression
	}
	logical struct {
		and         bool
		left, right expression
	}
	conditional struct{ condition, then, not expression }
	sequence    struct {
		items []expression
		tuple bool
	}
	lambda struct {
		names []string
		value expression
	}
	pairs         struct{ keys, values []expression }
	comprehension struct {
		line       int
		key, value expression // key is nil for a list
		clauses    []clause
	}
	clause struct {
		target, in expression // in is nil for an if
		condition  expression
	}
)

// Parse reads a body.
func Parse(source string) (body *Body, err error) {
	tokens, err := tokenise(source)
	if err != nil {
		return nil, err
	}
	defer recovered(&err)
	p := &parser{tokens: tokens}
	var statements []statement
	for p.peek().kind != endOfText {
		statements = append(statements, p.statement()...)
	}
	return &Body{statements: statements}, nil
}

// stop ends the reading of a body; recovered makes an error of it.
type stop struct{ err *Error }

func syntax(line int, format string, args ...any) {
	panic(stop{&Error{Line: line, Type: "SyntaxError", Text: fmt.Sprintf(format, args...)}})
}

func recovered(err *error) {
	switch stopped := recover().(type) {
	case nil:
	case stop:
		*err = stopped.err
	default:
		panic(stopped)
	}
}

var errNotKnown = errors.New("is not known in the bodies of plans here; put it into a script")

type parser struct {
	tokens []token
	at     int
	depth  int
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != endOfText {
		p.at++
	}
	return t
}

func (p *parser) is(words ...string) bool {
	t := p.peek()
	return (t.kind == operator || t.kind == nameToken) && slices.Contains(words, t.text)
}

func (p *parser) accept(word string) bool {
	if p.is(word) {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(word string) token {
	if !p.is(word) {
		syntax(p.peek().line, "%q is expected, and not %s", word, p.peek())
	}
	return p.next()
}

func (t token) String() string {
	switch t.kind {
	case endOfText:
		return "the end"
	case newline:
		return "the end of the line"
	case indent, dedent:
		return "another indentation"
	case number, text:
		return repr(t.value)
	}
	return fmt.Sprintf("%q", t.text)
}

// block is the statements after a colon: on the same line, or indented below.
func (p *parser) block() []statement {
	p.expect(":")
	if p.peek().kind != newline {
		return p.simpleLine()
	}
	p.next()
	if p.peek().kind != indent {
		syntax(p.peek().line, "an indented block is expected")
	}
	p.next()
	var all []statement
	for p.peek().kind != dedent && p.peek().kind != endOfText {
		all = append(all, p.statement()...)
	}
	if p.peek().kind == dedent {
		p.next()
	}
	return all
}

func (p *parser) statement() []statement {
	t := p.peek()
	if t.kind == indent {
		syntax(t.line, "unexpected indent")
	}
	if t.kind == nameToken {
		switch t.text {
		case "if":
			p.next()
			return []statement{p.ifStatement(t.line)}
		case "while":
			p.next()
			condition := p.expression()
			return []statement{whileStatement{t.line, condition, p.block()}}
		case "for":
			p.next()
			target := p.targets()
			p.expect("in")
			in := p.expressions()
			return []statement{forStatement{t.line, target, in, p.block()}}
		case "try":
			p.next()
			return []statement{p.tryStatement(t.line)}
		case "with":
			p.next()
			s := withStatement{line: t.line, value: p.expression()}
			if p.accept("as") {
				s.as = p.name()
			}
			s.do = p.block()
			return []statement{s}
		case "def", "class", "yield", "global", "del", "exec", "from", "async", "await":
			syntax(t.line, "%s %v", t.text, errNotKnown)
		}
	}
	return p.simpleLine()
}

func (p *parser) ifStatement(line int) statement {
	s := ifStatement{line: line, condition: p.expression()}
	s.then = p.block()
	switch t := p.peek(); {
	case p.accept("elif"):
		s.not = []statement{p.ifStatement(t.line)}
	case p.accept("else"):
		s.not = p.block()
	}
	return s
}

func (p *parser) tryStatement(line int) statement {
	s := tryStatement{line: line, do: p.block()}
	for p.accept("except") {
		var h handler
		if !p.is(":") {
			h.types = p.exceptionTypes()
			if p.accept("as") || p.accept(",") {
				h.as = p.name()
			}
		}
		h.do = p.block()
		s.handlers = append(s.handlers, h)
	}
	if p.accept("else") {
		s.not = p.block()
	}
	if p.accept("finally") {
		s.finally_ = p.block()
	} else if s.handlers == nil {
		syntax(line, "try needs except or finally")
	}
	return s
}

func (p *parser) exceptionTypes() []string {
	if !p.accept("(") {
		return []string{p.dotted()}
	}
	var types []string
	for !p.accept(")") {
		types = append(types, p.dotted())
		if !p.is(")") {
			p.expect(",")
		}
	}
	return types
}

func (p *parser) dotted() string {
	name := p.name()
	for p.accept(".") {
		name = p.name()
	}
	return name
}

func (p *parser) name() string {
	t := p.next()
	if t.kind != nameToken {
		syntax(t.line, "a name is expected, and not %s", t)
	}
	return t.text
}

// simpleLine is the statements of one line, between semicolons.
func (p *parser) simpleLine() []statement {
	var all []statement
	for {
		all = append(all, p.simple())
		semicolon := p.accept(";")
		if t := p.peek(); t.kind == newline || t.kind == endOfText {
			p.next()
			return all
		}
		if !semicolon {
			syntax(p.peek().line, "%s is not expected here", p.peek())
		}
	}
}

func (p *parser) lineEnds() bool {
	return p.peek().kind == newline || p.peek().kind == endOfText || p.is(";")
}

func (p *parser) simple() statement {
	t := p.peek()
	if t.kind == nameToken {
		switch t.text {
		case "pass":
			p.next()
			return leave{ranOn}
		case "break":
			p.next()
			return leave{broke}
		case "continue":
			p.next()
			return leave{continued}
		case "return":
			p.next()
			if p.lineEnds() {
				return returnStatement{line: t.line}
			}
			return returnStatement{t.line, p.expressions()}
		case "raise":
			p.next()
			if p.lineEnds() {
				return raiseStatement{line: t.line}
			}
			return raiseStatement{t.line, p.expression()}
		case "import":
			p.next()
			for _, module := range strings.Split(p.modules(), ",") {
				if module != "json" && module != "time" && module != "uuid" {
					syntax(t.line, "import of %s %v", module, errNotKnown)
				}
			}
			return leave{ranOn}
		case "print":
			if following := p.tokens[p.at+1]; following.kind != operator || following.text == "." {
				p.next()
				c := call{line: t.line, function: name{t.line, "print"}}
				if !p.lineEnds() {
					c.args = []expression{p.expressions()}
				}
				return expressionStatement{t.line, c}
			}
		case "assert":
			p.next()
			condition := p.expression()
			var said expression = literal{""}
			if p.accept(",") {
				said = p.expression()
			}
			failing := raiseStatement{t.line, call{line: t.line, function: name{t.line, "AssertionError"}, args: []expression{said}}}
			return ifStatement{line: t.line, condition: unary{t.line, "not", condition}, then: []statement{failing}}
		}
	}
	value := p.expressions()
	if p.peek().kind == operator && len(p.peek().text) > 1 && strings.HasSuffix(p.peek().text, "=") && !p.is("==", "!=", "<=", ">=") {
		operator := strings.TrimSuffix(p.next().text, "=")
		p.assignable(value, false)
		return augmented{t.line, value, operator, p.expressions()}
	}
	if !p.is("=") {
		return expressionStatement{t.line, value}
	}
	var targets []expression
	for p.accept("=") {
		p.assignable(value, true)
		targets = append(targets, value)
		value = p.expressions()
	}
	return assignment{t.line, targets, value}
}

func (p *parser) modules() string {
	names := []string{p.dotted()}
	for p.accept(",") {
		names = append(names, p.dotted())
	}
	return strings.Join(names, ",")
}

// assignable ends the reading when nothing can be assigned to the expression.
func (p *parser) assignable(target expression, many bool) {
	switch e := target.(type) {
	case name, index:
		return
	case sequence:
		if many {
			for _, item := range e.items {
				p.assignable(item, true)
			}
			return
		}
	}
	syntax(p.peek().line, "cannot assign to this expression")
}

// targets are what a for assigns to.
func (p *parser) targets() expression {
	var items []expression
	tuple := false
	for {
		items = append(items, p.postfix())
		if !p.accept(",") {
			break
		}
		tuple = true
		if p.is("in") {
			break
		}
	}
	if tuple {
		items = []expression{sequence{items, true}}
	}
	p.assignable(items[0], true)
	return items[0]
}

// expressions is one expression, or a tuple of some without parentheses.
func (p *parser) expressions() expression {
	first := p.expression()
	if !p.is(",") {
		return first
	}
	items := []expression{first}
	for p.accept(",") {
		if p.lineEnds() || p.is("=", ")", "]", "}", ":") {
			break
		}
		items = append(items, p.expression())
	}
	return sequence{items, true}
}

func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxDepth {
		syntax(p.peek().line, "expressions are nested too deeply")
	}
	return func() { p.depth-- }
}

func (p *parser) expression() expression {
	defer p.deeper()()
	if p.is("yield") {
		syntax(p.peek().line, "%s %v", p.peek().text, errNotKnown)
	}
	if p.accept("lambda") {
		var l lambda
		for !p.accept(":") {
			l.names = append(l.names, p.name())
			if !p.is(":") {
				p.expect(",")
			}
		}
		l.value = p.expression()
		return l
	}
	then := p.or()
	if !p.accept("if") {
		return then
	}
	condition := p.or()
	p.expect("else")
	return conditional{condition, then, p.expression()}
}

func (p *parser) or() expression {
	left := p.and()
	for p.accept("or") {
		left = logical{false, left, p.and()}
	}
	return left
}

func (p *parser) and() expression {
	left := p.not()
	for p.accept("and") {
		left = logical{true, left, p.not()}
	}
	return left
}

func (p *parser) not() expression {
	defer p.deeper()()
	if t := p.peek(); p.accept("not") {
		return unary{t.line, "not", p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expression {
	c := comparison{line: p.peek().line, first: p.sum()}
	for {
		operator := ""
		switch {
		case p.is("==", "!=", "<>", "<", ">", "<=", ">=", "in"):
			operator = p.next().text
		case p.is("is"):
			p.next()
			operator = "is"
			if p.accept("not") {
				operator = "is not"
			}
		case p.is("not") && p.tokens[p.at+1].text == "in":
			p.next()
			p.next()
			operator = "not in"
		}
		if operator == "" {
			break
		}
		c.operators, c.others = append(c.operators, operator), append(c.others, p.sum())
	}
	if c.operators == nil {
		return c.first
	}
	return c
}

func (p *parser) sum() expression {
	left := p.product()
	for p.is("+", "-") {
		t := p.next()
		left = binary{t.line, t.text, left, p.product()}
	}
	return left
}

func (p *parser) product() expression {
	left := p.sign()
	for p.is("*", "/", "//", "%") {
		t := p.next()
		left = binary{t.line, t.text, left, p.sign()}
	}
	return left
}

func (p *parser) sign() expression {
	defer p.deeper()()
	if p.is("-", "+") {
		t := p.next()
		return unary{t.line, t.text, p.sign()}
	}
	left := p.postfix()
	if t := p.peek(); p.accept("**") {
		return binary{t.line, "**", left, p.sign()}
	}
	return left
}

func (p *parser) postfix() expression {
	e := p.atom()
	for {
		t := p.peek()
		switch {
		case p.accept("."):
			e = attribute{t.line, e, p.name()}
		case p.accept("("):
			e = p.call(t.line, e)
		case p.accept("["):
			e = p.subscript(t.line, e)
		default:
			return e
		}
	}
}

func (p *parser) subscript(line int, of expression) expression {
	var from, to expression
	if !p.is(":") {
		from = p.expressions()
	}
	if !p.accept(":") {
		p.expect("]")
		return index{line, of, from}
	}
	if !p.is("]") {
		to = p.expression()
	}
	p.expect("]")
	return slice{line, of, from, to}
}

func (p *parser) call(line int, function expression) expression {
	c := call{line: line, function: function}
	for !p.accept(")") {
		switch following := p.tokens[min(p.at+1, len(p.tokens)-1)]; {
		case p.accept("**"):
			c.named = append(c.named, namedArgument{"", p.expression()})
		case p.accept("*"):
			c.args = append(c.args, spread{p.expression()})
		case p.peek().kind == nameToken && following.kind == operator && following.text == "=":
			name := p.name()
			p.next()
			c.named = append(c.named, namedArgument{name, p.expression()})
		default:
			value := p.expression()
			if p.is("for") {
				value = p.comprehension(line, nil, value)
			}
			c.args = append(c.args, value)
		}
		if !p.is(")") {
			p.expect(",")
		}
	}
	return c
}

func (p *parser) comprehension(line int, key, value expression) expression {
	c := comprehension{line: line, key: key, value: value}
	for {
		switch {
		case p.accept("for"):
			target := p.targets()
			p.expect("in")
			c.clauses = append(c.clauses, clause{target: target, in: p.or()})
		case p.accept("if"):
			c.clauses = append(c.clauses, clause{condition: p.or()})
		default:
			return c
		}
	}
}

var constants = map[string]any{"None": nil, "True": true, "False": false}

// keywords cannot be names of values.
var keywords = []string{"and", "or", "not", "in", "is", "if", "else", "elif", "for", "while", "try", "except", "finally", "return", "raise", "import", "from", "as", "pass",
	"break", "continue", "def", "class", "lambda", "with", "yield", "global", "del", "assert"}

func (p *parser) atom() expression {
	t := p.next()
	switch t.kind {
	case number:
		return literal{t.value}
	case text:
		joined := t.value.(string)
		for p.peek().kind == text {
			joined += p.next().value.(string)
		}
		return literal{joined}
	case nameToken:
		if value, is := constants[t.text]; is {
			return literal{value}
		}
		if slices.Contains(keywords, t.text) {
			syntax(t.line, "%q is not expected here", t.text)
		}
		return name{t.line, t.text}
	case operator:
		switch t.text {
		case "(":
			return p.parenthesis(t.line)
		case "[":
			return p.list(t.line)
		case "{":
			return p.dict(t.line)
		}
	}
	syntax(t.line, "%s is not expected here", t)
	return nil
}

func (p *parser) parenthesis(line int) expression {
	if p.accept(")") {
		return sequence{nil, true}
	}
	value := p.expressions()
	if p.is("for") {
		value = p.comprehension(line, nil, value)
	}
	p.expect(")")
	return value
}

func (p *parser) list(line int) expression {
	var items []expression
	for !p.accept("]") {
		items = append(items, p.expression())
		if len(items) == 1 && p.is("for") {
			c := p.comprehension(line, nil, items[0])
			p.expect("]")
			return c
		}
		if !p.is("]") {
			p.expect(",")
		}
	}
	return sequence{items, false}
}

func (p *parser) dict(line int) expression {
	var d pairs
	for !p.accept("}") {
		key := p.expression()
		p.expect(":")
		value := p.expression()
		if len(d.keys) == 0 && p.is("for") {
			c := p.comprehension(line, key, value)
			p.expect("}")
			return c
		}
		d.keys, d.values = append(d.keys, key), append(d.values, value)
		if !p.is("}") {
			p.expect(",")
		}
	}
	return d
}
