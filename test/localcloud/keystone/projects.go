package keystone

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
)

// DefaultDomain is the id of the domain of the local cloud's users and projects.
const DefaultDomain = "default"

// Domain is a row of the table of domains.
type Domain struct {
	ID, Name, Description string
	Disabled              bool
}

// Project is a row of the table of projects. ParentID is "" for a project directly in its domain.
type Project struct {
	ID, Name, DomainID, ParentID, Description string
	Tags                                      []string
	Disabled                                  bool
}

func (s *Service) findProject(name, domainID string) (Project, bool) {
	return first(s.projects, func(p Project) bool { return p.Name == name && p.DomainID == domainID })
}

func (s *Service) findDomain(name string) (Domain, bool) {
	return first(s.domains, func(d Domain) bool { return d.Name == name })
}

// enabledProject is a project that, with its domain, is there and enabled.
func (s *Service) enabledProject(id string) bool {
	p, ok := s.projects.Get(id)
	return ok && !p.Disabled && s.enabledDomain(p.DomainID)
}

func (s *Service) enabledDomain(id string) bool {
	d, ok := s.domains.Get(id)
	return ok && !d.Disabled
}

// enabledUser is a user that, with its domain, is enabled.
func (s *Service) enabledUser(id string) bool {
	u, ok := s.users.Get(id)
	return ok && !u.Disabled && s.enabledDomain(u.DomainID)
}

func (s *Service) projectBody(p Project) map[string]any {
	return map[string]any{
		"id": p.ID, "name": p.Name, "domain_id": p.DomainID, "parent_id": cmp.Or(p.ParentID, p.DomainID), "description": p.Description,
		"enabled": !p.Disabled, "is_domain": false, "tags": append([]string{}, p.Tags...), "options": map[string]any{},
		"links": s.self("projects", p.ID),
	}
}

func (s *Service) domainBody(d Domain) map[string]any {
	return map[string]any{
		"id": d.ID, "name": d.Name, "description": d.Description, "enabled": !d.Disabled, "tags": []string{},
		"options": map[string]any{}, "links": s.self("domains", d.ID),
	}
}

func (s *Service) projectCollection() collection[Project] {
	return collection[Project]{
		service: s, singular: "project", table: s.projects, body: s.projectBody,
		filters: []string{"name", "domain_id", "parent_id", "enabled", "is_domain"},
		own:     func(c session, id string) bool { return c.scope.ProjectID == id },
		id:      func(p Project) string { return p.ID }, made: func(id string) Project { return Project{ID: id} },
		change: s.changeProject, changed: s.projectChanged, remove: s.removeProject,
	}
}

func (s *Service) changeProject(caller session, p *Project, wanted json.RawMessage) error {
	var w struct {
		Name        *string   `json:"name"`
		DomainID    *string   `json:"domain_id"`
		ParentID    *string   `json:"parent_id"`
		Description *string   `json:"description"`
		Enabled     *bool     `json:"enabled"`
		IsDomain    bool      `json:"is_domain"`
		Tags        *[]string `json:"tags"`
	}
	if err := readWanted("project", wanted, &w); err != nil {
		return err
	}
	if w.IsDomain {
		return invalid("Invalid input for field 'is_domain': this Keystone makes domains under /v3/domains only")
	}
	if w.ParentID != nil {
		parent, isProject := s.projects.Get(*w.ParentID)
		_, isDomain := s.domains.Get(*w.ParentID)
		switch {
		case p.Name != "" && *w.ParentID != cmp.Or(p.ParentID, p.DomainID):
			return forbidden("Update of `parent_id` is not allowed")
		case isProject && (w.DomainID == nil || *w.DomainID == parent.DomainID):
			p.ParentID, w.DomainID = parent.ID, &parent.DomainID
		case isDomain && (w.DomainID == nil || *w.DomainID == *w.ParentID):
			w.DomainID = w.ParentID
		case isProject || isDomain:
			return invalid("Cannot create project, since it specifies its domain_id %s, but its parent is in another domain.", *w.DomainID)
		default:
			return notFound("project", *w.ParentID)
		}
	}
	if err := s.setDomain(caller, &p.DomainID, w.DomainID); err != nil {
		return err
	}
	set(&p.Name, w.Name)
	set(&p.Description, w.Description)
	set(&p.Tags, w.Tags)
	if w.Enabled != nil {
		p.Disabled = !*w.Enabled
	}
	if err := named("project", p.Name); err != nil {
		return err
	}
	if other, taken := s.findProject(p.Name, p.DomainID); taken && other.ID != p.ID {
		return conflict("project", "it is not permitted to have two projects with the same name in the same domain: "+p.Name)
	}
	return nil
}

// setDomain puts a new user or project into the domain that is wanted, or into that of the caller's scope. It stays there.
func (s *Service) setDomain(caller session, field, wanted *string) error {
	switch {
	case *field != "" && wanted != nil && *wanted != *field:
		return invalid("Cannot change Domain ID")
	case *field != "":
		return nil
	case wanted != nil:
		*field = *wanted
	case caller.scope.DomainID != "":
		*field = caller.scope.DomainID
	default:
		*field = DefaultDomain
		if p, ok := s.projects.Get(caller.scope.ProjectID); ok {
			*field = p.DomainID
		}
	}
	if _, ok := s.domains.Get(*field); !ok {
		return notFound("domain", *field)
	}
	return nil
}

// projectChanged ends the tokens of a project that is disabled.
func (s *Service) projectChanged(_, after Project) error {
	if after.Disabled {
		return s.endTokens(func(t token) bool { return t.Scope.ProjectID == after.ID })
	}
	return nil
}

// removeProject deletes a project with the roles on it and the credentials of users in it.
func (s *Service) removeProject(p Project) error {
	if _, parent := first(s.projects, func(other Project) bool { return other.ParentID == p.ID }); parent {
		return failure{http.StatusForbidden, "Cannot delete the project " + p.ID + " since it is not a leaf in the hierarchy."}
	}
	if err := deleteWhere(s.assignments, assignment.key, func(a assignment) bool { return a.Scope.ProjectID == p.ID }); err != nil {
		return err
	}
	if err := s.endCredentials(func(c applicationCredential) bool { return c.ProjectID == p.ID }); err != nil {
		return err
	}
	if err := s.endTrusts(func(t trust) bool { return t.ProjectID == p.ID }); err != nil {
		return err
	}
	if err := s.endTokens(func(t token) bool { return t.Scope.ProjectID == p.ID }); err != nil {
		return err
	}
	_, err := s.projects.Delete(p.ID)
	return err
}

func (s *Service) domainCollection() collection[Domain] {
	return collection[Domain]{
		service: s, singular: "domain", table: s.domains, body: s.domainBody, filters: []string{"name", "enabled"},
		own: func(c session, id string) bool { return c.user.DomainID == id },
		id:  func(d Domain) string { return d.ID }, made: func(id string) Domain { return Domain{ID: id} },
		change: s.changeDomain, changed: s.domainChanged, remove: s.removeDomain,
	}
}

func (s *Service) changeDomain(_ session, d *Domain, wanted json.RawMessage) error {
	var w struct {
		Name        *string `json:"name"`
		Description *string `json:"description"`
		Enabled     *bool   `json:"enabled"`
	}
	if err := readWanted("domain", wanted, &w); err != nil {
		return err
	}
	set(&d.Name, w.Name)
	set(&d.Description, w.Description)
	if w.Enabled != nil {
		d.Disabled = !*w.Enabled
	}
	if err := named("domain", d.Name); err != nil {
		return err
	}
	if other, taken := s.findDomain(d.Name); taken && other.ID != d.ID {
		return conflict("project", "it is not permitted to have two projects acting as domains with the same name: "+d.Name)
	}
	return nil
}

// domainChanged ends the tokens of a disabled domain: for it, for its projects and of its users.
func (s *Service) domainChanged(_, after Domain) error {
	if !after.Disabled {
		return nil
	}
	return s.endTokens(func(t token) bool {
		user, _ := s.users.Get(t.UserID)
		project, _ := s.projects.Get(t.Scope.ProjectID)
		return t.Scope.DomainID == after.ID || user.DomainID == after.ID || project.DomainID == after.ID
	})
}

// removeDomain deletes a disabled domain with its users, its projects and the roles on it.
func (s *Service) removeDomain(d Domain) error {
	if !d.Disabled {
		return failure{http.StatusForbidden, "Cannot delete a domain that is enabled, please disable it first."}
	}
	for _, u := range s.users.All() {
		if u.DomainID == d.ID {
			if err := s.removeUser(u); err != nil {
				return err
			}
		}
	}
	// Children are younger than their parents.
	for _, p := range slices.Backward(s.projects.All()) {
		if p.DomainID == d.ID {
			if err := s.removeProject(p); err != nil {
				return err
			}
		}
	}
	if err := deleteWhere(s.assignments, assignment.key, func(a assignment) bool { return a.Scope.DomainID == d.ID }); err != nil {
		return err
	}
	if err := s.endTokens(func(t token) bool { return t.Scope.DomainID == d.ID }); err != nil {
		return err
	}
	_, err := s.domains.Delete(d.ID)
	return err
}

func (s *Service) listOwnProjects(w http.ResponseWriter, r *http.Request, caller session) error {
	s.writeProjectsOf(w, r, caller.user.ID)
	return nil
}

func (s *Service) listProjectsOfUser(w http.ResponseWriter, r *http.Request, caller session) error {
	id := r.PathValue("id")
	if !caller.admin() && caller.user.ID != id {
		return forbidden("identity:list_user_projects")
	}
	if _, ok := s.users.Get(id); !ok {
		return notFound("user", id)
	}
	s.writeProjectsOf(w, r, id)
	return nil
}

func (s *Service) writeProjectsOf(w http.ResponseWriter, r *http.Request, userID string) {
	bodies := []any{}
	for _, p := range s.projects.All() {
		if matches(r, "name", p.Name) && len(s.rolesOf(userID, scope{ProjectID: p.ID})) > 0 {
			bodies = append(bodies, s.projectBody(p))
		}
	}
	s.writeList(w, r, "projects", bodies)
}

func (s *Service) listOwnDomains(w http.ResponseWriter, r *http.Request, caller session) error {
	bodies := []any{}
	for _, d := range s.domains.All() {
		if len(s.rolesOf(caller.user.ID, scope{DomainID: d.ID})) > 0 {
			bodies = append(bodies, s.domainBody(d))
		}
	}
	s.writeList(w, r, "domains", bodies)
	return nil
}
