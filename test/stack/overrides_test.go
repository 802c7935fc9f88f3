package stack

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/access"
)

// overridden describes an object of a class of the package with overrides.
func overridden(class, id string, properties map[string]any) map[string]any {
	object := ofClass("", id, properties)
	object["?"].(map[string]any)["type"] = "io.burano.test.overrides." + class
	return object
}

// withServers is an environment whose application has servers.
func withServers(application map[string]any, servers ...any) map[string]any {
	model := farm("", nil)
	application["servers"] = servers
	model["applications"] = []any{overridden("Application", "application", application)}
	return model
}

func apart(networks ...any) map[string]any {
	return map[string]any{"useEnvironmentNetwork": false, "useFlatNetwork": false, "customNetworks": networks, "primaryNetwork": nil}
}

// find returns the object with an id.
func find(t *testing.T, root *muranopl.Object, id string) *muranopl.Object {
	t.Helper()
	var found *muranopl.Object
	root.Walk(func(object *muranopl.Object) bool {
		if object.ID() == id {
			found = object
		}
		return found == nil
	})
	require.NotNil(t, found, id)
	return found
}

func TestADeploymentCallsTheMethodsThatPackagesOverride(t *testing.T) {
	network := overridden("Network", "net", map[string]any{"name": "net", "subnetCidr": "10.30.0.0/24"})
	server := map[string]any{"name": "web", "flavor": "m1.small", "assignFloatingIp": true, "securityGroups": []any{"more"},
		"networks":  apart(overridden("Own", "own-network", nil), network),
		"sharedIps": []any{map[string]any{"?": map[string]any{"type": "io.murano.SharedIp", "id": "shared"}, "network": "net"}},
		"volumes":   map[string]any{"/dev/vdb": overridden("Disk", "disk", map[string]any{"size": 3}), "/dev/vdc": overridden("Store", "store", nil)},
		"blockDevices": []any{map[string]any{"volume": overridden("Disk", "root", map[string]any{"size": 10, "sourceImage": "tiny"}), "deviceName": "vda", "deviceType": "disk",
			"bootIndex": 0}},
		"another": overridden("Network", "late", map[string]any{"name": "late", "subnetCidr": "10.31.0.0/24"}),
		"extra":   ofClass("ExistingCinderVolume", "old", map[string]any{"openstackId": "the-volume"})}
	w := newWorld(t)
	template := w.push(t, withServers(map[string]any{}, overridden("Server", "s", server)))
	resources, outputs := template["resources"].(map[string]any), template["outputs"].(map[string]any)
	ref := func(name string) map[string]any { return map[string]any{"get_resource": name} }
	properties := func(name string) map[string]any {
		require.Contains(t, resources, name)
		made, _ := resources[name].(map[string]any)["properties"].(map[string]any)
		return made
	}

	made := properties("s-server")
	require.NotContains(t, resources, "web", "the server's name in the template leads to it")
	require.Equal(t, []any{map[string]any{"port": ref("s-port-late")}, map[string]any{"port": ref("port-web")}, map[string]any{"port": ref("s-port-1")}}, made["networks"])
	require.Equal(t, map[string]any{"kind": "overridden", "tagged": "web"}, made["metadata"])
	require.Equal(t, []any{map[string]any{"volume_id": ref("disk-root"), "device_name": "vda", "device_type": "disk", "boot_index": 0.0, "delete_on_termination": true}},
		made["block_device_mapping_v2"])
	data := made["user_data"].(string)
	require.True(t, access.Marked(data))
	require.Contains(t, data, "#!/bin/sh\necho :5672 false >/root/overridden\n")
	require.Contains(t, data, "#cloud-config\nwrite_files:\n    - content: done\n      path: /root/configured\n")
	require.Equal(t, map[string]any{"type": "OS::Heat::Value", "depends_on": []any{"s-server"}, "properties": map[string]any{
		"value": []any{ref("s-server"), map[string]any{"get_attr": []any{"s-server", "first_address"}}}}}, resources["web-alarm"])

	port := properties("s-port-1")
	require.Equal(t, []any{ref("servers"), "more", "default"}, port["security_groups"])
	require.Equal(t, "normal", port["binding:vnic_type"])
	require.Len(t, port["allowed_address_pairs"], 1)
	require.Contains(t, resources, "net-watch")
	require.Equal(t, ref("s-port-1"), properties("s-floating-1")["port_id"], "detectPrimaryNetwork is the last network")
	require.Equal(t, []any{"uplink-net"}, resources["s-floating-1"].(map[string]any)["depends_on"])
	require.Equal(t, []any{ref("group-admins"), "default"}, properties("s-port-late")["security_groups"])
	require.Equal(t, []any{ref("servers-environment")}, properties("port-web")["security_groups"])
	require.Equal(t, map[string]any{"value": "no"}, outputs["fip-web"])

	require.Equal(t, "overridden", properties("disk-disk")["description"])
	require.Equal(t, map[string]any{"volume_id": ref("disk-disk"), "instance_uuid": ref("s-server"), "mountpoint": "/dev/vdb"}, properties("disk-attachment-s"))
	require.Equal(t, map[string]any{"volume_id": "the-store", "instance_uuid": ref("s-server"), "mountpoint": "/dev/vdc"}, properties("store-web"))
	require.Equal(t, map[string]any{"volume_id": "the-volume", "instance_uuid": ref("s-server"), "mountpoint": "/dev/vdx"}, properties("old-attachment-s"))

	var ports []any
	for _, rule := range properties("servers")["rules"].([]any) {
		ports = append(ports, rule.(map[string]any)["port_range_min"])
	}
	require.Equal(t, []any{8443.0, 22.0}, ports)
	require.Equal(t, []any{"join late with admins", "attach /dev/vdx", "validateBootSource", "rules of servers-environment", "ensureSharedIpsDeployed", "ensureNetworksDeployed",
		"join own-network with servers-environment", "join net with servers-environment", "attach /dev/vdb", "attach /dev/vdc", "template with web"}, find(t, w.model, "s").List("calls"))
	require.Equal(t, 1, find(t, w.model, "own-network").Int("deployed"))
}

// TestWhatOtherPackagesMadeForAServerGoesWithIt: ports and attachments whose names do not begin with the server's id.
func TestWhatOtherPackagesMadeForAServerGoesWithIt(t *testing.T) {
	server := overridden("Server", "s", map[string]any{"name": "web", "flavor": "m1.small", "image": "tiny", "networks": apart(overridden("Own", "own-network", nil)),
		"volumes": map[string]any{"/dev/vdc": overridden("Store", "store", nil)}})
	w := newWorld(t)
	w.there = w.push(t, withServers(map[string]any{}, server))
	require.Contains(t, w.there["resources"], "port-web")
	require.Contains(t, w.there["resources"], "store-web")

	delete(server, "volumes")
	template := w.push(t, withServers(map[string]any{}, server))
	require.Contains(t, template["resources"], "s-server")
	require.Contains(t, template["resources"], "port-web")
	require.NotContains(t, template["resources"], "store-web")
}

func TestAServerMayBeCalledLikeAResourceOfTheStack(t *testing.T) {
	template := newWorld(t).push(t, withServers(map[string]any{}, overridden("Server", "s", map[string]any{"name": "servers", "flavor": "m1.small", "image": "tiny"})))
	resources := template["resources"].(map[string]any)
	require.Equal(t, "OS::Neutron::SecurityGroup", resources["servers"].(map[string]any)["type"])
	require.Equal(t, "servers", resources["s-server"].(map[string]any)["properties"].(map[string]any)["name"])
	require.Equal(t, []any{map[string]any{"get_resource": "servers"}}, resources["s-port"].(map[string]any)["properties"].(map[string]any)["security_groups"])
}

func TestNetworksAreDescribed(t *testing.T) {
	for name, try := range map[string]struct{ network, wanted map[string]any }{
		"one that Burano has made": {
			ofClass("NeutronNetwork", "made", map[string]any{"name": "made", "subnetCidr": "10.30.0.0/24", "openstackId": "net-1"}),
			map[string]any{"provider": "Neutron", "netId": "net-1", "netName": "made", "subnetId": "subnet-1", "cidr": "10.30.0.0/24", "dns": []any{"9.9.9.9"},
				"gateway": "10.30.0.1", "floatingIpNetId": "outside"}},
		"one that was there": {
			ofClass("ExistingNeutronNetwork", "there", map[string]any{"internalNetworkName": "lan", "internalSubnetworkName": "lan-2"}),
			map[string]any{"provider": "Neutron", "netId": "net-2", "netName": "lan", "subnetId": "subnet-3", "cidr": "10.32.0.0/24", "dns": []any{}, "gateway": nil,
				"floatingIpNetId": "outside"}},
		"the first that was there": {
			ofClass("ExistingNeutronNetwork", "there", map[string]any{"externalNetworkName": "public"}),
			map[string]any{"provider": "Neutron", "netId": "net-1", "netName": "made", "subnetId": "subnet-1", "cidr": "10.30.0.0/24", "dns": []any{"9.9.9.9"},
				"gateway": "10.30.0.1", "floatingIpNetId": "outside"}},
		"one of another package": {overridden("Own", "own-network", nil), map[string]any{"provider": "Own", "cidr": "10.9.8.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.networks = `{"id": "outside", "name": "public", "router:external": true}, {"id": "net-1", "name": "made"}, {"id": "net-2", "name": "lan"}`
			w.subnets = `{"id": "subnet-1", "network_id": "net-1", "name": "made-subnet", "ip_version": 4, "cidr": "10.30.0.0/24", "gateway_ip": "10.30.0.1", "dns_nameservers": ["9.9.9.9"]},
				{"id": "subnet-2", "network_id": "net-2", "name": "lan-1", "ip_version": 4, "cidr": "10.31.0.0/24"},
				{"id": "subnet-3", "network_id": "net-2", "name": "lan-2", "ip_version": 4, "cidr": "10.32.0.0/24"}`
			require.NoError(t, w.deploy(t, withServers(map[string]any{"described": try.network})))
			described := find(t, w.model, "application").Map("description")
			for key, value := range try.wanted {
				require.Equal(t, value, described[key], key)
			}
		})
	}
}

// TestPackagesForFormerVersionsWork for one release: methods had other arguments and results here.
func TestPackagesForFormerVersionsWork(t *testing.T) {
	template := newWorld(t).push(t, withServers(map[string]any{}, overridden("Former", "f", map[string]any{"name": "f", "flavor": "m1.small", "image": "tiny",
		"securityGroups": []any{"more"}, "networks": apart(overridden("FormerNetwork", "net", nil))})))
	server := template["resources"].(map[string]any)["f-server"].(map[string]any)["properties"].(map[string]any)
	require.Equal(t, []any{"former"}, server["tags"])
	require.Equal(t, "m1.small", server["flavor"])
	require.True(t, access.MadeOf(server["user_data"].(string), "#!/bin/sh\ntrue\n"))
	require.Equal(t, map[string]any{"network": "former", "security_groups": []any{map[string]any{"get_resource": "servers"}, "more"}},
		template["resources"].(map[string]any)["f-port"].(map[string]any)["properties"])
	rules := template["resources"].(map[string]any)["servers"].(map[string]any)["properties"].(map[string]any)["rules"].([]any)
	require.Len(t, rules, 1)
	require.EqualValues(t, 8080, rules[0].(map[string]any)["port_range_min"])
}
