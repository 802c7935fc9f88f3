package answer

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/burano/burano/internal/fault"
)

// Handler answers one request; an error that it returns becomes the answer.
type Handler func(http.ResponseWriter, *http.Request) error

// Failure is an error with a status that faults do not have.
type Failure struct {
	Status  int
	Message string
}

func (f Failure) Error() string { return f.Message }

// faultNames are the keys under which Nova, and Cinder like it, write errors.
var faultNames = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "itemNotFound", http.StatusMethodNotAllowed: "badMethod", http.StatusConflict: "conflictingRequest",
	http.StatusRequestEntityTooLarge: "overLimit", http.StatusNotImplemented: "notImplemented",
}

// Failures are a service's answers to errors in Nova's form.
type Failures struct {
	Service  string // for the log
	Own      string // the answer when the service itself failed
	Statuses map[fault.Kind]int
	Log      *slog.Logger
}

// Handle serves by h.
func (f Failures) Handle(h Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		status, message := http.StatusInternalServerError, f.Own
		var failure Failure
		if errors.As(err, &failure) {
			status, message = failure.Status, failure.Message
		} else if known, ok := f.Statuses[fault.KindOf(err)]; ok {
			status, message = known, err.Error()
		} else {
			f.Log.ErrorContext(r.Context(), f.Service+" failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		WriteFailure(w, status, message)
	})
}

// WriteFailure writes one: an object whose one key is the name of the status.
func WriteFailure(w http.ResponseWriter, status int, message string) {
	name, ok := faultNames[status]
	if !ok {
		name = "computeFault" // in Cinder too, which was a part of Nova once
	}
	JSON(w, status, map[string]any{name: map[string]any{"code": status, "message": message}})
}
