package yaql

import (
	"fmt"
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
	tokens, err := scan(source)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	root, err := p.expression(0)
	if err != nil {
		return nil, err
	}
	if p.peek().kind != tokenEnd {
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

func binding(t *token) int {
	switch t.kind {
	case tokenWord:
		switch t.text {
		case "or":
			return bindOr
		case "and":
			return bindAnd
		case "in", "is":
			return bindCompare
		case "mod":
			return bindMultiply
		}
	case tokenSymbol:
		switch t.text {
		case ")", ",", "]", "}", "(", "=>":
			return 0
		case "->":
			return bindArrow
		case ">", "<", ">=", "<=", "=", "!=":
			return bindCompare
		case "+", "-":
			return bindAdd
		case "*", "/":
			return bindMultiply
		case "=~", "!~":
			return bindMatch
		case "[":
			return bindIndex
		case ".", "?.":
			return bindDot
		case ":":
			return bindType
		}
	}
	return 0
}

type parser struct {
	tokens []token
	next   int
	depth  int
}

func (p *parser) peek() *token { return &p.tokens[p.next] }

func (p *parser) take() *token {
	t := &p.tokens[p.next]
	if t.kind != tokenEnd {
		p.next++
	}
	return t
}

func (p *parser) at(symbol string) bool {
	t := p.peek()
	return t.kind == tokenSymbol && t.text == symbol
}

func (p *parser) unexpected(wanted string) *SyntaxError {
	t := p.peek()
	return &SyntaxError{Offset: t.offset, Message: fmt.Sprintf("expected %s, found %s", wanted, t)}
}

func (p *parser) expect(symbol string) *SyntaxError {
	if !p.at(symbol) {
		return p.unexpected(fmt.Sprintf("%q", symbol))
	}
	p.take()
	return nil
}

// expression parses operators that bind at least as strongly as weakest.
func (p *parser) expression(weakest int) (Node, *SyntaxError) {
	if p.depth++; p.depth > maxDepth {
		return nil, &SyntaxError{Offset: p.peek().offset, Message: "the expression is nested too deeply"}
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
		t := p.peek()
		strength := binding(t)
		if p.called(t, left) {
			p.take()
			args, err := p.arguments(")", true)
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
		if t.text == "[" {
			args, err := p.arguments("]", true)
			if err != nil {
				return nil, err
			}
			left = &Index{at(t.offset), left, args}
			continue
		}
		after := strength + 1
		if t.text == "->" { // groups to the right
			after = strength
		}
		right, err := p.expression(after)
		if err != nil {
			return nil, err
		}
		if t.text == ":" {
			_, prefix := left.(*Keyword)
			_, name := right.(*Keyword)
			if !prefix || !name {
				return nil, &SyntaxError{Offset: t.offset, Message: `":" stands between a prefix and a class name`}
			}
		}
		left = &Binary{at(t.offset), t.text, left, right}
	}
}

// called tells whether the token is the parenthesis of a call of the value before it; nothing stands between them.
func (p *parser) called(t *token, left Node) bool {
	if t.kind != tokenSymbol || t.text != "(" || p.tokens[p.next-1].end != t.offset {
		return false
	}
	switch left.(type) {
	case *Literal, *Keyword:
		return false
	}
	return true
}

func (p *parser) operand() (Node, *SyntaxError) {
	t := p.take()
	position := at(t.offset)
	switch t.kind {
	case tokenNumber, tokenString:
		return &Literal{position, t.value}, nil
	case tokenVariable:
		return &Variable{position, t.text, place(t.text)}, nil
	case tokenWord:
		return p.word(t)
	case tokenSymbol:
		switch t.text {
		case "(":
			inner, err := p.expression(0)
			if err != nil {
				return nil, err
			}
			return inner, p.expect(")")
		case "[":
			items, err := p.arguments("]", false)
			return &List{position, items}, err
		case "{":
			items, err := p.arguments("}", false)
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				if _, ok := item.(*Mapping); !ok {
					return nil, &SyntaxError{Offset: item.Offset(), Message: `between "{" and "}" stand pairs: key => value`}
				}
			}
			return &Map{position, items}, nil
		case "+", "-":
			operand, err := p.expression(bindSign)
			return &Unary{position, t.text, operand}, err
		case ":":
			operand, err := p.expression(bindType)
			if err != nil {
				return nil, err
			}
			if _, ok := operand.(*Keyword); !ok {
				return nil, &SyntaxError{Offset: t.offset, Message: `after ":" stands a class name`}
			}
			return &Unary{position, ":", operand}, nil
		}
	}
	if t.kind != tokenEnd {
		p.next--
	}
	return nil, p.unexpected("a value")
}

func (p *parser) word(t *token) (Node, *SyntaxError) {
	position := at(t.offset)
	if after := p.peek(); after.kind == tokenSymbol && after.text == "(" && after.offset == t.end && t.text != "not" {
		p.take()
		args, err := p.arguments(")", true)
		return &Call{position, t.text, args}, err
	}
	switch t.text {
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
		p.next--
		return nil, p.unexpected("a value")
	}
	return &Keyword{position, t.text}, nil
}

// arguments parses up to the closing symbol. Where gaps are allowed, f(,1) leaves the first argument out (nil).
func (p *parser) arguments(closing string, gaps bool) ([]Node, *SyntaxError) {
	if p.at(closing) {
		p.take()
		return nil, nil
	}
	var args []Node
	for {
		if gaps && (p.at(",") || p.at(closing) && len(args) > 0) {
			args = append(args, nil)
		} else {
			arg, err := p.argument()
			if err != nil {
				return nil, err
			}
			args = append(args, arg)
		}
		if p.at(closing) {
			p.take()
			return args, nil
		}
		if !p.at(",") {
			return nil, p.unexpected(fmt.Sprintf("%q or %q", ",", closing))
		}
		p.take()
	}
}

func (p *parser) argument() (Node, *SyntaxError) {
	key, err := p.expression(0)
	if err != nil || !p.at("=>") {
		return key, err
	}
	t := p.take()
	value, err := p.expression(0)
	return &Mapping{at(t.offset), key, value}, err
}

// Part makes an expression of a node of this one. Offsets in its errors are those of the whole.
func (e *Expression) Part(node Node) *Expression { return &Expression{source: e.source, root: node} }
