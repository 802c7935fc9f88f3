package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
)

// choiceHandlers answer the choices of forms from the cloud.
type choiceHandlers struct {
	choices func(ctx context.Context, caller identity.Caller, kind, region string) (any, error)
}

func (h choiceHandlers) register(v1 *echo.Group) { v1.GET("/cloud/:kind", h.list) }

// list answers the caller's choices in a form.
func (h choiceHandlers) list(c echo.Context) error {
	if h.choices == nil {
		return fault.New(fault.NotFound, "This Burano asks no cloud")
	}
	ctx, caller := calling(c)
	list, err := h.choices(ctx, caller, c.Param("kind"), c.QueryParam("region"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{strings.ReplaceAll(c.Param("kind"), "-", "_"): list})
}
