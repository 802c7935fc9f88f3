package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestARouteLetsGatewaysInAndNobodyElse checks the resources that a route adds to the stack, and the routes that it
// refuses to publish.
func TestARouteLetsGatewaysInAndNobodyElse(t *testing.T) {
	w := newWorld(t)
	model := environment(t, demo)
	cluster := clusterOf(model)
	idOf := func(object map[string]any) string { return object["?"].(map[string]any)["id"].(string) }
	server := func(id string, group any) map[string]any {
		return map[string]any{"?": map[string]any{"type": "io.murano.resources.LinuxMuranoInstance", "id": id}, "name": id, "flavor": "m1.small", "image": "burano-node", "securityGroupName": group}
	}
	route := func(id string, more map[string]any) map[string]any {
		made := map[string]any{"?": map[string]any{"type": "io.burano.Route", "id": id}, "name": id, "kubernetesCluster": idOf(cluster), "port": 8080}
		for name, value := range more {
			made[name] = value
		}
		return made
	}
	elsewhere := server("elsewhere", nil)
	elsewhere["regionName"] = "RegionTwo"
	minion := cluster["minionNodes"].([]any)[0].(map[string]any)["instance"].(map[string]any)
	model["applications"] = append(model["applications"].([]any),
		map[string]any{"?": map[string]any{"type": "io.burano.test.Farm", "id": "farm"}, "servers": []any{server("one", nil), server("two", "own"), server("three", nil)}},
		route("route", map[string]any{"application": "farm", "servers": []any{"one"}}), route("nothing", nil),
		route("far", map[string]any{"servers": []any{elsewhere}}), route("node", map[string]any{"servers": []any{idOf(minion)}}))
	interpreter, _ := w.load(t, model)
	backends := func(route string) (servers []any, err error) {
		found, err := interpreter.Invoke(t.Context(), interpreter.Object(route), "backends", nil)
		servers, _ = found.([]any)
		return servers, err
	}
	for route, wanted := range map[string]string{"nothing": "has nothing to publish: name an application that has servers of its own, or servers",
		"far": "is in region RegionTwo: gateways publish servers of their own region only", "node": "is a node of a cluster"} {
		_, err := backends(route)
		require.ErrorContains(t, err, wanted)
	}
	servers, err := backends("route")
	require.NoError(t, err)
	require.Len(t, servers, 3, "each once")
	_, err = interpreter.Invoke(t.Context(), interpreter.Object("route"), "admit", map[string]any{"servers": servers})
	require.ErrorContains(t, err, errRecorded)
	resources := w.asked[len(w.asked)-1]["template"].(map[string]any)["resources"].(map[string]any)
	for _, group := range []string{"servers", "group-own"} {
		require.Equal(t, map[string]any{"type": "OS::Neutron::SecurityGroupRule", "properties": map[string]any{
			"security_group": map[string]any{"get_resource": group}, "remote_group": map[string]any{"get_resource": idOf(cluster) + "-gateway"},
			"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp", "port_range_min": 8080.0, "port_range_max": 8080.0}}, resources["route-"+group])
	}
}
