package keystone

import (
	"encoding/json"
	"net/http"

	"golang.org/x/crypto/bcrypt"
)

// User is a row of the table of users.
type User struct {
	ID, Name, DomainID, DefaultProjectID string
	Description, Email                   string
	PasswordHash                         string // bcrypt; "" for a user that cannot sign in by password
	Disabled                             bool
}

// passwordIs checks a user's password. A proved one is recognised by a cheaper hash, as long as the service runs.
func (s *Service) passwordIs(u User, password string) bool {
	cheap := hashOf(password)
	if known, ok := s.proved.Load(u.PasswordHash); ok && known == cheap {
		return true
	}
	if bcrypt.CompareHashAndPassword([]byte(u.PasswordHash), []byte(password)) != nil {
		return false
	}
	s.proved.Store(u.PasswordHash, cheap)
	return true
}

// hashed is a password as the table keeps it. The passwords of this cloud guard nothing: a dear hash would only be paid at each sign-in.
func hashed(password string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		return "", invalid("Invalid input for field 'password': %v", err)
	}
	return string(hash), nil
}

func (s *Service) findUser(name, domainID string) (User, bool) {
	return first(s.users, func(u User) bool { return u.Name == name && u.DomainID == domainID })
}

func (s *Service) userBody(u User) map[string]any {
	body := map[string]any{
		"id": u.ID, "name": u.Name, "domain_id": u.DomainID, "enabled": !u.Disabled, "options": map[string]any{},
		"password_expires_at": nil, "links": s.self("users", u.ID),
	}
	for field, value := range map[string]string{"default_project_id": u.DefaultProjectID, "description": u.Description, "email": u.Email} {
		if value != "" {
			body[field] = value
		}
	}
	return body
}

func (s *Service) userCollection() collection[User] {
	return collection[User]{
		service: s, singular: "user", table: s.users, body: s.userBody, filters: []string{"name", "domain_id", "enabled"},
		own: func(c session, id string) bool { return c.user.ID == id },
		id:  func(u User) string { return u.ID }, made: func(id string) User { return User{ID: id} },
		change: s.changeUser, changed: s.userChanged, remove: s.removeUser,
	}
}

func (s *Service) changeUser(caller session, u *User, wanted json.RawMessage) error {
	var w struct {
		Name           *string `json:"name"`
		DomainID       *string `json:"domain_id"`
		DefaultProject *string `json:"default_project_id"`
		Description    *string `json:"description"`
		Email          *string `json:"email"`
		Password       *string `json:"password"`
		Enabled        *bool   `json:"enabled"`
	}
	if err := readWanted("user", wanted, &w); err != nil {
		return err
	}
	if err := s.setDomain(caller, &u.DomainID, w.DomainID); err != nil {
		return err
	}
	set(&u.Name, w.Name)
	set(&u.DefaultProjectID, w.DefaultProject)
	set(&u.Description, w.Description)
	set(&u.Email, w.Email)
	if w.Enabled != nil {
		u.Disabled = !*w.Enabled
	}
	if w.Password != nil {
		hash, err := hashed(*w.Password)
		if err != nil {
			return err
		}
		u.PasswordHash = hash
	}
	if err := named("user", u.Name); err != nil {
		return err
	}
	if other, taken := s.findUser(u.Name, u.DomainID); taken && other.ID != u.ID {
		return conflict("user", "Duplicate entry found with name "+u.Name+" at domain ID "+u.DomainID)
	}
	return nil
}

// userChanged ends a user's tokens when it is disabled or gets another password.
func (s *Service) userChanged(before, after User) error {
	if after.Disabled || before.PasswordHash != after.PasswordHash {
		return s.endTokens(func(t token) bool { return t.UserID == after.ID })
	}
	return nil
}

// removeUser deletes a user with its roles, application credentials, trusts and tokens.
func (s *Service) removeUser(u User) error {
	if err := deleteWhere(s.assignments, assignment.key, func(a assignment) bool { return a.UserID == u.ID }); err != nil {
		return err
	}
	if err := s.endCredentials(func(c applicationCredential) bool { return c.UserID == u.ID }); err != nil {
		return err
	}
	if err := s.endTrusts(func(t trust) bool { return t.TrustorID == u.ID || t.TrusteeID == u.ID }); err != nil {
		return err
	}
	if err := s.endTokens(func(t token) bool { return t.UserID == u.ID }); err != nil {
		return err
	}
	_, err := s.users.Delete(u.ID)
	return err
}

// changePassword lets users change their own password, which they must know.
func (s *Service) changePassword(w http.ResponseWriter, r *http.Request, caller session) error {
	var request struct {
		User struct {
			Password string `json:"password"`
			Original string `json:"original_password"`
		} `json:"user"`
	}
	if err := readJSON(r, &request); err != nil {
		return err
	}
	u, ok := s.users.Get(r.PathValue("id"))
	if !ok || u.ID != caller.user.ID || !s.passwordIs(u, request.User.Original) {
		return errUnauthorized
	}
	if request.User.Password == "" {
		return invalid("Invalid input for field 'user': 'password' is a required property and must not be empty")
	}
	before := u
	hash, err := hashed(request.User.Password)
	if err != nil {
		return err
	}
	u.PasswordHash = hash
	if err := s.users.Put(u.ID, u); err != nil {
		return err
	}
	if err := s.userChanged(before, u); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
