package task

import (
	"context"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/store"
)

// Stage is the part of an environment that a rehearsal reads.
type Stage interface {
	EnvironmentID() string
	Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
	CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error)
	Secret(ctx context.Context, name string) ([]byte, bool, error)
	Project(ctx context.Context) (*openstack.Project, error)
}

// Rehearsal is a Runtime that changes nothing: it reads its stage, and keeps written attributes and secrets in memory.
type Rehearsal struct {
	Stage
	model      *muranopl.Object
	mutex      sync.Mutex
	attributes map[string]any
	secrets    map[string][]byte
}

// NewRehearsal returns a rehearsal on a stage, without a model.
func NewRehearsal(stage Stage) *Rehearsal {
	return &Rehearsal{Stage: stage, attributes: map[string]any{}, secrets: map[string][]byte{}}
}

// SetModel sets the model that is rehearsed.
func (r *Rehearsal) SetModel(root *muranopl.Object) { r.model = root }

func (r *Rehearsal) TaskID() string          { return "" }
func (r *Rehearsal) Submitter() string       { return "" }
func (r *Rehearsal) Model() *muranopl.Object { return r.model }
func (r *Rehearsal) Deploys() bool           { return false } // so that nothing waits for the environment's deploy
func (r *Rehearsal) Allowed(string) bool     { return false }
func (r *Rehearsal) Fence() uint64           { return 0 }
func (r *Rehearsal) Alive() error            { return nil }

func (r *Rehearsal) Conceal(any) {} // nothing is written

// Hibernation returns an environment that is awake: no other one is deployed.
func (r *Rehearsal) Hibernation(context.Context) (store.Hibernation, error) {
	return store.Hibernation{}, nil
}

func (r *Rehearsal) SetHibernation(context.Context, store.HibernationState, []store.StoppedServer) error {
	return nil
}

func (r *Rehearsal) Settled(context.Context, store.Hibernation) (store.Settled, error) {
	return store.Settled{}, nil
}

func (r *Rehearsal) Planned(*muranopl.Object, map[string][]string) {}

func (r *Rehearsal) AtEnd(func(context.Context) error) {}

func (r *Rehearsal) Ended(func()) {}

func (r *Rehearsal) Report(context.Context, *muranopl.Object, engine.Level, string, string) error {
	return nil
}

func (r *Rehearsal) Step(ctx context.Context, _ *muranopl.Object, _ string, run func(context.Context) error) error {
	return run(ctx)
}

func (r *Rehearsal) TrackApplication(context.Context, *muranopl.Object, string, int64) error {
	return nil
}

func (r *Rehearsal) TrackServer(context.Context, *muranopl.Object, string, int64) error { return nil }

func (r *Rehearsal) Untrack(context.Context, *muranopl.Object) error { return nil }

// Deployed does nothing.
func (r *Rehearsal) Deployed(*muranopl.Object) {}

func (r *Rehearsal) Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error) {
	if value, written := r.written(object, "native", name); written {
		return value, value != nil, nil
	}
	return r.Stage.Attribute(ctx, object, name)
}

func (r *Rehearsal) SetAttribute(_ context.Context, object *muranopl.Object, name string, value any) error {
	r.write(object, "native", name, value)
	return nil
}

func (r *Rehearsal) CodeAttribute(ctx context.Context, object *muranopl.Object, class, name string) (any, bool, error) {
	if value, written := r.written(object, "code "+class, name); written {
		return value, value != nil, nil
	}
	return r.Stage.CodeAttribute(ctx, object, class, name)
}

func (r *Rehearsal) SetCodeAttribute(_ context.Context, object *muranopl.Object, class, name string, value any) error {
	r.write(object, "code "+class, name, value)
	return nil
}

func (r *Rehearsal) written(object *muranopl.Object, kind, name string) (any, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	value, written := r.attributes[object.ID()+" "+kind+" "+name]
	return value, written
}

func (r *Rehearsal) write(object *muranopl.Object, kind, name string, value any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.attributes[object.ID()+" "+kind+" "+name] = value
}

func (r *Rehearsal) Secret(ctx context.Context, name string) ([]byte, bool, error) {
	r.mutex.Lock()
	value, written := r.secrets[name]
	r.mutex.Unlock()
	if written {
		return value, true, nil
	}
	return r.Stage.Secret(ctx, name)
}

func (r *Rehearsal) SetSecret(_ context.Context, name string, value []byte) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.secrets[name] = value
	return nil
}
