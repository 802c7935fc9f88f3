package stack

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
)

// dual are ranges of both versions of IP.
var dual = map[string]any{"podRange": "10.244.0.0/16,fd00:10:244::/64", "serviceRange": "10.96.0.0/16,fd00:10:96::/112"}

// six are ranges of IPv6 alone.
var six = map[string]any{"podRange": "fd00:10:244::/64", "serviceRange": "fd00:10:96::/112"}

// inDual is the demonstration with more properties of its cluster, in a network with IPv6.
func inDual(t *testing.T, six any, properties ...map[string]any) map[string]any {
	model := environment(t, demo)
	own := model["defaultNetworks"].(map[string]any)["environment"].(map[string]any)
	own["?"].(map[string]any)["type"], own["ipv6Cidr"], own["mtu"] = "io.murano.resources.CustomNeutronNetwork", six, 1400
	for _, one := range properties {
		maps.Copy(clusterOf(model), one)
	}
	return model
}

func TestADualStackClusterHasASubnetPortsAndRulesOfIPv6(t *testing.T) {
	template := newWorld(t).push(t, inDual(t, "fd00:20::/64", dual))
	resources := template["resources"].(map[string]any)
	require.Equal(t, map[string]any{"name": "environment-network-subnet6", "network": map[string]any{"get_resource": "network"}, "cidr": "fd00:20::/64", "ip_version": float64(6), "enable_dhcp": false},
		resources["subnet6"].(map[string]any)["properties"])
	require.Equal(t, map[string]any{"get_resource": "subnet6"}, resources["uplink6"].(map[string]any)["properties"].(map[string]any)["subnet"])
	port := propertiesOf(t, template, minionID+"-port")
	require.Equal(t, []any{map[string]any{"subnet": map[string]any{"get_resource": "subnet"}}, map[string]any{"subnet": map[string]any{"get_resource": "subnet6"}}}, port["fixed_ips"])
	require.Equal(t, []any{map[string]any{"ip_address": "10.244.0.0/16"}, map[string]any{"ip_address": "fd00:10:244::/64"}}, port["allowed_address_pairs"])
	require.Equal(t, map[string]any{"value": map[string]any{"get_attr": []any{minionID + "-port", "fixed_ips"}}}, template["outputs"].(map[string]any)[minionID+"-addresses"])

	rule := func(from string, ports ...int64) map[string]any {
		made := map[string]any{"direction": "ingress", "ethertype": "IPv6", "remote_ip_prefix": from}
		if len(ports) > 0 {
			made["protocol"], made["port_range_min"], made["port_range_max"] = "tcp", float64(ports[0]), float64(ports[1])
		}
		return made
	}
	rulesOf := func(template map[string]any, role string) (rules []any) {
		for _, one := range propertiesOf(t, template, "cluster-"+role)["rules"].([]any) {
			if one.(map[string]any)["ethertype"] == "IPv6" {
				rules = append(rules, one)
			}
		}
		return rules
	}
	inside := []any{rule("fd00:20::/64"), rule("fd00:10:244::/64")}
	require.Equal(t, inside, rulesOf(template, "minion"))
	require.Equal(t, inside, rulesOf(template, "master"))
	require.Equal(t, append(inside, rule("::/0", 1, 21), rule("::/0", 23, 65535)), rulesOf(template, "gateway"))
	some := newWorld(t).push(t, inDual(t, "fd00:20::/64", dual, map[string]any{"publicCidr": "192.0.2.0/24"}))
	require.Equal(t, inside, rulesOf(some, "gateway"), "who lets in some by IPv4 lets in nobody by IPv6 before he says so")
	some = newWorld(t).push(t, inDual(t, "fd00:20::/64", dual, map[string]any{"publicIpv6Cidr": "2001:db8::/32"}))
	require.Equal(t, append(inside, rule("2001:db8::/32", 1, 21), rule("2001:db8::/32", 23, 65535)), rulesOf(some, "gateway"))

	before := newWorld(t).push(t, inDual(t, nil))
	after := newWorld(t).push(t, inDual(t, "fd00:20::/64"))
	require.Equal(t, propertiesOf(t, before, "cluster-gateway"), propertiesOf(t, after, "cluster-gateway"), "a cluster of IPv4 in a network that has IPv6 stays as it is")
	require.Equal(t, propertiesOf(t, before, minionID+"-port")["allowed_address_pairs"], propertiesOf(t, after, minionID+"-port")["allowed_address_pairs"])
	require.NotContains(t, before["resources"], "subnet6")
	require.NotContains(t, before["outputs"], minionID+"-addresses")
}

func TestPodsAndServicesMayHaveIPv6Alone(t *testing.T) {
	template := newWorld(t).push(t, inDual(t, "fd00:20::/64", six))
	require.Equal(t, []any{map[string]any{"ip_address": "fd00:10:244::/64"}}, propertiesOf(t, template, minionID+"-port")["allowed_address_pairs"])
	require.Len(t, propertiesOf(t, template, minionID+"-port")["fixed_ips"], 2, "nodes have both: what makes the cluster goes by IPv4")
	var from []any
	for _, one := range propertiesOf(t, template, "cluster-minion")["rules"].([]any) {
		from = append(from, one.(map[string]any)["remote_ip_prefix"])
	}
	require.Contains(t, from, "fd00:10:244::/64")
	require.NotContains(t, from, "10.244.0.0/16")
}

func TestRangesOfIPv6ThatCannotBeAreRefused(t *testing.T) {
	for _, one := range []struct {
		six  any
		says map[string]any
		told string
	}{
		{"fd00:20::/64", map[string]any{"podRange": "fd00:10:244::/64,10.244.0.0/16"}, "podRange of cluster demo-cluster is fd00:10:244::/64,10.244.0.0/16: pods and Services have addresses of IPv4, of IPv6, or of both, where a range of IPv6 comes second, as in 10.244.0.0/16,fd00:10:244::/64"},
		{"fd00:20::/64", map[string]any{"podRange": "10.244.0.0/16,10.245.0.0/16"}, "where a range of IPv6 comes second"},
		{"fd00:20::/64", map[string]any{"podRange": "fd00:10:244::/64,fd00:10:245::/64"}, "where a range of IPv6 comes second"},
		{"fd00:20::/64", map[string]any{"podRange": "fd00:10:244::/64"}, "podRange of cluster demo-cluster is fd00:10:244::/64, and serviceRange is 10.96.0.0/16,fd00:10:96::/112: pods and Services have the same versions of IP"},
		{"fd00:20::/64", map[string]any{"podRange": "fd00:10:244::/64", "serviceRange": nil}, "podRange of cluster demo-cluster is fd00:10:244::/64, and serviceRange is 10.96.0.0/16: pods and Services have the same versions of IP"},
		{nil, six, "the pods of cluster demo-cluster are to have addresses of IPv6, and its nodes have none"},
		{"fd00:20::/64", map[string]any{"podRange": "fd00:10:96::/64", "serviceRange": "fd00:10:96::/112"}, "podRange (fd00:10:96::/64) and serviceRange (fd00:10:96::/112) of cluster demo-cluster overlap"},
		{"fd00:20::/64", map[string]any{"serviceRange": nil}, "podRange of cluster demo-cluster is 10.244.0.0/16,fd00:10:244::/64, and serviceRange is 10.96.0.0/16: pods and Services have the same versions of IP; give both a range of IPv6, or none"},
		{nil, nil, "its nodes have none: make the environment's network a io.murano.resources.CustomNeutronNetwork with an ipv6Cidr such as fd00:20::/64"},
		{"fd00:20::/80", nil, "ipv6Cidr of the environment's network is fd00:20::/80: give it a /64"},
		{"fd00:20::/64", map[string]any{"podEncapsulation": "none"}, "podEncapsulation of cluster demo-cluster is none, by which nodes tell each other routes of IPv4 only: set it to crossSubnet"},
		{"fd00:20::/64", map[string]any{"useFlannel": true}, "useFlannel: the pods of cluster demo-cluster are to have addresses of IPv6, which Burano gives with Calico only"},
		{"fd00:20::/64", map[string]any{"serviceRange": "10.96.0.0/16,fd00:10:96::/64"}, "the range of IPv6 in serviceRange of cluster demo-cluster is fd00:10:96::/64: give one of a size from /108 to /120"},
		{"fd00:20::/64", map[string]any{"podRange": "10.244.0.0/16,fd00:10:244::/120"}, "the range of IPv6 in podRange of cluster demo-cluster is fd00:10:244::/120: give one of a size from /48 to /112"},
		{"fd00:20::/64", map[string]any{"podRange": "10.244.0.0/16,fd00:20::/64"}, "which overlaps the network of its nodes (fd00:20::/64)"},
		{"fd00:20::/64", map[string]any{"podRange": "10.244.0.0/16,fe80:1::/64"}, "overlaps link-local addresses (fe80::/10)"},
		{"fd00:20::/64", map[string]any{"publicIpv6Cidr": "10.0.0.0/8"}, `publicIpv6Cidr of cluster demo-cluster is "10.0.0.0/8", which is no network of IPv6`},
		{"fd00:20::/64", map[string]any{"podRange": nil, "serviceRange": nil, "publicIpv6Cidr": "::/0"}, "says who reaches it by IPv6, which it does not have"},
		{"fd00:20::/64", map[string]any{"podMtu": 1331}, "the environment's network carries 1400 bytes, of which VXLAN takes 70: ask for 1330 at most"},
	} {
		w := newWorld(t)
		w.imageSays = `, "burano_calico": "v3.28.5"`
		require.ErrorContains(t, w.fail(t, inDual(t, one.six, dual, one.says)), one.told)
	}
}

func TestAClusterKeepsTheVersionsOfIPThatItWasMadeWith(t *testing.T) {
	w := newWorld(t)
	w.there = w.push(t, inDual(t, "fd00:20::/64"))
	w.attributes["cluster  network"] = "calico"
	told := w.refusals(t, inDual(t, "fd00:20::/64", dual))
	require.Len(t, told, 2)
	require.Equal(t, "podRange cannot be changed: cluster demo-cluster was made with 10.244.0.0/16, and its pods have their addresses from it; set podRange back, or make another cluster for "+
		"10.244.0.0/16,fd00:10:244::/64", told[0])

	w = newWorld(t)
	w.there = w.push(t, inDual(t, "fd00:20::/64", dual))
	w.attributes["cluster  network"] = "calico"
	w.attributes["cluster  podNetwork"] = map[string]any{"pods": "10.244.0.0/16", "services": "10.96.0.0/16", "pods6": "fd00:10:244::/64", "services6": "fd00:10:96::/112",
		"nodes6": "fd00:20::/64", "domain": "cluster.local", "crossSubnet": false}
	require.Empty(t, w.refusals(t, inDual(t, "fd00:20::/64", dual)))
	require.Empty(t, w.refusals(t, inDual(t, "fd00:20::/64")), "who says nothing means what is there")
	require.Contains(t, w.refusals(t, inDual(t, "fd00:20::/64", map[string]any{"podRange": "10.244.0.0/16"}))[0], "podRange")
	require.Contains(t, w.refusals(t, inDual(t, "fd00:20::/64", six))[0], "podRange cannot be changed: cluster demo-cluster was made with 10.244.0.0/16,fd00:10:244::/64")
	require.Equal(t, []string{"the environment's network cannot have other addresses of IPv6: the nodes of cluster demo-cluster have such of fd00:20::/64; set its ipv6Cidr, or ipv6SubnetworkName, back"},
		w.refusals(t, inDual(t, nil, dual)))
	require.ErrorContains(t, w.fail(t, inDual(t, "fd00:20::/64")), "the stack tells no address", "and has nothing to push")

	w = newWorld(t)
	w.there = w.push(t, inDual(t, "fd00:20::/64", six))
	w.attributes["cluster  network"] = "calico"
	w.attributes["cluster  podNetwork"] = map[string]any{"pods6": "fd00:10:244::/64", "services6": "fd00:10:96::/112", "nodes6": "fd00:20::/64", "domain": "cluster.local", "encapsulation": "always"}
	require.Empty(t, w.refusals(t, inDual(t, "fd00:20::/64", six)))
	require.Empty(t, w.refusals(t, inDual(t, "fd00:20::/64")), "who says nothing means what is there")
	require.Contains(t, w.refusals(t, inDual(t, "fd00:20::/64", dual))[0], "podRange cannot be changed: cluster demo-cluster was made with fd00:10:244::/64,")
}
