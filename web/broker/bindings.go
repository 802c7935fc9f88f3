package broker

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/burano/burano/internal/wait"
	"github.com/burano/burano/web/client"
)

const (
	// credentialsAction is the method of applications that returns their credentials, as in Murano's broker.
	credentialsAction = "getCredentials"
	// bindPatience is how long that may take: platforms wait for a minute.
	bindPatience = 50 * time.Second
	bindPoll     = 200 * time.Millisecond
)

// bind asks the application for its credentials. No state of a binding is stored: each gets the same.
func (b *broker) bind(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	var wanted request
	if err := readJSON(w, r, &wanted); err != nil {
		return err
	}
	if _, err := application(r.Context(), api, wanted.Service, wanted.Plan); err != nil {
		return err
	}
	found, err := idleEnvironment(r, api)
	if err != nil {
		return err
	}
	for _, action := range found.Actions() {
		if action.Action == credentialsAction && action.Enabled {
			credentials, err := credentials(r.Context(), api, found.ID, action.ID)
			if err != nil {
				return err
			}
			writeJSON(w, http.StatusCreated, credentials)
			return nil
		}
	}
	return failure{status: http.StatusUnprocessableEntity, text: "This application cannot be bound: it has no action " + credentialsAction}
}

// credentials runs the action; a result without a key credentials is their value.
func credentials(ctx context.Context, api *client.Client, environment, action string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, bindPatience)
	defer cancel()
	task, err := api.Actions().Call(ctx, environment, action, map[string]any{})
	if err != nil {
		return nil, err
	}
	var result client.ActionResult
	err = wait.Every(bindPoll).Until(ctx, func(ctx context.Context) error {
		result, err = api.Actions().Result(ctx, environment, task)
		if client.IsStatus(err, http.StatusNotFound) || err == nil && result.IsException == nil {
			return wait.Again(failure{http.StatusUnprocessableEntity, "ConcurrencyError", credentialsAction + " has not ended yet"})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var told any
	if err := json.Unmarshal(result.Result, &told); err != nil {
		return nil, err
	}
	answer, is := told.(map[string]any)
	if *result.IsException {
		return nil, failure{status: http.StatusInternalServerError, text: credentialsAction + " failed: " + string(result.Result)}
	}
	if _, whole := answer["credentials"]; is && whole {
		return answer, nil
	}
	return map[string]any{"credentials": told}, nil
}

// unbind has nothing to do.
func (b *broker) unbind(w http.ResponseWriter, r *http.Request, api *client.Client) error {
	query := r.URL.Query()
	if query.Get("service_id") == "" || query.Get("plan_id") == "" {
		return failure{status: http.StatusBadRequest, text: "service_id and plan_id are needed as parameters of the query"}
	}
	if _, err := find(r, api); err != nil && err != errNoInstance {
		return err
	} else if err != nil {
		writeJSON(w, http.StatusGone, map[string]any{})
		return nil
	}
	writeJSON(w, http.StatusOK, map[string]any{})
	return nil
}
