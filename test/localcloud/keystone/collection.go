package keystone

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/burano/burano/test/localcloud/state"
)

// collection answers requests for the content of a table. Only admins make, change and delete.
type collection[T any] struct {
	service  *Service
	singular string // "user"; the collection adds an s
	table    *state.Table[T]
	body     func(T) map[string]any
	filters  []string                             // fields of body by which a list can be narrowed
	own      func(caller session, id string) bool // whether a caller may see one, beside admins; nil: none
	public   bool                                 // all callers may see all

	id      func(T) string
	change  func(caller session, row *T, wanted json.RawMessage) error // a new row's as well, which is empty but for its id
	made    func(id string) T
	changed func(before, after T) error // the cleanup after a change; nil for none
	remove  func(T) error               // deletes the row and its dependents
}

func (c collection[T]) list(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() && !c.public {
		return forbidden("identity:list_" + c.singular + "s")
	}
	bodies := []any{}
	for _, row := range c.table.All() {
		body, wanted := c.body(row), true
		for _, filter := range c.filters {
			if yes, is := body[filter].(bool); is {
				query := r.URL.Query()
				wanted = wanted && (!query.Has(filter) || strings.EqualFold(query.Get(filter), fmt.Sprint(yes)))
				continue
			}
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
	if !caller.admin() && !c.public && (c.own == nil || !c.own(caller, id)) {
		return forbidden("identity:get_" + c.singular)
	}
	row, ok := c.table.Get(id)
	if !ok {
		return notFound(c.singular, id)
	}
	writeJSON(w, http.StatusOK, map[string]any{c.singular: c.body(row)})
	return nil
}

// wanted reads a request's desired state of a row.
func (c collection[T]) wanted(r *http.Request) (json.RawMessage, error) {
	var request map[string]json.RawMessage
	if err := readJSON(r, &request); err != nil {
		return nil, err
	}
	wanted, ok := request[c.singular]
	if !ok {
		return nil, invalid("Invalid input: '%s' is a required property", c.singular)
	}
	return wanted, nil
}

func (c collection[T]) create(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:create_" + c.singular)
	}
	wanted, err := c.wanted(r)
	if err != nil {
		return err
	}
	row := c.made(newID())
	if err := c.change(caller, &row, wanted); err != nil {
		return err
	}
	if err := c.table.Put(c.id(row), row); err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, map[string]any{c.singular: c.body(row)})
	return nil
}

func (c collection[T]) update(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:update_" + c.singular)
	}
	before, ok := c.table.Get(r.PathValue("id"))
	if !ok {
		return notFound(c.singular, r.PathValue("id"))
	}
	wanted, err := c.wanted(r)
	if err != nil {
		return err
	}
	after := before
	if err := c.change(caller, &after, wanted); err != nil {
		return err
	}
	if err := c.table.Put(c.id(after), after); err != nil {
		return err
	}
	if c.changed != nil {
		if err := c.changed(before, after); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{c.singular: c.body(after)})
	return nil
}

func (c collection[T]) delete(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:delete_" + c.singular)
	}
	row, ok := c.table.Get(r.PathValue("id"))
	if !ok {
		return notFound(c.singular, r.PathValue("id"))
	}
	if err := c.remove(row); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// set replaces a field by a request's value; omitted fields stay.
func set[T any](field *T, wanted *T) {
	if wanted != nil {
		*field = *wanted
	}
}

// readWanted decodes a request's object; kind is its key there.
func readWanted(kind string, wanted json.RawMessage, into any) error {
	if err := json.Unmarshal(wanted, into); err != nil {
		return invalid("Invalid input for field '%s': %v", kind, err)
	}
	return nil
}

// named refuses a row without a name.
func named(kind, name string) error {
	if name == "" {
		return invalid("Invalid input for field '%s': 'name' is a required property and must not be empty", kind)
	}
	return nil
}

// conflict is the refusal of an existing object.
func conflict(kind, why string) failure {
	return failure{http.StatusConflict, "Conflict occurred attempting to store " + kind + " - " + why + "."}
}

// deleteWhere deletes the rows that are wanted.
func deleteWhere[T any](table *state.Table[T], id func(T) string, wanted func(T) bool) error {
	for _, row := range table.Where(wanted) {
		if _, err := table.Delete(id(row)); err != nil {
			return err
		}
	}
	return nil
}

// first finds the first row that is wanted.
func first[T any](table *state.Table[T], wanted func(T) bool) (T, bool) {
	found := table.Where(wanted)
	if len(found) == 0 {
		var none T
		return none, false
	}
	return found[0], true
}

// self is the "links" object of a resource.
func (s *Service) self(collection, id string) map[string]any {
	return map[string]any{"self": s.endpoint + "/identity/v3/" + collection + "/" + id}
}

// matches reports whether a value passes the query's filter of this name, which may be absent.
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
