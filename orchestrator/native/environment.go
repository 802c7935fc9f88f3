package native

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/definitions"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/stacks"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/task"
)

// environment is io.murano.Environment.
type environment struct {
	own      *stacks.OwnStacks
	clusters *clusters.Clusters
	defined  definitions.Definitions
	reached  interface {
		Deployed(application *muranopl.Object)
	}
	sleeper sleeper
}

func (e environment) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{task.MethodDeploy: e.deploy, task.MethodDestroy: e.destroy,
		store.MethodHibernate: e.sleeper.hibernate, store.MethodWake: e.sleeper.wake}
}

// deploy deploys all applications at once; each waits for its dependencies. At the end the stacks hold exactly the resources of the model.
func (e environment) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	defer e.clusters.Close()
	if err := e.own.Begin(ctx, call.Object); err != nil {
		return nil, err
	}
	err := task.Each(call.Object.Objects(task.PropertyApplications), func(application *muranopl.Object) error {
		_, err := call.Interpreter.Invoke(ctx, application, task.MethodDeploy, nil)
		if err == nil {
			e.reached.Deployed(application)
		}
		return engine.Within(application, task.MethodDeploy, err)
	})
	if err != nil {
		return nil, err
	}
	if err := clusters.AnswersAwaitedOf(e.clusters).AwaitAnswers(ctx); err != nil {
		return nil, err
	}
	if err := e.defined.Collect(ctx); err != nil {
		return nil, err
	}
	if err := e.defined.NoteEndpoints(ctx); err != nil {
		return nil, err
	}
	return nil, e.own.Tidy(ctx, call.Interpreter, call.Object)
}

// destroy deletes the stacks, and then the resources that had to wait for that.
func (e environment) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	if err := e.own.Remove(ctx, call.Object); err != nil {
		return nil, err
	}
	return nil, e.clusters.ServersGone(ctx)
}
