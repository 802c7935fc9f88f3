package api

import (
	"errors"
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

// templateJSON is a template in a list, or one that was made or changed.
type templateJSON struct {
	Created         string `json:"created"`
	DescriptionText string `json:"description_text"`
	ID              string `json:"id"`
	Public          bool   `json:"is_public"`
	Name            string `json:"name"`
	ProjectID       string `json:"tenant_id"`
	Updated         string `json:"updated"`
	Version         int64  `json:"version"`
}

func templateOf(t orchestrator.Template) templateJSON {
	return templateJSON{stamp(t.Created), t.DescriptionText, t.ID, t.Public, t.Name, t.ProjectID, stamp(t.Updated), t.Version}
}

// templatesJSON is a list of templates.
type templatesJSON struct {
	Next      string         `json:"next_marker,omitempty"`
	Templates []templateJSON `json:"templates"`
}

// shownTemplate is a template that is shown by itself.
type shownTemplate struct {
	Created         string `json:"created"`
	DescriptionText string `json:"description_text"`
	ID              string `json:"id"`
	Public          bool   `json:"is_public"`
	Name            string `json:"name"`
	Services        []any  `json:"services"`
	ProjectID       string `json:"tenant_id"`
	Updated         string `json:"updated"`
	Version         int64  `json:"version"`
}

func writeTemplate(c echo.Context, t orchestrator.Template, err error) error {
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shownTemplate{stamp(t.Created), t.DescriptionText, t.ID, t.Public, t.Name, t.Services, t.ProjectID, stamp(t.Updated), t.Version})
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
	rows, next, err := h.orchestrator.Templates().List(ctx, caller, public, page)
	if err != nil {
		return err
	}
	list := make([]templateJSON, len(rows))
	for i, row := range rows {
		list[i] = templateOf(row)
	}
	return c.JSON(http.StatusOK, templatesJSON{next, list})
}

func (h templateHandlers) create(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.Templates().Create(ctx, caller, fields)
	if errors.Is(err, orchestrator.ErrTemplateName) {
		return detailed(err)
	}
	if err != nil {
		return err
	}
	// Murano answers with the posted fields.
	return writeOver(c, fields, templateOf(row))
}

func (h templateHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	row, err := h.orchestrator.Templates().Get(ctx, caller, c.Param("template"))
	return writeTemplate(c, row, err)
}

func (h templateHandlers) update(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.Templates().Update(ctx, caller, c.Param("template"), fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, templateOf(row))
}

func (h templateHandlers) delete(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Templates().Delete(ctx, caller, c.Param("template")); err != nil {
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
	row, err := h.orchestrator.Templates().Clone(ctx, caller, c.Param("template"), fields)
	return writeTemplate(c, row, err)
}

// draftedJSON is an environment that was made of a template, with the session that drafts its applications.
type draftedJSON struct {
	Environment string `json:"environment_id"`
	Session     string `json:"session_id"`
}

func (h templateHandlers) createEnvironment(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	environment, session, err := h.orchestrator.Templates().CreateEnvironment(ctx, caller, c.Param("template"), fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, draftedJSON{environment, session})
}

func (h templateHandlers) getServices(c echo.Context, path []string) (any, error) {
	ctx, caller := calling(c)
	return h.orchestrator.Templates().Services(ctx, caller, c.Param("template"), path)
}

func (h templateHandlers) addServices(c echo.Context, path []string, value any) error {
	ctx, caller := calling(c)
	return h.orchestrator.Templates().AddServices(ctx, caller, c.Param("template"), path, value)
}

func (h templateHandlers) putServices(c echo.Context, path []string, value any) error {
	ctx, caller := calling(c)
	return h.orchestrator.Templates().PutServices(ctx, caller, c.Param("template"), path, value)
}

// reducedTemplate is a template from which applications were removed.
type reducedTemplate struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Services  []any  `json:"services"`
	ProjectID string `json:"tenant_id"`
	Updated   string `json:"updated"`
}

func (h templateHandlers) deleteServices(c echo.Context, path []string) (any, error) {
	ctx, caller := calling(c)
	row, err := h.orchestrator.Templates().DeleteServices(ctx, caller, c.Param("template"), path)
	return reducedTemplate{row.ID, row.Name, row.Services, row.ProjectID, row.Updated.Format("2006-01-02 15:04:05.000000")}, err
}
