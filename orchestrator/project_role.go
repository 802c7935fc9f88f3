package orchestrator

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// DefaultProjectRoles are the roles that a project gives the service user without a setting.
var DefaultProjectRoles = []string{"member"}

// ServiceUser is Burano's own user in Keystone, which projects give roles to (openstack.Service).
type ServiceUser interface {
	ServiceUser() openstack.Named
	// LetIn gives the service user roles in a project by the caller's token, and returns a trust through which it works there with them alone. former is
	// the former trust, "" for none. If Keystone does not allow it to the caller, the error is a fault of kind Forbidden.
	LetIn(ctx context.Context, caller identity.Caller, projectID string, roles []string, former string) (trustID string, err error)
	// LetOut takes the roles back by the caller's token.
	LetOut(ctx context.Context, caller identity.Caller, projectID string, roles []string) error
	// WorksIn reports whether the service user can still work through a trust of LetIn.
	WorksIn(ctx context.Context, trustID string) (bool, error)
}

// ProjectRoles stores the projects that let Burano work in them with a role of its own. In such a project tasks need no trust of a user, and
// stacks are the service user's.
type ProjectRoles struct {
	store  *store.Store
	sealer *secret.Sealer
	cloud  ServiceUser
	roles  []string
	log    *slog.Logger
}

// NewProjectRoles makes ProjectRoles; roles are the roles that projects give, nil selects DefaultProjectRoles.
func NewProjectRoles(rows *store.Store, sealer *secret.Sealer, cloud ServiceUser, roles []string, log *slog.Logger) *ProjectRoles {
	if roles == nil {
		roles = DefaultProjectRoles
	}
	return &ProjectRoles{rows, sealer, cloud, roles, log}
}

// ProjectRole is Burano's role in a project.
type ProjectRole struct {
	ProjectID string
	User      openstack.Named // Burano's user, which has the roles
	Enabled   bool
	Roles     []string // its roles, or its future roles where it is not enabled
	By        string   // name of the user who enabled it
	Since     time.Time
	Problem   string // the reason why tasks fail though it is enabled; "" for none
}

// Show returns Burano's role in a project, and asks Keystone whether it still works.
func (p *ProjectRoles) Show(ctx context.Context, caller identity.Caller, projectID string) (ProjectRole, error) {
	shown := ProjectRole{ProjectID: projectID, User: p.cloud.ServiceUser(), Roles: p.roles}
	if err := ofOwnProject(caller, projectID); err != nil {
		return shown, err
	}
	row, err := p.store.ProjectRoles().Get(ctx, projectID)
	if errors.Is(err, store.ErrNotFound) || err == nil && row.Disabled != nil {
		return shown, nil
	}
	if err != nil {
		return shown, err
	}
	shown.Enabled, shown.Roles, shown.By, shown.Since = true, row.Roles, row.UserName, row.Enabled.Time()
	trust, err := p.sealer.Open(store.ProjectRoleOwner(projectID), row.Sealed)
	if err != nil {
		return shown, err
	}
	works, err := p.cloud.WorksIn(ctx, string(trust))
	if err == nil && !works {
		shown.Problem = engine.RoleIsGone(projectID).Error()
	}
	return shown, err
}

// Enable gives the service user its roles in a project, by the caller's token. Tasks that are submitted from then on work with
// them.
func (p *ProjectRoles) Enable(ctx context.Context, caller identity.Caller, projectID string) (ProjectRole, error) {
	if err := ofOwnProject(caller, projectID); err != nil {
		return ProjectRole{}, err
	}
	former := ""
	row, err := p.store.ProjectRoles().Get(ctx, projectID)
	if err == nil {
		trust, err := p.sealer.Open(store.ProjectRoleOwner(projectID), row.Sealed)
		if err != nil {
			return ProjectRole{}, err
		}
		former = string(trust)
	} else if !errors.Is(err, store.ErrNotFound) {
		return ProjectRole{}, err
	}
	trust, err := p.cloud.LetIn(ctx, caller, projectID, p.roles, former)
	if err != nil {
		return ProjectRole{}, err
	}
	row = store.ProjectRole{ProjectID: projectID, Sealed: p.sealer.Seal(store.ProjectRoleOwner(projectID), []byte(trust)), Roles: p.roles, UserID: caller.UserID, UserName: caller.UserName}
	if err := p.store.ProjectRoles().Enable(context.WithoutCancel(ctx), &row); err != nil {
		return ProjectRole{}, err
	}
	p.log.InfoContext(ctx, "a project lets Burano work in it with a role of its own", "project", projectID, "roles", p.roles, "by", caller.UserID)
	return p.Show(ctx, caller, projectID)
}

// Disable lets no task begin with the project's role any more, and then the caller removes it from the service user. If Keystone does not allow the
// removal to the caller, the error is a fault of kind Forbidden.
func (p *ProjectRoles) Disable(ctx context.Context, caller identity.Caller, projectID string) error {
	if err := ofOwnProject(caller, projectID); err != nil {
		return err
	}
	row, err := p.store.ProjectRoles().Get(ctx, projectID)
	if errors.Is(err, store.ErrNotFound) {
		return fault.New(fault.NotFound, "Project %s does not let Burano work in it with a role of its own", projectID)
	}
	if err != nil {
		return err
	}
	if err := p.store.ProjectRoles().Disable(ctx, projectID); err != nil {
		return err
	}
	p.log.InfoContext(ctx, "a project lets Burano work in it with a role of its own no more", "project", projectID, "by", caller.UserID)
	if err := p.cloud.LetOut(ctx, caller, projectID, row.Roles); err != nil {
		if fault.KindOf(err) == fault.Forbidden {
			return fault.New(fault.Forbidden, "Burano begins no task with its role in project %s any more, but still has it: %w", projectID, err)
		}
		return err
	}
	return nil
}

// ofOwnProject refuses callers that would change another project than their token's, except administrators.
func ofOwnProject(caller identity.Caller, projectID string) error {
	if caller.ProjectID == projectID || caller.Admin {
		return nil
	}
	return fault.New(fault.Forbidden, "A project lets Burano work in itself only: get a token of project %s", projectID)
}
