package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/burano/burano/internal/wait"
)

// pollInterval is how often it is asked whether an environment is gone.
const pollInterval = 300 * time.Millisecond

// sessionHeader names the session whose draft a request is about.
const sessionHeader = "X-Configuration-Session"

// Environment is an environment with its applications (Services, as the API calls them); lists have none.
type Environment struct {
	ID       string           `json:"id" yaml:"id"`
	Name     string           `json:"name" yaml:"name"`
	Status   string           `json:"status,omitempty" yaml:"status,omitempty"`
	Project  string           `json:"tenant_id" yaml:"tenant_id"`
	Created  string           `json:"created" yaml:"created"`
	Updated  string           `json:"updated" yaml:"updated"`
	Services []map[string]any `json:"services,omitempty" yaml:"services,omitempty"`
}

// EnvironmentOptions describe a new environment. Only the name is needed.
type EnvironmentOptions struct {
	Name            string         `json:"name"`
	Description     string         `json:"description_text,omitempty"`
	Region          string         `json:"region,omitempty"`
	DefaultNetworks map[string]any `json:"defaultNetworks,omitempty"`
}

// Environments are the calls about environments, deleted ones included.
type Environments struct{ client *Client }

// Environments returns the calls about environments.
func (c *Client) Environments() Environments { return Environments{c} }

// Create makes an environment without applications.
func (c Environments) Create(ctx context.Context, options EnvironmentOptions) (Environment, error) {
	var made Environment
	return made, c.client.Call(ctx, http.MethodPost, "/v1/environments", options, &made)
}

// Rename gives an environment another name.
func (c Environments) Rename(ctx context.Context, id, name string) error {
	return c.client.Call(ctx, http.MethodPut, "/v1/environments/"+id, map[string]any{"name": name}, nil)
}

// Delete begins to delete an environment with all its resources; WaitDeleted waits for the end. With abandon it is removed from Burano at once,
// and its resources stay in the cloud.
func (c Environments) Delete(ctx context.Context, id string, abandon bool) error {
	query := ""
	if abandon {
		query = "?abandon=true"
	}
	return c.client.Call(ctx, http.MethodDelete, "/v1/environments/"+id+query, nil, nil)
}

// Model returns the object model of an environment, or of the draft of a session when one is named, or its value at a path (keys, ids and indexes divided
// by /).
func (c Environments) Model(ctx context.Context, environment, session, path string) (json.RawMessage, error) {
	return c.client.Send(ctx, http.MethodGet, strings.TrimSuffix("/v1/environments/"+environment+"/model/"+strings.Trim(path, "/"), "/"), nil, ofSession(session)...)
}

// PatchModel changes the draft of a session by a JSON patch (RFC 6902, the operations add, replace and remove), and gives its model.
func (c Environments) PatchModel(ctx context.Context, environment, session string, patch io.Reader) (json.RawMessage, error) {
	return c.client.Send(ctx, http.MethodPatch, "/v1/environments/"+environment+"/model", patch, append(ofSession(session), "Content-Type", "application/env-model-json-patch")...)
}

func ofSession(id string) []string {
	if id == "" {
		return nil
	}
	return []string{sessionHeader, id}
}

// List lists the environments of the caller's project; query (all_tenants, tenant) may ask for others.
func (c Environments) List(ctx context.Context, query url.Values) ([]Environment, error) {
	var answer struct {
		Environments []Environment `json:"environments"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/v1/environments?"+query.Encode(), nil, &answer)
	return answer.Environments, err
}

// Overview is an environment with its state.
type Overview struct {
	Environment `yaml:",inline"`
	State       string         `json:"state" yaml:"state"`
	Components  map[string]int `json:"components" yaml:"components"` // how many have each state
}

// Overviews is List with the states of the environments.
func (c Environments) Overviews(ctx context.Context, query url.Values) ([]Overview, error) {
	var answer struct {
		Environments []Overview `json:"environments"`
	}
	err := c.client.Call(ctx, http.MethodGet, "/burano/v1/environments?"+query.Encode(), nil, &answer)
	return answer.Environments, err
}

// ComponentRun is a run that decides about the state of a component.
type ComponentRun struct {
	Deployment string `json:"deployment_id" yaml:"deployment_id"`
	Kind       string `json:"kind" yaml:"kind"` // deployment, deletion or action
	Object     string `json:"object_id,omitempty" yaml:"object_id,omitempty"`
	Method     string `json:"method,omitempty" yaml:"method,omitempty"`
	Failed     bool   `json:"failed" yaml:"failed"`
	Text       string `json:"text" yaml:"text"`
	Finished   string `json:"finished" yaml:"finished"`
}

// Component is a component of an environment with its state.
type Component struct {
	ID         string         `json:"id" yaml:"id"`
	Type       string         `json:"type" yaml:"type"`
	Name       string         `json:"name" yaml:"name"`
	State      string         `json:"state" yaml:"state"`
	Change     string         `json:"change,omitempty" yaml:"change,omitempty"` // added, changed or removed
	Deployment *ComponentRun  `json:"deployment" yaml:"deployment"`
	Failures   []ComponentRun `json:"failures" yaml:"failures"`
	Findings   map[string]int `json:"findings" yaml:"findings"`
}

// ComponentStates are the states of an environment and its components.
type ComponentStates struct {
	State      string         `json:"state" yaml:"state"`
	Deployment *ComponentRun  `json:"deployment" yaml:"deployment"` // as far as it is about no component
	Failures   []ComponentRun `json:"failures" yaml:"failures"`
	Findings   map[string]int `json:"findings" yaml:"findings"`
	Components []Component    `json:"components" yaml:"components"`
}

// Components returns the states of an environment and its components, as it is or, where a session is named, as that drafts it.
func (c Environments) Components(ctx context.Context, environment, session string) (states ComponentStates, err error) {
	return states, c.client.Call(ctx, http.MethodGet, "/burano/v1/environments/"+environment+"/components", nil, &states, ofSession(session)...)
}

// idForm is how ids look.
var idForm = regexp.MustCompile(`^[0-9a-f]{32}$`)

// Get finds an environment by name or id; one of another project, which admins may see, by its id.
func (c Environments) Get(ctx context.Context, nameOrID string) (Environment, error) {
	rows, err := c.List(ctx, nil)
	if err != nil {
		return Environment{}, err
	}
	for _, row := range rows {
		if row.ID == nameOrID || row.Name == nameOrID {
			var whole Environment
			err := c.client.Call(ctx, http.MethodGet, "/v1/environments/"+row.ID, nil, &whole)
			return whole, err
		}
	}
	if idForm.MatchString(nameOrID) {
		var whole Environment
		if err := c.client.Call(ctx, http.MethodGet, "/v1/environments/"+nameOrID, nil, &whole); err == nil {
			return whole, nil
		}
	}
	return Environment{}, &Refusal{Status: http.StatusNotFound, Message: fmt.Sprintf(
		"the project has no environment %q: `burano environment list` shows those it has", nameOrID)}
}

// WaitDeleted returns when the environment is gone, or with the reports of a deletion that failed.
func (c Environments) WaitDeleted(ctx context.Context, id string) error {
	return wait.Every(pollInterval).Until(ctx, func(ctx context.Context) error {
		var current Environment
		err := c.client.Call(ctx, http.MethodGet, "/v1/environments/"+id, nil, &current)
		switch {
		case IsStatus(err, http.StatusNotFound):
			return nil
		case err != nil:
			return err
		case current.Status == "delete failure":
			return c.explainFailure(ctx, id)
		}
		return wait.Again(fmt.Errorf("it is %s", current.Status))
	})
}

// explainFailure makes an error of the error reports of the environment's newest deployment.
func (c Environments) explainFailure(ctx context.Context, environment string) error {
	newest, err := c.client.Deployments().Newest(ctx, environment)
	if err != nil {
		return err
	}
	reports, err := c.client.Deployments().Reports(ctx, environment, newest.ID)
	if err != nil {
		return err
	}
	text := ""
	for _, report := range reports {
		if report.Level == "error" {
			text += "\n  " + report.Text
		}
	}
	return fmt.Errorf("it failed:%s", text)
}
