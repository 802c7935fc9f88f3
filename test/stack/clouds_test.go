package stack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const demo = "../environments/demo.yaml"

// resourcesOf are the resources of a type in a template, each with its properties.
func resourcesOf(template map[string]any, kind string) (found []map[string]any) {
	resources, _ := template["resources"].(map[string]any)
	for _, one := range resources {
		if one := one.(map[string]any); one["type"] == kind {
			properties, _ := one["properties"].(map[string]any)
			found = append(found, properties)
		}
	}
	return found
}

// external are the external networks that a template names.
func external(template map[string]any) map[string]bool {
	named := map[string]bool{}
	for _, floating := range resourcesOf(template, "OS::Neutron::FloatingIP") {
		named[floating["floating_network"].(string)] = true
	}
	for _, router := range resourcesOf(template, "OS::Neutron::Router") {
		named[router["external_gateway_info"].(map[string]any)["network"].(string)] = true
	}
	return named
}

func TestTheExternalNetworkIsChosenOnce(t *testing.T) {
	const public, other = `{"id": "outside", "name": "public"}`, `{"id": "else", "name": "other"}`
	w := newWorld(t)
	w.networks = public + "," + other
	require.Equal(t, map[string]bool{"outside": true}, external(w.push(t, environment(t, demo))))
	w.networks = other + "," + public
	require.Equal(t, map[string]bool{"outside": true}, external(w.push(t, environment(t, demo))), "Neutron lists another one first")

	// A former version recorded only the template.
	for key := range w.attributes {
		if strings.Contains(key, "externalNetwork") {
			delete(w.attributes, key)
		}
	}
	require.Equal(t, map[string]bool{"outside": true}, external(w.push(t, environment(t, demo))))

	w = newWorld(t)
	w.networks, w.config.ExternalNetwork = public+","+other, "other"
	require.Equal(t, map[string]bool{"else": true}, external(w.push(t, environment(t, demo))), "the operator names one")

	named := func(ref string) map[string]any {
		model := environment(t, demo)
		for _, one := range model["applications"].([]any) {
			if one := one.(map[string]any); one["masterNode"] != nil {
				one["externalNetwork"] = ref
			}
		}
		return model
	}
	w = newWorld(t)
	w.networks = public + "," + other
	require.Equal(t, map[string]bool{"else": true}, external(w.push(t, named("other"))), "the cluster names one")
	require.Equal(t, map[string]bool{"else": true}, external(w.push(t, named("else"))), "by its id")
	require.ErrorContains(t, w.fail(t, named("public")), "cannot get them from public (outside)")
	require.ErrorContains(t, newWorld(t).fail(t, named("nowhere")), `no external network with the name or id "nowhere": there are public`)

	model := environment(t, demo)
	customNetwork(model)["externalNetworkName"] = "other"
	w = newWorld(t)
	w.networks = public + "," + other
	require.Equal(t, map[string]bool{"else": true}, external(w.push(t, model)), "the network's model names one")
}

// customNetwork makes the environment's network one with more properties than a NeutronNetwork.
func customNetwork(model map[string]any) map[string]any {
	network := model["defaultNetworks"].(map[string]any)["environment"].(map[string]any)
	network["?"].(map[string]any)["type"] = "io.murano.resources.CustomNeutronNetwork"
	return network
}

func TestAClusterStandsInANetworkThatIsThereWithoutFloatingIPs(t *testing.T) {
	model := environment(t, demo)
	model["defaultNetworks"] = map[string]any{"flat": nil, "environment": map[string]any{
		"?": map[string]any{"type": "io.murano.resources.ExistingNeutronNetwork", "id": "own"}, "internalNetworkName": "provider"}}
	var inland func(value any)
	inland = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if v["assignFloatingIp"] != nil {
				v["assignFloatingIp"] = false
			}
			for _, item := range v {
				inland(item)
			}
		case []any:
			for _, item := range v {
				inland(item)
			}
		}
	}
	inland(model)
	w := newWorld(t)
	w.networks = `{"id": "p", "name": "provider"}`
	w.subnets = `{"id": "s", "name": "addresses", "network_id": "p", "cidr": "192.0.2.0/24", "ip_version": 4}`
	template := w.push(t, model)
	require.Empty(t, external(template))
	require.Empty(t, resourcesOf(template, "OS::Neutron::Net"))
	ports := resourcesOf(template, "OS::Neutron::Port")
	require.NotEmpty(t, ports)
	for _, port := range ports {
		require.Equal(t, "provider", port["network"])
	}
	for _, group := range resourcesOf(template, "OS::Neutron::SecurityGroup") {
		require.Equal(t, "192.0.2.0/24", group["rules"].([]any)[0].(map[string]any)["remote_ip_prefix"])
	}
}

func TestNovaMeansAnyZoneWhereTheCloudHasNoneOfThatName(t *testing.T) {
	w := newWorld(t)
	for _, server := range resourcesOf(w.push(t, environment(t, demo)), "OS::Nova::Server") {
		require.Equal(t, "nova", server["availability_zone"])
	}
	w = newWorld(t)
	w.zones = zonesNamed("az1")
	servers := resourcesOf(w.push(t, environment(t, demo)), "OS::Nova::Server")
	require.NotEmpty(t, servers)
	for _, server := range servers {
		require.NotContains(t, server, "availability_zone")
	}
}

func TestTheOperatorSaysFromWhereSSHIsLetInAndWhatNetworksAskForNames(t *testing.T) {
	w := newWorld(t)
	w.config.SSHFrom, w.config.DNSServers = []string{"192.0.2.0/28", "198.51.100.7/32"}, []string{"192.0.2.53"}
	template := w.push(t, environment(t, demo))
	require.Equal(t, []any{"192.0.2.53"}, resourcesOf(template, "OS::Neutron::Subnet")[0]["dns_nameservers"])
	for _, group := range resourcesOf(template, "OS::Neutron::SecurityGroup") {
		from := map[any]bool{}
		for _, rule := range group["rules"].([]any) {
			rule := rule.(map[string]any)
			if first, ok := rule["port_range_min"].(float64); ok && first <= 22 && rule["port_range_max"].(float64) >= 22 {
				from[rule["remote_ip_prefix"]] = true
			}
		}
		require.Equal(t, map[any]bool{"192.0.2.0/28": true, "198.51.100.7/32": true}, from, group["name"])
	}
	model := environment(t, demo)
	network := customNetwork(model)
	network["mtu"], network["dnsNameservers"] = 1400, []any{"192.0.2.54"}
	template = newWorld(t).push(t, model)
	require.Equal(t, map[string]any{"mtu": 1400.0}, resourcesOf(template, "OS::Neutron::Net")[0]["value_specs"])
	require.Equal(t, []any{"192.0.2.54"}, resourcesOf(template, "OS::Neutron::Subnet")[0]["dns_nameservers"])
}
