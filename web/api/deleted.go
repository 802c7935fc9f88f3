package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// deletedHandlers answer about environments that were deleted and can be restored.
type deletedHandlers struct{ kept *orchestrator.Undeletion }

func (h deletedHandlers) register(v1 *echo.Group) {
	v1.GET("/deleted-environments", h.needing(h.list))
	v1.POST("/deleted-environments/:deleted/undelete", h.needing(h.undelete))
	v1.DELETE("/deleted-environments/:deleted", h.needing(h.purge))
}

func (h deletedHandlers) needing(handle echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if h.kept == nil {
			return fault.New(fault.NotFound, "This Burano stores no deleted environments")
		}
		return handle(c)
	}
}

// deletedJSON is a deleted environment.
type deletedJSON struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	ProjectID string    `json:"project_id"`
	DeletedBy string    `json:"deleted_by"` // the user's id; "" where that is not known
	Deleted   time.Time `json:"deleted"`
	Expires   time.Time `json:"expires"` // when it is removed for good
	Abandoned bool      `json:"abandoned"`
	Size      int64     `json:"size"` // bytes in the database
}

func (h deletedHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.kept.List(ctx, caller, orchestrator.ListOptions{AllProjects: c.QueryParam("all_tenants") == "true", ProjectID: c.QueryParam("tenant")})
	if err != nil {
		return err
	}
	list := make([]deletedJSON, len(rows))
	for i, row := range rows {
		list[i] = deletedJSON{ID: row.EnvironmentID, Name: row.Name, ProjectID: row.ProjectID, DeletedBy: row.UserID, Deleted: row.Deleted.Time(), Expires: h.kept.Expires(row), Abandoned: row.Abandoned, Size: row.Size}
	}
	return c.JSON(http.StatusOK, map[string]any{"environments": list, "period_seconds": int64(h.kept.Period().Seconds())})
}

func (h deletedHandlers) undelete(c echo.Context) error {
	var given struct {
		Name string `json:"name"` // another one; "" for its former name
	}
	if c.Request().ContentLength != 0 {
		if err := decode(c, &given); err != nil {
			return err
		}
	}
	ctx, caller := calling(c)
	back, err := h.kept.Undelete(ctx, caller, c.Param("deleted"), given.Name)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"id": back.ID, "name": back.Name})
}

func (h deletedHandlers) purge(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.kept.Purge(ctx, caller, c.Param("deleted")); err != nil {
		return err
	}
	return empty(c)
}
