package openstack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"

	"github.com/burano/burano/internal/fault"
)

// AnyZone is the availability zone that Murano's models name by default. Where the cloud has no zone of that name it selects any.
const AnyZone = "nova"

// Zones are the names of Nova's availability zones that servers can be made in.
func (p *Project) Zones(ctx context.Context) ([]string, error) {
	list, err := listZones(ctx, p.provider, p.endpoint, "")
	if err != nil {
		return nil, fmt.Errorf("list the availability zones: %w", err)
	}
	var names []string
	for _, zone := range list.([]ZoneChoice) {
		if zone.Available {
			names = append(names, zone.Name)
		}
	}
	return names, nil
}

// CheckRoom checks, before anything is made, that the cloud has the flavors, images, keys and zones of a stack's new servers, and that the
// project's quotas have room for them. Its error, of kind Invalid, lists everything that is missing. It skips a stack without new servers, and
// lists that the project may not read. coming is the number of new servers.
func (p *Project) CheckRoom(ctx context.Context, name string, content Content) (coming int, err error) {
	resources, _ := content.Template["resources"].(map[string]any)
	added := map[string]string{} // the type of each resource that is new
	for resource := range resources {
		added[resource] = text(content.resource(resource)["type"])
	}
	if !slices.Contains(slices.Collect(maps.Values(added)), serverType) {
		return 0, nil
	}
	made, err := p.Made(ctx, name)
	if err != nil {
		return 0, err
	}
	maps.DeleteFunc(added, func(resource, kind string) bool { return made[resource] || kind == "" })
	wanted := definition{template: content.Template, parameters: content.inputs(), files: content.Files}
	var list []newServer
	for _, resource := range slices.Sorted(maps.Keys(added)) {
		if added[resource] == serverType {
			server := newServer{name: content.nameOf(resource)}
			for property, into := range map[string]*string{"flavor": &server.flavor, "image": &server.image, "key_name": &server.key, "availability_zone": &server.zone} {
				*into, _ = wanted.value(resource, property).(string) // references to resources of the stack are resolved by Heat
			}
			list = append(list, server)
		}
	}
	if len(list) == 0 {
		return 0, nil
	}
	known, err := p.choices(ctx, "flavors", "images", "keypairs", "availability-zones", "quota")
	if err != nil {
		return 0, err
	}
	if err := p.unlistedImages(ctx, list, &known); err != nil {
		return 0, err
	}
	problems := known.missing(list)
	problems = append(problems, known.exceeded(list, slices.Collect(maps.Values(added)))...)
	if len(problems) == 0 {
		return len(list), nil
	}
	return 0, fault.New(fault.Invalid, "nothing was made, because the cloud has no room for it or does not know what it is made of: %s", strings.Join(problems, "; "))
}

// CheckServer checks that the cloud has the parts of a replacement server; "" is anything. Its error, of kind Invalid, lists everything that is missing.
func (p *Project) CheckServer(ctx context.Context, name, flavor, image, key, zone string) error {
	if zone == AnyZone {
		zone = ""
	}
	list := []newServer{{name, flavor, image, key, zone}}
	known, err := p.choices(ctx, "flavors", "images", "keypairs", "availability-zones")
	if err == nil {
		err = p.unlistedImages(ctx, list, &known)
	}
	if err != nil {
		return err
	}
	if problems := known.missing(list); len(problems) > 0 {
		return fault.New(fault.Invalid, "the cloud does not know what a server is to be made of: %s", strings.Join(problems, "; "))
	}
	return nil
}

// RoomFor returns the quotas of the project without room for one more server of a flavor, given by its name or id, with a port. An unknown flavor is
// CheckRoom's error.
func (p *Project) RoomFor(ctx context.Context, flavor string) (missing []string, err error) {
	known, err := p.choices(ctx, "flavors", "quota")
	if err != nil {
		return nil, err
	}
	return known.exceeded([]newServer{{flavor: flavor}}, []string{serverType, "OS::Neutron::Port"}), nil
}

// Made are the existing resources of a stack; none if there is no stack.
func (p *Project) Made(ctx context.Context, name string) (map[string]bool, error) {
	found, err := p.named(ctx, name)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	resources, err := p.resources(ctx, name, found[0].ID)
	if err != nil {
		return nil, err
	}
	made := map[string]bool{}
	for _, resource := range resources {
		made[resource.Name] = resource.PhysicalID != ""
	}
	return made, nil
}

// newServer lists the parts of a new server; "" where one is not known yet.
type newServer struct{ name, flavor, image, key, zone string }

// cloudChoices are the project's choices; an empty list is unknown.
type cloudChoices struct {
	flavors  []FlavorChoice
	images   []ImageChoice
	keypairs []KeypairChoice
	zones    []ZoneChoice
	quotas   []QuotaChoice
}

// choices lists the choices of these kinds.
func (p *Project) choices(ctx context.Context, kinds ...string) (all cloudChoices, err error) {
	projectID, err := p.ID()
	if err != nil {
		return all, err
	}
	var problems []error
	for _, kind := range kinds {
		list, err := choices[kind](ctx, p.provider, p.endpoint, projectID)
		var unexpected gophercloud.ErrUnexpectedResponseCode
		if errors.As(err, &unexpected) && unexpected.Actual < http.StatusInternalServerError {
			continue // the project may not list it: Heat and Nova will report errors
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("ask the cloud for %s: %w", kind, err))
		}
		switch list := list.(type) {
		case []FlavorChoice:
			all.flavors = list
		case []ImageChoice:
			all.images = list
		case []KeypairChoice:
			all.keypairs = list
		case []ZoneChoice:
			all.zones = list
		case []QuotaChoice:
			all.quotas = list
		}
	}
	return all, errors.Join(problems...)
}

// unlistedImages adds images that are not listed but can be used by their ids: community images.
func (p *Project) unlistedImages(ctx context.Context, list []newServer, known *cloudChoices) error {
	if len(known.images) == 0 { // they could not be listed, and so are not checked
		return nil
	}
	for _, server := range list {
		if identified("image", server.image) != nil || slices.ContainsFunc(known.images, func(i ImageChoice) bool { return i.ID == server.image || i.Name == server.image }) {
			continue
		}
		client, err := openstack.NewImageV2(p.provider, p.endpoint)
		if err != nil {
			return fmt.Errorf("find Glance in the service catalog: %w", err)
		}
		image, err := images.Get(ctx, client, server.image).Extract()
		var unexpected gophercloud.ErrUnexpectedResponseCode
		switch {
		case errors.As(err, &unexpected) && unexpected.Actual < http.StatusInternalServerError:
		case err != nil:
			return fmt.Errorf("ask Glance for image %s: %w", server.image, err)
		case image.Status == images.ImageStatusActive:
			known.images = append(known.images, ImageChoice{ID: image.ID, Name: image.Name, MinDisk: image.MinDiskGigabytes, MinRAM: image.MinRAMMegabytes})
		}
	}
	return nil
}

// ID is the project's id, "" when the token does not have it.
func (p *Project) ID() (string, error) {
	if p.projectID != "" {
		return p.projectID, nil
	}
	result, ok := p.provider.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return "", nil
	}
	project, err := result.ExtractProject()
	if err != nil || project == nil {
		return "", err
	}
	return project.ID, nil
}

// missing lists the parts of new servers that do not exist, or do not fit.
func (c cloudChoices) missing(list []newServer) (problems []string) {
	add := func(server newServer, format string, args ...any) {
		problems = append(problems, server.name+": "+fmt.Sprintf(format, args...))
	}
	for _, server := range list {
		flavor, flavorErr := FlavorChoice{}, error(nil)
		if server.flavor != "" && len(c.flavors) > 0 {
			if flavor, flavorErr = one("flavor", server.flavor, c.flavors, func(f FlavorChoice) (string, string) { return f.ID, f.Name }); flavorErr != nil {
				add(server, "%v", flavorErr)
			}
		}
		if server.image != "" && len(c.images) > 0 {
			image, err := one("active image", server.image, c.images, func(i ImageChoice) (string, string) { return i.ID, i.Name })
			switch {
			case err != nil:
				add(server, "%v", err)
			case flavor.ID != "" && image.MinRAM > flavor.RAM:
				add(server, "image %s needs %d MiB of memory, and flavor %s has %d", server.image, image.MinRAM, server.flavor, flavor.RAM)
			case flavor.ID != "" && flavor.Disk > 0 && image.MinDisk > flavor.Disk:
				add(server, "image %s needs %d GiB of disk, and flavor %s has %d", server.image, image.MinDisk, server.flavor, flavor.Disk)
			}
		}
		if server.key != "" && len(c.keypairs) > 0 && !slices.ContainsFunc(c.keypairs, func(k KeypairChoice) bool { return k.Name == server.key }) {
			names := make([]string, len(c.keypairs))
			for i, pair := range c.keypairs {
				names[i] = pair.Name
			}
			add(server, "the user who deploys has no key pair %q: there are %s (key pairs belong to users, not to projects)", server.key, listed(names))
		}
		if server.zone != "" && len(c.zones) > 0 && !strings.Contains(server.zone, ":") { // an administrator may name a host in it
			var open []string
			for _, zone := range c.zones {
				if zone.Available {
					open = append(open, zone.Name)
				}
			}
			if !slices.Contains(open, server.zone) {
				add(server, "there is no availability zone %q to make servers in: there are %s", server.zone, listed(open))
			}
		}
	}
	return problems
}

// exceeded lists the quotas of which new servers, and the other new resources, need more than is left.
func (c cloudChoices) exceeded(list []newServer, kinds []string) (problems []string) {
	count := func(kind string) (n int) {
		for _, one := range kinds {
			if one == kind {
				n++
			}
		}
		return n
	}
	needs := map[string]int{"instances": len(list), "floating_ips": count("OS::Neutron::FloatingIP"), "networks": count("OS::Neutron::Net"),
		"ports": count("OS::Neutron::Port"), "security_groups": count("OS::Neutron::SecurityGroup")}
	for _, server := range list {
		if flavor, err := one("flavor", server.flavor, c.flavors, func(f FlavorChoice) (string, string) { return f.ID, f.Name }); err == nil {
			needs["cores"] += flavor.CPUs
			needs["ram"] += flavor.RAM
		}
	}
	for _, quota := range c.quotas {
		left := quota.Limit - quota.Used
		if need := needs[quota.Resource]; quota.Limit >= 0 && need > left {
			problems = append(problems, fmt.Sprintf("the project's quota of %s is exceeded: %d more are needed and %d of %d are left, so %d are missing",
				quotaNames[quota.Resource], need, max(left, 0), quota.Limit, need-max(left, 0)))
		}
	}
	return problems
}

// quotaNames are the names of quotas for people.
var quotaNames = map[string]string{"instances": "instances", "cores": "cores", "ram": "memory (MiB)", "floating_ips": "floating IPs", "networks": "networks",
	"ports": "ports", "security_groups": "security groups"}

// placement describes a server's place in the cloud, for errors that only report that there is no room.
func (c Content) placement(resource string) string {
	properties, _ := c.resource(resource)["properties"].(map[string]any)
	zone := text(properties["availability_zone"])
	if zone == "" {
		zone = "any"
	}
	return fmt.Sprintf(" (flavor %s, availability zone %s: no host of it has room, or none runs)", text(properties["flavor"]), zone)
}
