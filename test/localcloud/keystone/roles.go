package keystone

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// Role is a row of the table of roles.
type Role struct{ ID, Name, Description string }

// scope is the target of roles and tokens: a project, a domain or the whole system. The zero scope is none.
type scope struct {
	ProjectID, DomainID string
	System              bool
}

// assignment gives a user a role on a scope.
type assignment struct {
	UserID, RoleID string
	Scope          scope
}

func (a assignment) key() string {
	return fmt.Sprintf("%s %s %s %s %t", a.UserID, a.RoleID, a.Scope.ProjectID, a.Scope.DomainID, a.Scope.System)
}

func (s *Service) findRole(name string) (Role, bool) {
	return first(s.roles, func(r Role) bool { return r.Name == name })
}

// rolesOf lists the roles that a user holds on a scope.
func (s *Service) rolesOf(userID string, on scope) []Role {
	var roles []Role
	if on == (scope{}) {
		return nil
	}
	for _, a := range s.assignments.Where(func(a assignment) bool { return a.UserID == userID && a.Scope == on }) {
		if role, ok := s.roles.Get(a.RoleID); ok {
			roles = append(roles, role)
		}
	}
	return roles
}

func (s *Service) roleBody(role Role) map[string]any {
	return map[string]any{
		"id": role.ID, "name": role.Name, "domain_id": nil, "description": role.Description, "options": map[string]any{},
		"links": s.self("roles", role.ID),
	}
}

func (s *Service) roleCollection() collection[Role] {
	return collection[Role]{
		service: s, singular: "role", table: s.roles, body: s.roleBody, filters: []string{"name"},
		id: func(r Role) string { return r.ID }, made: func(id string) Role { return Role{ID: id} },
		change: s.changeRole, remove: s.removeRole,
	}
}

func (s *Service) changeRole(_ session, role *Role, wanted json.RawMessage) error {
	var w struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
		DomainID    *string `json:"domain_id"`
	}
	if err := readWanted("role", wanted, &w); err != nil {
		return err
	}
	if w.DomainID != nil {
		return invalid("Invalid input for field 'domain_id': this Keystone has no roles of one domain")
	}
	set(&role.Name, w.Name)
	set(&role.Description, w.Description)
	if err := named("role", role.Name); err != nil {
		return err
	}
	if other, taken := s.findRole(role.Name); taken && other.ID != role.ID {
		return conflict("role", "Duplicate entry found with name "+role.Name)
	}
	return nil
}

// removeRole deletes a role, takes it from all who hold it, and ends the application credentials that have it.
func (s *Service) removeRole(role Role) error {
	if err := deleteWhere(s.assignments, assignment.key, func(a assignment) bool { return a.RoleID == role.ID }); err != nil {
		return err
	}
	if err := s.endCredentials(func(c applicationCredential) bool { return slices.Contains(c.RoleIDs, role.ID) }); err != nil {
		return err
	}
	_, err := s.roles.Delete(role.ID)
	return err
}

// granted is the assignment that a path such as /projects/{project}/users/{user}/roles/{role} names, for admins. Without {role}
// it names none.
func (s *Service) granted(r *http.Request, caller session, action string) (assignment, error) {
	a := assignment{UserID: r.PathValue("user"), RoleID: r.PathValue("role"), Scope: scope{
		ProjectID: r.PathValue("project"), DomainID: r.PathValue("domain"),
	}}
	a.Scope.System = a.Scope == scope{}
	if !caller.admin() {
		return a, forbidden("identity:" + action)
	}
	if _, ok := s.projects.Get(a.Scope.ProjectID); a.Scope.ProjectID != "" && !ok {
		return a, notFound("project", a.Scope.ProjectID)
	}
	if _, ok := s.domains.Get(a.Scope.DomainID); a.Scope.DomainID != "" && !ok {
		return a, notFound("domain", a.Scope.DomainID)
	}
	if _, ok := s.users.Get(a.UserID); !ok {
		return a, notFound("user", a.UserID)
	}
	if _, ok := s.roles.Get(a.RoleID); a.RoleID != "" && !ok {
		return a, notFound("role", a.RoleID)
	}
	return a, nil
}

func (s *Service) listGrants(w http.ResponseWriter, r *http.Request, caller session) error {
	a, err := s.granted(r, caller, "list_grants")
	if err != nil {
		return err
	}
	bodies := []any{}
	for _, role := range s.rolesOf(a.UserID, a.Scope) {
		bodies = append(bodies, s.roleBody(role))
	}
	s.writeList(w, r, "roles", bodies)
	return nil
}

func (s *Service) checkGrant(w http.ResponseWriter, r *http.Request, caller session) error {
	a, err := s.granted(r, caller, "check_grant")
	if err != nil {
		return err
	}
	if _, ok := s.assignments.Get(a.key()); !ok {
		return notFound("role assignment with role", a.RoleID)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) grant(w http.ResponseWriter, r *http.Request, caller session) error {
	a, err := s.granted(r, caller, "create_grant")
	if err != nil {
		return err
	}
	if err := s.assignments.Put(a.key(), a); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// ungrant takes a role from a user. The user's application credentials in the project end with it, as in Keystone; tokens just have the
// role no longer.
func (s *Service) ungrant(w http.ResponseWriter, r *http.Request, caller session) error {
	a, err := s.granted(r, caller, "revoke_grant")
	if err != nil {
		return err
	}
	found, err := s.assignments.Delete(a.key())
	if err != nil {
		return err
	}
	if !found {
		return notFound("role assignment with role", a.RoleID)
	}
	ended := func(c applicationCredential) bool { return c.UserID == a.UserID && c.ProjectID == a.Scope.ProjectID }
	if err := s.endCredentials(ended); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Service) listAssignments(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:list_role_assignments")
	}
	bodies := []any{}
	for _, a := range s.assignments.All() {
		if !matches(r, "user.id", a.UserID) || !matches(r, "role.id", a.RoleID) ||
			!matches(r, "scope.project.id", a.Scope.ProjectID) || !matches(r, "scope.domain.id", a.Scope.DomainID) ||
			(r.URL.Query().Has("scope.system") && !a.Scope.System) {
			continue
		}
		bodies = append(bodies, s.assignmentBody(a, r.URL.Query().Has("include_names")))
	}
	s.writeList(w, r, "role_assignments", bodies)
	return nil
}

func (s *Service) assignmentBody(a assignment, names bool) map[string]any {
	user := map[string]any{"id": a.UserID}
	role := map[string]any{"id": a.RoleID}
	on := map[string]any{}
	path := "/identity/v3/system"
	switch {
	case a.Scope.System:
		on["system"] = map[string]any{"all": true}
	case a.Scope.DomainID != "":
		domain := map[string]any{"id": a.Scope.DomainID}
		if d, ok := s.domains.Get(a.Scope.DomainID); ok && names {
			domain["name"] = d.Name
		}
		on["domain"], path = domain, "/identity/v3/domains/"+a.Scope.DomainID
	default:
		project := map[string]any{"id": a.Scope.ProjectID}
		if p, ok := s.projects.Get(a.Scope.ProjectID); ok && names {
			project["name"], project["domain"] = p.Name, s.domainReference(p.DomainID)
		}
		on["project"], path = project, "/identity/v3/projects/"+a.Scope.ProjectID
	}
	if names {
		if u, ok := s.users.Get(a.UserID); ok {
			user["name"], user["domain"] = u.Name, s.domainReference(u.DomainID)
		}
		if found, ok := s.roles.Get(a.RoleID); ok {
			role["name"] = found.Name
		}
	}
	return map[string]any{"user": user, "role": role, "scope": on, "links": map[string]any{
		"assignment": s.endpoint + path + "/users/" + a.UserID + "/roles/" + a.RoleID,
	}}
}

func (s *Service) domainReference(id string) map[string]any {
	domain, _ := s.domains.Get(id)
	return map[string]any{"id": id, "name": domain.Name}
}
