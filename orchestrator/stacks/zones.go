package stacks

import (
	"context"
	"maps"
	"slices"

	"github.com/burano/burano/orchestrator/openstack"
)

// withoutAnyZone removes the zone that means any zone from the servers of a template if the cloud has no zone of that name.
func (s *OwnStack) withoutAnyZone(ctx context.Context, template map[string]any) (map[string]any, error) {
	resources, _ := template["resources"].(map[string]any)
	var placed []string
	for name := range resources {
		resource, _ := resources[name].(map[string]any)
		if properties, _ := resource["properties"].(map[string]any); resource["type"] == "OS::Nova::Server" && properties["availability_zone"] == openstack.AnyZone {
			placed = append(placed, name)
		}
	}
	if len(placed) == 0 {
		return template, nil
	}
	if s.zones == nil {
		project, err := s.project(ctx)
		if err != nil {
			return nil, err
		}
		if s.zones, err = project.Zones(ctx); err != nil {
			return nil, err
		}
	}
	if len(s.zones) == 0 || slices.Contains(s.zones, openstack.AnyZone) {
		return template, nil
	}
	template, resources = maps.Clone(template), maps.Clone(resources)
	template["resources"] = resources
	for _, name := range placed {
		resource := maps.Clone(resources[name].(map[string]any))
		properties := maps.Clone(resource["properties"].(map[string]any))
		delete(properties, "availability_zone")
		resource["properties"], resources[name] = properties, resource
	}
	return template, nil
}
