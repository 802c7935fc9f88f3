package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
)

// schemaHandlers answer the routes of the classes' JSON schemas.
type schemaHandlers struct {
	orchestrator *orchestrator.Service
}

func (h schemaHandlers) register(v1 *echo.Group) {
	v1.GET("/schemas/:class", h.show)
	v1.GET("/schemas/:class/:methods", h.show)
}

// classOf is the class that a request names, in Murano's parameters.
func classOf(c echo.Context) engine.ClassName {
	return engine.ClassName{Name: c.Param("class"), Package: c.QueryParam("packageName"), Version: c.QueryParam("classVersion")}
}

func (h schemaHandlers) show(c echo.Context) error {
	var methods []string
	if list := c.Param("methods"); list != "" {
		methods = strings.Split(list, ",")
	}
	ctx, caller := calling(c)
	schemas, err := h.orchestrator.Classes().Schemas(ctx, caller, classOf(c), methods)
	if err != nil {
		return detailed(err)
	}
	return c.JSON(http.StatusOK, schemas)
}
