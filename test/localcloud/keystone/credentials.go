package keystone

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"slices"
	"time"
)

// applicationCredential is a row of the table of application credentials: a secret that represents its user in one project
// (https://docs.openstack.org/api-ref/identity/v3/#application-credentials). The secret is random, so a plain hash is enough.
type applicationCredential struct {
	ID, Name, Description, UserID, ProjectID, SecretHash string
	RoleIDs                                              []string
	Unrestricted                                         bool // may manage trusts and other credentials
	ExpiresAt                                            *time.Time
}

func (c applicationCredential) expired(now time.Time) bool {
	return c.ExpiresAt != nil && !now.Before(*c.ExpiresAt)
}

func (s *Service) findCredential(userID, name string) (applicationCredential, bool) {
	return first(s.credentials, func(c applicationCredential) bool { return c.UserID == userID && c.Name == name })
}

func (s *Service) credentialBody(c applicationCredential) map[string]any {
	roles := []any{}
	for _, id := range c.RoleIDs {
		if role, ok := s.roles.Get(id); ok {
			roles = append(roles, map[string]any{"id": role.ID, "name": role.Name, "domain_id": nil})
		}
	}
	body := map[string]any{
		"id": c.ID, "name": c.Name, "description": c.Description, "project_id": c.ProjectID, "roles": roles, "system": nil,
		"unrestricted": c.Unrestricted, "expires_at": nil, "links": s.self("users/"+c.UserID+"/application_credentials", c.ID),
	}
	if c.ExpiresAt != nil {
		body["expires_at"] = c.ExpiresAt.UTC().Format("2006-01-02T15:04:05.000000") // as Keystone does here, without a zone
	}
	return body
}

func (s *Service) createApplicationCredential(w http.ResponseWriter, r *http.Request, caller session) error {
	if r.PathValue("id") != caller.user.ID || caller.scope.ProjectID == "" || caller.trust != nil {
		return forbidden("identity:create_application_credential")
	}
	if own, ok := s.credentials.Get(caller.CredentialID); ok && !own.Unrestricted {
		return forbidden("identity:create_application_credential")
	}
	var request struct {
		Credential struct {
			Name         string           `json:"name"`
			Description  string           `json:"description"`
			Secret       string           `json:"secret"`
			Unrestricted bool             `json:"unrestricted"`
			ExpiresAt    *credentialTime  `json:"expires_at"`
			Roles        []roleDescriptor `json:"roles"`
		} `json:"application_credential"`
	}
	if err := readJSON(r, &request); err != nil {
		return err
	}
	wanted := request.Credential
	if wanted.Name == "" {
		return invalid("Invalid input for field 'application_credential': 'name' is a required property")
	}
	if _, taken := s.findCredential(caller.user.ID, wanted.Name); taken {
		return failure{http.StatusConflict, "Conflict occurred attempting to store application_credential - Duplicate entry found with name " +
			wanted.Name + "."}
	}
	if wanted.Secret == "" {
		var b [64]byte
		_, _ = rand.Read(b[:])
		wanted.Secret = base64.RawURLEncoding.EncodeToString(b[:])
	}
	made := applicationCredential{
		ID: newID(), Name: wanted.Name, Description: wanted.Description, UserID: caller.user.ID, ProjectID: caller.scope.ProjectID,
		SecretHash: hashOf(wanted.Secret), Unrestricted: wanted.Unrestricted, ExpiresAt: (*time.Time)(wanted.ExpiresAt),
	}
	for _, role := range caller.roles {
		if len(wanted.Roles) == 0 || slices.ContainsFunc(wanted.Roles, func(w roleDescriptor) bool { return w.ID == role.ID || w.Name == role.Name }) {
			made.RoleIDs = append(made.RoleIDs, role.ID)
		}
	}
	if len(made.RoleIDs) < len(wanted.Roles) || len(made.RoleIDs) == 0 {
		return invalid("Invalid application credential: Could not find role assignment of one of the roles in project: %s.", made.ProjectID)
	}
	if err := s.credentials.Put(made.ID, made); err != nil {
		return err
	}
	body := s.credentialBody(made)
	body["secret"] = wanted.Secret // this once
	writeJSON(w, http.StatusCreated, map[string]any{"application_credential": body})
	return nil
}

type roleDescriptor struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// credentialTime is a time that may be written without a zone, as clients of this resource do.
type credentialTime time.Time

func (t *credentialTime) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999"} {
		if parsed, err := time.Parse(layout, string(text)); err == nil {
			*t = credentialTime(parsed)
			return nil
		}
	}
	return invalid("Invalid input for field 'expires_at': %q is no time such as 2030-01-31T12:00:00Z", text)
}

func (s *Service) listApplicationCredentials(w http.ResponseWriter, r *http.Request, caller session) error {
	if r.PathValue("id") != caller.user.ID && !caller.admin() {
		return forbidden("identity:list_application_credentials")
	}
	bodies := []any{}
	for _, c := range s.credentials.All() {
		if c.UserID == r.PathValue("id") && matches(r, "name", c.Name) {
			bodies = append(bodies, s.credentialBody(c))
		}
	}
	s.writeList(w, r, "application_credentials", bodies)
	return nil
}

func (s *Service) visibleCredential(r *http.Request, caller session, action string) (applicationCredential, error) {
	if r.PathValue("id") != caller.user.ID && !caller.admin() {
		return applicationCredential{}, forbidden(action)
	}
	found, ok := s.credentials.Get(r.PathValue("credential"))
	if !ok || found.UserID != r.PathValue("id") {
		return applicationCredential{}, notFound("application credential", r.PathValue("credential"))
	}
	return found, nil
}

func (s *Service) showApplicationCredential(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.visibleCredential(r, caller, "identity:get_application_credential")
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"application_credential": s.credentialBody(found)})
	return nil
}

func (s *Service) deleteApplicationCredential(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.visibleCredential(r, caller, "identity:delete_application_credential")
	if err != nil {
		return err
	}
	if own, ok := s.credentials.Get(caller.CredentialID); ok && !own.Unrestricted {
		return forbidden("identity:delete_application_credential")
	}
	if _, err := s.credentials.Delete(found.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endCredentials deletes the application credentials that are wanted; their tokens end with them.
func (s *Service) endCredentials(wanted func(applicationCredential) bool) error {
	return deleteWhere(s.credentials, func(c applicationCredential) string { return c.ID }, wanted)
}
