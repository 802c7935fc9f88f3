package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/access"
	"github.com/burano/burano/orchestrator/scaling"
	"github.com/burano/burano/orchestrator/store"
)

// clusterHandlers answer about Kubernetes clusters.
type clusterHandlers struct {
	orchestrator *orchestrator.Service
	clusters     Clusters
}

// Clusters answers questions about clusters (access.Clusters). The caller's rights are checked before.
type Clusters interface {
	Access
	Objects
	Status(ctx context.Context, environmentID, objectID string) (access.ClusterStatus, error)
	Hosts(ctx context.Context, environmentID string) ([]access.Host, error)
	Traffic(ctx context.Context, environmentID, objectID string) (scaling.Traffic, error)
	PauseUpgrade(ctx context.Context, environmentID, objectID string) error
	TakeSnapshot(ctx context.Context, environmentID, objectID, reason string) (store.Snapshot, error)
}

func (h clusterHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/clusters/:cluster", h.describe(func(ctx context.Context, environmentID, objectID string) (any, error) {
		return h.clusters.Status(ctx, environmentID, objectID)
	}))
	v1.GET("/environments/:environment/clusters/:cluster/traffic", h.describe(func(ctx context.Context, environmentID, objectID string) (any, error) {
		return h.clusters.Traffic(ctx, environmentID, objectID)
	}))
}

// describe answers a question about a cluster: its parts and state, or the counters of its gateways.
func (h clusterHandlers) describe(ask func(ctx context.Context, environmentID, objectID string) (any, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		environmentID, clusterID := c.Param("environment"), c.Param("cluster")
		ctx, caller := calling(c)
		if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
			return err
		}
		if h.clusters == nil {
			return fault.New(fault.NotFound, "This Burano asks no clusters")
		}
		found, err := ask(ctx, environmentID, clusterID)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, found)
	}
}
