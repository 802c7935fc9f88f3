package heat

import (
	"context"
	"errors"
	"fmt"

	"github.com/burano/burano/internal/fault"
)

// Error is a client's fault, in Heat's words; Type is the name of Heat's exception.
type Error struct {
	Status        int
	Type, Message string
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the fault of the same status.
func (e *Error) Unwrap() error {
	kind := map[int]fault.Kind{400: fault.Invalid, 403: fault.Forbidden, 404: fault.NotFound, 409: fault.Conflict}[e.Status]
	return fault.New(kind, "%s", e.Message)
}

func invalid(kind, format string, args ...any) error {
	return &Error{Status: 400, Type: kind, Message: fmt.Sprintf(format, args...)}
}

func invalidTemplate(format string, args ...any) error {
	return invalid("InvalidTemplate", format, args...)
}

func notValid(format string, args ...any) error {
	return invalid("StackValidationFailed", format, args...)
}

func notFound(what, name string) error {
	return &Error{Status: 404, Type: "EntityNotFound", Message: fmt.Sprintf("The %s (%s) could not be found.", what, name)}
}

// failure is why a resource failed; its text is Heat's: kind, place, reason.
type failure struct {
	kind, resource, action string
	err                    error
}

func (f *failure) Error() string {
	return fmt.Sprintf("%s: resources.%s: %v", f.kind, f.resource, f.err)
}

func (f *failure) Unwrap() error { return f.err }

// inError is a server that went to ERROR.
type inError struct{ reason string }

func (e *inError) Error() string {
	return fmt.Sprintf("Went to status ERROR due to \"Message: %s, Code: 500\"", e.reason)
}

// kindOf is the name of the exception with which Heat's clients would have failed.
func kindOf(err error) string {
	var server *inError
	if errors.As(err, &server) {
		return "ResourceInError"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "Timeout"
	}
	switch fault.KindOf(err) {
	case fault.Invalid:
		return "BadRequest"
	case fault.NotFound:
		return "NotFound"
	case fault.Conflict:
		return "Conflict"
	case fault.Forbidden:
		return "Forbidden"
	}
	return "Exception"
}

func isNotFound(err error) bool { return fault.KindOf(err) == fault.NotFound }
