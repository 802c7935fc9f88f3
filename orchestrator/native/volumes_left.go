package native

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/clusters"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/volumes"
)

// leftVolumes are the volumes and shares that a destroyed cluster leaves in the cloud.
type leftVolumes struct{ *clusters.Clusters }

func leftVolumesOf(c *clusters.Clusters) leftVolumes { return leftVolumes{c} }

// leaveVolumes plans the end of a cluster's volumes in Cinder, and of its shares in Manila, for when its servers are gone.
func (c leftVolumes) leaveVolumes(ctx context.Context, object *muranopl.Object) error {
	ends := map[kube.Storage]func(context.Context, *muranopl.Object) error{kube.Cinder: c.endVolumes, kube.Manila: c.endShares}
	for backend := range ends {
		has, err := nodes.HasStorage(ctx, known.Vault{Runtime: c.Runtime, Cluster: object.ID()}, backend)
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
	if c.Objects.Model() != nil {
		c.Runtime.AtEnd(decide)
		return nil
	}
	c.AfterServers(decide)
	return nil
}

// endVolumes deletes the volumes of a destroyed cluster, with their snapshots, if keepVolumes allows it, except the ones of classes that keep theirs. It
// names the remaining ones. Cinder deletes no volume that has snapshots, so a remaining snapshot, also a foreign one, keeps its volume.
func (c leftVolumes) endVolumes(ctx context.Context, object *muranopl.Object) error {
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	cinder, err := project.BlockStorage()
	if err != nil {
		return err
	}
	tag := map[string]string{volumes.ClusterMetadata: volumes.ClusterID(c.Runtime.EnvironmentID(), object.ID())}
	all, err := cinder.Tagged(ctx, "", tag)
	if err != nil {
		return err
	}
	var snapshots []openstack.Snapshot
	if len(all) > 0 {
		if snapshots, err = cinder.TaggedSnapshots(ctx, "", nil); err != nil {
			return err
		}
	}
	keep := task.Desired(object).KeepVolumes
	var kept []string
	deleted := 0
	for _, volume := range slices.Backward(all) { // the youngest first: back-ends keep the sources of others
		of := slices.DeleteFunc(slices.Clone(snapshots), func(one openstack.Snapshot) bool { return one.Volume != volume.ID })
		stays := func(one openstack.Snapshot) bool {
			return storage.Retained(one.Metadata) || one.Metadata[volumes.ClusterMetadata] != volume.Metadata[volumes.ClusterMetadata]
		}
		if keep || storage.Retained(volume.Metadata) || slices.ContainsFunc(of, stays) {
			with := ""
			if len(of) > 0 {
				with = fmt.Sprintf(", with snapshots: %d", len(of))
			}
			kept = append(kept, fmt.Sprintf("%s (%s, %d GiB%s)", volume.ID, volume.Name, volume.GiB, with))
			continue
		}
		for _, one := range of {
			if err := storage.DeleteSnapshot(ctx, cinder, one.ID); err != nil {
				return fmt.Errorf("delete snapshot %s of volume %s of cluster %s: %w", one.ID, volume.ID, object.Text("name"), err)
			}
		}
		if err := storage.DeleteReleased(ctx, cinder, volume.ID); err != nil {
			return fmt.Errorf("delete volume %s of cluster %s: %w", volume.ID, object.Text("name"), err)
		}
		deleted++
	}
	if deleted > 0 {
		c.Reports.Inform(ctx, object, "Cluster %s: %d of its volumes in Cinder were deleted with their snapshots, as keepVolumes says", object.Text("name"), deleted)
	}
	if len(kept) > 0 {
		c.Reports.Inform(ctx, object, "Cluster %s: these of its volumes stay in Cinder, and are yours to delete: %s", object.Text("name"), strings.Join(kept, ", "))
	}
	return nil
}
