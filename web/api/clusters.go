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
	kubeconfig   func(ctx context.Context, environmentID, objectID string) ([]byte, error)
	status       func(ctx context.Context, environmentID, objectID string) (any, error)
}

func (h clusterHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/clusters/:cluster", h.show)
	v1.GET("/environments/:environment/clusters/:cluster/kubeconfig", h.download)
}

// show answers what a cluster is made of and how it is now.
func (h clusterHandlers) show(c echo.Context) error {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if h.status == nil {
		return fault.New(fault.NotFound, "This Burano asks no clusters")
	}
	status, err := h.status(ctx, environmentID, clusterID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, status)
}

func (h clusterHandlers) download(c echo.Context) error {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if h.kubeconfig == nil {
		return fault.New(fault.NotFound, "This Burano makes no kubeconfigs")
	}
	config, err := h.kubeconfig(ctx, environmentID, clusterID)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/yaml", config)
}
