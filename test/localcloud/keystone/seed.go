package keystone

import (
	"encoding/hex"

	"github.com/google/uuid"
)

// The users, projects and roles that every local cloud has.
var seedUsers = []struct {
	name, password, project string
	roles                   []string
	everywhere              bool // the roles hold for the domain and the system too
}{
	{"admin", "admin", "admin", []string{"admin"}, true},
	{"demo", "demo", "demo", []string{"member"}, false},
	{"other", "other", "other", []string{"member"}, false},
	{"burano", "burano", "service", []string{"admin", "service"}, false},
}

// seed adds missing objects and changes no existing ones.
func (s *Service) seed() error {
	if _, ok := s.domains.Get(DefaultDomain); !ok {
		if err := s.domains.Put(DefaultDomain, Domain{ID: DefaultDomain, Name: "Default", Description: "The default domain"}); err != nil {
			return err
		}
	}
	if err := s.seedCatalog(); err != nil {
		return err
	}
	for _, u := range seedUsers {
		project, ok := s.findProject(u.project, DefaultDomain)
		if !ok {
			project = Project{ID: newID(), Name: u.project, DomainID: DefaultDomain}
			if err := s.projects.Put(project.ID, project); err != nil {
				return err
			}
		}
		user, ok := s.findUser(u.name, DefaultDomain)
		if !ok {
			hash, err := hashed(u.password)
			if err != nil {
				return err
			}
			user = User{ID: newID(), Name: u.name, DomainID: DefaultDomain, DefaultProjectID: project.ID, PasswordHash: hash}
			if err := s.users.Put(user.ID, user); err != nil {
				return err
			}
		}
		for _, name := range u.roles {
			role, ok := s.findRole(name)
			if !ok {
				role = Role{ID: newID(), Name: name}
				if err := s.roles.Put(role.ID, role); err != nil {
					return err
				}
			}
			targets := []scope{{ProjectID: project.ID}}
			if u.everywhere {
				targets = append(targets, scope{DomainID: DefaultDomain}, scope{System: true})
			}
			for _, target := range targets {
				a := assignment{UserID: user.ID, RoleID: role.ID, Scope: target}
				if err := s.assignments.Put(a.key(), a); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// newID makes an id as Keystone does: a UUID without hyphens.
func newID() string {
	id := uuid.New()
	return hex.EncodeToString(id[:])
}
