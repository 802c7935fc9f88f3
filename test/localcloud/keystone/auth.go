package keystone

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
)

// authRequest is the body of POST /v3/auth/tokens.
type authRequest struct {
	Auth struct {
		Identity struct {
			Methods  []string `json:"methods"`
			Password *struct {
				User struct {
					userReference
					Password string `json:"password"`
				} `json:"user"`
			} `json:"password"`
			Token *struct {
				ID string `json:"id"`
			} `json:"token"`
			ApplicationCredential *struct {
				ID     string        `json:"id"`
				Name   string        `json:"name"`
				Secret string        `json:"secret"`
				User   userReference `json:"user"`
			} `json:"application_credential"`
		} `json:"identity"`
		Scope json.RawMessage `json:"scope"` // an object, or the string "unscoped"
	} `json:"auth"`
}

type domainReference struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type userReference struct {
	ID     string           `json:"id"`
	Name   string           `json:"name"`
	Domain *domainReference `json:"domain"`
}

type scopeRequest struct {
	Project *struct {
		ID     string           `json:"id"`
		Name   string           `json:"name"`
		Domain *domainReference `json:"domain"`
	} `json:"project"`
	Domain *domainReference `json:"domain"`
	System *struct {
		All bool `json:"all"`
	} `json:"system"`
	Trust *struct {
		ID string `json:"id"`
	} `json:"OS-TRUST:trust"`
}

// proof is the proved identity of a caller, with the limits of this kind of proof.
type proof struct {
	user       User
	from       *session               // the token that the new one is made with
	credential *applicationCredential // or the application credential
}

func (s *Service) issueToken(w http.ResponseWriter, r *http.Request) error {
	var request authRequest
	if err := readJSON(r, &request); err != nil {
		return err
	}
	proved, err := s.prove(request)
	if err != nil {
		return err
	}
	t := token{
		UserID: proved.user.ID, Methods: request.Auth.Identity.Methods,
		IssuedAt: s.now(), ExpiresAt: s.now().Add(s.lifetime),
	}
	if proved.from != nil {
		// A token made of a token lives no longer than the first one.
		t.ExpiresAt = proved.from.ExpiresAt
		t.Methods = union(proved.from.Methods, t.Methods)
	}
	if err := s.setScope(&t, proved, request.Auth.Scope); err != nil {
		return err
	}
	found, ok := s.resolve(t)
	if !ok {
		return errUnauthorized
	}
	if t.TrustID != "" {
		if err := s.useTrust(t.TrustID); err != nil {
			return err
		}
	}
	secret, err := s.issue(t)
	if err != nil {
		return err
	}
	if issued, ok := s.tokens.Get(hashOf(secret)); ok {
		found.token = issued
	}
	w.Header().Set("X-Subject-Token", secret)
	writeJSON(w, http.StatusCreated, map[string]any{"token": s.tokenBody(found, !r.URL.Query().Has("nocatalog"))})
	return nil
}

// prove checks every method that the request names; all of them must speak for the same user.
func (s *Service) prove(request authRequest) (proof, error) {
	identity := request.Auth.Identity
	if len(identity.Methods) == 0 {
		return proof{}, invalid("Invalid input for field 'identity': 'methods' is a required property")
	}
	var proved proof
	for _, method := range identity.Methods {
		var user User
		var ok bool
		switch {
		case method == "password" && identity.Password != nil:
			user, ok = s.referredUser(identity.Password.User.userReference)
			ok = ok && s.passwordIs(user, identity.Password.User.Password)
		case method == "token" && identity.Token != nil:
			var from session
			if from, ok = s.session(identity.Token.ID); ok {
				if from.trust != nil {
					return proof{}, forbidden("Using trust-scoped token to create another token. Create a new trust-scoped token instead")
				}
				if from.CredentialID != "" {
					return proof{}, forbidden("Using method 'application_credential' is not allowed for managing tokens")
				}
				user, proved.from = from.user, &from
			}
		case method == "application_credential" && identity.ApplicationCredential != nil:
			wanted := identity.ApplicationCredential
			credential, found := s.credentials.Get(wanted.ID)
			if owner, known := s.referredUser(wanted.User); wanted.ID == "" && known {
				credential, found = s.findCredential(owner.ID, wanted.Name)
			}
			ok = found && !credential.expired(s.now()) &&
				subtle.ConstantTimeCompare([]byte(hashOf(wanted.Secret)), []byte(credential.SecretHash)) == 1
			if ok {
				user, ok = s.users.Get(credential.UserID)
				proved.credential = &credential
			}
		case slices.Contains([]string{"password", "token", "application_credential"}, method):
			return proof{}, invalid("Invalid input for field 'identity': '%s' is a required property", method)
		}
		if !ok || user.Disabled || (proved.user.ID != "" && proved.user.ID != user.ID) {
			return proof{}, errUnauthorized
		}
		proved.user = user
	}
	return proved, nil
}

// setScope puts the scope that is asked for into t, or the user's default project when none is.
func (s *Service) setScope(t *token, proved proof, raw json.RawMessage) error {
	if proved.credential != nil {
		t.CredentialID = proved.credential.ID
		t.Scope = scope{ProjectID: proved.credential.ProjectID}
		if end := proved.credential.ExpiresAt; end != nil && end.Before(t.ExpiresAt) {
			t.ExpiresAt = *end
		}
		return nil
	}
	var wanted scopeRequest
	var word string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		if proved.from == nil && len(s.rolesOf(proved.user.ID, scope{ProjectID: proved.user.DefaultProjectID})) > 0 {
			t.Scope = scope{ProjectID: proved.user.DefaultProjectID}
		}
		return nil
	case json.Unmarshal(raw, &word) == nil:
		if word != "unscoped" {
			return invalid("Invalid input for field 'scope': %q is neither an object nor \"unscoped\"", word)
		}
		return nil
	case json.Unmarshal(raw, &wanted) != nil:
		return invalid("Invalid input for field 'scope': it is not of type 'object'")
	}
	switch {
	case wanted.Trust != nil:
		return s.setTrust(t, proved.user, wanted.Trust.ID)
	case wanted.System != nil:
		t.Scope = scope{System: wanted.System.All}
	case wanted.Domain != nil:
		id, ok := s.referredDomain(wanted.Domain)
		if !ok {
			return errUnauthorized
		}
		t.Scope = scope{DomainID: id}
	case wanted.Project != nil:
		id := wanted.Project.ID
		if id == "" {
			if wanted.Project.Domain == nil {
				return invalid("Expecting to find domain in project. The server could not comply with the request since it is " +
					"either malformed or otherwise incorrect. The client is assumed to be in error.")
			}
			domainID, _ := s.referredDomain(wanted.Project.Domain)
			project, _ := s.findProject(wanted.Project.Name, domainID)
			id = project.ID
		}
		if _, ok := s.projects.Get(id); !ok {
			return errUnauthorized
		}
		t.Scope = scope{ProjectID: id}
	}
	return nil
}

func (s *Service) referredUser(ref userReference) (User, bool) {
	if ref.ID != "" {
		return s.users.Get(ref.ID)
	}
	domainID, ok := s.referredDomain(ref.Domain)
	if !ok {
		return User{}, false
	}
	return s.findUser(ref.Name, domainID)
}

func (s *Service) referredDomain(ref *domainReference) (string, bool) {
	if ref == nil {
		return "", false
	}
	if ref.ID != "" {
		_, ok := s.domains.Get(ref.ID)
		return ref.ID, ok
	}
	domain, ok := s.findDomain(ref.Name)
	return domain.ID, ok
}

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}
