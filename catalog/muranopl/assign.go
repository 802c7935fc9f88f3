package muranopl

import (
	"context"
	"errors"
	"fmt"

	"github.com/burano/burano/internal/fault"
)

// Set gives a property a value, of a usage that methods may write. The value must satisfy the property's contracts: ids become
// objects, maps become new objects of this one.
func (o *Object) Set(property string, value any) error {
	declared := o.class.Property(property)
	if len(declared) == 0 {
		return fault.New(fault.NotFound, "class %s has no property %s", o.class.Name, property)
	}
	if p := declared[0]; !p.Usage.Writable() {
		return fault.New(fault.Forbidden, "property %s is %s: methods cannot write it", label(p), p.Usage)
	}
	return o.give(declared, value)
}

// SetObjects is Set for a property that is a list of objects.
func (o *Object) SetObjects(property string, list []*Object) error {
	values := make([]any, len(list))
	for i, object := range list {
		values[i] = object
	}
	return o.Set(property, values)
}

// Initialise is Set for a native .init, which may write properties of every usage, also of objects that its own one owns.
func (o *Object) Initialise(property string, value any) error {
	declared := o.class.Property(property)
	if len(declared) == 0 {
		return fault.New(fault.NotFound, "class %s has no property %s", o.class.Name, property)
	}
	return o.give(declared, value)
}

func (o *Object) give(declared []*Property, value any) error {
	ctx := context.Background()
	if o.interpreter != nil {
		ctx = o.interpreter.enter(ctx)
	}
	return o.put(ctx, declared, plain(value))
}

// initialisingKey marks code of .init, and of all its calls.
type initialisingKey struct{}

// assign assigns to a property in a method of the class in. An undeclared property is one of in's own. A declared one can be written by the methods of its
// object's classes, if its usage permits; .init can write every one.
func (o *Object) assign(ctx context.Context, in *Class, property string, value any) error {
	if o == nil {
		return raised("AttributeError", "null has no property %s", property)
	}
	mine := o.class.Is(in.Name)
	start := o.class
	if mine {
		start = in
	}
	if len(start.Property(property)) == 0 {
		if !mine {
			return raised(dslExceptions+"PropertyWriteError", "Property %q in class %q cannot be written", property, start.Name)
		}
		o.mutex.Lock()
		defer o.mutex.Unlock()
		if o.private == nil {
			o.private = map[*Class]map[string]any{}
		}
		if o.private[in] == nil {
			o.private[in] = map[string]any{}
		}
		o.private[in][property] = value
		o.store(property, value)
		return nil
	}
	declared := o.class.Property(property)
	if len(o.class.Parents) > 1 && len(o.class.nearestProperties(property)) > 1 {
		return ambiguousProperty(property)
	}
	initialising := ctx.Value(initialisingKey{}) != nil
	for _, p := range declared {
		if !initialising && (!mine || !p.Usage.Writable()) {
			return raised(dslExceptions+"NoWriteAccessError", "Property %q is immutable to the caller", property)
		}
	}
	return o.put(ctx, declared, value)
}

// read is reading a property in a method of the class in.
func (o *Object) read(ctx context.Context, in *Class, property string) (any, error) {
	if len(o.class.Parents) > 1 && len(o.class.nearestProperties(property)) > 1 {
		return nil, ambiguousProperty(property)
	}
	if value, ok := o.get(ctx, property); ok {
		return value, nil
	}
	if len(o.class.Property(property)) > 0 {
		return nil, &UninitializedError{o, property, nil}
	}
	if !o.class.Is(in.Name) {
		return nil, raised(dslExceptions+"PropertyReadError", "Property %q in class %q cannot be read", property, o.class.Name)
	}
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	if value, ok := o.private[in][property]; ok {
		return value, nil
	}
	return nil, &UninitializedError{o, property, in}
}

func ambiguousProperty(name string) error {
	return raised(dslExceptions+"AmbiguousPropertyNameError", "Found more than one property %q", name)
}

// put gives a declared property a value: the most derived contract makes it, the others check it.
func (o *Object) put(ctx context.Context, declared []*Property, value any) error {
	property := declared[0].Name
	var excluded map[string][]string
	if len(declared) > 1 {
		excluded = map[string][]string{}
	}
	for n, each := range declared {
		made, err := each.Contract.with(application{ctx: ctx, this: o, owner: o, in: each.Class, path: property, label: label(each), subject: label(each),
			excluded: excluded}, o.classes, value)
		if err != nil {
			return contractFault(err, "set %s of %s: ", property, o)
		}
		if n == 0 {
			value = made
		}
	}
	value = kept(value)
	defer o.store(property, value)
	if declared[0].Usage == Static {
		declared[0].Class.setStatic(property, value)
		return nil
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.values[property] = value
	return nil
}

// contractFault reports the place where a value violated its contract, as a fault of the caller.
func contractFault(err error, format string, args ...any) error {
	var broken *contractError
	if !errors.As(err, &broken) {
		return err
	}
	return &contractError{fault.New(fault.Invalid, format+"%w", append(args, broken.err)...), broken.violation, broken.name}
}

// assignStatic is an assignment to a static property by the name of its class.
func (c *Class) assignStatic(ctx context.Context, property string, value any) error {
	declared := c.Property(property)
	if len(declared) == 0 || declared[0].Usage != Static {
		return raised(dslExceptions+"NoPropertyFound", "Property %q is not found", property)
	}
	p := declared[0]
	made, err := p.Contract.apply(ctx, c.classes, p.Class, nil, value, label(p), property, label(p))
	if err != nil {
		return err
	}
	made = kept(made)
	p.Class.setStatic(property, made)
	if i := interpreterOf(ctx); i != nil && holds(made) {
		i.heap.store(made)
	}
	return nil
}

// static returns the value of a static property: its default until it is set, or the result of its contract for no value.
func (c *Classes) static(ctx context.Context, p *Property) (any, bool) {
	p.Class.staticMutex.Lock()
	value, ok := p.Class.statics[p.Name]
	p.Class.staticMutex.Unlock()
	if ok {
		return value, true
	}
	if p.Default != nil {
		var err error
		if value, err = p.Default.evaluate(ctx, p.Class, nil); err != nil {
			return nil, false
		}
	}
	made, err := p.Contract.apply(ctx, c, p.Class, nil, value, label(p), p.Name, label(p))
	if err != nil {
		return nil, false
	}
	return p.Class.initialStatic(p.Name, kept(made)), true
}

// initialStatic keeps the first value of a static property, unless there is one by now.
func (c *Class) initialStatic(property string, value any) any {
	c.staticMutex.Lock()
	defer c.staticMutex.Unlock()
	if present, ok := c.statics[property]; ok {
		return present
	}
	c.keepStatic(property, value)
	return value
}

func (c *Class) setStatic(property string, value any) {
	c.staticMutex.Lock()
	defer c.staticMutex.Unlock()
	c.keepStatic(property, value)
}

func (c *Class) keepStatic(property string, value any) {
	if c.statics == nil {
		c.statics = map[string]any{}
	}
	c.statics[property] = value
}

// New makes an object of a class outside of a model, owned by owner, for native code that passes it to other methods. class is a type as models write it;
// properties are those of the model. The object needs no reference until the instruction that called the native code ends; outside of any, until the end
// of the run.
func (i *Interpreter) New(ctx context.Context, class string, owner *Object, properties map[string]any) (*Object, error) {
	l := newLoader(i.enter(ctx), i.classes)
	l.member = owner
	model, _ := plain(properties).(map[string]any)
	if model == nil {
		model = map[string]any{}
	}
	if _, has := parseDefinition(model, ""); !has {
		model["?"] = map[string]any{"type": class}
	}
	l.index(model, "", 0)
	detached := l.make(model, nil, "", nil, nil)
	l.finish()
	if len(l.problems) > 0 {
		return nil, fmt.Errorf("make an object of class %s: %w", class, l.problems[0])
	}
	detached.mutex.Lock()
	detached.owner = owner
	detached.mutex.Unlock()
	if s := strandOf(ctx); s != nil {
		s.pin(detached)
	} else {
		i.heap.root(detached)
	}
	return detached, l.born(ctx)
}

// bare makes an object with values as they are, without contracts; values for properties that the class does not have are dropped.
func (i *Interpreter) bare(class *Class, values map[string]any) *Object {
	o := &Object{id: newID(), class: class, classes: i.classes, interpreter: i, header: map[string]any{}, values: map[string]any{}}
	for name, value := range values {
		if len(class.Property(name)) > 0 {
			o.values[name] = value
		}
	}
	return o
}
