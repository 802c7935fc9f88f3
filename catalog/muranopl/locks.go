package muranopl

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/burano/burano/catalog/yaql"
)

// locks are mutual exclusions by (object or class, method, arguments). Whoever holds one may take it again: the context carries what is
// held, so the goroutines that a method starts with its context count as the method itself. Waiting ends with the context.
type locks struct {
	mutex sync.Mutex
	held  map[lockKey]*lock
}

type lockKey struct {
	on     any // *Object, *Class of a static method, nil for neither
	method string
	args   string // what tells the arguments apart that calls are synchronised on, "" for none
}

type lock struct {
	turn    chan struct{} // holds one token while nobody has the lock
	holders int           // that have it or wait for it
}

type holding struct {
	locks *locks
	key   lockKey
	outer *holding
}

type holdingContext struct{}

// hold takes a lock and returns a context that knows of it.
func (l *locks) hold(ctx context.Context, key lockKey) (context.Context, func(), error) {
	outer, _ := ctx.Value(holdingContext{}).(*holding)
	if outer.has(l, key) {
		return ctx, func() {}, nil
	}
	if err := l.take(ctx, key); err != nil {
		return ctx, nil, err
	}
	return context.WithValue(ctx, holdingContext{}, &holding{locks: l, key: key, outer: outer}), func() { l.give(key) }, nil
}

func (h *holding) has(l *locks, key lockKey) bool {
	for ; h != nil; h = h.outer {
		if h.locks == l && h.key == key {
			return true
		}
	}
	return false
}

func (l *locks) take(ctx context.Context, key lockKey) error {
	l.mutex.Lock()
	if l.held == nil {
		l.held = map[lockKey]*lock{}
	}
	one := l.held[key]
	if one == nil {
		one = &lock{turn: make(chan struct{}, 1)}
		one.turn <- struct{}{}
		l.held[key] = one
	}
	one.holders++
	l.mutex.Unlock()

	select {
	case <-one.turn:
		return nil
	default:
	}
	var err error
	waiting(ctx, func(ctx context.Context) {
		select {
		case <-one.turn:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	})
	if err != nil {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.forget(key, one)
	}
	return err
}

func (l *locks) give(key lockKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one := l.held[key]
	one.turn <- struct{}{}
	l.forget(key, one)
}

// forget drops a lock that nobody wants any more.
func (l *locks) forget(key lockKey, one *lock) {
	if one.holders--; one.holders == 0 {
		delete(l.held, key)
	}
}

// lockOf is what calls of the method exclude each other by; false: by nothing. By default it is the object, or the class of a static
// method. The metadata io.murano.metadata.engine.Synchronize takes that away (onThis: false) and adds the values of arguments (onArgs):
// then only calls with equal ones exclude each other.
func (m *Method) lockOf(object *Object, args map[string]any) (lockKey, bool) {
	m.synchronised.Do(m.readSynchronize)
	key := lockKey{method: m.FullName()}
	if len(m.onArgs) > 0 {
		var parts strings.Builder
		for _, name := range m.onArgs {
			if value, ok := args[name]; ok && value != nil {
				fmt.Fprintf(&parts, "%q=%s;", name, identity(value))
			}
		}
		key.args = parts.String()
	}
	switch {
	case m.onThis && object != nil:
		key.on = object
	case m.onThis && m.Usage != RuntimeMethod:
		key.on = m.Class
	case key.args == "":
		return key, false
	}
	return key, true
}

func (m *Method) readSynchronize() {
	m.onThis = true
	for _, meta := range m.Class.shown(context.Background(), m.Class, methodMetas(m.Name)) {
		if meta.Class != "io.murano.metadata.engine.Synchronize" {
			continue
		}
		if value, ok := meta.Properties["onThis"].(bool); ok {
			m.onThis = value
		}
		switch value := meta.Properties["onArgs"].(type) {
		case []any:
			m.onArgs = every[string](value)
		case string:
			m.onArgs = []string{value}
		}
		return
	}
}

// identity writes a value so that equal ones are written alike.
func identity(value any) string {
	switch v := value.(type) {
	case *Object:
		return "object " + v.id
	case view:
		return "object " + v.object.id
	case []any:
		parts := make([]string, len(v))
		for n, item := range v {
			parts[n] = identity(item)
		}
		return "[" + strings.Join(parts, ",") + "]"
	case string:
		return strconv.Quote(v)
	}
	if dict, ok := asDict(value); ok {
		parts := make([]string, 0, dict.Len())
		for _, e := range dict.Entries() {
			parts = append(parts, identity(e.Key)+":"+identity(e.Value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	}
	return yaql.Text(value)
}
