package nova

import (
	"net/http"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Unauthorized: http.StatusUnauthorized, fault.Forbidden: http.StatusForbidden,
	fault.NotFound: http.StatusNotFound, fault.Conflict: http.StatusConflict, fault.TooLarge: http.StatusRequestEntityTooLarge,
}

func (s *Service) handle(h answer.Handler) http.Handler {
	return answer.Failures{Service: "nova", Own: "Unexpected API Error. The reason is in the log of the local cloud.", Statuses: statuses, Log: s.log}.Handle(h)
}

// inProject refuses tokens without a project: everything of Nova belongs to one.
func inProject(h answer.Handler) answer.Handler {
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

// links are the links of one resource of a collection.
func (s *Service) links(collection, id string) []map[string]any {
	return []map[string]any{
		{"rel": "self", "href": s.endpoint + "/compute/v2.1/" + collection + "/" + id},
		{"rel": "bookmark", "href": s.endpoint + "/compute/" + collection + "/" + id},
	}
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05Z") }
