// Package identity says who is calling: what Keystone told of a token.
package identity

import "context"

// Caller is the user and the project on whose behalf something is done.
type Caller struct {
	UserID      string
	ProjectID   string
	ProjectName string
	Roles       []string
	Admin       bool   // has the role that policy calls admin
	Token       string // the token itself; never logged, never stored
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
