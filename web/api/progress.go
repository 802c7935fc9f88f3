package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
)

// progressHandlers show a deployment's progress, and end it or try it again.
type progressHandlers struct {
	orchestrator *orchestrator.Service
	limits       Limits
}

func (h progressHandlers) register(v1 *echo.Group) {
	v1.GET("/deployments/:deployment", h.deployment)
	v1.GET("/deployments/:deployment/progress", h.progress)
	v1.GET("/deployments/:deployment/steps", h.steps)
	v1.GET("/environments/:environment/reports", h.reports)
	v1.GET("/deployments/:deployment/events", h.events)
	v1.POST("/deployments/:deployment/cancel", h.cancel)
	v1.POST("/deployments/:deployment/retry", h.retry)
}

// deployment shows one deployment as Murano's lists do.
func (h progressHandlers) deployment(c echo.Context) error {
	ctx, caller := calling(c)
	row, err := h.orchestrator.Deployments().Get(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listedFields(row))
}

// stepJSON is one native step. Times are RFC 3339 with microseconds: steps are compared to each other.
type stepJSON struct {
	ID       string     `json:"id"`
	WaitsFor []string   `json:"waits_for"`
	Object   string     `json:"object"`
	Class    string     `json:"class"`
	Name     string     `json:"name"`
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished"`
	Seconds  *float64   `json:"seconds"` // null while it runs, as finished is
	Error    *string    `json:"error"`
}

// stateJSON is the state of a deployment, for its followers.
type stateJSON struct {
	State string `json:"state"`
}

// taskJSON names a deployment or action that has begun.
type taskJSON struct {
	ID string `json:"task_id"`
}

func (h progressHandlers) steps(c echo.Context) error {
	ctx, caller := calling(c)
	rows, err := h.orchestrator.Deployments().Steps(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	steps := make([]stepJSON, len(rows))
	for i, row := range rows {
		steps[i] = stepJSON{ID: row.ID, WaitsFor: append([]string{}, row.WaitsFor...), Object: row.ObjectID, Class: row.Class, Name: row.Name, Started: row.Started, Finished: row.Finished}
		if row.Finished != nil {
			seconds := row.Finished.Sub(row.Started).Seconds()
			steps[i].Seconds = &seconds
		}
		if row.Error != "" {
			steps[i].Error = &row.Error
		}
	}
	return c.JSON(http.StatusOK, struct {
		Steps []stepJSON `json:"steps"`
	}{steps})
}

// progressJSON is a deployment's progress.
type progressJSON struct {
	pagedDeployment
	Reports int               `json:"reports"`
	Steps   progressStepsJSON `json:"steps"`
}

type progressStepsJSON struct {
	Begun  int `json:"begun"`
	Done   int `json:"done"`
	Failed int `json:"failed"`
}

// progress shows a deployment without its model.
func (h progressHandlers) progress(c echo.Context) error {
	ctx, caller := calling(c)
	progress, err := h.orchestrator.Deployments().Progress(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, progressJSON{pagedFields(progress.Deployment), progress.Reports,
		progressStepsJSON{Begun: progress.Steps, Done: progress.Done, Failed: progress.Failed}})
}

// reports answers an object's reports in all runs.
func (h progressHandlers) reports(c echo.Context) error {
	ctx, caller := calling(c)
	page, _, err := pageOf(c)
	if err != nil {
		return err
	}
	if page.Limit == 0 {
		page.Limit = maxPage
	}
	object := c.QueryParam("object")
	if err := h.orchestrator.Environments().MaySee(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	if object == "" {
		return fault.New(fault.Invalid, "Say of which object: object=ID")
	}
	rows, next, err := h.orchestrator.Deployments().ObjectReports(ctx, caller, c.Param("environment"), object, page)
	if err != nil {
		return err
	}
	return answerReports(c, rows, next)
}

// events streams a deployment's log as server-sent events (WHATWG HTML, section 9.2). "report" has the report as JSON and its number as the event's id.
// "state" has {"state": …} at first and after each change. "end" with {"state": …} is the last. While nothing happens there are comments, so that no proxy
// closes the connection as dead. A client that returns with Last-Event-ID continues there; one that does not read is disconnected.
func (h progressHandlers) events(c echo.Context) error {
	after, _ := strconv.ParseInt(c.Request().Header.Get("Last-Event-ID"), 10, 64)
	stream := newEventStream(c, h.limits)
	defer stream.close()
	ctx, caller := calling(c)
	state, err := h.orchestrator.Deployments().Follow(ctx, caller, c.Param("deployment"), orchestrator.Follower{
		After: after,
		Report: func(report orchestrator.Report) error {
			return stream.send("report", strconv.FormatInt(report.Number, 10), reportOf(report))
		},
		State: func(state string) error { return stream.send("state", "", stateJSON{state}) },
		Idle:  stream.idle,
		Every: h.limits.Idle,
	})
	switch {
	case errors.Is(err, errUnread):
		return nil
	case ctx.Err() != nil:
		return stream.leave(ctx)
	case err != nil:
		return err
	}
	if err := stream.send("end", "", stateJSON{state}); !errors.Is(err, errUnread) {
		return err
	}
	return nil
}

// cancel answers 202 when the deployment is marked; its worker stops at the next step.
func (h progressHandlers) cancel(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Deployments().Cancel(ctx, caller, c.Param("deployment")); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, struct{}{})
}

// retry answers 202 with the id of the new deployment as task_id.
func (h progressHandlers) retry(c echo.Context) error {
	ctx, caller := calling(c)
	id, err := h.orchestrator.Deployments().Retry(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, taskJSON{id})
}
