package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// deploymentHandlers answer the routes of deployments and their reports.
type deploymentHandlers struct {
	orchestrator *orchestrator.Service
}

func (h deploymentHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/deployments", h.list)
	v1.GET("/environments/:environment/deployments/:deployment", h.reports)
	v1.GET("/deployments", h.listAll)
}

func (h deploymentHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	page, asked, err := pageOf(c)
	if err != nil {
		return err
	}
	if asked {
		rows, next, err := h.orchestrator.Deployments().Page(ctx, caller, c.Param("environment"), page)
		return writeDeploymentPage(c, rows, next, err)
	}
	rows, err := h.orchestrator.Deployments().List(ctx, caller, c.Param("environment"))
	return writeDeployments(c, rows, err)
}

func (h deploymentHandlers) listAll(c echo.Context) error {
	ctx, caller := calling(c)
	page, asked, err := pageOf(c)
	if err != nil {
		return err
	}
	if asked {
		rows, next, err := h.orchestrator.Deployments().ProjectPage(ctx, caller, page)
		return writeDeploymentPage(c, rows, next, err)
	}
	rows, err := h.orchestrator.Deployments().OfProject(ctx, caller)
	return writeDeployments(c, rows, err)
}

// pagedDeployment is a deployment in a page: without its model.
type pagedDeployment struct {
	Action        *store.Action `json:"action"`
	Created       string        `json:"created"`
	EnvironmentID string        `json:"environment_id"`
	Finished      any           `json:"finished"`
	ID            string        `json:"id"`
	Started       string        `json:"started"`
	State         string        `json:"state"`
	Updated       string        `json:"updated"`
}

// listedDeployment is a deployment in Murano's list, or a single one.
type listedDeployment struct {
	Action        *store.Action  `json:"action"`
	Created       string         `json:"created"`
	Description   map[string]any `json:"description"`
	EnvironmentID string         `json:"environment_id"`
	Finished      any            `json:"finished"`
	ID            string         `json:"id"`
	Result        map[string]any `json:"result"`
	Started       string         `json:"started"`
	State         string         `json:"state"`
	Updated       string         `json:"updated"`
}

func listedFields(row orchestrator.Deployment) listedDeployment {
	return listedDeployment{Action: row.Action, Created: stamp(row.Created), Description: row.Description, EnvironmentID: row.EnvironmentID,
		Finished: stampOrNil(row.Finished), ID: row.ID, Result: row.Result, Started: stamp(row.Started), State: row.State, Updated: stamp(row.Updated)}
}

func pagedFields(row orchestrator.Deployment) pagedDeployment {
	return pagedDeployment{Action: row.Action, Created: stamp(row.Created), EnvironmentID: row.EnvironmentID, Finished: stampOrNil(row.Finished),
		ID: row.ID, Started: stamp(row.Started), State: row.State, Updated: stamp(row.Updated)}
}

func writeDeploymentPage(c echo.Context, rows []orchestrator.Deployment, next string, err error) error {
	if err != nil {
		return err
	}
	list := make([]pagedDeployment, len(rows))
	for i, row := range rows {
		list[i] = pagedFields(row)
	}
	return c.JSON(http.StatusOK, struct {
		Deployments []pagedDeployment `json:"deployments"`
		Next        string            `json:"next_marker,omitempty"`
	}{list, next})
}

func writeDeployments(c echo.Context, rows []orchestrator.Deployment, err error) error {
	if err != nil {
		return err
	}
	list := make([]listedDeployment, len(rows))
	for i, row := range rows {
		list[i] = listedFields(row)
	}
	return c.JSON(http.StatusOK, struct {
		Deployments []listedDeployment `json:"deployments"`
	}{list})
}

// reportJSON is one line of a deployment's log.
type reportJSON struct {
	Created  string  `json:"created"`
	Details  *string `json:"details"`
	Entity   *string `json:"entity"`
	EntityID *string `json:"entity_id"`
	ID       string  `json:"id"`
	Level    string  `json:"level"`
	TaskID   string  `json:"task_id"`
	Text     string  `json:"text"`
	Updated  string  `json:"updated"`
}

func reportOf(r orchestrator.Report) reportJSON {
	return reportJSON{stamp(r.Created), r.Details, r.Entity, r.EntityID, r.ID, r.Level, r.TaskID, r.Text, stamp(r.Created)}
}

func (h deploymentHandlers) reports(c echo.Context) error {
	ctx, caller := calling(c)
	page, _, err := pageOf(c)
	if err != nil {
		return err
	}
	rows, next, err := h.orchestrator.Deployments().ReportPage(ctx, caller, c.Param("environment"), c.Param("deployment"), c.QueryParams()["service_id"], page)
	if err != nil {
		return err
	}
	return answerReports(c, rows, next)
}

// answerReports answers with a page of reports; next is the marker of the page that follows, "" after the last one.
func answerReports(c echo.Context, rows []orchestrator.Report, next string) error {
	list := make([]reportJSON, len(rows))
	for i, row := range rows {
		list[i] = reportOf(row)
	}
	return c.JSON(http.StatusOK, struct {
		Next    string       `json:"next_marker,omitempty"`
		Reports []reportJSON `json:"reports"`
	}{next, list})
}
