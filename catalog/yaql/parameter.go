package yaql

import (
	"slices"
	"time"
)

// The types that parameters want.

func isA[T any](value any) (any, bool) {
	_, ok := value.(T)
	return value, ok
}

var (
	text     Type = isA[string]
	boolean  Type = isA[bool]
	list     Type = isA[[]any]
	dict     Type = isA[*Dict]
	set      Type = isA[*Set]
	regex    Type = isA[*Regex]
	datetime Type = isA[time.Time]
	timespan Type = isA[time.Duration]
	null     Type = func(value any) (any, bool) { return value, value == nil }
)

// integer takes truth values too, as Python's int does: true is 1.
func integer(value any) (any, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return int64(1), true
		}
		return int64(0), true
	}
	return nil, false
}

func number(value any) (any, bool) {
	_, ok := float(value)
	return value, ok
}

// iterable takes lists, sequences and sets, and gives the function a Seq.
func iterable(value any) (any, bool) {
	switch v := value.(type) {
	case Seq:
		return v, true
	case []any:
		return sequence(v), true
	case *Set:
		return sequence(v.members), true
	case *ordering:
		return v.sequence(), true
	}
	return nil, false
}

// isSequence reports whether a value's items are still to be computed.
func isSequence(value any) bool {
	switch value.(type) {
	case Seq, *ordering:
		return true
	}
	return false
}

func orNull(t Type) Type {
	return func(value any) (any, bool) {
		if value == nil {
			return nil, true
		}
		return t(value)
	}
}

func sequence(items []any) Seq {
	return func(yield func(any, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
	}
}

// absent is the default of parameters that distinguish a missing argument from null.
type absent struct{}

// The forms of parameters.

func need(name string, t Type) Param { return Param{Name: name, Type: t} }

func may(name string, t Type, otherwise any) Param {
	return Param{Name: name, Type: t, Optional: true, Default: otherwise}
}

func lazy(name string) Param { return Param{Name: name, Lazy: true} }

func mayLazy(name string) Param { return Param{Name: name, Lazy: true, Optional: true} }

func rest(t Type) Param { return Param{Rest: true, Type: t} }

func restLazy() Param { return Param{Rest: true, Lazy: true} }

type body = func(*Invocation) (any, error)

func function(name, doc string, call body, params ...Param) *Function {
	return &Function{Name: name, Kind: AsFunction, Doc: doc, Params: params, Call: call}
}

func method(name, doc string, call body, params ...Param) *Function {
	return &Function{Name: name, Kind: AsMethod, Doc: doc, Params: params, Call: call}
}

func both(name, doc string, call body, params ...Param) *Function {
	return &Function{Name: name, Kind: AsBoth, Doc: doc, Params: params, Call: call}
}

func property(name, doc string, call body, t Type) *Function {
	return &Function{Name: name, Kind: AsProperty, Doc: doc, Params: []Param{{Type: t}}, Call: call}
}

func operator(name, doc string, call body, types ...Type) *Function {
	f := &Function{Name: name, Kind: AsOperator, Doc: doc, Call: call}
	for _, t := range types {
		f.Params = append(f.Params, Param{Type: t})
	}
	return f
}

func arg[T any](i *Invocation, n int) T {
	value, _ := i.Args[n].(T)
	return value
}

func (i *Invocation) number(n int) float64 {
	f, _ := float(i.Args[n])
	return f
}

func (i *Invocation) lambda(n int) *Lambda { return arg[*Lambda](i, n) }

// call evaluates a given lambda; its result is a boolean where only that counts.
func (i *Invocation) call(l *Lambda, args ...any) (any, error) {
	value, err := i.run.apply(l, args...)
	return enter(value), err
}

func (i *Invocation) test(l *Lambda, args ...any) (bool, error) {
	value, err := i.call(l, args...)
	return Truth(value), err
}

// items makes a list of a sequence that was given.
func (i *Invocation) items(n int) ([]any, error) {
	if seq := arg[Seq](i, n); seq != nil {
		return i.run.list(seq)
	}
	return slices.Clone(arg[[]any](i, n)), nil
}
