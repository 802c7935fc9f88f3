package native

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
)

const (
	keyVersion = "heat_template_version"
	// oldestVersion is the oldest version of Heat's language with all that is used here ("conditions", Newton).
	oldestVersion = "2016-10-14"
	// ownNetwork is the resource of the environment's own network.
	ownNetwork = "network"
)

// networkResources are the resources of the environment's own network, as io.murano.resources.NeutronNetwork calls them.
var networkResources = []string{ownNetwork, "subnet", "router", "uplink"}

// isGroup tells whether a resource is a security group of servers, as io.murano.system.NeutronSecurityGroupManager calls them.
func isGroup(resource string) bool {
	return resource == "servers" || strings.HasPrefix(resource, "group-")
}

// withoutIdleGroups leaves the security groups of servers out of a template that none of its servers is in.
func withoutIdleGroups(template map[string]any) map[string]any {
	used := map[string]bool{}
	var look func(value any)
	look = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if name, ok := v["get_resource"].(string); ok {
				used[name] = true
			}
			for _, item := range v {
				look(item)
			}
		case []any:
			for _, item := range v {
				look(item)
			}
		}
	}
	look(template)
	resources, _ := template["resources"].(map[string]any)
	kept := maps.Clone(resources)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return isGroup(name) && !used[name] })
	made := maps.Clone(template)
	made["resources"] = kept
	return made
}

// replaced is the template without the resources and outputs whose names begin with the prefix, merged with another one.
func replaced(template map[string]any, prefix string, with map[string]any) map[string]any {
	without := maps.Clone(template)
	for _, section := range []string{"resources", "outputs"} {
		entries, ok := without[section].(map[string]any)
		if !ok {
			continue
		}
		entries = maps.Clone(entries)
		maps.DeleteFunc(entries, func(name string, _ any) bool { return strings.HasPrefix(name, prefix) })
		without[section] = entries
	}
	return mergeTemplates(without, with)
}

// whole makes whole numbers of those that JSON gives, as code has them.
func whole(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = whole(v[key])
		}
	case []any:
		for n := range v {
			v[n] = whole(v[n])
		}
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return value
}

// versioned copies a template, and gives it the version that Burano's own have when it says none.
func versioned(template map[string]any) map[string]any {
	made := map[string]any{keyVersion: oldestVersion}
	maps.Copy(made, template)
	return made
}

// mergeTemplates merges the second into the first; of two versions of the language the newer one counts. Nothing given is changed.
func mergeTemplates(one, other map[string]any) map[string]any {
	made, _ := mergeValues(one, other).(map[string]any)
	if a, _ := one[keyVersion].(string); a != "" {
		if b, _ := other[keyVersion].(string); b != "" {
			made[keyVersion] = max(a, b) // dates, and after them names
		}
	}
	return made
}

func mergeValues(one, other any) any {
	switch a := one.(type) {
	case map[string]any:
		if b, ok := other.(map[string]any); ok {
			made := maps.Clone(a)
			if made == nil {
				made = map[string]any{}
			}
			for key, value := range b {
				if before, there := made[key]; there {
					value = mergeValues(before, value)
				}
				made[key] = value
			}
			return made
		}
	case []any:
		if b, ok := other.([]any); ok {
			made := slices.Clone(a)
			for _, item := range b {
				if !slices.ContainsFunc(made, func(there any) bool { return reflect.DeepEqual(there, item) }) {
					made = append(made, item)
				}
			}
			return made
		}
	}
	return other
}
