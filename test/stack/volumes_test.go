package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ofClass describes an object of a model.
func ofClass(class, id string, properties map[string]any) map[string]any {
	object := map[string]any{"?": map[string]any{"type": "io.murano.resources." + class, "id": id}}
	for name, value := range properties {
		object[name] = value
	}
	return object
}

// twoServers is an environment with two servers that are no nodes, and the two servers.
func twoServers(t *testing.T) (model, plain, apart map[string]any) {
	model = environment(t, "testdata/mixed.yaml")
	applications := model["applications"].([]any)
	servers := applications[len(applications)-1].(map[string]any)["servers"].([]any)
	return model, servers[0].(map[string]any), servers[1].(map[string]any)
}

func TestServersHaveTheVolumesOfTheirModel(t *testing.T) {
	model, plain, apart := twoServers(t)
	plain["volumes"] = map[string]any{
		"/dev/vdb": ofClass("CinderVolume", "data", map[string]any{"name": "data", "size": 3, "volumeType": "fast", "availabilityZone": "zone-1"}),
		"/dev/vdc": ofClass("CinderVolume", "copy", map[string]any{"size": 5, "readOnly": true, "sourceSnapshot": ofClass("CinderVolumeSnapshot", "s", map[string]any{"openstackId": "the-snapshot"})}),
	}
	delete(apart, "image")
	apart["blockDevices"] = []any{
		map[string]any{"volume": ofClass("CinderVolume", "root", map[string]any{"size": 10, "sourceImage": "tiny"}), "deviceName": "vda", "deviceType": "disk", "bootIndex": 0},
		map[string]any{"volume": ofClass("ExistingCinderVolume", "old", map[string]any{"openstackId": "the-volume"}), "deviceType": nil},
	}
	w := newWorld(t)
	template := w.push(t, model)
	resources, outputs := template["resources"].(map[string]any), template["outputs"].(map[string]any)
	ref := func(name string) map[string]any { return map[string]any{"get_resource": name} }
	require.Equal(t, map[string]any{"type": "OS::Cinder::Volume", "properties": map[string]any{
		"name": "data", "size": 3.0, "read_only": false, "volume_type": "fast", "availability_zone": "zone-1"}}, resources["data-volume"])
	require.Equal(t, map[string]any{"type": "OS::Cinder::Volume", "properties": map[string]any{"size": 5.0, "read_only": true, "snapshot_id": "the-snapshot"}}, resources["copy-volume"])
	require.Equal(t, map[string]any{"type": "OS::Cinder::VolumeAttachment", "properties": map[string]any{
		"volume_id": ref("data-volume"), "instance_uuid": ref("plain-server"), "mountpoint": "/dev/vdb"}}, resources["data-attachment-plain"])
	require.Equal(t, map[string]any{"value": ref("data-volume")}, outputs["data-volume"])
	server := resources["apart-server"].(map[string]any)["properties"].(map[string]any)
	require.NotContains(t, server, "image")
	require.Equal(t, []any{
		map[string]any{"volume_id": ref("root-volume"), "device_name": "vda", "device_type": "disk", "boot_index": 0.0},
		map[string]any{"volume_id": "the-volume"},
	}, server["block_device_mapping_v2"])

	// It grows, moves to the other server and loses its name; no other property can change.
	w.there = template
	data := plain["volumes"].(map[string]any)["/dev/vdb"].(map[string]any)
	data["size"] = 4
	delete(data, "name")
	delete(plain["volumes"].(map[string]any), "/dev/vdb")
	apart["volumes"] = map[string]any{"/dev/vdd": data}
	resources = w.push(t, model)["resources"].(map[string]any)
	require.Equal(t, 4.0, resources["data-volume"].(map[string]any)["properties"].(map[string]any)["size"])
	require.NotContains(t, resources, "data-attachment-plain")
	require.Equal(t, ref("apart-server"), resources["data-attachment-apart"].(map[string]any)["properties"].(map[string]any)["instance_uuid"])
	data["volumeType"] = "slow"
	require.ErrorContains(t, w.fail(t, model), "volume data is there, and another zone, type or source would make a new one in its place, without what is on it")
}

func TestAServerStartsFromOneThing(t *testing.T) {
	model, plain, _ := twoServers(t)
	boots := []any{map[string]any{"volume": ofClass("CinderVolume", "root", map[string]any{"size": 10, "sourceImage": "tiny"}), "deviceType": nil, "bootIndex": 0}}
	plain["blockDevices"] = boots
	require.ErrorContains(t, newWorld(t).fail(t, model), "server plain has an image and a volume with bootIndex 0 to start from, leave one out")
	delete(plain, "image")
	plain["blockDevices"] = []any{}
	require.ErrorContains(t, newWorld(t).fail(t, model), "server plain has nothing to start from, name an image, or give one of its blockDevices bootIndex 0")
	boots[0].(map[string]any)["volume"].(map[string]any)["sourceVolume"] = ofClass("ExistingCinderVolume", "old", map[string]any{"openstackId": "the-volume"})
	plain["blockDevices"] = boots
	require.ErrorContains(t, newWorld(t).fail(t, model), "volume root has 2 sources (image, source_volid), leave all but one out")
}
