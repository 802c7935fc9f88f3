package known

import "github.com/burano/burano/orchestrator/openstack"

// SecretTemplate keeps the environment's template: the classes' parts of the environment's stack. It holds user data, and is therefore kept among the
// secrets.
const SecretTemplate = "template of the stack"

// UserDataIn reads the user data of an instance's server, by the instance's id, in a template.
func UserDataIn(template map[string]any, instance string) (data string, there bool) {
	resources, _ := template["resources"].(map[string]any)
	resource, there := resources[openstack.ServerResource(instance)].(map[string]any)
	properties, _ := resource["properties"].(map[string]any)
	data, _ = properties["user_data"].(string)
	return data, there
}

// InRegion names something that the environment has one of in each region.
func InRegion(name, region string) string {
	if region == "" {
		return name
	}
	return name + " in " + region
}
