package keystone

import (
	"context"
	"net/http"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// Validate returns the caller of a token; an invalid token is a fault of kind Unauthorized.
func (s *Service) Validate(_ context.Context, secret string) (identity.Caller, error) {
	found, ok := s.session(secret)
	if !ok {
		return identity.Caller{}, fault.New(fault.Unauthorized, "%s", errUnauthorized.message)
	}
	caller := identity.Caller{UserID: found.user.ID, ProjectID: found.scope.ProjectID, Admin: found.admin(), Token: secret}
	if project, ok := s.projects.Get(found.scope.ProjectID); ok {
		caller.ProjectName = project.Name
	}
	for _, role := range found.roles {
		caller.Roles = append(caller.Roles, role.Name)
	}
	return caller, nil
}

// Require lets a request pass to next only with a valid token, and puts who is calling into its context. The others get the
// answer of OpenStack's authentication middleware.
func (s *Service) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := s.Validate(r.Context(), r.Header.Get("X-Auth-Token"))
		if err != nil {
			s.writeFailure(w, r, errUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
	})
}
