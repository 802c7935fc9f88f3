package muranopl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/burano/burano/catalog/yaql"
)

// Object is an object of a model. It is safe for concurrent use.
type Object struct {
	id      string
	class   *Class
	classes *Classes
	// interpreter is whose code may be needed when a property is set, nil for none.
	interpreter *Interpreter
	exception   *Exception // of an object of io.murano.Exception

	mutex  sync.RWMutex
	name   string
	header map[string]any // the '?' as it was, without the values that the engine computes
	owner  *Object
	values map[string]any // of declared properties, values of YAQL; absent: not initialised
	// private are the properties that methods of a class wrote without any class declaring them.
	private map[*Class]map[string]any
	// dependencies are the subscribers to the object's destruction.
	dependencies []dependency

	destroyed atomic.Bool
}

// ID is the object's id, as the model gives it.
func (o *Object) ID() string { return o.id }

// Class is the object's class.
func (o *Object) Class() *Class { return o.class }

// Name is the name in the object's header, "" when it has none.
func (o *Object) Name() string {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	return o.name
}

// Owner is the object whose property holds this one; nil for the root.
func (o *Object) Owner() *Object {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	return o.owner
}

// Header is a copy of the object's '?'.
func (o *Object) Header() map[string]any {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	return maps.Clone(o.header)
}

// Children are the objects that this one owns and has in its properties, in the order of these.
func (o *Object) Children() []*Object {
	o.mutex.RLock()
	var held []any
	for _, property := range o.class.PropertyNames() {
		if value := o.values[property]; holds(value) {
			held = append(held, value)
		}
	}
	o.mutex.RUnlock()
	var children []*Object
	for _, value := range held {
		eachObject(value, func(held *Object) {
			if held.Owner() == o && !slices.Contains(children, held) {
				children = append(children, held)
			}
		})
	}
	return children
}

// eachObject visits the objects in a value.
func eachObject(value any, visit func(*Object)) {
	switch v := value.(type) {
	case *Object:
		if v != nil {
			visit(v)
		}
	case []any:
		for _, item := range v {
			eachObject(item, visit)
		}
	case map[string]any:
		for _, value := range v {
			if holds(value) { // most maps hold texts only, whose order does not matter
				eachInOrder(v, visit)
				return
			}
		}
	case *yaql.Dict:
		for _, value := range v.All() {
			eachObject(value, visit)
		}
	}
}

func eachInOrder(values map[string]any, visit func(*Object)) {
	for _, key := range sortedKeys(values) {
		eachObject(values[key], visit)
	}
}

// Find returns the nearest owner that is of the class, nil when none is.
func (o *Object) Find(class string) *Object {
	return o.find(func(of *Class) bool { return of.Is(class) })
}

// FindEmbedded is Find for the class of that name of an embedded package.
func (o *Object) FindEmbedded(class string) *Object {
	return o.find(func(of *Class) bool { return of.IsEmbedded(class) })
}

func (o *Object) find(is func(*Class) bool) *Object {
	for owner := o.Owner(); owner != nil; owner = owner.Owner() {
		if is(owner.class) {
			return owner
		}
	}
	return nil
}

// Walk calls visit for the object and everything it owns, owners first. It ends when visit returns false.
func (o *Object) Walk(visit func(*Object) bool) bool {
	if !visit(o) {
		return false
	}
	for _, child := range o.Children() {
		if !child.Walk(visit) {
			return false
		}
	}
	return true
}

// Get returns the value of a property; false when the class has no such property or nothing gave it a value yet.
func (o *Object) Get(property string) (any, bool) {
	value, ok := o.get(context.Background(), property)
	return plainValue(value), ok
}

func (o *Object) get(ctx context.Context, property string) (any, bool) {
	if declared := o.class.Property(property); len(declared) > 0 && declared[0].Usage == Static {
		return o.classes.static(ctx, declared[0])
	}
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	value, ok := o.values[property]
	return value, ok
}

// Text returns a property that is a string, "" when it is anything else.
func (o *Object) Text(property string) string { return read[string](o, property) }

// Int returns a property that is a whole number, 0 when it is anything else.
func (o *Object) Int(property string) int { return int(read[int64](o, property)) }

// Bool returns a property that is a truth value, false when it is anything else.
func (o *Object) Bool(property string) bool { return read[bool](o, property) }

// Object returns a property that is an object, nil when it is anything else.
func (o *Object) Object(property string) *Object { return read[*Object](o, property) }

// Map returns a property that is a map, nil when it is anything else.
func (o *Object) Map(property string) map[string]any { return read[map[string]any](o, property) }

// List returns a property that is a list, nil when it is anything else.
func (o *Object) List(property string) []any { return read[[]any](o, property) }

// Objects returns the objects of a property that is a list, without other values.
func (o *Object) Objects(property string) []*Object { return every[*Object](o.List(property)) }

// Texts returns the strings of a property that is a list, without other values.
func (o *Object) Texts(property string) []string { return every[string](o.List(property)) }

func read[T any](o *Object, property string) T {
	value, _ := o.Get(property)
	typed, _ := value.(T)
	return typed
}

func every[T any](list []any) []T {
	found := make([]T, 0, len(list))
	for _, item := range list {
		if typed, ok := item.(T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// murano names the object as Murano's messages do.
func (o *Object) murano() string {
	return fmt.Sprintf("<%s/%s %s>", o.class.Name, o.class.Package.Version(), o.id)
}

// store notes for collections that a value became one of the object's, and notifies of it.
func (o *Object) store(property string, value any) {
	if o.interpreter != nil && holds(value) {
		o.interpreter.heap.store(value)
	}
	o.notify(property, value)
}

// notify calls the hook of WithStored.
func (o *Object) notify(property string, value any) {
	if o.interpreter != nil && o.interpreter.stored != nil {
		o.interpreter.stored(property, plainValue(value))
	}
}

// String names the object for logs and errors.
func (o *Object) String() string {
	if name := o.Name(); name != "" {
		return fmt.Sprintf("%s %q (%s)", o.class.Name, name, o.id)
	}
	return fmt.Sprintf("%s (%s)", o.class.Name, o.id)
}
