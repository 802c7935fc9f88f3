package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/panics"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Level is the severity of a report. A task with an error in its log is a failed one.
type Level string

// The levels, as Murano calls them.
const (
	LevelInfo    Level = "info"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Runtime is native code's access to one task. It is safe for concurrent use.
type Runtime struct {
	sleeping
	engine      *Engine
	held        *held
	environment store.Environment
	model       *muranopl.Object

	mutex   sync.Mutex
	ends    []func(context.Context) error
	ended   []func()
	planned map[string]map[string][]string // object id → step → the steps that it depends on

	reaching sync.Mutex
	project  *openstack.Project // nil before its first use
}

// EnvironmentID is the id of the task's environment.
func (r *Runtime) EnvironmentID() string { return r.environment.ID }

// TaskID is the id of the task: the deployment.
func (r *Runtime) TaskID() string { return r.held.Task().ID }

// Submitter is the name of the user who submitted the task, "" for a task of Burano's own.
func (r *Runtime) Submitter() string { return r.held.Task().Origin.UserName }

// Model is the desired io.murano.Environment object; nil in a deletion. An object that is being destroyed is not in it, but its owners
// are, as far as they stay.
func (r *Runtime) Model() *muranopl.Object { return r.model }

// Report adds a line to the deployment's log. object is the line's subject, nil for the whole; details may be "". The engine reports an error that a
// method returns: report an error here only when the method goes on.
func (r *Runtime) Report(ctx context.Context, object *muranopl.Object, level Level, text, details string) error {
	report := store.Report{Level: string(level), Text: text}
	if object != nil {
		if level == LevelError {
			r.held.reached.concerns(object)
		}
		id, class := object.ID(), object.Class().Name
		report.EntityID, report.Entity = &id, &class
	}
	if details != "" {
		report.Details = &details
	}
	return r.held.AddReport(ctx, report)
}

// Deployed notes that the deployment of an application succeeded. When the task fails, its other applications were not deployed, or have failed.
func (r *Runtime) Deployed(application *muranopl.Object) { r.held.reached.deployed(application) }

// Logger is for lines in the server's log during the task: it masks the task's known secrets.
func (r *Runtime) Logger() *slog.Logger { return r.held.log }

// Attribute returns the object's value of SetAttribute; false when there is none.
func (r *Runtime) Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error) {
	return r.held.Attribute(ctx, object.ID(), object.Class().Name, name)
}

// SetAttribute stores a JSON value with the object until the object is destroyed; it is durable on return. nil removes it.
func (r *Runtime) SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error {
	return r.held.SetAttribute(ctx, object.ID(), object.Class().Name, name, value)
}

// Deploys is true if the task deploys the environment, and does not only run an action in it or delete it.
func (r *Runtime) Deploys() bool {
	return r.held.Task().Kind() == "deployment"
}

// Allowed reports whether the caller of the deployment allowed something to be lost, by its id or name.
func (r *Runtime) Allowed(name string) bool {
	return name != "" && slices.Contains(r.held.Task().Action.Allowed, name)
}

// AtEnd runs do after the task's action, and the destruction of removed objects, went well; before the model is saved.
func (r *Runtime) AtEnd(do func(context.Context) error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ends = append(r.ends, do)
}

func (r *Runtime) end(ctx context.Context) error {
	r.mutex.Lock()
	ends := r.ends
	r.mutex.Unlock()
	for _, do := range ends {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Ended calls do once the task has ended, in success or not: to close connections, for example.
func (r *Runtime) Ended(do func()) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.ended = append(r.ended, do)
}

func (r *Runtime) giveUp() {
	r.mutex.Lock()
	ended := r.ended
	r.mutex.Unlock()
	for _, do := range ended {
		do()
	}
}

// TrackApplication begins to count an application, for the statistics of instances; title may be "".
func (r *Runtime) TrackApplication(ctx context.Context, object *muranopl.Object, title string, units int64) error {
	return r.held.track(ctx, object, store.ApplicationInstance, title, units)
}

// TrackServer begins to count a server, for the statistics of instances; title may be "".
func (r *Runtime) TrackServer(ctx context.Context, object *muranopl.Object, title string, units int64) error {
	return r.held.track(ctx, object, store.ServerInstance, title, units)
}

// Untrack ends TrackApplication or TrackServer.
func (r *Runtime) Untrack(ctx context.Context, object *muranopl.Object) error {
	return r.held.UntrackInstance(ctx, object.ID())
}

// CodeAttribute returns the object's value that code in MuranoPL stored for a class; false when there is none.
func (r *Runtime) CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	stored, found, err := r.held.Attribute(ctx, object.ID(), class, codePrefix+name)
	if err != nil || !found {
		return nil, false, err
	}
	value, err := r.engine.openAttribute(ctx, r.environment.ID, object.ID(), class, name, stored)
	if err != nil {
		return nil, false, err
	}
	r.held.known.Note(name, value)
	if !isKeptSealed(stored) && holdsSecrets(name, value) { // stored by a former version, or by Murano
		err = r.sealAttribute(ctx, object, class, name, value)
	}
	return value, true, err
}

// SetCodeAttribute is SetAttribute for code in MuranoPL, whose values are separate from native code's.
func (r *Runtime) SetCodeAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error {
	r.held.known.Note(name, value)
	if holdsSecrets(name, value) {
		return r.sealAttribute(ctx, object, class, name, value)
	}
	return r.held.SetAttribute(ctx, object.ID(), class, codePrefix+name, value)
}

// codePrefix begins the names of attributes that code in MuranoPL keeps.
const codePrefix = "code:"

// Attributes of environments.
const (
	// AttributeStack is true if there is, or may be, a stack in its own region.
	AttributeStack = "stack"
	// AttributeRegion is its own region, set with the first stack; former versions stored nothing, and made stacks in Burano's
	// own.
	AttributeRegion = "region"
	// AttributeStacks are the other regions in which it has, or may have, a stack: true by their names.
	AttributeStacks = "stacks"
	// AttributeAdopted are the stacks that Murano has made, of an environment that was taken over: a TakenOver.
	AttributeAdopted = "stack of Murano"
)

// CodeAttribute is the stored name of an attribute that has this name in MuranoPL.
func CodeAttribute(name string) string { return codePrefix + name }

// Conceal registers the secrets in a value, in JSON's form, so that text about the task masks them.
func (r *Runtime) Conceal(value any) { r.held.known.Note("", value) }

// Secret returns the environment's value of SetSecret; false when there is none.
func (r *Runtime) Secret(ctx context.Context, name string) ([]byte, bool, error) {
	value, found, err := r.engine.Secret(ctx, r.environment.ID, name)
	r.held.known.AddStored(value)
	return value, found, err
}

// SetSecret stores a value, sealed, until the environment is removed; it is durable on return.
func (r *Runtime) SetSecret(ctx context.Context, name string, value []byte) error {
	r.held.known.AddStored(value)
	return r.held.SetSecret(ctx, name, r.engine.Sealer.Seal(store.SecretOwner(r.environment.ID, name), value))
}

// Secret returns a secret of an environment; false when there is none.
func (e *Engine) Secret(ctx context.Context, environmentID, name string) ([]byte, bool, error) {
	sealed, found, err := e.Store.Secrets().Get(ctx, environmentID, name)
	if err != nil || !found {
		return nil, false, err
	}
	value, err := e.Sealer.Open(store.SecretOwner(environmentID, name), sealed)
	return value, err == nil, err
}

// SetSecret stores a secret of an environment outside of any task, sealed; it is durable on return.
func (e *Engine) SetSecret(ctx context.Context, environmentID, name string, value []byte) error {
	return e.Store.Secrets().Set(ctx, environmentID, name, e.Sealer.Seal(store.SecretOwner(environmentID, name), value))
}

// Project is the environment's project in the environment's region of the cloud, reached through the delegation of the task's submitter.
func (r *Runtime) Project(ctx context.Context) (*openstack.Project, error) {
	r.reaching.Lock()
	defer r.reaching.Unlock()
	if r.project != nil {
		return r.project, nil
	}
	project, err := r.engine.project(ctx, r.held.Task(), r.environment)
	if err != nil {
		return nil, err
	}
	if project, err = project.In(ctx, regionOf(r.held.Task().Objects, r.environment)); err != nil {
		return nil, err
	}
	r.project = project.Noting(r.held.NoteStack).Doubting(func(ctx context.Context, stack string) error {
		lost := r.engine.lostUser(ctx, r.environment, r.held.Task().DelegationID, stack)
		if lost == nil {
			return nil
		}
		return errors.Join(lost, r.held.ForgetStack(ctx, stack))
	}, func(ctx context.Context, stack string, lost error) error {
		r.held.log.WarnContext(ctx, "a stack is made without Heat from now on", "stack", stack, "because", lost)
		return r.Report(ctx, nil, LevelInfo, "Stack "+stack+" is made without Heat from now on, with the same servers: Heat keeps a trust for it that Keystone refuses. Heat's own stack of this name "+
			"stays in its list until Burano deletes it: do not delete it by hand, which would delete the servers", lost.Error())
	})
	return r.project, nil
}

// regionOf is the region of an environment that is deployed with objects, or, when there are none, is deleted; "" for Burano's own.
func regionOf(objects map[string]any, environment store.Environment) string {
	if objects == nil {
		objects = environment.Model.ObjectsCopy
	}
	region, _ := objects["region"].(string)
	return region
}

// Fence is the fencing number under which this process holds the task: a worker with a lower one is a former worker.
func (r *Runtime) Fence() uint64 { return r.held.Fence() }

// Alive returns an error once this process may no longer act for the task. Native code calls it right before each change outside of the database,
// because a paused process goes on in the middle of its work.
func (r *Runtime) Alive() error { return r.held.lease.Check() }

// Step runs a native step of the object and keeps its start, end and error with the task. It does not begin when the task was
// cancelled or belongs to another worker.
func (r *Runtime) Step(ctx context.Context, object *muranopl.Object, name string, run func(ctx context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := r.Alive(); err != nil {
		return err
	}
	if err := r.held.step(); err != nil {
		return err
	}
	r.mutex.Lock()
	waitsFor := r.planned[object.ID()][name]
	r.mutex.Unlock()
	id, err := r.held.StartStep(ctx, store.Step{ObjectID: object.ID(), Class: object.Class().Name, Name: name, WaitsFor: waitsFor})
	if err != nil {
		return err
	}
	r.engine.atStep(name, false)
	stepErr := panics.Run(func() error { return run(ctx) })
	var defect *panics.Error
	if errors.As(stepErr, &defect) {
		stepErr = fmt.Errorf("the step %s: %w", name, stepErr)
	}
	r.engine.atStep(name, true)
	problem := ""
	if stepErr != nil {
		problem = stepErr.Error()
	}
	endCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	if err := r.held.EndStep(endCtx, id, problem); err != nil && stepErr == nil {
		return err
	}
	return stepErr
}

// Planned announces the next steps of the object, each with the names of its dependencies.
func (r *Runtime) Planned(object *muranopl.Object, steps map[string][]string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.planned == nil {
		r.planned = map[string]map[string][]string{}
	}
	r.planned[object.ID()] = steps
}

func (e *Engine) atStep(name string, done bool) {
	if e.AtStep != nil {
		e.AtStep(name, done)
	}
}
