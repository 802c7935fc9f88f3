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

// AnyZone is the availability zone that Murano's models name by default. Where the cloud has no zone of that name it stands for any.
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

// CheckRoom looks, before anything is made, whether the cloud has what the new servers of a stack are made of, and whether the project's quotas
// have room for them. Its error, of kind Invalid, says all that is missing. A stack without new servers is not looked at, nor is what the
// project may not ask for. coming is how many servers are new.
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
				*into, _ = wanted.value(resource, property).(string) // what refers to a resource of the stack is there in time
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

// CheckServer looks whether the cloud has what a server is to be made of that takes the place of another one; "" is anything. Its error, of kind Invalid, says all that
// is missing.
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

// RoomFor says which quotas of the project have no room for one server more of a flavor, which is named by its name or id, with a port. A flavor that
// is not found is left to CheckRoom to complain of.
func (p *Project) RoomFor(ctx context.Context, flavor string) (missing []string, err error) {
	known, err := p.choices(ctx, "flavors", "quota")
	if err != nil {
		return nil, err
	}
	return known.exceeded([]newServer{{flavor: flavor}}, []string{serverType, "OS::Neutron::Port"}), nil
}

// Made are those resources of a stack that are there; none of a stack that is not.
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

// newServer is what a server is to be made of; "" for what is not known yet.
type newServer struct{ name, flavor, image, key, zone string }

// cloudChoices are what a project may choose from; an empty list says that it is not known.
type cloudChoices struct {
	flavors  []FlavorChoice
	images   []ImageChoice
	keypairs []KeypairChoice
	zones    []ZoneChoice
	quotas   []QuotaChoice
}

// choices asks for those of these kinds.
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
			continue // the project may not ask for it: Heat and Nova will say what is wrong
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

// unlistedImages adds images that are not listed and can be used by their ids all the same: those of a community.
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

// ID is the project's, "" when the token does not say.
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

// missing says what new servers are to be made of that is not there, or does not fit.
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

// exceeded says of which quotas new servers, and the other new resources, need more than is left.
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

// quotaNames are what quotas are of, for people.
var quotaNames = map[string]string{"instances": "instances", "cores": "cores", "ram": "memory (MiB)", "floating_ips": "floating IPs", "networks": "networks",
	"ports": "ports", "security_groups": "security groups"}

// placement is what a server is placed by, for errors that only say that there is no room.
func (c Content) placement(resource string) string {
	properties, _ := c.resource(resource)["properties"].(map[string]any)
	zone := text(properties["availability_zone"])
	if zone == "" {
		zone = "any"
	}
	return fmt.Sprintf(" (flavor %s, availability zone %s: no host of it has room, or none runs)", text(properties["flavor"]), zone)
}
