package yaql

import (
	"fmt"
	"strconv"
	"strings"
)

// Expression is a parsed expression. It does not change and may be evaluated by many goroutines at once.
type Expression struct {
	source   string
	root     Node
	patterns patterns
}

// String is the source.
func (e *Expression) String() string { return e.source }

// Root is the parsed form.
func (e *Expression) Root() Node { return e.root }

// SyntaxError is a fault of a text that is no expression.
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
func Parse(source string) (*Expression, error) { return parsed(source, false) }

// ParseLegacy is Parse in the grammar of YAQL 0.2, which has tuples: 1 => 2 => 3 is a list of three. Murano's own engines, also the engines of old
// packages and of forms, do not have it.
func ParseLegacy(source string) (*Expression, error) { return parsed(source, true) }

func parsed(source string, tuples bool) (*Expression, error) {
	root, err := parse(source, tuples)
	if err != nil {
		err.Source = source
		before := source[:min(err.Offset, len(source))]
		err.Line = 1 + strings.Count(before, "\n")
		err.Column = err.Offset - strings.LastIndexByte(before, '\n')
		return nil, err
	}
	return &Expression{source: source, root: root}, nil
}

func parse(source string, tuples bool) (Node, *SyntaxError) {
	if len(source) > maxSource {
		return nil, &SyntaxError{Message: fmt.Sprintf("the expression is longer than %d bytes", maxSource)}
	}
	p := parser{tokens: tokens{source: source}, tuples: tuples}
	p.read()
	p.token = p.few[0]
	p.literals.estimate, p.keywords.estimate, p.variables.estimate = p.count[aLiteral], p.count[aKeyword], p.count[aVariable]
	p.calls.estimate, p.binaries.estimate = p.count[aCall], p.count[aBinary]
	p.maps.estimate, p.mappings.estimate, p.lists.estimate = p.count[aMap], p.count[aMapping], p.count[aMap]+p.count[anArgument]
	root, err := p.tuple()
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

// bindings are the strengths with which tokens bind, 0 for tokens that are no operators between two operands.
var bindings = [kinds]int8{
	tokenThinArrow: bindArrow,
	tokenOr:        bindOr,
	tokenAnd:       bindAnd,
	'>':            bindCompare, '<': bindCompare, '=': bindCompare, tokenAtLeast: bindCompare, tokenAtMost: bindCompare, tokenUnequal: bindCompare,
	tokenIn: bindCompare, tokenIs: bindCompare,
	'+': bindAdd, '-': bindAdd,
	'*': bindMultiply, '/': bindMultiply, tokenMod: bindMultiply,
	tokenMatch: bindMatch, tokenNoMatch: bindMatch,
	'[': bindIndex,
	'.': bindDot, tokenSafeDot: bindDot,
	':': bindType,
}

// parser goes through the tokens of a source.
type parser struct {
	tokens
	token  token // the next one
	number int   // of it
	end    int32 // of the one before it
	depth  int
	tuples bool // there are some

	// The memory of nodes: nodes of a kind side by side, since allocating them one by one takes more time than all the rest.
	literals  slab[Literal]
	keywords  slab[Keyword]
	variables slab[Variable]
	calls     slab[Call]
	binaries  slab[Binary]
	maps      slab[Map]
	mappings  slab[Mapping]
	lists     slab[Node]
}

// slab is room for values that are allocated together.
type slab[T any] struct {
	estimate int // of how many there will be
	room     []T
}

// take is room for several, one after the other.
func (s *slab[T]) take(count int) []T {
	if len(s.room) < count {
		s.room = make([]T, max(s.estimate, count))
		s.estimate = 0
	}
	taken := s.room[:count:count]
	s.room = s.room[count:]
	return taken
}

// put gives a value its place.
func (s *slab[T]) put(value T) *T {
	place := &s.take(1)[0]
	*place = value
	return place
}

// take goes past the next token.
func (p *parser) take() token {
	t := p.token
	p.end = t.end
	p.number++
	p.token = p.at(p.number)
	return t
}

// text is a token as it is written.
func (p *parser) text(t token) string { return p.source[t.offset:t.end] }

// unexpected reports that the next token is not the wanted one.
func (p *parser) unexpected(wanted string) *SyntaxError {
	if p.token.kind == tokenWrong {
		return p.wrong
	}
	return p.misplaced(p.token, wanted)
}

func (p *parser) misplaced(t token, wanted string) *SyntaxError {
	found := "the end"
	if t.kind != tokenEnd {
		found = strconv.Quote(p.text(t))
	}
	return misused(t, fmt.Sprintf("expected %s, found %s", wanted, found))
}

// misused reports a fault of a token at its place.
func misused(t token, message string) *SyntaxError {
	return &SyntaxError{Offset: int(t.offset), Message: message}
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
	entered := p.depth // an error ends it all, so only success comes back to this
	if p.depth++; p.depth > maxDepth {
		return nil, misused(p.token, "the expression is nested too deeply")
	}
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	for {
		t, strength := p.token, int(bindings[p.token.kind])
		if t.kind == '(' && p.called(left) {
			p.take()
			args, err := p.arguments(')', true)
			if err != nil {
				return nil, err
			}
			left = &Apply{at(t.offset), left, args}
			continue
		}
		if strength == 0 || strength < weakest {
			p.depth = entered
			return left, nil
		}
		// A chain of operators is as deep as it is long.
		if p.depth++; p.depth > maxDepth {
			return nil, misused(t, "the expression is too long")
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
				return nil, misused(t, `":" stands between a prefix and a class name`)
			}
		}
		left = p.binaries.put(Binary{at(t.offset), p.text(t), left, right})
	}
}

// called reports whether the next token, a parenthesis, begins a call of the value directly before it.
func (p *parser) called(left Node) bool {
	if p.end != p.token.offset {
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
		value, err := numberOf(p.text(t), t)
		return p.literals.put(Literal{position, value}), err
	case tokenString:
		return p.literals.put(Literal{position, p.source[t.offset+1 : t.end-1]}), nil
	case tokenEscaped:
		return p.literals.put(Literal{position, unquote(p.text(t))}), nil
	case tokenVariable:
		name := p.source[t.offset+1 : t.end]
		return p.variables.put(Variable{position, name, place(name)}), nil
	case '(':
		inner, err := p.tuple()
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
		return p.maps.put(Map{position, items}), nil
	case '+', '-':
		operand, err := p.expression(bindSign)
		return &Unary{position, p.text(t), operand}, err
	case ':':
		operand, err := p.expression(bindType)
		if err != nil {
			return nil, err
		}
		if _, ok := operand.(*Keyword); !ok {
			return nil, misused(t, `after ":" stands a class name`)
		}
		return &Unary{position, ":", operand}, nil
	}
	if t.kind >= tokenWord && t.kind <= tokenMod {
		return p.word(t)
	}
	return nil, p.misplaced(t, "a value")
}

func (p *parser) word(t token) (Node, *SyntaxError) {
	position := at(t.offset)
	if p.token.kind == '(' && p.token.offset == t.end && t.kind != tokenNot {
		p.take()
		args, err := p.arguments(')', true)
		return p.calls.put(Call{position, p.text(t), args}), err
	}
	switch t.kind {
	case tokenTrue:
		return p.literals.put(Literal{position, true}), nil
	case tokenFalse:
		return p.literals.put(Literal{position, false}), nil
	case tokenNull:
		return p.literals.put(Literal{position, nil}), nil
	case tokenNot:
		operand, err := p.expression(bindNot)
		return &Unary{position, "not", operand}, err
	case tokenAnd, tokenOr, tokenIn, tokenMod:
		return nil, p.misplaced(t, "a value")
	}
	return p.keywords.put(Keyword{position, p.text(t)}), nil
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
		before := p.token
		if gaps && before.kind == ',' {
			args = append(args, nil)
		} else {
			arg, err := p.argument()
			if err != nil {
				return nil, err
			}
			args = append(args, arg)
		}
		if n := len(args); gaps && n > 1 && isMapping(args[n-2]) && !isMapping(args[n-1]) {
			return nil, p.misplaced(before, "an argument with a name, as those before it have")
		}
		switch p.token.kind {
		case closing:
			p.take()
			kept := p.lists.take(len(args))
			copy(kept, args)
			return kept, nil
		case ',':
			p.take()
		default:
			return nil, p.unexpected(fmt.Sprintf("%q or %q", ",", string(rune(closing))))
		}
	}
}

func isMapping(node Node) bool {
	mapping, is := node.(*Mapping)
	return is && !mapping.tuple
}

func (p *parser) argument() (Node, *SyntaxError) {
	key, err := p.expression(0)
	if err != nil || p.token.kind != tokenFatArrow {
		return key, err
	}
	t := p.take()
	value, err := p.expression(0)
	if err == nil && p.tuples && p.token.kind == tokenFatArrow {
		return p.longer(t, []Node{key, value})
	}
	return p.mappings.put(Mapping{at: at(t.offset), Key: key, Value: value, tuple: p.tuples}), err
}

// tuple parses a whole expression, or one in parentheses, which are tuples where there are arrows in them.
func (p *parser) tuple() (Node, *SyntaxError) {
	first, err := p.expression(0)
	if err != nil || !p.tuples || p.token.kind != tokenFatArrow {
		return first, err
	}
	return p.longer(p.token, []Node{first})
}

// longer parses the further items of a tuple.
func (p *parser) longer(t token, items []Node) (Node, *SyntaxError) {
	for p.token.kind == tokenFatArrow {
		p.take()
		item, err := p.expression(0)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return &List{at(t.offset), items}, nil
}

// Part makes an expression of a node of this one. Offsets in its errors are those of the whole.
func (e *Expression) Part(node Node) *Expression { return &Expression{source: e.source, root: node} }
