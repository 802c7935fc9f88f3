package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// hibernationHandlers stop the servers of environments, and start them again.
type hibernationHandlers struct {
	hibernations orchestrator.Hibernations
}

func (h hibernationHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/hibernation", h.show)
	v1.GET("/environments/:environment/hibernation/preview", h.preview)
	v1.POST("/environments/:environment/hibernate", h.hibernate)
	v1.POST("/environments/:environment/wake", h.wake)
}

// stoppedServerJSON is a server that a hibernation stops.
type stoppedServerJSON struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Role    *string `json:"role"`    // of a node; null for others
	Cluster *string `json:"cluster"` // the name of its cluster; null for others
}

func stoppedServers(list []store.StoppedServer) []stoppedServerJSON {
	shown := make([]stoppedServerJSON, len(list))
	for i, one := range list {
		shown[i] = stoppedServerJSON{one.ID, one.Name, orNull(one.Role), orNull(one.Cluster)}
	}
	return shown
}

func (h hibernationHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	found, err := h.hibernations.Get(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	answer := struct {
		State        string              `json:"state"`
		Since        *time.Time          `json:"since"` // null for an environment that never slept
		DeploymentID *string             `json:"deployment_id"`
		Servers      []stoppedServerJSON `json:"servers"` // that start when it wakes
	}{State: found.State, DeploymentID: orNull(found.DeploymentID), Servers: stoppedServers(found.Servers)}
	if !found.Since.IsZero() {
		answer.Since = &found.Since
	}
	return c.JSON(http.StatusOK, answer)
}

func (h hibernationHandlers) preview(c echo.Context) error {
	ctx, caller := calling(c)
	plan, err := h.hibernations.Preview(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	answer := struct {
		Does      string              `json:"does"` // hibernate or wake
		Servers   []stoppedServerJSON `json:"servers"`
		Obstacles []string            `json:"obstacles"`
		Notes     []string            `json:"notes"`
	}{store.MethodHibernate, stoppedServers(plan.Servers), append([]string{}, plan.Obstacles...), append([]string{}, plan.Notes...)}
	if plan.Wakes {
		answer.Does = store.MethodWake
	}
	return c.JSON(http.StatusOK, answer)
}

func (h hibernationHandlers) hibernate(c echo.Context) error {
	ctx, caller := calling(c)
	task, err := h.hibernations.Hibernate(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"task_id": task})
}

func (h hibernationHandlers) wake(c echo.Context) error {
	ctx, caller := calling(c)
	task, err := h.hibernations.Wake(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"task_id": task})
}
