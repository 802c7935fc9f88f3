package muranopl

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// heap has the data with which an interpreter finds unreachable objects: the roots, and the objects whose end needs work. It ignores objects without a
// destructor and without subscribers.
type heap struct {
	mutex      sync.Mutex
	objects    []*Object        // with a destructor or subscriptions, in the order of their making
	known      map[*Object]bool // the objects whose end needs work
	roots      map[*Object]int  // that Go code holds, so many times
	strands    *strand          // the line of execution that began last, nil for none; each leads to the one before it
	destroying map[*Object]bool // that are being destroyed
	marking    atomic.Int32     // collections that mark reachable objects
	written    []any            // while they do: values that were stored meanwhile

	names *sync.Map // id → weak.Pointer[Object]; separate, because its cleanup may not lead to objects
}

// name lets an object be found by its id for as long as it is there.
func (h *heap) name(o *Object) {
	names := h.names
	names.Store(o.id, weak.Make(o))
	runtime.AddCleanup(o, func(id string) {
		if pointer, ok := names.Load(id); ok && pointer.(weak.Pointer[Object]).Value() == nil {
			names.CompareAndDelete(id, pointer)
		}
	}, o.id)
}

// named is the object of that id, nil when there is none that can still be used.
func (h *heap) named(id string) *Object {
	pointer, ok := h.names.Load(id)
	if !ok {
		return nil
	}
	o := pointer.(weak.Pointer[Object]).Value()
	if o == nil || o.Destroyed() {
		return nil
	}
	return o
}

// dependency is a wish to hear of an object's destruction.
type dependency struct {
	subscriber *Object
	handler    string // method of the subscriber; "": only the order matters
}

func (h *heap) begin(s *strand) {
	s.frame.interpreter.meter.call(1)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if s.before = h.strands; s.before != nil {
		s.before.after = s
	}
	h.strands = s
	if h.marking.Load() > 0 {
		h.written = append(h.written, s.frame)
	}
}

func (h *heap) end(s *strand) {
	s.frame.interpreter.meter.call(-1)
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if s.before != nil {
		s.before.after = s.after
	}
	if s.after != nil {
		s.after.before = s.before
	} else {
		h.strands = s.before
	}
}

// running lists the lines of execution; the mutex is the caller's.
func (h *heap) running() []*strand {
	var strands []*strand
	for s := h.strands; s != nil; s = s.before {
		strands = append(strands, s)
	}
	return strands
}

// store notes that a value was stored somewhere, for collections that may have passed the place already.
func (h *heap) store(value any) {
	if h.marking.Load() == 0 {
		return
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.marking.Load() > 0 {
		h.written = append(h.written, value)
	}
}

// keep notes an object that is to be destroyed one day.
func (h *heap) keep(o *Object) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.known == nil {
		h.known = map[*Object]bool{}
	}
	if !h.known[o] {
		h.known[o] = true
		h.objects = append(h.objects, o)
	}
}

// root notes an object that Go code holds until the end of the run.
func (h *heap) root(o *Object) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.roots == nil {
		h.roots = map[*Object]int{}
	}
	h.roots[o]++
}

// hold keeps objects alive whose .init is running.
func (h *heap) hold(births []birth) {
	for _, b := range births {
		h.root(b.object)
		h.store(b.object)
	}
}

func (h *heap) release(births []birth) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	for _, b := range births {
		if h.roots[b.object]--; h.roots[b.object] == 0 {
			delete(h.roots, b.object)
		}
	}
}

// holds reports whether a value can lead to objects.
func holds(value any) bool {
	switch value.(type) {
	case *Object, view, []any, map[string]any, *yaql.Dict, *yaql.Set:
		return true
	}
	return false
}

// pin keeps a value alive until the present instruction ends: an expression may be working with it.
func (s *strand) pin(value any) {
	if s == nil || !holds(value) {
		return
	}
	s.mutex.Lock()
	s.pinned = append(s.pinned, value)
	s.mutex.Unlock()
	s.frame.interpreter.heap.store(value)
}

func (s *strand) pins() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.pinned)
}

// unpin releases the pins beyond this number.
func (s *strand) unpin(count int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	clear(s.pinned[count:])
	s.pinned = s.pinned[:count]
}

// marker finds everything that values lead to.
type marker struct {
	reached map[*Object]bool
	frames  map[*frame]bool
	next    []*Object
}

func (m *marker) value(value any) {
	switch v := value.(type) {
	case *Object:
		if v != nil && !m.reached[v] {
			m.reached[v] = true
			m.next = append(m.next, v)
		}
	case view:
		m.value(v.object)
	case []any:
		for _, item := range v {
			m.value(item)
		}
	case map[string]any:
		for _, item := range v {
			m.value(item)
		}
	case *yaql.Dict:
		for _, e := range v.Entries() {
			m.value(e.Key)
			m.value(e.Value)
		}
	case *yaql.Set:
		m.value(v.Members())
	case *frame:
		m.frame(v)
	}
}

func (m *marker) frame(f *frame) {
	if m.frames[f] {
		return
	}
	m.frames[f] = true
	f.variables().Values(m.value)
}

// drain goes on from the objects that were found.
func (m *marker) drain() {
	for len(m.next) > 0 {
		o := m.next[len(m.next)-1]
		m.next = m.next[:len(m.next)-1]
		o.mutex.RLock()
		m.value(o.owner)
		for _, value := range o.values {
			m.value(value)
		}
		for _, properties := range o.private {
			m.value(properties)
		}
		o.mutex.RUnlock()
		for e := o.exception; e != nil; e = e.Cause {
			m.value(e.Extra)
		}
	}
}

// reachable are the objects that something leads to, at one moment.
func (i *Interpreter) reachable() map[*Object]bool {
	h := &i.heap
	m := &marker{reached: map[*Object]bool{}, frames: map[*frame]bool{}}
	h.mutex.Lock()
	h.marking.Add(1)
	roots := slices.Collect(maps.Keys(h.roots))
	strands := h.running()
	h.mutex.Unlock()
	for _, root := range roots {
		m.value(root)
	}
	for _, s := range strands {
		m.frame(s.frame)
		s.mutex.Lock()
		pinned := slices.Clone(s.pinned)
		s.mutex.Unlock()
		m.value(pinned)
		if s.exception != nil {
			m.value(s.exception.Extra)
		}
	}
	i.classes.statics(m.value)
	i.mocks.values(m.value)
	for {
		m.drain()
		h.mutex.Lock()
		written := h.written
		if h.written = nil; len(written) == 0 {
			h.marking.Add(-1)
			h.mutex.Unlock()
			return m.reached
		}
		h.mutex.Unlock()
		m.value(written)
	}
}

// statics visits the values of static properties.
func (c *Classes) statics(visit func(any)) {
	c.mutex.Lock()
	classes := slices.Collect(maps.Values(c.read))
	c.mutex.Unlock()
	for _, class := range classes {
		class.staticMutex.Lock()
		for _, value := range class.statics {
			visit(value)
		}
		class.staticMutex.Unlock()
	}
}

// Collect destroys the unreachable objects. Loaded models, variables of running methods and static properties are roots. It continues until a round finds
// none, and returns the number of objects.
//
// Objects are destroyed before their owners and before their subscribers. First the subscribers are notified, in the other order. Then .destroy of each
// class of an object is run, of descendants before ancestors. Errors of both are logged and ignored, as in Murano. The returned error is the end of the
// context.
func (i *Interpreter) Collect(ctx context.Context) (int, error) {
	count := 0
	for {
		reached := i.reachable()
		sentenced := i.heap.sentence(func(o *Object) bool { return !reached[o] })
		if len(sentenced) == 0 {
			return count, nil
		}
		n, err := i.destroyAll(ctx, sentenced)
		if count += n; err != nil {
			return count, err
		}
	}
}

// Finish ends a run: it destroys every object that the model of root, as Save would write it, does not hold. root may be nil.
func (i *Interpreter) Finish(ctx context.Context, root *Object) error {
	kept := map[*Object]bool{}
	var keep func(any)
	keep = func(value any) {
		eachObject(value, func(o *Object) {
			if kept[o] {
				return
			}
			kept[o] = true
			for _, property := range o.class.PropertyNames() {
				if o.class.Property(property)[0].Usage.kept() {
					value, _ := o.Get(property)
					keep(value)
				}
			}
		})
	}
	keep(root)
	_, err := i.destroyAll(ctx, i.heap.sentence(func(o *Object) bool { return !kept[o] }))
	return err
}

// sentence removes the objects that end from the heap, with their owners that end as well.
func (h *heap) sentence(goes func(*Object) bool) []*Object {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var sentenced []*Object
	seen := map[*Object]bool{}
	add := func(o *Object) {
		if !seen[o] && !h.destroying[o] {
			seen[o] = true
			sentenced = append(sentenced, o)
		}
	}
	var rest []*Object
	for _, o := range h.objects {
		switch {
		case o.Destroyed():
			continue
		case !goes(o):
			rest = append(rest, o)
			continue
		}
		for owner := o.Owner(); owner != nil && goes(owner) && !owner.Destroyed(); owner = owner.Owner() {
			add(owner)
		}
		add(o)
	}
	h.objects, h.known = rest, map[*Object]bool{}
	for _, o := range rest {
		h.known[o] = true
	}
	if h.destroying == nil {
		h.destroying = map[*Object]bool{}
	}
	for _, o := range sentenced {
		h.destroying[o] = true
	}
	return sentenced
}

// destroyAll destroys objects and returns how many.
func (i *Interpreter) destroyAll(ctx context.Context, sentenced []*Object) (int, error) {
	defer func() {
		i.heap.mutex.Lock()
		defer i.heap.mutex.Unlock()
		for _, o := range sentenced {
			delete(i.heap.destroying, o)
		}
	}()
	ranks := destructionRanks(sentenced)
	for _, rank := range ranks {
		for _, o := range rank {
			i.TellSubscribers(ctx, o)
		}
	}
	count := 0
	for _, rank := range slices.Backward(ranks) {
		for _, o := range rank {
			if ctx.Err() != nil {
				return count, context.Cause(ctx)
			}
			if err := i.Destroy(ctx, o); err != nil && ctx.Err() == nil {
				muted(ctx, i.logger, ".destroy", o, err)
			}
			count++
		}
	}
	return count, nil
}

// destructionRanks orders objects: first those whose owners and subscribers are not among them, then those whose owners and subscribers are of the ranks
// before. In a circle the order is that of the list.
func destructionRanks(objects []*Object) [][]*Object {
	rank := make(map[*Object]int, len(objects))
	among := make(map[*Object]bool, len(objects))
	for _, o := range objects {
		among[o] = true
	}
	var visit func(o *Object) int
	visit = func(o *Object) int {
		if o == nil || !among[o] {
			return 0
		}
		if known, ok := rank[o]; ok {
			return known
		}
		rank[o] = 0 // while it is unknown: references back to it do not count
		highest := visit(o.Owner())
		for _, d := range o.subscriptions() {
			highest = max(highest, visit(d.subscriber))
		}
		rank[o] = highest + 1
		return highest + 1
	}
	var ranks [][]*Object
	for _, o := range objects {
		n := visit(o)
		for len(ranks) < n {
			ranks = append(ranks, nil)
		}
		ranks[n-1] = append(ranks[n-1], o)
	}
	return ranks
}

// destructionOrder orders objects that were made one after the other for their destruction.
func destructionOrder(made []*Object) []*Object {
	before := map[*Object][]*Object{} // the objects before an object, the last made first
	for _, o := range slices.Backward(made) {
		before[o.Owner()] = append(before[o.Owner()], o)
		for _, d := range o.subscriptions() {
			before[d.subscriber] = append(before[d.subscriber], o)
		}
	}
	ordered := make([]*Object, 0, len(made))
	seen := map[*Object]bool{}
	var visit func(o *Object)
	visit = func(o *Object) {
		if seen[o] {
			return
		}
		seen[o] = true
		for _, first := range before[o] {
			visit(first)
		}
		ordered = append(ordered, o)
	}
	for _, o := range slices.Backward(made) {
		visit(o)
	}
	return ordered
}

// TellSubscribers calls the handlers of the subscribers to the destruction of an object, once. Errors are logged.
func (i *Interpreter) TellSubscribers(ctx context.Context, o *Object) {
	for _, d := range o.subscriptions() {
		if d.handler == "" || d.subscriber.Destroyed() || ctx.Err() != nil {
			continue
		}
		m, err := d.subscriber.class.Method(d.handler)
		if err == nil && m == nil {
			err = noMethod(d.handler)
		}
		if err == nil {
			_, err = i.call(i.enter(ctx), m, d.subscriber, d.subscriber, []any{o}, nil)
		}
		if err != nil {
			muted(ctx, i.logger, d.handler, o, err)
		}
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.dependencies = nil
}

func muted(ctx context.Context, logger *slog.Logger, method string, o *Object, err error) {
	text := err.Error()
	var e *Exception
	if errors.As(err, &e) {
		text = e.Traceback()
	}
	logger.WarnContext(ctx, "muted an exception in the destruction of an object", "object", o.String(), "method", method, "exception", text)
}

// Destroy runs .destroy of each class of an object, of descendants before ancestors, all of them whatever comes of one, and counts the
// object as destroyed: its methods cannot be called any more.
func (i *Interpreter) Destroy(ctx context.Context, object *Object) error {
	var failures []error
	for _, class := range object.class.lineage {
		if m := class.own(".destroy"); m != nil && !object.Destroyed() {
			_, err := i.fromGo(ctx, m, object, object, nil)
			failures = append(failures, err)
		}
	}
	if ctx.Err() == nil {
		object.destroyed.Store(true)
	}
	return errors.Join(failures...)
}

// destroys reports whether the class or an ancestor has a .destroy.
func (c *Class) destroys() bool {
	return slices.ContainsFunc(c.lineage, func(a *Class) bool { return a.own(".destroy") != nil })
}

// Destroyed reports whether the object was destroyed.
func (o *Object) Destroyed() bool { return o.destroyed.Load() }

// isDoomed reports whether an object is destroyed or about to be.
func (h *heap) isDoomed(o *Object) bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return o.Destroyed() || h.destroying[o]
}

func (o *Object) subscriptions() []dependency {
	o.mutex.RLock()
	defer o.mutex.RUnlock()
	return slices.Clone(o.dependencies)
}

// subscribeDestruction has a method of the subscriber called with the publisher before the publisher is destroyed; with the handler ""
// none is called, but the publisher is still destroyed before the subscriber. Subscribing again changes nothing.
func subscribeDestruction(i *Interpreter, publisher, subscriber *Object, handler string) error {
	if err := hasMethod(subscriber, handler); err != nil {
		return err
	}
	publisher.subscribe(dependency{subscriber, handler})
	i.heap.keep(publisher)
	i.heap.keep(subscriber)
	return nil
}

func (o *Object) subscribe(d dependency) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if !slices.Contains(o.dependencies, d) {
		o.dependencies = append(o.dependencies, d)
	}
}

// unsubscribeDestruction takes a subscription back; one that is not there is no error.
func unsubscribeDestruction(_ *Interpreter, publisher, subscriber *Object, handler string) error {
	if err := hasMethod(subscriber, handler); err != nil {
		return err
	}
	publisher.mutex.Lock()
	defer publisher.mutex.Unlock()
	publisher.dependencies = slices.DeleteFunc(publisher.dependencies, func(d dependency) bool { return d == dependency{subscriber, handler} })
	return nil
}

func hasMethod(o *Object, name string) error {
	if name == "" {
		return nil
	}
	m, err := o.class.Method(name)
	if err == nil && m == nil {
		err = noMethod(name)
	}
	return err
}

func noMethod(name string) error {
	return refused(fault.NotFound, dslExceptions+"NoMethodFound", "Method %q is not found", name)
}

// CollectorNatives are the methods of io.murano.system.GC, which the package io.murano declares as native and static.
func CollectorNatives() map[string]NativeMethod {
	object := func(call Call, name string) (*Object, error) {
		o, ok := call.Args[name].(*Object)
		if !ok {
			return nil, raised("ValueError", "%s is an object", name)
		}
		return o, nil
	}
	subscription := func(change func(i *Interpreter, publisher, subscriber *Object, handler string) error) NativeMethod {
		return func(_ context.Context, call Call) (any, error) {
			publisher, err := object(call, "publisher")
			if err != nil {
				return nil, err
			}
			subscriber, err := object(call, "subscriber")
			if err != nil {
				return nil, err
			}
			handler, _ := call.Args["handler"].(string)
			return nil, change(call.Interpreter, publisher, subscriber, handler)
		}
	}
	question := func(ask func(i *Interpreter, o *Object) bool) NativeMethod {
		return func(_ context.Context, call Call) (any, error) {
			o, err := object(call, "object")
			if err != nil {
				return nil, err
			}
			return ask(call.Interpreter, o), nil
		}
	}
	return map[string]NativeMethod{
		"collect": func(ctx context.Context, call Call) (any, error) {
			_, err := call.Interpreter.Collect(ctx)
			return nil, err
		},
		"subscribeDestruction":   subscription(subscribeDestruction),
		"unsubscribeDestruction": subscription(unsubscribeDestruction),
		"isDoomed":               question(func(i *Interpreter, o *Object) bool { return i.heap.isDoomed(o) }),
		"isDestroyed":            question(func(_ *Interpreter, o *Object) bool { return o.Destroyed() }),
	}
}
