package openstack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// RegionChoice is a region of the cloud.
type RegionChoice struct {
	Name string `json:"name"`
	Home bool   `json:"home"` // environments without a region are in it
}

// home is the region of a service without another choice.
type home struct {
	name     string // "" for the only one of a catalog that has no names of regions
	endpoint gophercloud.EndpointOpts
}

// in returns the addresses of the services of a region; "" is the home. The fault lists the regions. withoutHeat is true if a region without Heat will
// do.
func (h home) in(catalog *tokens.ServiceCatalog, region string, withoutHeat bool) (gophercloud.EndpointOpts, error) {
	endpoint := h.endpoint
	if region == "" || region == h.name {
		return endpoint, nil
	}
	known := regionsOf(catalog, endpoint.Availability, withoutHeat)
	if h.name == "" && len(known) == 0 { // there is one, which has no name
		return endpoint, nil
	}
	if !slices.Contains(known, region) {
		return endpoint, fault.New(fault.Invalid, "the cloud has no region %q with %s that the project may use: there are %s", region, needed(withoutHeat), listed(known))
	}
	endpoint.Region = region
	return endpoint, nil
}

// needed are the services without which a region is none for environments.
func needed(withoutHeat bool) string {
	if withoutHeat {
		return "Nova and Neutron"
	}
	return "Heat, Nova and Neutron"
}

// regionsOf are the regions of a catalog in which environments can be, by their names.
func regionsOf(catalog *tokens.ServiceCatalog, availability gophercloud.Availability, withoutHeat bool) []string {
	services := []string{"compute", "network"}
	if !withoutHeat {
		services = append(services, heat)
	}
	having := map[string]int{}
	for _, service := range services {
		options := gophercloud.EndpointOpts{Availability: availability}
		options.ApplyDefaults(service)
		there := map[string]bool{}
		for _, entry := range catalog.Entries {
			for _, one := range entry.Endpoints {
				if name := regionName(one); name != "" && slices.Contains(options.Types(), entry.Type) && one.Interface == string(options.Availability) {
					there[name] = true
				}
			}
		}
		for name := range there {
			having[name]++
		}
	}
	var names []string
	for name, count := range having {
		if count == len(services) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Regions lists the regions of the cloud in which the caller's environments can be, by their names; none where the catalog names none.
func (s *Service) Regions(ctx context.Context, caller identity.Caller) ([]RegionChoice, error) {
	_, catalog, err := s.inCatalogOf(ctx, caller)
	if err != nil {
		return nil, err
	}
	list := []RegionChoice{}
	for _, name := range regionsOf(catalog, s.home.endpoint.Availability, s.orchestration.without()) {
		list = append(list, RegionChoice{Name: name, Home: name == s.home.name})
	}
	return list, nil
}

// regionMark separates the name of a stack from its region's where that is not Burano's own. Names of stacks have none.
const regionMark = "@"

// noted is the recorded name of a stack in a change (Noting, Changing).
func (p *Project) noted(stack string) string {
	if p.region == p.home.name {
		return stack
	}
	return stack + regionMark + p.region
}

// regions are the parts of a project, by the names of the regions.
type regions struct {
	mutex sync.Mutex
	known map[string]*Project
}

// In returns the project's part in another region of the cloud; "" is the region that Burano was started for. A fault of kind Invalid lists the regions.
func (p *Project) In(ctx context.Context, region string) (*Project, error) {
	if region == "" {
		region = p.home.name
	}
	if region == p.region {
		return p, nil
	}
	p.regions.mutex.Lock()
	defer p.regions.mutex.Unlock()
	part := p.regions.known[region]
	if part == nil {
		endpoint, err := p.home.in(p.catalog, region, p.makers.setting.without())
		if err != nil {
			return nil, err
		}
		if part, err = newProject(ctx, p.provider, p.catalog, endpoint, p.makers.setting); err != nil {
			return nil, fmt.Errorf("in region %s: %w", region, err)
		}
		p.regions.known[region] = part
	}
	there := *p
	there.orchestration, there.makers, there.Neutron, there.Nova, there.Glance = part.orchestration, part.makers, part.Neutron, part.Nova, part.Glance
	there.endpoint, there.region = part.endpoint, region
	return &there, nil
}

// Region is the name of the region that the project is seen in.
func (p *Project) Region() string { return p.region }

// regionName is how people call an endpoint's region.
func regionName(endpoint tokens.Endpoint) string { return cmp.Or(endpoint.Region, endpoint.RegionID) }

// ofNoted splits noted's result.
func ofNoted(text string) (stack, region string) {
	stack, region, _ = strings.Cut(text, regionMark)
	return stack, region
}
