package muranopl

import (
	"context"
	"errors"
	"time"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// String is the class's name.
func (t TypeReference) String() string { return t.Class.Name }

// Types of parameters.

func anObject(value any) (any, bool) {
	o := objectOf(value)
	return value, o != nil
}

func objectOrNull(value any) (any, bool) {
	return value, value == nil || objectOf(value) != nil
}

func aClass(value any) (any, bool) {
	switch value.(type) {
	case TypeReference, string:
		return value, true
	}
	return nil, false
}

func aReceiver(value any) (any, bool) {
	return value, classOf(value) != nil
}

func aMap(value any) (any, bool) {
	_, ok := value.(*yaql.Dict)
	return value, ok
}

func aText(value any) (any, bool) {
	_, ok := value.(string)
	return value, ok
}

func textOrNull(value any) (any, bool) {
	_, ok := value.(string)
	return value, ok || value == nil
}

func aList(value any) (any, bool) {
	_, ok := value.([]any)
	return value, ok
}

// languageFunctions returns the functions that MuranoPL adds to YAQL for the documents of a class.
func languageFunctions(c *Class) []*yaql.Function {
	functions := append(objectFunctions(c), makingFunctions(c)...)
	functions = append(functions, reflectionFunctions(c)...)
	return append(functions, engineFunctions(c)...)
}

func objectFunctions(c *Class) []*yaql.Function {
	one := func(name, doc string, call func(*Object) any) *yaql.Function {
		return &yaql.Function{Name: name, Kind: yaql.AsFunction, Doc: doc, Params: []yaql.Param{{Name: "object", Type: objectOrNull}},
			Call: func(i *yaql.Invocation) (any, error) {
				if o := objectOf(i.Args[0]); o != nil {
					return call(o), nil
				}
				return nil, nil
			}}
	}
	return []*yaql.Function{
		one("id", "the object's id", func(o *Object) any { return o.id }),
		one("name", "the object's name, null when it has none", func(o *Object) any {
			if name := o.Name(); name != "" {
				return name
			}
			return nil
		}),
		one("metadata", "the metadata in the object's header", func(o *Object) any { return o.Header()["metadata"] }),
		{Name: "type", Kind: yaql.AsFunction, Doc: "the object's class: its name up to format 1.3, else a reference", Params: []yaql.Param{{Name: "object", Type: objectOrNull}},
			Call: func(i *yaql.Invocation) (any, error) {
				o := objectOf(i.Args[0])
				switch {
				case o == nil:
					return nil, nil
				case c.Package.Format() != "1.4":
					return o.class.Name, nil
				}
				return TypeReference{o.class}, nil
			}},
		{Name: "type", Kind: yaql.AsFunction, Doc: "the class of that name", Params: []yaql.Param{{Name: "type", Type: aClass}},
			Call: func(i *yaql.Invocation) (any, error) {
				class, err := c.classFor(i.Context(), i.Args[0])
				if err != nil {
					return nil, err
				}
				return TypeReference{class}, nil
			}},
		{Name: "isObject", Kind: yaql.AsFunction, Doc: "whether it is an object", Params: []yaql.Param{{Name: "value"}},
			Call: func(i *yaql.Invocation) (any, error) { return objectOf(i.Args[0]) != nil, nil }},
		{Name: "cast", Kind: yaql.AsFunction, Doc: "the object seen as one of a class that its own descends from",
			Params: []yaql.Param{{Name: "object", Type: objectOrNull}, {Name: "type", Type: aClass}, {Name: "versionSpec", Type: textOrNull, Optional: true}},
			Call:   func(i *yaql.Invocation) (any, error) { return c.cast(objectOf(i.Args[0]), i.Args[1], i.Args[2]) }},
		superFunction(c, "super", 1, false), superFunction(c, "super", 2, false),
		superFunction(c, "psuper", 1, true), superFunction(c, "psuper", 2, true),
		{Name: "find", Kind: yaql.AsMethod, Doc: "the nearest owner of the class, null when there is none",
			Params: []yaql.Param{{Name: "object", Type: anObject}, {Name: "type", Type: aClass}, {Name: "optional", Optional: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				full, err := c.typeOf(i.Args[1])
				if err != nil {
					return nil, err
				}
				if found := objectOf(i.Args[0]).Find(full); found != nil {
					return found, nil
				}
				return nil, nil
			}},
		{Name: "require", Kind: yaql.AsMethod, Doc: "the value itself, an error when it is null", Params: []yaql.Param{{Name: "value"}},
			Call: func(i *yaql.Invocation) (any, error) {
				if i.Args[0] == nil {
					return nil, raised("ValueError", "Required value is missing")
				}
				return i.Args[0], nil
			}},
		{Name: "sleep", Kind: yaql.AsFunction, Doc: "waits for so many seconds", Params: []yaql.Param{{Name: "seconds", Type: func(value any) (any, bool) {
			switch v := value.(type) {
			case int64:
				return time.Duration(v) * time.Second, v < 1<<31
			case float64:
				return time.Duration(v * float64(time.Second)), v < 1<<31
			}
			return nil, false
		}}}, Call: func(i *yaql.Invocation) (any, error) {
			return nil, pause(i.Context(), i.Args[0].(time.Duration))
		}},
		{Name: "call", Kind: yaql.AsFunction, Doc: "calls a method of an object or a class by its name",
			Params: []yaql.Param{{Name: "name", Type: aText}, {Name: "args", Type: aList}, {Name: "kwargs", Type: aMap}, {Name: "receiver", Type: aReceiver}},
			Call: func(i *yaql.Invocation) (any, error) {
				named := map[string]any{}
				for _, e := range i.Args[2].(*yaql.Dict).Entries() {
					named[yaql.Text(e.Key)] = e.Value
				}
				return callMethod(i.Context(), i.Args[3], i.Args[0].(string), i.Args[1].([]any), named)
			}},
		{Name: "dump", Kind: yaql.AsFunction, Doc: "the object as a model: Serializable, Inline or Mixed",
			Params: []yaql.Param{{Name: "object", Type: objectOrNull}, {Name: "serializationType", Type: aText, Optional: true, Default: "Serializable"},
				{Name: "ignoreUpcasts", Optional: true, Default: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				return dump(i.Args[0], i.Args[1].(string), yaql.Truth(i.Args[2]))
			}},
	}
}

func (c *Class) cast(object *Object, class, spec any) (any, error) {
	if object == nil {
		return nil, nil
	}
	full, err := c.typeOf(class)
	if err != nil {
		return nil, err
	}
	text, _ := spec.(string)
	admitted, err := ParseSpec(text)
	if err != nil {
		return nil, raised("ValueError", "%v", err)
	}
	var found []*Class
	for _, ancestor := range object.class.lineage {
		if ancestor.Name == full && admitted.Admits(ancestor.Package.Version()) {
			found = append(found, ancestor)
		}
	}
	switch len(found) {
	case 0:
		return nil, raised(dslExceptions+"NoClassFound", "Class %q is not found", full)
	case 1:
		return view{object, found[0]}, nil
	}
	return nil, raised(dslExceptions+"AmbiguousClassName", "Found more than one version of class %q", full)
}

// superFunction is super() or psuper(): the object as each of the parents of the expression's class, or the value of the second argument for each of
// these.
func superFunction(c *Class, name string, arguments int, parallel bool) *yaql.Function {
	f := &yaql.Function{Name: name, Kind: yaql.AsFunction, Doc: "the object as each of the parents of the class",
		Params: []yaql.Param{{Name: "object", Type: anObject}}}
	if arguments == 2 {
		f.Params = append(f.Params, yaql.Param{Name: "func", Lazy: true})
	}
	f.Call = func(i *yaql.Invocation) (any, error) {
		object := objectOf(i.Args[0])
		parents := make([]any, len(c.Parents))
		for n, parent := range c.Parents {
			parents[n] = view{object, parent}
		}
		if arguments == 1 {
			return parents, nil
		}
		limit := 1
		if parallel {
			limit = len(parents)
		}
		return mapAbreast(i.Context(), parents, limit, i.Args[1].(*yaql.Lambda))
	}
	return f
}

// maxAbreast is how many items pselect() works on at a time.
const maxAbreast = 1000

// mapAbreast calls the lambda for each item, at most limit at a time.
func mapAbreast(ctx context.Context, items []any, limit int, lambda *yaql.Lambda) ([]any, error) {
	made := make([]any, len(items))
	one := func(ctx context.Context, n int) (err error) {
		if s := strandOf(ctx); s != nil && limit > 1 {
			s.beside(func(mine *strand) { made[n], err = lambda.Call(mine.enter(ctx), items[n]) })
			return err
		}
		made[n], err = lambda.Call(ctx, items[n])
		return err
	}
	i := interpreterOf(ctx)
	if limit <= 1 || i == nil {
		for n := range items {
			if err := one(ctx, n); err != nil {
				return nil, err
			}
		}
		return made, nil
	}
	if err := i.abreast(ctx, len(items), limit, one); err != nil {
		return nil, err
	}
	strandOf(ctx).pin(made)
	return made, nil
}

// makingFunctions are the forms of new().
func makingFunctions(c *Class) []*yaql.Function {
	owner := yaql.Param{Name: "__owner", Type: objectOrNull, Optional: true}
	name := yaql.Param{Name: "__object_name", Type: textOrNull, Optional: true}
	extra := yaql.Param{Name: "__extra", Type: func(value any) (any, bool) {
		_, ok := value.(*yaql.Dict)
		return value, ok || value == nil
	}, Optional: true}
	named := func(p yaql.Param, as string) yaql.Param {
		p.Name = as
		return p
	}
	return []*yaql.Function{
		{Name: "new", Kind: yaql.AsFunction, Doc: "makes an object of a class with these properties",
			Params: []yaql.Param{{Name: "__type_name", Type: aClass}, owner, name, extra, {Keywords: true}},
			Call: func(i *yaql.Invocation) (any, error) {
				return c.make(i.Context(), i.Args[0], i.Args[4].(map[string]any), i.Args[1], i.Args[2], i.Args[3])
			}},
		{Name: "new", Kind: yaql.AsFunction, Doc: "makes an object of a class with the properties of a map",
			Params: []yaql.Param{{Name: "type_name", Type: aClass}, {Name: "parameters", Type: aMap}, named(owner, "owner"), named(name, "object_name"), named(extra, "extra")},
			Call: func(i *yaql.Invocation) (any, error) {
				properties, ok := c.modelOf(i.Args[1]).(map[string]any)
				if !ok {
					return nil, raised("ValueError", "the names of properties are texts")
				}
				return c.make(i.Context(), i.Args[0], properties, i.Args[2], i.Args[3], i.Args[4])
			}},
		{Name: "new", Kind: yaql.AsFunction, Doc: "makes the object that a model describes",
			Params: []yaql.Param{{Name: "model", Type: aMap}, named(owner, "owner")},
			Call: func(i *yaql.Invocation) (any, error) {
				model, _ := c.modelOf(i.Args[0]).(map[string]any)
				if _, has := parseDefinition(model, ""); !has {
					return nil, raised("ValueError", "the model names no class")
				}
				return c.instantiate(i.Context(), model, objectOf(i.Args[1]))
			}},
	}
}

func (c *Class) make(ctx context.Context, class any, properties map[string]any, owner, name, extra any) (any, error) {
	of, err := c.classFor(ctx, class)
	if err != nil {
		return nil, err
	}
	header, _ := plainValue(extra).(map[string]any)
	if header == nil {
		header = map[string]any{}
	}
	header["type"] = of.Type()
	if name != nil {
		header["name"] = name
	}
	model := map[string]any{"?": header}
	for property, value := range properties {
		model[property] = c.modelOf(value)
	}
	return c.instantiate(ctx, model, objectOf(owner))
}

// instantiate makes the object of a model and runs its .init.
func (c *Class) instantiate(ctx context.Context, model map[string]any, owner *Object) (any, error) {
	l := newLoader(ctx, c.classes)
	l.member, l.anew = owner, true
	l.index(model, "", 0)
	made := l.make(model, owner, "", nil, nil)
	l.finish()
	if len(l.problems) > 0 {
		raised := l.problems[0].Exception()
		raised.Native = fault.New(fault.Invalid, "new(): %w", l.problems[0])
		return nil, raised
	}
	if err := l.born(ctx); err != nil {
		return nil, err
	}
	strandOf(ctx).pin(made)
	return made, nil
}

// extensions returns the extension methods that the class sees: its own and those of its imported classes.
func extensions(c *Class) []*yaql.Function {
	var functions []*yaql.Function
	seen := map[*Method]bool{}
	for _, from := range append([]*Class{c}, c.Imports...) {
		for _, class := range from.lineage {
			for _, m := range class.Methods {
				if m.Usage != ExtensionMethod || seen[m] {
					continue
				}
				seen[m] = true
				functions = append(functions, &yaql.Function{Name: m.Name, Kind: yaql.AsMethod, Doc: "extension method of " + m.Class.Name,
					Params: []yaql.Param{{Name: ""}, {Rest: true}, {Keywords: true}},
					Call: func(call *yaql.Invocation) (any, error) {
						i := interpreterOf(call.Context())
						if i == nil {
							return nil, errors.New("extension methods cannot be called here: nothing runs the code of classes")
						}
						args := append([]any{call.Args[0]}, call.Args[1].([]any)...)
						return i.call(call.Context(), m, nil, TypeReference{m.Class}, args, call.Args[2].(map[string]any))
					}})
			}
		}
	}
	return functions
}
