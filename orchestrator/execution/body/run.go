package body

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// scriptError carries a script's failure through the body.
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

// said is an error's text in the body.
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

// turn is one turn of a loop; done is true if the loop ends with a return.
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
