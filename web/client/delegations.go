package client

import (
	"context"
	"net/http"
	"time"
)

// Delegation is the standing delegation of an environment: Burano's rights there on behalf of an absent user.
type Delegation struct {
	Kind     string     `json:"kind" yaml:"kind"` // trust, application_credential
	UserID   string     `json:"user_id" yaml:"user_id"`
	UserName string     `json:"user_name" yaml:"user_name"`
	Roles    []string   `json:"roles" yaml:"roles"`
	Created  time.Time  `json:"created" yaml:"created"`
	Expires  *time.Time `json:"expires" yaml:"expires"` // nil for never
}

// DelegationOptions are the options of a standing delegation: a trust of the caller, or an application credential of theirs.
type DelegationOptions struct {
	Roles      []string   `json:"roles,omitempty"`                  // of a trust; none: the server's setting
	Expires    *time.Time `json:"expires,omitempty"`                // of a trust; nil for never
	Credential string     `json:"application_credential,omitempty"` // its id
	Secret     string     `json:"secret,omitempty"`
}

func delegationPath(environment string) string {
	return "/burano/v1/environments/" + environment + "/delegation"
}

// Delegations are the calls about delegations of environments.
type Delegations struct{ client *Client }

// Delegations returns the calls about delegations of environments.
func (c *Client) Delegations() Delegations { return Delegations{c} }

// Get shows the standing delegation of an environment; nil when it has none.
func (c Delegations) Get(ctx context.Context, environment string) (*Delegation, error) {
	var found *Delegation
	err := c.client.Call(ctx, http.MethodGet, delegationPath(environment), nil, &found)
	return found, err
}

// Set gives an environment a standing delegation of the caller's.
func (c Delegations) Set(ctx context.Context, environment string, options DelegationOptions) (Delegation, error) {
	var made Delegation
	return made, c.client.Call(ctx, http.MethodPut, delegationPath(environment), options, &made)
}

// Revoke takes the standing delegation of an environment away.
func (c Delegations) Revoke(ctx context.Context, environment string) error {
	return c.client.Call(ctx, http.MethodDelete, delegationPath(environment), nil, nil)
}
