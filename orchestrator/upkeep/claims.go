package upkeep

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/burano/burano/nodes"
	"github.com/burano/burano/nodes/kube"
	"github.com/burano/burano/orchestrator/desired"
	"github.com/burano/burano/orchestrator/keeper"
	"github.com/burano/burano/orchestrator/known"
	"github.com/burano/burano/orchestrator/storage"
)

const (
	dutyClaims = "claims"
)

// claimsDuty finds claims that no application mounts any more. It needs no cloud.
type claimsDuty struct {
	Config
	unused func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) ([]corev1.PersistentVolumeClaim, error)
}

func newClaimsDuty(config Config) claimsDuty {
	return claimsDuty{config, func(ctx context.Context, environment *keeper.Environment, cluster *desired.Cluster) (unused []corev1.PersistentVolumeClaim, err error) {
		err = config.ask(ctx, environment, cluster, func(api *rest.Config) (err error) {
			unused, err = kube.UnusedClaims(ctx, api)
			return err
		})
		return unused, err
	}}
}

func (c claimsDuty) Name() string { return dutyClaims }

func (c claimsDuty) Every() time.Duration { return c.hours(1) }

func (c claimsDuty) Look(ctx context.Context, environment *keeper.Environment) (result keeper.Result, err error) {
	for _, cluster := range environment.Clusters {
		has, err := nodes.HasStorage(ctx, known.EnvironmentVault{Secrets: c.Secrets, Environment: environment.ID, Cluster: cluster.ID}, kube.Storages()...)
		if err != nil {
			return result, err
		}
		if !has {
			continue
		}
		unused, err := c.unused(ctx, environment, cluster)
		if err != nil {
			return result, err
		}
		unused = slices.DeleteFunc(unused, func(claim corev1.PersistentVolumeClaim) bool {
			return time.Since(claim.CreationTimestamp.Time) < c.hours(1)
		})
		if len(unused) == 0 {
			continue
		}
		var names []string
		for _, claim := range unused {
			names = append(names, storage.DescribeClaim(claim))
		}
		result.Findings = append(result.Findings, keeper.Finding{ObjectID: cluster.ID, Kind: "claims-unused", Severity: keeper.Info,
			Text:  fmt.Sprintf("No application of cluster %s uses: %s. They keep their data", cluster.Name, storage.Some(names)),
			Mends: "Delete those whose data nobody needs: burano cluster volumes delete " + environment.Name + " NAME"})
	}
	return result, nil
}
