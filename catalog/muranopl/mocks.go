package muranopl

import (
	"context"
	"maps"
	"sync"

	"github.com/burano/burano/catalog/yaql"
)

// mocks are the methods that tests replaced.
type mocks struct {
	mutex sync.Mutex
	all   []*mock // the latest last
}

// mock is the replacement of a method: of one object, or of all of a class.
type mock struct {
	object *Object // nil: every one of the class
	class  *Class
	method *Method

	// Either a method of another object,
	substitute any
	name       string
	// or an expression.
	expression *yaql.Lambda
}

func (m *mocks) add(one *mock) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.all = append(m.all, one)
}

// values visits the replacements, and the objects that they are for.
func (m *mocks) values(visit func(any)) {
	if m == nil {
		return
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, one := range m.all {
		visit(one.object)
		visit(one.substitute)
		if one.expression != nil {
			one.expression.Scope().Values(visit)
		}
	}
}

// of returns the replacement of a method, nil for none.
func (m *mocks) of(method *Method, object *Object) *mock {
	if m == nil {
		return nil
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for n := len(m.all) - 1; n >= 0; n-- {
		one := m.all[n]
		if one.method != method || one.object != nil && one.object != object {
			continue
		}
		if one.object != nil || object == nil || object.class.Is(one.class.Name) {
			return one
		}
	}
	return nil
}

// mockCall is a call of a method in whose place an expression is evaluated.
type mockCall struct {
	mock     *mock
	method   *Method
	object   *Object
	receiver any
	args     map[string]any
}

type mockKey struct{}

type originalKey struct{}

// runsOriginal reports whether originalMethod() is the caller of the method.
func runsOriginal(ctx context.Context, m *Method) bool {
	original, _ := ctx.Value(originalKey{}).(*Method)
	return original == m
}

// mocked runs the replacement of a method.
func mocked(ctx context.Context, one *mock, m *Method, object *Object, receiver any, args map[string]any) (any, error) {
	if one.expression == nil { // Go called the method, with all its arguments
		var list []any
		for _, a := range m.Arguments {
			if a.Usage == Standard {
				list = append(list, args[a.Name])
			}
		}
		return callMethod(ctx, one.substitute, one.name, list, nil)
	}
	variables := map[string]any{"": receiver, "1": receiver, "this": receiver}
	for name, value := range args {
		variables[name] = value
	}
	ctx = context.WithValue(ctx, mockKey{}, &mockCall{one, m, object, receiver, args})
	return one.expression.In(one.expression.Scope().WithAll(variables)).Call(ctx)
}

// mockFunctions returns the functions of Murano's test runner:
//
//	inject(target, method, mockObject, mockName)  calls of the method call mockName of mockObject with the same arguments
//	inject(target, method, expression)            calls of the method evaluate the expression, with the method's arguments as variables
//	originalMethod()                              calls, in such an expression, the method itself
//	withOriginal(t => $x) -> expression           evaluates, in such an expression, with variables of the caller of inject()
//
// target is an object, or a class or its name for all its objects.
func mockFunctions() []*yaql.Function {
	target := yaql.Param{Name: "target", Type: func(value any) (any, bool) {
		_, named := value.(string)
		return value, named || classOf(value) != nil
	}}
	method := yaql.Param{Name: "targetMethod", Type: aText}
	inject := func(i *yaql.Invocation, one *mock) (any, error) {
		one.object, one.class = objectOf(i.Args[0]), classOf(i.Args[0])
		var err error
		if one.class == nil {
			if one.class, err = Caller(i.Context()).Class.classFor(i.Context(), i.Args[0]); err != nil {
				return nil, err
			}
		}
		if one.method, err = one.class.Method(i.Args[1].(string)); err != nil || one.method == nil {
			return nil, raised(dslExceptions+"NoMethodFound", "Method %q is not found", i.Args[1])
		}
		interpreterOf(i.Context()).mocks.add(one)
		return nil, nil
	}
	return []*yaql.Function{
		// First, so that the expression is not evaluated to find out which one is meant.
		{Name: "inject", Kind: yaql.AsFunction, Doc: "replaces a method by an expression",
			Params: []yaql.Param{target, method, {Name: "expr", Lazy: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				lambda := i.Args[2].(*yaql.Lambda)
				if lambda.Scope() == nil {
					lambda = lambda.In(i.Scope)
				}
				return inject(i, &mock{expression: lambda})
			}},
		{Name: "inject", Kind: yaql.AsFunction, Doc: "replaces a method by that of another object",
			Params: []yaql.Param{target, method, {Name: "mockObject", Type: aReceiver}, {Name: "mockName", Type: aText}},
			Call: func(i *yaql.Invocation) (any, error) {
				return inject(i, &mock{substitute: i.Args[2], name: i.Args[3].(string)})
			}},
		{Name: "originalMethod", Kind: yaql.AsFunction, Doc: "calls the method that was replaced",
			Params: []yaql.Param{{Rest: true}, {Keywords: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				call, _ := i.Context().Value(mockKey{}).(*mockCall)
				if call == nil {
					return nil, raised("ValueError", "originalMethod() stands only in an expression that inject() put in place of a method")
				}
				ctx := context.WithValue(i.Context(), originalKey{}, call.method)
				interpreter := interpreterOf(ctx)
				args, named := i.Args[0].([]any), i.Args[1].(map[string]any)
				if len(args) == 0 && len(named) == 0 {
					return interpreter.prepared(ctx, call.method, call.object, call.receiver, maps.Clone(call.args))
				}
				return interpreter.call(ctx, call.method, call.object, call.receiver, args, named)
			}},
		{Name: "withOriginal", Kind: yaql.AsFunction, Doc: "a scope with values from where inject() was called",
			Params: []yaql.Param{{Keywords: true, Lazy: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				call, _ := i.Context().Value(mockKey{}).(*mockCall)
				if call == nil {
					return nil, raised("ValueError", "withOriginal() stands only in an expression that inject() put in place of a method")
				}
				variables := map[string]any{}
				for name, value := range i.Args[0].(map[string]any) {
					made, err := value.(*yaql.Lambda).In(call.mock.expression.Scope()).Call(i.Context())
					if err != nil {
						return nil, err
					}
					variables[name] = made
				}
				return i.Scope.WithAll(variables), nil
			}},
	}
}
