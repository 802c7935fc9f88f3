package native

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/volumes"
)

// endShares deletes the shares of a cluster that is destroyed where keepVolumes says so, but for those of classes that keep theirs, and names those that stay.
func (c *clusters) endShares(ctx context.Context, object *muranopl.Object) error {
	project, err := c.runtime.Project(ctx)
	if err != nil {
		return err
	}
	shares, err := project.SharedFileSystems()
	if err != nil {
		return err
	}
	all, err := shares.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: volumes.ClusterID(c.runtime.EnvironmentID(), object.ID())})
	if err != nil {
		return err
	}
	var kept []string
	deleted := 0
	for _, share := range all {
		switch {
		case desiredOf(object).KeepVolumes || retained(share.Metadata):
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
		c.reports.inform(ctx, object, "Cluster %s: %d of its shares in Manila were deleted, as keepVolumes says", object.Text("name"), deleted)
	}
	if len(kept) > 0 {
		c.reports.inform(ctx, object, "Cluster %s: these of its shares stay in Manila, and are yours to delete: %s", object.Text("name"), strings.Join(kept, ", "))
	}
	return nil
}

// unknownShares are the shares in Manila that were made for a cluster, and that no PersistentVolume of it is; but for those of classes that keep theirs.
func (s *storageDuty) unknownShares(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]openstack.Share, error) {
	project, err := environment.Project(ctx, "")
	if err != nil {
		return nil, err
	}
	shares, err := project.SharedFileSystems()
	if err != nil {
		return nil, err
	}
	// Asked for before what the cluster knows: a share that it comes to know in between is in both.
	all, err := shares.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: volumes.ClusterID(environment.ID, cluster.ID)})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	err = s.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
		all, err = withoutKnownShares(ctx, api, all)
		return err
	})
	return all, err
}

// withoutKnownShares leaves out the shares that a cluster knows, those of classes that keep theirs, and those that are so young that they may be about to become known.
func withoutKnownShares(ctx context.Context, config *rest.Config, all []openstack.Share) ([]openstack.Share, error) {
	known, err := kube.Volumes(ctx, config, kube.Manila)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(share openstack.Share) bool {
		return retained(share.Metadata) || time.Since(share.Made) < leftAge || slices.ContainsFunc(known, func(one kube.Volume) bool { return one.Handle == share.ID })
	}), nil
}
