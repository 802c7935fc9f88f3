package openstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
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

// CheckRoom checks, before anything is made, that the cloud has the parts of a stack's new servers and volumes, and that the project's quotas have
// room for them. Its error, of kind Invalid, lists everything that is missing. It skips lists that the project may not read, and stacks inside of an
// existing resource. coming has the names of the new servers.
func (p *Project) CheckRoom(ctx context.Context, name string, content Content) (coming []string, err error) {
	wanted := definition{template: content.Template, parameters: content.inputs(), files: content.Files, registry: content.registry()}
	if resources, _ := content.Template["resources"].(map[string]any); len(resources) == 0 {
		return nil, nil
	}
	was, made, err := present(ctx, p, name, wanted)
	if err != nil {
		return nil, err
	}
	needs := demand{}
	needs.add(wanted, was, made, 1, 1)
	if len(needs.kinds) == 0 && len(needs.volumes) == 0 {
		return nil, nil
	}
	known, err := p.choicesFor(ctx, needs)
	if err != nil {
		return nil, err
	}
	if problems := append(known.missing(needs), known.exceeded(needs)...); len(problems) > 0 {
		return nil, fault.New(fault.Invalid, "nothing was made, because the cloud has no room for it or does not know what it is made of: %s", strings.Join(problems, "; "))
	}
	return needs.coming(), nil
}

// present returns the existing resources of a stack, and its present definition if a volume is among them.
func present(ctx context.Context, p *Project, name string, wanted definition) (was definition, made map[string]bool, err error) {
	if made, err = p.Made(ctx, name); err != nil {
		return was, nil, err
	}
	volumes := false
	for resource, there := range made {
		volumes = volumes || there && wanted.kind(resource) == volumeType
	}
	if !volumes {
		return was, made, nil
	}
	found, err := p.named(ctx, name)
	if err != nil || len(found) == 0 {
		return was, made, err
	}
	existing, err := p.stack(ctx, found[0])
	if err != nil || existing == nil {
		return was, made, err
	}
	was.parameters = existing.Parameters
	was.template, err = p.template(ctx, existing)
	return was, made, err
}

// NewServer lists the parts of a new server; "" where one is not known yet.
type NewServer struct {
	Name, Flavor, Image, Key, Zone string
	count                          int
}

// CheckServers checks that the cloud has the parts of replacement servers; with more they are additional ones, and the quotas count too. Its error, of kind
// Invalid, lists everything that is missing.
func (p *Project) CheckServers(ctx context.Context, more bool, list ...NewServer) error {
	needs := demand{}
	for _, server := range list {
		if server.Zone == AnyZone {
			server.Zone = ""
		}
		server.count = 1
		needs.servers = append(needs.servers, server)
	}
	if more {
		needs.kinds = map[string]int{serverType: len(list), portType: len(list)}
	}
	known, err := p.choicesFor(ctx, needs)
	if err != nil {
		return err
	}
	problems := known.missing(needs)
	if more {
		problems = append(problems, known.exceeded(needs)...)
	}
	if len(problems) > 0 {
		return fault.New(fault.Invalid, "the cloud cannot make servers like that: %s", strings.Join(problems, "; "))
	}
	return nil
}

// CheckVolumes checks that the cloud has the types and images of volumes, and that the project's quotas have room for them. Its error, of kind Invalid,
// lists everything that is missing.
func CheckVolumes(ctx context.Context, p *Project, list []VolumeDemand) error {
	if len(list) == 0 {
		return nil
	}
	needs := demand{volumes: list, kinds: map[string]int{}}
	for _, volume := range list {
		needs.kinds[volumeType] += volume.Count
	}
	known, err := p.choicesFor(ctx, needs)
	if err != nil {
		return err
	}
	if problems := append(known.missing(needs), known.exceeded(needs)...); len(problems) > 0 {
		return fault.New(fault.Invalid, "the cloud cannot make the volumes: %s", strings.Join(problems, "; "))
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
	return known.exceeded(demand{servers: []NewServer{{Flavor: flavor, count: 1}}, kinds: map[string]int{serverType: 1, portType: 1}}), nil
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

// counted are the quotas of types of resources.
var counted = map[string]string{serverType: "instances", floatingType: "floating_ips", "OS::Neutron::Net": "networks", portType: "ports",
	"OS::Neutron::SecurityGroup": "security_groups", volumeType: quotaVolumes}

const (
	portType     = "OS::Neutron::Port"
	floatingType = "OS::Neutron::FloatingIP"
	volumeType   = "OS::Cinder::Volume"
)

// named are types of resources to which others refer by their property name.
var named = []string{keyPairType, "OS::Nova::Flavor", "OS::Glance::Image", "OS::Glance::WebImage", "OS::Cinder::VolumeType"}

// demand is the need of a stack's new resources.
type demand struct {
	servers []NewServer
	volumes []VolumeDemand  // new, or larger than they are
	kinds   map[string]int  // how many new resources, by their types
	makes   map[string]bool // names of key pairs, flavors, images and types of volumes that the stack makes itself
}

// VolumeDemand is a volume of Cinder of which Count are new, or one that grows. Type and Image are names or ids, "" for the cloud's choice and for none.
type VolumeDemand struct {
	Name, Type, Image string
	GiB               int // of one
	Count             int // 0: it only grows
	More              int // GiB of all, beside the present ones
}

// most bounds the numbers of members in nested groups.
const most = 1 << 20

// add adds the new resources of a definition, each of them times. was is the present definition, and made has the resources that are there. Resources with a
// condition are left out, which only Heat evaluates.
func (n *demand) add(wanted, was definition, made map[string]bool, times, depth int) {
	if n.kinds == nil {
		n.kinds, n.makes = map[string]int{}, map[string]bool{}
	}
	resources, _ := wanted.template["resources"].(map[string]any)
	for _, resource := range slices.Sorted(maps.Keys(resources)) {
		if wanted.resource(resource)["condition"] != nil {
			continue
		}
		kind := wanted.kind(resource)
		if slices.Contains(named, kind) {
			n.makes[wanted.word(resource, "name")] = true
		}
		gib, _ := strconv.Atoi(text(wanted.value(resource, "size")))
		if made[resource] {
			if now, _ := strconv.Atoi(text(was.value(resource, "size"))); kind == volumeType && gib > now && now > 0 {
				n.volumes = append(n.volumes, VolumeDemand{Name: wanted.nameOf(resource), GiB: gib, More: gib - now})
			}
			continue
		}
		if inside, nested := wanted.inside(resource); nested {
			if depth < deepest {
				n.add(inside, definition{}, nil, min(times*wanted.members(resource), most), depth+1)
			}
			continue
		}
		switch kind {
		case serverType:
			n.servers = append(n.servers, NewServer{Name: "server " + wanted.nameOf(resource), Flavor: wanted.word(resource, "flavor"), Image: wanted.word(resource, "image"),
				Key: wanted.word(resource, "key_name"), Zone: wanted.word(resource, "availability_zone"), count: times})
		case volumeType:
			n.volumes = append(n.volumes, VolumeDemand{Name: wanted.nameOf(resource), Type: wanted.word(resource, "volume_type"), Image: wanted.word(resource, "image"),
				GiB: gib, Count: times, More: gib * times})
		}
		if counted[kind] != "" {
			n.kinds[kind] += times
		}
	}
}

// coming are the names of the new servers. A group of servers is one name for each.
func (n *demand) coming() (names []string) {
	for _, server := range n.servers {
		names = append(names, slices.Repeat([]string{strings.TrimPrefix(server.Name, "server ")}, min(server.count, mostComing))...)
	}
	return names
}

// mostComing bounds the names of one group; quotas are lower.
const mostComing = 1000

// images are the names or ids of the images that are needed.
func (n *demand) images() (list []string) {
	for _, server := range n.servers {
		list = append(list, server.Image)
	}
	for _, volume := range n.volumes {
		list = append(list, volume.Image)
	}
	return slices.DeleteFunc(list, func(image string) bool { return image == "" || n.makes[image] })
}

// word is a property that is a text; "" for one that Heat evaluates.
func (d definition) word(resource, property string) string {
	value, _ := d.value(resource, property).(string)
	return value
}

// nameOf is the name of a server or a volume, "" for that of the resource.
func (d definition) nameOf(resource string) string { return cmp.Or(d.word(resource, "name"), resource) }

// members is how many members a new group has; 1 for other resources.
func (d definition) members(resource string) int {
	for _, property := range map[string][]string{"OS::Heat::ResourceGroup": {"count"}, "OS::Heat::AutoScalingGroup": {"desired_capacity", "min_size"}}[d.kind(resource)] {
		if n, err := strconv.Atoi(text(d.value(resource, property))); err == nil {
			return max(0, min(n, most))
		}
	}
	return 1
}

// cloudChoices are the project's choices; an empty list is unknown. Many users have no key pairs, so that of these only nil is unknown.
type cloudChoices struct {
	flavors     []FlavorChoice
	images      []ImageChoice
	keypairs    []KeypairChoice
	byRole      bool // the key pairs are those of Burano's service user, of all its projects
	zones       []ZoneChoice
	quotas      []QuotaChoice
	volumeTypes []VolumeType
	noCinder    error
}

// choicesFor reads the choices and quotas that a demand is compared with.
func (p *Project) choicesFor(ctx context.Context, needs demand) (known cloudChoices, err error) {
	kinds := []string{"quota"}
	if len(needs.servers) > 0 {
		kinds = append(kinds, "flavors", "images", "keypairs", "availability-zones")
	} else if len(needs.images()) > 0 {
		kinds = append(kinds, "images")
	}
	if known, err = p.choices(ctx, kinds...); err == nil {
		err = unlistedImages(ctx, p, needs.images(), &known)
	}
	if err != nil || len(needs.volumes) == 0 {
		return known, err
	}
	storage, err := p.BlockStorage()
	if fault.KindOf(err) == fault.NotFound {
		known.noCinder, err = err, nil
	}
	if err != nil && denied(err) {
		err = nil
	}
	if err != nil || storage == nil {
		return known, err
	}
	projectID, err := p.ID()
	if err != nil {
		return known, err
	}
	if known.volumeTypes, err = storage.Types(ctx); err != nil && fault.KindOf(err) == 0 { // a fault: the project may not see them
		return known, err
	}
	quotas, err := storage.Quotas(ctx, projectID)
	if err != nil && fault.KindOf(err) == 0 {
		return known, err
	}
	known.quotas = append(known.quotas, quotas...)
	return known, nil
}

// choices lists the choices of these kinds.
func (p *Project) choices(ctx context.Context, kinds ...string) (all cloudChoices, err error) {
	all.byRole = p.role
	projectID, err := p.ID()
	if err != nil {
		return all, err
	}
	var problems []error
	for _, kind := range kinds {
		list, err := choices[kind](ctx, p.provider, p.endpoint, projectID)
		if denied(err) {
			continue // Heat and Nova will say what is wrong
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

// denied reports whether a service has refused to answer: the project may not ask for it.
func denied(err error) bool {
	var unexpected gophercloud.ErrUnexpectedResponseCode
	return errors.As(err, &unexpected) && unexpected.Actual < http.StatusInternalServerError
}

// unlistedImages adds images that are not listed but can be used by their ids: community images.
func unlistedImages(ctx context.Context, p *Project, named []string, known *cloudChoices) error {
	if len(known.images) == 0 { // they could not be listed, and so are not checked
		return nil
	}
	for _, id := range named {
		if identified("image", id) != nil || slices.ContainsFunc(known.images, func(i ImageChoice) bool { return i.ID == id || i.Name == id }) {
			continue
		}
		client, err := openstack.NewImageV2(p.provider, p.endpoint)
		if err != nil {
			return fmt.Errorf("find Glance in the service catalog: %w", err)
		}
		image, err := images.Get(ctx, client, id).Extract()
		switch {
		case denied(err):
		case err != nil:
			return fmt.Errorf("ask Glance for image %s: %w", id, err)
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

// missing lists the parts of new servers and volumes that do not exist, or do not fit.
func (c cloudChoices) missing(needs demand) (problems []string) {
	for _, server := range needs.servers {
		for _, problem := range c.missingFor(server, needs.makes) {
			problems = append(problems, server.Name+": "+problem)
		}
	}
	for _, volume := range needs.volumes {
		for _, problem := range c.missingForVolume(volume, needs.makes) {
			problems = append(problems, "volume "+volume.Name+": "+problem)
		}
	}
	return problems
}

// missingFor is missing for one server. makes are the names of things that the stack makes itself.
func (c cloudChoices) missingFor(server NewServer, makes map[string]bool) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	flavor, flavorErr := FlavorChoice{}, error(nil)
	if server.Flavor != "" && len(c.flavors) > 0 && !makes[server.Flavor] {
		if flavor, flavorErr = one("flavor", server.Flavor, c.flavors, FlavorChoice.identity); flavorErr != nil {
			add("%v", flavorErr)
		}
	}
	if server.Image != "" && len(c.images) > 0 && !makes[server.Image] {
		image, err := one("active image", server.Image, c.images, ImageChoice.identity)
		switch {
		case err != nil:
			add("%v", err)
		case flavor.ID != "" && image.MinRAM > flavor.RAM:
			add("image %s needs %d MiB of memory, and flavor %s has %d", server.Image, image.MinRAM, server.Flavor, flavor.RAM)
		case flavor.ID != "" && flavor.Disk > 0 && image.MinDisk > flavor.Disk:
			add("image %s needs %d GiB of disk, and flavor %s has %d", server.Image, image.MinDisk, server.Flavor, flavor.Disk)
		}
	}
	if server.Key != "" && c.keypairs != nil && !makes[server.Key] && !slices.ContainsFunc(c.keypairs, func(k KeypairChoice) bool { return k.Name == server.Key }) {
		add("%s", c.noKey(server.Key))
	}
	if server.Zone != "" && len(c.zones) > 0 && !strings.Contains(server.Zone, ":") { // an administrator may name a host in it
		var open []string
		for _, zone := range c.zones {
			if zone.Available {
				open = append(open, zone.Name)
			}
		}
		if !slices.Contains(open, server.Zone) {
			add("there is no availability zone %q to make servers in: there are %s", server.Zone, listed(open))
		}
	}
	return problems
}

// noKey is the problem of a server with a key pair that is not there. Key pairs of the service user may have names from other projects.
func (c cloudChoices) noKey(key string) string {
	if c.byRole {
		return fmt.Sprintf("Burano's service user, to whom servers belong in this project (burano project show), has no key pair %q: key pairs belong to users, not to projects. Leave it out: Burano needs none", key)
	}
	names := make([]string, len(c.keypairs))
	for i, pair := range c.keypairs {
		names[i] = pair.Name
	}
	return fmt.Sprintf("the user who deploys has no key pair %q: there are %s (key pairs belong to users, not to projects)", key, listed(names))
}

// missingForVolume is missing for one volume.
func (c cloudChoices) missingForVolume(volume VolumeDemand, makes map[string]bool) (problems []string) {
	if c.noCinder != nil {
		return []string{c.noCinder.Error()}
	}
	if volume.Type != "" && len(c.volumeTypes) > 0 && !makes[volume.Type] {
		if _, err := one("volume type", volume.Type, c.volumeTypes, VolumeType.identity); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if volume.Image != "" && len(c.images) > 0 && !makes[volume.Image] {
		image, err := one("active image", volume.Image, c.images, ImageChoice.identity)
		if err != nil {
			problems = append(problems, err.Error())
		} else if volume.GiB > 0 && image.MinDisk > volume.GiB {
			problems = append(problems, fmt.Sprintf("image %s needs %d GiB of disk, and the volume has %d", volume.Image, image.MinDisk, volume.GiB))
		}
	}
	for _, quota := range c.quotas {
		if quota.Resource == quotaPerVolume && quota.Limit >= 0 && volume.GiB > quota.Limit {
			problems = append(problems, fmt.Sprintf("it is to have %d GiB, and the project's quota of one volume is %d GiB", volume.GiB, quota.Limit))
		}
	}
	return problems
}

// exceeded lists the quotas of which a demand needs more than is left.
func (c cloudChoices) exceeded(needs demand) (problems []string) {
	sums := map[string]int{}
	for kind, n := range needs.kinds {
		sums[counted[kind]] += n
	}
	for _, server := range needs.servers {
		if flavor, err := one("flavor", server.Flavor, c.flavors, FlavorChoice.identity); err == nil {
			sums["cores"] += flavor.CPUs * server.count
			sums["ram"] += flavor.RAM * server.count
		}
	}
	for _, volume := range needs.volumes {
		sums[quotaGigabytes] += volume.More
		if kind, err := one("volume type", volume.Type, c.volumeTypes, VolumeType.identity); err == nil {
			sums[quotaVolumes+"_"+kind.Name] += volume.Count
			sums[quotaGigabytes+"_"+kind.Name] += volume.More
		}
	}
	for _, quota := range c.quotas {
		left := quota.Limit - quota.Used
		if need := sums[quota.Resource]; quota.Limit >= 0 && need > left {
			problems = append(problems, fmt.Sprintf("the project's quota of %s is exceeded: %d more are needed and %d of %d are left, so %d are missing",
				quotaName(quota.Resource), need, max(left, 0), quota.Limit, need-max(left, 0)))
		}
	}
	return problems
}

// quotaNames are the names of quotas for people.
var quotaNames = map[string]string{"instances": "instances", "cores": "cores", "ram": "memory (MiB)", "floating_ips": "floating IPs", "networks": "networks",
	"ports": "ports", "security_groups": "security groups", quotaVolumes: "volumes", quotaGigabytes: "room for volumes (GiB)"}

// quotaName is what a quota is of, for people. Cinder has quotas of each type of volumes: volumes_TYPE and gigabytes_TYPE.
func quotaName(resource string) string {
	for _, quota := range []string{quotaVolumes, quotaGigabytes} {
		if kind, of := strings.CutPrefix(resource, quota+"_"); of {
			return fmt.Sprintf("%s of type %s", quotaNames[quota], kind)
		}
	}
	return quotaNames[resource]
}

// placement describes a server's place in the cloud, for errors that only report that there is no room.
func (c Content) placement(resource string) string {
	properties, _ := c.resource(resource)["properties"].(map[string]any)
	zone := text(properties["availability_zone"])
	if zone == "" {
		zone = "any"
	}
	return fmt.Sprintf(" (flavor %s, availability zone %s: no host of it has room, or none runs)", text(properties["flavor"]), zone)
}
