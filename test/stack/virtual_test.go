package stack

import (
	"strings"
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

func TestMastersShareAnAddress(t *testing.T) {
	w := newWorld(t)
	w.imageSays = `, "burano_keepalived": "2.2.7"`
	two := map[string]any{"masterCount": 2}
	sharing := map[string]any{"masterCount": 2, "apiAddress": map[string]any{"?": map[string]any{"type": "io.murano.SharedIp", "id": "ofmasters"}, "assignFloatingIp": true}}
	plain := w.push(t, withMasters(t, two))
	w.there = plain
	template := w.push(t, withMasters(t, sharing))
	virtual := map[string]any{"get_attr": []any{"ofmasters-virtual", "fixed_ips", float64(0), "ip_address"}}
	require.Equal(t, map[string]any{"get_resource": "ofmasters-virtual"}, propertiesOf(t, template, "ofmasters-floating")["port_id"])
	masters := map[string]bool{}
	for resource, name := range serverNames(template) {
		if name == "murano-kube-1" || name == "murano-kube-1-m2" {
			masters[strings.TrimSuffix(resource, "server")+"port"] = true
		}
	}
	require.Len(t, masters, 2)
	for name, former := range plain["resources"].(map[string]any) {
		if !masters[name] {
			require.Equal(t, former, template["resources"].(map[string]any)[name], "nothing else changes: %s", name)
			continue
		}
		require.Equal(t, []any{map[string]any{"ip_address": "10.244.0.0/16"}, map[string]any{"ip_address": virtual}}, propertiesOf(t, template, name)["allowed_address_pairs"])
	}
	w.there = template
	w.unchanged(t, withMasters(t, sharing))
}

func TestMastersThatCannotShareAnAddressAreRefused(t *testing.T) {
	address := map[string]any{"?": map[string]any{"type": "io.murano.SharedIp", "id": "shared"}}
	w := newWorld(t)
	w.imageSays = `, "burano_kubernetes": "v1.36.3"`
	require.ErrorContains(t, w.fail(t, withMasters(t, map[string]any{"apiAddress": address})), "image burano-node of master murano-kube-1 does not say that it has keepalived, which an apiAddress needs: build a node image")
	w.imageSays = `, "burano_keepalived": "2.2.7"`
	require.ErrorContains(t, w.fail(t, withMasters(t, map[string]any{"apiAddress": address, "virtualAddress": "shared"})), "apiAddress and virtualAddress of cluster demo-cluster are the same address")
}
