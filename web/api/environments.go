package api

import (
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/orchestrator"
)

// environmentHandlers answer the routes of environments, their sessions and their applications.
type environmentHandlers struct {
	orchestrator *orchestrator.Service
}

func (h environmentHandlers) register(v1 *echo.Group) {
	v1.GET("/environments", h.list)
	v1.POST("/environments", h.create)
	v1.GET("/environments/:environment", h.show)
	v1.PUT("/environments/:environment", h.rename)
	v1.DELETE("/environments/:environment", h.delete)
	v1.GET("/environments/:environment/lastStatus", h.lastStatus)
	v1.GET("/environments/:environment/model", h.model)
	v1.GET("/environments/:environment/model/*", h.model)
	v1.PATCH("/environments/:environment/model", h.patchModel)
	v1.PATCH("/environments/:environment/model/", h.patchModel)

	v1.POST("/environments/:environment/configure", h.configure)
	v1.GET("/environments/:environment/sessions/:session", h.showSession)
	v1.DELETE("/environments/:environment/sessions/:session", h.deleteSession)
	v1.POST("/environments/:environment/sessions/:session/deploy", h.deploy)

	services{h.getServices, h.addServices, h.putServices, h.deleteServices}.register(v1, "/environments/:environment/services")
}

// Answers have their fields in the order of their names, as Murano's do.

// environmentJSON is an environment that was made or renamed.
type environmentJSON struct {
	Created         string `json:"created"`
	DescriptionText string `json:"description_text"`
	ID              string `json:"id"`
	Name            string `json:"name"`
	ProjectID       string `json:"tenant_id"`
	Updated         string `json:"updated"`
	Version         int64  `json:"version"`
}

func environmentOf(e orchestrator.Environment) environmentJSON {
	return environmentJSON{stamp(e.Created), e.DescriptionText, e.ID, e.Name, e.ProjectID, stamp(e.Updated), e.Version}
}

// shownEnvironment is an environment that is shown by itself.
type shownEnvironment struct {
	orchestrator.Environment
}

func (e shownEnvironment) parts() any { return e.Services }

// appendJSON implements appender.
func (e shownEnvironment) appendJSON(text []byte, most int) (_ []byte, err error) {
	var acquiredBy any // the session that is deploying
	if e.AcquiredBy != "" {
		acquiredBy = e.AcquiredBy
	}
	for _, field := range []struct {
		before string
		value  any
	}{
		{`{"acquired_by":`, acquiredBy}, {`,"created":`, stamp(e.Created)}, {`,"description_text":`, e.DescriptionText}, {`,"id":`, e.ID}, {`,"name":`, e.Name},
		{`,"services":`, e.Services}, {`,"status":`, e.Status}, {`,"tenant_id":`, e.ProjectID}, {`,"updated":`, stamp(e.Updated)}, {`,"version":`, e.Version},
	} {
		if text, err = appendJSON(append(text, field.before...), field.value, most); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// environmentsJSON is a list of environments.
type environmentsJSON struct {
	Environments []listedEnvironment `json:"environments"`
	Next         string              `json:"next_marker,omitempty"`
}

// listedEnvironment is an environment in a list.
type listedEnvironment struct {
	Created         string `json:"created"`
	DescriptionText string `json:"description_text"`
	ID              string `json:"id"`
	Name            string `json:"name"`
	Status          string `json:"status"`
	ProjectID       string `json:"tenant_id"`
	Updated         string `json:"updated"`
	Version         int64  `json:"version"`
}

func listedOf(e orchestrator.Environment) listedEnvironment {
	return listedEnvironment{stamp(e.Created), e.DescriptionText, e.ID, e.Name, e.Status, e.ProjectID, stamp(e.Updated), e.Version}
}

// listOptions are Murano's parameters of a list of environments.
func listOptions(c echo.Context) orchestrator.ListOptions {
	return orchestrator.ListOptions{AllProjects: strings.EqualFold(c.QueryParam("all_tenants"), "true"), ProjectID: c.QueryParam("tenant")}
}

func (h environmentHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	options := listOptions(c)
	page, asked, err := pageOf(c)
	if err != nil {
		return err
	}
	var rows []orchestrator.Environment
	var next string
	if asked {
		rows, next, err = h.orchestrator.Environments().Page(ctx, caller, options, page)
	} else {
		rows, err = h.orchestrator.Environments().List(ctx, caller, options)
	}
	if err != nil {
		return err
	}
	list := make([]listedEnvironment, len(rows))
	for i, e := range rows {
		list[i] = listedOf(e)
	}
	return c.JSON(http.StatusOK, environmentsJSON{list, next})
}

func (h environmentHandlers) create(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.Environments().Create(ctx, caller, fields)
	if err != nil {
		return err
	}
	// Murano answers with the posted fields, and puts these two into the header.
	if header, ok := fields["?"].(map[string]any); ok {
		header["type"], header["metadata"] = "io.murano.Environment", map[string]any{}
	}
	return writeOver(c, fields, environmentOf(row))
}

func (h environmentHandlers) show(c echo.Context) error {
	ctx, caller := calling(c)
	row, err := h.orchestrator.Environments().Get(ctx, caller, c.Param("environment"), sessionOf(c))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, shownEnvironment{row})
}

func (h environmentHandlers) rename(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	row, err := h.orchestrator.Environments().Rename(ctx, caller, c.Param("environment"), fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, environmentOf(row))
}

func (h environmentHandlers) delete(c echo.Context) error {
	abandon := strings.EqualFold(c.QueryParam("abandon"), "true")
	ctx, caller := calling(c)
	if err := h.orchestrator.Environments().Delete(ctx, caller, c.Param("environment"), abandon); err != nil {
		return err
	}
	return empty(c)
}

// lastStatusesJSON has by the id of an application its last report; null for one without reports.
type lastStatusesJSON struct {
	Last map[string]*reportJSON `json:"lastStatuses"`
}

func (h environmentHandlers) lastStatus(c echo.Context) error {
	ctx, caller := calling(c)
	last, err := h.orchestrator.Environments().LastReports(ctx, caller, c.Param("environment"), sessionOf(c))
	if err != nil {
		return err
	}
	answer := lastStatusesJSON{map[string]*reportJSON{}}
	for id, report := range last {
		answer.Last[id] = nil
		if report != nil {
			one := reportOf(*report)
			answer.Last[id] = &one
		}
	}
	return c.JSON(http.StatusOK, answer)
}

func (h environmentHandlers) model(c echo.Context) error {
	path, err := pathBelow(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	var value any
	if c.QueryParam("deployed") == "true" {
		value, err = h.orchestrator.Models().Deployed(ctx, caller, c.Param("environment"), path)
	} else {
		value, err = h.orchestrator.Models().Get(ctx, caller, c.Param("environment"), sessionOf(c), path)
	}
	if err != nil {
		return err
	}
	return answer(c, value)
}

func (h environmentHandlers) patchModel(c echo.Context) error {
	if mediaType, _, _ := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType)); mediaType != mimeModelPatch {
		return unsupported(mediaType)
	}
	patch, _ := body(c)
	ctx, caller := calling(c)
	model, err := h.orchestrator.Models().Patch(ctx, caller, c.Param("environment"), sessionOf(c), patch)
	if errors.Is(err, orchestrator.ErrEmptyPatch) || errors.Is(err, orchestrator.ErrPatchMisses) {
		return detailed(err)
	}
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, model)
}

// environmentSessionJSON is a session, which is a draft of an environment.
type environmentSessionJSON struct {
	Created       string `json:"created"`
	EnvironmentID string `json:"environment_id"`
	ID            string `json:"id"`
	State         string `json:"state"`
	Updated       string `json:"updated"`
	UserID        string `json:"user_id"`
	Version       int64  `json:"version"`
}

func sessionAnswer(s orchestrator.Session) environmentSessionJSON {
	return environmentSessionJSON{stamp(s.Created), s.EnvironmentID, s.ID, s.State, stamp(s.Updated), s.UserID, s.Version}
}

func (h environmentHandlers) configure(c echo.Context) error {
	ctx, caller := calling(c)
	session, err := h.orchestrator.Sessions().Open(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, sessionAnswer(session))
}

func (h environmentHandlers) showSession(c echo.Context) error {
	ctx, caller := calling(c)
	session, err := h.orchestrator.Sessions().Get(ctx, caller, c.Param("environment"), c.Param("session"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, sessionAnswer(session))
}

func (h environmentHandlers) deleteSession(c echo.Context) error {
	ctx, caller := calling(c)
	if err := h.orchestrator.Sessions().Delete(ctx, caller, c.Param("environment"), c.Param("session")); err != nil {
		return err
	}
	return empty(c)
}

func (h environmentHandlers) deploy(c echo.Context) error {
	ctx, caller := calling(c)
	file := orchestrator.File{Name: c.QueryParam("file"), Digest: c.QueryParam("digest")}
	confirmed := orchestrator.Confirmed{MayDestroy: c.QueryParams()["allow_destroy"], Plan: c.QueryParam("plan")}
	if err := h.orchestrator.Sessions().DeployFile(ctx, caller, c.Param("environment"), c.Param("session"), file, confirmed); err != nil {
		return err
	}
	return empty(c)
}

func (h environmentHandlers) getServices(c echo.Context, path []string) (any, error) {
	ctx, caller := calling(c)
	return h.orchestrator.Models().Services(ctx, caller, c.Param("environment"), sessionOf(c), path)
}

// validate reports whether the request wants a draft refused that could not be deployed, which Murano cannot do.
func validate(c echo.Context) bool { return strings.EqualFold(c.QueryParam("validate"), "true") }

func (h environmentHandlers) addServices(c echo.Context, path []string, value any) error {
	ctx, caller := calling(c)
	err := h.orchestrator.Models().AddServices(ctx, caller, c.Param("environment"), sessionOf(c), path, value, validate(c))
	if errors.Is(err, orchestrator.ErrNoApplication) {
		return detailed(err)
	}
	return err
}

func (h environmentHandlers) putServices(c echo.Context, path []string, value any) error {
	ctx, caller := calling(c)
	return h.orchestrator.Models().PutServices(ctx, caller, c.Param("environment"), sessionOf(c), path, value, validate(c))
}

func (h environmentHandlers) deleteServices(c echo.Context, path []string) (any, error) {
	ctx, caller := calling(c)
	return nil, h.orchestrator.Models().DeleteServices(ctx, caller, c.Param("environment"), sessionOf(c), path)
}
