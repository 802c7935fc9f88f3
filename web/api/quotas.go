package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/quota"
)

// QuotaStore stores a project's limits of some resources.
type QuotaStore interface {
	Quotas(ctx context.Context, projectID string) (map[string]quota.Usage, error)
	SetQuotas(ctx context.Context, projectID string, limits quota.Limits) error
	ClearQuotas(ctx context.Context, projectID string) error
}

// quotaHandlers answer quotas of projects: to members their own, to administrators any. Administrators also set them.
type quotaHandlers struct {
	stores []QuotaStore // each has resources of its own
	values int          // in JSON
}

func (h quotaHandlers) register(v1 *echo.Group) {
	v1.GET("/quotas/:project", h.show)
	v1.PUT("/quotas/:project", h.set, readBody(h.values))
	v1.DELETE("/quotas/:project", h.clear)
}

type projectQuotas struct {
	ProjectID string                 `json:"project_id"`
	Quotas    map[string]quota.Usage `json:"quotas"`
}

func (h quotaHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	project := c.Param("project")
	if project != caller.ProjectID && !caller.Admin {
		return denied
	}
	answer := projectQuotas{ProjectID: project, Quotas: map[string]quota.Usage{}}
	for _, store := range h.stores {
		usage, err := store.Quotas(ctx, project)
		if err != nil {
			return err
		}
		maps.Copy(answer.Quotas, usage)
	}
	return c.JSON(http.StatusOK, answer)
}

// set changes the limits that the body names.
func (h quotaHandlers) set(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	limits := quota.Limits{}
	for resource, value := range fields {
		limit, ok := value.(int64)
		if !ok || limit < quota.Unlimited {
			return fault.New(fault.Invalid, "The quota for %s must be a whole number: 0 or more, or %d for no limit", resource, quota.Unlimited)
		}
		limits[resource] = limit
	}
	if len(limits) == 0 {
		return fault.New(fault.Invalid, `The body should be a JSON object of resources and limits, such as {"environments": 10}`)
	}
	ctx, _ := calling(c)
	project := c.Param("project")
	parts := make([]quota.Limits, len(h.stores))
	var known []string
	for i, store := range h.stores {
		usage, err := store.Quotas(ctx, project)
		if err != nil {
			return err
		}
		parts[i] = quota.Limits{}
		for resource := range usage {
			known = append(known, resource)
			if limit, named := limits[resource]; named {
				parts[i][resource] = limit
				delete(limits, resource)
			}
		}
	}
	if len(limits) > 0 {
		return fault.New(fault.Invalid, "There is no quota for %s; there are %s", slices.Sorted(maps.Keys(limits))[0], strings.Join(slices.Sorted(slices.Values(known)), ", "))
	}
	for i, store := range h.stores {
		if err := store.SetQuotas(ctx, project, parts[i]); err != nil {
			return err
		}
	}
	return h.show(c)
}

// clear makes the server's settings valid for the project again.
func (h quotaHandlers) clear(c echo.Context) error {
	ctx, _ := calling(c)
	for _, store := range h.stores {
		if err := store.ClearQuotas(ctx, c.Param("project")); err != nil {
			return err
		}
	}
	return h.show(c)
}
