package orchestrator

import (
	"context"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/secret"
	"github.com/burano/burano/orchestrator/store"
)

// Previews computes the effects of deployments, and asks objects questions.
type Previews struct{ *core }

// Previews are the previews of deployments.
func (s *Service) Previews() Previews { return Previews{s.core} }

// Get compares a session's draft with the last deployed model, and checks it, without doing anything.
func (s Previews) Get(ctx context.Context, caller identity.Caller, environmentID, sessionID string) (preview.Plan, error) {
	environment, session, err := Sessions(s).own(ctx, caller, environmentID, sessionID)
	if err != nil {
		return preview.Plan{}, err
	}
	if err := (Sessions(s)).checkValid(ctx, environment, session); err != nil {
		return preview.Plan{}, err
	}
	return s.of(ctx, caller, environment, session.Model)
}

// New is Get for an environment that does not exist yet: body is as for Environments.Create, with the applications as services. A reason to
// refuse the creation, such as a quota, is a fault. Nothing is stored.
func (s Previews) New(ctx context.Context, caller identity.Caller, body map[string]any) (preview.Plan, error) {
	if _, list := body["services"].([]any); !list {
		return preview.Plan{}, fault.New(fault.Invalid, "The applications of an environment are a list: give them as \"services\"")
	}
	row, err := newEnvironment(caller, body)
	if err == nil {
		err = s.bounded(size{}, row.Model.Objects)
	}
	if err == nil {
		err = secret.Unmask(row.Model.Objects)
	}
	if err == nil {
		err = taken(s.store.Environments().Try(ctx, row))
	}
	if err != nil {
		return preview.Plan{}, err
	}
	return s.of(ctx, caller, row, row.Model)
}

// of compares a model with the last deployed one of an environment, and checks it.
func (s Previews) of(ctx context.Context, caller identity.Caller, environment store.Environment, model store.Model) (preview.Plan, error) {
	environment = environment.Back(model)
	after := map[string]any(store.ForClasses(environment.ID, store.Copy(model.Objects)))
	plan, err := s.engine.Plan(ctx, environment, after, s.taskProject(caller, environment), true)
	if err != nil {
		return plan, err
	}
	s.maskChanges(ctx, environment, plan.Changes, store.ForAPI(environment.Model.ObjectsCopy), plan.After)
	plan.Consents = plan.Missing(model.MayDestroy)
	return plan, nil
}

// projectFor is the project of a caller, with their token; nil where Burano asks no cloud.
func (s *core) projectFor(caller identity.Caller) func(context.Context) (*openstack.Project, error) {
	if s.project == nil {
		return nil
	}
	return func(ctx context.Context) (*openstack.Project, error) { return s.project(ctx, caller) }
}

// taskProject is an environment's project as a task of the caller's will see it: with Burano's role in it, or else with the caller's rights. nil where Burano asks no cloud.
func (s *core) taskProject(caller identity.Caller, environment store.Environment) func(context.Context) (*openstack.Project, error) {
	if s.project == nil {
		return nil
	}
	return func(ctx context.Context) (*openstack.Project, error) {
		project, err := s.engine.RoleProject(ctx, environment)
		if project != nil || err != nil {
			return project, err
		}
		return s.project(ctx, caller)
	}
}

// Ask asks a question of an object of an environment, with the caller's token. It changes nothing.
func (s Previews) Ask(ctx context.Context, caller identity.Caller, environmentID, objectID string, question engine.Question) (any, error) {
	if err := (Environments(s)).MayReach(ctx, caller, environmentID, objectID); err != nil {
		return nil, err
	}
	environment, err := s.environment(ctx, caller, environmentID)
	if err != nil {
		return nil, err
	}
	if s.project == nil {
		return nil, fault.New(fault.NotFound, "This Burano asks no cloud")
	}
	return s.engine.Ask(ctx, environment, s.projectFor(caller), question)
}

// maskChanges masks secrets by class in the values of changed properties.
func (s Previews) maskChanges(ctx context.Context, environment store.Environment, found []preview.Change, before, after map[string]any) {
	if !muranopl.MayHide(before) && !muranopl.MayHide(after) {
		return
	}
	was, is := preview.Objects(s.shown(ctx, environment, before)), preview.Objects(s.shown(ctx, environment, after))
	for _, change := range found {
		for i, value := range change.Values {
			change.Values[i].Before, change.Values[i].After = preview.Masked(value.Name, was[change.ID].Fields[value.Name]), preview.Masked(value.Name, is[change.ID].Fields[value.Name])
		}
	}
}

// InvalidModel is a fault: a draft that cannot be deployed, with all its errors.
type InvalidModel struct{ Problems []muranopl.Problem }

func (e *InvalidModel) Error() string {
	texts := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		texts[i] = problem.Error()
	}
	return strings.Join(texts, "\n")
}

// Unwrap makes it a fault of kind Invalid.
func (e *InvalidModel) Unwrap() error { return fault.New(fault.Invalid, "%s", e.Error()) }
