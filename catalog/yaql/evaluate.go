package yaql

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// Lambda is an expression that waits for its arguments, with the scope that it was written in.
type Lambda struct {
	node   Node
	scope  *Scope
	source string
}

// Call evaluates the lambda; inside $ and $1 are the first argument, $2 the second.
func (l *Lambda) Call(ctx context.Context, args ...any) (any, error) {
	limits := Limits{}.withDefaults()
	if l.scope != nil {
		limits = l.scope.setting.limits
	}
	r := newRun(ctx, limits, l.source)
	value, err := r.apply(l, args...)
	if err == nil {
		value, err = r.finish(value)
	}
	if err = r.ended(err); err != nil {
		return nil, r.located(err, l.node)
	}
	return value, nil
}

// Scope is what the lambda was written in, nil for a constant.
func (l *Lambda) Scope() *Scope { return l.scope }

// In is the lambda in another scope.
func (l *Lambda) In(scope *Scope) *Lambda {
	return &Lambda{node: l.node, scope: scope, source: l.source}
}

// run is one evaluation: what it costs so far.
type run struct {
	ctx    context.Context
	limits Limits
	source string
	depth  int
	steps  int
	memory int

	meter                Meter // nil for none
	toldSteps, toldBytes int   // that it knows of

	patterns *patterns // the expression's; nil until one is wanted where there is no expression
}

func newRun(ctx context.Context, limits Limits, source string) *run {
	r := &run{ctx: ctx, limits: limits, source: source}
	r.meter, _ = ctx.Value(MeterKey{}).(Meter)
	return r
}

// Evaluate evaluates the expression. Lazy sequences in the result are lists. The error is an *Error, or the context's.
func (e *Expression) Evaluate(ctx context.Context, scope *Scope) (any, error) {
	return e.EvaluatePart(ctx, e.root, scope)
}

// EvaluatePart evaluates a node of the expression as Evaluate does the whole.
func (e *Expression) EvaluatePart(ctx context.Context, node Node, scope *Scope) (any, error) {
	r := newRun(ctx, scope.setting.limits, e.source)
	r.patterns = &e.patterns
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	value, err := r.evaluate(node, scope)
	if err == nil {
		value, err = r.finish(value)
	}
	if err = r.ended(err); err != nil {
		return nil, r.located(err, node)
	}
	return value, nil
}

// located adds to an error where it came from, once.
func (r *run) located(err error, node Node) error {
	var e *Error
	if errors.As(err, &e) && e.Source == "" && r.source != "" {
		located := *e
		located.Source, located.Offset = r.source, node.Offset()
		return &located
	}
	return err
}

func (r *run) step() error {
	if r.steps++; r.steps > r.limits.Steps {
		return failure(TooLarge, "the expression takes more than %d steps", r.limits.Steps)
	}
	if r.steps%tellSteps == 0 {
		return r.pause()
	}
	return nil
}

// spend accounts for memory.
func (r *run) spend(bytes int) error {
	if r.memory += bytes; bytes > r.limits.Memory || r.memory > r.limits.Memory || r.memory < 0 {
		return failure(TooMuchMemory, "the expression takes more than %d bytes", r.limits.Memory).saying("Expression consumed too much memory")
	}
	if r.meter != nil && r.memory-r.toldBytes > tellBytes {
		return r.tell()
	}
	return nil
}

func (r *run) account(value any) (any, error) {
	bytes := 0
	switch v := value.(type) {
	case string:
		bytes = len(v)
	case []any:
		bytes = 16 * len(v)
	case *Dict:
		bytes = 96 * v.Len()
	case *Set:
		bytes = 64 * v.Len()
	default:
		return value, nil
	}
	return value, r.spend(bytes)
}

// limited ends a sequence that has too many items.
func (r *run) limited(seq Seq) Seq {
	return func(yield func(any, error) bool) {
		count := 0
		for item, err := range seq {
			if count++; err == nil && count > r.limits.Items {
				err = failure(TooLarge, "a sequence has more than %d items", r.limits.Items).saying("Collection length exceeds %d elements", r.limits.Items)
			}
			if err == nil {
				err = r.step()
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// list makes a list of a sequence.
func (r *run) list(seq Seq) ([]any, error) {
	list := []any{}
	for item, err := range r.limited(seq) {
		if err != nil {
			return nil, err
		}
		if err := r.spend(16); err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, nil
}

// finish makes lists of the sequences in a result.
func (r *run) finish(value any) (any, error) {
	switch v := enter(value).(type) {
	case Seq:
		list, err := r.list(v)
		if err != nil {
			return nil, err
		}
		return r.finish(list)
	case *ordering:
		return r.finish(v.sequence())
	case []any:
		if !slices.ContainsFunc(v, unfinished) {
			return v, nil
		}
		list := make([]any, len(v))
		for i, item := range v {
			var err error
			if list[i], err = r.finish(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *Dict:
		entries := v.Entries()
		for i := range entries {
			var err error
			if entries[i].Value, err = r.finish(entries[i].Value); err != nil {
				return nil, err
			}
		}
		return NewDict(entries...), nil
	default:
		return v, nil
	}
}

func unfinished(value any) bool {
	switch value.(type) {
	case Seq, *ordering, []any, *Dict, map[string]any:
		return true
	}
	return false
}

func (r *run) evaluate(node Node, scope *Scope) (any, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if r.depth++; r.depth > r.limits.Depth*10 {
		return nil, failure(TooLarge, "the expression calls itself too deeply")
	}
	value, err := r.node(node, scope)
	r.depth--
	if err != nil {
		return nil, r.located(err, node)
	}
	return value, nil
}

func (r *run) node(node Node, scope *Scope) (any, error) {
	switch n := node.(type) {
	case *Literal:
		return n.Value, nil
	case *Keyword:
		return n.Name, nil
	case *Variable:
		return enter(scope.lookup(n.Name, n.place)), nil
	case *Call:
		return r.function(n.Name, n.Args, scope)
	case *Apply:
		return r.applyNode(n, scope)
	case *Binary:
		return r.binary(n, scope)
	case *Unary:
		return r.unary(n, scope)
	case *Index:
		return r.index(n, scope)
	case *List:
		items := make([]any, len(n.Items))
		for i, item := range n.Items {
			var err error
			if items[i], err = r.evaluate(item, scope); err != nil {
				return nil, err
			}
		}
		return r.account(items)
	case *Map:
		entries := make([]Entry, len(n.Items))
		for i, item := range n.Items {
			mapping := item.(*Mapping)
			key, err := r.evaluate(mapping.Key, scope)
			if err != nil {
				return nil, err
			}
			value, err := r.evaluate(mapping.Value, scope)
			if err != nil {
				return nil, err
			}
			entries[i] = Entry{key, value}
		}
		return r.account(NewDict(entries...))
	case *Mapping:
		if scope.setting.functions.lenient {
			pair := make([]any, 2)
			for i, part := range []Node{n.Key, n.Value} {
				var err error
				if pair[i], err = r.evaluate(part, scope); err != nil {
					return nil, err
				}
			}
			return r.account(pair)
		}
		return nil, failure(BadMapping, `"=>" stands only among the arguments of a function and between braces`)
	}
	return nil, failure(BadValue, "an argument is missing")
}

func (r *run) unary(n *Unary, scope *Scope) (any, error) {
	if n.Operator == ":" {
		return r.typeReference("", n.Operand.(*Keyword).Name, scope)
	}
	operand, err := r.evaluate(n.Operand, scope)
	if err != nil {
		return nil, err
	}
	if n.Operator == "not" {
		return !Truth(operand), nil
	}
	return r.overloaded(n.Operator, scope, operand)
}

func (r *run) typeReference(prefix, name string, scope *Scope) (any, error) {
	if scope.setting.dialect.Type == nil {
		return nil, failure(NoFunction, "class references like %s:%s are not possible here", prefix, name)
	}
	return scope.setting.dialect.Type(r.ctx, prefix, name)
}

func (r *run) binary(n *Binary, scope *Scope) (any, error) {
	switch n.Operator {
	case ":":
		return r.typeReference(n.Left.(*Keyword).Name, n.Right.(*Keyword).Name, scope)
	case ".", "?.":
		return r.dot(n, scope)
	}
	left, err := r.evaluate(n.Left, scope)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "and":
		if !Truth(left) {
			return left, nil
		}
		return r.evaluate(n.Right, scope)
	case "or":
		if Truth(left) {
			return left, nil
		}
		return r.evaluate(n.Right, scope)
	case "->":
		inner, ok := left.(*Scope)
		if !ok {
			return nil, failure(NoMatch, `on the left of "->" stands a scope, as let() and with() make it, not %s`, TypeName(left)).
				saying(`No function "#operator_->" matches supplied arguments`)
		}
		return r.evaluate(n.Right, inner)
	}
	right, err := r.evaluate(n.Right, scope)
	if err != nil {
		return nil, err
	}
	switch n.Operator {
	case "=":
		return Equal(left, right), nil
	case "!=":
		return !Equal(left, right), nil
	case "is":
		if scope.setting.dialect.Is == nil {
			return nil, failure(NoFunction, `the operator "is" is not possible here`)
		}
		return scope.setting.dialect.Is(r.ctx, left, right)
	}
	return r.overloaded(n.Operator, scope, left, right)
}

// overloaded evaluates an operator that is in the table of functions.
func (r *run) overloaded(operator string, scope *Scope, operands ...any) (any, error) {
	if scope.setting.functions.plain {
		if value, ok := r.quick(operator, operands); ok {
			return value, nil
		}
	}
	var buffer [2]argument
	given := arguments{positional: buffer[:0]}
	for _, operand := range operands {
		given.addValue(enter(operand))
	}
	return r.chooseAmong(operator, AsOperator, scope.setting.functions.named(operator, AsOperator), &given, nil, nil, scope)
}

// quick does what the table of functions would do where that is known without looking.
func (r *run) quick(operator string, operands []any) (any, bool) {
	if len(operands) != 2 {
		return nil, false
	}
	switch a := operands[0].(type) {
	case int64:
		b, ok := operands[1].(int64)
		if !ok {
			return nil, false
		}
		switch operator {
		case "+":
			value, err := add(a, b)
			return value, err == nil
		case "-":
			value, err := subtract(a, b)
			return value, err == nil
		case "*":
			value, err := multiply(a, b)
			return value, err == nil
		case "mod":
			if b > 0 {
				value, err := modulo(a, b)
				return value, err == nil
			}
		}
		return compared(operator, a, b)
	case string:
		b, ok := operands[1].(string)
		if !ok {
			return nil, false
		}
		if operator == "=~" || operator == "!~" {
			made, err := r.compile(b, "")
			if err != nil {
				return nil, false
			}
			found, err := made.matches(a)
			return found == (operator == "=~"), err == nil
		}
		return compared(operator, a, b)
	}
	return nil, false
}

func compared[T cmp.Ordered](operator string, a, b T) (holds any, ok bool) {
	switch operator {
	case "<":
		return a < b, true
	case ">":
		return a > b, true
	case "<=":
		return a <= b, true
	case ">=":
		return a >= b, true
	}
	return nil, false
}

func (r *run) dot(n *Binary, scope *Scope) (any, error) {
	receiver, err := r.evaluate(n.Left, scope)
	if err != nil {
		return nil, err
	}
	if n.Operator == "?." && receiver == nil {
		return nil, nil
	}
	if inner, ok := receiver.(*Scope); ok {
		receiver, scope = inner.Variable(""), inner
	}
	switch right := n.Right.(type) {
	case *Call:
		return r.method(enter(receiver), right.Name, right.Args, scope)
	case *Keyword:
		return r.attribute(enter(receiver), right.Name, scope)
	}
	return nil, failure(NoMatch, "after a dot stands a name or a method call")
}

func (r *run) attribute(receiver any, name string, scope *Scope) (any, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	if scope.setting.dialect.Attribute != nil {
		if value, ok, err := scope.setting.dialect.Attribute(r.ctx, receiver, name); ok || err != nil {
			return enter(value), err
		}
	}
	properties := scope.setting.functions.named(name, AsProperty)
	if len(properties) > 0 {
		given := arguments{}
		given.addValue(receiver)
		for _, f := range properties {
			call := &Invocation{Scope: scope, run: r}
			call.room(len(f.Params))
			if ok, err := f.bind(r, &given, call.Args); ok && err == nil {
				return r.invoke(f, call)
			}
		}
	}
	switch v := receiver.(type) {
	case *Dict:
		value, ok := v.Get(name)
		if !ok && !scope.setting.functions.lenient {
			return nil, failure(KeyMissing, "there is no key %q", name).saying("'%s'", name)
		}
		return enter(value), nil
	case nil:
		return nil, noAttribute("null", name, len(properties) > 0)
	}
	if seq, ok := iterable(receiver); ok {
		items := []any{}
		for item, err := range r.limited(seq.(Seq)) {
			if err != nil {
				return nil, err
			}
			value, err := r.attribute(enter(item), name, scope)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		return r.account(items)
	}
	return nil, noAttribute(TypeName(receiver), name, len(properties) > 0)
}

// noAttribute says that a receiver lacks an attribute; known tells whether values of another type have it.
func noAttribute(receiver, name string, known bool) error {
	if known {
		return failure(NoMatch, "%s has no attribute %s", receiver, name).saying(`No function "#property#%s" matches supplied arguments`, name)
	}
	return failure(NoFunction, "%s has no attribute %s", receiver, name).saying(`Unknown function "#property#%s"`, name)
}

func (r *run) index(n *Index, scope *Scope) (any, error) {
	target, err := r.evaluate(n.Target, scope)
	if err != nil {
		return nil, err
	}
	if dialect := scope.setting.dialect.Index; dialect != nil && scope.setting.dialect.Owns != nil && scope.setting.dialect.Owns(target) {
		var args []any
		for _, node := range n.Args {
			value, err := r.evaluate(node, scope)
			if err != nil {
				return nil, err
			}
			args = append(args, value)
		}
		if value, ok, err := dialect(r.ctx, target, args); ok || err != nil {
			return value, err
		}
	}
	return r.choose("[]", AsOperator, scope.setting.functions.named("[]", AsOperator), target, true, n.Args, scope)
}

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
	var buffer [4]argument
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

// TypeName says in a word or two what a value is.
func TypeName(value any) string {
	switch enter(value).(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case int64:
		return "an integer"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	case Seq, *ordering:
		return "a sequence"
	case *Dict:
		return "a map"
	case *Set:
		return "a set"
	case *Lambda:
		return "a lambda"
	case *Regex:
		return "a regular expression"
	case *Scope:
		return "a scope"
	case time.Time:
		return "a date"
	case time.Duration:
		return "a time span"
	}
	return "an object"
}
