package native

import (
	"context"
	"fmt"

	"github.com/burano/burano/catalog/muranopl"
)

// application is com.mirantis.docker.DockerApplication.
type application struct{ objects objects }

func (a application) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{methodDeploy: a.deploy, methodDestroy: a.destroy}
}

// deploy deploys the application's host, which finds in the model all applications that it is to run.
func (a application) deploy(ctx context.Context, call muranopl.Call) (any, error) {
	host := call.Object.Object("host")
	if host == nil || !host.Class().Is(classContainerHost) {
		return nil, fmt.Errorf("%s has no host to run on", call.Object)
	}
	_, err := call.Interpreter.Invoke(ctx, host, methodDeploy, nil)
	return nil, err
}

// destroy takes an application's container off its host, unless the host goes as well.
func (a application) destroy(ctx context.Context, call muranopl.Call) (any, error) {
	host := call.Object.Object("host")
	if host == nil {
		return nil, nil
	}
	if host = a.objects.find(host.ID()); host == nil {
		return nil, nil
	}
	described, err := call.Interpreter.Invoke(ctx, call.Object, methodGetContainer, nil)
	if err != nil {
		return nil, err
	}
	one, err := containerOf(call.Object, described)
	if err != nil {
		return nil, err
	}
	_, err = call.Interpreter.Invoke(ctx, host, methodDropContainer, map[string]any{argumentContainer: one.name})
	return nil, err
}
