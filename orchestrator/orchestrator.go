// Package orchestrator stores environments: their applications, the sessions that draft changes, and the deployments that
// make them so. It is the API without HTTP.
package orchestrator

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Trusts lets Burano's service user act for a caller after the caller's token has ended.
type Trusts interface {
	// CreateTrust makes a trust with these of the caller's roles, and the implied ones; it lasts for ever when expires is zero. If the
	// caller's token can make none, the error is a fault of kind Forbidden.
	CreateTrust(ctx context.Context, caller identity.Caller, roles []string, expires time.Time) (trustID string, granted []string, err error)
	DeleteTrust(ctx context.Context, trustID string) error
	// Missing returns the desired roles that are neither held nor implied by held ones.
	Missing(ctx context.Context, wanted, held []string) ([]string, error)
	// CheckCredential returns the owner of an application credential and its end; a fault of kind Unauthorized if Keystone does not
	// accept it.
	CheckCredential(ctx context.Context, id, secret string) (owner identity.Caller, expires time.Time, err error)
}

// Engine runs the tasks that Service writes.
type Engine interface {
	// Wake notifies the engine of a new task.
	Wake()
	// Cancel ends the task that runs in an environment after its cancellation was written.
	Cancel(environmentID string)
	// Abandon stops the task of an environment whose rows are gone, and revokes its delegations.
	Abandon(environmentID string)
	// Revoke notifies the engine that there may be an unused delegation.
	Revoke()
	// Check returns a model in the classes' form as a deployment would load it, or the errors that the deployment would find, with
	// the API's paths. Its result computed has, by the objects' ids, the properties that code sets and models do not (Usage: Out).
	Check(ctx context.Context, projectID string, packages map[string][]string, objects map[string]any) (loaded map[string]any,
		computed map[string][]string, problems []muranopl.Problem)
	// Plan computes the effects of deploying a model, in the classes' form. project is nil where the cloud is not asked.
	Plan(ctx context.Context, environment store.Environment, objects map[string]any, project func(context.Context) (*openstack.Project, error), looks bool) (preview.Plan, error)
	// RoleProject is an environment's project as reached with Burano's role; nil if the project gives it none.
	RoleProject(ctx context.Context, environment store.Environment) (*openstack.Project, error)
	// Ask asks a question of an environment as it was deployed last, and changes nothing.
	Ask(ctx context.Context, environment store.Environment, project func(context.Context) (*openstack.Project, error), question engine.Question) (any, error)
	// Secret returns a secret of an environment; false when there is none.
	Secret(ctx context.Context, environmentID, name string) ([]byte, bool, error)
	// CallStatic runs a static method at once.
	CallStatic(ctx context.Context, projectID string, class engine.ClassName, method string, args map[string]any) (any, error)
	// Schemas are the schemas of a class and of its model builders.
	Schemas(ctx context.Context, projectID string, class engine.ClassName, methods []string) (map[string]any, error)
	// Extending returns the types that are a class or extend it.
	Extending(ctx context.Context, projectID string, packages map[string][]string, types []string, class string) (map[string]bool, error)
	// Hidden returns a model in which hide has replaced the values that the classes of its objects declare as secrets.
	Hidden(ctx context.Context, projectID string, packages map[string][]string, model any, hide func(value any) any) any
	// Packages lists which of these versions of packages, by their names, the project sees in the catalog, and which it does not.
	Packages(ctx context.Context, projectID string, packages map[string][]string) (there, missing []store.PackagePart, err error)
	// Actions are the public methods of a class.
	Actions(ctx context.Context, projectID string, class engine.ClassName) ([]muranopl.Action, error)
}

// DefaultTrustRoles are the default roles of a task.
var DefaultTrustRoles = []string{"member"}

// Config configures a Service. All fields are needed except Now, which is time.Now when nil, TrustRoles and Values.
type Config struct {
	Store  *store.Store
	Sealer *secret.Sealer
	Trusts Trusts
	// ProjectOf is a caller's project in the cloud, to look at with the caller's token; nil: nothing looks there.
	ProjectOf func(ctx context.Context, caller identity.Caller) (*openstack.Project, error)
	// TrustRoles are the roles of its submitter that a task works with; nil selects DefaultTrustRoles.
	TrustRoles []string
	Engine     Engine
	Now        func() time.Time
	Logger     *slog.Logger
	// Values is how many values a model may have, names of members among them; DefaultValues when 0.
	Values int
}

// Service is safe for concurrent use. Its methods return faults (internal/fault) for mistakes of the caller. An environment
// belongs to a project, and only callers of that project and admins see it.
type Service struct{ *core }

// core is used by the types of all subjects: what the service was made of, and who may see which environment.
type core struct {
	store   *store.Store
	sealer  *secret.Sealer
	trusts  Trusts
	project func(ctx context.Context, caller identity.Caller) (*openstack.Project, error)
	roles   []string
	engine  Engine
	now     func() time.Time
	log     *slog.Logger
	values  int
	watched watched
}

// New makes a Service.
func New(config Config) *Service {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.TrustRoles == nil {
		config.TrustRoles = DefaultTrustRoles
	}
	return &Service{&core{store: config.Store, sealer: config.Sealer, trusts: config.Trusts, project: config.ProjectOf, roles: config.TrustRoles, engine: config.Engine, now: config.Now,
		log: config.Logger, values: cmp.Or(config.Values, DefaultValues), watched: watched{store: config.Store, tasks: map[string]*watchedTask{}}}}
}

// environment returns the environment when the caller may see it; its model is shared and must not be changed.
func (s *core) environment(ctx context.Context, caller identity.Caller, id string) (store.Environment, error) {
	row, err := s.store.Environments().Peek(ctx, id)
	return row, visible(row, caller, id, err)
}

// withSessions is environment, with all sessions of it. The sessions are read first: one that ends in between has its former state,
// and an environment that is deleted in between is not there. The other order would show it as ready, since it has no session.
func (s *core) withSessions(ctx context.Context, caller identity.Caller, id string) (store.Environment, []store.Session, error) {
	sessions, err := s.store.Sessions().PeekList(ctx, id)
	if err != nil {
		return store.Environment{}, nil, err
	}
	row, err := s.environment(ctx, caller, id)
	return row, sessions, err
}

// environmentHead is environment without the model.
func (s *core) environmentHead(ctx context.Context, caller identity.Caller, id string) (store.Environment, error) {
	row, err := s.store.Environments().Head(ctx, id)
	return row, visible(row, caller, id, err)
}

// visible returns a fault unless the environment was read and the caller may see it.
func visible(row store.Environment, caller identity.Caller, id string, err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return noEnvironment(id)
	}
	if err != nil {
		return err
	}
	if row.ProjectID != caller.ProjectID && !caller.Admin {
		return fault.New(fault.Forbidden, "User is not authorized to access these tenant resources")
	}
	return nil
}

func noEnvironment(id string) error {
	return fault.New(fault.NotFound, "Environment with id %s not found", id)
}

func noSession(id string) error {
	return fault.New(fault.NotFound, "Session <SessionId %s> is not found", id)
}

func staleSession(id string) error {
	return fault.New(fault.Forbidden, "Session <SessionId %s> is invalid: environment has been updated or updating right now with other session", id)
}

// anySession returns a session of any environment.
func (s *core) anySession(ctx context.Context, id string) (store.Session, error) {
	row, err := s.store.Sessions().Peek(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return row, noSession(id)
	}
	return row, err
}

// session returns the session when it is one of the environment's; its model is shared and must not be changed.
func (s *core) session(ctx context.Context, environmentID, id string) (store.Session, error) {
	row, err := s.anySession(ctx, id)
	if err == nil && row.EnvironmentID != environmentID {
		return row, foreignSession(id, environmentID)
	}
	return row, err
}

func foreignSession(id, environmentID string) error {
	return fault.New(fault.Invalid, "Session <SessionId %s> is not tied with Environment <EnvId %s>", id, environmentID)
}

// valid reports whether a session can still be used: there was no deployment since it was opened, and no other session
// is deploying.
func valid(environment store.Environment, session store.Session, sessions []store.Session) bool {
	if environment.Version > session.Version {
		return false
	}
	if !session.IsDraft() {
		return true
	}
	for _, other := range sessions {
		if other.State == store.Deploying || other.State == store.Deleting {
			return false
		}
	}
	return true
}

// draft returns the objects that a reader sees: the session's while it is valid, else the environment's own. sessionID
// may be "".
func (s *core) draft(ctx context.Context, environment store.Environment, sessionID string) (map[string]any, error) {
	if sessionID == "" {
		return environment.Model.Objects, nil
	}
	sessions, err := s.store.Sessions().PeekList(ctx, environment.ID)
	if err != nil {
		return nil, err
	}
	return s.draftAmong(ctx, environment, sessionID, sessions)
}

// draftAmong is draft for a caller that has the environment's sessions already.
func (s *core) draftAmong(ctx context.Context, environment store.Environment, sessionID string, sessions []store.Session) (map[string]any, error) {
	if sessionID == "" {
		return environment.Model.Objects, nil
	}
	session, err := s.session(ctx, environment.ID, sessionID)
	if err != nil {
		return nil, err
	}
	if !valid(environment, session, sessions) {
		return environment.Model.Objects, nil
	}
	return session.Model.Objects, nil
}
