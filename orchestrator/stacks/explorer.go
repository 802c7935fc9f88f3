package stacks

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/task"
)

const (
	// attributeCIDR keeps the subnet that was chosen for the environment's network.
	attributeCIDR = "subnetCidr"
	// attributeCIDRs keeps the subnets that were chosen for networks other than the environment's own, by the networks' names.
	attributeCIDRs = "subnetCidrs"
	// attributeExternal keeps the id of the external network that the environment's routers lead to and its floating IPs come from.
	attributeExternal = "externalNetwork"
)

// explorer is io.murano.system.NetworkExplorer: questions about the networks of the project.
type explorer struct {
	runtime interface {
		Model() *muranopl.Object
		Attribute(ctx context.Context, object *muranopl.Object, name string) (any, bool, error)
		SetAttribute(ctx context.Context, object *muranopl.Object, name string, value any) error
	}
	regions  regions
	objects  task.Objects
	reports  task.Reports
	stacks   *Templates
	networks netip.Prefix // where subnets are chosen from
	dns      []string     // of networks that name none
	external string       // the operator's choice of an external network, "" for none
	choosing sync.Mutex
}

func (e *explorer) methods() map[string]muranopl.NativeMethod {
	return map[string]muranopl.NativeMethod{"getAvailableCidr": e.availableCIDR, "getExternalNetworkIdForRouter": e.externalNetwork,
		"getExternalNetworkIdForNetwork": e.externalNetworkOfNetwork, "getDefaultDns": e.defaultDNS, "getDefaultRouter": e.defaultRouter, "listNetworks": e.list("networks"), "listSubnetworks": e.list("subnets"),
		"listPorts": e.list("ports"), "listNeutronExtensions": e.list("extensions")}
}

// project is the project of the caller's region.
func (e *explorer) project(ctx context.Context, call muranopl.Call) (*openstack.Project, error) {
	return e.regions.Project(ctx, e.regions.Of(call.Object))
}

func (e *explorer) list(kind string) muranopl.NativeMethod {
	return func(ctx context.Context, call muranopl.Call) (any, error) {
		project, err := e.project(ctx, call)
		if err != nil {
			return nil, err
		}
		list, err := project.ListNeutron(ctx, kind)
		return whole(list), err
	}
}

func (e *explorer) externalNetworkOfNetwork(ctx context.Context, call muranopl.Call) (any, error) {
	project, err := e.project(ctx, call)
	if err != nil {
		return nil, err
	}
	network, _ := call.Args["networkId"].(string)
	id, err := project.ExternalNetworkOfNetwork(ctx, network)
	if err != nil || id == "" {
		return nil, err
	}
	return id, nil
}

func (e *explorer) defaultRouter(ctx context.Context, call muranopl.Call) (any, error) {
	project, err := e.project(ctx, call)
	if err != nil {
		return nil, err
	}
	return project.DefaultRouter(ctx)
}

// availableCIDR chooses a subnet for a network of the environment, once: the same request gets the same subnet again.
func (e *explorer) availableCIDR(ctx context.Context, call muranopl.Call) (any, error) {
	e.choosing.Lock()
	defer e.choosing.Unlock()
	root := e.runtime.Model()
	if root == nil {
		return nil, errors.New("an environment that is deleted gets no subnets")
	}
	network, _ := call.Args["netId"].(string)
	network = known.InRegion(network, e.regions.Of(call.Object))
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
	project, err := e.project(ctx, call)
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

// externalNetwork returns the id of the external network behind a router, or behind the environment's own routers: the one that the network's model, a
// cluster or the operator names, else the first of the cloud. It is chosen once.
func (e *explorer) externalNetwork(ctx context.Context, call muranopl.Call) (any, error) {
	project, err := e.project(ctx, call)
	if err != nil {
		return nil, err
	}
	if router, _ := call.Args["routerId"].(string); router != "" {
		return project.ExternalNetworkOf(ctx, router)
	}
	e.choosing.Lock()
	defer e.choosing.Unlock()
	named, _ := call.Args["name"].(string)
	region := e.regions.Of(call.Object)
	for _, cluster := range e.objects.Clusters() {
		if region == "" { // where all clusters are
			named = cmp.Or(named, cluster.Text("externalNetwork"))
		}
	}
	root := e.runtime.Model()
	if root == nil {
		return nil, errors.New("an environment that is deleted gets no external network")
	}
	kept, err := e.keptExternal(ctx, root, region)
	if err != nil {
		return nil, err
	}
	if kept != "" && (named == "" || named == kept) {
		return kept, nil
	}
	chosen, err := project.ExternalNetwork(ctx, cmp.Or(named, e.external))
	if err != nil {
		return nil, err
	}
	if kept != "" && kept != chosen.ID {
		return nil, fault.New(fault.Conflict, "the environment has its router and floating IPs in the external network %s and cannot get them from %s (%s): its "+
			"servers would lose the addresses by which they are reached. Name the former one, or make another environment", kept, chosen.Name, chosen.ID)
	}
	if kept == "" && chosen.Of > 1 && named == "" && e.external == "" {
		e.reports.Inform(ctx, root, "External network %s is the first of %d: floating IPs come from it. Name another one with externalNetwork, or burano serve "+
			"--external-network", chosen.Name, chosen.Of)
	}
	return chosen.ID, e.runtime.SetAttribute(ctx, root, known.InRegion(attributeExternal, region), chosen.ID)
}

// keptExternal is the external network that was chosen before; of an environment that a former version deployed, the one in its template.
func (e *explorer) keptExternal(ctx context.Context, root *muranopl.Object, region string) (string, error) {
	value, _, err := e.runtime.Attribute(ctx, root, known.InRegion(attributeExternal, region))
	if kept, ok := value.(string); err != nil || ok || region != "" {
		return kept, err
	}
	if made, _, err := e.runtime.Attribute(ctx, root, attributeStack); err != nil || made == nil {
		return "", err
	}
	template, err := e.stacks.Template(ctx, e.stacks.Own())
	if err != nil {
		return "", err
	}
	resources, _ := template["resources"].(map[string]any)
	router, _ := resources["router"].(map[string]any)
	properties, _ := router["properties"].(map[string]any)
	gateway, _ := properties["external_gateway_info"].(map[string]any)
	kept, _ := gateway["network"].(string)
	return kept, nil
}

func (e *explorer) defaultDNS(context.Context, muranopl.Call) (any, error) {
	servers := make([]any, len(e.dns))
	for i, server := range e.dns {
		servers[i] = server
	}
	return servers, nil
}
