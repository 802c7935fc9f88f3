package openstack

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/layer3/routers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"github.com/burano/burano/internal/fault"
)

// Project is one project of a cloud, seen through its APIs.
type Project struct {
	Neutron
	Nova
	Glance
	provider      *gophercloud.ProviderClient
	orchestration *gophercloud.ServiceClient // nil where the service catalog has no Heat
	makers        *makers
	endpoint      gophercloud.EndpointOpts
	catalog       *tokens.ServiceCatalog
	home          home
	region        string // that the services are of
	regions       *regions
	projectID     string                                        // "" for that of the provider's own token
	changing      func(ctx context.Context, stack string) error // may be nil
	adopted       map[string]Adoption                           // by the names of stacks
	lost          func(ctx context.Context, stack string) error // may be nil, as taken then
	taken         func(ctx context.Context, stack string, lost error) error
	role          bool // it is reached through a role of Burano's service user
}

// Neutron asks for a project's networks.
type Neutron struct{ network *gophercloud.ServiceClient }

// Nova has a project's servers.
type Nova struct{ compute *gophercloud.ServiceClient }

// Glance has the images that a project sees.
type Glance struct {
	provider *gophercloud.ProviderClient
	endpoint gophercloud.EndpointOpts
}

func (g Glance) client() (*gophercloud.ServiceClient, error) {
	client, err := openstack.NewImageV2(g.provider, g.endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Glance in the service catalog: %w", err)
	}
	return client, nil
}

// ByRole returns a project as reached through a role of Burano's service user: servers are that user's.
func ByRole(p *Project) *Project {
	by := *p
	by.role = true
	return &by
}

// Noting returns the project with a function that is called before Heat is asked to change a stack; when it returns an error, Heat is not.
func (p *Project) Noting(changing func(ctx context.Context, stack string) error) *Project {
	noting := *p
	noting.changing = changing
	return &noting
}

// Doubting returns the project with a function that is called when Heat answers the update of a stack with 500. Its error is the reason why
// Heat will always do so; after nil the answer is an outage. taken is called, with that error, when the stack was taken over then.
func (p *Project) Doubting(lost func(ctx context.Context, stack string) error, taken func(ctx context.Context, stack string, lost error) error) *Project {
	doubting := *p
	doubting.lost, doubting.taken = lost, taken
	return &doubting
}

// atHome is the project that a provider has signed in to, in Burano's own region.
func (s *Service) atHome(ctx context.Context, provider *gophercloud.ProviderClient, catalog *tokens.ServiceCatalog) (*Project, error) {
	project, err := newProject(ctx, provider, catalog, s.home.endpoint, s.orchestration)
	if err == nil {
		project.home, project.region, project.regions = s.home, s.home.name, &regions{known: map[string]*Project{}}
	}
	return project, err
}

func newProject(_ context.Context, provider *gophercloud.ProviderClient, catalog *tokens.ServiceCatalog, endpoint gophercloud.EndpointOpts,
	setting orchestration) (*Project, error) {
	orchestration, err := openstack.NewOrchestrationV1(provider, endpoint)
	if setting.without() && isMissing(err) {
		orchestration, err = nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find Heat in the service catalog: %w", err)
	}
	network, err := openstack.NewNetworkV2(provider, endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Neutron in the service catalog: %w", err)
	}
	compute, err := openstack.NewComputeV2(provider, endpoint)
	if err != nil {
		return nil, fmt.Errorf("find Nova in the service catalog: %w", err)
	}
	return &Project{Neutron: Neutron{network}, Nova: Nova{compute}, Glance: Glance{provider, endpoint}, provider: provider, orchestration: orchestration,
		makers: &makers{setting: setting}, catalog: catalog, endpoint: endpoint}, nil
}

// beforeChange notes that Heat is about to be asked to change a stack, and gets a new token; for stacks that are made without Heat it does
// nothing. Heat works with the token of a request until the change is done, unless its operator has set reauthentication_auth_method. When
// the token ends meanwhile, the stack fails with 401, or Heat answers 500 without a reason. So every change of a stack is sent with a new
// token, which lasts longest. Elsewhere gophercloud replaces a token once it has ended.
func (p *Project) beforeChange(ctx context.Context, stack string) error {
	if by, err := p.stacks(ctx, stack); err != nil || !p.isHeats(by) {
		return err
	}
	names := []string{stack}
	if from := p.adopted[stack].Stack; from != "" && from != stack { // its name in Heat, as long as it is there
		names = append(names, from)
	}
	for _, name := range names {
		if p.changing == nil {
			break
		}
		if err := p.changing(ctx, p.noted(name)); err != nil {
			return err
		}
	}
	if err := p.provider.Reauthenticate(ctx, ""); err != nil {
		return fmt.Errorf("get a new token from Keystone: %w", err)
	}
	return nil
}

// External is a network that floating IPs come from.
type External struct {
	ID, Name string
	Of       int // how many the cloud has
}

// ExternalNetwork returns the external network with this name or id; without one the first that Neutron lists.
func (n Neutron) ExternalNetwork(ctx context.Context, named string) (External, error) {
	isExternal := true
	found, err := listAll(ctx, networks.List(n.network, external.ListOptsExt{ListOptsBuilder: networks.ListOpts{}, External: &isExternal}), networks.ExtractNetworks)
	if err != nil {
		return External{}, fmt.Errorf("list external networks: %w", err)
	}
	if len(found) == 0 {
		return External{}, fault.New(fault.Invalid, "the project sees no external network, so servers get no floating IPs and networks no way out: ask "+
			"the cloud's operator for a network with router:external=true, or use a network that is there (io.murano.resources.ExistingNeutronNetwork)")
	}
	chosen := found[0]
	if named != "" {
		if chosen, err = one("external network", named, found, func(n networks.Network) (string, string) { return n.ID, n.Name }); err != nil {
			return External{}, err
		}
	}
	return External{ID: chosen.ID, Name: chosen.Name, Of: len(found)}, nil
}

// Subnet is a subnet, with the network that it is in.
type Subnet struct {
	ID, Network string
	Range       netip.Prefix
}

// Subnet finds an existing network's subnet, both by name or id. Without a subnet the network's only one of IPv4 counts.
func (n Neutron) Subnet(ctx context.Context, network, subnet string) (Subnet, error) {
	return n.subnet(ctx, network, subnet, 4)
}

// Subnet6 finds an existing network's subnet of IPv6, both by name or id.
func (n Neutron) Subnet6(ctx context.Context, network, subnet string) (Subnet, error) {
	return n.subnet(ctx, network, subnet, 6)
}

func (n Neutron) subnet(ctx context.Context, network, subnet string, version int) (Subnet, error) {
	known, err := listAll(ctx, networks.List(n.network, networks.ListOpts{}), networks.ExtractNetworks)
	if err != nil {
		return Subnet{}, fmt.Errorf("list networks: %w", err)
	}
	found, err := one("network", network, known, func(n networks.Network) (string, string) { return n.ID, n.Name })
	if err != nil {
		return Subnet{}, err
	}
	parts, err := listAll(ctx, subnets.List(n.network, subnets.ListOpts{NetworkID: found.ID, IPVersion: version}), subnets.ExtractSubnets)
	if err != nil {
		return Subnet{}, fmt.Errorf("list the subnets of network %s: %w", network, err)
	}
	if subnet == "" && len(parts) != 1 {
		return Subnet{}, fault.New(fault.Invalid, "network %s has %d subnets of IPv4: name one (internalSubnetworkName)", network, len(parts))
	}
	chosen := subnets.Subnet{}
	if subnet == "" {
		chosen = parts[0]
	} else if chosen, err = one("subnet", subnet, parts, func(s subnets.Subnet) (string, string) { return s.ID, s.Name }); err != nil {
		return Subnet{}, fmt.Errorf("in network %s: %w", network, err)
	}
	made := Subnet{ID: chosen.ID, Network: found.ID}
	made.Range, err = netip.ParsePrefix(chosen.CIDR)
	return made, err
}

// ExternalNetworkOf returns the id of the external network that a router leads to.
func (n Neutron) ExternalNetworkOf(ctx context.Context, routerID string) (string, error) {
	if err := identified("router", routerID); err != nil {
		return "", err
	}
	router, err := routers.Get(ctx, n.network, routerID).Extract()
	if gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		return "", fault.New(fault.NotFound, "the project has no router %s: name one that is there, or none to have one made", routerID)
	}
	if err != nil {
		return "", fmt.Errorf("look at router %s: %w", routerID, err)
	}
	if router.GatewayInfo.NetworkID == "" {
		return "", fault.New(fault.Invalid, "router %s leads to no external network: give it a gateway", routerID)
	}
	return router.GatewayInfo.NetworkID, nil
}

// FreeNetwork returns the first network of the given prefix length inside the range that overlaps no subnet which the project
// can see, and none that is taken otherwise.
func (n Neutron) FreeNetwork(ctx context.Context, within netip.Prefix, bits int, taken ...netip.Prefix) (netip.Prefix, error) {
	found, err := listAll(ctx, subnets.List(n.network, subnets.ListOpts{}), subnets.ExtractSubnets)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("list subnets: %w", err)
	}
	for _, subnet := range found {
		if prefix, err := netip.ParsePrefix(subnet.CIDR); err == nil {
			taken = append(taken, prefix)
		}
	}
	if free, ok := firstFree(within, bits, taken); ok {
		return free, nil
	}
	return netip.Prefix{}, fault.New(fault.Conflict, "every /%d of %s overlaps a subnet of the project: delete an unused one", bits, within)
}

func firstFree(within netip.Prefix, bits int, taken []netip.Prefix) (netip.Prefix, bool) {
	for candidate := netip.PrefixFrom(within.Masked().Addr(), bits); within.Contains(candidate.Addr()); {
		last := candidate.Addr()
		free := true
		for _, prefix := range taken {
			if prefix.Overlaps(candidate) {
				free = false
				break
			}
		}
		if free {
			return candidate, true
		}
		next, ok := after(candidate)
		if !ok || next.Compare(last) <= 0 {
			break
		}
		candidate = netip.PrefixFrom(next, bits)
	}
	return netip.Prefix{}, false
}

// after returns the first address behind an IPv4 network.
func after(network netip.Prefix) (netip.Addr, bool) {
	start := network.Masked().Addr().As4()
	value := uint64(start[0])<<24 | uint64(start[1])<<16 | uint64(start[2])<<8 | uint64(start[3])
	value += 1 << (32 - network.Bits())
	if value > 1<<32-1 {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
