package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/availabilityzones"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/keypairs"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/external"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/quotas"
	securitygroups "github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// The choices of a user in a form, as the API answers them.
type (
	// FlavorChoice is a size of servers.
	FlavorChoice struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		CPUs int    `json:"vcpus"`
		RAM  int    `json:"ram"`  // MiB
		Disk int    `json:"disk"` // GiB
	}
	// ImageChoice is an image that a server can boot from. Title and Type come from its property murano_image_info, "" without it.
	ImageChoice struct {
		ID      string `json:"id"`
		Name    string `json:"name"`
		Title   string `json:"title"`
		Type    string `json:"type"`
		MinDisk int    `json:"min_disk"` // GiB
		MinRAM  int    `json:"min_ram"`  // MiB
		Size    int64  `json:"size"`     // bytes
		// Kubernetes is the version in a node image, such as v1.36.3; "" where the image does not declare it.
		Kubernetes string `json:"kubernetes"`
	}
	// KeypairChoice is a public key that Nova keeps for the user.
	KeypairChoice struct {
		Name        string `json:"name"`
		Fingerprint string `json:"fingerprint"`
	}
	// NetworkChoice is one that the project may use.
	NetworkChoice struct {
		ID       string   `json:"id"`
		Name     string   `json:"name"`
		Subnets  []string `json:"subnets"` // ids
		Shared   bool     `json:"shared"`
		External bool     `json:"external"`
	}
	// ZoneChoice is an availability zone of Nova.
	ZoneChoice struct {
		Name      string `json:"name"`
		Available bool   `json:"available"`
	}
	// SecurityGroupChoice is a set of rules for traffic to servers.
	SecurityGroupChoice struct {
		ID          string `json:"id"`
		Name        string `json:"name"`
		Description string `json:"description"`
	}
	// SubnetChoice is a range of addresses of a network.
	SubnetChoice struct {
		ID        string `json:"id"`
		Name      string `json:"name"`
		NetworkID string `json:"network_id"`
		CIDR      string `json:"cidr"`
		IPVersion int    `json:"ip_version"`
	}
	// VolumeChoice is a disk that Cinder keeps.
	VolumeChoice struct {
		ID       string `json:"id"`
		Name     string `json:"name"`
		Size     int    `json:"size"` // GiB
		Status   string `json:"status"`
		Bootable bool   `json:"bootable"`
	}
	// QuotaChoice is how much of a resource the project uses and may use; the limit is -1 when there is none.
	QuotaChoice struct {
		Resource string `json:"resource"` // instances, cores, ram (MiB), floating_ips, networks, ports, security_groups
		Used     int    `json:"used"`
		Limit    int    `json:"limit"`
	}
)

func (f FlavorChoice) identity() (id, name string) { return f.ID, f.Name }
func (i ImageChoice) identity() (id, name string)  { return i.ID, i.Name }

// choices list a caller's choices in a cloud's service, each kind by its own function.
var choices = map[string]func(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, projectID string) (any, error){
	"flavors":            listFlavors,
	"images":             listImages,
	"keypairs":           listKeypairs,
	"networks":           listNetworks,
	"availability-zones": listZones,
	"quota":              listQuota,
	"security-groups":    listSecurityGroups,
	"subnets":            listSubnets,
	"volumes":            listVolumes,
}

// Choices lists the caller's choices in their project, by name, in a region, "" for Burano's own, with the caller's own token. The kinds are:
// - flavors ([]FlavorChoice), images ([]ImageChoice), keypairs ([]KeypairChoice);
// - networks ([]NetworkChoice), subnets ([]SubnetChoice), security-groups ([]SecurityGroupChoice);
// - availability-zones ([]ZoneChoice), regions ([]RegionChoice), quota ([]QuotaChoice);
// - volumes ([]VolumeChoice, none where the cloud has no Cinder).
func (s *Service) Choices(ctx context.Context, caller identity.Caller, kind, region string) (any, error) {
	if kind == "regions" {
		return s.Regions(ctx, caller)
	}
	ask, known := choices[kind]
	if !known {
		return nil, fault.New(fault.NotFound, "The resource could not be found: the cloud is not asked for %s, but for %s", kind, strings.Join(append(slices.Sorted(maps.Keys(choices)), "regions"), ", "))
	}
	client, catalog, err := s.inCatalogOf(ctx, caller)
	if err != nil {
		return nil, err
	}
	endpoint, err := s.home.in(catalog, region, s.orchestration.without())
	if err != nil {
		return nil, err
	}
	list, err := ask(ctx, client.ProviderClient, endpoint, caller.ProjectID)
	if err != nil {
		return nil, fmt.Errorf("ask the cloud for %s: %w", kind, err)
	}
	return list, nil
}

// inCatalogOf returns a client with the caller's token, which finds the services that the caller's catalog names, and that catalog.
func (s *Service) inCatalogOf(ctx context.Context, caller identity.Caller) (*gophercloud.ServiceClient, *tokens.ServiceCatalog, error) {
	client := s.as(caller.Token)
	catalog, err := tokens.Get(ctx, client, caller.Token).ExtractServiceCatalog()
	if err != nil {
		return nil, nil, fmt.Errorf("ask Keystone for the caller's service catalog: %w", err)
	}
	client.EndpointLocator = func(opts gophercloud.EndpointOpts) (string, error) {
		return openstack.V3Endpoint(ctx, client.ProviderClient, catalog, opts)
	}
	s.addresses.note(client.ProviderClient)
	return client, catalog, nil
}

// ProjectOf is the caller's project as the caller's own token sees it: good for looking, while the token lasts.
func (s *Service) ProjectOf(ctx context.Context, caller identity.Caller) (*Project, error) {
	client, catalog, err := s.inCatalogOf(ctx, caller)
	if err != nil {
		return nil, err
	}
	project, err := s.atHome(ctx, client.ProviderClient, catalog)
	if err == nil {
		project.projectID = caller.ProjectID
	}
	return project, err
}

func listFlavors(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewComputeV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, flavors.ListDetail(client, flavors.ListOpts{}))
	if err != nil {
		return nil, err
	}
	found, err := flavors.ExtractFlavors(pages)
	list := make([]FlavorChoice, len(found))
	for i, one := range found {
		list[i] = FlavorChoice{ID: one.ID, Name: one.Name, CPUs: one.VCPUs, RAM: one.RAM, Disk: one.Disk}
	}
	return list, err
}

func listImages(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewImageV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, images.List(client, images.ListOpts{Status: images.ImageStatusActive, Sort: "name:asc"}))
	if err != nil {
		return nil, err
	}
	found, err := images.ExtractImages(pages)
	list := make([]ImageChoice, len(found))
	for i, one := range found {
		list[i] = ImageChoice{ID: one.ID, Name: one.Name, MinDisk: one.MinDiskGigabytes, MinRAM: one.MinRAMMegabytes, Size: one.SizeBytes, Kubernetes: nodeImage(one).Kubernetes}
		// Murano marks the images that its applications know so (https://docs.openstack.org/murano/).
		var told struct{ Title, Type string }
		if text, ok := one.Properties[imageInfo].(string); ok && json.Unmarshal([]byte(text), &told) == nil {
			list[i].Title, list[i].Type = told.Title, told.Type
		}
	}
	return list, err
}

func listKeypairs(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewComputeV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, keypairs.List(client, keypairs.ListOpts{}))
	if err != nil {
		return nil, err
	}
	found, err := keypairs.ExtractKeyPairs(pages)
	list := make([]KeypairChoice, len(found))
	for i, one := range found {
		list[i] = KeypairChoice{Name: one.Name, Fingerprint: one.Fingerprint}
	}
	return list, err
}

func listNetworks(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewNetworkV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, networks.List(client, networks.ListOpts{SortKey: "name", SortDir: "asc"}))
	if err != nil {
		return nil, err
	}
	var found []struct {
		networks.Network
		external.NetworkExternalExt
	}
	err = networks.ExtractNetworksInto(pages, &found)
	list := make([]NetworkChoice, len(found))
	for i, one := range found {
		list[i] = NetworkChoice{ID: one.ID, Name: one.Name, Subnets: append([]string{}, one.Subnets...), Shared: one.Shared, External: one.External}
	}
	return list, err
}

func listZones(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewComputeV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, availabilityzones.List(client))
	if err != nil {
		return nil, err
	}
	found, err := availabilityzones.ExtractAvailabilityZones(pages)
	list := make([]ZoneChoice, len(found))
	for i, one := range found {
		list[i] = ZoneChoice{Name: one.ZoneName, Available: one.ZoneState.Available}
	}
	return list, err
}

func listSecurityGroups(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, projectID string) (any, error) {
	client, err := openstack.NewNetworkV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, securitygroups.List(client, securitygroups.ListOpts{ProjectID: projectID, SortKey: "name", SortDir: "asc"}))
	if err != nil {
		return nil, err
	}
	found, err := securitygroups.ExtractGroups(pages)
	list := make([]SecurityGroupChoice, len(found))
	for i, one := range found {
		list[i] = SecurityGroupChoice{ID: one.ID, Name: one.Name, Description: one.Description}
	}
	return list, err
}

func listSubnets(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewNetworkV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, subnets.List(client, subnets.ListOpts{SortKey: "name", SortDir: "asc"}))
	if err != nil {
		return nil, err
	}
	found, err := subnets.ExtractSubnets(pages)
	list := make([]SubnetChoice, len(found))
	for i, one := range found {
		list[i] = SubnetChoice{ID: one.ID, Name: one.Name, NetworkID: one.NetworkID, CIDR: one.CIDR, IPVersion: one.IPVersion}
	}
	return list, err
}

func listVolumes(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, _ string) (any, error) {
	client, err := openstack.NewBlockStorageV3(provider, endpoint)
	var none *gophercloud.ErrEndpointNotFound
	if errors.As(err, &none) || errors.As(err, new(gophercloud.ErrEndpointNotFound)) {
		return []VolumeChoice{}, nil
	}
	if err != nil {
		return nil, err
	}
	pages, err := allPages(ctx, volumes.List(client, volumes.ListOpts{Sort: "name:asc"}))
	if err != nil {
		return nil, err
	}
	found, err := volumes.ExtractVolumes(pages)
	list := make([]VolumeChoice, len(found))
	for i, one := range found {
		list[i] = VolumeChoice{ID: one.ID, Name: one.Name, Size: one.Size, Status: one.Status, Bootable: one.Bootable == "true"}
	}
	return list, err
}

func listQuota(ctx context.Context, provider *gophercloud.ProviderClient, endpoint gophercloud.EndpointOpts, projectID string) (any, error) {
	compute, err := openstack.NewComputeV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	network, err := openstack.NewNetworkV2(provider, endpoint)
	if err != nil {
		return nil, err
	}
	nova, err := limits.Get(ctx, compute, limits.GetOpts{}).Extract()
	if err != nil {
		return nil, err
	}
	neutron, err := quotas.GetDetail(ctx, network, projectID).Extract()
	if err != nil {
		return nil, err
	}
	return []QuotaChoice{
		{"instances", nova.Absolute.TotalInstancesUsed, nova.Absolute.MaxTotalInstances},
		{"cores", nova.Absolute.TotalCoresUsed, nova.Absolute.MaxTotalCores},
		{"ram", nova.Absolute.TotalRAMUsed, nova.Absolute.MaxTotalRAMSize},
		{"floating_ips", neutron.FloatingIP.Used, neutron.FloatingIP.Limit},
		{"networks", neutron.Network.Used, neutron.Network.Limit},
		{"ports", neutron.Port.Used, neutron.Port.Limit},
		{"security_groups", neutron.SecurityGroup.Used, neutron.SecurityGroup.Limit},
	}, nil
}

// Flavor is the flavor of that name or id; nil when the project has none.
func (p *Project) Flavor(ctx context.Context, named string) (*FlavorChoice, error) {
	known, err := p.choices(ctx, "flavors")
	if err != nil {
		return nil, err
	}
	for _, one := range known.flavors {
		if one.ID == named || one.Name == named {
			return &one, nil
		}
	}
	return nil, nil
}
