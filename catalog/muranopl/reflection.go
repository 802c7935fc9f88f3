package muranopl

import (
	"context"

	"github.com/Masterminds/semver/v3"

	"github.com/burano/burano/catalog/yaql"
)

// reflected is a part of a class as a value: what typeinfo() leads to.
type reflected interface {
	attribute(ctx context.Context, name string) (any, error)
	call(ctx context.Context, name string, args []any, named map[string]any) (any, error)
}

type (
	typeInfo     struct{ class *Class }
	propertyInfo struct{ property *Property }
	methodInfo   struct{ method *Method }
	argumentInfo struct {
		method   *Method
		argument *Argument
	}
	packageInfo struct{ class *Class } // any class of the package
	versionInfo struct{ version *semver.Version }
)

func noAttribute(what, name string) error {
	return raised("AttributeError", "%s has no attribute %s", what, name)
}

func noReflectedMethod(what, name string) error {
	return &yaql.Error{Name: yaql.NoMethod, Message: what + " has no method " + name}
}

func reflectionFunctions(c *Class) []*yaql.Function {
	return []*yaql.Function{
		{Name: "typeinfo", Kind: yaql.AsBoth, Doc: "what there is to know of the object's class", Params: []yaql.Param{{Name: "object", Type: anObject}},
			Call: func(i *yaql.Invocation) (any, error) { return typeInfo{classOf(i.Args[0])}, nil }},
		{Name: "typeinfo", Kind: yaql.AsBoth, Doc: "what there is to know of the class", Params: []yaql.Param{{Name: "type", Type: aClass}},
			Call: func(i *yaql.Invocation) (any, error) {
				class, err := c.classFor(i.Context(), i.Args[0])
				if err != nil {
					return nil, err
				}
				return typeInfo{class}, nil
			}},
	}
}

func (t typeInfo) attribute(ctx context.Context, name string) (any, error) {
	switch name {
	case "name":
		return t.class.Name, nil
	case "usage":
		if t.class.IsMeta {
			return "Meta", nil
		}
		return "Class", nil
	case "version":
		return versionInfo{t.class.Package.Version()}, nil
	case "package":
		return packageInfo(t), nil
	case "type":
		return TypeReference{t.class}, nil
	case "meta":
		return t.class.metaObjects(ctx)
	case "ancestors":
		list := []any{}
		for _, parent := range t.class.Parents {
			list = append(list, typeInfo{parent})
		}
		return list, nil
	case "methods":
		list, seen := []any{}, map[string]bool{}
		for _, class := range t.class.lineage {
			for _, m := range class.Methods {
				if !seen[m.Name] {
					seen[m.Name] = true
					list = append(list, methodInfo{m})
				}
			}
		}
		return list, nil
	case "properties":
		list := []any{}
		for _, property := range t.class.PropertyNames() {
			list = append(list, propertyInfo{t.class.Property(property)[0]})
		}
		return list, nil
	}
	if t.class.IsMeta {
		switch name {
		case "cardinality":
			return t.class.Cardinality, nil
		case "inherited":
			return t.class.Inherited, nil
		case "targets":
			list := make([]any, len(t.class.Applies))
			for n, target := range t.class.Applies {
				list[n] = target
			}
			return list, nil
		}
	}
	return nil, noAttribute("a type", name)
}

func (t typeInfo) call(_ context.Context, name string, _ []any, _ map[string]any) (any, error) {
	return nil, noReflectedMethod("a type", name)
}

func (p propertyInfo) attribute(ctx context.Context, name string) (any, error) {
	switch name {
	case "name":
		return p.property.Name, nil
	case "usage":
		return string(p.property.Usage), nil
	case "hasDefault":
		return p.property.Default != nil, nil
	case "declaringType":
		return typeInfo{p.property.Class}, nil
	case "meta":
		return p.property.Class.metas(ctx, p.inherited())
	}
	return nil, noAttribute("a property", name)
}

// inherited is the property's metadata with what other declarations in ancestors have.
func (p propertyInfo) inherited() []Meta {
	var all []Meta
	for _, declared := range p.property.Class.Property(p.property.Name) {
		all = append(all, declared.Meta...)
	}
	return all
}

func (p propertyInfo) call(ctx context.Context, name string, args []any, named map[string]any) (any, error) {
	given := func(n int, name string) any {
		if n < len(args) {
			return args[n]
		}
		return named[name]
	}
	object := objectOf(given(0, "object"))
	if p.property.Usage == Static {
		switch name {
		case "getValue":
			return p.property.Class.readStatic(ctx, p.property.Name)
		case "setValue":
			return nil, p.property.Class.assignStatic(ctx, p.property.Name, given(1, "value"))
		}
	}
	if object == nil || !object.class.Is(p.property.Class.Name) {
		return nil, raised("TypeError", "property %s is one of objects of class %s", p.property.Name, p.property.Class.Name)
	}
	switch name {
	case "getValue":
		return object.read(ctx, p.property.Class, p.property.Name)
	case "setValue":
		return nil, object.assign(ctx, p.property.Class, p.property.Name, given(1, "value"))
	}
	return nil, noReflectedMethod("a property", name)
}

func (m methodInfo) attribute(ctx context.Context, name string) (any, error) {
	switch name {
	case "name":
		return m.method.Name, nil
	case "declaringType":
		return typeInfo{m.method.Class}, nil
	case "arguments":
		list := make([]any, len(m.method.Arguments))
		for n, a := range m.method.Arguments {
			list[n] = argumentInfo{m.method, a}
		}
		return list, nil
	case "usage":
		return string(m.method.Usage), nil
	case "scope":
		return string(m.method.Scope), nil
	case "meta":
		return m.method.Class.metas(ctx, m.method.Class.methodMetas(m.method))
	}
	return nil, noAttribute("a method", name)
}

func (m methodInfo) call(ctx context.Context, name string, args []any, named map[string]any) (any, error) {
	if name != "invoke" || len(args) == 0 {
		return nil, noReflectedMethod("a method", name)
	}
	i := interpreterOf(ctx)
	object := objectOf(args[0])
	switch {
	case m.method.Usage != RuntimeMethod:
		return i.call(ctx, m.method, nil, TypeReference{m.method.Class}, args[1:], named)
	case object == nil || !object.class.Is(m.method.Class.Name):
		return nil, raised("TypeError", "method %s is one of objects of class %s", m.method.Name, m.method.Class.Name)
	}
	return i.call(ctx, m.method, object, object, args[1:], named)
}

func (a argumentInfo) attribute(ctx context.Context, name string) (any, error) {
	switch name {
	case "name":
		return a.argument.Name, nil
	case "hasDefault":
		return a.argument.Default != nil, nil
	case "usage":
		return string(a.argument.Usage), nil
	case "declaringMethod":
		return methodInfo{a.method}, nil
	case "meta":
		return a.method.Class.metas(ctx, a.argument.Meta)
	}
	return nil, noAttribute("an argument", name)
}

func (a argumentInfo) call(_ context.Context, name string, _ []any, _ map[string]any) (any, error) {
	return nil, noReflectedMethod("an argument", name)
}

func (p packageInfo) attribute(ctx context.Context, name string) (any, error) {
	pkg := p.class.Package
	switch name {
	case "name":
		return pkg.FullName(), nil
	case "version":
		return versionInfo{pkg.Version()}, nil
	case "types":
		list := []any{}
		for _, class := range pkg.ClassNames() {
			found, err := p.class.classes.named(ctx, typeName{class: class, pkg: pkg.FullName(), version: "=" + pkg.Version().String()})
			if err != nil {
				return nil, noClass(err)
			}
			list = append(list, typeInfo{found})
		}
		return list, nil
	case "meta":
		return []any{}, nil
	}
	return nil, noAttribute("a package", name)
}

func (p packageInfo) call(_ context.Context, name string, _ []any, _ map[string]any) (any, error) {
	return nil, noReflectedMethod("a package", name)
}

func (v versionInfo) attribute(_ context.Context, name string) (any, error) {
	switch name {
	case "major":
		return int64(v.version.Major()), nil
	case "minor":
		return int64(v.version.Minor()), nil
	case "patch":
		return int64(v.version.Patch()), nil
	case "prerelease":
		return v.version.Prerelease(), nil
	case "build":
		return v.version.Metadata(), nil
	}
	return nil, noAttribute("a version", name)
}

func (v versionInfo) call(_ context.Context, name string, _ []any, _ map[string]any) (any, error) {
	return nil, noReflectedMethod("a version", name)
}

// String is the version as text.
func (v versionInfo) String() string { return v.version.String() }

// methodMetas is a method's metadata with that of the methods that it overrides.
func (c *Class) methodMetas(m *Method) []Meta {
	var all []Meta
	for _, class := range c.lineage {
		if own := class.own(m.Name); own != nil {
			all = append(all, own.Meta...)
		}
	}
	return all
}

// allMetas is the class's metadata with that of its ancestors.
func (c *Class) allMetas() []Meta {
	var all []Meta
	for _, class := range c.lineage {
		all = append(all, class.Meta...)
	}
	return all
}

func (c *Class) metaObjects(ctx context.Context) (any, error) { return c.metas(ctx, c.allMetas()) }

// metas makes objects of metadata. Of a meta class of cardinality One the first is taken, which is the nearest.
func (c *Class) metas(ctx context.Context, written []Meta) (any, error) {
	list, seen := []any{}, map[string]bool{}
	for _, meta := range written {
		class, err := c.classes.Class(ctx, meta.Class, "")
		if err != nil {
			return nil, noClass(err)
		}
		if seen[meta.Class] && class.Cardinality == "One" {
			continue
		}
		seen[meta.Class] = true
		l := newLoader(ctx, c.classes)
		l.metas = true
		model := map[string]any{"?": map[string]any{"type": class.Type()}}
		for name, value := range meta.Properties {
			model[name] = value
		}
		object := l.make(model, nil, "", nil, nil)
		l.finish()
		if len(l.problems) > 0 {
			return nil, &contractError{l.problems[0], l.violation}
		}
		list = append(list, object)
	}
	return list, nil
}
