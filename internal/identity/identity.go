// Package identity says who is calling: what Keystone told of a token.
package identity

import (
	"context"
	"time"
)

// Caller is the user and the project on whose behalf something is done.
type Caller struct {
	UserID          string
	UserDomainID    string
	ProjectID       string
	ProjectName     string
	ProjectDomainID string
	Roles           []string
	Admin           bool      // an administrator, by the policy's rule context_is_admin
	Token           string    // the token itself; never logged, never stored
	Expires         time.Time // when the token ends; zero when that is not known

	policy func(rule string) bool
}

// Under returns the caller with the policy that May asks.
func (c Caller) Under(policy func(rule string) bool) Caller {
	c.policy = policy
	return c
}

// May tells whether the policy's rule of this name lets the caller through. Without a policy, as in tests of what lies below it,
// only administrators may.
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
