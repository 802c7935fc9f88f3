package openstack

import (
	"context"
	"maps"
	"slices"

	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stackresources"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
)

// Adoption is a stack that OpenStack Murano has made for an environment, with its names there. Heat knows resources by their names: a resource keeps its
// first name for as long as it is there.
type Adoption struct {
	Stack   string            `json:"stack"`   // Murano's name of it
	Servers map[string]string `json:"servers"` // the names of instances, by the ids of their objects
	Network string            `json:"network"` // the id of the environment's network; "" for none
	Region  string            `json:"region"`  // the id of the region, by which Murano calls the security group of all servers
}

// Adopting returns the project in which the stacks of these names are Murano's, until Burano has made some. All names that the project returns and gets
// are Burano's. A stack of a package in HOT keeps its name and its resources' names.
func (p *Project) Adopting(from map[string]Adoption) *Project {
	adopting := *p
	adopting.adopted = from
	return &adopting
}

// Adopts is true if the stack of this name is, or was, Murano's.
func (p *Project) Adopts(name string) bool { return p.adopted[name].Stack != "" }

// adoptedStacks are Heat's, with one of Murano's under another name.
type adoptedStacks struct {
	Stacks
	name string
	from Adoption
}

// List implements Stacks.
func (a adoptedStacks) List(ctx context.Context, name string) ([]stacks.ListedStack, error) {
	own, err := a.Stacks.List(ctx, name)
	if err != nil || name != a.name || slices.ContainsFunc(own, isOurs) {
		return own, err
	}
	found := own
	if a.from.Stack == name {
		own = nil
	} else {
		found, err = a.Stacks.List(ctx, a.from.Stack)
	}
	for i := range found {
		found[i].Name = name
		found[i].Tags = append(found[i].Tags, OwnTag)
	}
	return append(own, found...), err
}

// real is a stack's name in Heat.
func (a adoptedStacks) real(ctx context.Context, name, id string) (real string, adopted bool, err error) {
	if name != a.name || name == a.from.Stack {
		return name, false, nil
	}
	found, err := a.Stacks.List(ctx, a.from.Stack)
	if err != nil {
		return "", false, err
	}
	if slices.ContainsFunc(found, func(one stacks.ListedStack) bool { return one.ID == id }) {
		return a.from.Stack, true, nil
	}
	return name, false, nil
}

// Get implements Stacks.
func (a adoptedStacks) Get(ctx context.Context, name, id string) (*stacks.RetrievedStack, error) {
	real, _, err := a.real(ctx, name, id)
	if err != nil {
		return nil, err
	}
	stack, err := a.Stacks.Get(ctx, real, id)
	if stack != nil {
		stack.Name = name
	}
	return stack, err
}

// Template implements Stacks.
func (a adoptedStacks) Template(ctx context.Context, name, id string) (map[string]any, error) {
	real, adopted, err := a.real(ctx, name, id)
	if err != nil {
		return nil, err
	}
	template, err := a.Stacks.Template(ctx, real, id)
	if err != nil || !adopted {
		return template, err
	}
	return spelled(renamed(template, turned(a.from.names(template)))), nil
}

// Extensions implements Stacks.
func (a adoptedStacks) Extensions(ctx context.Context, name, id string) (map[string]string, map[string]any, error) {
	real, _, err := a.real(ctx, name, id)
	if err != nil {
		return nil, nil, err
	}
	return a.Stacks.Extensions(ctx, real, id)
}

// Resources implements Stacks.
func (a adoptedStacks) Resources(ctx context.Context, name, id string) ([]stackresources.Resource, error) {
	real, adopted, err := a.real(ctx, name, id)
	if err != nil {
		return nil, err
	}
	list, err := a.Stacks.Resources(ctx, real, id)
	if err != nil || !adopted {
		return list, err
	}
	template, err := a.Stacks.Template(ctx, real, id)
	if err != nil {
		return nil, err
	}
	names := turned(a.from.names(template))
	for i, one := range list {
		if own := names[one.Name]; own != "" {
			list[i].Name = own
		}
	}
	return list, nil
}

// Update implements Stacks. Unchanged values of Murano's resources stay in Murano's spelling.
func (a adoptedStacks) Update(ctx context.Context, name, id string, content Content) error {
	real, adopted, err := a.real(ctx, name, id)
	if err != nil || !adopted {
		if err != nil {
			return err
		}
		return a.Stacks.Update(ctx, real, id, content)
	}
	template, err := a.Stacks.Template(ctx, real, id)
	if err != nil {
		return err
	}
	wanted, err := plain(content.Template)
	if err != nil {
		return err
	}
	names := a.from.names(template)
	content.Template = renamed(wanted, names)
	before, after := definition{template: template}, definition{template: content.Template}
	for _, theirs := range names {
		if after.resource(theirs) == nil {
			continue
		}
		for property, ours := range spellings {
			was, had := before.properties(theirs)[property]
			switch {
			case !had:
			case ours == "": // it has no meaning in Heat
				after.properties(theirs)[property] = was
			case equal(was, after.properties(theirs)[ours]):
				after.properties(theirs)[property] = was
				delete(after.properties(theirs), ours)
			}
		}
	}
	return a.Stacks.Update(ctx, real, id, content)
}

// Delete implements Stacks.
func (a adoptedStacks) Delete(ctx context.Context, name, id string) error {
	real, _, err := a.real(ctx, name, id)
	if err != nil {
		return err
	}
	return a.Stacks.Delete(ctx, real, id)
}

// MarkHealth implements Stacks.
func (a adoptedStacks) MarkHealth(ctx context.Context, name, id, resource, reason string) error {
	real, adopted, err := a.real(ctx, name, id)
	if err != nil {
		return err
	}
	if adopted {
		template, err := a.Stacks.Template(ctx, real, id)
		if err != nil {
			return err
		}
		if theirs := a.from.names(template)[resource]; theirs != "" {
			resource = theirs
		}
	}
	return a.Stacks.MarkHealth(ctx, real, id, resource, reason)
}

// spellings are the names of properties in Murano's templates, with Burano's names; "" are names without a meaning.
var spellings = map[string]string{"router_id": "router", "replacement_policy": ""}

// spelled gives a template's properties the names that Burano has for them.
func spelled(template map[string]any) map[string]any {
	resources, _ := template["resources"].(map[string]any)
	for name := range resources {
		properties := definition{template: template}.properties(name)
		for theirs, ours := range spellings {
			if value, there := properties[theirs]; there {
				delete(properties, theirs)
				if ours != "" {
					properties[ours] = value
				}
			}
		}
	}
	return template
}

// names are Murano's names of the template's resources, by Burano's names.
func (a Adoption) names(template map[string]any) map[string]string {
	names := map[string]string{}
	d := definition{template: template}
	note := func(ours, theirs, kind string) {
		if theirs != "" && d.kind(theirs) == kind && d.resource(ours) == nil {
			names[ours] = theirs
		}
	}
	if a.Network != "" {
		note("network", "network-"+a.Network, "OS::Neutron::Net")
		note("subnet", "subnet-"+a.Network, "OS::Neutron::Subnet")
		note("uplink", "ri-"+a.Network, "OS::Neutron::RouterInterface")
	}
	note("servers", a.Region, "OS::Neutron::SecurityGroup")
	resources, _ := template["resources"].(map[string]any)
	for id, server := range a.Servers {
		note(ServerResource(id), server, serverType)
		if names[ServerResource(id)] == "" {
			continue
		}
		networks, _ := d.properties(server)["networks"].([]any)
		for i, one := range networks {
			network, _ := one.(map[string]any)
			port := pointsTo(network["port"])
			ours := id + "-port"
			if i > 0 {
				ours += "-" + text(i)
			}
			note(ours, port, "OS::Neutron::Port")
			for name := range resources {
				if i == 0 && port != "" && pointsTo(d.properties(name)["port_id"]) == port {
					note(id+"-floating", name, "OS::Neutron::FloatingIP")
				}
			}
		}
	}
	return names
}

// pointsTo is the name of the resource that a property refers to; "" when it does not.
func pointsTo(value any) string {
	function, _ := value.(map[string]any)
	name, _ := function["get_resource"].(string)
	return name
}

func turned(names map[string]string) map[string]string {
	back := make(map[string]string, len(names))
	for a, b := range names {
		back[b] = a
	}
	return back
}

// renamed is a template with other names of resources.
func renamed(template map[string]any, names map[string]string) map[string]any {
	other := func(name any) any {
		if text, ok := name.(string); ok && names[text] != "" {
			return names[text]
		}
		return name
	}
	var within func(value any) any
	within = func(value any) any {
		switch v := value.(type) {
		case map[string]any:
			made := make(map[string]any, len(v))
			for key, item := range v {
				switch path, isPath := item.([]any); {
				case key == "get_resource":
					made[key] = other(item)
				case key == "get_attr" && isPath && len(path) > 0:
					made[key] = append([]any{other(path[0])}, within(path[1:]).([]any)...)
				default:
					made[key] = within(item)
				}
			}
			return made
		case []any:
			made := make([]any, len(v))
			for i, item := range v {
				made[i] = within(item)
			}
			return made
		}
		return value
	}
	made := maps.Clone(template)
	for _, section := range []string{"resources", "outputs"} {
		entries, _ := template[section].(map[string]any)
		if entries == nil {
			continue
		}
		all := make(map[string]any, len(entries))
		for name, entry := range entries {
			entry = within(entry)
			if section == "resources" {
				name = other(name).(string)
				if fields, ok := entry.(map[string]any); ok {
					switch needs := fields["depends_on"].(type) {
					case string:
						fields["depends_on"] = other(needs)
					case []any:
						for i := range needs {
							needs[i] = other(needs[i])
						}
					}
				}
			}
			all[name] = entry
		}
		made[section] = all
	}
	return made
}
