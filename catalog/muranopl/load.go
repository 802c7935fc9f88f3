package muranopl

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/burano/burano/internal/fault"
)

// Load makes the objects of a model: the map of its root object. It says everything that is wrong with the model; only when nothing
// is, the root is returned. Objects may refer to each other by id in any order. Properties that a class does not have are dropped,
// as Murano does.
//
// Nothing of the classes' code is run; Interpreter.Load makes objects and runs their .init.
func Load(ctx context.Context, classes *Classes, model map[string]any) (*Object, []Problem) {
	root, _, problems := load(ctx, classes, model)
	return root, problems
}

func load(ctx context.Context, classes *Classes, model map[string]any) (*Object, *loader, []Problem) {
	l := newLoader(ctx, classes)
	normal, ok := plain(model).(map[string]any)
	if !ok || model == nil {
		return nil, l, []Problem{{Wanted: "there is no model"}}
	}
	if _, has := parseDefinition(normal, ""); !has {
		return nil, l, []Problem{{Path: "?", Wanted: `the model's root names no class: "?" needs a "type"`}}
	}
	l.index(normal, "", 0)
	root := l.make(normal, nil, "", nil, nil)
	l.finish()
	if len(l.problems) > 0 {
		return nil, l, l.problems
	}
	return root, l, nil
}

// loadFormer makes the objects of a model that present does not hold.
func loadFormer(ctx context.Context, classes *Classes, present *Object, model map[string]any) (*loader, []Problem) {
	l := newLoader(ctx, classes)
	l.former = true
	if present != nil {
		l.adopt(present)
	}
	normal, ok := plain(model).(map[string]any)
	if !ok || model == nil {
		return l, nil
	}
	l.index(normal, "", 0)
	l.make(normal, nil, "", nil, nil)
	l.finish()
	return l, l.problems
}

const (
	maxNesting = 200    // of objects and other values in each other
	maxObjects = 20_000 // of one model, with those that defaults make

	maxProblems = 1000 // that are said
)

// loader makes objects of one model.
type loader struct {
	ctx      context.Context
	classes  *Classes
	outer    *loader // whose ids are known as well
	problems []Problem

	spots   map[string]spot    // by id: where the model says what the object is
	objects map[string]*loaded // by id
	pending []*pendingDefaults
	failed  map[propertyOf]bool // whose value was refused
	doubles map[string]bool     // paths of objects whose id another has
	checks  []func()            // that failed for want of another object's property; tried again at the end
	ends    []func()
	ending  bool
	spent   *expense

	metas     bool      // objects of meta classes may be made
	anew      bool      // ids are only names within the model: its objects get ids of their own
	former    bool      // objects that are known are gone through for what they had
	member    *Object   // of a tree whose objects are known as well, once they are asked for
	violation string    // the first problem with a contract, in Murano's words
	unknown   []Problem // keys that embedded classes do not know
	births    []birth   // whose .init is to be run, what is owned first
	made      map[*Object]bool
}

// birth is an object that was made, with what its model says of it.
type birth struct {
	object *Object
	given  map[string]any
}

// expense is what a loader and those within it made so far: classes can ask for more objects than there is memory.
type expense struct {
	depth, objects int
	over           bool // more is not said
}

// spot is a place in the model that says what an object is.
type spot struct {
	path  string
	model map[string]any
}

// loaded is an object that was made, maybe only because something refers to it.
type loaded struct {
	object *Object // nil: its class could not be had, and that was said
	placed bool    // stands in a property
	passed bool    // its properties were gone through
	wanted string  // path of the first reference
}

// pendingDefaults are an object's properties that nobody gave a value.
type pendingDefaults struct {
	object *Object
	path   string
	names  []string
}

type propertyOf struct {
	object   *Object
	property string
}

func newLoader(ctx context.Context, classes *Classes) *loader {
	return &loader{ctx: ctx, classes: classes, spots: map[string]spot{}, objects: map[string]*loaded{}, made: map[*Object]bool{},
		failed: map[propertyOf]bool{}, doubles: map[string]bool{}, spent: &expense{}}
}

func (l *loader) report(path, class, wanted string) {
	l.reportAs(Problem{Path: path, Class: class, Wanted: wanted})
}

func (l *loader) reportAs(problem Problem) {
	if !l.spent.over {
		l.add(problem)
	}
}

func (l *loader) add(problem Problem) {
	switch {
	case slices.Contains(l.problems, problem):
	case len(l.problems) < maxProblems:
		l.problems = append(l.problems, problem)
	default:
		l.enough(Problem{Wanted: fmt.Sprintf("more than %d problems; these are the first", maxProblems)})
	}
}

// enough reports a problem after which there is no use in going on.
func (l *loader) enough(problem Problem) {
	if !l.spent.over {
		l.spent.over = true
		l.problems = append(l.problems, problem)
	}
}

// index finds everything in the model that has an id.
func (l *loader) index(value any, path string, depth int) {
	if depth > maxNesting {
		l.report(path, "", fmt.Sprintf("the model is nested more than %d levels deep", maxNesting))
		return
	}
	switch v := value.(type) {
	case []any:
		for n, item := range v {
			l.index(item, fmt.Sprintf("%s[%d]", path, n), depth+1)
		}
	case map[string]any:
		if d, has := parseDefinition(v, ""); has && d.id != "" {
			if before, taken := l.spots[d.id]; taken {
				l.doubles[path] = true
				l.report(path, "", fmt.Sprintf("the id %s is taken: %s has it as well", d.id, orRoot(before.path)))
			} else {
				l.spots[d.id] = spot{path, v}
			}
		}
		for _, key := range sortedKeys(v) {
			if key != "?" {
				l.index(v[key], join(path, key), depth+1)
			}
		}
	}
}

func orRoot(path string) string {
	if path == "" {
		return "the root"
	}
	return path
}

// adopt makes the objects of a tree that is there known.
func (l *loader) adopt(member *Object) {
	root := member
	for owner := root.Owner(); owner != nil; owner = owner.Owner() {
		root = owner
	}
	root.Walk(func(o *Object) bool {
		l.objects[o.id] = &loaded{object: o, placed: true}
		return true
	})
}

// known is an object by its id, nil when there is none yet.
func (l *loader) known(id string) *loaded {
	if known := l.objects[id]; known != nil {
		return known
	}
	if i := interpreterOf(l.ctx); i != nil {
		if object := i.heap.named(id); object != nil {
			l.objects[id] = &loaded{object: object, placed: true}
		}
	} else if l.member != nil {
		member := l.member
		l.member = nil
		l.adopt(member)
	}
	return l.objects[id]
}

// reference returns the object of an id; false when the model has none, nil when it has one that could not be made.
func (l *loader) reference(id string) (*Object, bool) {
	if known := l.objects[id]; known != nil {
		return known.object, true
	}
	place, ok := l.spots[id]
	if !ok && l.known(id) != nil {
		return l.known(id).object, true
	}
	if !ok {
		if l.outer != nil {
			return l.outer.reference(id)
		}
		return nil, false
	}
	d, _ := parseDefinition(place.model, "")
	return l.allocate(d, place.path, nil).object, true
}

// allocate makes an object without properties.
func (l *loader) allocate(d definition, path string, in *Class) *loaded {
	if known := l.objects[d.id]; known != nil {
		return known
	}
	made := &loaded{wanted: path}
	if d.id != "" {
		l.objects[d.id] = made
	}
	class, err := l.class(d.typeName, in)
	if err != nil {
		problem := Problem{Path: path, Wanted: unknownClass(d.typeName, err), Name: "ValueError", Message: err.Error()}
		if fault.KindOf(err) == fault.NotFound {
			problem.Name, problem.Message = dslExceptions+"NoPackageForClassFound", fmt.Sprintf("Package for class %q is not found", d.class)
		}
		l.reportAs(problem)
		return made
	}
	if class.IsMeta && !l.metas {
		l.report(path, class.Name, "is a class of metadata; a model holds no objects of it")
		return made
	}
	if d.id == "" || l.anew {
		d.id = newID()
		l.objects[d.id] = made
	}
	if i := interpreterOf(l.ctx); i != nil && i.meter != nil {
		i.meter.made.Add(objectBytes)
	}
	made.object = &Object{id: d.id, name: d.name, class: class, classes: l.classes, interpreter: interpreterOf(l.ctx), header: d.header, values: map[string]any{}}
	return made
}

func newID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// class finds the class of an object; in is the class whose contract named it, nil when the model did.
func (l *loader) class(name typeName, in *Class) (*Class, error) {
	if in == nil || name.version != "" || name.pkg != "" {
		return l.classes.named(l.ctx, name)
	}
	l.classes.mutex.Lock()
	defer l.classes.mutex.Unlock()
	return l.classes.visible(l.ctx, in.Package, name.class)
}

func unknownClass(name typeName, err error) string {
	written := name.class
	if name.version != "" {
		written += " of version " + name.version
	}
	if name.pkg != "" {
		written += " of package " + name.pkg
	}
	if fault.KindOf(err) == fault.NotFound {
		return fmt.Sprintf("there is no class %s: add the package that has it to the catalog, or correct the type (%v)", written, err)
	}
	return fmt.Sprintf("class %s cannot be used: %v", written, err)
}

// make makes the object that a map describes, where it stands. s is the contract that wants it, of class in; nil at the root.
func (l *loader) make(model map[string]any, owner *Object, path string, s *step, in *Class) *Object {
	return l.makeWithout(model, owner, path, s, in, nil)
}

// makeWithout makes an object for which some properties need no value.
func (l *loader) makeWithout(model map[string]any, owner *Object, path string, s *step, in *Class, exclude []string) *Object {
	l.spent.depth++
	defer func() { l.spent.depth-- }()
	l.spent.objects++
	switch {
	case l.spent.over:
		return nil
	case l.spent.depth > maxNesting:
		l.enough(Problem{Path: path, Wanted: fmt.Sprintf("objects stand in each other more than %d levels deep", maxNesting)})
		return nil
	case l.spent.objects > maxObjects:
		l.enough(Problem{Wanted: fmt.Sprintf("the model, with what defaults of classes add to it, has more than %d objects", maxObjects)})
		return nil
	case l.ctx.Err() != nil:
		l.enough(Problem{Wanted: fmt.Sprintf("the model was not loaded: %v", context.Cause(l.ctx))})
		return nil
	}
	if l.doubles[path] {
		return nil
	}
	otherwise := ""
	if s != nil {
		otherwise = s.other
	}
	d, has := parseDefinition(model, otherwise)
	if has {
		in = nil
	} else if s != nil {
		d.version = s.spec
	}
	made := l.allocate(d, path, in)
	if made.object == nil || made.placed && (made.passed || !l.former) {
		return made.object
	}
	object := made.object
	made.passed = true
	if !made.placed {
		made.placed = true
		object.owner = owner
		l.birth(object, d)
	}
	l.initialise(object, d.properties, path, exclude)
	return object
}

// birth notes what is to be done for a new object when all is loaded.
func (l *loader) birth(object *Object, d definition) {
	l.made[object] = true
	if object.interpreter != nil {
		object.interpreter.heap.name(object)
	}
	if destroyed, _ := d.header["destroyed"].(bool); destroyed {
		object.destroyed.Store(true)
	}
	dependencies, _ := d.header["dependencies"].(map[string]any)
	for _, item := range every[map[string]any](listOf(dependencies["onDestruction"])) {
		id, _ := item["subscriber"].(string)
		handler, _ := item["handler"].(string)
		l.atEnd(func() {
			if known := l.known(id); known != nil && known.object != nil && hasMethod(known.object, handler) == nil {
				object.subscribe(dependency{known.object, handler})
			}
		})
	}
}

func listOf(value any) []any {
	list, _ := value.([]any)
	return list
}

// initialise gives the properties of an object their values.
func (l *loader) initialise(object *Object, given map[string]any, path string, exclude []string) {
	if object.class.Package.Embedded() && object.owner != nil {
		l.unknownKeys(given, object.class.PropertyNames(), path, object.class.Name)
	}
	later := &pendingDefaults{object: object, path: path}
	for _, name := range object.class.PropertyNames() {
		declared := object.class.Property(name)
		p := declared[0]
		value, present := given[name]
		if slices.Contains(exclude, name) && !present || !l.made[object] && !present {
			continue
		}
		switch {
		case p.Usage == Static:
		case p.Usage.kept() && present:
			l.assign(object, declared, value, join(path, name))
		case l.configure(object, declared, join(path, name)):
		case p.Default != nil || p.Usage == Config:
			later.names = append(later.names, name)
		case p.Usage == Runtime:
		case p.Usage == Out:
			l.try(object, declared, path)
		default:
			l.assign(object, declared, nil, join(path, name))
		}
	}
	if len(later.names) > 0 {
		l.pending = append(l.pending, later)
		l.defaults(later)
	}
	if l.made[object] {
		l.births = append(l.births, birth{object, given})
	}
}

// configure gives a property the value of the class configuration, which goes before its default, unless there is none; then false.
func (l *loader) configure(object *Object, declared []*Property, path string) bool {
	value, present, err := l.classes.configured(declared[0])
	if err != nil {
		l.report(path, label(declared[0]), err.Error())
		return true
	}
	if present {
		l.assign(object, declared, plain(value), path)
	}
	return present
}

// born runs .init of the objects that were made, in the interpreter of the context; without one nothing is run.
func (l *loader) born(ctx context.Context) error {
	i := interpreterOf(l.ctx)
	if i == nil {
		return nil
	}
	if len(l.births) == 0 {
		return nil
	}
	i.heap.hold(l.births)
	defer i.heap.release(l.births)
	for _, b := range l.births {
		if b.object.Destroyed() {
			continue
		}
		if err := i.initialise(i.enter(ctx), b); err != nil {
			return err
		}
		if b.object.class.destroys() || len(b.object.subscriptions()) > 0 {
			i.heap.keep(b.object)
			for _, d := range b.object.subscriptions() {
				i.heap.keep(d.subscriber)
			}
		}
	}
	return nil
}

func label(p *Property) string { return p.Class.Name + "." + p.Name }

// try gives an Out property what its contract makes of nothing, or leaves it without a value.
func (l *loader) try(object *Object, declared []*Property, path string) {
	before := len(l.problems)
	l.assign(object, declared, nil, join(path, declared[0].Name))
	if !l.spent.over {
		l.problems = l.problems[:before]
		delete(l.failed, propertyOf{object, declared[0].Name})
	}
}

// assign gives a property a value: the most derived contract makes it, the others check it.
func (l *loader) assign(object *Object, declared []*Property, value any, path string) {
	var excluded map[string][]string
	if len(declared) > 1 {
		excluded = map[string][]string{}
	}
	for n, p := range declared {
		a := &application{ctx: l.ctx, loader: l, this: object, owner: object, in: p.Class, path: path, base: path, label: label(p), subject: label(p), excluded: excluded}
		made, ok := p.Contract.rule.apply(a, value)
		if !ok {
			l.failed[propertyOf{object, p.Name}] = true
			return
		}
		if n == 0 {
			value = kept(made)
		}
	}
	if !l.made[object] {
		return // what it has now holds
	}
	object.mutex.Lock()
	object.values[declared[0].Name] = value
	object.mutex.Unlock()
	object.notify(declared[0].Name, value)
}

// defaults evaluates defaults until none is left or none can be evaluated; it tells whether it got any further.
func (l *loader) defaults(p *pendingDefaults) bool {
	further := false
	for again := true; again; {
		again = false
		waiting := p.names
		p.names = nil
		for _, name := range waiting {
			declared := p.object.class.Property(name)
			if declared[0].Default == nil { // a Config property without
				l.assign(p.object, declared, nil, join(p.path, name))
				continue
			}
			value, err := declared[0].Default.evaluate(l.ctx, declared[0].Class, p.object)
			if err != nil && uninitialised(err) != nil {
				p.names = append(p.names, name)
				continue
			}
			again, further = true, true
			if err != nil {
				l.failed[propertyOf{p.object, name}] = true
				l.report(join(p.path, name), label(declared[0]), fmt.Sprintf("has a default (%s) that cannot be evaluated: %v", declared[0].Default.position, err))
				continue
			}
			l.assign(p.object, declared, value, join(p.path, name))
		}
		again = again && len(p.names) > 0
	}
	return further
}

// later has something tried again when all properties that can have values have them; false when that is so already.
func (l *loader) later(again func()) bool {
	if l.ending {
		return false
	}
	l.checks = append(l.checks, again)
	return true
}

// atEnd has something done when all objects are there.
func (l *loader) atEnd(do func()) { l.ends = append(l.ends, do) }

// finish does what could not be done while the model was gone through.
func (l *loader) finish() {
	for further := true; further; {
		further = false
		for n := 0; n < len(l.pending); n++ { // more may come
			further = l.defaults(l.pending[n]) || further
		}
	}
	for _, p := range l.pending {
		for _, name := range p.names {
			l.stuck(p, name)
		}
	}
	l.ending = true
	for n := 0; n < len(l.checks); n++ {
		l.checks[n]()
	}
	for _, id := range sortedKeys(l.objects) {
		if o := l.objects[id]; o.object != nil && !o.placed {
			l.report(o.wanted, o.object.class.Name, fmt.Sprintf("is referred to by its id %s, but stands where no property wants an object", id))
		}
	}
	if len(l.problems) > 0 {
		return // who owns what is not known then
	}
	for n := 0; n < len(l.ends); n++ {
		l.ends[n]()
	}
}

// stuck says why a default has no value: it waits for others, which wait for it, or for a property that has none. Nothing is said
// when it waits for a property whose problem is said already.
func (l *loader) stuck(p *pendingDefaults, name string) {
	declared := p.object.class.Property(name)[0]
	var circle []string
	at := propertyOf{p.object, name}
	for seen := map[propertyOf]bool{}; ; {
		waits := uninitialised(l.waits(at))
		if waits == nil || seen[at] {
			break
		}
		seen[at] = true
		circle = append(circle, at.property)
		if at = (propertyOf{waits.Object, waits.Property}); l.failed[at] {
			return
		}
		if !l.waiting(at) {
			l.report(join(p.path, name), label(declared), fmt.Sprintf("has a default (%s) that cannot be evaluated: property %s of %s has no value", declared.Default.position, at.property, at.object))
			return
		}
	}
	l.reportAs(Problem{Path: join(p.path, name), Class: label(declared), Name: dslExceptions + "CircularExpressionDependenciesError",
		Wanted: fmt.Sprintf("has a default (%s) that cannot be evaluated: the defaults of %s wait for each other; give one of them a value",
			declared.Default.position, strings.Join(slices.Sorted(slices.Values(circle)), ", "))})
}

// waits is why a default cannot be evaluated.
func (l *loader) waits(at propertyOf) error {
	declared := at.object.class.Property(at.property)[0]
	if declared.Default == nil {
		return nil
	}
	_, err := declared.Default.evaluate(l.ctx, declared.Class, at.object)
	return err
}

func (l *loader) waiting(at propertyOf) bool {
	return slices.ContainsFunc(l.pending, func(p *pendingDefaults) bool {
		return p.object == at.object && slices.Contains(p.names, at.property)
	})
}
