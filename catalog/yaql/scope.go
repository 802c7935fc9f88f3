package yaql

import (
	"context"
	"fmt"
	"maps"
	"strconv"
)

// Limits limit the cost of one evaluation. Zero is the default.
type Limits struct {
	Items  int // of any one sequence; default 10,000
	Memory int // bytes of all values made, roughly; default 16 MiB
	Depth  int // of calls within calls; default 200
	Steps  int // nodes evaluated; default 5,000,000
}

func (l Limits) withDefaults() Limits {
	set := func(value *int, otherwise int) {
		if *value <= 0 {
			*value = otherwise
		}
	}
	set(&l.Items, 10_000)
	set(&l.Memory, 16<<20)
	set(&l.Depth, 200)
	set(&l.Steps, 5_000_000)
	return l
}

// Dialect is a host's part in the language; each function may be nil. Functions that return a bool return false for values that are not the host's.
type Dialect struct {
	// Attribute reads receiver.name.
	Attribute func(ctx context.Context, receiver any, name string) (any, bool, error)
	// Method calls receiver.name(args, named).
	Method func(ctx context.Context, receiver any, name string, args []any, named map[string]any) (any, bool, error)
	// Owns reports whether methods of the receiver are the host's: Method is tried before the table of functions.
	Owns func(receiver any) bool
	// Responds reports whether Method knows that method of a receiver of the host; nil: every name. For other methods the arguments are not evaluated
	// before the overload is chosen.
	Responds func(receiver any, name string) bool
	// Index reads receiver[args].
	Index func(ctx context.Context, receiver any, args []any) (any, bool, error)
	// Type resolves prefix:name; prefix is "" for :name.
	Type func(ctx context.Context, prefix, name string) (any, error)
	// Is is the operator "is".
	Is func(ctx context.Context, value, class any) (bool, error)
}

// Scope is the environment of an expression: data, variables, functions. It does not change; With and Define make new ones.
type Scope struct {
	outer   *Scope
	setting *setting
	// The variables of this scope: $1, $2 … are args, and $ is the first of them; or one is name; or they are names.
	args   []any
	inline [2]any // where args lie as long as they are few
	single bool
	name   string
	names  map[string]any
	// defined is a function of this scope; nearest, the closest scope that has one.
	defined *Function
	nearest *Scope
}

// setting is the part of a scope that derived scopes share.
type setting struct {
	functions *Functions
	dialect   *Dialect
	limits    Limits
}

// NewScope makes a scope in which data is $.
func NewScope(functions *Functions, data any, limits Limits) *Scope {
	s := &Scope{setting: &setting{functions, &Dialect{}, limits.withDefaults()}}
	s.inline[0] = data
	s.args = s.inline[:1]
	return s
}

// Speaking makes a scope with a dialect.
func (s *Scope) Speaking(dialect *Dialect) *Scope {
	inner := s.within()
	inner.setting = &setting{s.setting.functions, dialect, s.setting.limits}
	return inner
}

// About makes a scope in which data is $.
func (s *Scope) About(data any) *Scope {
	inner := s.within()
	inner.inline[0] = data
	inner.args = inner.inline[:1]
	return inner
}

// With makes a scope in which $name is value; the name "" is $.
func (s *Scope) With(name string, value any) *Scope {
	inner := s.within()
	inner.single, inner.name, inner.inline[0] = true, name, value
	return inner
}

// WithAll makes a scope with several variables.
func (s *Scope) WithAll(names map[string]any) *Scope {
	inner := s.within()
	inner.names = names
	return inner
}

// Assign makes a scope in which $name is value, as With does, but beside the variables of the scope's own level: assigning many times
// does not make a scope deep.
func (s *Scope) Assign(name string, value any) *Scope {
	if s.args != nil || s.single {
		return s.WithAll(map[string]any{name: value})
	}
	assigned := *s
	assigned.names = make(map[string]any, len(s.names)+1)
	maps.Copy(assigned.names, s.names)
	assigned.names[name] = value
	return &assigned
}

func (s *Scope) within() *Scope { return &Scope{outer: s, setting: s.setting, nearest: s.nearest} }

// Define makes a scope with one more function, which has precedence over others of the same name.
func (s *Scope) Define(function *Function) *Scope {
	inner := s.within()
	inner.defined, inner.nearest = function, inner
	return inner
}

// Variable returns $name, nil when there is none.
func (s *Scope) Variable(name string) any { return s.lookup(name, place(name)) }

// place is the number of the argument that a variable is; 0 for $, -1 for none.
func place(name string) int {
	if name == "" {
		return 0
	}
	if n, err := strconv.Atoi(name); err == nil && n > 0 && strconv.Itoa(n) == name {
		return n
	}
	return -1
}

func (s *Scope) lookup(name string, place int) any {
	for ; s != nil; s = s.outer {
		switch {
		case s.args != nil:
			if place == 0 {
				return s.args[0]
			}
			if place > 0 && place <= len(s.args) {
				return s.args[place-1]
			}
		case s.single:
			if s.name == name {
				return s.inline[0]
			}
		case s.names != nil:
			if value, ok := s.names[name]; ok {
				return value
			}
		}
	}
	return nil
}

// Values calls visit for the value of every variable that expressions see in the scope.
func (s *Scope) Values(visit func(any)) {
	for ; s != nil; s = s.outer {
		for _, value := range s.args {
			visit(value)
		}
		if s.single {
			visit(s.inline[0])
		}
		for _, value := range s.names {
			visit(value)
		}
	}
}

// arguments makes a scope in which $, $1, $2 … are the values.
func (s *Scope) arguments(values []any) *Scope {
	inner := s.within()
	switch {
	case len(values) == 0:
	case len(values) <= len(inner.inline):
		inner.args = inner.inline[:copy(inner.inline[:], values)]
	default:
		inner.args = values
	}
	return inner
}

// candidates are the functions of that name; the nearest defined ones go first.
func (s *Scope) candidates(name string, kind Kind) []*Function {
	library := s.setting.functions.named(name, kind)
	var found []*Function
	for scope := s.nearest; scope != nil; scope = scope.outer.nearest {
		if f := scope.defined; f.Name == name && f.Kind&kind != 0 {
			found = append(found, f)
		}
	}
	if found == nil {
		return library
	}
	return append(found, library...)
}

// Error is why an expression has no value.
type Error struct {
	// Name is the name of Murano's exception, without a module, as "Catch: With" in a class has it.
	Name    string
	Message string
	Said    string // the message in Python's words; "" where there are none
	Source  string // of the expression
	Offset  int    // in bytes
	Err     error  // cause, may be nil
}

func (e *Error) Error() string {
	if e.Source == "" {
		return e.Message
	}
	return fmt.Sprintf("%s (at column %d of %q)", e.Message, e.Offset+1, e.Source)
}

func (e *Error) Unwrap() error { return e.Err }

// Names of errors.
const (
	NoFunction    = "NoFunctionRegisteredException"
	NoMethod      = "NoMethodRegisteredException"
	NoMatch       = "NoMatchingFunctionException"
	NoMatchMethod = "NoMatchingMethodException"
	BadMapping    = "MappingTranslationException"
	KeyMissing    = "KeyError"
	IndexMissing  = "IndexError"
	BadValue      = "ValueError"
	BadType       = "TypeError"
	BadPattern    = "error" // of Python's module re
	Overflow      = "OverflowError"
	DivideByZero  = "ZeroDivisionError"
	NoItem        = "StopIteration"
	Failed        = "AssertionError"
	TooLarge      = "CollectionTooLargeException"
	TooMuchMemory = "MemoryQuotaExceededException"
)

// saying adds the message of Python's YAQL.
func (e *Error) saying(format string, args ...any) *Error {
	e.Said = fmt.Sprintf(format, args...)
	return e
}

func failure(name, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Name: name, Message: wrapped.Error()}
}
