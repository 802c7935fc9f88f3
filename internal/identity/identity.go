// Package identity is the identity of callers: Keystone's data about a token.
package identity

import (
	"context"
	"time"
)

// Caller is the user and the project on whose behalf something is done.
type Caller struct {
	UserID          string
	UserName        string
	UserDomainID    string
	UserDomainName  string
	ProjectID       string // "" for a token of no project, which only signing in knows
	ProjectName     string
	ProjectDomainID string
	Roles           []string
	Admin           bool      // an administrator, by the policy's rule context_is_admin
	Token           string    // the token itself; never logged, never stored
	Expires         time.Time // when the token ends; zero when that is not known
	// Credential is the application credential that the token was made with; nil when it was made with none.
	Credential *Credential

	policy func(rule string) bool
}

// Credential is one of Keystone's application credentials.
type Credential struct {
	ID, Name   string
	Restricted bool // made without --unrestricted, so that it may make no trusts
}

// Proof is the credentials of a sign-in: user, domain and password; or an application credential's id, or its name with user and domain, and its secret.
type Proof struct {
	User, Domain, Password               string
	CredentialID, CredentialName, Secret string
}

// Project is one that a user may choose to work in.
type Project struct {
	ID, Name, DomainID string
}

// Under returns the caller with the policy that May asks.
func (c Caller) Under(policy func(rule string) bool) Caller {
	c.policy = policy
	return c
}

// May reports whether the policy's rule of this name permits the caller. Without a policy, as in tests of lower layers, only administrators may.
func (c Caller) May(rule string) bool {
	if c.policy == nil {
		return c.Admin
	}
	return c.policy(rule)
}

type key struct{}

// With returns ctx with the caller in it.
func With(ctx context.Context, caller Caller) context.Context {
	return context.WithValue(ctx, key{}, caller)
}

// From returns the caller that With put into ctx, or the zero Caller.
func From(ctx context.Context) Caller {
	caller, _ := ctx.Value(key{}).(Caller)
	return caller
}
