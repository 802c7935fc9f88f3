package api

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
)

// actionHandlers answer the routes of actions on deployed objects.
type actionHandlers struct {
	orchestrator *orchestrator.Service
}

func (h actionHandlers) register(v1 *echo.Group) {
	v1.POST("/environments/:environment/actions/:action", h.call)
	v1.GET("/environments/:environment/actions/:task", h.result)
	v1.POST("/actions", h.callStatic)
}

func (h actionHandlers) call(c echo.Context) error {
	args, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	task, err := h.orchestrator.Actions().Call(ctx, caller, c.Param("environment"), c.Param("action"), args)
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
	ctx, caller := calling(c)
	result, err := h.orchestrator.Actions().Result(ctx, caller, c.Param("environment"), c.Param("task"))
	if errors.Is(err, orchestrator.ErrNoResult) {
		return &refusal{status: http.StatusNotFound, explanation: notFound.explanation, detail: err.Error()}
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, result)
}

// callStatic runs a static method and answers its result. An exception of the method is an answer of 503, as in Murano.
func (h actionHandlers) callStatic(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	class := engine.ClassName{Version: defaultVersion}
	method := ""
	for key, target := range map[string]*string{"className": &class.Name, "methodName": &method, "packageName": &class.Package, "classVersion": &class.Version} {
		if err := text(fields, key, target); err != nil {
			return detailed(err)
		}
	}
	args, ok := fields["parameters"].(map[string]any)
	if !ok && fields["parameters"] != nil {
		return detailed(fault.New(fault.Invalid, "parameters must be an object: the arguments by their names"))
	}
	ctx, caller := calling(c)
	result, err := h.orchestrator.Classes().CallStatic(ctx, caller, class, method, args)
	var thrown *muranopl.Exception
	if fault.KindOf(err) == 0 && errors.As(err, &thrown) {
		return &refusal{status: http.StatusServiceUnavailable, explanation: explanations[http.StatusServiceUnavailable], detail: thrown.Error()}
	}
	if err != nil {
		return detailed(err)
	}
	return c.JSON(http.StatusOK, result)
}

// defaultVersion is the default version of a class in a call of a static action.
const defaultVersion = "=0"

// text reads a text of a body into target, unless it is missing.
func text(fields map[string]any, key string, target *string) error {
	value, there := fields[key]
	if !there || value == nil {
		return nil
	}
	read, ok := value.(string)
	if !ok {
		return fault.New(fault.Invalid, "%s must be a text, not %v", key, value)
	}
	*target = read
	return nil
}
