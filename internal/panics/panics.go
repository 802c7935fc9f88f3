// Package panics makes errors of panics, so that a defect that one user's work meets ends this work and not the server.
package panics

import (
	"fmt"
	"runtime/debug"
)

// Error is a panic. Its message is for users; the stack is for the server's log.
type Error struct {
	Value any
	Stack []byte
}

func (e *Error) Error() string {
	return fmt.Sprintf("Burano itself failed: %v. Please report this as a defect", e.Value)
}

// Catch makes an *Error of a panic. It is deferred with the address of the function's own error; a panic in another goroutine than the
// function's is not caught.
func Catch(err *error) {
	if value := recover(); value != nil {
		*err = &Error{Value: value, Stack: debug.Stack()}
	}
}

// Run runs do and returns its error, or its panic as an *Error.
func Run(do func() error) (err error) {
	defer Catch(&err)
	return do()
}
