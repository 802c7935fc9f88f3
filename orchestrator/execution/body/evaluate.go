package body

import (
	"fmt"
	"maps"
	"slices"
)

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

// iterate are the items of a for loop over value.
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
