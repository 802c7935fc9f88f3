package native

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
)

const (
	// attributeCIDR keeps the subnet that was chosen for the environment's network.
	attributeCIDR = "subnetCidr"
	// attributeCIDRs keeps the subnets that were chosen for networks other than the environment's own, by the networks' names.
	attributeCIDRs = "subnetCidrs"
)

// explorer is io.murano.system.NetworkExplorer: questions about the networks of the project.
type explorer struct {
	runtime interface {
		Model() *muranopl.Object
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
		Project(ctx context.Context) (*openstack.Project, error)
	}
	networks netip.Prefix // where subnets are chosen from
	choosing sync.Mutex
}

func (e *explorer) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"getAvailableCidr": e.availableCIDR, "getExternalNetworkIdForRouter": e.externalNetwork}
}

// availableCIDR chooses a subnet for a network of the environment, once: whoever asks again for the same gets the same.
func (e *explorer) availableCIDR(ctx context.Context, call muranopl.Call) (any, error) {
	e.choosing.Lock()
	defer e.choosing.Unlock()
	root := e.runtime.Model()
	if root == nil {
		return nil, errors.New("an environment that is deleted gets no subnets")
	}
	network, _ := call.Args["netId"].(string)
	own, _, err := e.runtime.Attribute(ctx, root, attributeCIDR)
	if err != nil {
		return nil, err
	}
	others, _, err := e.runtime.Attribute(ctx, root, attributeCIDRs)
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
	project, err := e.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	free, err := project.FreeNetwork(ctx, e.networks, 24, taken...)
	if err != nil {
		return nil, err
	}
	if network == ownNetwork {
		return free.String(), e.runtime.SetAttribute(ctx, root, attributeCIDR, free.String())
	}
	delete(chosen, ownNetwork)
	chosen[network] = free.String()
	return free.String(), e.runtime.SetAttribute(ctx, root, attributeCIDRs, chosen)
}

// externalNetwork returns the id of the external network behind a router, or of the one that routers of ours lead to.
func (e *explorer) externalNetwork(ctx context.Context, call muranopl.Call) (any, error) {
	project, err := e.runtime.Project(ctx)
	if err != nil {
		return nil, err
	}
	if router, _ := call.Args["routerId"].(string); router != "" {
		return project.ExternalNetworkOf(ctx, router)
	}
	return project.ExternalNetwork(ctx)
}
