package native

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
)

// environment is io.murano.Environment.
type environment struct {
	own      *ownStack
	clusters *clusters
}

func (e environment) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{methodDeploy: e.deploy, methodDestroy: e.destroy}
}

// deploy deploys all applications at once; each waits for what it needs. At the end the stack holds what the model wants and nothing
// else.
func (e environment) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	defer e.clusters.close()
	e.own.begin()
	if wanted, here := call.Object.Text("region"), call.Object.Text("homeRegionName"); wanted != here {
		return nil, fmt.Errorf("the environment is to stand in region %s, and this Burano deploys into %s: leave region out of the model, or use the Burano of that region",
			wanted, here)
	}
	err := each(call.Object.Objects(propertyApplications), func(application *muranopl.Object) error {
		_, err := call.Interpreter.Invoke(ctx, application, methodDeploy, nil)
		return engine.Within(application, methodDeploy, err)
	})
	if err != nil {
		return nil, err
	}
	return nil, e.own.tidy(ctx, call.Interpreter, call.Object)
}

// destroy deletes the stack.
func (e environment) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, e.own.remove(ctx, call.Object)
}
