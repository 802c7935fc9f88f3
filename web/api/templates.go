package api

import (
	"errors"
	"maps"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// templateHandlers answer the routes of environment templates and their applications.
type templateHandlers struct {
	orchestrator *orchestrator.Service
}

func (h templateHandlers) register(v1 *echo.Group) {
	v1.GET("/templates", h.list)
	v1.POST("/templates", h.create)
	v1.GET("/templates/:template", h.show)
	v1.PUT("/templates/:template", h.update)
	v1.DELETE("/templates/:template", h.delete)
	v1.POST("/templates/:template/clone", h.clone)
	v1.POST("/templates/:template/create-environment", h.createEnvironment)
	services{h.getServices, h.addServices, h.putServices, h.deleteServices}.register(v1, "/templates/:template/services")
}

// templateFields are those of a list; services come with a template that is shown.
func templateFields(t orchestrator.Template) map[string]any {
	return map[string]any{"id": t.ID, "name": t.Name, "tenant_id": t.ProjectID, "description_text": t.DescriptionText,
		"is_public": t.Public, "version": t.Version, "created": stamp(t.Created), "updated": stamp(t.Updated)}
}

func writeTemplate(c echo.Context, t orchestrator.Template, err error) error {
	if err != nil {
		return err
	}
	fields := templateFields(t)
	fields["services"] = t.Services
	return c.JSON(http.StatusOK, fields)
}

func (h templateHandlers) list(c echo.Context) error {
	var public *bool
	switch text := c.QueryParam("is_public"); text {
	case "":
	case "true", "True":
		public = new(bool)
		*public = true
	case "false", "False":
		public = new(bool)
	default:
		return fault.New(fault.Invalid, "is_public is true or false, not %q", text)
	}
	page, _, err := pageOf(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	rows, next, err := h.orchestrator.Templates(ctx, caller, public, page)
	if err != nil {
		return err
	}
	list := make([]map[string]any, len(rows))
	for i, row := range rows {
		list[i] = templateFields(row)
	}
	return c.JSON(http.StatusOK, paged("templates", list, next))
}

func (h templateHandlers) create(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.CreateTemplate(ctx, caller, fields)
	if errors.Is(err, orchestrator.ErrTemplateName) {
		return detailed(err)
	}
	if err != nil {
		return err
	}
	// Murano answers with all that was posted.
	maps.Copy(fields, templateFields(row))
	return c.JSON(http.StatusOK, fields)
}

func (h templateHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	row, err := h.orchestrator.Template(ctx, caller, c.Param("template"))
	return writeTemplate(c, row, err)
}

func (h templateHandlers) update(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.UpdateTemplate(ctx, caller, c.Param("template"), fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, templateFields(row))
}

func (h templateHandlers) delete(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.DeleteTemplate(ctx, caller, c.Param("template")); err != nil {
		return err
	}
	return empty(c)
}

func (h templateHandlers) clone(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.CloneTemplate(ctx, caller, c.Param("template"), fields)
	return writeTemplate(c, row, err)
}

func (h templateHandlers) createEnvironment(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	environment, session, err := h.orchestrator.EnvironmentFromTemplate(ctx, caller, c.Param("template"), fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"environment_id": environment, "session_id": session})
}

func (h templateHandlers) getServices(c echo.Context, path []string) (any, error) {
	ctx, caller := calling(c)
	return h.orchestrator.TemplateServices(ctx, caller, c.Param("template"), path)
}

func (h templateHandlers) addServices(c echo.Context, path []string, value any) error {
	ctx, caller := calling(c)
	return h.orchestrator.AddTemplateServices(ctx, caller, c.Param("template"), path, value)
}

func (h templateHandlers) putServices(c echo.Context, path []string, value any) error {
	ctx, caller := calling(c)
	return h.orchestrator.PutTemplateServices(ctx, caller, c.Param("template"), path, value)
}

func (h templateHandlers) deleteServices(c echo.Context, path []string) (any, error) {
	ctx, caller := calling(c)
	row, err := h.orchestrator.DeleteTemplateServices(ctx, caller, c.Param("template"), path)
	return map[string]any{"id": row.ID, "name": row.Name, "tenant_id": row.ProjectID, "services": row.Services,
		"updated": row.Updated.Format("2006-01-02 15:04:05.000000")}, err
}
