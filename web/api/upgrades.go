package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
)

// upgradeHandlers answer the plan of a cluster's upgrade, and pause one. Actions of the cluster begin, continue and reverse it.
type upgradeHandlers struct {
	orchestrator *orchestrator.Service
	plan         func(clusterID, image string) engine.Question
	clusters     Clusters
}

func (h upgradeHandlers) register(v1 *echo.Group) {
	const upgrade = "/environments/:environment/clusters/:cluster/upgrade"
	v1.GET(upgrade, h.show)
	v1.POST(upgrade+"/pause", h.halt)
}

func (h upgradeHandlers) show(c echo.Context) error {
	environmentID, clusterID, image := c.Param("environment"), c.Param("cluster"), c.QueryParam("image")
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if image == "" {
		return fault.New(fault.Invalid, "Say to which image: ?image=ID")
	}
	if h.plan == nil {
		return fault.New(fault.NotFound, "This Burano upgrades no clusters")
	}
	plan, err := h.orchestrator.Previews().Ask(ctx, caller, environmentID, clusterID, h.plan(clusterID, image))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, plan)
}

func (h upgradeHandlers) halt(c echo.Context) error {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if h.clusters == nil {
		return fault.New(fault.NotFound, "This Burano upgrades no clusters")
	}
	if err := h.clusters.PauseUpgrade(ctx, environmentID, clusterID); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}
