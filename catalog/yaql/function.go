package yaql

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// Kind is the notation of a function's calls.
type Kind uint8

// The kinds; they may be joined.
const (
	AsFunction Kind = 1 << iota // name(a, b)
	AsMethod                    // a.name(b)
	AsProperty                  // a.name
	AsOperator                  // a name b, name a; indexing is the operator "[]"

	AsBoth = AsFunction | AsMethod
)

// Function is one overload of a function. Of the overloads of a name the first whose parameters accept the arguments is called.
type Function struct {
	Name string
	Kind Kind
	// Doc describes the function in a sentence.
	Doc    string
	Params []Param
	// Pairs makes "key => value" among the arguments a *Pair of lambdas and not a named argument.
	Pairs bool
	Call  func(*Invocation) (any, error)

	library bool // it is YAQL's own, and knows sequences; others are given lists in their place
}

// Param is a parameter. A method's receiver is the first.
type Param struct {
	Name     string // by which it can be given with "name => value"; "" for none
	Type     Type   // nil takes everything
	Lazy     bool   // the argument is a *Lambda, evaluated by the function
	Optional bool   // when the argument is left out it is Default
	Default  any
	Rest     bool // takes all further positional arguments, as []any; the last but Keywords
	Keywords bool // takes all further named arguments, as map[string]any; the last
}

// Type reports whether a parameter accepts a value, and may convert it for the function.
type Type func(value any) (any, bool)

// Invocation is one call of a function.
type Invocation struct {
	Args  []any // one for each parameter
	Scope *Scope
	run   *run

	inline [4]any // where Args lie as long as they are few
}

// room makes a place for the arguments of a function's parameters.
func (i *Invocation) room(params int) {
	if params <= len(i.inline) {
		i.Args = i.inline[:params]
	} else {
		i.Args = make([]any, params)
	}
}

// Context is the evaluation's context.
func (i *Invocation) Context() context.Context { return i.run.ctx }

// Functions is a table of functions. It does not change.
type Functions struct {
	byName map[string]*overloads
	// lenient makes every function a method too and the other way round.
	lenient bool
	// keyed lets functions of collections accept maps as lists of their keys.
	keyed bool
	// plain reports that numbers, texts and the like have only the operators of the standard library.
	plain bool
}

// overloads are the functions of a name, also by how they may be written.
type overloads struct {
	all, functions, methods, properties, operators, both []*Function
}

func newOverloads(all []*Function) *overloads {
	of := func(kind Kind) []*Function {
		return slices.DeleteFunc(slices.Clone(all), func(f *Function) bool { return f.Kind&kind == 0 })
	}
	return &overloads{all, of(AsFunction), of(AsMethod), of(AsProperty), of(AsOperator), of(AsBoth)}
}

// NewFunctions makes a table; more of the same name are overloads in that order.
func NewFunctions(functions ...*Function) *Functions {
	return (&Functions{}).Extend(functions...)
}

// Extend makes a table with more functions, which go before the present ones of the same name.
func (f *Functions) Extend(functions ...*Function) *Functions {
	if len(functions) == 0 {
		return f
	}
	extended := &Functions{byName: maps.Clone(f.byName), lenient: f.lenient, keyed: f.keyed, plain: f.plain}
	if extended.byName == nil {
		extended.byName = map[string]*overloads{}
	}
	fresh := map[string][]*Function{}
	for _, function := range functions {
		fresh[function.Name] = append(fresh[function.Name], function)
		if function.Kind&AsOperator != 0 && function.Name != "[]" {
			extended.plain = false
		}
	}
	for name, all := range fresh {
		if present := f.byName[name]; present != nil {
			all = append(all, present.all...)
		}
		extended.byName[name] = newOverloads(all)
	}
	return extended
}

// Lenient makes a table in which every function is a method too and the other way round, as in YAQL 0.2.
func (f *Functions) Lenient() *Functions {
	return &Functions{byName: f.byName, lenient: true, keyed: f.keyed, plain: f.plain}
}

// Keyed is the table with functions of collections that accept maps as well, as lists of their keys.
func (f *Functions) Keyed() *Functions {
	return &Functions{byName: f.byName, lenient: f.lenient, keyed: true, plain: f.plain}
}

// byKeys puts lists of keys in the place of maps; false: there are none.
func (a *arguments) byKeys() bool {
	found := false
	for i := range a.positional {
		dict, ok := a.positional[i].value.(*Dict)
		if !ok {
			continue
		}
		keys := make([]any, 0, dict.Len())
		for _, e := range dict.all() {
			keys = append(keys, e.Key)
		}
		a.positional[i].value, found = keys, true
	}
	return found
}

// Has reports whether there is a function of that name.
func (f *Functions) Has(name string) bool { return f.byName[name] != nil }

// All lists the functions by name.
func (f *Functions) All() []*Function {
	var all []*Function
	for _, name := range slices.Sorted(maps.Keys(f.byName)) {
		all = append(all, f.byName[name].all...)
	}
	return all
}

func (f *Functions) named(name string, kind Kind) []*Function {
	found := f.byName[name]
	switch {
	case found == nil:
		return nil
	case kind == AsOperator:
		return found.operators
	case kind == AsProperty:
		return found.properties
	case f.lenient || kind == AsBoth:
		return found.both
	case kind == AsMethod:
		return found.methods
	}
	return found.functions
}

// argument is an argument of a call: a node that is evaluated at most once, or a value.
type argument struct {
	node  Node // nil for a value
	scope *Scope
	value any
	err   error
	done  bool
	gap   bool // left out, as the first of f(,1)
}

func (a *argument) evaluate(r *run) (any, error) {
	if !a.done {
		a.value, a.err = r.evaluate(a.node, a.scope)
		a.value = enter(a.value)
		a.done = true
	}
	return a.value, a.err
}

func (a *argument) lambda() *Lambda {
	if a.node == nil {
		if lambda, ok := a.value.(*Lambda); ok {
			return lambda
		}
		return &Lambda{node: &Literal{Value: a.value}}
	}
	return &Lambda{node: a.node, scope: a.scope}
}

// arguments are the arguments of one call.
type arguments struct {
	positional []argument
	named      []namedArgument
}

type namedArgument struct {
	name string
	argument
}

func (a *arguments) byName(name string) *argument {
	if name == "" {
		return nil
	}
	for i := range a.named {
		if a.named[i].name == name {
			return &a.named[i].argument
		}
	}
	return nil
}

// receiver is the receiver of the method, as Python writes it.
func (a *arguments) receiver() string {
	if len(a.positional) == 0 {
		return "None"
	}
	if text, ok := a.positional[0].value.(string); ok {
		return text
	}
	return inPython(a.positional[0].value)
}

func (a *arguments) addValue(value any) {
	a.positional = append(a.positional, argument{value: value, done: true})
}

// add separates positional from named arguments. Where pairs are wanted these stay in their place.
func (a *arguments) add(nodes []Node, scope *Scope, pairs bool) error {
	for _, node := range nodes {
		mapping, isMapping := node.(*Mapping)
		switch {
		case node == nil:
			a.positional = append(a.positional, argument{gap: true})
		case isMapping && pairs:
			a.addValue(&Pair{&Lambda{node: mapping.Key, scope: scope}, &Lambda{node: mapping.Value, scope: scope}})
		case isMapping && !mapping.tuple:
			key, ok := mapping.Key.(*Keyword)
			if !ok {
				return failure(BadMapping, `on the left of "=>" stands the name of a parameter`)
			}
			if a.byName(key.Name) != nil {
				return failure(BadMapping, "parameter %s is given twice", key.Name)
			}
			a.named = append(a.named, namedArgument{key.Name, argument{node: mapping.Value, scope: scope}})
		default:
			a.positional = append(a.positional, argument{node: node, scope: scope})
		}
	}
	return nil
}

// bind gives each parameter its argument; false when the function does not take these arguments.
func (f *Function) bind(r *run, given *arguments, bound []any) (bool, error) {
	positional, named := given.positional, len(given.named)
	for i := range f.Params {
		p := &f.Params[i]
		var a *argument
		placed := false // by its place, be it as a gap
		switch {
		case p.Keywords:
			rest, ok, err := p.bindNamed(r, f, given)
			if !ok || err != nil {
				return ok, err
			}
			bound[i], named = rest, 0
			continue
		case p.Rest:
			rest, ok, err := p.bindRest(r, f, positional)
			if !ok || err != nil {
				return ok, err
			}
			bound[i], positional = rest, nil
			continue
		case len(positional) > 0:
			if !positional[0].gap {
				a = &positional[0]
			}
			positional, placed = positional[1:], true
		}
		if byName := given.byName(p.Name); byName != nil {
			if placed {
				return false, nil
			}
			a = byName
			named--
		}
		if a == nil {
			if !p.Optional {
				return false, nil
			}
			bound[i] = p.Default
			continue
		}
		value, ok, err := p.take(r, f, a)
		if !ok || err != nil {
			return ok, err
		}
		bound[i] = value
	}
	return len(positional) == 0 && named == 0, nil
}

func (p *Param) take(r *run, f *Function, a *argument) (any, bool, error) {
	if p.Lazy {
		if pair, ok := a.value.(*Pair); ok {
			return pair, true, nil
		}
		return a.lambda(), true, nil
	}
	value, err := a.evaluate(r)
	if err == nil && !f.library && isSequence(value) {
		value, err = r.finish(value)
	}
	if err != nil {
		return nil, false, err
	}
	if p.Type == nil {
		return value, true, nil
	}
	value, ok := p.Type(value)
	if seq, is := value.(Seq); is && ok {
		value = r.limited(seq)
	}
	return value, ok, nil
}

func (p *Param) bindRest(r *run, f *Function, positional []argument) ([]any, bool, error) {
	rest := make([]any, 0, len(positional))
	for i := range positional {
		if positional[i].gap {
			return nil, false, nil
		}
		value, ok, err := p.take(r, f, &positional[i])
		if !ok || err != nil {
			return nil, ok, err
		}
		rest = append(rest, value)
	}
	return rest, true, nil
}

func (p *Param) bindNamed(r *run, f *Function, given *arguments) (map[string]any, bool, error) {
	rest := map[string]any{}
	for i := range given.named {
		name := given.named[i].name
		if slices.ContainsFunc(f.Params, func(other Param) bool { return other.Name == name && !other.Keywords && !other.Rest }) {
			continue
		}
		value, ok, err := p.take(r, f, &given.named[i].argument)
		if !ok || err != nil {
			return nil, ok, err
		}
		rest[name] = value
	}
	return rest, true, nil
}

// describe lists the arguments of a call, for errors.
func describe(given *arguments) string {
	var parts []string
	for _, a := range given.positional {
		switch {
		case a.gap:
			parts = append(parts, "nothing")
		case a.done:
			parts = append(parts, TypeName(a.value))
		default:
			parts = append(parts, "an expression")
		}
	}
	for _, a := range given.named {
		parts = append(parts, a.name+" => …")
	}
	return strings.Join(parts, ", ")
}
