package openstack

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/burano/burano/internal/fault"
)

// ListNeutron lists the project's objects of a kind in Neutron (networks, subnets, ports, extensions), each as Neutron writes
// it.
func (n Neutron) ListNeutron(ctx context.Context, kind string) ([]any, error) {
	pager, known := map[string]pagination.Pager{
		"networks":   networks.List(n.network, networks.ListOpts{}),
		"subnets":    subnets.List(n.network, subnets.ListOpts{}),
		"ports":      ports.List(n.network, ports.ListOpts{}),
		"extensions": extensions.List(n.network),
	}[kind]
	if !known {
		return nil, fmt.Errorf("nothing lists the %s of Neutron", kind)
	}
	pages, err := allPages(ctx, pager)
	if err != nil {
		return nil, fmt.Errorf("list Neutron's %s: %w", kind, err)
	}
	if joined, several := pages.GetBody().(map[string][]any); several {
		return joined[kind], nil
	}
	body, _ := pages.GetBody().(map[string]any)
	list, _ := body[kind].([]any)
	return list, nil
}

// routerInterfaces are the owners of ports that connect routers to networks: plain, distributed and highly available ones.
var routerInterfaces = []string{"network:router_interface", "network:router_interface_distributed", "network:ha_router_replicated_interface"}

// RoutersOf lists the ids of the routers with an interface in a network.
func (n Neutron) RoutersOf(ctx context.Context, network string) ([]string, error) {
	found, err := listAll(ctx, ports.List(n.network, ports.ListOpts{NetworkID: network}), ports.ExtractPorts)
	if err != nil {
		return nil, fmt.Errorf("list the ports of network %s: %w", network, err)
	}
	var list []string
	for _, port := range found {
		if slices.Contains(routerInterfaces, port.DeviceOwner) && port.NetworkID == network {
			list = append(list, port.DeviceID)
		}
	}
	return list, nil
}

// ExternalNetworkOfNetwork returns the id of the external network that the routers of a network lead to, which is its own when it is external;
// "" when they lead to none that the project can see.
func (n Neutron) ExternalNetworkOfNetwork(ctx context.Context, id string) (string, error) {
	if err := identified("network", id); err != nil {
		return "", err
	}
	var network external.NetworkExternalExt
	err := networks.Get(ctx, n.network, id).ExtractInto(&network)
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return "", fault.New(fault.NotFound, "the project sees no network with the id %s", id)
	}
	if err != nil {
		return "", fmt.Errorf("look at network %s: %w", id, err)
	}
	if network.External {
		return id, nil
	}
	leading, err := n.RoutersOf(ctx, id)
	if err != nil {
		return "", err
	}
	for _, router := range leading {
		switch leads, err := n.ExternalNetworkOf(ctx, router); {
		case err == nil:
			return leads, nil
		case fault.KindOf(err) == 0:
			return "", err
		}
	}
	return "", nil
}

// DefaultRouterName is Murano's name for the router that connects networks without one of their own.
const DefaultRouterName = "murano-default-router"

// DefaultRouter returns the id of the project's router of that name, or else of its first one that leads to an external network.
func (p *Project) DefaultRouter(ctx context.Context) (string, error) {
	project, err := p.ID()
	if err != nil {
		return "", fmt.Errorf("find out the project of the token: %w", err)
	}
	found, err := listAll(ctx, routers.List(p.network, routers.ListOpts{ProjectID: project}), routers.ExtractRouters)
	if err != nil {
		return "", fmt.Errorf("list routers: %w", err)
	}
	chosen := ""
	for _, router := range found {
		switch leads := router.GatewayInfo.NetworkID != ""; {
		case router.Name == DefaultRouterName && !leads:
			return "", fault.New(fault.Invalid, "router %s leads to no external network: give it a gateway", DefaultRouterName)
		case router.Name == DefaultRouterName:
			return router.ID, nil
		case leads && chosen == "":
			chosen = router.ID
		}
	}
	if chosen == "" {
		return "", fault.New(fault.NotFound, "the project has no router that leads to an external network: make one, called %s, and give it a gateway",
			DefaultRouterName)
	}
	return chosen, nil
}
