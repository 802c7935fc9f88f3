// Package storage compares the volumes, shares and claims of a cluster with the objects of the cloud, and serves the controllers that ask for them.
package storage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// WithoutKnownShares leaves out the shares that a cluster knows, the shares of classes with the policy Retain, and very young shares, which can
// become known soon.
func WithoutKnownShares(ctx context.Context, config *rest.Config, all []openstack.Share) ([]openstack.Share, error) {
	known, err := kube.Volumes(ctx, config, kube.Manila)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(share openstack.Share) bool {
		return Retained(share.Metadata) || time.Since(share.Made) < LeftAge || slices.ContainsFunc(known, func(one kube.Volume) bool { return one.Handle == share.ID })
	}), nil
}

const (
	LeftAge = time.Hour
)

// Left are the volumes and snapshots in Cinder, and the shares in Manila, that a cluster did not know when it was looked last.
type Left struct {
	Looked    time.Time
	Volumes   []openstack.Volume
	Snapshots []openstack.Snapshot
	Shares    []openstack.Share
}

// TaggedVolumes are the volumes and snapshots in Cinder with a mark.
func TaggedVolumes(ctx context.Context, storage *openstack.BlockStorage, tag map[string]string) (found Left, err error) {
	if found.Volumes, err = storage.Tagged(ctx, "", tag); err != nil {
		return found, err
	}
	found.Snapshots, err = storage.TaggedSnapshots(ctx, "", tag)
	return found, err
}

// WithoutKnown leaves out the volumes and snapshots that a cluster knows, those of classes with the policy Retain, and very young ones, which can
// become known soon.
func (found Left) WithoutKnown(ctx context.Context, config *rest.Config) (Left, error) {
	known, err := kube.Volumes(ctx, config, kube.Cinder)
	if err != nil {
		return found, err
	}
	handles, err := kube.VolumeSnapshots(ctx, config, kube.Cinder)
	if err != nil {
		return found, err
	}
	for _, one := range known {
		handles = append(handles, one.Handle)
	}
	stays := func(id string, metadata map[string]string, made time.Time) bool {
		return Retained(metadata) || time.Since(made) < LeftAge || slices.Contains(handles, id)
	}
	found.Volumes = slices.DeleteFunc(found.Volumes, func(one openstack.Volume) bool { return stays(one.ID, one.Metadata, one.Made) })
	found.Snapshots = slices.DeleteFunc(found.Snapshots, func(one openstack.Snapshot) bool { return stays(one.ID, one.Metadata, one.Made) })
	return found, nil
}

// releasePatience is how long Nova may take to give back the volumes of servers that it has deleted.
const releasePatience = 2 * time.Minute

// Retained is true if an object in Cinder is kept whatever becomes of its cluster.
func Retained(metadata map[string]string) bool { return metadata[volumes.RetainMetadata] != "" }

// DeleteSnapshot deletes a snapshot, and waits until it is gone.
func DeleteSnapshot(ctx context.Context, storage *openstack.BlockStorage, id string) error {
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	if err := storage.DeleteSnapshot(ctx, id); err != nil {
		return err
	}
	return volumes.SnapshotGone(ctx, storage, id)
}

// DeleteReleased deletes a volume when no server has it any more.
func DeleteReleased(ctx context.Context, storage *openstack.BlockStorage, id string) error {
	return wait.Every(time.Second).For(releasePatience).Until(ctx, func(ctx context.Context) error {
		volume, err := storage.Volume(ctx, id)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			return nil
		case err != nil:
			return err
		case len(volume.Servers) > 0:
			return wait.Again(fmt.Errorf("server %s has it", strings.Join(volume.Servers, ", ")))
		case volume.Status == openstack.VolumeInUse || volume.Status == "detaching":
			return wait.Again(fmt.Errorf("it is %s", volume.Status))
		case volume.Status == openstack.VolumeDeleting:
			return nil
		}
		return storage.Delete(ctx, id)
	})
}
