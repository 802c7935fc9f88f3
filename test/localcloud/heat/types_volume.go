package heat

import (
	"context"
	"slices"

	"github.com/burano/burano/catalog/hot"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/test/localcloud/cinder"
)

// This file is the resource types of Cinder. A volume gets the resource's own id, so that making it again finds it.

func volumeTypes() map[string]resourceType {
	return map[string]resourceType{"OS::Cinder::Volume": volumeType(), "OS::Cinder::VolumeAttachment": volumeAttachmentType()}
}

func volumeType() resourceType {
	return resourceType{
		properties: map[string]property{
			"name": {kind: words, update: true}, "description": {kind: words, update: true}, "size": {kind: number, update: true},
			"metadata": {kind: aMap, update: true}, "read_only": {kind: truth, update: true}, "volume_type": {kind: words},
			"availability_zone": {kind: words}, "snapshot_id": {kind: words}, "source_volid": {kind: words}, "image": {kind: words},
			"backup_id": {kind: words, update: true},
		},
		create: func(ctx context.Context, j *job) error {
			if j.text("backup_id") != "" {
				return notValid("backup_id is not supported by the local cloud's Heat: its Cinder has no backups")
			}
			if err := j.begin(); err != nil {
				return err
			}
			size, _ := j.properties["size"].(float64)
			_, err := j.volumes().Create(ctx, j.project(), cinder.CreateVolume{
				ID: j.resource.PhysicalID, Name: j.name(), Description: j.text("description"), SizeGB: int(size), Type: j.text("volume_type"),
				SnapshotID: j.text("snapshot_id"), SourceID: j.text("source_volid"), ImageID: j.text("image"),
				AvailabilityZone: j.text("availability_zone"), Metadata: j.metadata(),
			})
			if err != nil {
				return err
			}
			return j.noteReadOnly()
		},
		update: func(ctx context.Context, j *job) error {
			differing := changed(j.resource.Properties, j.properties)
			if slices.Contains(differing, "backup_id") {
				return notValid("backup_id is not supported by the local cloud's Heat: its Cinder has no backups")
			}
			name, description := j.name(), j.text("description")
			if _, err := j.volumes().Update(j.project(), j.resource.PhysicalID, cinder.Change{Name: &name, Description: &description, Metadata: j.metadata()}); err != nil {
				return err
			}
			if err := j.noteReadOnly(); err != nil {
				return err
			}
			volume, err := j.volumes().Get(j.project(), j.resource.PhysicalID)
			if err != nil {
				return err
			}
			size, _ := j.properties["size"].(float64)
			if !slices.Contains(differing, "size") || int(size) == volume.SizeGB {
				return nil
			}
			if int(size) < volume.SizeGB {
				return fault.New(fault.Invalid, "Shrinking volume is not supported.")
			}
			return j.volumes().Extend(ctx, j.project(), j.resource.PhysicalID, int(size))
		},
		remove: func(_ context.Context, j *job) error {
			if j.resource.PhysicalID == "" {
				return nil
			}
			return gone(j.volumes().Delete(j.project(), j.resource.PhysicalID))
		},
		attributes: func(_ context.Context, j *job) (map[string]any, error) {
			volume, err := j.volumes().Get(j.project(), j.resource.PhysicalID)
			if err != nil {
				return nil, err
			}
			shown := j.volumes().Show(volume)
			return map[string]any{
				"show": shown, "size": shown["size"], "status": shown["status"], "display_name": volume.Name, "display_description": volume.Description,
				"volume_type": volume.Type, "snapshot_id": volume.SnapshotID, "source_volid": volume.SourceID, "metadata": shown["metadata"],
				"availability_zone": shown["availability_zone"], "bootable": shown["bootable"], "created_at": shown["created_at"],
				"encrypted": shown["encrypted"], "attachments": shown["attachments"], "attachments_list": shown["attachments"],
			}, nil
		},
	}
}

func (j *job) noteReadOnly() error {
	readOnly, given := j.properties["read_only"].(bool)
	if !given {
		return nil
	}
	_, err := j.volumes().Update(j.project(), j.resource.PhysicalID, cinder.Change{ReadOnly: &readOnly})
	return err
}

// volumeAttachmentType is a volume in a server. Its physical id is the volume's, and its server is recorded beside.
func volumeAttachmentType() resourceType {
	detach := func(ctx context.Context, j *job) error {
		if j.resource.PhysicalID == "" {
			return nil
		}
		return gone(j.compute().DetachVolume(ctx, j.project(), j.resource.Data["server"], j.resource.PhysicalID))
	}
	attach := func(ctx context.Context, j *job) error {
		j.resource.Data = map[string]string{"server": j.text("instance_uuid")}
		if err := j.setID(j.text("volume_id")); err != nil {
			return err
		}
		return j.compute().AttachVolume(ctx, j.project(), j.text("instance_uuid"), j.text("volume_id"), j.text("mountpoint"))
	}
	return resourceType{
		properties: map[string]property{
			"instance_uuid": {kind: words, required: true, update: true}, "volume_id": {kind: words, required: true, update: true},
			"mountpoint": {kind: words, update: true},
		},
		create: attach,
		update: func(ctx context.Context, j *job) error {
			if err := detach(ctx, j); err != nil {
				return err
			}
			return attach(ctx, j)
		},
		remove: detach,
		attributes: func(_ context.Context, j *job) (map[string]any, error) {
			return map[string]any{"show": map[string]any{"volumeId": j.resource.PhysicalID, "serverId": j.resource.Data["server"]}}, nil
		},
	}
}

// blockDevices are the volumes that a server is to be made with.
func (j *job) blockDevices() (volumes []ServerVolume, err error) {
	for _, one := range hot.List(j.properties["block_device_mapping_v2"]) {
		entry, _ := one.(map[string]any)
		if hot.Text(entry["volume_id"]) == "" {
			return nil, notValid("block_device_mapping_v2: an entry of the local cloud's Heat names a volume_id")
		}
		remove, _ := hot.Boolean(entry["delete_on_termination"])
		volumes = append(volumes, ServerVolume{
			ID: hot.Text(entry["volume_id"]), Device: hot.Text(entry["device_name"]), Delete: remove, Boots: hot.Text(entry["boot_index"]) == "0",
		})
	}
	return volumes, nil
}
