package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/internal/identity"
	"github.com/burano/burano/internal/version"
	"github.com/burano/burano/orchestrator/doctor"
	"github.com/burano/burano/orchestrator/openstack"
)

// cloudHandlers make administrators' calls to the cloud beside environments, with the caller's own token.
type cloudHandlers struct {
	mark     func(ctx context.Context, caller identity.Caller, id string, mark *openstack.Mark) error
	projects func(ctx context.Context, caller identity.Caller) ([]identity.Project, error)
	examine  func(ctx context.Context) []doctor.Line
	values   int // in JSON
}

func (h cloudHandlers) register(v1 *echo.Group) {
	v1.PUT("/cloud/images/:image/mark", h.markImage, readBody(h.values))
	v1.DELETE("/cloud/images/:image/mark", h.unmarkImage)
	v1.GET("/projects", h.listProjects)
	v1.GET("/doctor", h.look)
}

// noCloud is the answer where no cloud is asked.
func noCloud() error { return fault.New(fault.NotFound, "This Burano asks no cloud") }

func (h cloudHandlers) markImage(c echo.Context) error {
	if h.mark == nil {
		return noCloud()
	}
	var mark openstack.Mark
	if err := decode(c, &mark); err != nil {
		return err
	}
	if mark.Type == "" {
		return fault.New(fault.Invalid, `Send {"type": TYPE, "title": TITLE}: forms ask for images of a type, such as linux`)
	}
	ctx, caller := calling(c)
	if err := h.mark(ctx, caller, c.Param("image"), &mark); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, mark)
}

func (h cloudHandlers) unmarkImage(c echo.Context) error {
	if h.mark == nil {
		return noCloud()
	}
	ctx, caller := calling(c)
	if err := h.mark(ctx, caller, c.Param("image"), nil); err != nil {
		return err
	}
	return empty(c)
}

func (h cloudHandlers) listProjects(c echo.Context) error {
	if h.projects == nil {
		return noCloud()
	}
	ctx, caller := calling(c)
	projects, err := h.projects(ctx, caller)
	if err != nil {
		return err
	}
	list := make([]projectJSON, len(projects))
	for i, one := range projects {
		list[i] = projectJSON{ID: one.ID, Name: one.Name, DomainID: one.DomainID}
	}
	return c.JSON(http.StatusOK, struct {
		Projects []projectJSON `json:"projects"`
	}{list})
}

// look checks settings and cloud. It takes seconds: it calls every service of the cloud.
func (h cloudHandlers) look(c echo.Context) error {
	if h.examine == nil {
		return noCloud()
	}
	return c.JSON(http.StatusOK, struct {
		Lines []doctor.Line `json:"lines"`
	}{h.examine(c.Request().Context())})
}

// showVersion answers the version of this Burano.
func showVersion(c echo.Context) error {
	return c.JSON(http.StatusOK, struct {
		Version string `json:"version"`
		Commit  string `json:"commit"`
	}{version.Version, version.Commit()})
}

// choicesFunc lists a caller's choices of a kind in a region of the cloud (openstack.Service).
type choicesFunc = func(ctx context.Context, caller identity.Caller, kind, region string) (any, error)

// choiceHandlers answer the choices of forms from the cloud.
type choiceHandlers struct{ choices choicesFunc }

func (h choiceHandlers) register(v1 *echo.Group) { v1.GET("/cloud/:kind", h.list) }

// list answers the caller's choices in a form.
func (h choiceHandlers) list(c echo.Context) error {
	if h.choices == nil {
		return noCloud()
	}
	ctx, caller := calling(c)
	list, err := h.choices(ctx, caller, c.Param("kind"), c.QueryParam("region"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{strings.ReplaceAll(c.Param("kind"), "-", "_"): list})
}
