package stacks

import (
	"encoding/json"
	"maps"
	"math"
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

// isGroup is true if a resource is a security group of servers, by the names of io.murano.system.NeutronSecurityGroupManager.
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

// whole makes integers of whole numbers in JSON, as code has them.
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
	case json.Number: // of the cloud's lists
		if number, err := v.Int64(); err == nil {
			return number
		}
		number, _ := v.Float64()
		return number
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return value
}

// versioned copies a template, and adds the version of Burano's own if it has none.
func versioned(template map[string]any) map[string]any {
	made := map[string]any{keyVersion: oldestVersion}
	maps.Copy(made, template)
	return made
}
