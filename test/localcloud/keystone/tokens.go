package keystone

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"
)

// token is a row of the table of tokens. It is found by the hash of the client's secret, so that the file reveals no token. Roles are not in it: they are
// looked up each time, so that a revoked role is gone at once.
type token struct {
	Hash         string
	UserID       string // the acting user: with an impersonating trust, the trustor
	Scope        scope
	Methods      []string
	TrustID      string
	CredentialID string // application credential
	AuditID      string
	IssuedAt     time.Time
	ExpiresAt    time.Time
}

// session is a valid token with its user, project and roles.
type session struct {
	token
	user  User
	scope scope
	roles []Role
	trust *trust
}

func (c session) has(role string) bool {
	return slices.ContainsFunc(c.roles, func(r Role) bool { return r.Name == role })
}

func (c session) admin() bool { return c.has("admin") }

// issue stores a new token and returns its secret. Expired tokens leave the table on this occasion.
func (s *Service) issue(t token) (secret string, err error) {
	now := s.now()
	expired := func(old token) bool { return !now.Before(old.ExpiresAt) }
	if err := deleteWhere(s.tokens, func(old token) string { return old.Hash }, expired); err != nil {
		return "", err
	}
	var b [96]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand, since Go 1.24)
	secret = "gAAAAA" + base64.RawURLEncoding.EncodeToString(b[:])
	t.Hash = hashOf(secret)
	t.AuditID = base64.RawURLEncoding.EncodeToString(b[:16:16])
	return secret, s.tokens.Put(t.Hash, t)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// session finds the session of a token; it is false for one that is unknown, expired, revoked, or whose user, project, trust or roles are no more.
func (s *Service) session(secret string) (session, bool) {
	if secret == "" {
		return session{}, false
	}
	t, ok := s.tokens.Get(hashOf(secret))
	if !ok || !s.now().Before(t.ExpiresAt) {
		return session{}, false
	}
	return s.resolve(t)
}

func (s *Service) resolve(t token) (session, bool) {
	user, ok := s.users.Get(t.UserID)
	if !ok || !s.enabledUser(user.ID) {
		return session{}, false
	}
	if t.Scope.ProjectID != "" && !s.enabledProject(t.Scope.ProjectID) || t.Scope.DomainID != "" && !s.enabledDomain(t.Scope.DomainID) {
		return session{}, false
	}
	found := session{token: t, user: user, scope: t.Scope, roles: s.rolesOf(user.ID, t.Scope)}
	if t.CredentialID != "" {
		credential, ok := s.credentials.Get(t.CredentialID)
		if !ok || credential.expired(s.now()) {
			return session{}, false
		}
		found.roles = onlyRoles(found.roles, credential.RoleIDs)
	}
	if t.TrustID != "" {
		trust, ok := s.trusts.Get(t.TrustID)
		if !ok || trust.expired(s.now()) || !s.enabledUser(trust.TrustorID) || !s.enabledUser(trust.TrusteeID) {
			return session{}, false
		}
		found.trust = &trust
		// Delegated roles can never be more than the trustor's present ones.
		found.roles = onlyRoles(s.rolesOf(trust.TrustorID, t.Scope), trust.RoleIDs)
		if len(found.roles) < len(trust.RoleIDs) {
			return session{}, false
		}
	}
	return found, t.Scope == (scope{}) || len(found.roles) > 0
}

func onlyRoles(roles []Role, ids []string) []Role {
	return slices.DeleteFunc(roles, func(r Role) bool { return !slices.Contains(ids, r.ID) })
}

// tokenBody is the "token" object, with the catalog unless it is not wanted.
func (s *Service) tokenBody(c session, catalog bool) map[string]any {
	body := map[string]any{
		"methods": c.Methods, "audit_ids": []string{c.AuditID},
		"issued_at": timestamp(c.IssuedAt), "expires_at": s.endOf(c),
		"user": map[string]any{
			"id": c.user.ID, "name": c.user.Name, "domain": s.domainReference(c.user.DomainID), "password_expires_at": nil,
		},
	}
	switch {
	case c.scope.ProjectID != "":
		project, _ := s.projects.Get(c.scope.ProjectID)
		body["project"] = map[string]any{"id": project.ID, "name": project.Name, "domain": s.domainReference(project.DomainID)}
		body["is_domain"] = false
	case c.scope.DomainID != "":
		body["domain"] = s.domainReference(c.scope.DomainID)
	case c.scope.System:
		body["system"] = map[string]any{"all": true}
	}
	if c.scope != (scope{}) {
		roles := []any{}
		for _, r := range c.roles {
			roles = append(roles, map[string]any{"id": r.ID, "name": r.Name})
		}
		body["roles"] = roles
		if catalog {
			body["catalog"] = s.catalog(c.scope.ProjectID)
		}
	}
	if c.trust != nil {
		body["OS-TRUST:trust"] = map[string]any{
			"id": c.trust.ID, "impersonation": c.trust.Impersonation,
			"trustor_user": map[string]any{"id": c.trust.TrustorID}, "trustee_user": map[string]any{"id": c.trust.TrusteeID},
		}
	}
	if c.CredentialID != "" {
		credential, _ := s.credentials.Get(c.CredentialID)
		body["application_credential"] = map[string]any{
			"id": credential.ID, "name": credential.Name, "restricted": !credential.Unrestricted,
		}
	}
	return body
}

// subject is the session of the token that the request is about, if the caller may look at it.
func (s *Service) subject(r *http.Request, caller session, action string) (session, error) {
	found, ok := s.session(r.Header.Get("X-Subject-Token"))
	if ok && found.user.ID == caller.user.ID {
		return found, nil
	}
	if !caller.admin() && !caller.has("service") {
		return session{}, forbidden(action)
	}
	if !ok {
		return session{}, errNoToken
	}
	return found, nil
}

func (s *Service) showToken(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.subject(r, caller, "identity:validate_token")
	if err != nil {
		return err
	}
	w.Header().Set("X-Subject-Token", r.Header.Get("X-Subject-Token"))
	writeJSON(w, http.StatusOK, map[string]any{"token": s.tokenBody(found, !r.URL.Query().Has("nocatalog"))})
	return nil
}

// endTokens ends the wanted tokens; they stay ended when the cause is undone.
func (s *Service) endTokens(wanted func(token) bool) error {
	return deleteWhere(s.tokens, func(t token) string { return t.Hash }, wanted)
}

func (s *Service) revokeToken(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.subject(r, caller, "identity:revoke_token")
	if err != nil {
		return err
	}
	if _, err := s.tokens.Delete(found.Hash); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endOf is when a session ends. Where that is the end of an application credential, Keystone writes it without a zone.
func (s *Service) endOf(c session) string {
	end := timestamp(c.ExpiresAt)
	if own, ok := s.credentials.Get(c.CredentialID); ok && own.ExpiresAt != nil && own.ExpiresAt.Equal(c.ExpiresAt) {
		return strings.TrimSuffix(end, "Z")
	}
	return end
}
