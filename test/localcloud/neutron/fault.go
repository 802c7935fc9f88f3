package neutron

import (
	"fmt"

	"github.com/burano/burano/internal/fault"
)

// Error is a client's fault, in Neutron's words. It is also a fault of package fault.
type Error struct {
	Status  int    // HTTP status
	Type    string // name of Neutron's exception, as in its answers
	Message string
}

func (e *Error) Error() string { return e.Message }

// Unwrap gives the fault of the same status.
func (e *Error) Unwrap() error {
	kind := map[int]fault.Kind{400: fault.Invalid, 401: fault.Unauthorized, 403: fault.Forbidden, 404: fault.NotFound, 409: fault.Conflict}[e.Status]
	return fault.New(kind, "%s", e.Message)
}

func problem(status int, kind, format string, args ...any) error {
	return &Error{Status: status, Type: kind, Message: fmt.Sprintf(format, args...)}
}

func invalid(format string, args ...any) error {
	return problem(400, "InvalidInput", "Invalid input for operation: "+format+".", args...)
}

func notFound(what, title, id string) error {
	return problem(404, what+"NotFound", "%s %s could not be found.", title, id)
}

func conflict(kind, format string, args ...any) error { return problem(409, kind, format, args...) }

func disallowed(rule string) error {
	return problem(403, "PolicyNotAuthorized", "rule:%s is disallowed by policy", rule)
}
