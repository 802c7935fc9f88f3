package native

import (
	"context"

	"github.com/burano/burano/catalog/muranopl"
)

// deployEnvironment deploys all applications at once; each waits for what it needs. At the end the stack holds what the model
// wants and nothing else.
func (t *task) deployEnvironment(ctx context.Context, call muranopl.Call) (any, error) {
	defer t.closeClusters()
	err := each(call.Object.Objects(propertyApplications), func(application *muranopl.Object) error {
		_, err := call.Interpreter.Invoke(ctx, application, methodDeploy, nil)
		return err
	})
	if err != nil {
		return nil, err
	}
	return nil, t.settleStack(ctx, call.Object)
}

// destroyEnvironment deletes the stack.
func (t *task) destroyEnvironment(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, t.deleteStack(ctx, call.Object)
}

// deployNetwork has nothing to do by itself: a network is made in the same update of the stack as the servers in it.
func (t *task) deployNetwork(context.Context, muranopl.Call) (any, error) { return nil, nil }

// deployInstance makes a server that belongs to no cluster.
func (t *task) deployInstance(ctx context.Context, call muranopl.Call) (any, error) {
	if _, err := t.beginInstance(ctx, call); err != nil {
		return nil, err
	}
	return t.endInstance(ctx, call)
}

// beginInstance asks for a server.
func (t *task) beginInstance(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, t.SetAttribute(ctx, call.Object, attributeWanted, true)
}

// endInstance makes all servers that were asked for.
func (t *task) endInstance(ctx context.Context, _ muranopl.Call) (any, error) {
	_, err := t.servers(ctx)
	return nil, err
}

// beginReleaseInstance asks for a server no more.
func (t *task) beginReleaseInstance(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, t.SetAttribute(ctx, call.Object, attributeWanted, nil)
}

// endReleaseInstance takes all servers that nobody asks for out of the stack. With an environment its whole stack goes.
func (t *task) endReleaseInstance(ctx context.Context, _ muranopl.Call) (any, error) {
	if t.Model() == nil {
		return nil, nil
	}
	return nil, t.settleStack(ctx, t.Model())
}

// destroyInstance has nothing to do by itself: a server that the model does not hold any more goes with the next update of the stack.
func (t *task) destroyInstance(context.Context, muranopl.Call) (any, error) { return nil, nil }
