package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// clusterHandlers answer about Kubernetes clusters.
type clusterHandlers struct {
	orchestrator *orchestrator.Service
	status       func(ctx context.Context, environmentID, objectID string) (any, error)
	traffic      func(ctx context.Context, environmentID, objectID string) (any, error)
}

func (h clusterHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/clusters/:cluster", h.describe(h.status))
	v1.GET("/environments/:environment/clusters/:cluster/traffic", h.describe(h.traffic))
}

// describe answers a question about a cluster: its parts and state, or the counters of its gateways.
func (h clusterHandlers) describe(ask func(ctx context.Context, environmentID, objectID string) (any, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		environmentID, clusterID := c.Param("environment"), c.Param("cluster")
		ctx, caller := calling(c)
		if err := h.orchestrator.MayReach(ctx, caller, environmentID, clusterID); err != nil {
			return err
		}
		if ask == nil {
			return fault.New(fault.NotFound, "This Burano asks no clusters")
		}
		found, err := ask(ctx, environmentID, clusterID)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, found)
	}
}
