package body

import "slices"

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
