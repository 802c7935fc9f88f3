package api

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
)

// actionHandlers answer the routes of actions on deployed objects.
type actionHandlers struct {
	orchestrator *orchestrator.Service
}

func (h actionHandlers) register(v1 *echo.Group) {
	v1.POST("/environments/:environment/actions/:action", h.call)
	v1.GET("/environments/:environment/actions/:task", h.result)
}

func (h actionHandlers) call(c echo.Context) error {
	args, err := object(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	task, err := h.orchestrator.CallAction(ctx, identity.From(ctx), c.Param("environment"), c.Param("action"), args)
	switch {
	case errors.Is(err, orchestrator.ErrNoAction):
		return &failing{status: http.StatusNotFound, kind: "LookupError", err: err}
	case errors.Is(err, orchestrator.ErrActionDisabled):
		return &failing{status: http.StatusBadRequest, kind: "ValueError", err: err}
	case err != nil:
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"task_id": task})
}

func (h actionHandlers) result(c echo.Context) error {
	ctx := c.Request().Context()
	result, err := h.orchestrator.ActionResult(ctx, identity.From(ctx), c.Param("environment"), c.Param("task"))
	if errors.Is(err, orchestrator.ErrNoResult) {
		return &refusal{status: http.StatusNotFound, explanation: notFound.explanation, detail: err.Error()}
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, result)
}
