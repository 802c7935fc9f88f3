package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

const (
	environmentClass = "io.murano.Environment"
	// makingAge is the age at which a trust without a reference is orphaned: a younger one may still get its reference.
	makingAge = 10 * time.Minute
	// sweepBatch is how many orphaned delegations one query returns.
	sweepBatch = 50
	// sweepPause is the wait for the ends of further tasks after one has ended: their delegations are checked together.
	sweepPause = 250 * time.Millisecond
	// sweepTimeout limits the calls to Keystone and Heat about one delegation.
	sweepTimeout = 30 * time.Second
	// kept is the pause, in sweeps, before the next check of a delegation that Heat still needs; longest is the longest pause before the
	// next try to revoke one.
	kept    = 24 * 60
	longest = 60
	// abandonedAge is how long the data of abandoned tasks stay for their followers.
	abandonedAge = 24 * time.Hour
)

// Credential is the form of an application credential in a delegation.
type Credential struct {
	ID     string `json:"id"`
	Secret string `json:"secret"`
}

// rights are the engine's ways into projects, and the search for delegations that nothing needs any more.
type rights struct {
	*Config
	sweep chan struct{} // starts that search early
}

// project signs in through the delegation that a task was submitted with.
func (r *rights) project(ctx context.Context, task store.Task, environment store.Environment) (*openstack.Project, error) {
	delegation := store.Delegation{EnvironmentID: environment.ID, Kind: store.Trust, Sealed: environment.Trust} // of a task of a former version
	if task.DelegationID != "" {
		var err error
		delegation, err = r.Store.Delegations().Get(ctx, task.DelegationID)
		if errors.Is(err, store.ErrNotFound) {
			return nil, fault.New(fault.Forbidden, "the delegation that this %s works with was revoked: start it again to go on", task.Kind())
		}
		if err != nil {
			return nil, err
		}
	}
	if task.Repair && task.DelegationID == "" {
		return nil, fault.New(fault.Forbidden, "environment %s has no standing delegation, without which Burano does nothing in its project by itself: burano environment "+
			"delegation set, or deploy again", environment.ID)
	}
	if delegation.Kind == store.Role {
		project, _, err := r.byRole(ctx, environment)
		return project, err
	}
	if delegation.Sealed == "" {
		return nil, fmt.Errorf("environment %s has no trust, so that Burano cannot act in its project: deploy it again", environment.ID)
	}
	project, err := r.reach(ctx, delegation)
	if errors.Is(err, openstack.ErrRefused) {
		// The user has left; the project may let Burano go on with a role.
		if project, enabled, failed := r.byRole(ctx, environment); enabled {
			return project, failed
		}
		return nil, fmt.Errorf("Burano can act for the user who started this %s no more: they have left, lost a role in the project, or revoked "+
			"it. Another member of the project can start it again: %w", task.Kind(), err)
	}
	return project, err
}

// adopting is the project of an environment with the stacks that Murano made for it.
func (r *rights) adopting(ctx context.Context, environmentID string, project *openstack.Project) (*openstack.Project, error) {
	value, there, err := r.Store.Attributes().Get(ctx, environmentID, environmentID, environmentClass, AttributeAdopted)
	if err != nil || !there {
		return project, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var from TakenOver
	if err := json.Unmarshal(text, &from); err != nil {
		return nil, fmt.Errorf("read which stacks of Murano environment %s has: %w", environmentID, err)
	}
	return project.Adopting(from.stacks(environmentID)), nil
}

// reach signs in through a delegation.
func (r *rights) reach(ctx context.Context, delegation store.Delegation) (*openstack.Project, error) {
	opened, err := r.Sealer.Open(store.TrustOwner(delegation.EnvironmentID), delegation.Sealed)
	if err != nil {
		return nil, err
	}
	if delegation.Kind == store.Trust {
		project, err := r.Cloud.Project(ctx, string(opened))
		if err != nil {
			return nil, err
		}
		return r.adopting(ctx, delegation.EnvironmentID, project)
	}
	var credential Credential
	if err := json.Unmarshal(opened, &credential); err != nil {
		return nil, fmt.Errorf("read the application credential of environment %s: %w", delegation.EnvironmentID, err)
	}
	project, err := r.Cloud.ProjectByCredential(ctx, credential.ID, credential.Secret)
	if err != nil {
		return nil, err
	}
	return r.adopting(ctx, delegation.EnvironmentID, project)
}

// RoleIsGone is the error of tasks in a project whose role for Burano is gone from Keystone.
func RoleIsGone(projectID string) error {
	return fault.New(fault.Forbidden, "Burano's service user has no longer its role in project %s: a manager of the project, or an administrator, gives it back with burano project enable "+
		"--project %s, or ends this way to work with burano project disable --project %s", projectID, projectID, projectID)
}

// byRole signs in to an environment's project with the role that Burano has there. enabled is false if the project gives Burano none, which is an error too.
func (r *rights) byRole(ctx context.Context, environment store.Environment) (project *openstack.Project, enabled bool, err error) {
	project, err = r.RoleProject(ctx, environment)
	if project == nil && err == nil {
		return nil, false, fault.New(fault.Forbidden, "project %s does not let Burano work in it with a role of its own any more, as this was started to do: start it again to have it done in "+
			"your name, or have a manager of the project run burano project enable --project %s", environment.ProjectID, environment.ProjectID)
	}
	return project, true, err
}

// throughRole signs in to a project with the role that Burano has, or had, there.
func (r *rights) throughRole(ctx context.Context, role store.ProjectRole) (*openstack.Project, error) {
	trust, err := r.Sealer.Open(store.ProjectRoleOwner(role.ProjectID), role.Sealed)
	if err != nil {
		return nil, err
	}
	project, err := r.Cloud.Project(ctx, string(trust))
	if errors.Is(err, openstack.ErrRefused) {
		return nil, fmt.Errorf("%w: %w", RoleIsGone(role.ProjectID), err)
	}
	if err != nil {
		return nil, err
	}
	return openstack.ByRole(project), nil
}

// RoleProject is an environment's project as its tasks see it, if they work with a role of Burano's; nil if they do not.
func (r *rights) RoleProject(ctx context.Context, environment store.Environment) (*openstack.Project, error) {
	role, err := r.Store.ProjectRoles().Get(ctx, environment.ProjectID)
	if errors.Is(err, store.ErrNotFound) || err == nil && role.Disabled != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	project, err := r.throughRole(ctx, role)
	if err != nil {
		return nil, err
	}
	return r.adopting(ctx, environment.ID, project)
}

// StandingProject is the environment's project, reached outside of tasks through the role that Burano has there, or else through the environment's
// standing delegation. The returned id is the delegation's, or a name for the role; without either the error is store.ErrNotFound. known is the
// caller's present id, if any: if it is still right, project is nil.
func (r *rights) StandingProject(ctx context.Context, environmentID, known string) (project *openstack.Project, delegationID string, err error) {
	environment, err := r.Store.Environments().Head(ctx, environmentID)
	if err != nil {
		return nil, "", err
	}
	role, err := r.Store.ProjectRoles().Get(ctx, environment.ProjectID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, "", err
	}
	if err == nil && role.Disabled == nil {
		if delegationID = fmt.Sprintf("role since %d", role.Enabled); delegationID == known {
			return nil, delegationID, nil
		}
		project, _, err = r.byRole(ctx, environment)
		return project, delegationID, err
	}
	delegation, err := r.Store.Delegations().Standing(ctx, environmentID)
	if err != nil || delegation.ID == known {
		return nil, delegation.ID, err
	}
	project, err = r.reach(ctx, delegation)
	if errors.Is(err, openstack.ErrRefused) {
		err = fmt.Errorf("Burano can act for user %s no more, who gave environment %s its standing delegation: they have left, lost a role in the project, or revoked "+
			"it. Give it another one: %w", delegation.UserName, environmentID, err)
	}
	return project, delegation.ID, err
}

// lostUser returns an error when Heat can act no more for the user whose trust it keeps for a stack, so that it refuses every change of it. Heat keeps a
// trust that was made through one of ours. If Keystone refuses ours, it refuses Heat's. If ours is gone, as when its user was deleted, Heat's is too.
// Where Keystone cannot be asked, or where Heat may keep another trust, there is no answer. own is the task's delegation, whose change Heat has just
// refused.
func (r *rights) lostUser(ctx context.Context, environment store.Environment, own, stack string) error {
	rows, err := r.Store.Delegations().TrustsOfStack(ctx, environment.ID, stack)
	if err != nil {
		return err
	}
	var lost error
	for _, row := range rows {
		if row.ID == own {
			continue
		}
		if row.Kind == store.Role {
			// One trust serves all stacks of a project, so it does not show for which of them Heat keeps one. For the last user who changed this
			// stack, Heat does.
			role, err := r.Store.ProjectRoles().Get(ctx, environment.ProjectID)
			if err != nil {
				return nil
			}
			switch _, err := r.throughRole(ctx, role); {
			case errors.Is(err, openstack.ErrRefused):
				lost = fmt.Errorf("Heat can change stack %s no more: it keeps a trust of Burano's service user for it. %w", stack, RoleIsGone(role.ProjectID))
			default:
				lost = nil
			}
			continue
		}
		opened, err := r.Sealer.Open(store.TrustOwner(environment.ID), row.Sealed)
		if err != nil {
			return err
		}
		trust := string(opened)
		there, err := r.Cloud.HasTrust(ctx, trust)
		if err != nil {
			return nil
		}
		if !there {
			lost = fmt.Errorf("Heat can change stack %s no more: the trust of user %s that it keeps for it is gone from Keystone, as when a user is deleted, and "+
				"Heat takes no other in its place. Delete the environment, which works, and deploy it anew", stack, row.UserName)
			continue
		}
		if passedOn, err := r.Cloud.PassedOn(ctx, trust); err != nil {
			return nil
		} else if !passedOn {
			continue
		}
		if _, err := r.Cloud.Project(ctx, trust); !errors.Is(err, openstack.ErrRefused) {
			return nil
		}
		lost = fmt.Errorf("Heat can change stack %s no more: it keeps a trust of user %s for it, who has left, or lost a role in the project. Give it "+
			"back for the time of one deployment by another member, or delete the environment", stack, row.UserName)
	}
	return lost
}

// Revoke starts a search for orphaned delegations soon. It never blocks.
func (r *rights) Revoke() { signal(r.sweep) }

// sweepDelegations revokes delegations without a reference, until ctx ends. At first it also retries recent failures.
func (r *rights) sweepDelegations(ctx context.Context) {
	ticker := time.NewTicker(r.Sweep)
	defer ticker.Stop()
	for anew, asked := true, false; ; anew = false {
		var err error
		if !asked {
			err = errors.Join(r.Store.Delegations().AdoptTrusts(ctx), r.Store.Environments().ForgetAbandoned(ctx, abandonedAge))
		}
		if err = errors.Join(err, r.sweepOnce(ctx, anew)); err != nil && ctx.Err() == nil {
			r.Logger.Warn("orphaned trusts could not be looked for; trying again", "after", r.Sweep, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.sweep:
			asked = true
			select {
			case <-ctx.Done():
				return
			case <-time.After(sweepPause):
			}
			select { // requests from meanwhile are handled now
			case <-r.sweep:
			default:
			}
		case <-ticker.C:
			asked = false
		}
	}
}

// sweepOnce checks every delegation that is due once; with anew, it also retries failed revocations.
func (r *rights) sweepOnce(ctx context.Context, anew bool) error {
	seen := map[string]bool{}
	for ctx.Err() == nil {
		rows, err := r.Store.Delegations().Orphaned(ctx, sweepBatch, makingAge, anew)
		if err != nil {
			return err
		}
		looked := false
		for _, row := range rows {
			if ctx.Err() != nil || seen[row.ID] {
				continue
			}
			seen[row.ID], looked = true, true
			if err := r.revoke(ctx, row); err != nil && ctx.Err() == nil {
				pause := r.Sweep * time.Duration(min(longest, 1<<min(row.Tries, 10)))
				r.Logger.Warn("an orphaned trust could not be revoked; trying again", "environment", row.EnvironmentID, "user", row.UserID, "after", pause, "error", err)
				if err := r.Store.Delegations().Postpone(ctx, row.ID, pause, true); err != nil {
					return err
				}
			}
		}
		if !looked || len(rows) < sweepBatch {
			return nil // the remaining ones were postponed, or came later
		}
	}
	return nil
}

// revoke ends an orphaned delegation unless Heat needs it: to end a change that a task has begun, or for later work for the stack's user. When the
// environment is gone, the latter does not count.
func (r *rights) revoke(ctx context.Context, row store.Delegation) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	if row.Kind == store.Role {
		return r.revokeRole(ctx, row)
	}
	if row.Kind != store.Trust {
		return r.Store.Delegations().Forget(ctx, row.ID) // the user's own, and not ours to end
	}
	opened, err := r.Sealer.Open(store.TrustOwner(row.EnvironmentID), row.Sealed)
	if err != nil {
		return err
	}
	trust := string(opened)
	stacks, err := r.Store.Delegations().Stacks(ctx, row.ID)
	if err != nil {
		return err
	}
	if changing, err := r.Cloud.Changing(ctx, trust, stacks); err != nil {
		return err
	} else if changing {
		return r.Store.Delegations().Postpone(ctx, row.ID, r.Sweep, false)
	}
	_, err = r.Store.Environments().Head(ctx, row.EnvironmentID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	// Through a trust with which no stack was changed Heat has made none. Former versions noted no stacks, nor users.
	if err == nil && (len(stacks) > 0 || row.UserID == "") {
		// A trust that was deleted with its user stays in the database: it explains why Heat can change its stacks no more (lostUser).
		if there, err := r.Cloud.HasTrust(ctx, trust); err != nil {
			return err
		} else if !there && len(stacks) > 0 {
			return r.Store.Delegations().Postpone(ctx, row.ID, kept*r.Sweep, false)
		}
		if needed, err := r.Cloud.PassedOn(ctx, trust); err != nil {
			return err
		} else if needed {
			return r.Store.Delegations().Postpone(ctx, row.ID, kept*r.Sweep, false)
		}
	}
	if err := r.Cloud.DeleteTrust(ctx, trust); err != nil {
		return err
	}
	return r.Store.Delegations().Forget(ctx, row.ID)
}

// revokeRole deletes the record of a task's work with its project's role, unless the record names the user for whom Heat keeps the environment's stacks.
func (r *rights) revokeRole(ctx context.Context, row store.Delegation) error {
	stacks, err := r.Store.Delegations().Stacks(ctx, row.ID)
	if err != nil {
		return err
	}
	if len(stacks) > 0 {
		newer, err := r.Store.Delegations().NewerRole(ctx, row)
		if err != nil {
			return err
		}
		_, err = r.Store.Environments().Head(ctx, row.EnvironmentID)
		if err == nil && !newer {
			return r.Store.Delegations().Postpone(ctx, row.ID, kept*r.Sweep, false)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return r.Store.Delegations().Forget(ctx, row.ID)
}
