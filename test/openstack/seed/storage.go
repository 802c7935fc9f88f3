package main

import (
	"context"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumetypes"
	"github.com/gophercloud/gophercloud/v2/openstack/sharedfilesystems/v2/sharetypes"
)

// volumeTypes makes the type of volumes in Ceph, which is Cinder's default.
func volumeTypes(ctx context.Context, p *gophercloud.ProviderClient) error {
	if !wanted("cinder") {
		return nil
	}
	client, err := openstack.NewBlockStorageV3(p, gophercloud.EndpointOpts{Region: region})
	if err != nil {
		return fmt.Errorf("find Cinder: %w", err)
	}
	known, err := named(ctx, volumetypes.List(client, nil), volumetypes.ExtractVolumeTypes, func(t volumetypes.VolumeType) (string, string) { return t.Name, t.ID })
	if err != nil {
		return err
	}
	_, err = findOrMake("volume type", "ceph", known, func() (string, error) {
		made, err := volumetypes.Create(ctx, client, volumetypes.CreateOpts{Name: "ceph", ExtraSpecs: map[string]string{"volume_backend_name": "ceph"}}).Extract()
		if err != nil {
			return "", err
		}
		return made.ID, nil
	})
	return err
}

// shareTypes makes the types of shares: default, with snapshots and shares made of these, and plain, without.
func shareTypes(ctx context.Context, p *gophercloud.ProviderClient) error {
	if !wanted("manila") {
		return nil
	}
	client, err := openstack.NewSharedFileSystemV2(p, gophercloud.EndpointOpts{Region: region})
	if err != nil {
		return fmt.Errorf("find Manila: %w", err)
	}
	client.Microversion = "2.24" // create_share_from_snapshot_support
	known, err := named(ctx, sharetypes.List(client, nil), sharetypes.ExtractShareTypes, func(t sharetypes.ShareType) (string, string) { return t.Name, t.ID })
	if err != nil {
		return err
	}
	for name, copies := range map[string]bool{"default": true, "plain": false} {
		_, err = findOrMake("share type", name, known, func() (string, error) {
			made, err := sharetypes.Create(ctx, client, shareType{name, copies}).Extract()
			if err != nil {
				return "", err
			}
			return made.ID, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shareType makes a type of shares without servers of their own.
type shareType struct {
	name   string
	copies bool // it has snapshots, and shares can be made of them
}

// ToShareTypeCreateMap is sharetypes.CreateOptsBuilder's: gophercloud's own takes no false.
func (s shareType) ToShareTypeCreateMap() (map[string]any, error) {
	specs := map[string]any{"driver_handles_share_servers": "False"}
	if s.copies { // with false it would need a back-end without snapshots
		specs["snapshot_support"], specs["create_share_from_snapshot_support"] = "True", "True"
	}
	return map[string]any{"share_type": map[string]any{"name": s.name, "share_type_access:is_public": true, "extra_specs": specs}}, nil
}
