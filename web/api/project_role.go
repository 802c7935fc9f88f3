package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// projectRoleHandlers answer about the role with which projects let Burano work in them.
type projectRoleHandlers struct {
	projects *orchestrator.ProjectRoles
}

func (h projectRoleHandlers) register(v1 *echo.Group) {
	v1.GET("/projects/:project/role", h.show)
	v1.PUT("/projects/:project/role", h.enable)
	v1.DELETE("/projects/:project/role", h.disable)
}

type projectRoleJSON struct {
	ProjectID string     `json:"project_id"`
	Enabled   bool       `json:"enabled"`
	User      userJSON   `json:"user"` // Burano's user, which has the roles
	Roles     []string   `json:"roles"`
	EnabledBy string     `json:"enabled_by"`
	Since     *time.Time `json:"since"`
	Problem   string     `json:"problem"` // the reason why tasks fail though it is enabled
}

type userJSON struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Domain string `json:"domain"`
}

func projectRoleFields(role orchestrator.ProjectRole) projectRoleJSON {
	shown := projectRoleJSON{ProjectID: role.ProjectID, Enabled: role.Enabled, User: userJSON{role.User.ID, role.User.Name, role.User.Domain}, Roles: role.Roles,
		EnabledBy: role.By, Problem: role.Problem}
	if role.Enabled {
		shown.Since = &role.Since
	}
	return shown
}

func (h projectRoleHandlers) show(c echo.Context) error {
	if h.projects == nil {
		return noCloud()
	}
	ctx, caller := calling(c)
	role, err := h.projects.Show(ctx, caller, c.Param("project"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, projectRoleFields(role))
}

func (h projectRoleHandlers) enable(c echo.Context) error {
	if h.projects == nil {
		return noCloud()
	}
	ctx, caller := calling(c)
	role, err := h.projects.Enable(ctx, caller, c.Param("project"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, projectRoleFields(role))
}

func (h projectRoleHandlers) disable(c echo.Context) error {
	if h.projects == nil {
		return noCloud()
	}
	ctx, caller := calling(c)
	if err := h.projects.Disable(ctx, caller, c.Param("project")); err != nil {
		return err
	}
	return h.show(c)
}
