package keystone

import (
	"fmt"
	"net/http"
	"slices"
	"time"
)

// trust is a row of the table of trusts: the trustee may act with these roles of the trustor in the project
// (https://docs.openstack.org/api-ref/identity/v3-ext/#os-trust-api).
type trust struct {
	ID, TrustorID, TrusteeID, ProjectID string
	Impersonation                       bool
	RoleIDs                             []string
	ExpiresAt                           *time.Time
	RemainingUses                       *int
	Redelegations                       int    // how often it may still be passed on
	RedelegatedID                       string // the trust through which it was made, or ""
	BuranoName                          string // Keystone keeps every attribute; only this one is used here
}

// maxRedelegations is Keystone's own default.
const maxRedelegations = 3

func (t trust) expired(now time.Time) bool { return t.ExpiresAt != nil && !now.Before(*t.ExpiresAt) }

type trustRequest struct {
	Trust trustWanted `json:"trust"`
}

type trustWanted struct {
	TrustorUserID string     `json:"trustor_user_id"`
	TrusteeUserID string     `json:"trustee_user_id"`
	ProjectID     string     `json:"project_id"`
	Impersonation *bool      `json:"impersonation"`
	ExpiresAt     *time.Time `json:"expires_at"`
	RemainingUses *int       `json:"remaining_uses"`
	Redelegate    bool       `json:"allow_redelegation"`
	Redelegations *int       `json:"redelegation_count"`
	BuranoName    string     `json:"burano_name"`
	Roles         []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"roles"`
}

func (s *Service) createTrust(w http.ResponseWriter, r *http.Request, caller session) error {
	var request trustRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	wanted := request.Trust
	if wanted.Impersonation == nil || wanted.TrusteeUserID == "" || wanted.TrustorUserID == "" {
		return invalid("Invalid input for field 'trust': 'impersonation', 'trustee_user_id' and 'trustor_user_id' are required properties")
	}
	if wanted.TrustorUserID != caller.user.ID {
		return forbidden("identity:create_trust")
	}
	redelegations, err := wanted.redelegations(caller)
	if err != nil {
		return err
	}
	if _, ok := s.users.Get(wanted.TrusteeUserID); !ok {
		return notFound("user", wanted.TrusteeUserID)
	}
	if wanted.ExpiresAt != nil && !s.now().Before(*wanted.ExpiresAt) {
		return invalid("The 'expires_at' must not be before now. The server could not comply with the request since it is " +
			"either malformed or otherwise incorrect. The client is assumed to be in error.")
	}
	if wanted.RemainingUses != nil && *wanted.RemainingUses < 1 {
		return invalid("Invalid input for field 'remaining_uses': %d is less than the minimum of 1", *wanted.RemainingUses)
	}
	made := trust{
		ID: newID(), TrustorID: wanted.TrustorUserID, TrusteeID: wanted.TrusteeUserID, ProjectID: wanted.ProjectID,
		Impersonation: *wanted.Impersonation, ExpiresAt: wanted.ExpiresAt, RemainingUses: wanted.RemainingUses,
		Redelegations: redelegations, BuranoName: wanted.BuranoName,
	}
	if caller.trust != nil {
		made.RedelegatedID = caller.trust.ID
		if err := made.narrow(*caller.trust); err != nil {
			return err
		}
	}
	if wanted.ProjectID != "" {
		if _, ok := s.projects.Get(wanted.ProjectID); !ok {
			return notFound("project", wanted.ProjectID)
		}
		if len(wanted.Roles) == 0 {
			return failure{http.StatusForbidden, "At least one role should be specified"}
		}
	}
	held := s.rolesOf(caller.user.ID, scope{ProjectID: wanted.ProjectID})
	for _, role := range wanted.Roles {
		i := slices.IndexFunc(held, func(r Role) bool { return r.ID == role.ID || (role.ID == "" && r.Name == role.Name) })
		if i < 0 {
			return notFound("role", role.ID+role.Name)
		}
		made.RoleIDs = append(made.RoleIDs, held[i].ID)
	}
	for _, other := range s.trusts.All() {
		if made.ExpiresAt != nil && other.ExpiresAt != nil && made.ExpiresAt.Equal(*other.ExpiresAt) &&
			other.TrustorID == made.TrustorID && other.TrusteeID == made.TrusteeID && other.ProjectID == made.ProjectID {
			return failure{http.StatusConflict, "Conflict occurred attempting to store trust - Duplicate entry found with ID " + made.ID + "."}
		}
	}
	if err := s.trusts.Put(made.ID, made); err != nil {
		return err
	}
	writeJSON(w, http.StatusCreated, map[string]any{"trust": s.trustBody(made, true)})
	return nil
}

// managing answers requests about trusts, which are not for application credentials: since 2026 also not for unrestricted ones
// (https://bugs.launchpad.net/keystone/+bug/2150089).
func managing(h callerHandler) callerHandler {
	return func(w http.ResponseWriter, r *http.Request, caller session) error {
		if caller.CredentialID != "" {
			return forbidden("Delegated tokens cannot manage trusts.")
		}
		return h(w, r, caller)
	}
}

// mayRedelegate refuses who acts through a trust that cannot be passed on.
func (c session) mayRedelegate() error {
	if c.trust != nil && c.trust.Redelegations == 0 {
		return failure{http.StatusForbidden, fmt.Sprintf("Remaining redelegation depth of 0 out of allowed range of [0..%d]", maxRedelegations)}
	}
	return nil
}

// narrow checks that a redelegated trust lasts no longer than its source.
func (t *trust) narrow(from trust) error {
	if t.RemainingUses != nil {
		return failure{http.StatusForbidden, fmt.Sprintf("Field \"remaining_uses\" is set to %d while it must not be set in order to redelegate a trust", *t.RemainingUses)}
	}
	if t.ExpiresAt == nil {
		t.ExpiresAt = from.ExpiresAt
	}
	if from.ExpiresAt != nil && from.ExpiresAt.Before(*t.ExpiresAt) {
		return failure{http.StatusForbidden, "Requested expiration time is more than redelegated trust can provide"}
	}
	return nil
}

// redelegations returns how often the new trust may be passed on.
func (t trustWanted) redelegations(caller session) (int, error) {
	if err := caller.mayRedelegate(); err != nil {
		return 0, err
	}
	most := maxRedelegations
	if caller.trust != nil {
		most = caller.trust.Redelegations - 1
	}
	switch {
	case !t.Redelegate:
		return 0, nil
	case t.Redelegations == nil:
		return most, nil
	case *t.Redelegations < 0 || *t.Redelegations > most:
		return 0, failure{http.StatusForbidden, fmt.Sprintf("Requested redelegation depth of %d is greater than allowed %d", *t.Redelegations, most)}
	}
	return *t.Redelegations, nil
}

// Delegate makes a trust of the owner of a token, through the trust that the token is of, as Heat does for each stack; false when the owner
// may make none. The trustee is the trustor, for want of a user that is Heat's.
func (s *Service) Delegate(secret string) (id string, ok bool) {
	caller, known := s.session(secret)
	if !known || caller.CredentialID != "" || caller.scope.ProjectID == "" || caller.mayRedelegate() != nil {
		return "", false
	}
	made := trust{ID: newID(), TrustorID: caller.user.ID, TrusteeID: caller.user.ID, ProjectID: caller.scope.ProjectID, Impersonation: true}
	for _, role := range caller.roles {
		made.RoleIDs = append(made.RoleIDs, role.ID)
	}
	if caller.trust != nil {
		made.RedelegatedID, made.ExpiresAt = caller.trust.ID, caller.trust.ExpiresAt
	}
	return made.ID, s.trusts.Put(made.ID, made) == nil
}

// Delegates reports whether a trust is still usable.
func (s *Service) Delegates(id string) bool {
	found, ok := s.trusts.Get(id)
	if !ok || found.expired(s.now()) {
		return false
	}
	_, valid := s.resolve(token{UserID: found.TrustorID, Scope: scope{ProjectID: found.ProjectID}, TrustID: id})
	return valid
}

// EndDelegation ends a trust; one that is gone is no error.
func (s *Service) EndDelegation(id string) error { return s.endTrust(id) }

// setTrust makes t a token of the trust, which only the trustee may use. The token has its own end, but with the trust it ends as well. Keystone reveals
// nothing of a trust to others: a missing one is refused like a wrong password.
func (s *Service) setTrust(t *token, user User, id string) error {
	found, ok := s.trusts.Get(id)
	if !ok || found.expired(s.now()) {
		return errUnauthorized
	}
	if found.TrusteeID != user.ID {
		return failure{http.StatusForbidden, "User is not a trustee."}
	}
	t.TrustID = found.ID
	t.Scope = scope{ProjectID: found.ProjectID}
	if found.Impersonation {
		t.UserID = found.TrustorID
	}
	return nil
}

// useTrust counts one use of a trust that has a limited number of them.
func (s *Service) useTrust(id string) error {
	spent := false
	found, err := s.trusts.Update(id, func(t *trust) {
		if t.RemainingUses == nil {
			return
		}
		left := *t.RemainingUses - 1
		if spent = left < 0; !spent {
			t.RemainingUses = &left
		}
	})
	switch {
	case err != nil:
		return err
	case !found:
		return notFound("trust", id)
	case spent:
		return failure{http.StatusForbidden, fmt.Sprintf("No remaining uses for trust: %s.", id)}
	}
	return nil
}

func (s *Service) trustBody(t trust, whole bool) map[string]any {
	body := map[string]any{
		"id": t.ID, "trustor_user_id": t.TrustorID, "trustee_user_id": t.TrusteeID, "project_id": nil,
		"impersonation": t.Impersonation, "redelegated_trust_id": nil, "redelegation_count": t.Redelegations,
		"remaining_uses": t.RemainingUses, "expires_at": nil, "deleted_at": nil, "links": s.self("OS-TRUST/trusts", t.ID),
	}
	if t.ProjectID != "" {
		body["project_id"] = t.ProjectID
	}
	if t.BuranoName != "" {
		body["burano_name"] = t.BuranoName
	}
	if t.RedelegatedID != "" {
		body["redelegated_trust_id"] = t.RedelegatedID
	}
	if t.ExpiresAt != nil {
		body["expires_at"] = timestamp(*t.ExpiresAt)
	}
	if whole {
		body["roles"] = s.trustRoles(t)
		body["roles_links"] = map[string]any{
			"self": s.endpoint + "/identity/v3/OS-TRUST/trusts/" + t.ID + "/roles", "next": nil, "previous": nil,
		}
	}
	return body
}

func (s *Service) trustRoles(t trust) []any {
	bodies := []any{}
	for _, id := range t.RoleIDs {
		if role, ok := s.roles.Get(id); ok {
			bodies = append(bodies, s.roleBody(role))
		}
	}
	return bodies
}

func (s *Service) listTrusts(w http.ResponseWriter, r *http.Request, caller session) error {
	query := r.URL.Query()
	trustor, trustee := query.Get("trustor_user_id"), query.Get("trustee_user_id")
	if !caller.admin() && trustor != caller.user.ID && trustee != caller.user.ID {
		return forbidden("identity:list_trusts")
	}
	bodies := []any{}
	for _, t := range s.trusts.All() {
		if !t.expired(s.now()) && matches(r, "trustor_user_id", t.TrustorID) && matches(r, "trustee_user_id", t.TrusteeID) {
			bodies = append(bodies, s.trustBody(t, false))
		}
	}
	s.writeList(w, r, "trusts", bodies)
	return nil
}

// visibleTrust is the trust of the request's path, if the caller is one of its two users or an admin.
func (s *Service) visibleTrust(r *http.Request, caller session, action string) (trust, error) {
	id := r.PathValue("id")
	found, ok := s.trusts.Get(id)
	if !ok || found.expired(s.now()) {
		return trust{}, notFound("trust", id)
	}
	if !caller.admin() && caller.user.ID != found.TrustorID && caller.user.ID != found.TrusteeID {
		return trust{}, forbidden(action)
	}
	return found, nil
}

func (s *Service) showTrust(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.visibleTrust(r, caller, "identity:get_trust")
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"trust": s.trustBody(found, true)})
	return nil
}

// deleteTrust ends a trust; its tokens are worth nothing from then on, because a session looks for its trust.
func (s *Service) deleteTrust(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.visibleTrust(r, caller, "identity:delete_trust")
	if err != nil {
		return err
	}
	if !caller.admin() && caller.user.ID != found.TrustorID {
		return forbidden("identity:delete_trust")
	}
	if err := s.endTrust(found.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// endTrust deletes a trust with all that were made through it.
func (s *Service) endTrust(id string) error {
	if err := s.endTrusts(func(other trust) bool { return other.RedelegatedID == id }); err != nil {
		return err
	}
	_, err := s.trusts.Delete(id)
	return err
}

// endTrusts ends the trusts that are wanted.
func (s *Service) endTrusts(wanted func(trust) bool) error {
	for _, t := range s.trusts.Where(wanted) {
		if err := s.endTrust(t.ID); err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) listTrustRoles(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.visibleTrust(r, caller, "identity:list_roles_for_trust")
	if err != nil {
		return err
	}
	s.writeList(w, r, "roles", s.trustRoles(found))
	return nil
}

func (s *Service) showTrustRole(w http.ResponseWriter, r *http.Request, caller session) error {
	found, err := s.visibleTrust(r, caller, "identity:get_role_for_trust")
	if err != nil {
		return err
	}
	role, ok := s.roles.Get(r.PathValue("role"))
	if !ok || !slices.Contains(found.RoleIDs, role.ID) {
		return notFound("role", r.PathValue("role"))
	}
	writeJSON(w, http.StatusOK, map[string]any{"role": s.roleBody(role)})
	return nil
}
