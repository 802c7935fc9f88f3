package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/access"
	"github.com/burano/burano/orchestrator/native"
)

// serversOf are the servers of a farm, by their ids.
func serversOf(model map[string]any) map[string]map[string]any {
	made := map[string]map[string]any{}
	for _, one := range model["applications"].([]any)[0].(map[string]any)["servers"].([]any) {
		server := one.(map[string]any)
		made[server["name"].(string)] = server
	}
	return made
}

func TestServersShareAddresses(t *testing.T) {
	model := farm("", map[string]string{"a": linux, "b": linux})
	servers := serversOf(model)
	servers["a"]["sharedIps"] = []any{
		map[string]any{"?": map[string]any{"type": "io.murano.SharedIp", "id": "shared"}, "assignFloatingIp": true},
		map[string]any{"?": map[string]any{"type": "io.murano.SharedIpRange", "id": "range"}, "cidr": "10.20.0.240/28"},
	}
	servers["b"]["sharedIps"] = []any{"shared"}
	template := newWorld(t).push(t, model)
	resources := template["resources"].(map[string]any)
	require.Equal(t, map[string]any{"type": "OS::Neutron::Port", "properties": map[string]any{"name": "shared-shared",
		"network": map[string]any{"get_resource": "network"}, "fixed_ips": []any{map[string]any{"subnet": map[string]any{"get_resource": "subnet"}}}}},
		resources["shared-virtual"])
	require.Equal(t, map[string]any{"type": "OS::Neutron::FloatingIP", "depends_on": []any{"uplink"}, "properties": map[string]any{"floating_network": "outside",
		"port_id": map[string]any{"get_resource": "shared-virtual"}}}, resources["shared-floating"])
	virtual := map[string]any{"get_attr": []any{"shared-virtual", "fixed_ips", float64(0), "ip_address"}}
	pairs := func(port string) any {
		return resources[port].(map[string]any)["properties"].(map[string]any)["allowed_address_pairs"]
	}
	require.Equal(t, []any{map[string]any{"ip_address": virtual}, map[string]any{"ip_address": "10.20.0.240/28"}}, pairs("a-port"))
	require.Equal(t, []any{map[string]any{"ip_address": virtual}}, pairs("b-port"))
	require.Equal(t, map[string]any{"value": virtual}, template["outputs"].(map[string]any)["shared-virtual"])
}

func TestMetadataOfObjectsReachesTheirServers(t *testing.T) {
	model := farm("", map[string]string{"a": linux, "b": linux})
	said := func(object map[string]any, attributes map[string]any) {
		object["?"].(map[string]any)["metadata"] = attributes
	}
	said(model, map[string]any{"stage": "production", "owner": "nobody"})
	said(model["applications"].([]any)[0].(map[string]any), map[string]any{"owner": "shop", "tier": 2, "open": true, "nothing": nil})
	said(serversOf(model)["a"], map[string]any{"stage": "test"})
	for _, server := range serversOf(model) {
		server["checkApplicability"] = false
	}
	found := map[string]any{}
	for _, server := range resourcesOf(newWorld(t).push(t, model), "OS::Nova::Server") {
		found[server["name"].(string)] = server["metadata"]
	}
	require.Equal(t, map[string]any{
		"a": map[string]any{"stage": "test", "owner": "shop", "tier": "2", "open": "true"},
		"b": map[string]any{"stage": "production", "owner": "shop", "tier": "2", "open": "true"},
	}, found)
}

func TestWhatBuranoDoesNotDoIsRefusedWithItsReason(t *testing.T) {
	model := farm("", map[string]string{"a": linux})
	serversOf(model)["a"]["networks"] = map[string]any{"useEnvironmentNetwork": false, "useFlatNetwork": false, "primaryNetwork": nil,
		"customNetworks": []any{map[string]any{"?": map[string]any{"type": "io.murano.resources.NovaNetwork", "id": "nova"}}}}
	require.ErrorContains(t, newWorld(t).fail(t, model), "OpenStack has had no nova-network since its release Rocky: put an ExistingNeutronNetwork")

	made := userData(newWorld(t).push(t, farm("", map[string]string{"a": "io.murano.resources.HeatSWConfigLinuxInstance", "b": "io.murano.resources.ConfLangInstance",
		"c": "io.murano.resources.LinuxUDInstance"})))
	for name, data := range made {
		require.True(t, access.Marked(data), name)
	}
}

func TestCodeIsToldOnWhoseBehalfItWorks(t *testing.T) {
	w := newWorld(t)
	classes := muranopl.NewClasses(source(t))
	interpreter := muranopl.NewInterpreter(classes, native.Methods(w, w.config))
	told := func(class, method string) (map[string]any, error) {
		found, err := classes.Class(t.Context(), class, "")
		require.NoError(t, err)
		made, err := interpreter.InvokeStatic(t.Context(), found, method, nil)
		if err != nil {
			return nil, err
		}
		object := made.(*muranopl.Object)
		return map[string]any{"name": object.Text("name"), "domain": object.Text("domain"), "has an id": object.Text("id") != ""}, nil
	}
	demo := map[string]any{"name": "demo", "domain": "Default", "has an id": true}
	for class, methods := range map[string][]string{"io.murano.User": {"getCurrent"}, "io.murano.Project": {"getCurrent", "getEnvironmentOwner"}} {
		for _, method := range methods {
			found, err := told(class, method)
			require.NoError(t, err)
			require.Equal(t, demo, found, class+"."+method)
		}
	}
	_, err := told("io.murano.User", "getEnvironmentOwner")
	require.ErrorContains(t, err, "Burano keeps environments for projects and not for users")
}
