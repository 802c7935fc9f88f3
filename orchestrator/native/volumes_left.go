package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// releasePatience is how long Nova may take to give back the volumes of servers that it has deleted.
const releasePatience = 2 * time.Minute

// leaveVolumes plans the end of a cluster's volumes in Cinder, and of its shares in Manila, for when its servers are gone.
func (c *clusters) leaveVolumes(ctx context.Context, object *muranopl.Object) error {
	ends := map[kube.Storage]func(context.Context, *muranopl.Object) error{kube.Cinder: c.endVolumes, kube.Manila: c.endShares}
	for backend := range ends {
		has, err := nodes.HasStorage(ctx, known.Vault{Runtime: c.runtime, Cluster: object.ID()}, backend)
		if err != nil {
			return err
		}
		if !has {
			delete(ends, backend)
		}
	}
	if len(ends) == 0 {
		return nil
	}
	decide := func(ctx context.Context) error {
		var failures []error
		for _, end := range ends {
			failures = append(failures, end(ctx, object))
		}
		return errors.Join(failures...)
	}
	if c.objects.model() != nil {
		c.runtime.AtEnd(decide)
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last = append(c.last, decide)
	return nil
}

// afterServers does the work that had to wait until the servers of a deleted environment are gone.
func (c *clusters) afterServers(ctx context.Context) error {
	c.mutex.Lock()
	list := c.last
	c.mutex.Unlock()
	var failures []error
	for _, do := range list {
		failures = append(failures, do(ctx))
	}
	return errors.Join(failures...)
}

// endVolumes deletes the volumes of a destroyed cluster, with their snapshots, if keepVolumes allows it, except the ones of classes that keep theirs. It
// names the remaining ones. Cinder deletes no volume that has snapshots, so a remaining snapshot, also a foreign one, keeps its volume.
func (c *clusters) endVolumes(ctx context.Context, object *muranopl.Object) error {
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	storage, err := project.BlockStorage()
	if err != nil {
		return err
	}
	tag := map[string]string{volumes.ClusterMetadata: volumes.ClusterID(c.runtime.EnvironmentID(), object.ID())}
	all, err := storage.Tagged(ctx, "", tag)
	if err != nil {
		return err
	}
	var snapshots []openstack.Snapshot
	if len(all) > 0 {
		if snapshots, err = storage.TaggedSnapshots(ctx, "", nil); err != nil {
			return err
		}
	}
	keep := desiredOf(object).KeepVolumes
	var kept []string
	deleted := 0
	for _, volume := range slices.Backward(all) { // the youngest first: back-ends keep the sources of others
		of := slices.DeleteFunc(slices.Clone(snapshots), func(one openstack.Snapshot) bool { return one.Volume != volume.ID })
		stays := func(one openstack.Snapshot) bool {
			return retained(one.Metadata) || one.Metadata[volumes.ClusterMetadata] != volume.Metadata[volumes.ClusterMetadata]
		}
		if keep || retained(volume.Metadata) || slices.ContainsFunc(of, stays) {
			with := ""
			if len(of) > 0 {
				with = fmt.Sprintf(", with snapshots: %d", len(of))
			}
			kept = append(kept, fmt.Sprintf("%s (%s, %d GiB%s)", volume.ID, volume.Name, volume.GiB, with))
			continue
		}
		for _, one := range of {
			if err := deleteSnapshot(ctx, storage, one.ID); err != nil {
				return fmt.Errorf("delete snapshot %s of volume %s of cluster %s: %w", one.ID, volume.ID, object.Text("name"), err)
			}
		}
		if err := deleteReleased(ctx, storage, volume.ID); err != nil {
			return fmt.Errorf("delete volume %s of cluster %s: %w", volume.ID, object.Text("name"), err)
		}
		deleted++
	}
	if deleted > 0 {
		c.reports.inform(ctx, object, "Cluster %s: %d of its volumes in Cinder were deleted with their snapshots, as keepVolumes says", object.Text("name"), deleted)
	}
	if len(kept) > 0 {
		c.reports.inform(ctx, object, "Cluster %s: these of its volumes stay in Cinder, and are yours to delete: %s", object.Text("name"), strings.Join(kept, ", "))
	}
	return nil
}

// retained is true if an object in Cinder is kept whatever becomes of its cluster.
func retained(metadata map[string]string) bool { return metadata[volumes.RetainMetadata] != "" }

func deleteSnapshot(ctx context.Context, storage *openstack.BlockStorage, id string) error {
	ctx, cancel := context.WithTimeout(ctx, releasePatience)
	defer cancel()
	if err := storage.DeleteSnapshot(ctx, id); err != nil {
		return err
	}
	return volumes.SnapshotGone(ctx, storage, id)
}

// deleteReleased deletes a volume when no server has it any more.
func deleteReleased(ctx context.Context, storage *openstack.BlockStorage, id string) error {
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
