package api

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/store"
)

// historyHandlers answer an environment's former states, restore them, and export them.
type historyHandlers struct {
	history orchestrator.History
	values  int // that a body may have
}

func (h historyHandlers) register(v1 *echo.Group) {
	const environment = "/environments/:environment"
	v1.GET(environment+"/history", h.list)
	v1.GET(environment+"/history/:state", h.show)
	v1.GET(environment+"/history/:state/changes", h.diff)
	v1.POST(environment+"/history/:state/session", h.back, readBody(h.values))
	v1.POST(environment+"/discard", h.discard)
	v1.GET(environment+"/export", h.export)
	v1.POST(environment+"/export", h.exportSealed, readBody(h.values))
}

// usedPackageJSON is a version of a package that a state was made with.
type usedPackageJSON struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	ID      string `json:"id"`
}

// usedImageJSON is an image of servers that a state was made with.
type usedImageJSON struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// pastStateJSON is a state of an environment.
type pastStateJSON struct {
	Number     int64             `json:"number"`
	Deployment string            `json:"deployment"`
	ObjectID   string            `json:"object_id"`
	Method     string            `json:"method"`
	UserID     string            `json:"user_id"`
	UserName   string            `json:"user_name"`
	File       string            `json:"file"`
	Digest     string            `json:"digest"`
	Back       int64             `json:"back"`
	Packages   []usedPackageJSON `json:"packages"`
	Images     []usedImageJSON   `json:"images"`
	Bytes      int64             `json:"bytes"`
	Created    string            `json:"created"`
}

func packagesOf(parts []store.PackagePart) []usedPackageJSON {
	list := make([]usedPackageJSON, len(parts))
	for i, one := range parts {
		list[i] = usedPackageJSON(one)
	}
	return list
}

func stateOf(state orchestrator.State) pastStateJSON {
	images := make([]usedImageJSON, len(state.Parts.Images))
	for i, one := range state.Parts.Images {
		images[i] = usedImageJSON(one)
	}
	return pastStateJSON{Number: state.Number, Deployment: state.Deployment, ObjectID: state.ObjectID, Method: state.Method, UserID: state.UserID, UserName: state.UserName,
		File: state.File.Name, Digest: state.File.Digest, Back: state.Back, Packages: packagesOf(state.Parts.Packages), Images: images, Bytes: state.Bytes, Created: stamp(state.Created)}
}

func (h historyHandlers) list(c echo.Context) error {
	ctx, caller := calling(c)
	list, present, err := h.history.States(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	states := make([]pastStateJSON, len(list))
	for i, one := range list {
		states[i] = stateOf(one)
	}
	return c.JSON(http.StatusOK, struct {
		States  []pastStateJSON `json:"states"`
		Present int64           `json:"present"`
	}{states, present})
}

// numberOf reads the number of a state; "" is 0 where that is allowed.
func numberOf(text string, orNone bool) (int64, error) {
	if text == "" && orNone {
		return 0, nil
	}
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 {
		return 0, fault.New(fault.NotFound, "%q is no number of a state: GET history lists them", text)
	}
	return number, nil
}

func (h historyHandlers) show(c echo.Context) error {
	number, err := numberOf(c.Param("state"), false)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	state, model, err := h.history.State(ctx, caller, c.Param("environment"), number)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		pastStateJSON
		Model map[string]any `json:"model"`
	}{stateOf(state), model})
}

// partChangeJSON is a package or an image that differs.
type partChangeJSON struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func partChanges(list []orchestrator.PartChange) []partChangeJSON {
	changes := make([]partChangeJSON, len(list))
	for i, one := range list {
		changes[i] = partChangeJSON(one)
	}
	return changes
}

// diff answers the differences between a state and another one, or the present environment.
func (h historyHandlers) diff(c echo.Context) error {
	from, err := numberOf(c.Param("state"), false)
	if err != nil {
		return err
	}
	to, err := numberOf(c.QueryParam("to"), true)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	difference, err := h.history.Diff(ctx, caller, c.Param("environment"), from, to)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Changes  []changeJSON     `json:"changes"`
		Packages []partChangeJSON `json:"packages"`
		Images   []partChangeJSON `json:"images"`
	}{changesOf(difference.Changes), partChanges(difference.Packages), partChanges(difference.Images)})
}

// back opens a session with the model of a former state.
func (h historyHandlers) back(c echo.Context) error {
	number, err := numberOf(c.Param("state"), false)
	if err != nil {
		return err
	}
	fields, err := object(c)
	if err != nil {
		return err
	}
	secrets, _ := fields["secrets"].(string)
	if secrets != "" && secrets != "now" && secrets != "then" {
		return fault.New(fault.Invalid, "Secrets are as they are \"now\" or as they were \"then\", not %q", secrets)
	}
	ctx, caller := calling(c)
	session, notes, err := h.history.Back(ctx, caller, c.Param("environment"), number, secrets == "then")
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		environmentSessionJSON
		Notes []string `json:"notes"`
	}{sessionAnswer(session), append([]string{}, notes...)})
}

func (h historyHandlers) discard(c echo.Context) error {
	ctx, caller := calling(c)
	discarded, err := h.history.Discard(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Discarded bool `json:"discarded"`
	}{discarded})
}

func (h historyHandlers) export(c echo.Context) error {
	return h.writeExport(c, nil)
}

// exportSealed is export with secrets that are sealed for a recipient.
func (h historyHandlers) exportSealed(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	recipient, _ := fields["recipient"].(string)
	return h.writeExport(c, &recipient)
}

func (h historyHandlers) writeExport(c echo.Context, recipient *string) error {
	number, err := numberOf(c.QueryParam("state"), true)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	export, err := h.history.Export(ctx, caller, c.Param("environment"), number, recipient)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, struct {
		Name            string            `json:"name"`
		Description     string            `json:"description"`
		Region          string            `json:"region"`
		Metadata        map[string]any    `json:"metadata"`
		State           int64             `json:"state"`
		DefaultNetworks map[string]any    `json:"defaultNetworks"`
		Applications    []any             `json:"applications"`
		Packages        []usedPackageJSON `json:"packages"`
	}{export.Name, export.Description, export.Region, export.Metadata, export.State, export.DefaultNetworks, append([]any{}, export.Applications...), packagesOf(export.Packages)})
}
