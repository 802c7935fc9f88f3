package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// progressHandlers show what a deployment does, and end it or try it again.
type progressHandlers struct{ orchestrator *orchestrator.Service }

func (h progressHandlers) register(v1 *echo.Group) {
	v1.GET("/deployments/:deployment", h.deployment)
	v1.GET("/deployments/:deployment/steps", h.steps)
	v1.GET("/deployments/:deployment/events", h.events)
	v1.POST("/deployments/:deployment/cancel", h.cancel)
	v1.POST("/deployments/:deployment/retry", h.retry)
}

// deployment shows one deployment as Murano's lists do.
func (h progressHandlers) deployment(c echo.Context) error {
	ctx, caller := calling(c)
	row, err := h.orchestrator.Deployment(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listedFields(row))
}

// stepJSON is one native step. Times are RFC 3339 with microseconds: steps are compared to each other.
type stepJSON struct {
	Object   string     `json:"object"`
	Class    string     `json:"class"`
	Name     string     `json:"name"`
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished"`
	Seconds  *float64   `json:"seconds"` // null while it runs, as finished is
	Error    *string    `json:"error"`
}

func (h progressHandlers) steps(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Steps(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	steps := make([]stepJSON, len(rows))
	for i, row := range rows {
		steps[i] = stepJSON{Object: row.ObjectID, Class: row.Class, Name: row.Name, Started: row.Started, Finished: row.Finished}
		if row.Finished != nil {
			seconds := row.Finished.Sub(row.Started).Seconds()
			steps[i].Seconds = &seconds
		}
		if row.Error != "" {
			steps[i].Error = &row.Error
		}
	}
	return c.JSON(http.StatusOK, map[string]any{"steps": steps})
}

// events streams a deployment's log as server-sent events (WHATWG HTML, section 9.2): "report" with the report as JSON and its
// number as the event's id; "state" with {"state": …} at first and when it has changed; and at the end "end" with {"state": …}. A client that
// comes back with Last-Event-ID goes on there.
func (h progressHandlers) events(c echo.Context) error {
	after, _ := strconv.ParseInt(c.Request().Header.Get("Last-Event-ID"), 10, 64)
	response := c.Response()
	send := func(name, id string, data any) error {
		text, err := json.Marshal(data)
		if err != nil {
			return err
		}
		if !response.Committed {
			response.Header().Set(echo.HeaderContentType, "text/event-stream")
			response.Header().Set(echo.HeaderCacheControl, "no-store")
			response.WriteHeader(http.StatusOK)
		}
		if id != "" {
			id = "id: " + id + "\n"
		}
		if _, err := fmt.Fprintf(response, "event: %s\n%sdata: %s\n\n", name, id, text); err != nil {
			return err
		}
		return http.NewResponseController(response).Flush()
	}
	ctx, caller := calling(c)
	state, err := h.orchestrator.Follow(ctx, caller, c.Param("deployment"), after, func(report orchestrator.Report) error {
		return send("report", strconv.FormatInt(report.Number, 10), reportFields(report))
	}, func(state string) error { return send("state", "", map[string]any{"state": state}) })
	if ctx.Err() != nil {
		return nil // the client has gone
	}
	if err != nil {
		return err
	}
	return send("end", "", map[string]any{"state": state})
}

// cancel answers 202 when the wish is written; the deployment ends soon after.
func (h progressHandlers) cancel(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Cancel(ctx, caller, c.Param("deployment")); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, map[string]any{})
}

// retry answers 202 with the id of the new deployment as task_id.
func (h progressHandlers) retry(c echo.Context) error {
	ctx, caller := calling(c)
	id, err := h.orchestrator.Retry(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, map[string]any{"task_id": id})
}
