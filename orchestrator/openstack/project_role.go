package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/roles"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// ServiceUser is the user that Burano signs in as.
func (s *Service) ServiceUser() Named { return s.user }

// LetIn gives the service user roles in a project, by the caller's own token: Keystone decides whether the caller may. Where the service user has the
// roles already, a caller who may not give them only makes use of that. The returned trust is the service user's for itself, of the granted roles: the
// given and the implied ones. Unlike the service user's own token, its tokens cannot be exchanged for a token of the service user's own project, where it
// is an administrator. They also have no other role of the service user in this project. former is an earlier trust of this kind, "" for none. It is
// returned again where it still fits: Heat keeps trusts that were made through it.
func (s *Service) LetIn(ctx context.Context, caller identity.Caller, projectID string, wanted []string, former string) (trustID string, err error) {
	refused, err := s.eachRole(ctx, wanted, func(id string) error {
		return roles.Assign(ctx, s.as(caller.Token), id, roles.AssignOpts{UserID: s.userID, ProjectID: projectID}).ExtractErr()
	})
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return "", fault.New(fault.NotFound, "Keystone knows no project %s (%w)", projectID, err)
	}
	if err != nil {
		return "", fmt.Errorf("give the service user a role in project %s: %w", projectID, err)
	}
	token, held, err := s.inProject(ctx, projectID)
	if err != nil {
		return "", err
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(role string) bool { return slices.Contains(held, role) })
	switch {
	case len(missing) > 0 && refused != nil:
		return "", fault.New(fault.Forbidden, "Keystone does not let you give roles in project %s. An administrator, or a manager of the project's domain, gives the "+
			"service user the role, then enable again: openstack role add --project %s --user %s %s (%w)", projectID, projectID, s.userID, missing[0], refused)
	case len(missing) > 0:
		return "", fault.New(fault.Conflict, "Keystone has given the service user the role %s in project %s, and does not name it in its token: try again", missing[0], projectID)
	}
	if former != "" {
		if fits, err := s.isOf(ctx, former, wanted); fits || err != nil {
			return former, err
		}
	}
	trustID, _, err = s.CreateTrust(ctx, identity.Caller{UserID: s.userID, ProjectID: projectID, Token: token, Roles: held}, wanted, time.Time{})
	return trustID, err
}

// LetOut takes the roles in a project from the service user, by the caller's own token. If Keystone does not let the caller, the error is a fault of kind
// Forbidden.
func (s *Service) LetOut(ctx context.Context, caller identity.Caller, projectID string, wanted []string) error {
	refused, err := s.eachRole(ctx, wanted, func(id string) error {
		err := roles.Unassign(ctx, s.as(caller.Token), id, roles.UnassignOpts{UserID: s.userID, ProjectID: projectID}).ExtractErr()
		if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("take the service user's role in project %s: %w", projectID, err)
	}
	if refused == nil {
		return nil
	}
	if _, held, err := s.inProject(ctx, projectID); err != nil || !slices.ContainsFunc(wanted, func(role string) bool { return slices.Contains(held, role) }) {
		return err
	}
	return fault.New(fault.Forbidden, "Keystone does not let you take roles in project %s. An administrator, or a manager of the project's domain, takes it: "+
		"openstack role remove --project %s --user %s %s (%w)", projectID, projectID, s.userID, strings.Join(wanted, " "), refused)
}

// WorksIn reports whether the service user can still work through a trust of LetIn.
func (s *Service) WorksIn(ctx context.Context, trustID string) (bool, error) {
	_, err := s.signIn(ctx, trustID)
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	return err == nil, err
}

// eachRole calls do for each role's id. refused is the last error by which Keystone forbade it; err any other.
func (s *Service) eachRole(ctx context.Context, names []string, do func(id string) error) (refused, err error) {
	for _, name := range names {
		id, err := s.roleID(ctx, name)
		if err != nil {
			return nil, err
		}
		if err = do(id); gophercloud.ResponseCodeIs(err, http.StatusForbidden) || gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
			refused = err
		} else if err != nil {
			return nil, err
		}
	}
	return refused, nil
}

func (s *Service) roleID(ctx context.Context, name string) (string, error) {
	found, err := listAll(ctx, roles.List(s.identity, roles.ListOpts{Name: name}), roles.ExtractRoles)
	if err != nil {
		return "", fmt.Errorf("look for the role %s: %w", name, err)
	}
	found = slices.DeleteFunc(found, func(role roles.Role) bool { return role.Name != name || role.DomainID != "" })
	if len(found) == 0 {
		return "", fault.New(fault.Invalid, "Keystone knows no role %s: have the operator set project-role to roles that there are", name)
	}
	return found[0].ID, nil
}

// inProject signs the service user in to a project by its password, and returns its roles there; none where it has none.
func (s *Service) inProject(ctx context.Context, projectID string) (token string, held []string, err error) {
	options := s.options
	options.TenantID, options.TenantName = "", ""
	options.Scope = &gophercloud.AuthScope{ProjectID: projectID}
	provider, err := authenticate(ctx, options, s.transport)
	if err = signedIn(err, "the project "+projectID); errors.Is(err, ErrRefused) {
		return "", nil, nil
	} else if err != nil {
		return "", nil, err
	}
	own, err := s.Validate(ctx, provider.Token())
	return provider.Token(), own.Roles, err
}

// isOf reports whether the service user can work through a trust that has just these roles and the implied ones.
func (s *Service) isOf(ctx context.Context, trustID string, wanted []string) (bool, error) {
	provider, err := s.signIn(ctx, trustID)
	if errors.Is(err, ErrRefused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	own, err := s.Validate(ctx, provider.Token())
	if err != nil {
		return false, err
	}
	implied, err := s.implied.of(ctx, s.identity)
	if err != nil {
		return false, err
	}
	missing := slices.ContainsFunc(wanted, func(role string) bool { return !slices.Contains(own.Roles, role) })
	return !missing && len(withImplied(wanted, implied, own.Roles)) == len(own.Roles), nil
}
