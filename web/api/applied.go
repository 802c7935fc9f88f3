package api

import (
	"context"
	"net/http"
	"regexp"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/store"
)

// AppliedStore stores the projects' objects under labels.
type AppliedStore interface {
	List(ctx context.Context, projectID, label string) ([]store.Applied, error)
	Set(ctx context.Context, projectID, label string, list []store.Applied) error
}

// appliedHandlers store for clients the objects that were made of files under a label.
type appliedHandlers struct {
	store  AppliedStore
	values int // in JSON
}

func (h appliedHandlers) register(v1 *echo.Group) {
	v1.GET("/applied/:project/:label", h.show)
	v1.PUT("/applied/:project/:label", h.set, readBody(h.values))
}

type appliedJSON struct {
	Label  string         `json:"label"`
	Things []appliedThing `json:"things"`
}

type appliedThing struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// labelForm is the form of labels.
var labelForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// of is the project and the label of a request; the caller must be of that project.
func (h appliedHandlers) of(c echo.Context) (project, label string, err error) {
	_, caller := calling(c)
	if project = c.Param("project"); project != caller.ProjectID {
		return "", "", denied
	}
	if label = c.Param("label"); !labelForm.MatchString(label) {
		return "", "", fault.New(fault.Invalid, "%q is no label: up to 63 letters, digits, dots, dashes and underscores", label)
	}
	return project, label, nil
}

func (h appliedHandlers) show(c echo.Context) error {
	project, label, err := h.of(c)
	if err != nil {
		return err
	}
	ctx, _ := calling(c)
	rows, err := h.store.List(ctx, project, label)
	if err != nil {
		return err
	}
	answer := appliedJSON{Label: label, Things: make([]appliedThing, len(rows))}
	for i, row := range rows {
		answer.Things[i] = appliedThing{row.Kind, row.ID, row.Name}
	}
	return c.JSON(http.StatusOK, answer)
}

func (h appliedHandlers) set(c echo.Context) error {
	project, label, err := h.of(c)
	if err != nil {
		return err
	}
	fields, err := object(c)
	if err != nil {
		return err
	}
	things, isList := fields["things"].([]any)
	if !isList {
		return fault.New(fault.Invalid, `The body should be {"things": [{"kind": …, "id": …, "name": …}]}`)
	}
	var list []store.Applied
	known := map[[2]string]bool{}
	for i, thing := range things {
		fields, _ := thing.(map[string]any)
		text := func(name string) string {
			value, _ := fields[name].(string)
			return value
		}
		one := store.Applied{Kind: text("kind"), ID: text("id"), Name: text("name")}
		if !slices.Contains([]string{"Environment", "Package", "Template"}, one.Kind) || one.ID == "" || len(one.ID) > 255 || one.Name == "" || len(one.Name) > 255 {
			return fault.New(fault.Invalid, "things[%d] needs a kind, which is Environment, Package or Template, an id and a name", i)
		}
		if key := [2]string{one.Kind, one.ID}; !known[key] {
			known[key] = true
			list = append(list, one)
		}
	}
	ctx, _ := calling(c)
	if err := h.store.Set(ctx, project, label, list); err != nil {
		return err
	}
	return h.show(c)
}
