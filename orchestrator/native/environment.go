package native

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/engine"
)

// deployEnvironment deploys all applications at once; each waits for what it needs. At the end the stack holds what the model
// wants and nothing else.
func (t *task) deployEnvironment(ctx context.Context, call muranopl.Call) (any, error) {
	defer t.closeClusters()
	t.deploying.Store(true)
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
	return nil, t.settleStack(ctx, call.Interpreter, call.Object)
}

// destroyEnvironment deletes the stack.
func (t *task) destroyEnvironment(ctx context.Context, call muranopl.Call) (any, error) {
	return nil, t.deleteStack(ctx, call.Object)
}

// attributeCIDRs keeps the subnets that were chosen for networks other than the environment's own, by the networks' names.
const attributeCIDRs = "subnetCidrs"

// availableCIDR chooses a subnet for a network of the environment, once: whoever asks again for the same gets the same.
func (t *task) availableCIDR(ctx context.Context, call muranopl.Call) (any, error) {
	t.choosing.Lock()
	defer t.choosing.Unlock()
	root := t.Model()
	if root == nil {
		return nil, errors.New("an environment that is deleted gets no subnets")
	}
	network, _ := call.Args["netId"].(string)
	own, _, err := t.Attribute(ctx, root, attributeCIDR)
	if err != nil {
		return nil, err
	}
	others, _, err := t.Attribute(ctx, root, attributeCIDRs)
	if err != nil {
		return nil, err
	}
	chosen, _ := others.(map[string]any)
	if chosen == nil {
		chosen = map[string]any{}
	}
	if own != nil {
		chosen[ownNetwork] = own
	}
	if kept, there := chosen[network]; there {
		return kept, nil
	}
	var taken []netip.Prefix
	for _, one := range chosen {
		text, _ := one.(string)
		if prefix, err := netip.ParsePrefix(text); err == nil {
			taken = append(taken, prefix)
		}
	}
	project, err := t.Project(ctx)
	if err != nil {
		return nil, err
	}
	free, err := project.FreeNetwork(ctx, t.config.Networks, 24, taken...)
	if err != nil {
		return nil, err
	}
	if network == ownNetwork {
		return free.String(), t.SetAttribute(ctx, root, attributeCIDR, free.String())
	}
	delete(chosen, ownNetwork)
	chosen[network] = free.String()
	return free.String(), t.SetAttribute(ctx, root, attributeCIDRs, chosen)
}

// externalNetwork returns the id of the external network behind a router, or of the one that routers of ours lead to.
func (t *task) externalNetwork(ctx context.Context, call muranopl.Call) (any, error) {
	project, err := t.Project(ctx)
	if err != nil {
		return nil, err
	}
	if router, _ := call.Args["routerId"].(string); router != "" {
		return project.ExternalNetworkOf(ctx, router)
	}
	return project.ExternalNetwork(ctx)
}
