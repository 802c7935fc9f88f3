package keystone

import (
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
	return first(s.users, func(u User) bool { return u.Name == name && u.DomainID == domainID })
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
