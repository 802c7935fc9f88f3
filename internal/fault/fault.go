// Package fault gives errors of the caller's making their kind, so that each becomes an HTTP status in one place only.
//
// Everything that is not a fault is the server's own failure (status 500).
package fault

import (
	"errors"
	"fmt"
)

// Kind is the kind of a request's fault.
type Kind int

// The kinds, with the HTTP status each one becomes.
const (
	Invalid      Kind = iota + 1 // 400: the request's content cannot be used
	Unauthorized                 // 401: the caller is unknown
	Forbidden                    // 403: this caller, or this state, does not allow it
	NotFound                     // 404: there is no such thing
	Conflict                     // 409: it is there already
	TooLarge                     // 413: more than a limit admits
	TooMany                      // 429: more at the same time than a limit admits
)

// Error is a fault. Its message names the fault, its place, and the remedy.
type Error struct {
	Kind    Kind
	Message string
	Err     error // cause, may be nil
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// New makes a fault; format and args are those of fmt.Errorf, so %w wraps a cause.
func New(kind Kind, format string, args ...any) error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: wrapped.Error(), Err: errors.Unwrap(wrapped)}
}

// KindOf returns the kind of the first fault in err's chain, or 0 when there is none.
func KindOf(err error) Kind {
	var f *Error
	if errors.As(err, &f) {
		return f.Kind
	}
	return 0
}
