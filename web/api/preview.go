package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/burano/burano/catalog/muranopl"
	"github.com/burano/burano/internal/fault"
	"github.com/burano/burano/orchestrator"
	"github.com/burano/burano/orchestrator/engine"
	"github.com/burano/burano/orchestrator/preview"
)

// previewHandlers answer with the effects of a deployment, or a deletion.
type previewHandlers struct {
	orchestrator *orchestrator.Service
	deleted      *orchestrator.Undeletion
	values       int // that a body may have
	leaving      engine.Question
}

// deletionJSON are the effects of the deletion of an environment.
type deletionJSON struct {
	Effects  []string      `json:"means"` // all of it, in sentences
	Goes     []string      `json:"goes"`
	Stays    []string      `json:"stays"`
	Consents []consentJSON `json:"consents"`
	Busy     *busyJSON     `json:"busy"` // null: nothing runs in it
	// UndeleteSeconds is how long the environment can be restored then; 0: not at all.
	UndeleteSeconds int64 `json:"undelete_seconds"`
}

// busyJSON is the task that runs in an environment.
type busyJSON struct {
	DeploymentID string `json:"deployment_id"`
	Kind         string `json:"kind"`
	UserID       string `json:"user_id"`
	UserName     string `json:"user_name"` // "" where it is not known
	Since        string `json:"since"`
}

func (h previewHandlers) register(v1 *echo.Group) {
	v1.GET("/environments/:environment/sessions/:session/preview", h.preview)
	v1.POST("/preview", h.previewNew, readBody(h.values))
	v1.POST("/templates/:template/preview", h.template, readBody(h.values))
	v1.GET("/environments/:environment/deletion", h.deletion)
}

// problemJSON is an error in an object model: at a path like "services[0].name", by the rule of a class or of one of its properties.
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
	Properties []string    `json:"properties"` // of a changed object: its changed properties
	Values     []valueJSON `json:"values"`
	// Names are those of the objects that stand as their ids in values.
	Names map[string]string `json:"names,omitempty"`
}

// valueJSON is such a property with its value before and after.
type valueJSON struct {
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
	// Effect is the declared effect of a change: inPlace, rollsPods, nodeByNode, newOnly, refused, loses or none.
	Effect     string `json:"effect,omitempty"`
	EffectText string `json:"effect_text,omitempty"`
}

// lossJSON is a resource that a deployment would delete in the cloud.
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

// fieldJSON is a part of such an object with its value before and after.
type fieldJSON struct {
	Path   string `json:"path"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

func kubernetesChanges(list []preview.KubernetesChange) []kubernetesJSON {
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

// consentJSON is a loss that the caller must allow by naming the object (allow_destroy).
type consentJSON struct {
	ObjectID string   `json:"object_id"`
	Name     string   `json:"name"`
	Message  string   `json:"message"`
	Claims   []string `json:"claims"` // of a pod: naming all of them allows its loss, too
}

// previewJSON are the effects of a deployment.
type previewJSON struct {
	Changes    []changeJSON     `json:"changes"`
	Effects    []string         `json:"means"`
	Notes      []string         `json:"notes"` // differences from the model that stay
	Losses     []lossJSON       `json:"losses"`
	Kubernetes []kubernetesJSON `json:"kubernetes"`
	Problems   []problemJSON    `json:"problems"`
	Consents   []consentJSON    `json:"consents"`
	Plan       string           `json:"plan"` // identifies everything that is shown, for the deployment
}

func changesOf(list []preview.Change) []changeJSON {
	changes := make([]changeJSON, len(list))
	for i, one := range list {
		values := make([]valueJSON, len(one.Values))
		for k, value := range one.Values {
			values[k] = valueJSON(value)
		}
		changes[i] = changeJSON{Change: one.What, ID: one.ID, Type: one.Type, Name: one.Name, Path: one.Path, Properties: append([]string{}, one.Properties...),
			Values: values, Names: one.Names}
	}
	return changes
}

func previewOf(plan preview.Plan) previewJSON {
	losses := make([]lossJSON, len(plan.Losses))
	for i, one := range plan.Losses {
		losses[i] = lossJSON(one)
	}
	return previewJSON{changesOf(plan.Changes), append([]string{}, plan.Effects...), append([]string{}, plan.Notes...), losses, kubernetesChanges(plan.Kubernetes), problems(plan.Problems), consentsOf(plan.Consents), plan.Token}
}

func consentsOf(list []preview.Consent) []consentJSON {
	answer := make([]consentJSON, len(list))
	for i, one := range list {
		answer[i] = consentJSON{one.ObjectID, one.Name, one.Text, append([]string{}, one.Claims...)}
	}
	return answer
}

// preview answers with the effects of the deployment of a session.
func (h previewHandlers) preview(c echo.Context) error {
	ctx, caller := calling(c)
	plan, err := h.orchestrator.Previews().Get(ctx, caller, c.Param("environment"), c.Param("session"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, previewOf(plan))
}

// previewNew answers with the effects of the deployment of an environment that does not exist yet.
func (h previewHandlers) previewNew(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	ctx, caller := calling(c)
	plan, err := h.orchestrator.Previews().New(ctx, caller, fields)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, previewOf(plan))
}

// template answers whether the posted applications would change a template.
func (h previewHandlers) template(c echo.Context) error {
	fields, err := object(c)
	if err != nil {
		return err
	}
	services, ok := fields["services"].([]any)
	ctx, caller := calling(c)
	changed, err := h.orchestrator.Templates().Differs(ctx, caller, c.Param("template"), services)
	if err != nil {
		return err
	}
	if !ok { // after the check of the template's owner
		return fault.New(fault.Invalid, "services: the applications of a template are a list")
	}
	return c.JSON(http.StatusOK, struct {
		Changed bool `json:"changed"`
	}{changed})
}

// deletion answers with the effects of the deletion of an environment.
func (h previewHandlers) deletion(c echo.Context) error {
	ctx, caller := calling(c)
	deletion, err := h.orchestrator.Environments().Deletion(ctx, caller, c.Param("environment"), h.leaving)
	if err != nil {
		return err
	}
	answer := deletionJSON{Effects: []string{}, Goes: append([]string{}, deletion.Goes...), Stays: append([]string{}, deletion.Stays...), Consents: consentsOf(deletion.Consents)}
	for _, one := range deletion.Goes {
		answer.Effects = append(answer.Effects, "goes: "+one)
	}
	for _, one := range deletion.Stays {
		answer.Effects = append(answer.Effects, "stays: "+one)
	}
	if h.deleted != nil {
		answer.UndeleteSeconds = int64(h.deleted.Period().Seconds())
	}
	if busy := deletion.Busy; busy != nil {
		answer.Busy = &busyJSON{busy.DeploymentID, busy.Kind, busy.UserID, busy.UserName, stamp(busy.Since)}
	}
	return c.JSON(http.StatusOK, answer)
}
