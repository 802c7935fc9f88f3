package keystone

import (
	"net/http"

	"golang.org/x/crypto/bcrypt"
)

// User is a row of the table of users.
type User struct {
	ID, Name, DomainID, DefaultProjectID string
	PasswordHash                         string // bcrypt
	Disabled                             bool
}

func (u User) passwordIs(password string) bool {
	return bcrypt.CompareHashAndPassword([]byte(u.PasswordHash), []byte(password)) == nil
}

func (s *Service) findUser(name, domainID string) (User, bool) {
	for _, u := range s.users.All() {
		if u.Name == name && u.DomainID == domainID {
			return u, true
		}
	}
	return User{}, false
}

func (s *Service) userBody(u User) map[string]any {
	body := map[string]any{
		"id": u.ID, "name": u.Name, "domain_id": u.DomainID, "enabled": !u.Disabled, "options": map[string]any{},
		"password_expires_at": nil, "links": s.self("users", u.ID),
	}
	if u.DefaultProjectID != "" {
		body["default_project_id"] = u.DefaultProjectID
	}
	return body
}

func (s *Service) listUsers(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:list_users")
	}
	bodies := []any{}
	for _, u := range s.users.All() {
		if matches(r, "name", u.Name) && matches(r, "domain_id", u.DomainID) {
			bodies = append(bodies, s.userBody(u))
		}
	}
	s.writeList(w, r, "users", bodies)
	return nil
}

func (s *Service) showUser(w http.ResponseWriter, r *http.Request, caller session) error {
	id := r.PathValue("id")
	if !caller.admin() && caller.user.ID != id {
		return forbidden("identity:get_user")
	}
	user, ok := s.users.Get(id)
	if !ok {
		return notFound("user", id)
	}
	writeJSON(w, http.StatusOK, map[string]any{"user": s.userBody(user)})
	return nil
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
