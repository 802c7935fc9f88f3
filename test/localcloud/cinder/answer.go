package cinder

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/test/localcloud/answer"
)

// statuses: an obstacle to a change is a bad request to Cinder.
var statuses = map[fault.Kind]int{
	fault.Invalid: http.StatusBadRequest, fault.Forbidden: http.StatusForbidden, fault.NotFound: http.StatusNotFound,
	fault.Conflict: http.StatusBadRequest, fault.TooLarge: http.StatusRequestEntityTooLarge,
}

func (s *Service) handle(h answer.Handler) http.Handler {
	return answer.Failures{Service: "cinder", Own: "The server has either erred or is incapable of performing the requested operation.", Statuses: statuses, Log: s.log}.Handle(h)
}

// inProject refuses paths of projects that the token is not for.
func inProject(h answer.Handler) answer.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if caller := identity.From(r.Context()); caller.ProjectID == "" || r.PathValue("project") != caller.ProjectID {
			return fault.New(fault.Invalid, "Malformed request url")
		}
		return h(w, r)
	}
}

func adminOnly(r *http.Request, rule string) error {
	if !identity.From(r.Context()).Admin {
		return fault.New(fault.Forbidden, "Policy doesn't allow %s to be performed.", rule)
	}
	return nil
}

// readJSON reads a request body of at most 1 MiB.
func readJSON(r *http.Request, into any) error {
	if err := answer.Read(r, into); err != nil {
		return fault.New(fault.Invalid, "Malformed request body: %v", err)
	}
	return nil
}

// page is the part of a list that a request selects by marker and limit, newest first.
func page[T any](r *http.Request, list []T, id func(T) string) ([]T, error) {
	slices.Reverse(list)
	query := r.URL.Query()
	if marker := query.Get("marker"); marker != "" {
		i := slices.IndexFunc(list, func(one T) bool { return id(one) == marker })
		if i < 0 {
			return nil, fault.New(fault.NotFound, "Marker %s could not be found.", marker)
		}
		list = list[i+1:]
	}
	if text := query.Get("limit"); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 0 {
			return nil, fault.New(fault.Invalid, "limit param must be an integer that is not negative, not %s", text)
		}
		list = list[:min(limit, len(list))]
	}
	return list, nil
}

func timestamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000")
}

func optional(text string) any {
	if text == "" {
		return nil
	}
	return text
}
