package muranopl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/burano/burano/catalog/yaql"
	"github.com/burano/burano/internal/fault"
)

// Call calls a method, public or not, of an object (*Object) or of a class (TypeReference) with arguments by position and by name. Errors are returned as
// an *Exception, except the end of the context.
func (i *Interpreter) Call(ctx context.Context, receiver any, method string, args []any, named map[string]any) (any, error) {
	value, err := callFromGo(i.enter(ctx), receiver, method, args, named)
	switch {
	case err == nil:
		return plainValue(value), nil
	case ctx.Err() != nil:
		return nil, err
	}
	return nil, AsException(err)
}

func callFromGo(ctx context.Context, receiver any, method string, args []any, named map[string]any) (any, error) {
	class := classOf(receiver)
	if class == nil {
		return nil, raised("ValueError", "a method is called on an object or on a class; this is none")
	}
	m, err := class.Method(method)
	switch {
	case err != nil:
		return nil, ambiguousMethod(method, err)
	case m == nil:
		return nil, refused(fault.NotFound, dslExceptions+"NoMethodFound", "Method %q is not found", method)
	case m.Usage == RuntimeMethod && objectOf(receiver) == nil:
		return nil, raised("ValueError", "method %s is called on an object and not on the class", m.FullName())
	}
	return callMethod(ctx, receiver, method, args, named)
}

// Object is the object of that id among all that are there, nil when there is none.
func (i *Interpreter) Object(id string) *Object { return i.heap.named(id) }

// Caller is the method, with a body in MuranoPL, whose code calls the native method that the context was given to; nil when Go calls it.
func Caller(ctx context.Context) *Method {
	if s := strandOf(ctx); s != nil {
		return s.frame.method
	}
	return nil
}

// CallerObject is the object whose method, with a body in MuranoPL, calls the native method that the context was given to. It is nil when Go calls it, or
// a method without an object.
func CallerObject(ctx context.Context) *Object {
	s := strandOf(ctx)
	if s == nil {
		return nil
	}
	return s.frame.this()
}

// CallPath identifies a place of code with the calls that led to it. It is the same each time that the same packages take the same path; "" when Go calls.
func CallPath(ctx context.Context) string {
	s := strandOf(ctx)
	if s == nil {
		return ""
	}
	var b strings.Builder
	for _, frame := range s.stack() {
		fmt.Fprintf(&b, "%s.%s %s\n", frame.Class, frame.Method, frame.Position)
	}
	return b.String()
}

// mismatched converts the mismatch of arguments for code in MuranoPL.
func mismatched(err error) error {
	if errors.Is(err, errMismatch) {
		return &yaql.Error{Name: yaql.NoMatchMethod, Message: err.Error(), Err: err}
	}
	return err
}
