package muranopl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/burano/burano/catalog/yaql"
)

// expressionLimits are Murano's; memory is the total of all values of one expression.
var expressionLimits = yaql.Limits{Items: 2000, Memory: 4 << 20}

// TypeReference is a class as a value of an expression: ":Name".
type TypeReference struct{ Class *Class }

// UninitializedError is reading a property that nothing gave a value yet.
type UninitializedError struct {
	Object   *Object
	Property string
	in       *Class // whose own property it is, nil for one that is declared
}

// violation is the message in Murano's words.
func (e *UninitializedError) violation() string {
	class := e.Object.class
	if e.in != nil {
		class = e.in
	}
	return fmt.Sprintf("Access to uninitialized property %q in class %q is forbidden", e.Property, class.Name)
}

func (e *UninitializedError) Error() string {
	return fmt.Sprintf("property %s of %s has no value yet", e.Property, e.Object)
}

// uninitialised returns the property without a value that an error is about.
func uninitialised(err error) *UninitializedError {
	var e *UninitializedError
	errors.As(err, &e)
	return e
}

// view is an object seen as one of its ancestors: the result of cast() and super(). Stored values hold the object itself.
type view struct {
	object *Object
	class  *Class
}

// objectOf is the object that a value is, directly or in a view; nil when it is none.
func objectOf(value any) *Object {
	switch v := value.(type) {
	case *Object:
		return v
	case view:
		return v.object
	}
	return nil
}

// scope is the scope of expressions in the class's document. this may be nil.
func (c *Class) scope(this *Object, data any) *yaql.Scope {
	if object, ok := data.(*Object); ok && object == nil {
		data = nil
	}
	scope := c.base().About(data)
	if this != nil {
		return scope.With("this", this)
	}
	return scope
}

// baseOf is the scope of expressions of the class that may call these functions, without data.
func (c *Class) baseOf(functions *yaql.Functions) *yaql.Scope {
	return yaql.NewScope(functions, nil, expressionLimits).Speaking(c.speech())
}

// functionTable is YAQL's library, the old one for old packages, with MuranoPL's functions.
func (c *Class) functionTable() *yaql.Functions {
	functions := yaql.Standard()
	if c.oldSyntax() {
		functions = yaql.Legacy()
	}
	return functions.Extend(languageFunctions(c)...).Extend(extensions(c)...)
}

// oldSyntax reports whether the class is of a package of format 1.0 or 1.1.
func (c *Class) oldSyntax() bool { return slices.Contains([]string{"1.0", "1.1"}, c.Package.Format()) }

func (c *Class) dialect() *yaql.Dialect {
	return &yaql.Dialect{
		Owns: func(receiver any) bool {
			switch v := receiver.(type) {
			case *Object:
				return v != nil
			case view, TypeReference, reflected:
				return true
			}
			return false
		},
		Attribute: func(ctx context.Context, receiver any, name string) (any, bool, error) {
			switch v := receiver.(type) {
			case *Object:
				if v == nil {
					return nil, false, nil
				}
				value, err := v.read(ctx, c, name)
				return value, err == nil, err
			case view:
				value, err := v.object.read(ctx, c, name)
				return value, err == nil, err
			case TypeReference:
				value, err := v.Class.readStatic(ctx, name)
				return value, err == nil, err
			case reflected:
				value, err := v.attribute(ctx, name)
				return value, err == nil, err
			}
			return nil, false, nil
		},
		Responds: func(receiver any, name string) bool {
			class := classOf(receiver)
			return class == nil || len(class.nearest(methodName(name))) > 0 || !c.functions().Has(name)
		},
		Method: func(ctx context.Context, receiver any, name string, args []any, named map[string]any) (any, bool, error) {
			value, err := callMethod(ctx, receiver, name, args, named)
			return value, err == nil, err
		},
		Type: func(ctx context.Context, prefix, name string) (any, error) {
			class, err := c.classes.Resolve(ctx, c, prefix+":"+name)
			if err != nil {
				return nil, noClass(err)
			}
			return TypeReference{class}, nil
		},
		Is: func(_ context.Context, value, class any) (bool, error) {
			full, err := c.typeOf(class)
			object := objectOf(value)
			return object != nil && object.class.Is(full), err
		},
	}
}

// classOf is the class where methods of a receiver are looked for; nil when it is no object and no class.
func classOf(receiver any) *Class {
	switch v := receiver.(type) {
	case *Object:
		if v != nil {
			return v.class
		}
	case view:
		return v.class
	case TypeReference:
		return v.Class
	}
	return nil
}

// noClass is that a class is not there, as code sees it.
func noClass(err error) error {
	var missing *missingClass
	if errors.As(err, &missing) {
		return &Exception{Names: []string{dslExceptions + "NoClassFound"}, Message: missing.violation, Native: err}
	}
	return &Exception{Names: []string{dslExceptions + "NoClassFound"}, Message: err.Error(), Native: err}
}

// readStatic is reading a static property by the name of its class.
func (c *Class) readStatic(ctx context.Context, property string) (any, error) {
	declared := c.Property(property)
	if len(declared) == 0 || declared[0].Usage != Static {
		return nil, raised(dslExceptions+"NoPropertyFound", "Property %q is not found", property)
	}
	value, ok := c.classes.static(ctx, declared[0])
	if !ok {
		return nil, raised(dslExceptions+"UninitializedPropertyAccessError", "Access to uninitialized property %q in class %q is forbidden", property, c.Name)
	}
	return value, nil
}

// typeOf is the fully qualified name of a class given as reference or name.
func (c *Class) typeOf(class any) (string, error) {
	switch v := class.(type) {
	case TypeReference:
		return v.Class.Name, nil
	case string:
		return c.namespaces.resolve(v)
	}
	return "", raised("TypeError", "a class is wanted, found %s", yaql.TypeName(class))
}

// classFor is the class given as reference or name.
func (c *Class) classFor(ctx context.Context, class any) (*Class, error) {
	switch v := class.(type) {
	case TypeReference:
		return v.Class, nil
	case string:
		found, err := c.classes.Resolve(ctx, c, v)
		if err != nil {
			return nil, noClass(err)
		}
		return found, nil
	}
	return nil, raised("TypeError", "a class is wanted, found %s", yaql.TypeName(class))
}

// kept converts a value of YAQL for objects: lists in place of sets, objects in place of views; maps keep their order.
func kept(value any) any {
	switch v := value.(type) {
	case view:
		return v.object
	case *yaql.Set:
		return kept(v.Members())
	case []any:
		for n, item := range v {
			if changed := kept(item); holds(item) && !same(changed, item) {
				made := append(make([]any, 0, len(v)), v[:n]...)
				for _, item := range v[n:] {
					made = append(made, kept(item))
				}
				return made
			}
		}
	case *yaql.Dict:
		entries := v.Entries()
		changes := false
		for n, e := range entries {
			entries[n].Value = kept(e.Value)
			changes = changes || holds(e.Value) && !same(entries[n].Value, e.Value)
		}
		if changes {
			return yaql.NewDict(entries...)
		}
	}
	return value
}

// same reports whether kept returned its argument.
func same(a, b any) bool {
	switch x := a.(type) {
	case []any:
		y, ok := b.([]any)
		return ok && len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
	case map[string]any:
		_, ok := b.(map[string]any)
		return ok
	}
	return a == b
}

// plainValue converts a value of YAQL for properties and arguments of native methods: maps of Go where all keys are texts, lists in place of sets, objects
// in place of views.
func plainValue(value any) any {
	switch v := value.(type) {
	case view:
		return v.object
	case []any:
		made := make([]any, len(v))
		for n, item := range v {
			made[n] = plainValue(item)
		}
		return made
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, item := range v {
			made[key] = plainValue(item)
		}
		return made
	case *yaql.Set:
		return plainValue(v.Members())
	case *yaql.Dict:
		entries := v.Entries()
		made := make(map[string]any, len(entries))
		for n := range entries {
			entries[n].Value = plainValue(entries[n].Value)
			if key, ok := entries[n].Key.(string); ok {
				made[key] = entries[n].Value
			}
		}
		if len(made) == len(entries) {
			return made
		}
		return yaql.NewDict(entries...)
	}
	return value
}

// plain converts a value for properties and arguments.
func plain(value any) any {
	switch v := value.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, item := range v {
			made[key] = plain(item)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for n, item := range v {
			made[n] = plain(item)
		}
		return made
	case []*Object:
		made := make([]any, len(v))
		for n, item := range v {
			made[n] = item
		}
		return made
	case []map[string]any:
		made := make([]any, len(v))
		for n, item := range v {
			made[n] = plain(item)
		}
		return made
	case map[string]string:
		made := make(map[string]any, len(v))
		for key, item := range v {
			made[key] = item
		}
		return made
	case *Object:
		if v == nil {
			return nil
		}
		return v
	case float64:
		if whole := int64(v); float64(whole) == v && whole > -1<<53 && whole < 1<<53 {
			return whole
		}
		return v
	case interface {
		Int64() (int64, error)
		Float64() (float64, error)
	}: // json.Number
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			return nil
		}
		return f
	}
	return yaql.Plain(value)
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// HasFunction reports whether expressions of the class have a function of this name, as such or as a method; functions for tests count.
func (c *Class) HasFunction(name string) bool {
	return c.functions().Has(name) || slices.ContainsFunc(mockFunctions(), func(f *yaql.Function) bool { return f.Name == name })
}
