package openstack

import (
	"context"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/projects"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// SignIns gets tokens for users, and gives them back.
type SignIns struct{ identity *gophercloud.ServiceClient }

// SignIn gets a token from Keystone by a password, which then belongs to no project, or by an application credential, whose project it
// belongs to. If Keystone accepts neither, the error is a fault of kind Unauthorized; Keystone does not reveal which part is wrong.
func (s SignIns) SignIn(ctx context.Context, given identity.Proof) (token string, err error) {
	options := tokens.AuthOptions{Username: given.User, DomainName: given.Domain, Password: given.Password, ApplicationCredentialID: given.CredentialID,
		ApplicationCredentialName: given.CredentialName, ApplicationCredentialSecret: given.Secret}
	var builder tokens.AuthOptionsBuilder = &options
	refused := "Keystone takes no such user, domain and password, or the user is disabled"
	if given.Password == "" {
		refused = "Keystone takes no such application credential and secret, or it has expired, or its user is disabled"
	} else {
		builder = unscoped{&options}
	}
	return s.newToken(ctx, builder, refused)
}

// Scope exchanges a token for one of a project, which ends at the same time. If the user may not work in the project, the error is a
// fault of kind Forbidden.
func (s SignIns) Scope(ctx context.Context, token, projectID string) (scoped string, err error) {
	scoped, err = s.newToken(ctx, &tokens.AuthOptions{TokenID: token, Scope: tokens.Scope{ProjectID: projectID}}, "")
	if fault.KindOf(err) == fault.Unauthorized {
		return "", fault.New(fault.Forbidden, "Keystone lets you not work in project %s; GET /burano/v1/session/projects lists those that you may choose", projectID)
	}
	return scoped, err
}

// Projects lists the enabled projects that the owner of a token may choose to work in. If Keystone does not know the token any more, the
// error is a fault of kind Unauthorized.
func (s SignIns) Projects(ctx context.Context, token string) ([]identity.Project, error) {
	pages, err := allPages(ctx, projects.ListAvailable(s.as(token)))
	if gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) {
		return nil, fault.New(fault.Unauthorized, "Keystone does not know this token any more: sign in again")
	}
	if err != nil {
		return nil, fmt.Errorf("ask Keystone for a user's projects: %w", err)
	}
	found, err := projects.ExtractProjects(pages)
	if err != nil {
		return nil, fmt.Errorf("read a user's projects: %w", err)
	}
	list := []identity.Project{}
	for _, one := range found {
		if one.Enabled {
			list = append(list, identity.Project{ID: one.ID, Name: one.Name, DomainID: one.DomainID})
		}
	}
	return list, nil
}

// Revoke gives a token back; one that has ended is no error.
func (s SignIns) Revoke(ctx context.Context, token string) error {
	err := tokens.Revoke(ctx, s.as(token), token).Err
	if err != nil && !gophercloud.ResponseCodeIs(err, http.StatusUnauthorized) && !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return fmt.Errorf("give a token back to Keystone: %w", err)
	}
	return nil
}

// newToken asks without the service user's own token, so that a refusal is not taken for the end of that.
func (s SignIns) newToken(ctx context.Context, options tokens.AuthOptionsBuilder, refused string) (string, error) {
	result := tokens.Create(ctx, s.as(""), options)
	if gophercloud.ResponseCodeIs(result.Err, http.StatusUnauthorized) || gophercloud.ResponseCodeIs(result.Err, http.StatusForbidden) {
		return "", fault.New(fault.Unauthorized, "%s", refused)
	}
	token, err := result.ExtractTokenID()
	if err != nil {
		return "", fmt.Errorf("get a token from Keystone: %w", err)
	}
	return token, nil
}

// unscoped asks for a token of no project, also for a user with a default project.
type unscoped struct{ *tokens.AuthOptions }

// ToTokenV3CreateMap writes the request's body, with the scope that gophercloud has no word for
// (https://docs.openstack.org/api-ref/identity/v3/#password-authentication-with-explicit-unscoped-authorization).
func (o unscoped) ToTokenV3CreateMap(map[string]any) (map[string]any, error) {
	body, err := o.AuthOptions.ToTokenV3CreateMap(nil)
	if err == nil {
		body["auth"].(map[string]any)["scope"] = "unscoped"
	}
	return body, err
}

// ToTokenV3ScopeMap returns no scope.
func (unscoped) ToTokenV3ScopeMap() (map[string]any, error) { return nil, nil }
