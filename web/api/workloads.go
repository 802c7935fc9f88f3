package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator/access"
)

// mostPods limits the number of pods of a scaled workload: ten times Kubernetes' limit on a hundred nodes is a typing error.
const mostPods = 10_000

// recreate ends a pod, which its workload makes again.
func (h runningHandlers) recreate(c echo.Context) error {
	environmentID, objectID, log, err := h.reachLog(c)
	if err != nil {
		return err
	}
	if err := h.clusters.RecreatePod(c.Request().Context(), environmentID, objectID, log.Namespace, log.Pod); err != nil {
		return asked(c, err)
	}
	return empty(c)
}

// reachWorkload is reach, and returns which workload is meant.
func (h runningHandlers) reachWorkload(c echo.Context) (environmentID, objectID string, ref access.WorkloadRef, err error) {
	if environmentID, objectID, err = h.reach(c); err != nil {
		return "", "", ref, err
	}
	ref = access.WorkloadRef{Kind: c.Param("kind"), Namespace: c.Param("namespace"), Name: c.Param("workload")}
	if !kubernetesName.MatchString(ref.Namespace) || !kubernetesName.MatchString(ref.Name) {
		return "", "", ref, fault.New(fault.NotFound, "There is no %s", ref)
	}
	return environmentID, objectID, ref, nil
}

// workload shows a workload with its events.
func (h runningHandlers) workload(c echo.Context) error {
	environmentID, objectID, ref, err := h.reachWorkload(c)
	if err != nil {
		return err
	}
	found, err := h.clusters.Workload(c.Request().Context(), environmentID, objectID, ref)
	if err != nil {
		return asked(c, err)
	}
	return c.JSON(http.StatusOK, found)
}

// scale sets the number of a workload's pods from {"pods": N}.
func (h runningHandlers) scale(c echo.Context) error {
	environmentID, objectID, ref, err := h.reachWorkload(c)
	if err != nil {
		return err
	}
	fields, err := object(c)
	if err != nil {
		return err
	}
	pods, isNumber := fields["pods"].(int64)
	if !isNumber || pods < 0 || pods > mostPods {
		return fault.New(fault.Invalid, `Send {"pods": N}, a whole number from 0 to %d`, mostPods)
	}
	if err := h.clusters.ScaleWorkload(c.Request().Context(), environmentID, objectID, ref, int32(pods)); err != nil {
		return asked(c, err)
	}
	return empty(c)
}

// restart replaces all pods of a workload, by the workload's own rules.
func (h runningHandlers) restart(c echo.Context) error {
	environmentID, objectID, ref, err := h.reachWorkload(c)
	if err != nil {
		return err
	}
	if err := h.clusters.RestartWorkload(c.Request().Context(), environmentID, objectID, ref); err != nil {
		return asked(c, err)
	}
	return empty(c)
}
