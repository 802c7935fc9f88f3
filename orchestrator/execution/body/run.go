package body

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// outcome is how a statement ended.
type outcome int

const (
	ranOn outcome = iota
	broke
	continued
	returned
)

type end struct {
	kind  outcome
	value any
}

type run struct {
	ctx      context.Context
	names    map[string]any
	world    World
	uuids    int
	depth    int // of functions that call each other
	steps    int
	handling error // that an except deals with
}

func (r *run) step(line int) error {
	if r.steps++; r.steps > maxSteps {
		return &Error{line, "RuntimeError", "the body takes too many steps"}
	}
	if r.steps%1024 == 0 && r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	return nil
}

// scriptError is what a script's failure is on its way through the body.
type scriptError struct {
	line int
	err  error
}

func (e *scriptError) Error() string { return e.err.Error() }

// unwrap is the script's own error.
func unwrap(err error) error {
	var of *scriptError
	if errors.As(err, &of) {
		return of.err
	}
	return err
}

// said is what an error says to the body.
func said(err error) string {
	var mistake *Error
	if errors.As(err, &mistake) {
		return mistake.Text
	}
	return unwrap(err).Error()
}

func (r *run) block(statements []statement) (end, error) {
	for _, one := range statements {
		e, err := r.statement(one)
		if err != nil || e.kind != ranOn {
			return e, err
		}
	}
	return end{}, nil
}

func (r *run) statement(one statement) (end, error) {
	switch s := one.(type) {
	case expressionStatement:
		_, err := r.value(s.value)
		return end{}, err
	case assignment:
		value, err := r.value(s.value)
		for n := 0; err == nil && n < len(s.targets); n++ {
			err = r.assign(s.line, s.targets[n], value)
		}
		return end{}, err
	case augmented:
		return end{}, r.augment(s)
	case returnStatement:
		if s.value == nil {
			return end{kind: returned}, nil
		}
		value, err := r.value(s.value)
		return end{returned, value}, err
	case leave:
		return end{kind: s.kind}, nil
	case ifStatement:
		condition, err := r.value(s.condition)
		switch {
		case err != nil:
			return end{}, err
		case truth(condition):
			return r.block(s.then)
		}
		return r.block(s.not)
	case whileStatement:
		for {
			condition, err := r.value(s.condition)
			if err != nil || !truth(condition) {
				return end{}, err
			}
			if err := r.step(s.line); err != nil {
				return end{}, err
			}
			if e, done, err := r.turn(s.do); done {
				return e, err
			}
		}
	case forStatement:
		return r.forLoop(s)
	case tryStatement:
		return r.try(s)
	case withStatement:
		return r.with(s)
	case raiseStatement:
		return end{}, r.raise(s)
	}
	return end{}, fmt.Errorf("statement %T is not known", one)
}

// turn is one turn of a loop; done says that the loop ends with what is returned.
func (r *run) turn(do []statement) (e end, done bool, err error) {
	e, err = r.block(do)
	switch {
	case err != nil || e.kind == returned:
		return e, true, err
	case e.kind == broke:
		return end{}, true, nil
	}
	return end{}, false, nil
}

func (r *run) forLoop(s forStatement) (end, error) {
	in, err := r.value(s.in)
	if err != nil {
		return end{}, err
	}
	items, err := iterate(s.line, in)
	if err != nil {
		return end{}, err
	}
	for _, item := range items {
		if err := r.step(s.line); err != nil {
			return end{}, err
		}
		if err := r.assign(s.line, s.target, item); err != nil {
			return end{}, err
		}
		if e, done, err := r.turn(s.do); done {
			return e, err
		}
	}
	return end{}, nil
}

func (r *run) try(s tryStatement) (e end, err error) {
	e, err = r.block(s.do)
	if err == nil && e.kind == ranOn {
		e, err = r.block(s.not)
	} else if err != nil && r.ctx.Err() == nil {
		for _, h := range s.handlers {
			if !h.catches(err) {
				continue
			}
			if h.as != "" {
				r.names[h.as] = caught{err}
			}
			before := r.handling
			r.handling = err
			e, err = r.block(h.do)
			r.handling = before
			break
		}
	}
	if last, lastErr := r.block(s.finally_); lastErr != nil || last.kind != ranOn {
		return last, lastErr
	}
	return e, err
}

// with runs a block with a file, which is written when the block ends.
func (r *run) with(s withStatement) (end, error) {
	value, err := r.value(s.value)
	if err != nil {
		return end{}, err
	}
	f, is := value.(*fileValue)
	if !is {
		return end{}, &Error{s.line, "AttributeError", "with is for files here, and not for a " + typeName(value)}
	}
	if s.as != "" {
		r.names[s.as] = f
	}
	e, err := r.block(s.do)
	if closing := f.close(r); err == nil {
		err = closing
	}
	return e, err
}

func (h handler) catches(err error) bool {
	if h.types == nil || slices.Contains(h.types, "Exception") || slices.Contains(h.types, "BaseException") {
		return true
	}
	var mistake *Error
	if errors.As(err, &mistake) {
		return slices.Contains(h.types, mistake.Type)
	}
	return slices.Contains(h.types, "CustomException") || slices.Contains(h.types, "AgentException")
}

func (r *run) raise(s raiseStatement) error {
	if s.value == nil {
		if r.handling == nil {
			return &Error{s.line, "RuntimeError", "there is no exception to raise again"}
		}
		return r.handling
	}
	value, err := r.value(s.value)
	if err != nil {
		return err
	}
	switch v := value.(type) {
	case caught:
		return v.err
	case function: // raise ValueError
		made, err := v(r, s.line, nil, nil)
		if c, is := made.(caught); is && err == nil {
			return c.err
		}
	}
	return &Error{s.line, "TypeError", "only exceptions can be raised"}
}

func (r *run) assign(line int, target expression, value any) error {
	switch t := target.(type) {
	case name:
		r.names[t.name] = value
		return nil
	case index:
		of, err := r.value(t.of)
		if err != nil {
			return err
		}
		at, err := r.value(t.at)
		if err != nil {
			return err
		}
		return put(line, of, at, value)
	case sequence:
		items, err := iterate(line, value)
		if err != nil {
			return err
		}
		if len(items) != len(t.items) {
			return &Error{line, "ValueError", fmt.Sprintf("%d values are unpacked into %d names", len(items), len(t.items))}
		}
		for n, one := range t.items {
			if err := r.assign(line, one, items[n]); err != nil {
				return err
			}
		}
		return nil
	}
	return &Error{line, "SyntaxError", "cannot assign to this expression"}
}

func put(line int, of, at, value any) error {
	switch v := of.(type) {
	case *dict:
		if _, ok := hashable(at); !ok {
			return &Error{line, "TypeError", "unhashable type: '" + typeName(at) + "'"}
		}
		if len(v.keys) >= maxItems {
			return &Error{line, "MemoryError", "the dict is too large"}
		}
		v.set(at, value)
		return nil
	case *list:
		n, err := position(line, at, len(v.items))
		if err == nil {
			v.items[n] = value
		}
		return err
	}
	return &Error{line, "TypeError", "'" + typeName(of) + "' object does not support item assignment"}
}

func position(line int, at any, length int) (int, error) {
	n, _, isFloat, ok := numberOf(at)
	if !ok || isFloat {
		return 0, &Error{line, "TypeError", "indices must be integers, not " + typeName(at)}
	}
	if n < 0 {
		n += int64(length)
	}
	if n < 0 || n >= int64(length) {
		return 0, &Error{line, "IndexError", "index out of range"}
	}
	return int(n), nil
}

func (r *run) augment(s augmented) error {
	before, err := r.value(s.target)
	if err != nil {
		return err
	}
	with, err := r.value(s.value)
	if err != nil {
		return err
	}
	if l, is := before.(*list); is && s.operator == "+" {
		items, err := iterate(s.line, with)
		if err == nil {
			err = l.extend(s.line, items)
		}
		return err
	}
	value, err := r.operate(s.line, s.operator, before, with)
	if err != nil {
		return err
	}
	return r.assign(s.line, s.target, value)
}

func (l *list) extend(line int, items []any) error {
	if len(l.items)+len(items) > maxItems {
		return &Error{line, "MemoryError", "the list is too long"}
	}
	l.items = append(l.items, items...)
	return nil
}

func (r *run) values(all []expression) ([]any, error) {
	values := make([]any, 0, len(all))
	for _, one := range all {
		if s, is := one.(spread); is {
			value, err := r.value(s.value)
			if err != nil {
				return nil, err
			}
			items, err := iterate(0, value)
			if err != nil {
				return nil, err
			}
			values = append(values, items...)
			continue
		}
		value, err := r.value(one)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	return values, nil
}

func (r *run) value(of expression) (any, error) {
	if err := r.step(0); err != nil {
		return nil, err
	}
	switch e := of.(type) {
	case literal:
		return e.value, nil
	case name:
		if value, known := r.names[e.name]; known {
			return value, nil
		}
		if value, known := builtin(e.name); known {
			return value, nil
		}
		return nil, &Error{e.line, "NameError", "name '" + e.name + "' is not defined"}
	case attribute:
		value, err := r.value(e.of)
		if err != nil {
			return nil, err
		}
		return attributeOf(e.line, value, e.name)
	case index:
		value, err := r.value(e.of)
		if err != nil {
			return nil, err
		}
		at, err := r.value(e.at)
		if err != nil {
			return nil, err
		}
		return item(e.line, value, at)
	case slice:
		return r.slice(e)
	case call:
		return r.call(e)
	case unary:
		value, err := r.value(e.value)
		if err != nil {
			return nil, err
		}
		return negate(e, value)
	case binary:
		left, err := r.value(e.left)
		if err != nil {
			return nil, err
		}
		right, err := r.value(e.right)
		if err != nil {
			return nil, err
		}
		return r.operate(e.line, e.operator, left, right)
	case comparison:
		return r.compare(e)
	case logical:
		left, err := r.value(e.left)
		if err != nil || truth(left) != e.and {
			return left, err
		}
		return r.value(e.right)
	case conditional:
		condition, err := r.value(e.condition)
		if err != nil {
			return nil, err
		}
		if truth(condition) {
			return r.value(e.then)
		}
		return r.value(e.not)
	case sequence:
		items, err := r.values(e.items)
		if err != nil {
			return nil, err
		}
		if e.tuple {
			return tuple(items), nil
		}
		return &list{items}, nil
	case pairs:
		d := newDict()
		for n := range e.keys {
			key, err := r.value(e.keys[n])
			if err != nil {
				return nil, err
			}
			value, err := r.value(e.values[n])
			if err != nil {
				return nil, err
			}
			if err := put(0, d, key, value); err != nil {
				return nil, err
			}
		}
		return d, nil
	case comprehension:
		return r.comprehension(e)
	case lambda:
		return r.lambda(e), nil
	}
	return nil, fmt.Errorf("expression %T is not known", of)
}

func negate(e unary, value any) (any, error) {
	if e.operator == "not" {
		return !truth(value), nil
	}
	n, f, isFloat, ok := numberOf(value)
	switch {
	case !ok:
		return nil, &Error{e.line, "TypeError", "bad operand type for unary " + e.operator + ": '" + typeName(value) + "'"}
	case isFloat && e.operator == "-":
		return -f, nil
	case isFloat:
		return f, nil
	case e.operator == "-":
		return -n, nil
	}
	return n, nil
}

func (r *run) comprehension(e comprehension) (any, error) {
	before := maps.Clone(r.names)
	defer func() { r.names = before }()
	items, d := &list{}, newDict()
	var nested func(clauses []clause) error
	nested = func(clauses []clause) error {
		if len(clauses) == 0 {
			value, err := r.value(e.value)
			if err != nil {
				return err
			}
			if e.key == nil {
				return items.extend(e.line, []any{value})
			}
			key, err := r.value(e.key)
			if err != nil {
				return err
			}
			return put(e.line, d, key, value)
		}
		first := clauses[0]
		if first.in == nil {
			condition, err := r.value(first.condition)
			if err != nil || !truth(condition) {
				return err
			}
			return nested(clauses[1:])
		}
		in, err := r.value(first.in)
		if err != nil {
			return err
		}
		all, err := iterate(e.line, in)
		if err != nil {
			return err
		}
		for _, one := range all {
			if err := r.assign(e.line, first.target, one); err != nil {
				return err
			}
			if err := nested(clauses[1:]); err != nil {
				return err
			}
		}
		return nil
	}
	if err := nested(e.clauses); err != nil {
		return nil, err
	}
	if e.key != nil {
		return d, nil
	}
	return items, nil
}

// iterate is the items of what for goes over.
func iterate(line int, value any) ([]any, error) {
	switch v := value.(type) {
	case *list:
		return slices.Clone(v.items), nil
	case tuple:
		return v, nil
	case *dict:
		return slices.Clone(v.keys), nil
	case string:
		items := make([]any, 0, len(v))
		for _, r := range v {
			items = append(items, string(r))
		}
		return items, nil
	}
	return nil, &Error{line, "TypeError", "'" + typeName(value) + "' object is not iterable"}
}

func item(line int, of, at any) (any, error) {
	switch v := of.(type) {
	case *dict:
		if value, found := v.get(at); found {
			return value, nil
		}
		return nil, &Error{line, "KeyError", repr(at)}
	case *list:
		n, err := position(line, at, len(v.items))
		if err != nil {
			return nil, err
		}
		return v.items[n], nil
	case tuple:
		n, err := position(line, at, len(v))
		if err != nil {
			return nil, err
		}
		return v[n], nil
	case string:
		runes := []rune(v)
		n, err := position(line, at, len(runes))
		if err != nil {
			return nil, err
		}
		return string(runes[n]), nil
	}
	return nil, &Error{line, "TypeError", "'" + typeName(of) + "' object has no items"}
}

func (r *run) slice(e slice) (any, error) {
	of, err := r.value(e.of)
	if err != nil {
		return nil, err
	}
	bounds := [2]any{nil, nil}
	for n, one := range []expression{e.from, e.to} {
		if one == nil {
			continue
		}
		if bounds[n], err = r.value(one); err != nil {
			return nil, err
		}
	}
	cut := func(length int) (from, to int, err error) {
		from, to = 0, length
		for n, at := range []*int{&from, &to} {
			if bounds[n] == nil {
				continue
			}
			value, _, isFloat, ok := numberOf(bounds[n])
			if !ok || isFloat {
				return 0, 0, &Error{e.line, "TypeError", "slice indices must be integers"}
			}
			if value < 0 {
				value += int64(length)
			}
			*at = int(min(max(value, 0), int64(length)))
		}
		return from, max(from, to), nil
	}
	switch v := of.(type) {
	case string:
		runes := []rune(v)
		from, to, err := cut(len(runes))
		if err != nil {
			return nil, err
		}
		return string(runes[from:to]), nil
	case *list:
		from, to, err := cut(len(v.items))
		if err != nil {
			return nil, err
		}
		return &list{slices.Clone(v.items[from:to])}, nil
	case tuple:
		from, to, err := cut(len(v))
		if err != nil {
			return nil, err
		}
		return v[from:to], nil
	}
	return nil, &Error{e.line, "TypeError", "'" + typeName(of) + "' object has no slices"}
}

func (r *run) call(e call) (any, error) {
	called, err := r.value(e.function)
	if err != nil {
		return nil, err
	}
	args, err := r.values(e.args)
	if err != nil {
		return nil, err
	}
	named := map[string]any{}
	for _, one := range e.named {
		value, err := r.value(one.value)
		if err != nil {
			return nil, err
		}
		if one.name != "" {
			named[one.name] = value
			continue
		}
		d, is := value.(*dict)
		if !is {
			return nil, &Error{e.line, "TypeError", "what follows ** is no dict"}
		}
		for _, key := range d.keys {
			named[str(key)], _ = d.get(key)
		}
	}
	return r.invoke(e.line, called, args, named)
}

// invoke calls a function.
func (r *run) invoke(line int, called any, args []any, named map[string]any) (any, error) {
	switch f := called.(type) {
	case function:
		return f(r, line, args, named)
	case scriptValue:
		return r.script(line, f, args, named)
	}
	return nil, &Error{line, "TypeError", "'" + typeName(called) + "' object is not callable"}
}

// lambda makes a function of an expression, which sees the names where it was written.
func (r *run) lambda(l lambda) function {
	return func(r *run, line int, args []any, _ map[string]any) (any, error) {
		if err := arity(line, "<lambda>", args, len(l.names), len(l.names)); err != nil {
			return nil, err
		}
		if r.depth++; r.depth > maxDepth {
			return nil, &Error{line, "RuntimeError", "functions call each other too deeply"}
		}
		before := r.names
		r.names = maps.Clone(before)
		defer func() { r.names, r.depth = before, r.depth-1 }()
		for n, name := range l.names {
			r.names[name] = args[n]
		}
		return r.value(l.value)
	}
}

func (r *run) script(line int, script scriptValue, args []any, named map[string]any) (any, error) {
	plain := make([]any, len(args))
	for n, arg := range args {
		var err error
		if plain[n], err = toScript(arg); err != nil {
			return nil, err
		}
	}
	plainNamed := map[string]any{}
	for key, arg := range named {
		var err error
		if plainNamed[key], err = toScript(arg); err != nil {
			return nil, err
		}
	}
	result, err := script.call(r.ctx, script.method, plain, plainNamed)
	if err != nil {
		return nil, &scriptError{line, err}
	}
	return fromGo(result), nil
}

func toScript(arg any) (any, error) {
	if c, is := arg.(caught); is {
		return said(c.err), nil
	}
	return toGo(arg)
}

func (r *run) compare(e comparison) (any, error) {
	left, err := r.value(e.first)
	if err != nil {
		return nil, err
	}
	for n, operator := range e.operators {
		right, err := r.value(e.others[n])
		if err != nil {
			return nil, err
		}
		holds, err := holds(e.line, operator, left, right)
		if err != nil || !holds {
			return false, err
		}
		left = right
	}
	return true, nil
}

func holds(line int, operator string, left, right any) (bool, error) {
	switch operator {
	case "==":
		return equal(left, right), nil
	case "!=", "<>":
		return !equal(left, right), nil
	case "is", "is not":
		_, isBool := left.(bool)
		_, otherBool := right.(bool)
		same := equal(left, right) && isBool == otherBool
		return same == (operator == "is"), nil
	case "in", "not in":
		found, err := contains(line, right, left)
		return found == (operator == "in"), err
	}
	order, ok := compare(left, right)
	if !ok {
		return false, &Error{line, "TypeError", fmt.Sprintf("'%s' not supported between instances of '%s' and '%s'", operator, typeName(left), typeName(right))}
	}
	switch operator {
	case "<":
		return order < 0, nil
	case ">":
		return order > 0, nil
	case "<=":
		return order <= 0, nil
	}
	return order >= 0, nil
}

func contains(line int, in, what any) (bool, error) {
	switch v := in.(type) {
	case string:
		if part, is := what.(string); is {
			return strings.Contains(v, part), nil
		}
		return false, &Error{line, "TypeError", "'in <string>' requires string as left operand, not " + typeName(what)}
	case *dict:
		_, found := v.get(what)
		return found, nil
	}
	items, err := iterate(line, in)
	return slices.ContainsFunc(items, func(one any) bool { return equal(one, what) }), err
}

// operate is an arithmetic operator. Integers are divided to integers, as in Python 2, which plans were written for.
func (r *run) operate(line int, operator string, left, right any) (any, error) {
	wrong := &Error{line, "TypeError", fmt.Sprintf("unsupported operand type(s) for %s: '%s' and '%s'", operator, typeName(left), typeName(right))}
	a, af, aFloat, aOK := numberOf(left)
	b, bf, bFloat, bOK := numberOf(right)
	if aOK && bOK {
		if aFloat || bFloat {
			return floats(line, operator, af, bf)
		}
		return integers(line, operator, a, b)
	}
	switch operator {
	case "+":
		switch l := left.(type) {
		case string:
			if s, is := right.(string); is {
				return bounded(line, l+s)
			}
			return nil, &Error{line, "TypeError", "cannot concatenate 'str' and '" + typeName(right) + "' objects"}
		case *list:
			if other, is := right.(*list); is {
				made := &list{slices.Clone(l.items)}
				return made, made.extend(line, other.items)
			}
		case tuple:
			if other, is := right.(tuple); is {
				return append(slices.Clone(l), other...), nil
			}
		}
	case "*":
		if aOK && !aFloat {
			left, right, b, bOK, bFloat = right, left, a, true, false
		}
		if !bOK || bFloat {
			return nil, wrong
		}
		b = max(b, 0)
		switch l := left.(type) {
		case string:
			if b > 0 && int64(len(l)) > maxText/b {
				return nil, &Error{line, "MemoryError", "the text is too long"}
			}
			return strings.Repeat(l, int(b)), nil
		case *list:
			if b > 0 && int64(len(l.items)) > maxItems/b {
				return nil, &Error{line, "MemoryError", "the list is too long"}
			}
			return &list{slices.Repeat(l.items, int(b))}, nil
		}
	case "%":
		if pattern, is := left.(string); is {
			return percent(line, pattern, right)
		}
	}
	return nil, wrong
}

func bounded(line int, s string) (any, error) {
	if len(s) > maxText {
		return nil, &Error{line, "MemoryError", "the text is too long"}
	}
	return s, nil
}

func integers(line int, operator string, a, b int64) (any, error) {
	overflow := &Error{line, "OverflowError", "the number does not fit 64 bits"}
	switch operator {
	case "+":
		if sum := a + b; (sum > a) == (b > 0) {
			return sum, nil
		}
		return nil, overflow
	case "-":
		if difference := a - b; (difference < a) == (b > 0) {
			return difference, nil
		}
		return nil, overflow
	case "*":
		if a == 0 || b == 0 {
			return int64(0), nil
		}
		if product := a * b; product/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64) {
			return product, nil
		}
		return nil, overflow
	case "**":
		if b < 0 {
			return math.Pow(float64(a), float64(b)), nil
		}
		power := any(int64(1))
		for range min(b, 64) {
			var err error
			if power, err = integers(line, "*", power.(int64), a); err != nil {
				return nil, err
			}
		}
		if b > 64 && a != 0 && a != 1 && a != -1 {
			return nil, overflow
		}
		if b > 64 && a == -1 && b%2 == 1 {
			return int64(-1), nil
		}
		return power, nil
	}
	if b == 0 {
		return nil, &Error{line, "ZeroDivisionError", "integer division or modulo by zero"}
	}
	quotient, rest := a/b, a%b
	if rest != 0 && (rest < 0) != (b < 0) {
		quotient, rest = quotient-1, rest+b
	}
	if operator == "%" {
		return rest, nil
	}
	return quotient, nil
}

func floats(line int, operator string, a, b float64) (any, error) {
	switch operator {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		return math.Pow(a, b), nil
	}
	if b == 0 {
		return nil, &Error{line, "ZeroDivisionError", "float division by zero"}
	}
	switch operator {
	case "/":
		return a / b, nil
	case "//":
		return math.Floor(a / b), nil
	}
	return a - b*math.Floor(a/b), nil
}
