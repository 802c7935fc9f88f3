// Package task is a running task as the bodies of classes see it: the engine, the objects and classes of the model, reports, and work that is done once.
package task

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Runtime is the engine as a body may use it during one task.
type Runtime interface {
	EnvironmentID() string
	TaskID() string
	// Submitter is the name of the user who submitted the task, "" for a task of Burano's own.
	Submitter() string
	// Allowed reports whether the caller of the deployment allowed something to be lost, by its id or name.
	Allowed(name string) bool
	// Model is the environment as it is to be; nil when it is being deleted.
	Model() *muranopl.Object
	Report(ctx context.Context, object *muranopl.Object, level engine.Level, text, details string) error
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
	SetCodeAttribute(ctx context.Context, object *muranopl.Object, class, name string, value any) error
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	SetSecret(ctx context.Context, name string, value []byte) error
	// Conceal names a value's secrets, which nothing that is written about the task may contain.
	Conceal(value any)
	// Deploys is true if the task deploys the environment, and false if it runs an action in it or deletes it.
	Deploys() bool
	// Deployed notes that the deployment of an application succeeded.
	Deployed(application *muranopl.Object)
	// TrackApplication, TrackServer and Untrack keep the statistics of instances.
	TrackApplication(ctx context.Context, object *muranopl.Object, title string, units int64) error
	TrackServer(ctx context.Context, object *muranopl.Object, title string, units int64) error
	Untrack(ctx context.Context, object *muranopl.Object) error
	Project(ctx context.Context) (*openstack.Project, error)
	// Hibernation reads whether the environment sleeps, and SetHibernation writes it, with the servers that are started when it wakes unless they are nil.
	Hibernation(ctx context.Context) (store.Hibernation, error)
	SetHibernation(ctx context.Context, state store.HibernationState, servers []store.StoppedServer) error
	// Settled is the state of the environment's schedule (store.Hibernations.Settled).
	Settled(ctx context.Context, row store.Hibernation) (store.Settled, error)
	Step(ctx context.Context, object *muranopl.Object, name string, run func(context.Context) error) error
	// Planned announces the next steps of the object, each with the names of the steps that it waits for.
	Planned(object *muranopl.Object, steps map[string][]string)
	// AtEnd runs a function after the task's action has succeeded and the objects that it removed are destroyed.
	AtEnd(do func(context.Context) error)
	// Ended runs a function when the task has ended, whether it succeeded or not.
	Ended(do func())
	// Fence is the number that grows each time a task of the environment is taken.
	Fence() uint64
	// Alive returns an error once this process may no longer act for the task.
	Alive() error
}
