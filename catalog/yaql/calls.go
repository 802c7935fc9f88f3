package yaql

// function calls name(args).
func (r *run) function(name string, nodes []Node, scope *Scope) (any, error) {
	return r.choose(name, AsFunction, scope.candidates(name, AsFunction), nil, false, nodes, scope)
}

// method calls receiver.name(args).
func (r *run) method(receiver any, name string, nodes []Node, scope *Scope) (any, error) {
	dialect := scope.setting.dialect
	if dialect.Method != nil && dialect.Owns != nil && dialect.Owns(receiver) && (dialect.Responds == nil || dialect.Responds(receiver, name)) {
		args, named, err := r.values(nodes, scope)
		if err != nil {
			return nil, err
		}
		if value, ok, err := dialect.Method(r.ctx, receiver, name, args, named); ok || err != nil {
			return enter(value), err
		}
	}
	return r.choose(name, AsMethod, scope.candidates(name, AsMethod), receiver, true, nodes, scope)
}

func (r *run) values(nodes []Node, scope *Scope) (args []any, named map[string]any, err error) {
	var given arguments
	if err := given.add(nodes, scope, false); err != nil {
		return nil, nil, err
	}
	for i := range given.positional {
		a := &given.positional[i]
		if a.gap {
			return nil, nil, failure(NoMatchMethod, "no argument may be left out here")
		}
		value, err := a.evaluate(r)
		if err != nil {
			return nil, nil, err
		}
		if value, err = r.finish(value); err != nil {
			return nil, nil, err
		}
		args = append(args, value)
	}
	named = map[string]any{}
	for i := range given.named {
		value, err := given.named[i].evaluate(r)
		if err != nil {
			return nil, nil, err
		}
		if named[given.named[i].name], err = r.finish(value); err != nil {
			return nil, nil, err
		}
	}
	return args, named, nil
}

// choose calls the first candidate that takes the arguments.
func (r *run) choose(name string, kind Kind, candidates []*Function, receiver any, received bool, nodes []Node, scope *Scope) (any, error) {
	buffer := r.room()
	defer r.free(buffer)
	plain := arguments{positional: buffer[:0]}
	if received {
		plain.addValue(receiver)
	}
	plainErr := plain.add(nodes, scope, false)
	var pairs *arguments
	for _, f := range candidates {
		if f.Pairs && pairs == nil {
			pairs = &arguments{}
			if received {
				pairs.addValue(receiver)
			}
			_ = pairs.add(nodes, scope, true) // fails only on names, which are none here
		}
	}
	if plainErr != nil && pairs == nil {
		return nil, plainErr
	}
	return r.chooseAmong(name, kind, candidates, &plain, plainErr, pairs, scope)
}

// room is where the arguments of a call lie as long as they are few. Functions get values and lambdas, and keep no argument.
func (r *run) room() *[4]argument {
	if last := len(r.rooms) - 1; last >= 0 {
		room := r.rooms[last]
		r.rooms = r.rooms[:last]
		return room
	}
	return new([4]argument)
}

func (r *run) free(room *[4]argument) {
	clear(room[:])
	r.rooms = append(r.rooms, room)
}

func (r *run) chooseAmong(name string, kind Kind, candidates []*Function, plain *arguments, plainErr error, pairs *arguments, scope *Scope) (any, error) {
	call := &Invocation{Scope: scope, run: r}
	for _, f := range candidates {
		given := plain
		if f.Pairs {
			given = pairs
		} else if plainErr != nil {
			continue
		}
		call.room(len(f.Params))
		ok, err := f.bind(r, given, call.Args)
		if err != nil {
			return nil, err
		}
		if ok {
			return r.invoke(f, call)
		}
	}
	if scope.setting.functions.keyed && kind != AsOperator && plainErr == nil && plain.byKeys() {
		return r.chooseAmong(name, kind, candidates, plain, plainErr, pairs, scope)
	}
	switch {
	case kind == AsOperator:
		return nil, failure(NoMatch, "the operator %q does not work on %s", name, describe(plain)).
			saying(`No function "%s" matches supplied arguments`, operatorInPython(name, len(plain.positional)))
	case len(candidates) == 0 && kind == AsMethod:
		return nil, failure(NoMethod, "there is no method %s", name).saying(`Unknown method "%s" for receiver %s`, name, plain.receiver())
	case len(candidates) == 0:
		return nil, failure(NoFunction, "there is no function %s", name).saying(`Unknown function "%s"`, name)
	case kind == AsMethod:
		return nil, failure(NoMatchMethod, "no method %s takes (%s)", name, describe(plain)).
			saying(`No method "%s" for receiver %s matches supplied arguments`, name, plain.receiver())
	}
	return nil, failure(NoMatch, "no function %s takes (%s)", name, describe(plain)).saying(`No function "%s" matches supplied arguments`, name)
}

// operatorInPython is the name by which YAQL for Python knows an operator with so many operands.
func operatorInPython(name string, operands int) string {
	switch {
	case name == "[]":
		return "#indexer"
	case operands == 1:
		return "#unary_operator_" + name
	}
	return "#operator_" + name
}

func (r *run) invoke(f *Function, call *Invocation) (any, error) {
	value, err := f.Call(call)
	if err != nil {
		return nil, err
	}
	return r.account(enter(apart(value, call.Args)))
}

func (r *run) applyNode(n *Apply, scope *Scope) (any, error) {
	callee, err := r.evaluate(n.Callee, scope)
	if err != nil {
		return nil, err
	}
	lambda, ok := callee.(*Lambda)
	if !ok {
		return nil, failure(NoMatch, "%s cannot be called", TypeName(callee))
	}
	args, named, err := r.values(n.Args, scope)
	if err != nil {
		return nil, err
	}
	return r.applyNamed(lambda, named, args...)
}

// apply evaluates a lambda.
func (r *run) apply(l *Lambda, args ...any) (any, error) { return r.applyNamed(l, nil, args...) }

func (r *run) applyNamed(l *Lambda, named map[string]any, args ...any) (any, error) {
	if literal, ok := l.node.(*Literal); ok {
		return literal.Value, nil
	}
	scope := l.scope
	if len(args) > 0 {
		scope = scope.arguments(args)
	}
	if len(named) > 0 {
		scope = scope.WithAll(named)
	}
	return r.evaluate(l.node, scope)
}
