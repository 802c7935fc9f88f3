package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// draftHandlers list the holders of drafts of an environment.
type draftHandlers struct{ orchestrator *orchestrator.Service }

func (h draftHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/sessions", h.list)
}

// draftJSON is an open session.
type draftJSON struct {
	ID       *string `json:"id"` // null: another user's
	UserID   string  `json:"user_id"`
	UserName string  `json:"user_name"`
	Own      bool    `json:"own"`
	Outdated bool    `json:"outdated"`
	Rejected bool    `json:"rejected"` // its deployment was rejected, before it changed anything
	Version  int64   `json:"version"`
	Created  string  `json:"created"`
	Updated  string  `json:"updated"`
}

func (h draftHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	drafts, err := h.orchestrator.Sessions().Drafts(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	list := make([]draftJSON, len(drafts))
	for i, one := range drafts {
		list[i] = draftJSON{UserID: one.UserID, UserName: one.UserName, Own: one.Own, Outdated: one.Outdated, Rejected: one.Rejected, Version: one.Version,
			Created: stamp(one.Created), Updated: stamp(one.Updated)}
		if one.ID != "" {
			list[i].ID = &one.ID
		}
	}
	return c.JSON(http.StatusOK, struct {
		Sessions []draftJSON `json:"sessions"`
	}{list})
}
