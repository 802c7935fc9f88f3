package localcloud_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/backups"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/limits"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/snapshots"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumetypes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/volumeattach"
	"github.com/gophercloud/gophercloud/v2/openstack/orchestration/v1/stacks"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// loopDevices are the machine's loop devices over files of this cloud.
func (c *cloud) loopDevices() []string {
	entries, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	require.NoError(c.t, err)
	var found []string
	for _, entry := range entries {
		if file, err := os.ReadFile(entry); err == nil && strings.HasPrefix(string(file), c.config.StateDir) {
			found = append(found, strings.TrimSpace(string(file)))
		}
	}
	return found
}

// loopOver is the machine's loop device over a volume.
func (c *cloud) loopOver(volume string) string {
	output, err := exec.Command("losetup", "--noheadings", "--output", "NAME", "--associated", filepath.Join(c.config.StateDir, "cinder", "files", volume)).Output()
	require.NoError(c.t, err)
	return strings.TrimSpace(string(output))
}

// needsLoops skips the test on a machine without loop devices.
func needsLoops(t *testing.T) {
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skipf("servers' volumes are loop devices, which this machine has not: %v", err)
	}
}

func TestVolumesAreBlockDevicesOfServersAndKeepTheirData(t *testing.T) {
	needsLoops(t)
	c := start(t)
	storage, compute := c.client(openstack.NewBlockStorageV3), c.client(openstack.NewComputeV2)
	ctx := t.Context()
	made, err := servers.Create(ctx, compute, servers.CreateOpts{
		Name: "tiny", FlavorRef: "2", ImageRef: c.upload(), Networks: []servers.Network{{UUID: c.network()}},
	}, nil).Extract()
	require.NoError(t, err)
	c.wait(made.ID, "ACTIVE")

	volume, err := volumes.Create(ctx, storage, volumes.CreateOpts{Name: "data", Size: 1, VolumeType: "local", Metadata: map[string]string{"of": "test"}}, nil).Extract()
	require.NoError(t, err)
	get := func(id string) *volumes.Volume {
		t.Helper()
		got, err := volumes.Get(ctx, storage, id).Extract()
		require.NoError(t, err)
		return got
	}
	require.Equal(t, "available", get(volume.ID).Status)
	_, err = volumeattach.Create(ctx, compute, made.ID, volumeattach.CreateOpts{VolumeID: volume.ID, Device: "/dev/sda"}).Extract()
	require.ErrorContains(t, err, "The local cloud has /dev/vdb to /dev/vdz")
	attached, err := volumeattach.Create(ctx, compute, made.ID, volumeattach.CreateOpts{VolumeID: volume.ID}).Extract()
	require.NoError(t, err)
	require.Equal(t, "/dev/vdb", attached.Device)
	require.Len(t, c.loopDevices(), 1)
	shown := get(volume.ID)
	require.Equal(t, "in-use", shown.Status)
	require.Len(t, shown.Attachments, 1)
	require.Equal(t, made.ID, shown.Attachments[0].ServerID)
	require.Equal(t, volume.ID, c.wait(made.ID, "ACTIVE").AttachedVolumes[0].ID)
	_, err = volumeattach.Create(ctx, compute, made.ID, volumeattach.CreateOpts{VolumeID: volume.ID}).Extract()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusConflict), err)
	require.True(t, gophercloud.ResponseCodeIs(volumes.Delete(ctx, storage, volume.ID, nil).Err, http.StatusBadRequest), "a server has it")

	// It is there again after the server was off, though that has made a device of its own of it, and grows while the server has it.
	require.NoError(t, exec.Command("losetup", "--find", c.loopOver(volume.ID)).Run())
	require.NoError(t, servers.Stop(ctx, compute, made.ID).ExtractErr())
	c.wait(made.ID, "SHUTOFF")
	require.Empty(t, c.loopDevices())
	require.NoError(t, servers.Start(ctx, compute, made.ID).ExtractErr())
	c.wait(made.ID, "ACTIVE")
	require.Len(t, c.loopDevices(), 1)
	require.NoError(t, volumes.ExtendSize(ctx, storage, volume.ID, volumes.ExtendSizeOpts{NewSize: 2}).ExtractErr())
	require.Equal(t, 2, get(volume.ID).Size)
	require.True(t, gophercloud.ResponseCodeIs(volumes.ExtendSize(ctx, storage, volume.ID, volumes.ExtendSizeOpts{NewSize: 1}).Err, http.StatusBadRequest))

	// A snapshot of it, and a volume of the snapshot, have its data.
	file, err := os.OpenFile(filepath.Join(c.config.StateDir, "cinder", "files", volume.ID), os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = file.WriteString("data")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	_, err = snapshots.Create(ctx, storage, snapshots.CreateOpts{VolumeID: volume.ID, Name: "copy"}).Extract()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusBadRequest), "a server has it")
	snapshot, err := snapshots.Create(ctx, storage, snapshots.CreateOpts{VolumeID: volume.ID, Name: "copy", Force: true}).Extract()
	require.NoError(t, err)
	clone, err := volumes.Create(ctx, storage, volumes.CreateOpts{Name: "clone", SnapshotID: snapshot.ID}, nil).Extract()
	require.NoError(t, err)
	require.Equal(t, 2, clone.Size)
	content := make([]byte, 4)
	file, err = os.Open(filepath.Join(c.config.StateDir, "cinder", "files", clone.ID))
	require.NoError(t, err)
	_, err = file.Read(content)
	require.NoError(t, err)
	require.NoError(t, file.Close())
	require.Equal(t, "data", string(content))

	// A project's limits are enforced, and shown.
	_, err = volumes.Create(ctx, storage, volumes.CreateOpts{Size: 10000}, nil).Extract()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusRequestEntityTooLarge), err)
	_, err = volumes.Create(ctx, storage, volumes.CreateOpts{Size: 1, VolumeType: "fast"}, nil).Extract()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusNotFound), err)
	use, err := limits.Get(ctx, storage).Extract()
	require.NoError(t, err)
	require.Equal(t, 6, use.Absolute.TotalGigabytesUsed)
	quota, err := quotasets.Get(ctx, storage, shown.TenantID).Extract()
	require.NoError(t, err)
	require.Equal(t, 100, quota.Volumes)
	pages, err := volumetypes.List(storage, nil).AllPages(ctx)
	require.NoError(t, err)
	types, err := volumetypes.ExtractVolumeTypes(pages)
	require.NoError(t, err)
	require.Equal(t, "local", types[0].Name)

	// The process ends and begins again. A deleted server returns its volume. It has two zones then, and the former objects are in the first.
	c.stop()
	c.config.Zones = []string{"nova", "east"}
	c.begin()
	require.Equal(t, "in-use", get(volume.ID).Status)
	require.Equal(t, "nova", get(volume.ID).AvailabilityZone)
	east, err := volumes.Create(ctx, storage, volumes.CreateOpts{Size: 1, AvailabilityZone: "east"}, nil).Extract()
	require.NoError(t, err)
	require.Equal(t, "east", east.AvailabilityZone)
	_, err = volumeattach.Create(ctx, compute, made.ID, volumeattach.CreateOpts{VolumeID: east.ID}).Extract()
	require.ErrorContains(t, err, "are not in the same availability_zone. Instance is in nova. Volume is in east")
	_, err = volumes.Create(ctx, storage, volumes.CreateOpts{Size: 1, AvailabilityZone: "nova", SourceVolID: east.ID}, nil).Extract()
	require.ErrorContains(t, err, "must be in the same availability zone as the source volume")
	beside, err := volumes.Create(ctx, storage, volumes.CreateOpts{SourceVolID: east.ID}, nil).Extract()
	require.NoError(t, err)
	require.Equal(t, "east", beside.AvailabilityZone)
	for _, id := range []string{east.ID, beside.ID} {
		require.NoError(t, volumes.Delete(ctx, storage, id, nil).ExtractErr())
	}
	_, err = volumes.Create(ctx, storage, volumes.CreateOpts{Size: 1, AvailabilityZone: "west"}, nil).Extract()
	require.ErrorContains(t, err, "Availability zone 'west' is invalid")
	require.NoError(t, servers.Delete(ctx, compute, made.ID).ExtractErr())
	require.Eventually(t, func() bool { return get(volume.ID).Status == "available" }, waitFor, tick)
	require.Empty(t, c.loopDevices())
	require.True(t, gophercloud.ResponseCodeIs(volumes.Delete(ctx, storage, volume.ID, nil).Err, http.StatusBadRequest), "it has a snapshot")
	require.NoError(t, snapshots.Delete(ctx, storage, snapshot.ID).ExtractErr())
	for _, id := range []string{volume.ID, clone.ID} {
		require.NoError(t, volumes.Delete(ctx, storage, id, nil).ExtractErr())
	}
	left, err := os.ReadDir(filepath.Join(c.config.StateDir, "cinder", "files"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// twoServersOneVolume is a volume that one of two servers has.
const twoServersOneVolume = `
heat_template_version: 2018-08-31
parameters:
  image: {type: string}
  network: {type: string}
  size: {type: number}
resources:
  volume:
    type: OS::Cinder::Volume
    properties: {name: data, size: {get_param: size}, volume_type: local}
  one: &server
    type: OS::Nova::Server
    properties: {flavor: m1.small, image: {get_param: image}, networks: [{network: {get_param: network}}]}
  two: *server
  attachment:
    type: OS::Cinder::VolumeAttachment
    properties: {volume_id: {get_resource: volume}, instance_uuid: {get_resource: SERVER}, mountpoint: /dev/vdc}
outputs:
  volume: {value: {get_resource: volume}}
  one: {value: {get_resource: one}}
  two: {value: {get_resource: two}}
`

func TestAStackHasVolumesInItsServers(t *testing.T) {
	needsLoops(t)
	c := start(t)
	heat, storage := c.client(openstack.NewOrchestrationV1), c.client(openstack.NewBlockStorageV3)
	ctx := t.Context()
	template := func(server string) *stacks.Template {
		text := &stacks.Template{}
		text.Bin = []byte(strings.ReplaceAll(twoServersOneVolume, "SERVER", server))
		return text
	}
	parameters := map[string]any{"image": c.upload(), "network": c.network(), "size": 1}
	made, err := stacks.Create(ctx, heat, stacks.CreateOpts{Name: "volumes", TemplateOpts: template("one"), Parameters: parameters}).Extract()
	require.NoError(t, err)
	ended := func(status string) map[string]string {
		t.Helper()
		outputs := map[string]string{}
		require.Eventually(t, func() bool {
			stack, err := stacks.Get(ctx, heat, "volumes", made.ID).Extract()
			require.NoError(t, err)
			require.NotContains(t, stack.Status, "FAILED", stack.StatusReason)
			for _, output := range stack.Outputs {
				outputs[output["output_key"].(string)], _ = output["output_value"].(string)
			}
			return stack.Status == status
		}, waitFor, tick)
		return outputs
	}
	outputs := ended("CREATE_COMPLETE")
	in := func() (server, device string, size int) {
		volume, err := volumes.Get(ctx, storage, outputs["volume"]).Extract()
		require.NoError(t, err)
		require.Len(t, volume.Attachments, 1)
		return volume.Attachments[0].ServerID, volume.Attachments[0].Device, volume.Size
	}
	server, device, _ := in()
	require.Equal(t, outputs["one"], server)
	require.Equal(t, "/dev/vdc", device)

	// It grows in place, and moves to the other server.
	parameters["size"] = 2
	require.NoError(t, stacks.Update(ctx, heat, "volumes", made.ID, stacks.UpdateOpts{TemplateOpts: template("two"), Parameters: parameters}).ExtractErr())
	require.Equal(t, outputs, ended("UPDATE_COMPLETE"), "nothing is replaced")
	server, _, size := in()
	require.Equal(t, outputs["two"], server)
	require.Equal(t, 2, size)

	require.NoError(t, stacks.Delete(ctx, heat, "volumes", made.ID).ExtractErr())
	require.Eventually(t, func() bool {
		return gophercloud.ResponseCodeIs(volumes.Get(ctx, storage, outputs["volume"]).Err, http.StatusNotFound)
	}, waitFor, tick)
	require.Empty(t, c.loopDevices())
}

// bootsFromVolume is a server that runs from a volume of an image.
const bootsFromVolume = `
heat_template_version: 2018-08-31
parameters:
  image: {type: string}
  network: {type: string}
resources:
  root:
    type: OS::Cinder::Volume
    properties: {name: root, size: 1, image: {get_param: image}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.small
      networks: [{network: {get_param: network}}]
      block_device_mapping_v2: [{volume_id: {get_resource: root}, boot_index: 0}]
outputs:
  root: {value: {get_resource: root}}
  server: {value: {get_resource: server}}
`

func TestServersRunFromVolumesOfImages(t *testing.T) {
	needsLoops(t)
	c := start(t)
	heat, storage, compute := c.client(openstack.NewOrchestrationV1), c.client(openstack.NewBlockStorageV3), c.client(openstack.NewComputeV2)
	ctx := t.Context()
	image, network := c.upload(), c.network()
	template := &stacks.Template{}
	template.Bin = []byte(bootsFromVolume)
	parameters := map[string]any{"image": image, "network": network}
	made, err := stacks.Create(ctx, heat, stacks.CreateOpts{Name: "boots", TemplateOpts: template, Parameters: parameters}).Extract()
	require.NoError(t, err)
	outputs := map[string]string{}
	require.Eventually(t, func() bool {
		stack, err := stacks.Get(ctx, heat, "boots", made.ID).Extract()
		require.NoError(t, err)
		require.NotContains(t, stack.Status, "FAILED", stack.StatusReason)
		for _, output := range stack.Outputs {
			outputs[output["output_key"].(string)], _ = output["output_value"].(string)
		}
		return stack.Status == "CREATE_COMPLETE"
	}, waitFor, tick)
	volume, err := volumes.Get(ctx, storage, outputs["root"]).Extract()
	require.NoError(t, err)
	require.Equal(t, "true", volume.Bootable)
	require.Equal(t, image, volume.VolumeImageMetadata["image_id"])
	require.Equal(t, "/dev/vda", volume.Attachments[0].Device)
	require.Empty(t, c.wait(outputs["server"], "ACTIVE").Image)
	require.Len(t, c.loopDevices(), 1)

	require.True(t, gophercloud.ResponseCodeIs(volumeattach.Delete(ctx, compute, outputs["server"], outputs["root"]).Err, http.StatusForbidden))
	require.ErrorContains(t, servers.Rebuild(ctx, compute, outputs["server"], servers.RebuildOpts{ImageRef: image}).Err, "volume-backed server")

	// The server's data are on the volume, whose file system is as large as the volume.
	file := filepath.Join(c.config.StateDir, "cinder", "files", outputs["root"])
	blocks := func() string {
		t.Helper()
		output, err := exec.Command("dumpe2fs", "-h", file).Output()
		require.NoError(t, err)
		return regexp.MustCompile(`(?m)^Block count:\s+(\d+)$`).FindStringSubmatch(string(output))[1]
	}
	require.Equal(t, strconv.Itoa(1<<30/4096), blocks())
	require.NoError(t, servers.Stop(ctx, compute, outputs["server"]).ExtractErr())
	c.wait(outputs["server"], "SHUTOFF")
	require.Empty(t, c.loopDevices())
	require.NoError(t, volumes.ExtendSize(ctx, storage, outputs["root"], volumes.ExtendSizeOpts{NewSize: 2}).ExtractErr())
	require.NoError(t, servers.Start(ctx, compute, outputs["server"]).ExtractErr())
	c.wait(outputs["server"], "ACTIVE")
	require.Equal(t, strconv.Itoa(2<<30/4096), blocks())

	// Another server runs from a copy of it, and none from an empty volume.
	server := func(volume string) (*servers.Server, error) {
		return servers.Create(ctx, compute, servers.CreateOpts{
			Name: "copy", FlavorRef: "2", Networks: []servers.Network{{UUID: network}},
			BlockDevice: []servers.BlockDevice{{UUID: volume, SourceType: servers.SourceVolume, DestinationType: servers.DestinationVolume, DeleteOnTermination: true}},
		}, nil).Extract()
	}
	clone, err := volumes.Create(ctx, storage, volumes.CreateOpts{SourceVolID: outputs["root"]}, nil).Extract()
	require.NoError(t, err)
	second, err := server(clone.ID)
	require.NoError(t, err)
	c.wait(second.ID, "ACTIVE")
	empty, err := volumes.Create(ctx, storage, volumes.CreateOpts{Size: 1}, nil).Extract()
	require.NoError(t, err)
	_, err = server(empty.ID)
	require.ErrorContains(t, err, "is not bootable")
	require.NoError(t, servers.Delete(ctx, compute, second.ID).ExtractErr())
	require.Eventually(t, func() bool {
		return gophercloud.ResponseCodeIs(volumes.Get(ctx, storage, clone.ID).Err, http.StatusNotFound)
	}, waitFor, tick)
	require.NoError(t, stacks.Delete(ctx, heat, "boots", made.ID).ExtractErr())
	require.Eventually(t, func() bool { return len(c.loopDevices()) == 0 }, waitFor, tick)
}

// Nova's volumes of a server equal Cinder's, also when several are attached and detached at the same time.
func TestVolumesThatAreAttachedAtTheSameTimeAreAllThere(t *testing.T) {
	needsLoops(t)
	c := start(t)
	storage, compute := c.client(openstack.NewBlockStorageV3), c.client(openstack.NewComputeV2)
	ctx := t.Context()
	made, err := servers.Create(ctx, compute, servers.CreateOpts{
		Name: "tiny", FlavorRef: "2", ImageRef: c.upload(), Networks: []servers.Network{{UUID: c.network()}},
	}, nil).Extract()
	require.NoError(t, err)
	c.wait(made.ID, "ACTIVE")
	var ids []string
	for range 6 {
		volume, err := volumes.Create(ctx, storage, volumes.CreateOpts{Name: "data", Size: 1}, nil).Extract()
		require.NoError(t, err)
		ids = append(ids, volume.ID)
	}
	each := func(do func(id string) error) {
		t.Helper()
		var all errgroup.Group
		for _, id := range ids {
			all.Go(func() error { return do(id) })
		}
		require.NoError(t, all.Wait())
	}
	each(func(id string) error {
		_, err := volumeattach.Create(ctx, compute, made.ID, volumeattach.CreateOpts{VolumeID: id}).Extract()
		return err
	})
	require.Len(t, c.wait(made.ID, "ACTIVE").AttachedVolumes, len(ids))
	each(func(id string) error {
		volume, err := volumes.Get(ctx, storage, id).Extract()
		if err == nil && (volume.Status != "in-use" || len(volume.Attachments) != 1) {
			err = fmt.Errorf("volume %s is %s", id, volume.Status)
		}
		return err
	})
	each(func(id string) error { return volumeattach.Delete(ctx, compute, made.ID, id).ExtractErr() })
	require.Empty(t, c.wait(made.ID, "ACTIVE").AttachedVolumes)
	each(func(id string) error { return volumes.Delete(ctx, storage, id, nil).ExtractErr() })
}

func TestABackupHasWhatItsVolumeHadAndOutlivesIt(t *testing.T) {
	c := start(t)
	storage, ctx := c.client(openstack.NewBlockStorageV3), t.Context()
	storage.Microversion = "3.47"
	file := func(id string) string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(c.config.StateDir, "*", "files", id))
		require.NoError(t, err)
		require.Len(t, found, 1)
		return found[0]
	}
	volume, err := volumes.Create(ctx, storage, volumes.CreateOpts{Name: "data", Size: 1}, nil).Extract()
	require.NoError(t, err)
	write := func(text string) {
		t.Helper()
		opened, err := os.OpenFile(file(volume.ID), os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = opened.WriteString(text)
		require.NoError(t, err)
		require.NoError(t, opened.Close())
	}
	write("valued")
	made, err := backups.Create(ctx, storage, backups.CreateOpts{VolumeID: volume.ID, Name: "before", Metadata: map[string]string{"of": "test"}}).Extract()
	require.NoError(t, err)
	write("others")
	require.NoError(t, volumes.Delete(ctx, storage, volume.ID, nil).ExtractErr())
	shown, err := backups.Get(ctx, storage, made.ID).Extract()
	require.NoError(t, err)
	require.Equal(t, "before available 1 test", fmt.Sprint(shown.Name, " ", shown.Status, " ", shown.Size, " ", (*shown.Metadata)["of"]))
	restored, err := volumes.Create(ctx, storage, volumes.CreateOpts{Name: "restored", Size: 1, BackupID: made.ID}, nil).Extract()
	require.NoError(t, err)
	content := make([]byte, len("valued"))
	opened, err := os.Open(file(restored.ID))
	require.NoError(t, err)
	defer opened.Close()
	_, err = opened.ReadAt(content, 0)
	require.NoError(t, err)
	require.Equal(t, "valued", string(content))
	state, err := limits.Get(ctx, storage).Extract()
	require.NoError(t, err)
	require.Equal(t, 1, state.Absolute.TotalBackupsUsed)
	require.NoError(t, backups.Delete(ctx, storage, made.ID).ExtractErr())
	_, err = backups.Get(ctx, storage, made.ID).Extract()
	require.True(t, gophercloud.ResponseCodeIs(err, http.StatusNotFound))
}
