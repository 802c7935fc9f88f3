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

// locks are mutual exclusions by (object or class, method, arguments). A holder may lock again: the context carries the held locks, so the goroutines that
// a method starts with its context count as the method itself. Waiting ends with the context.
type locks struct {
	mutex sync.Mutex
	held  map[lockKey]lock
}

type lockKey struct {
	on     any // *Object, *Class of a static method, nil for neither
	method string
	args   string // the arguments that distinguish synchronised calls, "" for none
}

// lock is a held lock. Each waiter gets it by the closing of a channel, in the order of requests.
type lock struct{ queue []chan struct{} }

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
		l.held = map[lockKey]lock{}
	}
	one, taken := l.held[key]
	if !taken {
		l.held[key] = lock{}
		l.mutex.Unlock()
		return nil
	}
	mine := make(chan struct{})
	one.queue = append(one.queue, mine)
	l.held[key] = one
	l.mutex.Unlock()

	var err error
	waiting(ctx, func(ctx context.Context) {
		select {
		case <-mine:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	})
	if err != nil {
		l.leave(key, mine)
	}
	return err
}

// leave no longer waits for a lock, and passes it on if it has been handed over meanwhile.
func (l *locks) leave(key lockKey, mine chan struct{}) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	one := l.held[key]
	if n := slices.Index(one.queue, mine); n >= 0 {
		one.queue = slices.Delete(one.queue, n, n+1)
		l.held[key] = one
		return
	}
	l.pass(key)
}

func (l *locks) give(key lockKey) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.pass(key)
}

// pass gives a lock to the longest waiter. The caller holds the mutex.
func (l *locks) pass(key lockKey) {
	one := l.held[key]
	if len(one.queue) == 0 {
		delete(l.held, key)
		return
	}
	close(one.queue[0])
	l.held[key] = lock{one.queue[1:]}
}

// lockOf returns the key by which calls of the method exclude each other; false without one. By default it is the object, or the class of a static method.
// The metadata io.murano.metadata.engine.Synchronize removes that (onThis: false) and adds the values of arguments (onArgs): then only calls with equal
// ones exclude each other.
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
