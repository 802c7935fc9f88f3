package muranopl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// Exception is an error as code in MuranoPL sees it: a value of Throw, or the conversion of an error of native code or of the language that reaches a
// method's body. An error of Go with other names than those of the table below has a method ExceptionNames() []string. One with ExceptionExtra()
// map[string]any supplies Extra.
type Exception struct {
	Names   []string // fully qualified; Catch asks for one of them
	Message string
	Extra   map[string]any
	Cause   *Exception
	// Frames are the calls that led to it, the outermost first.
	Frames []Frame
	// Native is the error of Go that it was made of, nil for one that Throw raised.
	Native error
}

// Frame is a call of a method that an exception passed through.
type Frame struct {
	Method, Class string
	Object        *Object // whose method it is; nil for a static one
	// Instruction is the text of the instruction that was being run.
	Instruction string
	Position    Position // its File is "" in native code
}

// Error is names and message, as the results of actions show them; of an error of Go its own text.
func (e *Exception) Error() string {
	if e.Native != nil {
		return e.Native.Error()
	}
	return fmt.Sprintf("[%s]: %s", strings.Join(e.Names, ", "), e.Message)
}

func (e *Exception) Unwrap() error { return e.Native }

// Object returns the object whose method raised the exception, without the tools of io.murano.system; nil if there is none.
func (e *Exception) Object() *Object {
	for _, frame := range slices.Backward(e.Frames) {
		if frame.Object != nil && !strings.HasPrefix(frame.Object.Class().Name, "io.murano.system.") {
			return frame.Object
		}
	}
	return nil
}

// Traceback returns the exception with its stack, and the stacks of its causes, as Murano writes them.
func (e *Exception) Traceback() string { return e.traceback("") }

func (e *Exception) traceback(prefix string) string {
	var b strings.Builder
	name := strings.Join(e.Names, ", ")
	if len(e.Names) > 1 {
		name = "[" + name + "]"
	}
	fmt.Fprintf(&b, "%s%s: %s\n%sTraceback (most recent call last):\n%s", prefix, name, e.Message, prefix, FormatFrames(e.Frames, prefix+"  "))
	if e.Cause != nil {
		fmt.Fprintf(&b, "\n\n%s Caused by %s", prefix, strings.TrimLeft(e.Cause.traceback(prefix+" "), " "))
	}
	return b.String()
}

// FormatFrames writes frames as Murano's stack traces have them, each line after the prefix.
func FormatFrames(frames []Frame, prefix string) string {
	lines := make([]string, len(frames))
	for n, f := range frames {
		method := f.Method
		if f.Class != "" {
			method += " of type " + f.Class
		}
		if f.Position.File == "" {
			lines[n] = fmt.Sprintf("%sFile <unknown> in method %s\n%s    %s", prefix, method, prefix, f.Instruction)
			continue
		}
		lines[n] = fmt.Sprintf("%sFile \"%s\", line %d:%d in method %s\n%s    %s",
			prefix, f.Position.File, f.Position.Line, f.Position.Column, method, prefix, f.Instruction)
	}
	return strings.Join(lines, "\n")
}

// Names of exceptions that the language itself raises.
const (
	dslExceptions  = "murano.dsl.exceptions."
	yaqlExceptions = "yaql.language.exceptions."

	ContractViolation = dslExceptions + "ContractViolationException"
)

// raised makes an exception of the language; the name is one of Python's or, with dsl, of Murano's.
func raised(name, format string, args ...any) *Exception {
	return &Exception{Names: []string{name}, Message: fmt.Sprintf(format, args...)}
}

// refused is raised by the language for something that a request may have asked for as well.
func refused(kind fault.Kind, name, format string, args ...any) *Exception {
	return &Exception{Names: []string{name}, Message: fmt.Sprintf(format, args...), Native: fault.New(kind, format, args...)}
}

// AsException converts an error for code in MuranoPL. Its names are those that Python's Murano gives such an error:
//
//	Throw                                  as thrown
//	an error with ExceptionNames()         these
//	a value that breaks a contract         murano.dsl.exceptions.ContractViolationException
//	a property without a value             murano.dsl.exceptions.UninitializedPropertyAccessError
//	YAQL: no such function or method, …    yaql.language.exceptions.NoFunctionRegisteredException, …
//	YAQL: values                           KeyError, IndexError, ValueError, TypeError, ZeroDivisionError, StopIteration, …
//	a deadline that passed                 murano.common.exceptions.TimeoutException
//	files and connections                  OSError
//	a fault: NotFound, Forbidden, Invalid  LookupError, PermissionError, ValueError
//	everything else                        Exception
func AsException(err error) *Exception {
	var e *Exception
	if errors.As(err, &e) {
		return e
	}
	made := &Exception{Names: []string{exceptionName(err)}, Message: err.Error(), Native: err}
	var named interface{ ExceptionNames() []string }
	if errors.As(err, &named) {
		made.Names = named.ExceptionNames()
	}
	var detailed interface{ ExceptionExtra() map[string]any }
	if errors.As(err, &detailed) {
		made.Extra = detailed.ExceptionExtra()
	}
	var contract *contractError
	if errors.As(err, &contract) {
		made.Message = contract.violation
	}
	var y *yaql.Error
	if errors.As(err, &y) {
		made.Message = cmp.Or(y.Said, y.Message)
	}
	if u := uninitialised(err); u != nil {
		made.Message = u.violation()
	}
	return made
}

func exceptionName(err error) string {
	var y *yaql.Error
	var path *fs.PathError
	var contract *contractError
	switch {
	case errors.As(err, &contract):
		return cmp.Or(contract.name, ContractViolation)
	case uninitialised(err) != nil:
		return dslExceptions + "UninitializedPropertyAccessError"
	case errors.As(err, &y) && y.Name != "":
		if slices.Contains([]string{yaql.NoFunction, yaql.NoMethod, yaql.NoMatch, yaql.NoMatchMethod, yaql.BadMapping, yaql.TooLarge, yaql.TooMuchMemory}, y.Name) {
			return yaqlExceptions + y.Name
		}
		return y.Name
	case errors.Is(err, context.DeadlineExceeded):
		return "murano.common.exceptions.TimeoutException"
	case errors.As(err, &path):
		return "OSError"
	}
	switch fault.KindOf(err) {
	case fault.NotFound:
		return "LookupError"
	case fault.Forbidden, fault.Unauthorized:
		return "PermissionError"
	case fault.Invalid, fault.Conflict, fault.TooLarge:
		return "ValueError"
	}
	return "Exception"
}

// ambiguousMethod is that several ancestors have a method, as code sees it.
func ambiguousMethod(name string, err error) error {
	return &Exception{Names: []string{dslExceptions + "AmbiguousMethodName"}, Message: fmt.Sprintf("Found more than one method %q", name), Native: err}
}

// contractError is a value that breaks a contract, in the words of a Problem and in Murano's.
type contractError struct {
	err       error
	violation string
	name      string // of the exception; "" is that of violated contracts
}

// refusal is a problem of a model that code gave, as code sees it.
func (l *loader) refusal(problem Problem) error {
	return &contractError{problem, cmp.Or(problem.Message, l.violation, problem.Wanted), problem.Name}
}

func (e *contractError) Error() string { return e.err.Error() }

func (e *contractError) Unwrap() error { return e.err }

// exceptionObject makes the object of io.murano.Exception that Catch binds.
// name is that of its names by which it was caught.
func (s *strand) exceptionObject(ctx context.Context, e *Exception, name string) any {
	class, err := s.frame.interpreter.classes.Class(ctx, "io.murano.Exception", "")
	if err != nil { // a core library without the class: the content is a map
		return yaql.NewDict(yaql.Entry{Key: "name", Value: name}, yaql.Entry{Key: "message", Value: e.Message})
	}
	values := map[string]any{"name": name, "message": e.Message, "extra": map[string]any{}, "cause": nil, "nativeException": nil}
	if e.Extra != nil {
		values["extra"] = e.Extra
	}
	if e.Cause != nil {
		values["cause"] = s.exceptionObject(ctx, e.Cause, first(e.Cause.Names))
	}
	if trace, err := s.frame.interpreter.classes.Class(ctx, "io.murano.StackTrace", ""); err == nil {
		values["stackTrace"] = s.frame.interpreter.bare(trace, map[string]any{"frames": frameMaps(e.Frames)})
	}
	object := s.frame.interpreter.bare(class, values)
	object.exception = e
	return object
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}

// frameMaps are the frames as the property "frames" of io.murano.StackTrace has them.
func frameMaps(frames []Frame) []any {
	made := make([]any, len(frames))
	for n, f := range frames {
		made[n] = map[string]any{"instruction": f.Instruction, "methodName": f.Method, "typeName": f.Class,
			"location": map[string]any{"filePath": f.Position.File, "line": int64(f.Position.Line), "column": int64(f.Position.Column)}}
	}
	return made
}

// Exception returns the exception of an object of class io.murano.Exception; nil for other objects.
func (o *Object) Exception() *Exception { return o.exception }
