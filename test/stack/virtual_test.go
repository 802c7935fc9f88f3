package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// shared is the demonstration whose gateways share an address.
func shared(t *testing.T) map[string]any {
	return withMasters(t, map[string]any{"gatewayCount": 2,
		"virtualAddress": map[string]any{"?": map[string]any{"type": "io.murano.SharedIp", "id": "shared"}, "assignFloatingIp": true}})
}

func TestGatewaysShareAnAddress(t *testing.T) {
	w := newWorld(t)
	w.imageSays = `, "burano_keepalived": "2.2.7"`
	plain := w.push(t, environment(t, demo))
	w.there = plain
	template := w.push(t, shared(t))
	resources := template["resources"].(map[string]any)
	require.Equal(t, "OS::Neutron::Port", resources["shared-virtual"].(map[string]any)["type"])
	require.Equal(t, map[string]any{"get_resource": "shared-virtual"}, propertiesOf(t, template, "shared-floating")["port_id"])
	virtual := map[string]any{"get_attr": []any{"shared-virtual", "fixed_ips", float64(0), "ip_address"}}
	before := plain["resources"].(map[string]any)
	using := 0
	for name, one := range resources {
		properties, _ := one.(map[string]any)["properties"].(map[string]any)
		pairs, _ := properties["allowed_address_pairs"].([]any)
		if len(pairs) == 2 {
			require.Equal(t, []any{map[string]any{"ip_address": "10.244.0.0/16"}, map[string]any{"ip_address": virtual}}, pairs)
			using++
			continue
		}
		if former, there := before[name]; there {
			require.Equal(t, former, one, "nothing else changes: %s", name)
		}
	}
	require.Equal(t, 2, using, "the ports of the gateways")
}

func TestGatewaysThatCannotShareAnAddressAreRefused(t *testing.T) {
	w := newWorld(t)
	w.imageSays = `, "burano_kubernetes": "v1.36.3"`
	require.ErrorContains(t, w.fail(t, shared(t)), "image burano-node of gateway murano-gateway-1 does not say that it has keepalived, which a virtualAddress needs: build a node image")
	w.imageSays = `, "burano_keepalived": "2.2.7"`
	model := shared(t)
	clusterOf(model)["virtualAddress"].(map[string]any)["network"] = map[string]any{
		"?": map[string]any{"type": "io.murano.resources.ExistingNeutronNetwork", "id": "other"}, "internalNetworkName": "net-b"}
	require.ErrorContains(t, w.fail(t, model), "is in another network than its gateways")
}

// Its server is deleted before another one takes its place, and shares the address until then.
func TestAGatewayThatWaitsForItsPlaceSharesTheAddressToo(t *testing.T) {
	w := newWorld(t)
	w.imageSays = `, "burano_keepalived": "2.2.7"`
	w.there = w.push(t, withMasters(t, map[string]any{"gatewayCount": 2}))
	const gateway = "applicationsa-gatewayNodesa-instance"
	before := propertiesOf(t, w.there, gateway+"-server")
	w.attributes[gateway+" "+classNodeServer+" servers"] = map[string]any{"current": 2, "former": 1, "first": true}
	template := w.push(t, shared(t))
	require.Equal(t, before, propertiesOf(t, template, gateway+"-server"))
	require.Len(t, propertiesOf(t, template, gateway+"-port")["allowed_address_pairs"], 2)
}
