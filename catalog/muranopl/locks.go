package muranopl

import (
	"context"
	"sync"
)

// locks are mutual exclusions by (object, method). Whoever holds one may take it again: the context carries what is held, so the
// goroutines that a method starts with its context count as the method itself. Waiting ends with the context.
type locks struct {
	mutex sync.Mutex
	held  map[lockKey]*lock
}

type lockKey struct {
	object *Object
	method string
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

// hold takes the locks of the method on all objects, in the order given, and returns a context that knows of them.
func (l *locks) hold(ctx context.Context, objects []*Object, method string) (context.Context, func(), error) {
	var releases []func()
	release := func() {
		for i := len(releases) - 1; i >= 0; i-- {
			releases[i]()
		}
	}
	for _, object := range objects {
		key := lockKey{object, method}
		outer, _ := ctx.Value(holdingContext{}).(*holding)
		if outer.has(l, key) {
			continue
		}
		if err := l.take(ctx, key); err != nil {
			release()
			return ctx, nil, err
		}
		releases = append(releases, func() { l.give(key) })
		ctx = context.WithValue(ctx, holdingContext{}, &holding{locks: l, key: key, outer: outer})
	}
	return ctx, release, nil
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
	case <-ctx.Done():
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.forget(key, one)
		return context.Cause(ctx)
	}
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

// synchronisedOn lists what a call of the method is synchronised on: its object, unless the metadata
// io.murano.metadata.engine.Synchronize says onThis: false, and the objects in the arguments that it names in onArgs.
func (m *Method) synchronisedOn(object *Object, args map[string]any) []*Object {
	onThis, onArgs := true, []any(nil)
	for _, meta := range m.Meta {
		if meta.Class != "io.murano.metadata.engine.Synchronize" {
			continue
		}
		if value, ok := meta.Properties["onThis"].(bool); ok {
			onThis = value
		}
		switch value := meta.Properties["onArgs"].(type) {
		case []any:
			onArgs = value
		case string:
			onArgs = []any{value}
		}
	}
	var objects []*Object
	if onThis && m.Usage == RuntimeMethod && object != nil {
		objects = append(objects, object)
	}
	for _, name := range every[string](onArgs) {
		if argument, ok := args[name].(*Object); ok && argument != nil {
			objects = append(objects, argument)
		}
	}
	return objects
}
