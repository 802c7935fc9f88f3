package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/store"
)

// Delegation is an environment's standing delegation as a caller sees it.
type Delegation struct {
	Kind             string // trust, application_credential
	UserID, UserName string
	Roles            []string
	Created          time.Time
	Expires          *time.Time // nil for never
}

func seenDelegation(row store.Delegation) Delegation {
	seen := Delegation{Kind: row.Kind, UserID: row.UserID, UserName: row.UserName, Roles: row.Roles, Created: row.Created.Time()}
	if row.Expires != nil {
		expires := row.Expires.Time()
		seen.Expires = &expires
	}
	return seen
}

// Delegate describes a new standing delegation: a trust of the caller with these roles (none: the roles of trust-roles) until a time (zero for ever),
// or an application credential of the caller's.
type Delegate struct {
	Roles            []string
	Expires          time.Time
	CredentialID     string
	CredentialSecret string
}

// Delegations gives Burano rights of users in projects, for a task or an environment.
type Delegations struct{ *core }

// Delegations are the rights of users that Burano was given.
func (s *Service) Delegations() Delegations { return Delegations{s.core} }

// Get shows the environment's standing delegation; a fault of kind NotFound when it has none.
func (s Delegations) Get(ctx context.Context, caller identity.Caller, environmentID string) (delegation Delegation, found bool, err error) {
	if _, err := s.environmentHead(ctx, caller, environmentID); err != nil {
		return Delegation{}, false, err
	}
	row, err := s.store.Delegations().Standing(ctx, environmentID)
	if errors.Is(err, store.ErrNotFound) {
		return Delegation{}, false, nil
	}
	return seenDelegation(row), err == nil, err
}

func noDelegation(environmentID string) error {
	return fault.New(fault.NotFound, "Environment %s has no standing delegation", environmentID)
}

// Set gives the environment a standing delegation of the caller's. It replaces the former one, which must be the caller's too
// unless the caller may revoke any.
func (s Delegations) Set(ctx context.Context, caller identity.Caller, environmentID string, wanted Delegate) (Delegation, error) {
	environment, err := s.environmentHead(ctx, caller, environmentID)
	if err != nil {
		return Delegation{}, err
	}
	if err := s.ofProject(caller, environment); err != nil {
		return Delegation{}, err
	}
	former, err := s.replaceable(ctx, caller, environmentID)
	if err != nil {
		return Delegation{}, err
	}
	var row store.Delegation
	if wanted.CredentialID != "" {
		row, err = s.credential(ctx, caller, environment, wanted)
	} else {
		if len(wanted.Roles) == 0 {
			wanted.Roles = s.roles
		} else if missing := slices.IndexFunc(wanted.Roles, func(role string) bool { return !slices.Contains(caller.Roles, role) }); missing >= 0 {
			return Delegation{}, fault.New(fault.Invalid, "The role %q is not yours in this project: yours are %s", wanted.Roles[missing], strings.Join(caller.Roles, ", "))
		}
		row, err = s.newTrust(ctx, caller, environment, wanted.Roles, wanted.Expires)
	}
	if err != nil {
		return Delegation{}, err
	}
	if err := s.store.Delegations().SetStanding(ctx, environmentID, row.ID, former.ID); err != nil {
		s.giveBack(ctx, row)
		return Delegation{}, replaced(err, environmentID)
	}
	s.log.InfoContext(ctx, "an environment has a standing delegation", "environment", environmentID, "user", row.UserID, "kind", row.Kind, "roles", row.Roles)
	s.engine.Revoke()
	return seenDelegation(row), nil
}

// Revoke removes the environment's standing delegation. No task can be started with it from then on; its trust ends once no task
// works with it and Heat keeps nothing that was made through it.
func (s Delegations) Revoke(ctx context.Context, caller identity.Caller, environmentID string) error {
	if _, err := s.environmentHead(ctx, caller, environmentID); err != nil {
		return err
	}
	former, err := s.replaceable(ctx, caller, environmentID)
	if err != nil {
		return err
	}
	if former.ID == "" {
		return noDelegation(environmentID)
	}
	if err := s.store.Delegations().SetStanding(ctx, environmentID, "", former.ID); err != nil {
		return replaced(err, environmentID)
	}
	s.log.InfoContext(ctx, "a standing delegation was revoked", "environment", environmentID, "user", former.UserID, "by", caller.UserID)
	s.engine.Revoke()
	return nil
}

// replaceable returns the environment's standing delegation when the caller may remove it; the zero value when there is none.
func (s Delegations) replaceable(ctx context.Context, caller identity.Caller, environmentID string) (store.Delegation, error) {
	former, err := s.store.Delegations().Standing(ctx, environmentID)
	if errors.Is(err, store.ErrNotFound) {
		return store.Delegation{}, nil
	}
	if err == nil && former.UserID != caller.UserID && !caller.May("revoke_any_delegation") {
		return former, fault.New(fault.Forbidden, "The standing delegation of environment %s is that of user %s: only they, or an administrator, may "+
			"replace or revoke it", environmentID, former.UserName)
	}
	return former, err
}

func replaced(err error, environmentID string) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return noEnvironment(environmentID)
	case errors.Is(err, store.ErrRevoked):
		return fault.New(fault.Conflict, "The standing delegation of environment %s was changed at the same time: look at it and try again", environmentID)
	}
	return err
}

// credential stores a working application credential, which must be the caller's and of the environment's project.
func (s Delegations) credential(ctx context.Context, caller identity.Caller, environment store.Environment, wanted Delegate) (store.Delegation, error) {
	owner, expires, err := s.trusts.CheckCredential(ctx, wanted.CredentialID, wanted.CredentialSecret)
	if fault.KindOf(err) == fault.Unauthorized {
		return store.Delegation{}, fault.New(fault.Invalid, "%w", err)
	}
	if err != nil {
		return store.Delegation{}, err
	}
	if owner.UserID != caller.UserID || owner.ProjectID != environment.ProjectID {
		return store.Delegation{}, fault.New(fault.Invalid, "The application credential is not yours, or not of project %s: make one there with openstack "+
			"application credential create", environment.ProjectID)
	}
	text, err := json.Marshal(engine.Credential{ID: wanted.CredentialID, Secret: wanted.CredentialSecret})
	if err != nil {
		return store.Delegation{}, err
	}
	return s.keep(ctx, caller, environment, store.Delegation{Kind: store.ApplicationCredential, Roles: owner.Roles}, text, expires)
}

// delegate returns the delegation for a task of the caller's: the role that Burano has in the project, or else a trust of its own. If the caller's token
// can make no trust, it is the caller's standing delegation. giveBack must be called unless the task takes it.
func (s Delegations) delegate(ctx context.Context, caller identity.Caller, environment store.Environment) (store.Delegation, error) {
	if err := s.ofProject(caller, environment); err != nil {
		return store.Delegation{}, err
	}
	role, err := s.store.ProjectRoles().Get(ctx, environment.ProjectID)
	switch {
	case err == nil && role.Disabled == nil:
		row := store.Delegation{Kind: store.Role, Roles: role.Roles, EnvironmentID: environment.ID, UserID: caller.UserID, UserName: caller.UserName}
		return row, s.store.Delegations().Add(context.WithoutCancel(ctx), &row)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return store.Delegation{}, err
	}
	roles := slices.DeleteFunc(slices.Clone(s.roles), func(role string) bool { return !slices.Contains(caller.Roles, role) })
	if len(roles) == 0 {
		return store.Delegation{}, fault.New(fault.Forbidden, "You have none of the roles that Burano works with in project %s: %s. Ask for one of them, or "+
			"the operator to add one of yours to the setting trust-roles", environment.ProjectID, strings.Join(s.roles, ", "))
	}
	row, err := s.newTrust(ctx, caller, environment, roles, time.Time{})
	if fault.KindOf(err) != fault.Forbidden {
		return row, err
	}
	standing, lookup := s.store.Delegations().Standing(ctx, environment.ID)
	switch {
	case lookup == nil && standing.UserID == caller.UserID:
		return s.covered(ctx, caller, standing)
	case lookup != nil && !errors.Is(lookup, store.ErrNotFound):
		return store.Delegation{}, lookup
	}
	return store.Delegation{}, fault.New(fault.Forbidden, "%w. Or give environment %s once a standing delegation of yours, with which tasks can be started that "+
		"come with such a token: burano environment delegation set, or PUT /burano/v1/environments/%s/delegation. Or a manager of the project lets Burano work in it with a role of "+
		"its own, which every token is enough for: burano project enable", err, environment.ID, environment.ID)
}

// covered returns a standing delegation of the caller's unless it grants a role that the caller's token lacks: an application credential may have been
// made with fewer roles than its owner has.
func (s Delegations) covered(ctx context.Context, caller identity.Caller, standing store.Delegation) (store.Delegation, error) {
	missing, err := s.trusts.Missing(ctx, standing.Roles, caller.Roles)
	if err == nil && len(missing) > 0 {
		err = fault.New(fault.Forbidden, "The standing delegation of environment %s grants the role %s, which this token has not (it has %s): give the environment a delegation of "+
			"fewer roles (burano environment delegation set --role), or use a credential that has them", standing.EnvironmentID, strings.Join(missing, ", "), cmp.Or(strings.Join(caller.Roles, ", "), "none"))
	}
	return standing, err
}

// ofProject returns a fault unless the caller works in the environment's project: Burano acts for a user in that user's project only.
func (s Delegations) ofProject(caller identity.Caller, environment store.Environment) error {
	if caller.ProjectID == environment.ProjectID {
		return nil
	}
	return fault.New(fault.Forbidden, "Environment %s must be changed by a member of its project %s: Burano acts in the cloud in that user's name. Get a token "+
		"of that project", environment.ID, environment.ProjectID)
}

// newTrust makes a trust of the caller's. Its row is written before anything else can fail: giveBack revokes a trust without a reference, or the engine
// does when this process dies in between.
func (s Delegations) newTrust(ctx context.Context, caller identity.Caller, environment store.Environment, roles []string, expires time.Time) (store.Delegation, error) {
	id, granted, err := s.trusts.CreateTrust(ctx, caller, roles, expires)
	if err != nil {
		return store.Delegation{}, err
	}
	row, err := s.keep(ctx, caller, environment, store.Delegation{Kind: store.Trust, Roles: granted}, []byte(id), expires)
	if err != nil {
		s.giveBack(ctx, row)
	}
	return row, err
}

// keep seals and stores a delegation of the caller's.
func (s Delegations) keep(ctx context.Context, caller identity.Caller, environment store.Environment, row store.Delegation, opened []byte, expires time.Time) (store.Delegation, error) {
	row.EnvironmentID, row.UserID, row.UserName = environment.ID, caller.UserID, caller.UserName
	row.Sealed = s.sealer.Seal(store.TrustOwner(environment.ID), opened)
	if !expires.IsZero() {
		until := store.Time(expires.UTC().UnixMicro())
		row.Expires = &until
	}
	return row, s.store.Delegations().Add(context.WithoutCancel(ctx), &row)
}

// giveBackTimeout limits the call to Keystone that revokes an unused trust.
const giveBackTimeout = 10 * time.Second

// giveBack revokes an unused delegation.
func (s Delegations) giveBack(ctx context.Context, row store.Delegation) {
	if row.Standing {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTimeout)
	defer cancel()
	var err error
	if row.Kind == store.Trust {
		var trust []byte
		if trust, err = s.sealer.Open(store.TrustOwner(row.EnvironmentID), row.Sealed); err == nil {
			err = s.trusts.DeleteTrust(ctx, string(trust))
		}
	}
	if err == nil {
		err = s.store.Delegations().Forget(ctx, row.ID)
	}
	if err != nil {
		s.log.WarnContext(ctx, "a trust that nothing was deployed with could not be revoked; it is tried again", "environment", row.EnvironmentID, "error", err)
	}
}

// revoked is the fault when a task's delegation was revoked before the task was written.
func revoked(err error) error {
	if errors.Is(err, store.ErrRevoked) {
		return fault.New(fault.Conflict, "The standing delegation that this was to be done with was revoked or replaced at this moment: try again")
	}
	return err
}
