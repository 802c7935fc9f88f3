package muranopl

import (
	"context"
	"maps"
	"slices"

	"github.com/Masterminds/semver/v3"

	"github.com/burano/burano/catalog/yaql"
)

// reflected is a part of a class as a value: the results of typeinfo().
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
		return t.class.metaObjects(ctx, "Type", typeMetas)
	case "ancestors":
		list := []any{}
		for _, ancestor := range t.class.lineage[1:] {
			list = append(list, typeInfo{ancestor})
		}
		return list, nil
	case "methods":
		return t.class.members().reflected, nil // which nothing changes: lists of the language are values
	case "properties":
		list := []any{}
		for _, property := range t.class.PropertyNames() {
			for _, nearest := range t.class.nearestProperties(property) {
				list = append(list, propertyInfo{nearest})
			}
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
		return p.property.Class.metaObjects(ctx, "Property", propertyMetas(p.property.Name))
	}
	return nil, noAttribute("a property", name)
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
		return m.method.Class.metaObjects(ctx, "Method", methodMetas(m.method.Name))
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
		return a.method.Class.metaObjects(ctx, "Argument", argumentMetas(a.method.Name, a.argument.Name))
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
		return p.class.packageMeta(ctx)
	}
	return nil, noAttribute("a package", name)
}

// packageMeta makes the objects of the metadata in the manifest of the class's package.
func (c *Class) packageMeta(ctx context.Context) (any, error) {
	metas, err := packageMetas(c.Package)
	if err != nil {
		return nil, err
	}
	return c.metaObjects(ctx, "Package", func(of *Class) []Meta {
		if of == c {
			return metas
		}
		return nil
	})
}

// CheckMeta makes the objects of the metadata of a target (Package, Type, Property, Method or Argument) as reflection does, and returns why
// that cannot be. member is the name of the property or method, argument that of its argument.
func (c *Class) CheckMeta(ctx context.Context, target, member, argument string) (err error) {
	switch target {
	case "Package":
		_, err = c.packageMeta(ctx)
	case "Type":
		_, err = c.metaObjects(ctx, target, typeMetas)
	case "Property":
		_, err = c.metaObjects(ctx, target, propertyMetas(member))
	case "Method":
		_, err = c.metaObjects(ctx, target, methodMetas(member))
	case "Argument":
		_, err = c.metaObjects(ctx, target, argumentMetas(member, argument))
	}
	return err
}

// packageMetas is the metadata in the manifest of a package.
func packageMetas(pkg Package) ([]Meta, error) {
	given := plain(pkg.Meta())
	if given == nil {
		return nil, nil
	}
	items, ok := given.([]any)
	if !ok {
		items = []any{given}
	}
	var metas []Meta
	for _, item := range items {
		switch v := item.(type) {
		case string:
			metas = append(metas, Meta{Class: v})
			continue
		case map[string]any:
			if len(v) == 1 {
				for name, values := range v {
					properties, _ := values.(map[string]any)
					metas = append(metas, Meta{name, properties, values})
				}
				continue
			}
		}
		return nil, raised("ValueError", "Invalid Meta format")
	}
	return metas, nil
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

// attached is a piece of metadata with the meta class that it is of, and the class that it is written in.
type attached struct {
	Meta
	of, in *Class
}

// metas gathers the metadata of a class, or of a part of it: of returns the metadata of one class of the lineage. An ancestor's counts when its meta class
// is inherited and, with cardinality One, no class between has one.
func (c *Class) metas(ctx context.Context, of func(*Class) []Meta) ([]attached, error) {
	var all []attached
	seen := map[*Class]bool{}
	var gather func(class *Class, taken map[*Class]bool) error
	gather = func(class *Class, taken map[*Class]bool) error {
		below := maps.Clone(taken)
		for _, meta := range of(class) {
			metaClass, err := class.classes.metaClass(ctx, class, meta.Class)
			if err != nil {
				return err
			}
			if class != c && (!metaClass.Inherited || taken[metaClass]) {
				continue
			}
			if metaClass.Cardinality == "One" {
				if slices.ContainsFunc(all, func(a attached) bool { return a.in == class && a.of == metaClass }) && !seen[class] {
					return raised("ValueError", "Cannot attach several Meta instances with cardinality One")
				}
				below[metaClass] = true
			}
			if !seen[class] {
				all = append(all, attached{meta, metaClass, class})
			}
		}
		seen[class] = true
		for _, parent := range class.Parents {
			if err := gather(parent, below); err != nil {
				return err
			}
		}
		return nil
	}
	if err := gather(c, map[*Class]bool{}); err != nil {
		return nil, err
	}
	one := map[*Class]*Class{}
	for _, a := range all {
		before := one[a.of]
		if a.of.Cardinality == "One" && before != nil && before != a.in {
			return nil, raised("ValueError", "Found more than one instance of Meta %s with Cardinality One", a.of.Name)
		}
		one[a.of] = a.in
	}
	return all, nil
}

// metaClass finds the meta class that a class names.
func (c *Classes) metaClass(ctx context.Context, from *Class, name string) (*Class, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	class, err := c.visible(ctx, from.Package, name)
	if err != nil {
		return nil, noClass(err)
	}
	if !class.IsMeta {
		return nil, raised("ValueError", "Only Meta classes can be attached")
	}
	return class, nil
}

// metaObjects makes objects of metadata for a target: Package, Type, Method, Property or Argument.
func (c *Class) metaObjects(ctx context.Context, target string, of func(*Class) []Meta) (any, error) {
	all, err := c.metas(ctx, of)
	if err != nil {
		return nil, err
	}
	list := []any{}
	for _, a := range all {
		if !slices.Contains(a.of.Applies, target) {
			return nil, raised("ValueError", "Meta class %s is not applicable here", a.of.Name)
		}
		object, err := a.object(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, object)
	}
	return list, nil
}

func (a *attached) object(ctx context.Context) (any, error) {
	properties, err := fill(ctx, a.values, a.in.scope(nil, TypeReference{a.in}))
	if err != nil {
		return nil, err
	}
	model, _ := a.in.modelOf(properties).(map[string]any)
	if model == nil {
		model = map[string]any{}
	}
	model["?"] = map[string]any{"type": a.of.Type()}
	l := newLoader(ctx, a.in.classes)
	l.metas, l.anew = true, true
	l.index(model, "", 0)
	object := l.make(model, nil, "", nil, nil)
	l.finish()
	if len(l.problems) > 0 {
		return nil, l.refusal(l.problems[0])
	}
	return object, l.born(ctx)
}

func typeMetas(c *Class) []Meta { return c.Meta }

func methodMetas(name string) func(*Class) []Meta {
	return func(c *Class) []Meta {
		if m := c.own(name); m != nil {
			return m.Meta
		}
		return nil
	}
}

func propertyMetas(name string) func(*Class) []Meta {
	return func(c *Class) []Meta {
		for _, p := range c.Properties {
			if p.Name == name {
				return p.Meta
			}
		}
		return nil
	}
}

func argumentMetas(method, name string) func(*Class) []Meta {
	return func(c *Class) []Meta {
		if m := c.own(method); m != nil && m.argument(name) != nil {
			return m.argument(name).Meta
		}
		return nil
	}
}
