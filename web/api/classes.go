package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// classHandlers tell what of classes forms are made of.
type classHandlers struct{ orchestrator *orchestrator.Service }

func (h classHandlers) register(v1 *echo.Group) { v1.GET("/classes/:class/actions", h.actions) }

// actionJSON is a public method.
type actionJSON struct {
	Name        string         `json:"name"`
	Static      bool           `json:"static"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	Help        string         `json:"help"`
	Confirm     *string        `json:"confirm"` // null: nothing is to be confirmed
	Arguments   map[string]any `json:"arguments"`
}

// actions lists what the objects of a class offer, and the class itself.
func (h classHandlers) actions(c echo.Context) error {
	ctx, caller := calling(c)
	actions, err := h.orchestrator.ClassActions(ctx, caller, classOf(c))
	if err != nil {
		return err
	}
	list := make([]actionJSON, len(actions))
	for i, one := range actions {
		list[i] = actionJSON{Name: one.Name, Static: one.Static, Title: one.Title, Description: one.Description, Help: one.Help, Arguments: one.Arguments}
		if one.Confirm != "" {
			list[i].Confirm = &one.Confirm
		}
	}
	return c.JSON(http.StatusOK, struct {
		Actions []actionJSON `json:"actions"`
	}{list})
}
