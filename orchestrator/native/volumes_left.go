package native

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// propertyKeepVolumes says that a cluster's volumes in Cinder stay when it is destroyed.
const propertyKeepVolumes = "keepVolumes"

// releasePatience is how long Nova may take to give back the volumes of servers that it has deleted.
const releasePatience = 2 * time.Minute

// leaveVolumes has it be decided what becomes of the volumes that a cluster has in Cinder, once its servers are gone.
func (c *clusters) leaveVolumes(ctx context.Context, object *muranopl.Object) error {
	has, err := nodes.HasStorage(ctx, vault{c.runtime, object.ID()}, kube.Cinder)
	if err != nil || !has {
		return err
	}
	decide := func(ctx context.Context) error { return c.endVolumes(ctx, object) }
	if c.objects.model() != nil {
		c.runtime.AtEnd(decide)
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.last = append(c.last, decide)
	return nil
}

// afterServers does what had to wait until the servers of an environment that is deleted are gone.
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

// endVolumes deletes the volumes of a cluster that is destroyed where keepVolumes says so, but for those of classes that keep theirs, and names those that stay.
func (c *clusters) endVolumes(ctx context.Context, object *muranopl.Object) error {
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	storage, err := project.BlockStorage()
	if err != nil {
		return err
	}
	all, err := storage.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: volumes.ClusterID(c.runtime.EnvironmentID(), object.ID())})
	if err != nil {
		return err
	}
	var kept []string
	deleted := 0
	for _, volume := range all {
		if object.Bool(propertyKeepVolumes) || volume.Metadata[volumes.RetainMetadata] != "" {
			kept = append(kept, fmt.Sprintf("%s (%s, %d GiB)", volume.ID, volume.Name, volume.GiB))
			continue
		}
		if err := deleteReleased(ctx, storage, volume.ID); err != nil {
			return fmt.Errorf("delete volume %s of cluster %s: %w", volume.ID, object.Text("name"), err)
		}
		deleted++
	}
	if deleted > 0 {
		c.reports.inform(ctx, object, "Cluster %s: %d of its volumes in Cinder were deleted, as keepVolumes says", object.Text("name"), deleted)
	}
	if len(kept) > 0 {
		c.reports.inform(ctx, object, "Cluster %s: these of its volumes stay in Cinder, and are yours to delete: %s", object.Text("name"), strings.Join(kept, ", "))
	}
	return nil
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
