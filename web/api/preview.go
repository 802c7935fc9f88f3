package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
)

// previewHandlers answer what a deployment, or a deletion, would do.
type previewHandlers struct {
	orchestrator *orchestrator.Service
	deleted      *orchestrator.Undeletion
	values       int // that a body may have
}

func (h previewHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/sessions/:session/preview", h.preview)
	v1.POST("/preview", h.previewNew, readBody(h.values))
	v1.POST("/templates/:template/preview", h.template, readBody(h.values))
	v1.GET("/environments/:environment/deletion", h.deletion)
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
	Change     string      `json:"change"` // added, changed, removed
	ID         string      `json:"id"`
	Type       string      `json:"type"`
	Name       string      `json:"name"`
	Path       string      `json:"path"`
	Properties []string    `json:"properties"` // of a changed object: those that are other than they were
	Values     []valueJSON `json:"values"`
}

// valueJSON is such a property with what it was and what it would be.
type valueJSON struct {
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// lossJSON is what a deployment would delete in the cloud.
type lossJSON struct {
	Kind     string `json:"kind"` // server, volume or stack
	ObjectID string `json:"object_id"`
	Object   string `json:"object"`
	CloudID  string `json:"cloud_id"`
}

// kubernetesJSON is an object of Kubernetes that a deployment would add, change or remove through a Helm release.
type kubernetesJSON struct {
	Change    string      `json:"change"` // added, changed, removed
	ObjectID  string      `json:"object_id"`
	Object    string      `json:"object"`
	Kind      string      `json:"kind"`
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	Fields    []fieldJSON `json:"fields"` // of a changed object
	More      int         `json:"more"`   // of them, besides
}

// fieldJSON is a part of such an object with what it is and what it would be.
type fieldJSON struct {
	Path   string `json:"path"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

func kubernetesChanges(list []engine.KubernetesChange) []kubernetesJSON {
	answer := make([]kubernetesJSON, len(list))
	for i, one := range list {
		fields := make([]fieldJSON, len(one.Fields))
		for k, field := range one.Fields {
			fields[k] = fieldJSON(field)
		}
		answer[i] = kubernetesJSON{one.What, one.ObjectID, one.Object, one.Kind, one.Namespace, one.Name, fields, one.More}
	}
	return answer
}

// consentJSON is a loss that a deployment must be allowed by naming the object (allow_destroy).
type consentJSON struct {
	ObjectID string `json:"object_id"`
	Name     string `json:"name"`
	Message  string `json:"message"`
}

// previewJSON is what a deployment would do.
type previewJSON struct {
	Changes    []changeJSON     `json:"changes"`
	Means      []string         `json:"means"`
	Losses     []lossJSON       `json:"losses"`
	Kubernetes []kubernetesJSON `json:"kubernetes"`
	Problems   []problemJSON    `json:"problems"`
	Consents   []consentJSON    `json:"consents"`
}

func changesOf(list []orchestrator.Change) []changeJSON {
	changes := make([]changeJSON, len(list))
	for i, one := range list {
		values := make([]valueJSON, len(one.Values))
		for k, value := range one.Values {
			values[k] = valueJSON(value)
		}
		changes[i] = changeJSON{Change: one.What, ID: one.ID, Type: one.Type, Name: one.Name, Path: one.Path, Properties: append([]string{}, one.Properties...),
			Values: values}
	}
	return changes
}

func previewOf(preview orchestrator.Preview) previewJSON {
	losses := make([]lossJSON, len(preview.Losses))
	for i, one := range preview.Losses {
		losses[i] = lossJSON(one)
	}
	consents := make([]consentJSON, len(preview.Consents))
	for i, one := range preview.Consents {
		consents[i] = consentJSON{one.ObjectID, one.Name, one.Text}
	}
	return previewJSON{changesOf(preview.Changes), append([]string{}, preview.Means...), losses, kubernetesChanges(preview.Kubernetes), problems(preview.Problems), consents}
}

// preview answers what the deployment of a session would do.
func (h previewHandlers) preview(c echo.Context) error {
	ctx, caller := calling(c)
	preview, err := h.orchestrator.Preview(ctx, caller, c.Param("environment"), c.Param("session"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, previewOf(preview))
}

// previewNew answers what the deployment of an environment would do that is not there.
func (h previewHandlers) previewNew(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	preview, err := h.orchestrator.PreviewNew(ctx, caller, fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, previewOf(preview))
}

// template answers whether the applications that were posted would change a template.
func (h previewHandlers) template(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	services, ok := fields["services"].([]any)
	ctx, caller := calling(c)
	changed, err := h.orchestrator.TemplateDiffers(ctx, caller, c.Param("template"), services)
	if err != nil {
		return err
	}
	if !ok { // after the look at the owner of the template
		return fault.New(fault.Invalid, "services: the applications of a template are a list")
	}
	return c.JSON(http.StatusOK, struct {
		Changed bool `json:"changed"`
	}{changed})
}

// deletion answers what the deletion of an environment would cost.
func (h previewHandlers) deletion(c echo.Context) error {
	ctx, caller := calling(c)
	means, err := h.orchestrator.Deletion(ctx, caller, c.Param("environment"))
	if err != nil {
		return err
	}
	answer := struct {
		Means []string `json:"means"`
		// UndeleteSeconds is how long the environment can be restored then; 0: not at all.
		UndeleteSeconds int64 `json:"undelete_seconds"`
	}{Means: means}
	if h.deleted != nil {
		answer.UndeleteSeconds = int64(h.deleted.Period().Seconds())
	}
	return c.JSON(http.StatusOK, answer)
}
