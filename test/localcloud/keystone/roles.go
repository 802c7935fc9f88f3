package keystone

import (
	"fmt"
	"net/http"
)

// Role is a row of the table of roles.
type Role struct{ ID, Name string }

// scope is what roles are held on and what a token is for: a project, a domain or the whole system. The zero scope is none.
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
	for _, a := range s.assignments.All() {
		if a.UserID == userID && a.Scope == on {
			if role, ok := s.roles.Get(a.RoleID); ok {
				roles = append(roles, role)
			}
		}
	}
	return roles
}

func (s *Service) roleBody(role Role) map[string]any {
	return map[string]any{
		"id": role.ID, "name": role.Name, "domain_id": nil, "description": nil, "options": map[string]any{},
		"links": s.self("roles", role.ID),
	}
}

func (s *Service) listAssignments(w http.ResponseWriter, r *http.Request, caller session) error {
	if !caller.admin() {
		return forbidden("identity:list_role_assignments")
	}
	bodies := []any{}
	for _, a := range s.assignments.All() {
		if !matches(r, "user.id", a.UserID) || !matches(r, "role.id", a.RoleID) ||
			!matches(r, "scope.project.id", a.Scope.ProjectID) || !matches(r, "scope.domain.id", a.Scope.DomainID) {
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
