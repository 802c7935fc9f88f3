package yaql

// logicFunctions are the functions on truth values, the branches, and the functions that make scopes.
func logicFunctions() []*Function {
	return []*Function{
		function("bool", "what the value is where a truth value is wanted", func(i *Invocation) (any, error) { return Truth(i.Args[0]), nil }, need("value", nil)),
		function("isBoolean", "whether it is a truth value", func(i *Invocation) (any, error) {
			_, ok := i.Args[0].(bool)
			return ok, nil
		}, need("value", nil)),
		{Name: "switch", Kind: AsFunction, Doc: "the value of the first pair whose condition holds", Pairs: true, Params: []Param{restLazy()}, Call: choosePair},
		function("selectCase", "the index of the first condition that holds", func(i *Invocation) (any, error) {
			for n, condition := range arg[[]any](i, 0) {
				if ok, err := i.test(condition.(*Lambda)); ok || err != nil {
					return int64(n), err
				}
			}
			return int64(len(arg[[]any](i, 0))), nil
		}, restLazy()),
		function("selectAllCases", "the indices of the conditions that hold", lazily(func(i *Invocation) (any, error) {
			found := []any{}
			for n, condition := range arg[[]any](i, 0) {
				ok, err := i.test(condition.(*Lambda))
				if err != nil {
					return nil, err
				}
				if ok {
					found = append(found, int64(n))
				}
			}
			return found, nil
		}), restLazy()),
		function("examine", "whether each condition holds", lazily(func(i *Invocation) (any, error) {
			found := []any{}
			for _, condition := range arg[[]any](i, 0) {
				ok, err := i.test(condition.(*Lambda))
				if err != nil {
					return nil, err
				}
				found = append(found, ok)
			}
			return found, nil
		}), restLazy()),
		method("switchCase", "the argument of that number; the last one for any other number", func(i *Invocation) (any, error) {
			n, cases := arg[int64](i, 0), arg[[]any](i, 1)
			if len(cases) == 0 {
				return nil, nil
			}
			if n < 0 || n >= int64(len(cases)) {
				n = int64(len(cases)) - 1
			}
			return i.call(cases[n].(*Lambda))
		}, need("case", integer), restLazy()),
		function("coalesce", "the first value that is not null", func(i *Invocation) (any, error) {
			for _, candidate := range arg[[]any](i, 0) {
				if value, err := i.call(candidate.(*Lambda)); value != nil || err != nil {
					return value, err
				}
			}
			return nil, nil
		}, restLazy()),
		function("with", "a scope in which $1, $2 … are the arguments", func(i *Invocation) (any, error) {
			return i.Scope.arguments(arg[[]any](i, 0)), nil
		}, rest(nil)),
		function("let", "a scope with variables", func(i *Invocation) (any, error) {
			scope := i.Scope
			if values := arg[[]any](i, 0); len(values) > 0 {
				scope = scope.arguments(values)
			}
			return scope.WithAll(arg[map[string]any](i, 1)), nil
		}, rest(nil), Param{Keywords: true}),
		method("unpack", "a scope with the items of a sequence as $1, $2 … or under the names given", func(i *Invocation) (any, error) {
			items, err := i.items(0)
			if err != nil {
				return nil, err
			}
			names := arg[[]any](i, 1)
			if len(names) == 0 {
				return i.Scope.arguments(items), nil
			}
			if len(names) != len(items) {
				return nil, failure(BadValue, "unpack() has %d names for %d items", len(names), len(items)).
					saying("Cannot unpack %d elements into %d", len(items), len(names))
			}
			variables := map[string]any{}
			for n, name := range names {
				variables[name.(string)] = items[n]
			}
			return i.Scope.WithAll(variables), nil
		}, need("sequence", iterable), rest(text)),
		function("def", "a scope with a function of that name", func(i *Invocation) (any, error) {
			lambda := i.lambda(1)
			recursive := &Function{Name: arg[string](i, 0), Kind: AsBoth, Doc: "defined in the expression",
				Params: []Param{rest(nil), {Keywords: true}}}
			recursive.Call = func(call *Invocation) (any, error) {
				inner := *lambda
				if inner.scope != nil {
					inner.scope = inner.scope.Define(recursive)
				}
				return call.run.applyNamed(&inner, arg[map[string]any](call, 1), arg[[]any](call, 0)...)
			}
			return i.Scope.Define(recursive), nil
		}, need("name", text), lazy("func")),
		function("lambda", "the expression as a value that can be called", func(i *Invocation) (any, error) {
			l := *i.lambda(0)
			l.source = i.run.source
			return &l, nil
		}, lazy("func")),
		method("assert", "the value itself, when the condition holds for it; else an error", func(i *Invocation) (any, error) {
			value := i.Args[0]
			if seq, ok := value.(Seq); ok {
				items, err := i.run.list(seq)
				if err != nil {
					return nil, err
				}
				value = items
			}
			ok, err := i.test(i.lambda(1), value)
			if err != nil {
				return nil, err
			}
			if !ok {
				return nil, failure(Failed, "%s", arg[string](i, 2))
			}
			return value, nil
		}, need("obj", nil), lazy("condition"), may("message", text, "Assertion failed")),
		function("call", "calls a function by its name", func(i *Invocation) (any, error) {
			var given arguments
			name, kind := arg[string](i, 0), AsFunction
			if _, without := i.Args[3].(absent); !without {
				kind = AsMethod
				given.addValue(i.Args[3])
			}
			args, err := i.items(1)
			if err != nil {
				return nil, err
			}
			for _, value := range args {
				given.addValue(enter(value))
			}
			for _, e := range arg[*Dict](i, 2).all() {
				given.named = append(given.named, namedArgument{Text(e.Key), argument{value: enter(e.Value), done: true}})
			}
			return i.run.chooseAmong(name, kind, i.Scope.candidates(name, kind), &given, nil, &given, i.Scope)
		}, need("name", text), need("args", iterable), need("kwargs", dict), may("receiver", nil, absent{})),
	}
}

func choosePair(i *Invocation) (any, error) {
	for _, item := range arg[[]any](i, len(i.Args)-1) {
		pair, ok := item.(*Pair)
		if !ok {
			return nil, failure(NoMatch, "switch() takes pairs: condition => value").saying(`No function "switch" matches supplied arguments`)
		}
		holds, err := i.test(pair.Key.(*Lambda))
		if err != nil {
			return nil, err
		}
		if holds {
			return i.call(pair.Value.(*Lambda))
		}
	}
	return nil, nil
}
