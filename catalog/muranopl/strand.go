package muranopl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/burano/burano/catalog/yaql"
)

// maxCalls is how deep methods may call each other.
const maxCalls = 500

// frame is one call of a method with a body: its variables.
type frame struct {
	interpreter *Interpreter
	method      *Method
	caller      *strand // nil: Go
	depth       int

	mutex sync.Mutex
	scope *yaql.Scope // with the present variables; replaced by each assignment
}

// strand is one line of execution of a frame; Parallel makes more of them.
type strand struct {
	frame      *frame
	here       instruction
	expression *yaql.Expression // that the instruction evaluated last, nil for none
	exception  *Exception       // that a Catch is dealing with
	ticked     int              // instructions since it was charged

	before, after *strand // in the heap's list, by its mutex

	mutex  sync.Mutex
	pinned []any // values that instructions are working with
}

// begin records the present instruction. Stack traces show the last evaluated expression, as in Murano, or the block that has not evaluated any.
func (s *strand) begin(one instruction) {
	s.here = one
	switch one.(type) {
	case evaluation, assignment:
	default:
		s.expression = nil
	}
}

// beside makes another line of execution of the same frame, for as long as do runs.
func (s *strand) beside(do func(*strand)) {
	mine := &strand{frame: s.frame, here: s.here, expression: s.expression, exception: s.exception}
	s.frame.interpreter.heap.begin(mine)
	defer s.frame.interpreter.heap.end(mine)
	do(mine)
}

// ticks is how many instructions a strand runs before it is charged for them.
const ticks = 256

// tick counts an instruction, or a turn of a loop.
func (s *strand) tick() error {
	if s.ticked++; s.ticked < ticks {
		return nil
	}
	s.ticked = 0
	if m := s.frame.interpreter.meter; m != nil {
		return m.Spend(ticks, 0)
	}
	return nil
}

type runningKey struct{}

// runningOf is the code that a context belongs to, nil for none.
func runningOf(ctx context.Context) *running {
	p, _ := ctx.Value(runningKey{}).(*running)
	return p
}

// strandOf is the line of execution that a context belongs to, nil outside of bodies.
func strandOf(ctx context.Context) *strand {
	if p := runningOf(ctx); p != nil {
		return p.strand
	}
	return nil
}

func (s *strand) enter(ctx context.Context) context.Context {
	return &running{ctx, s.frame.interpreter, s, true}
}

// running is the context of running code: it gives fast access to the most used values, at any depth of calls.
type running struct {
	context.Context
	interpreter *Interpreter
	strand      *strand // nil: none yet
	hasTurn     bool
}

func (p *running) Value(key any) any {
	switch key.(type) {
	case runningKey:
		return p
	case interpreterKey:
		return p.interpreter
	case yaql.MeterKey:
		if m := p.interpreter.meter; m != nil {
			return m
		}
		return nil
	}
	return p.Context.Value(key)
}

type interpreterKey struct{}

// interpreterOf is the interpreter that a context belongs to, nil for none.
func interpreterOf(ctx context.Context) *Interpreter {
	i, _ := ctx.Value(interpreterKey{}).(*Interpreter)
	return i
}

func (i *Interpreter) enter(ctx context.Context) context.Context {
	if interpreterOf(ctx) == i {
		return ctx
	}
	ctx = context.WithValue(ctx, interpreterKey{}, i)
	if i.meter != nil {
		ctx = context.WithValue(ctx, yaql.MeterKey{}, i.meter)
	}
	return ctx
}

// variables is the frame's present scope.
func (f *frame) variables() *yaql.Scope {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.scope
}

func (f *frame) set(name string, value any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.scope = f.scope.Assign(name, value)
	if holds(value) {
		f.interpreter.heap.store(value)
	}
}

// maxValue is the maximum number of values in one, each occurrence counted: few instructions can make one that has more than there is time to visit.
const maxValue = 100_000

// fill evaluates the expressions of a template; its value is one of YAQL.
func (s *strand) fill(ctx context.Context, t template) (any, error) {
	value, err := s.evaluate(ctx, t)
	if err != nil {
		return value, err
	}
	return value, bounded(value)
}

// bounded refuses a value that contains more than maxValue others.
func bounded(value any) error {
	if left := maxValue; !within(value, &left) {
		return &yaql.Error{Name: yaql.TooMuchMemory, Message: fmt.Sprintf("a value holds more than %d others", maxValue),
			Said: "Expression consumed too much memory"}
	}
	return nil
}

// within reports whether a value contains no more than this number of values.
func within(value any, left *int) bool {
	if *left--; *left < 0 {
		return false
	}
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			if !within(item, left) {
				return false
			}
		}
	case map[string]any:
		for _, item := range v {
			if !within(item, left) {
				return false
			}
		}
	case *yaql.Dict:
		for _, e := range v.Entries() {
			if !within(e.Value, left) {
				return false
			}
		}
	case *yaql.Set:
		return within(v.Members(), left)
	}
	return true
}

func (s *strand) evaluate(ctx context.Context, t template) (any, error) {
	switch v := t.(type) {
	case *yaql.Expression:
		s.expression = v
		return v.Evaluate(ctx, s.frame.variables())
	case listTemplate:
		list := make([]any, len(v))
		for n, item := range v {
			var err error
			if list[n], err = s.evaluate(ctx, item); err != nil {
				return nil, err
			}
		}
		return list, s.frame.interpreter.meter.keep(boxBytes + slotBytes*len(list))
	case mapTemplate:
		entries := make([]yaql.Entry, len(v))
		for n, entry := range v {
			var err error
			if entries[n].Key, err = s.evaluate(ctx, entry.key); err != nil {
				return nil, err
			}
			if entries[n].Value, err = s.evaluate(ctx, entry.value); err != nil {
				return nil, err
			}
		}
		return yaql.NewDict(entries...), s.frame.interpreter.meter.keep(mapBytes + entryBytes*len(entries))
	}
	return t, nil
}

// stack lists the calls that lead to the strand, the outermost first.
func (s *strand) stack() []Frame {
	if s == nil {
		return nil
	}
	frames := make([]Frame, s.frame.depth)
	for n := len(frames) - 1; n >= 0; n, s = n-1, s.frame.caller {
		frames[n] = Frame{Method: s.frame.method.Name, Class: s.frame.method.Class.Name, Object: s.frame.this()}
		if s.expression != nil {
			frames[n].Position, frames[n].Instruction = s.frame.method.Class.places[s.expression], s.expression.String()
		} else if s.here != nil {
			frames[n].Position, frames[n].Instruction = s.here.position(), s.here.text()
		}
	}
	return frames
}

// this is the object whose method runs; nil for a static method.
func (f *frame) this() *Object {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return objectOf(f.scope.Variable("this"))
}

// raise makes an exception from an error in this strand. The end of the context stays as it is: nothing catches it.
func (s *strand) raise(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(err, cause) {
			return cause
		}
		return err
	}
	e := AsException(err)
	if e.Frames == nil {
		located := *e
		located.Frames = s.stack()
		return &located
	}
	return e
}
