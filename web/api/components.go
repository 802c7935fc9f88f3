package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// componentHandlers answer the states of environments and of their components.
type componentHandlers struct {
	orchestrator *orchestrator.Service
}

func (h componentHandlers) register(v1 *echo.Group) {
	v1.GET("/environments", h.list)
	v1.GET("/environments/:environment/components", h.components)
}

// overviewJSON is an environment as in Murano's list, with its state.
type overviewJSON struct {
	listedEnvironment
	State      orchestrator.ComponentState         `json:"state"`
	Components map[orchestrator.ComponentState]int `json:"components"`
}

func (h componentHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	var page *store.Page
	if one, asked, err := pageOf(c); err != nil {
		return err
	} else if asked {
		page = &one
	}
	rows, next, err := h.orchestrator.Environments().Overviews(ctx, caller, listOptions(c), page)
	if err != nil {
		return err
	}
	answer := struct {
		Environments []overviewJSON `json:"environments"`
		Next         string         `json:"next_marker,omitempty"`
	}{make([]overviewJSON, len(rows)), next}
	for i, row := range rows {
		answer.Environments[i] = overviewJSON{listedOf(row.Environment), row.State, row.Components}
	}
	return c.JSON(http.StatusOK, answer)
}

// componentJSON is a component with its state.
type componentJSON struct {
	ID         string                      `json:"id"`
	Type       string                      `json:"type"`
	Name       string                      `json:"name"`
	State      orchestrator.ComponentState `json:"state"`
	Change     *string                     `json:"change"` // added, changed or removed; null for none
	Deployment *componentRunJSON           `json:"deployment"`
	Failures   []componentRunJSON          `json:"failures"`
	Findings   map[string]int              `json:"findings"`
}

// componentRunJSON is a run that decides about the state of a component.
type componentRunJSON struct {
	DeploymentID string  `json:"deployment_id"`
	Kind         string  `json:"kind"`      // deployment, deletion or action
	ObjectID     *string `json:"object_id"` // of an action
	Method       *string `json:"method"`    // of an action
	Failed       bool    `json:"failed"`
	Text         string  `json:"text"`
	Finished     string  `json:"finished"`
}

func componentRunOf(run orchestrator.ComponentRun) componentRunJSON {
	return componentRunJSON{run.ID, run.Kind, orNull(run.ObjectID), orNull(run.Method), run.Failed, run.Text, stamp(run.Ended)}
}

// runsOf are the runs that have decided about a component.
func runsOf(component orchestrator.Component) (deployment *componentRunJSON, failures []componentRunJSON) {
	if component.Deployment != nil {
		one := componentRunOf(*component.Deployment)
		deployment = &one
	}
	failures = []componentRunJSON{}
	for _, one := range component.Failures {
		failures = append(failures, componentRunOf(one))
	}
	return deployment, failures
}

func (h componentHandlers) components(c echo.Context) error {
	ctx, caller := calling(c)
	whole, own, list, err := h.orchestrator.Environments().Components(ctx, caller, c.Param("environment"), sessionOf(c))
	if err != nil {
		return err
	}
	answer := struct {
		State      orchestrator.ComponentState `json:"state"`
		Deployment *componentRunJSON           `json:"deployment"` // of the environment itself
		Failures   []componentRunJSON          `json:"failures"`
		Findings   map[string]int              `json:"findings"`
		Components []componentJSON             `json:"components"`
	}{State: whole.State, Findings: own.Findings, Components: make([]componentJSON, len(list))}
	answer.Deployment, answer.Failures = runsOf(own)
	for i, one := range list {
		deployment, failures := runsOf(one)
		answer.Components[i] = componentJSON{one.ID, one.Type, one.Name, one.State, orNull(one.Change), deployment, failures, one.Findings}
	}
	return c.JSON(http.StatusOK, answer)
}
