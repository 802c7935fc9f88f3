package yaql

import (
	"fmt"
	"strconv"
	"strings"
)

// Expression is a parsed expression. It does not change and may be evaluated by many goroutines at once.
type Expression struct {
	source string
	root   Node
}

// String is the source.
func (e *Expression) String() string { return e.source }

// Root is the parsed form.
func (e *Expression) Root() Node { return e.root }

// SyntaxError says what is wrong with a text that is no expression.
type SyntaxError struct {
	Source  string
	Offset  int // in bytes
	Line    int // from 1
	Column  int // from 1, in bytes
	Message string
	Lexical bool // wrong as a word, not as a sentence
}

func (e *SyntaxError) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

const (
	maxSource = 64 << 10 // bytes
	maxDepth  = 500      // of nodes below each other
)

// Parse parses an expression. The error is a *SyntaxError.
func Parse(source string) (*Expression, error) {
	root, err := parse(source)
	if err != nil {
		err.Source = source
		before := source[:min(err.Offset, len(source))]
		err.Line = 1 + strings.Count(before, "\n")
		err.Column = err.Offset - strings.LastIndexByte(before, '\n')
		return nil, err
	}
	return &Expression{source: source, root: root}, nil
}

func parse(source string) (Node, *SyntaxError) {
	if len(source) > maxSource {
		return nil, &SyntaxError{Message: fmt.Sprintf("the expression is longer than %d bytes", maxSource)}
	}
	p := &parser{source: source}
	p.take()
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if p.token.kind != tokenEnd {
		return nil, p.unexpected("an operator or the end")
	}
	return root, nil
}

// How strongly operators bind; a stronger one has the greater number.
const (
	bindArrow = iota + 1
	bindOr
	bindAnd
	bindNot
	bindCompare
	bindAdd
	bindMultiply
	bindMatch
	bindSign
	bindIndex
	bindDot
	bindType
)

var bindings = [...]int8{
	tokenThinArrow: bindArrow,
	'>':            bindCompare, '<': bindCompare, '=': bindCompare, tokenAtLeast: bindCompare, tokenAtMost: bindCompare, tokenUnequal: bindCompare,
	'+': bindAdd, '-': bindAdd,
	'*': bindMultiply, '/': bindMultiply,
	tokenMatch: bindMatch, tokenNoMatch: bindMatch,
	'[': bindIndex,
	'.': bindDot, tokenSafeDot: bindDot,
	':': bindType,
}

// binding is how strongly the next token binds, 0 when it is no operator.
func (p *parser) binding() int {
	switch t := p.token; {
	case t.kind != tokenWord:
		if int(t.kind) < len(bindings) {
			return int(bindings[t.kind])
		}
	case t.end-t.offset <= 3:
		switch p.text(t) {
		case "or":
			return bindOr
		case "and":
			return bindAnd
		case "in", "is":
			return bindCompare
		case "mod":
			return bindMultiply
		}
	}
	return 0
}

// parser goes through the tokens of a source.
type parser struct {
	source string
	token  token        // the next one
	end    int          // of the one before it
	wrong  *SyntaxError // why there is no next one
	depth  int
}

// take goes past the next token.
func (p *parser) take() token {
	t := p.token
	p.end = t.end
	if p.token, p.wrong = scan(p.source, t.end); p.wrong != nil {
		p.token = token{kind: tokenWrong, offset: p.wrong.Offset}
	}
	return t
}

// text is a token as it is written.
func (p *parser) text(t token) string { return p.source[t.offset:t.end] }

// unexpected says that the next token is not what was wanted.
func (p *parser) unexpected(wanted string) *SyntaxError {
	if p.wrong != nil {
		return p.wrong
	}
	return p.misplaced(p.token, wanted)
}

func (p *parser) misplaced(t token, wanted string) *SyntaxError {
	found := "the end"
	if t.kind != tokenEnd {
		found = strconv.Quote(p.text(t))
	}
	return &SyntaxError{Offset: t.offset, Message: fmt.Sprintf("expected %s, found %s", wanted, found)}
}

func (p *parser) expect(symbol tokenKind) *SyntaxError {
	if p.token.kind != symbol {
		return p.unexpected(strconv.Quote(string(rune(symbol))))
	}
	p.take()
	return nil
}

// expression parses operators that bind at least as strongly as weakest.
func (p *parser) expression(weakest int) (Node, *SyntaxError) {
	if p.depth++; p.depth > maxDepth {
		return nil, &SyntaxError{Offset: p.token.offset, Message: "the expression is nested too deeply"}
	}
	entered := p.depth
	node, err := p.operators(weakest)
	p.depth = entered - 1
	return node, err
}

func (p *parser) operators(weakest int) (Node, *SyntaxError) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	for {
		t, strength := p.token, p.binding()
		if p.called(left) {
			p.take()
			args, err := p.arguments(')', true)
			if err != nil {
				return nil, err
			}
			left = &Apply{at(t.offset), left, args}
			continue
		}
		if strength == 0 || strength < weakest {
			return left, nil
		}
		// A chain of operators is as deep as it is long.
		if p.depth++; p.depth > maxDepth {
			return nil, &SyntaxError{Offset: t.offset, Message: "the expression is too long"}
		}
		p.take()
		if t.kind == '[' {
			args, err := p.arguments(']', true)
			if err != nil {
				return nil, err
			}
			left = &Index{at(t.offset), left, args}
			continue
		}
		after := strength + 1
		if t.kind == tokenThinArrow { // groups to the right
			after = strength
		}
		right, err := p.expression(after)
		if err != nil {
			return nil, err
		}
		if t.kind == ':' {
			_, prefix := left.(*Keyword)
			_, name := right.(*Keyword)
			if !prefix || !name {
				return nil, &SyntaxError{Offset: t.offset, Message: `":" stands between a prefix and a class name`}
			}
		}
		left = &Binary{at(t.offset), p.text(t), left, right}
	}
}

// called tells whether the next token is the parenthesis of a call of the value before it; nothing stands between them.
func (p *parser) called(left Node) bool {
	if p.token.kind != '(' || p.end != p.token.offset {
		return false
	}
	switch left.(type) {
	case *Literal, *Keyword:
		return false
	}
	return true
}

func (p *parser) operand() (Node, *SyntaxError) {
	if p.token.kind == tokenEnd || p.token.kind == tokenWrong {
		return nil, p.unexpected("a value")
	}
	t := p.take()
	position := at(t.offset)
	switch t.kind {
	case tokenInteger, tokenFraction:
		value, err := numberOf(p.source, t)
		return &Literal{position, value}, err
	case tokenString:
		return &Literal{position, p.source[t.offset+1 : t.end-1]}, nil
	case tokenEscaped:
		return &Literal{position, unquote(p.text(t))}, nil
	case tokenVariable:
		name := p.source[t.offset+1 : t.end]
		return &Variable{position, name, place(name)}, nil
	case tokenWord:
		return p.word(t)
	case '(':
		inner, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		return inner, p.expect(')')
	case '[':
		items, err := p.arguments(']', false)
		return &List{position, items}, err
	case '{':
		items, err := p.arguments('}', false)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if _, ok := item.(*Mapping); !ok {
				return nil, &SyntaxError{Offset: item.Offset(), Message: `between "{" and "}" stand pairs: key => value`}
			}
		}
		return &Map{position, items}, nil
	case '+', '-':
		operand, err := p.expression(bindSign)
		return &Unary{position, p.text(t), operand}, err
	case ':':
		operand, err := p.expression(bindType)
		if err != nil {
			return nil, err
		}
		if _, ok := operand.(*Keyword); !ok {
			return nil, &SyntaxError{Offset: t.offset, Message: `after ":" stands a class name`}
		}
		return &Unary{position, ":", operand}, nil
	}
	return nil, p.misplaced(t, "a value")
}

func (p *parser) word(t token) (Node, *SyntaxError) {
	position, text := at(t.offset), p.text(t)
	if p.token.kind == '(' && p.token.offset == t.end && text != "not" {
		p.take()
		args, err := p.arguments(')', true)
		return &Call{position, text, args}, err
	}
	switch text {
	case "true":
		return &Literal{position, true}, nil
	case "false":
		return &Literal{position, false}, nil
	case "null":
		return &Literal{position, nil}, nil
	case "not":
		operand, err := p.expression(bindNot)
		return &Unary{position, "not", operand}, err
	case "and", "or", "in", "mod":
		return nil, p.misplaced(t, "a value")
	}
	return &Keyword{position, text}, nil
}

// arguments parses up to the closing symbol. Where gaps are allowed, f(,1) leaves the first argument out (nil).
func (p *parser) arguments(closing tokenKind, gaps bool) ([]Node, *SyntaxError) {
	if p.token.kind == closing {
		p.take()
		return nil, nil
	}
	var few [4]Node
	args := few[:0]
	for {
		if gaps && (p.token.kind == ',' || p.token.kind == closing && len(args) > 0) {
			args = append(args, nil)
		} else {
			arg, err := p.argument()
			if err != nil {
				return nil, err
			}
			args = append(args, arg)
		}
		switch p.token.kind {
		case closing:
			p.take()
			return append(make([]Node, 0, len(args)), args...), nil
		case ',':
			p.take()
		default:
			return nil, p.unexpected(fmt.Sprintf("%q or %q", ",", string(rune(closing))))
		}
	}
}

func (p *parser) argument() (Node, *SyntaxError) {
	key, err := p.expression(0)
	if err != nil || p.token.kind != tokenFatArrow {
		return key, err
	}
	t := p.take()
	value, err := p.expression(0)
	return &Mapping{at(t.offset), key, value}, err
}

// Part makes an expression of a node of this one. Offsets in its errors are those of the whole.
func (e *Expression) Part(node Node) *Expression { return &Expression{source: e.source, root: node} }
