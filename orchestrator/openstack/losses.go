package openstack

import (
	"regexp"
	"strings"
)

// Kept is a server or a volume of an environment's stack after the last deployment.
type Kept struct {
	Resource string // its name in the template: the id of its object, "-", and more
	Kind     string // server or volume
	Wanted   bool   // false: the next deployment's template no longer has it, so that Heat deletes it
}

// IsOf is true if a resource belongs to the object with this id. Its name is the id, "-" and more; a later server of a node has "_" and a number before
// the "-".
func IsOf(resource, id string) bool {
	rest, ok := strings.CutPrefix(resource, id)
	return ok && laterServer.MatchString(rest)
}

var laterServer = regexp.MustCompile(`^(_[0-9]+)?-`)

// kinds are the types of resources whose data cannot be made again.
var kinds = map[string]string{serverType: "server", volumeType: "volume"}

// Keeping lists the servers and volumes of a template, all of them wanted, in no order.
func Keeping(template map[string]any) []Kept {
	resources, _ := template["resources"].(map[string]any)
	var all []Kept
	for name, resource := range resources {
		described, _ := resource.(map[string]any)
		kind, _ := described["type"].(string)
		if kinds[kind] != "" {
			all = append(all, Kept{Resource: name, Kind: kinds[kind], Wanted: true})
		}
	}
	return all
}
