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
		value expression // nil: the handled exception, again
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

// Parse reads a body.
func Parse(source string) (body *Body, err error) {
	tokens, err := tokenise(source)
	if err != nil {
		return nil, err
	}
	defer recovered(&err)
	p := &parser{tokens: tokens}
	var statements []statement
	words := map[string]int{}
	for i, t := range tokens {
		if t.kind != nameToken {
			continue
		}
		words[t.text]++
		if next := tokens[i+1]; next.kind != operator || next.text != "(" {
			words[t.text]++ // it is more than called
		}
	}
	for p.peek().kind != endOfText {
		statements = append(statements, p.statement()...)
	}
	return &Body{statements: statements, words: words}, nil
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

// targets are the targets of a for.
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
