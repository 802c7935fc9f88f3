package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// rehearsalTimeout is how long the code of applications may take to say what it wants of the cloud.
const rehearsalTimeout = time.Minute

// Stage is what a rehearsal may look at. Nothing is written through it.
type Stage struct {
	engine        *Engine
	environmentID string
	region        string
	project       func(context.Context) (*openstack.Project, error)
	looks         bool
}

// Looks tells whether somebody wants to see what the deployment would do; else only what would have it refused is of interest.
func (s *Stage) Looks() bool { return s.looks }

// EnvironmentID is the id of the environment.
func (s *Stage) EnvironmentID() string { return s.environmentID }

// Attribute is Runtime.Attribute.
func (s *Stage) Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error) {
	return s.engine.Store.Attribute(ctx, s.environmentID, object.ID(), object.Class().Name, name)
}

// CodeAttribute is Runtime.CodeAttribute.
func (s *Stage) CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	stored, found, err := s.engine.Store.Attribute(ctx, s.environmentID, object.ID(), class, codePrefix+name)
	if err != nil || !found {
		return nil, false, err
	}
	value, err := s.engine.openAttribute(ctx, s.environmentID, object.ID(), class, name, stored)
	return value, err == nil, err
}

// Secret is Runtime.Secret.
func (s *Stage) Secret(ctx context.Context, name string) ([]byte, bool, error) {
	return s.engine.Secret(ctx, s.environmentID, name)
}

// Project is the project that is looked at, in the environment's region.
func (s *Stage) Project(ctx context.Context) (*openstack.Project, error) {
	project, err := s.project(ctx)
	if err != nil {
		return nil, err
	}
	if project, err = s.engine.adopting(ctx, s.environmentID, project); err != nil {
		return nil, err
	}
	return project.In(ctx, s.region)
}

// Foreseen is what a deployment of a model would do to what is there.
type Foreseen struct {
	Kept  []openstack.Kept // the servers and volumes of the environment's stack
	Means []string         // for a person: what it does besides, and what that costs
	// Refused are objects that cannot be as the model says, for which it would do nothing.
	Refused []Refusal
	// Consents are objects whose data would lose its application, for which it is refused unless the caller allows it; found out for who looks only.
	Consents []Refusal
	// Objects are what of Kubernetes it would add, change and remove through Helm releases; found out for who looks only.
	Objects []KubernetesChange
	// Model is the model with what its classes add to it when it is loaded, and Computed are the properties in it that code gives, by the
	// objects' ids; nil where nothing was deployed before.
	Model    map[string]any
	Computed map[string][]string
}

// KubernetesChange is an object of Kubernetes that a deployment would add, change or remove.
type KubernetesChange struct {
	ObjectID, Object string // the object of the model that it belongs to, and its name
	What             string // added, changed or removed
	Kind             string
	Namespace, Name  string            // the namespace may be ""
	Fields           []KubernetesField // of a changed object
	More             int               // of its fields, besides
}

// KubernetesField is a part of an object of Kubernetes that would be other than it is; nil stands for one that is not there. Secrets are masked.
type KubernetesField struct {
	Path          string // such as spec.template.spec.containers[web].image
	Before, After any
}

// Refusal says why an object of a model cannot be as it is to be.
type Refusal struct{ ObjectID, Text string }

// Rehearsed finds out what a deployment of a model would do to what is there, and in the error the servers that it would rebuild, resize or
// replace (openstack.ServerChanges).
type Rehearsed func(context.Context, *muranopl.Interpreter, *muranopl.Object) (Foreseen, error)

// Rehearse finds out whether the deployment of a model, in the classes' form, would rebuild, resize or replace servers of an environment
// that was deployed before: an error with openstack.ServerChanges; which objects cannot be as the model has them; and which of its servers and volumes the model still wants, besides those
// of objects that it no longer has. It changes nothing. A model that cannot be loaded is the deployment's to tell. looks is Stage.Looks.
func (e *Engine) Rehearse(ctx context.Context, environment store.Environment, objects map[string]any,
	project func(context.Context) (*openstack.Project, error), looks bool) (Foreseen, error) {
	if e.Rehearsal == nil || environment.Model.ObjectsCopy == nil && !looks {
		return Foreseen{}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, rehearsalTimeout, fmt.Errorf("what the deployment would change was not found out within %s", rehearsalTimeout))
	defer cancel()
	classes := e.classes(environment.ProjectID)
	if err := classes.Fix(ctx, environment.Model.Packages); err != nil {
		return Foreseen{}, nil
	}
	natives, run := e.Rehearsal(&Stage{engine: e, environmentID: environment.ID, region: regionOf(objects, environment), project: project, looks: looks})
	interpreter := muranopl.NewInterpreter(classes, natives, muranopl.WithLimits(e.Code))
	root, start, problems := interpreter.Prepare(ctx, objects)
	if len(problems) > 0 {
		return Foreseen{}, nil
	}
	if err := start(ctx); err != nil {
		return Foreseen{}, nil
	}
	if err := savable(root, objects); err != nil {
		return Foreseen{}, fault.New(fault.TooLarge, "%w", err)
	}
	model, computed := muranopl.Save(root), computedOf(root)
	foreseen, err := run(ctx, interpreter, root)
	foreseen.Model, foreseen.Computed = model, computed
	return foreseen, err
}

// Question is asked of an environment as it was deployed last, by bodies that change nothing.
type Question func(*Stage) (natives muranopl.Natives, ask func(ctx context.Context, interpreter *muranopl.Interpreter, root *muranopl.Object) (any, error))

// Ask asks a question of an environment as it was deployed last. It changes nothing. A fault of kind Invalid says that it was never deployed.
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
	natives, ask := question(&Stage{engine: e, environmentID: environment.ID, region: regionOf(objects, environment), project: project})
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
