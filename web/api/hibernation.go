package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/hibernation"
	"github.com/burano/burano/orchestrator/store"
)

// hibernationHandlers stop the servers of environments, and start them again.
type hibernationHandlers struct {
	hibernations orchestrator.Hibernations
}

func (h hibernationHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/hibernation", h.show)
	v1.GET("/environments/:environment/hibernation/preview", h.preview)
	v1.PUT("/environments/:environment/hibernation/schedule", h.setSchedule)
	v1.DELETE("/environments/:environment/hibernation/schedule", h.dropSchedule)
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
	return c.JSON(http.StatusOK, hibernationFields(found))
}

// hibernationJSON is whether an environment sleeps.
type hibernationJSON struct {
	State        string              `json:"state"`
	Since        *time.Time          `json:"since"` // null for an environment that never slept
	DeploymentID *string             `json:"deployment_id"`
	Servers      []stoppedServerJSON `json:"servers"`  // that start when it wakes
	Schedule     *sleepScheduleJSON  `json:"schedule"` // null for none
}

// sleepScheduleJSON is when an environment sleeps and wakes by itself.
type sleepScheduleJSON struct {
	hibernation.Schedule
	UserName  string     `json:"user_name"`
	Updated   time.Time  `json:"updated"`
	NextSleep *time.Time `json:"next_sleep"` // in its zone; null where it has no such times
	NextWake  *time.Time `json:"next_wake"`
	Delegated bool       `json:"delegated"` // whether Burano may carry it out
}

func hibernationFields(found orchestrator.Hibernation) hibernationJSON {
	fields := hibernationJSON{State: found.State, Since: timeOrNull(found.Since), DeploymentID: orNull(found.DeploymentID), Servers: stoppedServers(found.Servers)}
	if one := found.Schedule; one != nil {
		fields.Schedule = &sleepScheduleJSON{Schedule: hibernation.Schedule{Zone: one.Zone, Sleep: append([]string{}, one.Sleep...), Wake: append([]string{}, one.Wake...)}, UserName: one.UserName,
			Updated: one.Set, NextSleep: timeOrNull(one.NextSleep), NextWake: timeOrNull(one.NextWake), Delegated: one.Delegated}
	}
	return fields
}

func timeOrNull(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

func (h hibernationHandlers) setSchedule(c echo.Context) error {
	var given hibernation.Schedule
	ctx, caller := calling(c)
	if _, err := h.hibernations.Get(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	if err := decode(c, &given); err != nil {
		return err
	}
	set, err := h.hibernations.SetSchedule(ctx, caller, c.Param("environment"), given)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, hibernationFields(set))
}

func (h hibernationHandlers) dropSchedule(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.hibernations.DropSchedule(ctx, caller, c.Param("environment")); err != nil {
		return err
	}
	return empty(c)
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
