package keystone

import "net/http"

// DefaultDomain is the id of the domain that everything of the local cloud is in.
const DefaultDomain = "default"

// Domain is a row of the table of domains.
type Domain struct{ ID, Name, Description string }

// Project is a row of the table of projects.
type Project struct {
	ID, Name, DomainID, Description string
	Disabled                        bool
}

func (s *Service) findProject(name, domainID string) (Project, bool) {
	return first(s.projects, func(p Project) bool { return p.Name == name && p.DomainID == domainID })
}

func (s *Service) findDomain(name string) (Domain, bool) {
	return first(s.domains, func(d Domain) bool { return d.Name == name })
}

func (s *Service) projectBody(p Project) map[string]any {
	return map[string]any{
		"id": p.ID, "name": p.Name, "domain_id": p.DomainID, "parent_id": p.DomainID, "description": p.Description,
		"enabled": !p.Disabled, "is_domain": false, "tags": []string{}, "options": map[string]any{}, "links": s.self("projects", p.ID),
	}
}

func (s *Service) domainBody(d Domain) map[string]any {
	return map[string]any{
		"id": d.ID, "name": d.Name, "description": d.Description, "enabled": true, "tags": []string{},
		"options": map[string]any{}, "links": s.self("domains", d.ID),
	}
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
