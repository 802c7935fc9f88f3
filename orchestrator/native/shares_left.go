package native

import (
	"context"
	"fmt"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/task"
	"github.com/burano/burano/orchestrator/volumes"
)

// endShares deletes the shares of a destroyed cluster where keepVolumes allows it, except the shares of classes with the policy Retain, and names the
// shares that stay.
func (c leftVolumes) endShares(ctx context.Context, object *muranopl.Object) error {
	project, err := c.Runtime.Project(ctx)
	if err != nil {
		return err
	}
	shares, err := project.SharedFileSystems()
	if err != nil {
		return err
	}
	all, err := shares.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: volumes.ClusterID(c.Runtime.EnvironmentID(), object.ID())})
	if err != nil {
		return err
	}
	var kept []string
	deleted := 0
	for _, share := range all {
		switch {
		case task.Desired(object).KeepVolumes || storage.Retained(share.Metadata):
			if err := volumes.TakeBack(ctx, shares, share); err != nil {
				return fmt.Errorf("take back the access to share %s of cluster %s: %w", share.ID, object.Text("name"), err)
			}
			kept = append(kept, fmt.Sprintf("%s (%s, %d GiB)", share.ID, share.Name, share.GiB))
		case share.Status != openstack.ShareDeleting:
			if err := shares.Delete(ctx, share.ID); err != nil {
				return fmt.Errorf("delete share %s of cluster %s: %w", share.ID, object.Text("name"), err)
			}
			deleted++
		}
	}
	if deleted > 0 {
		c.Reports.Inform(ctx, object, "Cluster %s: %d of its shares in Manila were deleted, as keepVolumes says", object.Text("name"), deleted)
	}
	if len(kept) > 0 {
		c.Reports.Inform(ctx, object, "Cluster %s: these of its shares stay in Manila, and are yours to delete: %s", object.Text("name"), strings.Join(kept, ", "))
	}
	return nil
}
