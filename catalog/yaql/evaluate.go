package yaql

import (
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

// Scope is the scope of the lambda's definition, nil for a constant.
func (l *Lambda) Scope() *Scope { return l.scope }

// In is the lambda in another scope.
func (l *Lambda) In(scope *Scope) *Lambda {
	return &Lambda{node: l.node, scope: scope, source: l.source}
}

// run is one evaluation, with its cost so far.
type run struct {
	cost
	source string
	depth  int

	patterns *patterns      // the expression's; nil until one is wanted where there is no expression
	rooms    []*[4]argument // for the arguments of calls, of calls that have ended
}

func newRun(ctx context.Context, limits Limits, source string) *run {
	r := &run{cost: cost{ctx: ctx, limits: limits}, source: source}
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

func (c *cost) step() error {
	if c.steps++; c.steps > c.limits.Steps {
		return failure(TooLarge, "the expression takes more than %d steps", c.limits.Steps)
	}
	if c.steps%tellSteps == 0 {
		return c.pause()
	}
	return nil
}

// spend accounts for memory.
func (c *cost) spend(bytes int) error {
	if c.memory += bytes; bytes > c.limits.Memory || c.memory > c.limits.Memory || c.memory < 0 {
		return failure(TooMuchMemory, "the expression takes more than %d bytes", c.limits.Memory).saying("Expression consumed too much memory")
	}
	if c.meter != nil && c.memory-c.toldBytes > tellBytes {
		return c.tell()
	}
	return nil
}

func (c *cost) account(value any) (any, error) {
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
	return value, c.spend(bytes)
}

// limited ends a sequence that has too many items.
func (c *cost) limited(seq Seq) Seq {
	return func(yield func(any, error) bool) {
		count := 0
		for item, err := range seq {
			if count++; err == nil && count > c.limits.Items {
				err = failure(TooLarge, "a sequence has more than %d items", c.limits.Items).saying("Collection length exceeds %d elements", c.limits.Items)
			}
			if err == nil {
				err = c.step()
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

// finish makes lists of the sequences in a result. A sequence in several places is made anew for each, which counts.
func (r *run) finish(value any) (any, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
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
		if err := r.spend(16 * len(v)); err != nil {
			return nil, err
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

// noAttribute reports that a receiver lacks an attribute; known is true if values of another type have it.
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

// TypeName names the type of a value in a word or two.
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
