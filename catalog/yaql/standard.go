package yaql

import (
	"slices"
	"sync"
)

// Standard is YAQL's own library.
func Standard() *Functions { return standard() }

// Legacy is the library as packages of format 1.0 and 1.1 and forms see it: functions are methods too, functions of
// collections take maps as their keys, and more.
func Legacy() *Functions { return legacy() }

// Built once: a table does not change.
var (
	standard = sync.OnceValue(func() *Functions {
		all := slices.Concat(logicFunctions(), mathFunctions(), stringFunctions(), regexFunctions(), collectionFunctions(), queryFunctions(), timeFunctions())
		for _, f := range all {
			f.library = true
		}
		functions := NewFunctions(all...)
		functions.plain = true
		return functions
	})
	legacy = sync.OnceValue(func() *Functions {
		more := legacyFunctions()
		for _, f := range more {
			f.library = true
		}
		return standard().Extend(more...).Lenient().Keyed()
	})
)

// legacyFunctions have precedence over others of the same name in old packages and in forms.
func legacyFunctions() []*Function {
	return []*Function{
		function("tuple", "a list of the arguments", func(i *Invocation) (any, error) { return arg[[]any](i, 0), nil }, rest(nil)),
		function("dict", "a map of lists of a key and a value each", func(i *Invocation) (any, error) {
			entries, err := pairsOf(i, arg[[]any](i, 0))
			return NewDict(entries...), err
		}, rest(twoItems)),
		operator("in", "whether the key is in the map", func(i *Invocation) (any, error) {
			_, ok := arg[*Dict](i, 1).Get(i.Args[0])
			return ok, nil
		}, nil, dict),
		both("toList", "the items as a list", whole(func(_ *Invocation, items []any) (any, error) { return items, nil }), need("collection", iterable)),
		function("range", "the integers from one on", func(i *Invocation) (any, error) { return rangeOf(arg[int64](i, 0), 1<<62, 1) }, need("start", integer)),
		{Name: "switch", Kind: AsBoth, Doc: "the value of the first pair whose condition holds for the value", Pairs: true, Params: []Param{need("value", notPair), restLazy()},
			Call: func(i *Invocation) (any, error) {
				pairs := arg[[]any](i, 1)
				for n, item := range pairs {
					pair, ok := item.(*Pair)
					if !ok {
						return nil, failure(NoMatch, "switch() takes pairs: condition => value")
					}
					pairs[n] = &Pair{over(pair.Key, i.Args[0]), over(pair.Value, i.Args[0])}
				}
				return choosePair(i)
			}},
		{Name: "as", Kind: AsMethod, Doc: "the value, with variables made of it", Pairs: true, Params: []Param{need("receiver", nil), restOfPairs},
			Call: func(i *Invocation) (any, error) {
				variables := map[string]any{"": i.Args[0]}
				for _, item := range arg[[]any](i, 1) {
					pair := item.(*Pair)
					value, err := i.call(pair.Key.(*Lambda), i.Args[0])
					if err != nil {
						return nil, err
					}
					name, err := i.call(pair.Value.(*Lambda))
					if err != nil {
						return nil, err
					}
					variables[Text(name)] = value
				}
				return i.Scope.WithAll(variables), nil
			}},
		{Name: "[]", Kind: AsOperator, Doc: "the item at a place, or the items for which the predicate holds", Params: []Param{need("collection", iterable), lazy("indexExpression")},
			Call: func(i *Invocation) (any, error) {
				index, err := i.call(i.lambda(1))
				if err == nil {
					if n, ok := index.(int64); ok {
						items, err := i.items(0)
						if err != nil {
							return nil, err
						}
						return listAt(items, n)
					}
				}
				made := []any{}
				for item, err := range arg[Seq](i, 0) {
					if err != nil {
						return nil, err
					}
					ok, err := i.test(i.lambda(1), enter(item))
					if err != nil {
						return nil, err
					}
					if ok {
						made = append(made, item)
					}
				}
				return made, nil
			}},
	}
}

func twoItems(value any) (any, bool) {
	items, ok := value.([]any)
	return value, ok && len(items) == 2
}

func notPair(value any) (any, bool) {
	_, pair := value.(*Pair)
	return value, !pair
}

// over is a lambda with $ set.
func over(lambda, value any) *Lambda {
	l := *lambda.(*Lambda)
	if l.scope != nil {
		l.scope = l.scope.With("", value)
	}
	return &l
}
