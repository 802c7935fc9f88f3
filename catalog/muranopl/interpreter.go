package muranopl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/panics"
)

// Interpreter invokes methods. One interpreter serves one run over one model, by any number of goroutines.
type Interpreter struct {
	classes *Classes
	natives Natives
	locks   locks
	turn    turn

	logger    *slog.Logger
	stored    func(property string, value any)
	functions []*yaql.Function
	mocks     *mocks   // nil: methods cannot be replaced
	bases     sync.Map // *Class → *yaql.Scope, for functions beside those of the class
	heap      heap
	meter     *meter // nil: nothing is limited
	unknown   []Problem
}

// InterpreterOption is an option of NewInterpreter.
type InterpreterOption func(*Interpreter)

// WithLogger sets the target of objects that the function logger() makes; the default discards.
func WithLogger(logger *slog.Logger) InterpreterOption {
	return func(i *Interpreter) { i.logger = logger }
}

// WithStored calls stored with each value that a property of an object gets, from the model or from code, on any goroutine. Dictionaries are passed as
// maps; objects in a value stay objects.
func WithStored(stored func(property string, value any)) InterpreterOption {
	return func(i *Interpreter) { i.stored = stored }
}

// WithFunctions adds functions for expressions.
func WithFunctions(functions ...*yaql.Function) InterpreterOption {
	return func(i *Interpreter) { i.functions = append(i.functions, functions...) }
}

// WithMocks lets code replace methods: inject(), originalMethod() and withOriginal() of Murano's test runner.
func WithMocks() InterpreterOption {
	return func(i *Interpreter) {
		i.mocks = &mocks{}
		i.functions = append(i.functions, mockFunctions()...)
	}
}

// NewInterpreter makes an interpreter; CheckNatives is the caller's to have called once at start.
func NewInterpreter(classes *Classes, natives Natives, options ...InterpreterOption) *Interpreter {
	i := &Interpreter{classes: classes, natives: natives, logger: slog.New(slog.DiscardHandler), heap: heap{names: &sync.Map{}}}
	for _, option := range options {
		option(i)
	}
	return i
}

// Classes returns the interpreter's classes.
func (i *Interpreter) Classes() *Classes { return i.classes }

// Load makes the objects of a model and runs their .init: of owned objects first, of ancestors before descendants. The error is one of .init.
func (i *Interpreter) Load(ctx context.Context, model map[string]any) (*Object, []Problem, error) {
	root, start, problems := i.Prepare(ctx, model)
	if len(problems) > 0 {
		return nil, problems, nil
	}
	if err := start(ctx); err != nil {
		return nil, nil, err
	}
	return root, nil, nil
}

// Prepare makes the objects of a model and runs nothing; start then runs their .init. UnknownKeys lists the keys of the model that have no effect.
func (i *Interpreter) Prepare(ctx context.Context, model map[string]any) (root *Object, start func(context.Context) error, problems []Problem) {
	root, l, problems := load(i.enter(ctx), i.classes, model)
	i.unknown = l.unknown
	if root != nil {
		i.heap.root(root)
	}
	return root, l.born, problems
}

// LoadFormer makes the objects of a former model that present, the root of the present model (nil for none), does not hold any more. Their references,
// also to owners, lead to the present objects of the same ids. They are unreachable: Collect destroys them. They are returned in an order of destruction:
// owned objects before owners and subscribers. Of the objects of one owner the last comes first, because it may depend on earlier ones.
func (i *Interpreter) LoadFormer(ctx context.Context, present *Object, model map[string]any) ([]*Object, []Problem, error) {
	l, problems := loadFormer(i.enter(ctx), i.classes, present, model)
	if len(problems) > 0 {
		return nil, problems, nil
	}
	if err := l.born(ctx); err != nil {
		return nil, nil, err
	}
	former := make([]*Object, len(l.births))
	for n, b := range l.births {
		former[n] = b.object
	}
	return destructionOrder(former), nil, nil
}

// initialise runs .init of each class of an object; its arguments are the model's properties of the same names.
func (i *Interpreter) initialise(ctx context.Context, b birth) error {
	ctx = context.WithValue(ctx, initialisingKey{}, true)
	for _, class := range slices.Backward(b.object.class.lineage) {
		m := class.own(".init")
		if m == nil {
			continue
		}
		given := map[string]any{}
		for _, argument := range m.Arguments {
			if value, ok := b.given[argument.Name]; ok {
				given[argument.Name] = value
			}
		}
		if _, err := i.call(ctx, m, b.object, b.object, nil, given); err != nil {
			return err
		}
	}
	return nil
}

// Invoke calls a method of an object with named arguments. A method without a body returns nil. Calls of the same method of the same object wait for each
// other, unless one is made within the other. An error of a body in MuranoPL is an *Exception, or the context's.
func (i *Interpreter) Invoke(ctx context.Context, object *Object, method string, args map[string]any) (any, error) {
	if object == nil {
		return nil, fault.New(fault.Invalid, "method %s was called on nothing: the object that was meant is not there", method)
	}
	found, err := object.class.Method(method)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, fault.New(fault.NotFound, "class %s has no method %s", object.class.Name, method)
	}
	return i.fromGo(ctx, found, object, object, args)
}

// InvokeAction calls a method as the API does: it must be public.
func (i *Interpreter) InvokeAction(ctx context.Context, object *Object, method string, args map[string]any) (any, error) {
	found, err := object.class.Method(method)
	if err != nil {
		return nil, err
	}
	switch {
	case found == nil || strings.HasPrefix(found.Name, "."):
		return nil, fault.New(fault.NotFound, "class %s has no method %s", object.class.Name, method)
	case found.Scope != Public:
		return nil, fault.New(fault.Forbidden, "method %s is not public: it cannot be called from outside", found.FullName())
	}
	return i.fromGo(ctx, found, object, object, args)
}

// InvokeStatic calls a static method of a class with named arguments.
func (i *Interpreter) InvokeStatic(ctx context.Context, class *Class, method string, args map[string]any) (any, error) {
	found, err := class.Method(method)
	switch {
	case err != nil:
		return nil, err
	case found == nil:
		return nil, refused(fault.NotFound, dslExceptions+"NoMethodFound", "Method %q is not found", method)
	case found.Usage == RuntimeMethod:
		return nil, raised("Exception", "A class instance is required")
	}
	return i.fromGo(ctx, found, nil, TypeReference{class}, args)
}

// InvokeStaticAction calls a static method as the API does: it must be public. Errors describe faults of the request in Murano's words; errors of the body
// are *Exceptions without a fault in their chain.
func (i *Interpreter) InvokeStaticAction(ctx context.Context, class *Class, method string, args map[string]any) (any, error) {
	found, err := class.Method(method)
	switch {
	case err != nil:
		return nil, err
	case found == nil || strings.HasPrefix(found.Name, "."):
		return nil, refused(fault.NotFound, dslExceptions+"NoMethodFound", "Method %q is not found", method)
	case found.Scope != Public:
		return nil, refused(fault.NotFound, dslExceptions+"MethodNotExposed", "%s is not an action", method)
	case found.Usage == RuntimeMethod:
		return nil, raised("Exception", "A class instance is required")
	}
	normal, _ := plain(args).(map[string]any)
	ctx = i.enter(ctx)
	prepared, err := i.bind(ctx, found, nil, nil, normal)
	var broken *contractError
	switch {
	case errors.As(err, &broken):
		return nil, fault.New(fault.Invalid, "%s", broken.violation)
	case errors.Is(err, errMismatch):
		return nil, fault.New(fault.NotFound, "No method %q for receiver MuranoClass(%s/%s) matches supplied arguments", method, class.Name, class.Package.Version())
	case err != nil:
		return nil, err
	}
	value, err := i.prepared(ctx, found, nil, TypeReference{class}, prepared)
	return plainValue(value), err
}

// variadic is Go code's value for an argument of usage VarArgs: by its name, which code in MuranoPL cannot do.
type variadic []any

func (i *Interpreter) fromGo(ctx context.Context, m *Method, object *Object, receiver any, args map[string]any) (any, error) {
	normal, _ := plain(args).(map[string]any)
	for _, a := range m.Arguments {
		if given, ok := normal[a.Name].([]any); ok && a.Usage == VarArgs {
			normal[a.Name] = variadic(given)
		}
	}
	ctx = i.enter(ctx)
	prepared, err := i.bind(ctx, m, object, nil, normal)
	if err != nil {
		return nil, err
	}
	value, err := i.prepared(ctx, m, object, receiver, prepared)
	return plainValue(value), err
}

// call calls a method with arguments as an expression gives them. receiver is $: the object, or the class of a static method.
func (i *Interpreter) call(ctx context.Context, m *Method, object *Object, receiver any, args []any, named map[string]any) (any, error) {
	if mock := i.mocks.of(m, object); mock != nil && mock.expression == nil && !runsOriginal(ctx, m) {
		return callMethod(ctx, mock.substitute, mock.name, args, named) // whose arguments may be called otherwise
	}
	prepared, err := i.bind(ctx, m, object, args, named)
	if err != nil {
		return nil, mismatched(err)
	}
	return i.prepared(ctx, m, object, receiver, prepared)
}

// prepared calls a method whose arguments are bound.
func (i *Interpreter) prepared(ctx context.Context, m *Method, object *Object, receiver any, args map[string]any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("call %s: %w", m.FullName(), context.Cause(ctx))
	}
	if m.Usage == StaticMethod {
		object = nil
	}
	if object != nil && object.Destroyed() {
		return nil, raised(dslExceptions+"ObjectDestroyedError", "Object %s is already destroyed", object.murano())
	}
	if key, locked := m.lockOf(object, args); locked {
		inner, release, err := i.locks.hold(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("wait for another call of %s on %s: %w", m.FullName(), object, err)
		}
		defer release()
		ctx = inner
	}
	var err error
	if mock := i.mocks.of(m, object); mock != nil {
		if !runsOriginal(ctx, m) {
			return mocked(ctx, mock, m, object, receiver, args)
		}
		ctx = context.WithValue(ctx, originalKey{}, nil)
	}
	var value any
	switch {
	case m.Native && m.Class.Package.Embedded():
		value, err = i.native(ctx, m, object, args)
	case !m.HasBody() && i.natives.has(m):
		return nil, fmt.Errorf("method %s of the uploaded package %s has no body: only packages that come with Burano have methods that run in Burano itself. Delete the package, so that the one of Burano is used, "+
			"or give it another name and let its classes extend these", m.FullName(), m.Class.Package.FullName())
	case m.HasBody():
		value, err = i.body(ctx, m, object, receiver, args)
	}
	strandOf(ctx).pin(value)
	return value, err
}

func (i *Interpreter) native(ctx context.Context, m *Method, object *Object, args map[string]any) (result any, err error) {
	native := i.natives.find(m)
	if native == nil {
		return nil, fmt.Errorf("method %s is native and has no body in this Burano", m.FullName())
	}
	plain := make(map[string]any, len(args))
	for name, value := range args {
		plain[name] = plainValue(value)
	}
	run := func(ctx context.Context) {
		err = panics.Run(func() (err error) {
			result, err = native(ctx, Call{Object: object, Method: m, Args: plain, Interpreter: i})
			return err
		})
	}
	if m.Prompt {
		run(ctx)
	} else {
		i.waiting(ctx, run)
	}
	var defect *panics.Error
	if errors.As(err, &defect) {
		err = fmt.Errorf("method %s: %w", m.FullName(), err)
	}
	if err == nil && i.meter != nil && result != nil {
		err = i.meter.keep(weight(result))
	}
	if object, ok := result.(*Object); ok && object == nil {
		result = nil
	}
	return result, err
}

// body runs a body in MuranoPL. The arguments become its variables, which no other code has.
func (i *Interpreter) body(ctx context.Context, m *Method, object *Object, receiver any, args map[string]any) (any, error) {
	f := &frame{interpreter: i, method: m, depth: 1}
	from := runningOf(ctx)
	if from != nil && from.strand != nil {
		f.caller, f.depth = from.strand, from.strand.frame.depth+1
	}
	if f.depth > maxCalls {
		return nil, raised("RecursionError", "methods call each other more than %d deep", maxCalls)
	}
	if i.meter != nil {
		if err := i.meter.Spend(1, 0); err != nil {
			return nil, err
		}
	}
	if object != nil {
		args["this"] = object
	} else {
		args["this"] = receiver
	}
	f.scope = i.base(m.Class).About(receiver).WithAll(args)
	if !from.runs(i) {
		i.turn.take()
		defer i.turn.give()
	}
	s := &strand{frame: f}
	i.heap.begin(s)
	defer i.heap.end(s)
	ended, err := m.code.run(s.enter(ctx), s)
	switch {
	case err != nil:
		return nil, err
	case ended.kind == breaks:
		return nil, s.raise(ctx, raised(dslExceptions+"DslInvalidOperationError", "Break cannot be used on method level"))
	case ended.kind == continues:
		return nil, s.raise(ctx, raised(dslExceptions+"DslInvalidOperationError", "Continue cannot be used on method level"))
	}
	return ended.value, nil
}

// base is the scope of expressions of a class, without data.
func (i *Interpreter) base(c *Class) *yaql.Scope {
	if len(i.functions) == 0 {
		return c.base()
	}
	if known, ok := i.bases.Load(c); ok {
		return known.(*yaql.Scope)
	}
	made, _ := i.bases.LoadOrStore(c, c.baseOf(c.functions().Extend(i.functions...)))
	return made.(*yaql.Scope)
}

// errMismatch is that a method does not take these arguments.
var errMismatch = errors.New("the arguments do not match")

type mismatch struct{ error }

func (mismatch) Is(target error) bool { return target == errMismatch }

func (m mismatch) Unwrap() error { return m.error }

// bind converts the given arguments to the declared ones.
func (i *Interpreter) bind(ctx context.Context, m *Method, object *Object, args []any, named map[string]any) (map[string]any, error) {
	prepared := make(map[string]any, len(m.Arguments)+1) // and $this in a body
	taken := 0
	for _, a := range m.Arguments {
		var err error
		switch a.Usage {
		case VarArgs:
			list := make([]any, len(args))
			for n, value := range args {
				if list[n], err = i.argument(ctx, object, m, a, a.Name, value); err != nil {
					return nil, err
				}
			}
			prepared[a.Name], args = list, nil
			if given, ok := named[a.Name].(variadic); ok && len(list) == 0 {
				prepared[a.Name] = []any(given)
				taken++
			}
			continue
		case KwArgs:
			rest := map[string]any{}
			for name, value := range named {
				if standard := m.argument(name); standard != nil && standard.Usage == Standard {
					continue
				}
				if rest[name], err = i.argument(ctx, object, m, a, name, value); err != nil {
					return nil, err
				}
			}
			prepared[a.Name], taken = rest, len(named)
			continue
		}
		value, has := named[a.Name]
		if has {
			taken++
		}
		if len(args) > 0 {
			if has {
				return nil, mismatch{fault.New(fault.Invalid, "argument %s of method %s is given twice", a.Name, m.FullName())}
			}
			value, args, has = args[0], args[1:], true
		}
		if !has && a.Default != nil {
			if value, err = a.Default.evaluate(ctx, m.Class, object); err != nil {
				return nil, fmt.Errorf("default of argument %s of %s: %w", a.Name, m.FullName(), err)
			}
		}
		if prepared[a.Name], err = i.argument(ctx, object, m, a, a.Name, value); err != nil {
			return nil, err
		}
	}
	if len(args) > 0 {
		return nil, mismatch{fault.New(fault.Invalid, "method %s has %d arguments, %d too many were given", m.FullName(), len(m.Arguments), len(args))}
	}
	if taken < len(named) {
		var unknown []string
		for name := range named {
			if a := m.argument(name); a == nil || a.Usage != Standard {
				unknown = append(unknown, name)
			}
		}
		slices.Sort(unknown)
		return nil, mismatch{fault.New(fault.Invalid, "method %s has no argument %s", m.FullName(), strings.Join(unknown, ", "))}
	}
	return prepared, nil
}

func (m *Method) argument(name string) *Argument {
	for _, a := range m.Arguments {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (i *Interpreter) argument(ctx context.Context, object *Object, m *Method, a *Argument, name string, value any) (any, error) {
	if made, ok := quick(a.Contract.rule, value); ok {
		return made, nil
	}
	var owner *Object // objects from maps in arguments have none, except those of .init
	if m.Name == ".init" {
		owner = object
	}
	subject := m.Class.Name + "::" + m.Name + "(" + name + ")"
	value, err := a.Contract.thoroughly(application{ctx: ctx, this: object, owner: owner, in: m.Class, path: name, label: m.FullName(), subject: subject}, i.classes, value)
	if err != nil {
		return nil, contractFault(err, "argument ")
	}
	return value, nil
}

// callMethod calls a method of an object, of an ancestor of it that it is seen as, or a static one of a class.
func callMethod(ctx context.Context, receiver any, name string, args []any, named map[string]any) (any, error) {
	i := interpreterOf(ctx)
	if r, ok := receiver.(reflected); ok {
		return r.call(ctx, name, args, named)
	}
	class := classOf(receiver)
	m, err := class.Method(name)
	switch {
	case err != nil:
		return nil, ambiguousMethod(name, err)
	case m == nil:
		wrong := &yaql.Error{Name: yaql.NoMethod, Message: fmt.Sprintf("class %s has no method %s", class.Name, name)}
		if caller := Caller(ctx); caller != nil && len(caller.Class.nearest(methodName(name))) > 0 {
			wrong.Name = yaql.NoMatchMethod // one of that name is known where it is called
		}
		return nil, wrong
	case i == nil:
		return nil, fmt.Errorf("method %s cannot be called here: nothing runs the code of classes", m.FullName())
	}
	object := objectOf(receiver)
	switch {
	case m.Usage == ExtensionMethod:
		if _, explicit := receiver.(TypeReference); !explicit {
			args = append([]any{receiver}, args...)
		}
		return i.call(ctx, m, nil, TypeReference{m.Class}, args, named)
	case m.Usage == StaticMethod:
		return i.call(ctx, m, nil, TypeReference{class}, args, named)
	case object == nil:
		return nil, &yaql.Error{Name: yaql.NoMatchMethod, Message: fmt.Sprintf("method %s is called on an object and not on the class", m.FullName())}
	}
	return i.call(ctx, m, object, object, args, named)
}
