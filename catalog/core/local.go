package core

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
)

// Local is the host of tools that run classes without a server around: attributes are in memory, and reports go to the log.
type Local struct {
	Logger *slog.Logger

	mutex      sync.Mutex
	attributes []attribute
}

var _ Host = (*Local)(nil)

type attribute struct {
	object, class, name string
	value               any
}

// Natives are the bodies of all classes of io.murano that need no cloud, and the templates of stacks.
func (l *Local) Natives() muranopl.Natives {
	methods := Methods(l, l.Logger)
	methods["io.murano.system.HeatStack"] = (&localStacks{stacks: map[string]*localStack{}}).methods()
	methods["io.murano.resources.Instance"] = map[string]muranopl.NativeMethod{"withAccess": unchanged}
	return muranopl.Natives{"io.murano": methods}
}

// unchanged is user data without a key to log in with: there are no servers.
func unchanged(_ context.Context, call muranopl.Call) (any, error) { return call.Args["userData"], nil }

// LoadAttributes takes the Attributes of a model: lists of object id, class, name and value.
func (l *Local) LoadAttributes(list []any) {
	for _, item := range list {
		row, _ := item.([]any)
		if len(row) != 4 {
			continue
		}
		object, _ := row[0].(string)
		class, _ := row[1].(string)
		name, _ := row[2].(string)
		l.set(object, class, name, row[3])
	}
}

// Attributes returns the attributes of the objects with these ids, in the order in which they were first set, as a model holds them.
func (l *Local) Attributes(ids map[string]bool) []any {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	list := []any{}
	for _, a := range l.attributes {
		if ids[a.object] {
			list = append(list, []any{a.object, a.class, a.name, a.value})
		}
	}
	return list
}

// Attribute returns an attribute.
func (l *Local) Attribute(_ context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if n := l.find(object.ID(), class, name); n >= 0 {
		return l.attributes[n].value, true, nil
	}
	return nil, false, nil
}

// SetAttribute sets or, with nil, removes an attribute.
func (l *Local) SetAttribute(_ context.Context, object *muranopl.Object, class, name string, value any) error {
	l.set(object.ID(), class, name, value)
	return nil
}

func (l *Local) set(object, class, name string, value any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	switch n := l.find(object, class, name); {
	case n >= 0 && value == nil:
		l.attributes = slices.Delete(l.attributes, n, n+1)
	case n >= 0:
		l.attributes[n].value = value
	case value != nil:
		l.attributes = append(l.attributes, attribute{object, class, name, value})
	}
}

func (l *Local) find(object, class, name string) int {
	return slices.IndexFunc(l.attributes, func(a attribute) bool { return a.object == object && a.class == class && a.name == name })
}

// Home names a region that is not there.
func (l *Local) Home() string { return DefaultRegion }

// StackIn names a stack that is not there.
func (l *Local) StackIn(*muranopl.Object) string { return "local" }

// Report writes a line to the log.
func (l *Local) Report(ctx context.Context, object *muranopl.Object, failed bool, text string) error {
	level := slog.LevelInfo
	if failed {
		level = slog.LevelError
	}
	about := ""
	if object != nil {
		about = object.String()
	}
	l.Logger.Log(ctx, level, text, "object", about)
	return nil
}
