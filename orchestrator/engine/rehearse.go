package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/preview"
	"github.com/burano/burano/orchestrator/store"
)

// rehearsalTimeout is how long the code of applications may take to declare its needs of the cloud.
const rehearsalTimeout = time.Minute

// Stage is the part of the engine that a rehearsal may read. Nothing is written through it.
type Stage struct {
	engine      *Engine
	environment store.Environment
	region      string
	project     func(context.Context) (*openstack.Project, error)
	looks       bool
}

// Looks reports whether a user wants to see the effects of the deployment; otherwise only reasons to refuse it matter.
func (s *Stage) Looks() bool { return s.looks }

// EnvironmentID is the id of the environment.
func (s *Stage) EnvironmentID() string { return s.environment.ID }

// Former is the model that was deployed last, in the classes' form; nil for none.
func (s *Stage) Former() map[string]any { return s.environment.Model.ObjectsCopy }

// Attribute is Runtime.Attribute.
func (s *Stage) Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error) {
	return s.engine.Store.Attributes().Get(ctx, s.environment.ID, object.ID(), object.Class().Name, name)
}

// CodeAttribute is Runtime.CodeAttribute.
func (s *Stage) CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	stored, found, err := s.engine.Store.Attributes().Get(ctx, s.environment.ID, object.ID(), class, codePrefix+name)
	if err != nil || !found {
		return nil, false, err
	}
	value, err := s.engine.openAttribute(ctx, s.environment.ID, object.ID(), class, name, stored)
	return value, err == nil, err
}

// Secret is Runtime.Secret.
func (s *Stage) Secret(ctx context.Context, name string) ([]byte, bool, error) {
	return s.engine.Secret(ctx, s.environment.ID, name)
}

// Project is the project of the rehearsal, in the environment's region.
func (s *Stage) Project(ctx context.Context) (*openstack.Project, error) {
	project, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	if project, err = s.engine.adopting(ctx, s.environment.ID, project); err != nil {
		return nil, err
	}
	return project.In(ctx, s.region)
}

// Rehearsed computes the effects of a model's deployment. Its error has the servers that the deployment would rebuild, resize or replace
// (openstack.ServerChanges).
type Rehearsed func(context.Context, *muranopl.Interpreter, *muranopl.Object) (preview.Foreseen, error)

// Plan computes the effects of deploying a model, in the classes' form, on an environment. It changes nothing. For an environment that was never deployed
// the plan is empty unless looks is set (Stage.Looks). project is nil where the cloud is not asked.
func (e *Engine) Plan(ctx context.Context, environment store.Environment, objects map[string]any,
	project func(context.Context) (*openstack.Project, error), looks bool) (preview.Plan, error) {
	draft, err := preview.DraftOf(store.ForAPI(environment.Model.ObjectsCopy), store.ForAPI(objects), e.Sealer.Sum)
	if err != nil {
		return preview.Plan{}, err
	}
	plan, err := planOf(ctx, e, environment, objects, project, looks)
	return draft.Of(plan), err
}

// planOf is Plan without the objects of the draft.
func planOf(ctx context.Context, e *Engine, environment store.Environment, objects map[string]any,
	project func(context.Context) (*openstack.Project, error), looks bool) (preview.Plan, error) {
	if environment.Model.ObjectsCopy == nil && !looks {
		return preview.Plan{}, nil
	}
	before, after, foreseen := store.ForAPI(environment.Model.ObjectsCopy), objects, preview.Foreseen{}
	if looks {
		loaded, computed, problems := e.Check(ctx, environment.ProjectID, environment.Model.Packages, objects)
		if len(problems) > 0 {
			foreseen.Computed = computed
			plan := preview.Of(before, store.ForAPI(loaded), foreseen)
			plan.Problems = problems
			return plan, nil
		}
		after, foreseen.Computed = loaded, computed
	}
	if e.Rehearsal != nil && project != nil {
		told, err := e.rehearse(ctx, environment, objects, project, looks)
		if err != nil && (!looks || ctx.Err() != nil || fault.KindOf(err) != 0) {
			return preview.Plan{}, err
		}
		if told.Model != nil {
			after, foreseen = told.Model, told
		}
		if err != nil { // an outage of the cloud delays a deployment: its task asks again, and refuses the same things
			foreseen.Notes = append(foreseen.Notes, fmt.Sprintf("servers, volumes and clusters were not looked at: %s; the deployment looks again before its first change", err))
		}
	}
	return preview.Of(before, store.ForAPI(after), foreseen), nil
}

// rehearse runs the classes' own previews of the deployment of a model. A model that cannot be loaded is no error here: the
// deployment reports it.
func (e *Engine) rehearse(ctx context.Context, environment store.Environment, objects map[string]any,
	project func(context.Context) (*openstack.Project, error), looks bool) (preview.Foreseen, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, rehearsalTimeout, fmt.Errorf("what the deployment would change was not found out within %s", rehearsalTimeout))
	defer cancel()
	classes := e.classes(environment.ProjectID)
	if err := classes.Fix(ctx, environment.Model.Packages); err != nil {
		return preview.Foreseen{}, nil
	}
	natives, run := e.Rehearsal(&Stage{engine: e, environment: environment, region: regionOf(objects, environment), project: project, looks: looks})
	interpreter := muranopl.NewInterpreter(classes, natives, muranopl.WithLimits(e.Code))
	root, start, problems := interpreter.Prepare(ctx, objects)
	if len(problems) > 0 {
		return preview.Foreseen{}, nil
	}
	if err := start(ctx); err != nil {
		return preview.Foreseen{}, nil
	}
	if err := savable(root, objects); err != nil {
		return preview.Foreseen{}, fault.New(fault.TooLarge, "%w", err)
	}
	model, computed := muranopl.Save(root), computedOf(func(visit func(*muranopl.Object)) {
		root.Walk(func(object *muranopl.Object) bool { visit(object); return true })
	})
	foreseen, err := run(ctx, interpreter, root)
	if servers := openstack.ServerChanges(err); len(servers) > 0 {
		foreseen.Servers, err = servers, nil
	}
	foreseen.Model, foreseen.Computed = model, computed
	foreseen.OnChange = onChange(context.WithoutCancel(ctx), root)
	return foreseen, err
}

// onChange looks the declared effects of changes up in the classes of a model's objects.
func onChange(ctx context.Context, root *muranopl.Object) func(objectID, property string) muranopl.OnChange {
	objects := map[string]*muranopl.Object{}
	root.Walk(func(object *muranopl.Object) bool { objects[object.ID()] = object; return true })
	return func(objectID, property string) muranopl.OnChange {
		if object := objects[objectID]; object != nil {
			return muranopl.OnChangeOf(ctx, object, property)
		}
		return muranopl.OnChange{}
	}
}

// Question is asked of an environment as it was deployed last, by bodies that change nothing.
type Question func(*Stage) (natives muranopl.Natives, ask func(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object) (any, error))

// Ask asks a question of an environment in its last deployed state. It changes nothing. If the environment was never deployed, the error is a
// fault of kind Invalid.
func (e *Engine) Ask(ctx context.Context, environment store.Environment, project func(context.Context) (*openstack.Project, error), question Question) (any, error) {
	objects := environment.Model.ObjectsCopy
	if objects == nil {
		return nil, fault.New(fault.Invalid, "Environment %s was not deployed yet: deploy it first", environment.Name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rehearsalTimeout, fmt.Errorf("it was not found out within %s", rehearsalTimeout))
	defer cancel()
	classes := e.classes(environment.ProjectID)
	if err := classes.Fix(ctx, environment.Model.Packages); err != nil {
		return nil, err
	}
	natives, ask := question(&Stage{engine: e, environment: environment, region: regionOf(objects, environment), project: project})
	interpreter := muranopl.NewInterpreter(classes, natives, muranopl.WithLimits(e.Code))
	root, start, problems := interpreter.Prepare(ctx, store.Copy(objects))
	if len(problems) > 0 {
		return nil, fault.New(fault.Invalid, "What was deployed can no longer be read: %s", problems[0].Error())
	}
	if err := start(ctx); err != nil {
		return nil, err
	}
	return ask(ctx, interpreter, root)
}
