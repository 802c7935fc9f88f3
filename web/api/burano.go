package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/orchestrator"
)

// buranoHandlers answer what Murano does not have, below /burano/v1.
type buranoHandlers struct {
	orchestrator *orchestrator.Service
	kubeconfig   func(ctx context.Context, environmentID, objectID string) ([]byte, error)
	cluster      func(ctx context.Context, environmentID, objectID string) (any, error)
	choices      func(ctx context.Context, caller identity.Caller, kind string) (any, error)
}

func (h buranoHandlers) register(v1 *echo.Group) {
	v1.GET("/deployments/:deployment/steps", h.steps)
	v1.GET("/deployments/:deployment/events", h.events)
	v1.POST("/deployments/:deployment/cancel", h.cancel)
	v1.POST("/deployments/:deployment/retry", h.retry)
	v1.GET("/environments/:environment/sessions/:session/preview", h.preview)
	v1.GET("/cloud/:kind", h.cloud)
	v1.GET("/environments/:environment/clusters/:cluster", h.clusterStatus)
	v1.GET("/environments/:environment/clusters/:cluster/kubeconfig", h.clusterKubeconfig)
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

func (h buranoHandlers) steps(c echo.Context) error {
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
func (h buranoHandlers) events(c echo.Context) error {
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
func (h buranoHandlers) cancel(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Cancel(ctx, caller, c.Param("deployment")); err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, map[string]any{})
}

// retry answers 202 with the id of the new deployment as task_id.
func (h buranoHandlers) retry(c echo.Context) error {
	ctx, caller := calling(c)
	id, err := h.orchestrator.Retry(ctx, caller, c.Param("deployment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, map[string]any{"task_id": id})
}

// problemJSON is one thing that is wrong with an object model: at a path like "services[0].name", by the rule of a class or of one of its
// properties.
type problemJSON struct {
	Path    string `json:"path"`
	Class   string `json:"class"`
	Message string `json:"message"`
}

func problems(list []muranopl.Problem) []problemJSON {
	answer := make([]problemJSON, len(list))
	for i, one := range list {
		answer[i] = problemJSON{Path: one.Path, Class: one.Class, Message: one.Wanted}
	}
	return answer
}

// changeJSON is an object that a deployment would add, change or remove.
type changeJSON struct {
	Change     string   `json:"change"` // added, changed, removed
	ID         string   `json:"id"`
	Type       string   `json:"type"`
	Name       string   `json:"name"`
	Path       string   `json:"path"`
	Properties []string `json:"properties"` // of a changed object: those that are other than they were
}

// preview answers what the deployment of a session would do.
func (h buranoHandlers) preview(c echo.Context) error {
	ctx, caller := calling(c)
	preview, err := h.orchestrator.Preview(ctx, caller, c.Param("environment"), c.Param("session"))
	if err != nil {
		return err
	}
	changes := make([]changeJSON, len(preview.Changes))
	for i, one := range preview.Changes {
		changes[i] = changeJSON{Change: one.What, ID: one.ID, Type: one.Type, Name: one.Name, Path: one.Path, Properties: append([]string{}, one.Properties...)}
	}
	return c.JSON(http.StatusOK, map[string]any{"changes": changes, "problems": problems(preview.Problems)})
}

// cloud answers what the caller may choose from in a form.
func (h buranoHandlers) cloud(c echo.Context) error {
	if h.choices == nil {
		return fault.New(fault.NotFound, "This Burano asks no cloud")
	}
	ctx, caller := calling(c)
	list, err := h.choices(ctx, caller, c.Param("kind"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{strings.ReplaceAll(c.Param("kind"), "-", "_"): list})
}

// clusterStatus answers what a cluster is made of and how it is now.
func (h buranoHandlers) clusterStatus(c echo.Context) error {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if h.cluster == nil {
		return fault.New(fault.NotFound, "This Burano asks no clusters")
	}
	status, err := h.cluster(ctx, environmentID, clusterID)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, status)
}

func (h buranoHandlers) clusterKubeconfig(c echo.Context) error {
	environmentID, clusterID := c.Param("environment"), c.Param("cluster")
	ctx, caller := calling(c)
	if err := h.orchestrator.MayReach(ctx, caller, environmentID, clusterID); err != nil {
		return err
	}
	if h.kubeconfig == nil {
		return fault.New(fault.NotFound, "This Burano makes no kubeconfigs")
	}
	config, err := h.kubeconfig(ctx, environmentID, clusterID)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, "application/yaml", config)
}
