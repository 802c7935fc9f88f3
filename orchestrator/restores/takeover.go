package restores

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
	"github.com/burano/burano/orchestrator/volumes"
)

// takeOver gives a cluster the volumes and shares of the cluster in its snapshot, if that cluster is gone: the claims in the snapshot name them. The
// volumes of a present cluster stay with it.
func (c Restores) takeOver(ctx context.Context, object *muranopl.Object, from store.Snapshot) error {
	former, own := volumes.ClusterID(from.EnvironmentID, from.ClusterID), volumes.ClusterID(c.Runtime.EnvironmentID(), object.ID())
	if former == own {
		return nil
	}
	gone, err := c.gone(ctx, from)
	if err != nil {
		return err
	}
	if !gone {
		c.Reports.Warn(ctx, object, fmt.Sprintf("Cluster %s of environment %s, which snapshot %s is of, is there: its volumes and shares in the cloud stay with it", from.ClusterName, from.EnvironmentName, from.ID),
			fmt.Sprintf("Claims of the snapshot have no volumes in cluster %s: delete them, and restore them from their backups (burano cluster backup restore).", object.Text("name")))
		return nil
	}
	return c.Runtime.Step(ctx, object, "take the former cluster's volumes over", func(ctx context.Context) error {
		project, err := c.Runtime.Project(ctx)
		if err != nil {
			return err
		}
		var taken, shared []string
		storage, err := project.BlockStorage()
		if err == nil {
			taken, err = volumes.TakeOver(ctx, storage, former, own)
		}
		if err != nil && fault.KindOf(err) != fault.NotFound { // a cloud without Cinder
			return err
		}
		shares, err := project.SharedFileSystems()
		if err == nil {
			shared, err = volumes.TakeOverShares(ctx, shares, former, own)
		}
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return err
		}
		if taken = append(taken, shared...); len(taken) > 0 {
			c.Reports.Inform(ctx, object, "Cluster %s takes over from cluster %s of environment %s, which is gone: %s", object.Text("name"), from.ClusterName, from.EnvironmentName, strings.Join(taken, ", "))
		}
		return nil
	})
}

// gone reports whether the cluster that a snapshot is of exists no more.
func (c Restores) gone(ctx context.Context, from store.Snapshot) (bool, error) {
	if from.EnvironmentID == c.Runtime.EnvironmentID() {
		return !c.Objects.Has(from.ClusterID), nil
	}
	row, err := c.Settings.Snapshots.Environment(ctx, from.EnvironmentID)
	if errors.Is(err, store.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return !muranopl.ObjectIDs(row.Model.ObjectsCopy)[from.ClusterID] && !muranopl.ObjectIDs(row.Model.Objects)[from.ClusterID], nil
}
