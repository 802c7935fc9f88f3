package keystone

import (
	"net/http"

	"github.com/burano/burano/test/localcloud/state"
)

// collection answers requests for what a table holds.
type collection[T any] struct {
	service  *Service
	singular string // "user"; the collection adds an s
	table    *state.Table[T]
	body     func(T) map[string]any
	filters  []string                             // fields of body by which a list can be narrowed
	own      func(caller session, id string) bool // who may look at one, beside admins; nil for nobody
}

func (c collection[T]) list(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:list_" + c.singular + "s")
	}
	bodies := []any{}
	for _, row := range c.table.All() {
		body, wanted := c.body(row), true
		for _, filter := range c.filters {
			value, _ := body[filter].(string)
			wanted = wanted && matches(r, filter, value)
		}
		if wanted {
			bodies = append(bodies, body)
		}
	}
	c.service.writeList(w, r, c.singular+"s", bodies)
	return nil
}

func (c collection[T]) show(w http.ResponseWriter, r *http.Request, caller session) error {
	id := r.PathValue("id")
	if !caller.admin() && (c.own == nil || !c.own(caller, id)) {
		return forbidden("identity:get_" + c.singular)
	}
	row, ok := c.table.Get(id)
	if !ok {
		return notFound(c.singular, id)
	}
	writeJSON(w, http.StatusOK, map[string]any{c.singular: c.body(row)})
	return nil
}

// first finds the first row that is wanted.
func first[T any](table *state.Table[T], wanted func(T) bool) (T, bool) {
	for _, row := range table.All() {
		if wanted(row) {
			return row, true
		}
	}
	var none T
	return none, false
}

// self is the "links" object of a resource.
func (s *Service) self(collection, id string) map[string]any {
	return map[string]any{"self": s.endpoint + "/identity/v3/" + collection + "/" + id}
}

// matches tells whether a value passes the query's filter of this name, which may be absent.
func matches(r *http.Request, filter, value string) bool {
	query := r.URL.Query()
	return !query.Has(filter) || query.Get(filter) == value
}

func (s *Service) writeList(w http.ResponseWriter, r *http.Request, collection string, bodies []any) {
	writeJSON(w, http.StatusOK, map[string]any{
		collection: bodies,
		"links":    map[string]any{"next": nil, "previous": nil, "self": s.endpoint + "/identity" + r.URL.RequestURI()},
	})
}
