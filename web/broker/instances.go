package broker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"time"

	"github.com/burano/burano/web/client"
)

// environmentPrefix begins the names of environments that are instances of services.
const environmentPrefix = "service-"

// instanceForm matches ids after which an environment can be named.
var instanceForm = regexp.MustCompile(`^[\w.-]{1,200}$`)

// errNoInstance reports that the project has no environment for an instance.
var errNoInstance = errors.New("there is no such instance")

// find is the environment of the instance that the path names.
func find(r *http.Request, api *client.Client) (client.Environment, error) {
	id := r.PathValue("instance")
	if !instanceForm.MatchString(id) {
		return client.Environment{}, failure{status: http.StatusBadRequest, text: "The id of an instance has up to 200 letters, digits, dots, dashes and underscores"}
	}
	found, err := api.Environments().Get(r.Context(), environmentPrefix+id)
	if client.IsStatus(err, http.StatusNotFound) {
		return found, errNoInstance
	}
	return found, err
}

// request is a platform's request for an instance or a binding.
type request struct {
	Service    string         `json:"service_id"`
	Plan       string         `json:"plan_id"`
	Parameters map[string]any `json:"parameters"`
}

// The states of an environment in the API.
const (
	stateReady         = "ready"
	stateFailed        = "deploy failure"
	stateNotDeleted    = "delete failure"
	stateDeleting      = "deleting"
	operationDelete    = "delete"
	operationProvision = "deploy"
)

func inProgress(environment client.Environment) bool {
	switch environment.Status {
	case stateReady, stateFailed, stateNotDeleted:
		return false
	}
	return true
}

// provision makes an environment with the application and deploys it.
func (b *broker) provision(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	var wanted request
	if err := errors.Join(readJSON(w, r, &wanted), asynchronous(r)); err != nil {
		return err
	}
	ctx := r.Context()
	of, err := application(ctx, api, wanted.Service, wanted.Plan)
	if err != nil {
		return err
	}
	model := modelOf(r.PathValue("instance"), of, wanted.Parameters)
	found, err := find(r, api)
	if err == nil {
		return again(w, found, model)
	}
	if !errors.Is(err, errNoInstance) {
		return err
	}
	made, err := api.Environments().Create(ctx, client.EnvironmentOptions{
		Name: environmentPrefix + r.PathValue("instance"), Description: of.Name + ", an instance of a service that a platform asked the broker for",
	})
	if err != nil {
		return err
	}
	if err := deploy(ctx, api, made.ID, model); err != nil {
		if err := undone(context.WithoutCancel(ctx), api, made.ID, err); err != nil {
			return err
		}
	}
	writeJSON(w, http.StatusAccepted, map[string]string{"operation": operationProvision})
	return nil
}

// undone removes a new environment whose deployment failed to begin. It returns that error, or nil where the deployment has begun all the same: a call
// whose answer was lost may have been heard. Only an environment of which that is ruled out is abandoned. Where nothing can be found out it stays:
// platforms delete an instance whose making had no clear end (the specification's "orphan mitigation").
func undone(ctx context.Context, api *client.Client, id string, failed error) error {
	var refused *client.Refusal
	if errors.As(failed, &refused) && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusConflict {
		return errors.Join(failed, api.Environments().Delete(ctx, id, true))
	}
	ctx, cancel := context.WithTimeout(ctx, undoPatience)
	defer cancel()
	found, err := api.Environments().Get(ctx, id)
	switch {
	case client.IsStatus(err, http.StatusNotFound):
		return failed
	case err != nil:
		return errors.Join(failed, err)
	case inProgress(found) || len(found.Services) > 0:
		return nil
	}
	// The call may still be in progress: a deletion removes its results, too.
	return errors.Join(failed, api.Environments().Delete(ctx, id, false))
}

// undoPatience is how long it may take to find out whether a deployment has begun, and to delete its environment.
const undoPatience = 30 * time.Second

// again answers a repeated provisioning of an existing instance.
func again(w http.ResponseWriter, found client.Environment, model map[string]any) error {
	if len(found.Services) > 0 && !holds(found.Services[0], model) {
		return failure{status: http.StatusConflict, text: "There is an instance with this id that is of another service or has other parameters"}
	}
	switch {
	case inProgress(found):
		writeJSON(w, http.StatusAccepted, map[string]string{"operation": operationProvision})
	case found.Status == stateReady && len(found.Services) > 0:
		writeJSON(w, http.StatusOK, map[string]any{})
	default:
		return failure{status: http.StatusConflict, text: "This instance could not be deployed: delete it, and make it again"}
	}
	return nil
}

// deploy gives an environment the application in a new session.
func deploy(ctx context.Context, api *client.Client, environment string, model map[string]any) error {
	session, err := api.Sessions().Configure(ctx, environment)
	if err != nil {
		return err
	}
	if err := api.Sessions().SetApplications(ctx, environment, session.ID, []any{model}, true); err != nil {
		return err
	}
	return api.Sessions().Deploy(ctx, environment, session.ID)
}

// modelOf is the application as a platform wants it. Objects in parameters get ids, which are the same each time.
func modelOf(instance string, of client.Package, parameters map[string]any) map[string]any {
	model := map[string]any{"name": of.Name}
	for name, value := range parameters {
		if name != "?" {
			model[name] = withIDs(value, instance+"/"+name)
		}
	}
	model["?"] = map[string]any{"type": of.FullName, "id": idOf(instance), "name": of.Name}
	return model
}

func withIDs(value any, path string) any {
	switch value := value.(type) {
	case map[string]any:
		made := map[string]any{}
		for name, one := range value {
			if header, is := one.(map[string]any); is && name == "?" {
				headed := map[string]any{}
				for key, text := range header {
					headed[key] = text
				}
				headed["id"] = idOf(path)
				made[name] = headed
				continue
			}
			made[name] = withIDs(one, path+"/"+name)
		}
		return made
	case []any:
		made := make([]any, len(value))
		for i, one := range value {
			made[i] = withIDs(one, fmt.Sprintf("%s/%d", path, i))
		}
		return made
	}
	return value
}

func idOf(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// holds reports whether the existing object is like the wanted one: of its class, with all of its properties.
func holds(there, wanted any) bool {
	object, is := wanted.(map[string]any)
	if !is {
		return reflect.DeepEqual(there, wanted)
	}
	known, is := there.(map[string]any)
	if !is {
		return false
	}
	for name, value := range object {
		if name == "?" {
			if className(known) != className(object) {
				return false
			}
			continue
		}
		if !holds(known[name], value) {
			return false
		}
	}
	return true
}

func className(object map[string]any) string {
	header, _ := object["?"].(map[string]any)
	text, _ := header["type"].(string)
	return client.ClassOfType(text).Name
}

// show answers of which service an instance is.
func (b *broker) show(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	found, err := find(r, api)
	if errors.Is(err, errNoInstance) || err == nil && (len(found.Services) == 0 || found.Status != stateReady && found.Status != stateFailed) {
		return failure{status: http.StatusNotFound, text: "There is no instance of this id that was deployed"}
	}
	if err != nil {
		return err
	}
	of, err := api.Packages().Get(r.Context(), className(found.Services[0]))
	if err != nil {
		return err
	}
	parameters := map[string]any{}
	for name, value := range found.Services[0] {
		if name != "?" {
			parameters[name] = value
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"service_id": of.ID, "plan_id": planOf(of.ID), "parameters": parameters})
	return nil
}

// update gives the application other properties and deploys it again.
func (b *broker) update(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	var wanted request
	if err := errors.Join(readJSON(w, r, &wanted), asynchronous(r)); err != nil {
		return err
	}
	found, err := idleEnvironment(r, api)
	if err != nil {
		return err
	}
	model := found.Services[0]
	of, err := application(r.Context(), api, wanted.Service, planOf(wanted.Service))
	if err != nil {
		return err
	}
	if of.FullName != className(model) || wanted.Plan != "" && wanted.Plan != planOf(wanted.Service) {
		return failure{status: http.StatusUnprocessableEntity, text: "An instance stays what it is: its service and plan cannot be changed"}
	}
	for name, value := range wanted.Parameters {
		if name != "?" {
			model[name] = withIDs(value, r.PathValue("instance")+"/"+name)
		}
	}
	if err := deploy(r.Context(), api, found.ID, model); err != nil {
		return err
	}
	writeJSON(w, http.StatusAccepted, map[string]string{"operation": operationProvision})
	return nil
}

// idleEnvironment is the environment of an instance that is there and with which nothing happens.
func idleEnvironment(r *http.Request, api *client.Client) (client.Environment, error) {
	found, err := find(r, api)
	switch {
	case errors.Is(err, errNoInstance):
		return found, failure{status: http.StatusNotFound, text: "There is no instance of this id"}
	case err == nil && (inProgress(found) || len(found.Services) == 0):
		return found, failure{http.StatusUnprocessableEntity, "ConcurrencyError", "The instance is " + found.Status + ": ask its last operation, and try again then"}
	}
	return found, err
}

// deprovision deletes the environment with all that was deployed in it.
func (b *broker) deprovision(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	query := r.URL.Query()
	if query.Get("service_id") == "" || query.Get("plan_id") == "" {
		return failure{status: http.StatusBadRequest, text: "service_id and plan_id are needed as parameters of the query"}
	}
	if err := asynchronous(r); err != nil {
		return err
	}
	found, err := find(r, api)
	if errors.Is(err, errNoInstance) {
		writeJSON(w, http.StatusGone, map[string]any{})
		return nil
	}
	if err != nil {
		return err
	}
	if found.Status != stateDeleting {
		if err := api.Environments().Delete(r.Context(), found.ID, false); err != nil && !client.IsStatus(err, http.StatusNotFound) {
			return err
		}
	}
	writeJSON(w, http.StatusAccepted, map[string]string{"operation": operationDelete})
	return nil
}

// lastOperation answers the progress of an instance's newest change.
func (b *broker) lastOperation(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	found, err := find(r, api)
	if errors.Is(err, errNoInstance) {
		writeJSON(w, http.StatusGone, map[string]any{})
		return nil
	}
	if err != nil {
		return err
	}
	answer := map[string]string{"state": "in progress", "description": "The instance is " + found.Status}
	switch found.Status {
	case stateReady:
		answer["state"] = "succeeded"
	case stateFailed, stateNotDeleted:
		answer["state"] = "failed"
		if answer["description"], err = reason(r.Context(), api, found.ID); err != nil {
			return err
		}
	default:
		w.Header().Set("Retry-After", "5")
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

// reason is the error of the newest run over an environment.
func reason(ctx context.Context, api *client.Client, environment string) (string, error) {
	run, err := api.Deployments().Newest(ctx, environment)
	if err != nil {
		return "", err
	}
	reports, err := api.Deployments().Reports(ctx, environment, run.ID)
	if err != nil {
		return "", err
	}
	text := "It failed"
	for _, report := range reports {
		if report.Level == "error" {
			text = report.Text
		}
	}
	return text, nil
}
