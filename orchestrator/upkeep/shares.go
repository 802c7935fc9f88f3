package upkeep

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/openstack"
	"github.com/burano/burano/orchestrator/storage"
	"github.com/burano/burano/orchestrator/volumes"
)

// unknownShares are the shares in Manila that were made for a cluster and belong to no PersistentVolume of it, without shares of classes with the
// policy Retain.
func (s *storageDuty) unknownShares(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]openstack.Share, error) {
	project, err := environment.Project(ctx, "")
	if err != nil {
		return nil, err
	}
	shares, err := project.SharedFileSystems()
	if err != nil {
		return nil, err
	}
	// Listed before the cluster's own shares: a share that is made in between is in both lists.
	all, err := shares.Tagged(ctx, "", map[string]string{volumes.ClusterMetadata: volumes.ClusterID(environment.ID, cluster.ID)})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	err = s.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
		all, err = storage.WithoutKnownShares(ctx, api, all)
		return err
	})
	return all, err
}
