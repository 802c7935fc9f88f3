package nova

import (
	"errors"
	"net/http"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// handler answers one request; an error that it returns becomes Nova's error body.
type handler func(http.ResponseWriter, *http.Request) error

// failure is an error with a status that faults do not have.
type failure struct {
	status  int
	message string
}

func (f failure) Error() string { return f.message }

// faultNames are the keys under which Nova writes errors.
var faultNames = map[int]string{
	http.StatusBadRequest: "badRequest", http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden",
	http.StatusNotFound: "itemNotFound", http.StatusMethodNotAllowed: "badMethod", http.StatusConflict: "conflictingRequest",
	http.StatusRequestEntityTooLarge: "overLimit", http.StatusNotImplemented: "notImplemented",
}

var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unauthorized: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict, fault.TooLarge: http.StatusRequestEntityTooLarge,
}

func (s *Service) handle(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := h(w, r)
		if err == nil {
			return
		}
		status, message := http.StatusInternalServerError, "Unexpected API Error. The reason is in the log of the local cloud."
		var f failure
		if errors.As(err, &f) {
			status, message = f.status, f.message
		} else if kind, ok := statuses[fault.KindOf(err)]; ok {
			status, message = kind, err.Error()
		} else {
			s.log.ErrorContext(r.Context(), "nova failed", "method", r.Method, "path", r.URL.Path, "error", err)
		}
		writeFailure(w, status, message)
	})
}

func writeFailure(w http.ResponseWriter, status int, message string) {
	name, ok := faultNames[status]
	if !ok {
		name = "computeFault"
	}
	answer.JSON(w, status, map[string]any{name: map[string]any{"code": status, "message": message}})
}

// inProject refuses tokens without a project: everything of Nova belongs to one.
func inProject(h handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if identity.From(r.Context()).ProjectID == "" {
			return fault.New(fault.Forbidden, "Policy doesn't allow this to be performed: the token has no project.")
		}
		return h(w, r)
	}
}

// readJSON reads a request body of at most 1 MiB.
func readJSON(r *http.Request, into any) error {
	if err := answer.Read(r, into); err != nil {
		return fault.New(fault.Invalid, "Malformed request body: %v", err)
	}
	return nil
}

// links are those of one resource of a collection.
func (s *Service) links(collection, id string) []map[string]any {
	return []map[string]any{
		{"rel": "self", "href": s.endpoint + "/compute/v2.1/" + collection + "/" + id},
		{"rel": "bookmark", "href": s.endpoint + "/compute/" + collection + "/" + id},
	}
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
