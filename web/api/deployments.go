package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// deploymentHandlers answer the routes of deployments and their reports.
type deploymentHandlers struct {
	orchestrator *orchestrator.Service
}

func (h deploymentHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/deployments", h.list)
	v1.GET("/environments/:environment/deployments/:deployment", h.reports)
	v1.GET("/deployments", h.listAll)
}

func (h deploymentHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Deployments(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	return writeDeployments(c, rows)
}

func (h deploymentHandlers) listAll(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.ProjectDeployments(ctx, caller)
	if err != nil {
		return err
	}
	return writeDeployments(c, rows)
}

func writeDeployments(c echo.Context, rows []orchestrator.Deployment) error {
	list := make([]map[string]any, len(rows))
	for i, row := range rows {
		list[i] = map[string]any{"id": row.ID, "environment_id": row.EnvironmentID, "state": row.State,
			"created": stamp(row.Created), "updated": stamp(row.Updated), "started": stamp(row.Started), "finished": stampOrNil(row.Finished),
			"description": row.Description, "action": row.Action, "result": row.Result}
	}
	return c.JSON(http.StatusOK, map[string]any{"deployments": list})
}

func reportFields(r orchestrator.Report) map[string]any {
	return map[string]any{"id": r.ID, "task_id": r.TaskID, "entity_id": r.EntityID, "entity": r.Entity, "text": r.Text,
		"level": r.Level, "details": r.Details, "created": stamp(r.Created), "updated": stamp(r.Created)}
}

func (h deploymentHandlers) reports(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Reports(ctx, caller, c.Param("environment"), c.Param("deployment"),
		c.QueryParams()["service_id"])
	if err != nil {
		return err
	}
	list := make([]map[string]any, len(rows))
	for i, row := range rows {
		list[i] = reportFields(row)
	}
	return c.JSON(http.StatusOK, map[string]any{"reports": list})
}
