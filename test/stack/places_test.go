package stack

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/native"
)

const classNodeServer = "io.murano.resources.LinuxMuranoInstance"

// networks is a world with two networks beside the environment's own one; a router has interfaces in the latter and in
// net-b.
func networks(t *testing.T) *world {
	w := newWorld(t)
	w.networks += `, {"id": "b", "name": "net-b"}, {"id": "c", "name": "net-c"}`
	w.subnets = `{"id": "sb", "name": "sub-b", "network_id": "b", "cidr": "10.9.0.0/24", "ip_version": 4}`
	w.ports = routerPort("own-id", "r") + ", " + routerPort("b", "r")
	return w
}

func routerPort(network, router string) string {
	return `{"id": "` + network + router + `", "network_id": "` + network + `", "device_owner": "network:router_interface", "device_id": "` + router + `"}`
}

// placed is the demonstration whose first minion names an existing network, "" for none.
func placed(t *testing.T, network string) map[string]any {
	model := environment(t, demo)
	model["defaultNetworks"].(map[string]any)["environment"].(map[string]any)["openstackId"] = "own-id"
	if network != "" {
		minion := clusterOf(model)["minionNodes"].([]any)[0].(map[string]any)["instance"].(map[string]any)
		minion["networks"] = map[string]any{"useEnvironmentNetwork": false, "useFlatNetwork": false, "primaryNetwork": nil, "customNetworks": []any{map[string]any{
			"?": map[string]any{"type": "io.murano.resources.ExistingNeutronNetwork", "id": "other"}, "internalNetworkName": network}}}
	}
	return model
}

// rehearsed returns the consequences of a deployment.
func (w *world) rehearsed(t *testing.T, model map[string]any) []string {
	t.Helper()
	natives, rehearse := native.Rehearsal(w, w.config)
	interpreter := muranopl.NewInterpreter(muranopl.NewClasses(source(t)), natives)
	root, start, problems := interpreter.Prepare(t.Context(), model)
	require.Empty(t, problems)
	require.NoError(t, start(t.Context()))
	foreseen, err := rehearse(t.Context(), interpreter, root)
	require.NoError(t, err)
	return foreseen.Effects
}

// unchanged deploys a model that needs no request to Heat.
func (w *world) unchanged(t *testing.T, model map[string]any) {
	t.Helper()
	require.ErrorContains(t, w.deploy(t, model), "tells no address", "this Heat tells nothing of servers")
	require.Empty(t, w.asked)
}

// propertiesOf are the properties of a resource of a template.
func propertiesOf(t *testing.T, template map[string]any, name string) map[string]any {
	t.Helper()
	resources, _ := template["resources"].(map[string]any)
	require.Contains(t, resources, name)
	properties, _ := resources[name].(map[string]any)["properties"].(map[string]any)
	return properties
}

const minionID = "applicationsa-minionNodesa-instance"

func TestANodeStandsInTheNetworkThatItNames(t *testing.T) {
	before := networks(t).push(t, placed(t, ""))
	template := networks(t).push(t, placed(t, "net-b"))
	require.Equal(t, "net-b", propertiesOf(t, template, minionID+"-port")["network"])
	require.Equal(t, map[string]any{"get_resource": "network"}, propertiesOf(t, before, minionID+"-port")["network"])
	for _, role := range []string{"master", "minion", "gateway"} {
		require.Equal(t, propertiesOf(t, before, "cluster-"+role), propertiesOf(t, template, "cluster-"+role), "what is in a group stays")
		require.Equal(t, map[string]any{"security_group": map[string]any{"get_resource": "cluster-" + role}, "direction": "ingress", "ethertype": "IPv4",
			"remote_ip_prefix": "10.9.0.0/24"}, propertiesOf(t, template, "cluster-"+role+"-from-10.9.0.0-24"))
	}
	require.Len(t, resourcesOf(template, "OS::Neutron::SecurityGroupRule"), 3)
	require.Empty(t, resourcesOf(before, "OS::Neutron::SecurityGroupRule"))
}

func TestAnotherNetworkOfANodeReplacesIt(t *testing.T) {
	w := networks(t)
	w.there = w.push(t, placed(t, ""))
	require.Empty(t, w.rehearsed(t, placed(t, "")))
	require.Equal(t, []string{"cluster demo-cluster: 1 node is replaced (a new one joins before the former one goes): murano-kube-2, then in net-b"},
		w.rehearsed(t, placed(t, "net-b")))
	w.unchanged(t, placed(t, "net-b"))
	w.unchanged(t, placed(t, "")) // which takes it back

	replacing := map[string]any{"current": 2, "former": 1, "formerName": "murano-kube-2", "task": "task"}
	w.attributes[minionID+" "+classNodeServer+" servers"] = replacing
	made := w.push(t, placed(t, "net-b"))
	former := w.there["resources"].(map[string]any)
	now := made["resources"].(map[string]any)
	for name := range former {
		require.Equal(t, former[name], now[name], name+" stays while the new server is made")
	}
	require.Equal(t, "net-b", propertiesOf(t, made, minionID+"_2-port")["network"])
	require.Len(t, resourcesOf(made, "OS::Neutron::SecurityGroupRule"), 3)

	// An abandoned successor is deleted, with the rules for its network.
	w.there = made
	w.attributes[minionID+" "+classNodeServer+" servers"] = map[string]any{"current": 1}
	require.Equal(t, former, w.push(t, placed(t, "net-b"))["resources"])
}

// Former versions ignored the networks of nodes.
func TestNetworksThatWereIgnoredReplaceNoNodeUntilTheyChange(t *testing.T) {
	w := networks(t)
	w.there = w.push(t, placed(t, ""))
	for key := range w.attributes {
		if strings.HasSuffix(key, " places") {
			delete(w.attributes, key)
		}
	}
	ignored := placed(t, "net-b")
	require.Empty(t, w.rehearsed(t, ignored))
	w.unchanged(t, ignored)
	require.Empty(t, w.rehearsed(t, ignored), "nor later")
	w.unchanged(t, ignored)
	require.Equal(t, []string{"cluster demo-cluster: 1 node is replaced (a new one joins before the former one goes): murano-kube-2, then in b"},
		w.rehearsed(t, placed(t, "b")))
	require.Empty(t, w.rehearsed(t, placed(t, "")), "it is in this one already")
}

func TestNetworksThatCannotBeThoseOfOneClusterAreRefused(t *testing.T) {
	w := networks(t)
	w.there = w.push(t, placed(t, ""))
	require.ErrorContains(t, w.fail(t, placed(t, "nowhere")), `the network of murano-kube-2: the project sees no network with the name or id "nowhere"`)
	w.ports = routerPort("own-id", "r") + ", " + routerPort("b", "another")
	require.ErrorContains(t, w.fail(t, placed(t, "net-b")), "no router stands in both")
	w.ports = routerPort("own-id", "r") + ", " + routerPort("b", "r")
	w.subnets = `{"id": "sb", "network_id": "b", "cidr": "10.20.0.0/16", "ip_version": 4}`
	require.ErrorContains(t, w.fail(t, placed(t, "net-b")), "their addresses overlap")
	w.subnets = `{"id": "sb", "network_id": "b", "cidr": "10.244.7.0/24", "ip_version": 4}`
	require.ErrorContains(t, w.fail(t, placed(t, "net-b")), "its pods and Services have addresses of 10.244.0.0/16")

	model := placed(t, "net-b")
	minion := clusterOf(model)["minionNodes"].([]any)[0].(map[string]any)["instance"].(map[string]any)
	minion["networks"].(map[string]any)["customNetworks"].([]any)[0] = map[string]any{
		"?": map[string]any{"type": "io.murano.resources.NeutronNetwork", "id": "other"}, "name": "mine", "subnetCidr": "10.77.0.0/24"}
	require.ErrorContains(t, w.fail(t, model), "a node stands in the environment's network, or in one that is there already")
}

func TestAReplacementThatWasOrderedByAnEditIsForgottenWithIt(t *testing.T) {
	w := networks(t)
	w.there = w.push(t, placed(t, ""))
	order := func(edit bool) {
		w.attributes[minionID+" "+classNodeServer+" servers"] = map[string]any{"current": 2, "former": 1, "formerName": "murano-kube-2", "task": "earlier", "edit": edit}
	}
	replaced := "cluster demo-cluster: 1 node is replaced (a new one joins before the former one goes): "
	order(true)
	require.Equal(t, []string{replaced + "murano-kube-2, then in net-b"}, w.rehearsed(t, placed(t, "net-b")), "the model still has it otherwise")
	require.Empty(t, w.rehearsed(t, placed(t, "")), "the edit was undone")
	w.unchanged(t, placed(t, ""))
	kept := w.attributes[minionID+" "+classNodeServer+" servers"].(map[string]any)
	require.EqualValues(t, 1, kept["current"])

	order(false)
	require.Equal(t, []string{replaced + "murano-kube-2-r2"}, w.rehearsed(t, placed(t, "")), "another server was asked for, and not by the model")
}
